//! A phone behind an adb server of paper, which answers what it is told to: the traps of the stock
//! commands, and phones that come and go.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use crate::common::{call, failure, json_of, text};
use sinew_phones::adb::{self, AdbPhone, AdbServer};
use sinew_phones::{Phone, PhoneDevice, PhoneError, Profile};
use sinew_tool::{DeviceEvent, Status, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A command contains the first; the phone prints the second, complains the third, exits with the fourth.
type Reply = (&'static str, &'static str, &'static str, u8);

struct Adb {
    server: AdbServer,
    commands: Arc<Mutex<Vec<String>>>,
    list: watch::Sender<&'static str>,
    /// What the server answers when it is asked for the list, where it knows more than it told.
    asked: Arc<Mutex<Option<&'static str>>>,
}

const DUMP: &str = "UI hierchary dumped to: /data/local/tmp/x.xml\n<?xml version='1.0'?><hierarchy rotation=\"0\"><node class=\"android.widget.FrameLayout\" package=\"a.b\" bounds=\"[0,0][1080,2400]\"><node class=\"android.widget.EditText\" text=\"old\" focused=\"true\" clickable=\"true\" enabled=\"true\" package=\"a.b\" bounds=\"[0,0][1080,100]\"/></node></hierarchy>";
const WHO: Reply = ("getprop", "Google\nPixel 8\n15\n35\n", "", 0);
const SIZE: Reply = (
    "wm size",
    "Physical size: 1080x2400\nPhysical density: 420\n  SurfaceOrientation: 0\n  mWakefulness=Awake\n",
    "",
    0,
);

/// Listens like an adb server with one phone, `P1`.
async fn adb(replies: &'static [Reply]) -> Adb {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = AdbServer::tcp("127.0.0.1", listener.local_addr().unwrap().port());
    let commands: Arc<Mutex<Vec<String>>> = Arc::default();
    let (list, shown) = watch::channel("P1 device model:Pixel_8 transport_id:1\n");
    let asked: Arc<Mutex<Option<&'static str>>> = Arc::default();
    let (kept, known) = (commands.clone(), asked.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, replies, kept.clone(), shown.clone(), known.clone()));
        }
    });
    Adb { server, commands, list, asked }
}

/// Is connected to when the list of phones changes next.
const SLOW: &str = "10.0.0.9:5555";

async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).await.ok()?;
    let length = usize::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await.ok()?;
    String::from_utf8(text).ok()
}

async fn block(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("{:04x}{text}", text.len()).as_bytes()).await.ok()
}

async fn serve(
    mut stream: TcpStream,
    replies: &'static [Reply],
    commands: Arc<Mutex<Vec<String>>>,
    mut list: watch::Receiver<&'static str>,
    asked: Arc<Mutex<Option<&'static str>>>,
) -> Option<()> {
    loop {
        let request = request(&mut stream).await?;
        if let Some(command) = request.strip_prefix("shell,v2,raw:") {
            stream.write_all(b"OKAY").await.ok()?;
            commands.lock().ok()?.push(command.to_owned());
            let (_, out, err, code) =
                replies.iter().find(|(part, ..)| command.contains(part)).copied().unwrap_or_default();
            if out == "HANG UP" {
                return None;
            }
            for (kind, data) in [(1u8, out.as_bytes()), (2, err.as_bytes()), (3, &[code][..])] {
                stream.write_all(&[&[kind][..], &(data.len() as u32).to_le_bytes(), data].concat()).await.ok()?;
            }
            return Some(());
        }
        match request.as_str() {
            "host:transport:P1" => stream.write_all(b"OKAY").await.ok()?,
            "host:version" => {
                stream.write_all(b"OKAY").await.ok()?;
                return block(&mut stream, "0029").await;
            }
            "host-serial:P1:features" => {
                stream.write_all(b"OKAY").await.ok()?;
                return block(&mut stream, "shell_v2,cmd").await;
            }
            "host:track-devices-l" => {
                stream.write_all(b"OKAY").await.ok()?;
                loop {
                    let text = *list.borrow_and_update();
                    block(&mut stream, text).await?;
                    list.changed().await.ok()?;
                }
            }
            connect if connect.starts_with("host:connect:") => {
                commands.lock().ok()?.push(connect.to_owned());
                if connect.ends_with(SLOW) {
                    list.changed().await.ok()?;
                }
                stream.write_all(b"OKAY").await.ok()?;
                return block(&mut stream, "connected to it").await;
            }
            "host:devices-l" => {
                commands.lock().ok()?.push(request);
                let answer = *asked.lock().ok()?;
                stream.write_all(if answer.is_some() { b"OKAY" } else { b"FAIL" }).await.ok()?;
                return block(&mut stream, answer.unwrap_or("unknown host service")).await;
            }
            other => {
                commands.lock().ok()?.push(other.to_owned());
                stream.write_all(b"FAIL").await.ok()?;
                return block(&mut stream, &format!("device '{other}' not found")).await;
            }
        }
    }
}

async fn phone(replies: &'static [Reply]) -> (Adb, PhoneDevice<AdbPhone>) {
    let adb = adb(replies).await;
    let phone = AdbPhone::open(&adb.server, "P1").await.unwrap();
    (adb, PhoneDevice::new(phone, Profile::Full))
}

/// A command that sends input, as it is sent.
fn if_awake(input: &str) -> String {
    format!("dumpsys power | grep -qE 'mWakefulness=(Asleep|Dozing)' && echo sinew-display-off || {{ {input}; }}")
}

#[tokio::test]
async fn a_phone_says_who_it_is_and_does_what_it_is_told() {
    let (adb, phone) = phone(&[WHO, SIZE, ("uiautomator", DUMP, "", 0)]).await;
    let about = phone.phone().about();
    assert_eq!((about.model.as_str(), about.android.as_str(), about.sdk), ("Pixel 8", "15", 35));
    assert_eq!(text(&phone, "tap", json!({"x": 5, "y": 6})).await, "Tap executed at (5, 6)");
    assert_eq!(adb.commands.lock().unwrap().last().unwrap(), &if_awake("input tap '5' '6'"));
    assert_eq!(text(&phone, "get_screen", json!({})).await, "app a.b\ne1 field=\"old\" focus @540,50");
    text(&phone, "open_notifications", json!({})).await;
    assert_eq!(adb.commands.lock().unwrap().last().unwrap(), &if_awake("cmd statusbar expand-notifications"));
    text(&phone, "close_app", json!({"app": "a.b"})).await;
    assert_eq!(
        adb.commands.lock().unwrap().last().unwrap(),
        "pm path 'a.b' | grep -q package: || echo sinew-no-app; am force-stop 'a.b'"
    );
}

#[tokio::test]
async fn uiautomator_fails_with_success_and_is_not_believed() {
    let (_adb, moving) = phone(&[WHO, ("uiautomator", "", "ERROR: could not get idle state.\n", 0)]).await;
    let (code, message) = failure(&moving, "get_accessibility_tree", json!({})).await;
    assert_eq!(code, -32001);
    assert!(message.contains("keeps moving") && message.contains("agent"), "{message}");

    let null = ("uiautomator", "ERROR: null root node returned by UiTestAutomationBridge.\n", "cat: No such file\n", 1);
    let off = "Physical size: 10x10\n mWakefulness=Asleep\n";
    let leak = |replies: Vec<Reply>| -> &'static [Reply] { replies.leak() };
    let (_adb, asleep) = phone(leak(vec![WHO, null, ("wm size", off, "", 0)])).await;
    let (code, message) = failure(&asleep, "get_accessibility_tree", json!({})).await;
    assert_eq!(code, -32001);
    assert!(message.contains("WAKEUP"), "{message}");
    let (_adb, empty) = phone(leak(vec![WHO, null, SIZE])).await;
    assert_eq!(failure(&empty, "get_accessibility_tree", json!({})).await.0, -32003);

    let (_adb, taken) = phone(&[WHO, ("uiautomator", "", "UiAutomationService already registered!\n", 0)]).await;
    let (code, message) = failure(&taken, "get_accessibility_tree", json!({})).await;
    assert_eq!(code, -32003);
    assert!(message.contains("another program"), "{message}");
}

#[tokio::test]
async fn a_dump_never_serves_an_old_file() {
    let (adb, phone) = phone(&[WHO, ("uiautomator", DUMP, "", 0)]).await;
    text(&phone, "get_screen", json!({})).await;
    let commands = adb.commands.lock().unwrap();
    let dump = commands.iter().find(|command| command.contains("uiautomator")).unwrap();
    let (trap, rest) = dump.split_once("; ").unwrap();
    assert!(trap.starts_with("trap 'rm -f '") && trap.ends_with(" HUP TERM"), "nor where its caller leaves: {dump}");
    assert!(rest.starts_with("rm -f '/data/local/tmp/sinew-screen-"), "{dump}");
    assert!(rest.ends_with(".xml'") && rest.matches("rm -f").count() == 2, "nothing is left behind: {dump}");
}

#[tokio::test]
async fn refusals_of_the_phone_are_told_apart() {
    let forbidden = "java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission";
    let leak = |replies: Vec<Reply>| -> &'static [Reply] { replies.leak() };
    let (_adb, vendor) = phone(leak(vec![WHO, SIZE, ("input tap", "", forbidden, 255)])).await;
    let (code, message) = failure(&vendor, "tap", json!({"x": 1, "y": 1})).await;
    assert_eq!(code, -32001);
    assert!(message.contains("Security settings"), "{message}");

    let (_adb, broken) = phone(leak(vec![WHO, SIZE, ("input tap", "Error: Unknown command\n", "", 0)])).await;
    assert_eq!(failure(&broken, "tap", json!({"x": 1, "y": 1})).await.0, -32003);

    let (_adb, asleep) =
        phone(leak(vec![WHO, ("input keyevent '224'", "", "", 0), ("dumpsys power", "sinew-display-off\n", "", 0)]))
            .await;
    let (code, message) = failure(&asleep, "press_back", json!({})).await;
    assert_eq!((code, message.contains("WAKEUP")), (-32001, true), "{message}");
    assert!(call(&asleep, "press_key", json!({"key": "WAKEUP"})).await.is_ok());

    let (_adb, secure) = phone(leak(vec![WHO, ("screencap", "", "Capturing failed.\n", 1)])).await;
    assert_eq!(failure(&secure, "capture_screenshot", json!({})).await.0, -32001);
    let (_adb, empty) = phone(leak(vec![WHO, ("screencap", "", "", 0)])).await;
    assert_eq!(failure(&empty, "capture_screenshot", json!({})).await.0, -32003);
}

#[tokio::test]
async fn what_a_stock_shell_cannot_do_names_the_remedy_and_does_nothing() {
    let (adb, phone) = phone(&[WHO, SIZE, ("uiautomator", DUMP, "", 0)]).await;
    let attempts = [
        ("get_clipboard", json!({})),
        ("set_clipboard", json!({"text": "x"})),
        ("pinch", json!({"center_x": 540, "center_y": 1200, "scale": 2})),
        ("input_text", json!({"text": "naïve 🦀"})),
    ];
    for (tool, arguments) in attempts {
        let (code, message) = failure(&phone, tool, arguments).await;
        assert_eq!(code, -32001, "{tool}");
        assert!(message.contains("agent"), "{tool}: {message}");
    }
    assert!(adb.commands.lock().unwrap().iter().all(|command| !command.starts_with("input")));
}

#[tokio::test]
async fn a_keyboard_that_corrects_is_found_out() {
    let (adb, phone) = phone(&[WHO, SIZE, ("uiautomator", DUMP, "", 0)]).await;
    let (code, message) = failure(&phone, "input_text", json!({"text": "hello"})).await;
    assert_eq!(code, -32003);
    assert!(message.contains("reads 'old'"), "{message}");
    let commands = adb.commands.lock().unwrap();
    assert!(commands.iter().any(|command| *command == if_awake("input text 'hello'")), "{commands:?}");
}

#[tokio::test]
async fn nothing_a_caller_says_becomes_syntax() {
    let found = ("resolve-activity", "priority=0\na.b/.Main\n", "", 0);
    let leak = |replies: Vec<Reply>| -> &'static [Reply] { replies.leak() };
    let (adb, phone) = phone(leak(vec![WHO, SIZE, found, ("am start", "Starting: Intent { }\n", "", 0)])).await;
    text(&phone, "open_url", json!({"url": "https://x/';reboot;'$(id)`id`&a=b|c"})).await;
    assert_eq!(
        adb.commands.lock().unwrap().last().unwrap(),
        "am start -a android.intent.action.VIEW -d 'https://x/'\\'';reboot;'\\''$(id)`id`&a=b|c'"
    );
    text(&phone, "open_app", json!({"app": "a.b"})).await;
    assert!(adb.commands.lock().unwrap().last().unwrap().ends_with(" -n 'a.b/.Main'"));
    assert_eq!(failure(&phone, "open_app", json!({"app": "c.d"})).await.0, -32602);
}

#[tokio::test]
async fn a_phone_that_leaves_in_the_middle_is_lost() {
    let (adb, phone) = phone(&[WHO, SIZE, ("input", "HANG UP", "", 0)]).await;
    let error = call(&phone, "tap", json!({"x": 1, "y": 1})).await.unwrap_err();
    assert_eq!(error.kind, sinew_tool::ErrorKind::DeviceLost, "{error}");
    let gone = adb.server.transport("P2", true);
    let command = sinew_phones::adb::command::ShellCommand::new("true");
    let error = gone.run(&command, sinew_phones::adb::shell::CommandLimits::seconds(5)).await.unwrap_err();
    assert!(matches!(PhoneError::from(error), PhoneError::Gone(_)));
}

#[tokio::test]
async fn logs_come_by_package_and_time_of_the_phone() {
    const LOG: &str = "  PID NAME\n  900 a.b\n  901 a.b:remote\n  902 other\n+0200\n--------- beginning of main\n\
        2024-02-11 16:30:00.123   900   900 D MCP:ServerService: one\n\
        2024-02-11 16:30:01.123   902   902 D Noise   : two\n\
        2024-02-11 16:30:02.456   901   905 W MCP:ServerService: three\n";
    let (adb, phone) = phone(&[WHO, ("logcat", LOG, "", 0), ("date", "+0200\n", "", 0)]).await;
    let answer = json_of(&phone, "get_device_logs", json!({"package_name": "a.b"})).await;
    assert_eq!(answer["line_count"], 2);
    let since = json!({"since": "2024-02-11T14:30:02Z", "level": "W"});
    let answer = json_of(&phone, "get_device_logs", since).await;
    assert_eq!(answer["logs"], "02-11 16:30:02.456 W/MCP:ServerService: three");
    let last = adb.commands.lock().unwrap().last().cloned().unwrap();
    assert!(last.contains("'-T' '2024-02-11 16:30:02.000' '*:W'"), "{last}");
}

/// What is announced, a line each.
fn told() -> (sinew_tool::Announce, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (send, events) = tokio::sync::mpsc::unbounded_channel();
    let announce = Arc::new(move |event: DeviceEvent| {
        let _ = send.send(match event {
            DeviceEvent::Joined(device) => {
                let info = device.info();
                let state = match &info.status {
                    Status::Ready => "ready".to_owned(),
                    Status::Limited { state, .. } => state.clone(),
                };
                format!("{} joined: {state}", info.key)
            }
            DeviceEvent::Left(device, reason) => format!("{} left: {reason}", device.info().key),
            _ => "something else".to_owned(),
        });
    });
    (announce, events)
}

#[tokio::test]
async fn a_phone_that_the_server_keeps_silent_about_is_asked_for() {
    let adb = adb(&[WHO, SIZE]).await;
    let (announce, mut events) = told();
    let shutdown = CancellationToken::new();
    let running =
        tokio::spawn(adb::run(adb.server.clone(), adb::PhoneOptions::shell(Profile::Full), announce, shutdown.clone()));
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: ready");
    *adb.asked.lock().unwrap() = Some("P1 offline transport_id:1\n");
    assert_eq!(events.recv().await.unwrap(), "phone:P1 left: connection broken: the phone is offline now");
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: offline");
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_phone_that_is_being_connected_is_announced_when_it_has_settled() {
    let adb = adb(&[WHO, SIZE]).await;
    adb.list.send("P1 device model:Pixel_8 transport_id:1\nP2 offline transport_id:2\n").unwrap();
    let (announce, mut events) = told();
    let shutdown = CancellationToken::new();
    let running =
        tokio::spawn(adb::run(adb.server.clone(), adb::PhoneOptions::shell(Profile::Full), announce, shutdown.clone()));
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: ready");
    let both = "P1 device model:Pixel_8 transport_id:1\nP2 device model:Pixel_9 transport_id:2\n";
    adb.list.send(both).unwrap();
    assert_eq!(events.recv().await.unwrap(), "phone:P2 joined: silent", "it was never said to be offline");
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_phone_that_somebody_disconnects_while_it_is_offline_is_not_connected_again() {
    let adb = adb(&[WHO, SIZE]).await;
    adb.list.send("10.0.0.2:5555 offline model:Pixel_8 transport_id:1\n").unwrap();
    let (announce, mut events) = told();
    let shutdown = CancellationToken::new();
    let running =
        tokio::spawn(adb::run(adb.server.clone(), adb::PhoneOptions::shell(Profile::Full), announce, shutdown.clone()));
    assert_eq!(events.recv().await.unwrap(), "phone:10.0.0.2:5555 joined: offline");
    *adb.asked.lock().unwrap() = Some("");
    adb.list.send("").unwrap();
    assert!(events.recv().await.unwrap().starts_with("phone:10.0.0.2:5555 left"));
    // The look before it would be connected, and then a round of the tracker.
    let after_look = || {
        let commands = adb.commands.lock().unwrap().clone();
        let look = commands.iter().position(|command| command == "host-serial:10.0.0.2:5555:get-state")?;
        Some(commands[look + 1..].to_vec())
    };
    while !after_look().is_some_and(|later| later.iter().any(|command| command == "host:devices-l")) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let commands = adb.commands.lock().unwrap().clone();
    assert!(!commands.iter().any(|command| command.contains("connect")), "{commands:?}");
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_phone_that_is_disconnected_while_it_is_connected_again_does_not_stay() {
    let state = tempfile::tempdir().unwrap();
    let remembered = adb::NetworkPhones::in_state(state.path());
    remembered.add(SLOW).unwrap();
    let adb = adb(&[WHO, SIZE]).await;
    *adb.asked.lock().unwrap() = Some("P1 device model:Pixel_8 transport_id:1\n");
    let offer = adb::PhoneOptions { remembered: Some(remembered.clone()), ..adb::PhoneOptions::shell(Profile::Full) };
    let (announce, _events) = told();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(adb::run(adb.server.clone(), offer, announce, shutdown.clone()));
    let asked = async |request: &str| {
        while !adb.commands.lock().unwrap().iter().any(|command| command == request) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    asked("host:connect:10.0.0.9:5555").await;
    remembered.remove(SLOW).unwrap();
    adb.list.send("P1 device model:Pixel_8 transport_id:1\n").unwrap();
    asked("host:disconnect:10.0.0.9:5555").await;
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn phones_that_come_and_go_are_announced() {
    let adb = adb(&[WHO, SIZE]).await;
    let (announce, mut events) = told();
    let shutdown = CancellationToken::new();
    let running =
        tokio::spawn(adb::run(adb.server.clone(), adb::PhoneOptions::shell(Profile::Full), announce, shutdown.clone()));
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: ready");
    adb.list.send("P1 offline transport_id:1\nP2 unauthorized usb:1-4 transport_id:2\n").unwrap();
    assert_eq!(events.recv().await.unwrap(), "phone:P1 left: connection broken: the phone is offline now");
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: offline");
    assert_eq!(events.recv().await.unwrap(), "phone:P2 joined: unauthorized");
    adb.list.send("P1 device model:Pixel_8 transport_id:3\n").unwrap();
    let mut left = vec![events.recv().await.unwrap(), events.recv().await.unwrap()];
    left.sort();
    assert!(left[0].starts_with("phone:P1 left: replaced") && left[1].starts_with("phone:P2 left: "), "{left:?}");
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: ready");
    shutdown.cancel();
    running.await.unwrap();
    assert!(events.recv().await.unwrap().starts_with("phone:P1 left"));
}

#[tokio::test]
async fn a_remembered_phone_that_the_server_does_not_list_is_connected_again() {
    let state = tempfile::tempdir().unwrap();
    let remembered = adb::NetworkPhones::in_state(state.path());
    remembered.add("P1").unwrap();
    remembered.add("10.0.0.2:5555").unwrap();
    let adb = adb(&[WHO, SIZE]).await;
    *adb.asked.lock().unwrap() = Some("P1 device model:Pixel_8 transport_id:1\n");
    let offer = adb::PhoneOptions { remembered: Some(remembered), ..adb::PhoneOptions::shell(Profile::Full) };
    let (announce, mut events) = told();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(adb::run(adb.server.clone(), offer, announce, shutdown.clone()));
    assert_eq!(events.recv().await.unwrap(), "phone:P1 joined: ready");
    let asked = |adb: &Adb| {
        adb.commands.lock().unwrap().iter().filter(|command| command.contains("connect")).cloned().collect()
    };
    let mut connects: Vec<String> = Vec::new();
    while connects.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        connects = asked(&adb);
    }
    assert_eq!(connects, ["host:connect:10.0.0.2:5555"], "P1 is there already");
    shutdown.cancel();
    running.await.unwrap();
}
