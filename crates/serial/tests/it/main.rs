//! Boards on real pseudo terminals.

#![cfg(unix)]
#![allow(clippy::panic)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use sinew_boards::{Boards, HubConfig};
use sinew_serial::{PortTree, SerialConfig, SerialPlan};
use sinew_tool::{Announce, Args, Call, Device, DeviceEvent, DeviceKey, ErrorKind, Status};
use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it happens")
}

/// How a board answers a line.
type Firmware = Box<dyn FnMut(&str) -> Option<String> + Send>;

/// One end of a pseudo terminal with a board behind it; the port is gone with the value.
struct Plugged {
    path: PathBuf,
    board_side: File,
    end: Arc<std::sync::atomic::AtomicBool>,
}

impl Plugged {
    fn new(boot: &str, mut firmware: Firmware) -> Plugged {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let path = PathBuf::from(ptsname(&master, Vec::new()).expect("a name").into_string().expect("text"));
        rustix::fs::fcntl_setfl(&master, rustix::fs::OFlags::NONBLOCK).expect("it does not block");
        let board_side = File::from(master);
        let end = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (mut read, mut write) = (board_side.try_clone().expect("a copy"), board_side.try_clone().expect("a copy"));
        let (boot, over) = (boot.to_owned(), end.clone());
        std::thread::spawn(move || {
            let mut line = Vec::new();
            let mut byte = [0];
            let mut has_booted = false;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                // Nobody has the other end open yet.
                if read.read(&mut byte).unwrap_or(0) == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                if !std::mem::replace(&mut has_booted, true) {
                    write_slowly(&mut write, boot.as_bytes());
                }
                if byte[0] != b'\n' {
                    line.push(byte[0]);
                    continue;
                }
                let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                if let Some(answer) = firmware(&text) {
                    // In pieces, as a slow line delivers it.
                    for piece in format!("{answer}\r\n").as_bytes().chunks(7) {
                        write_slowly(&mut write, piece);
                    }
                }
            }
        });
        Plugged { path, board_side, end }
    }

    fn say(&mut self, text: &str) {
        write_slowly(&mut self.board_side, text.as_bytes());
    }
}

impl Drop for Plugged {
    fn drop(&mut self) {
        self.end.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Writes as fast as the other end reads.
fn write_slowly(file: &mut File, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(_) => return,
        }
    }
}

fn doubler() -> Board {
    let double = ToolSpec::new("double", "Twice a number").with(Property::integer("n", 0..=100));
    Board::new("doubler", "1.0").tool(double, |args| Ok(Reply::from(args.integer("n")? * 2)))
}

/// The SDK's board, as `examples/esp32-hello` runs it.
fn sdk() -> Firmware {
    let mut board = doubler();
    Box::new(move |text| board.handle_text(text))
}

/// Understands nothing but bare JSON-RPC.
fn bare_only() -> Firmware {
    let mut board = doubler();
    Box::new(move |text| if text.contains("\"type\":\"mcp\"") { None } else { board.handle_text(text) })
}

/// Understands nothing but the envelope.
fn envelope_only() -> Firmware {
    let mut board = doubler();
    Box::new(move |text| if text.contains("\"type\":\"mcp\"") { board.handle_text(text) } else { None })
}

struct Family {
    events: mpsc::UnboundedReceiver<DeviceEvent>,
    shutdown: CancellationToken,
    running: JoinHandle<std::io::Result<()>>,
}

impl Family {
    fn start(plan: SerialPlan, ports: PortTree) -> Family {
        let (sender, events) = mpsc::unbounded_channel();
        let refuse = Arc::new(|_: Option<&str>, _: &DeviceKey| None);
        let announce: Announce = Arc::new(move |event| drop(sender.send(event)));
        let config = HubConfig::new(refuse.clone(), announce.clone());
        let boards = Boards::new(config).expect("random numbers");
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(sinew_serial::run(plan, ports, boards, refuse, announce, shutdown.clone()));
        Family { events, shutdown, running }
    }

    fn on(path: &Path) -> Family {
        Family::start(
            plan(SerialConfig { path: Some(path.to_owned()), ..SerialConfig::default() }),
            PortTree::default(),
        )
    }

    async fn joined(&mut self) -> Arc<dyn Device> {
        loop {
            match soon(self.events.recv()).await {
                Some(DeviceEvent::Joined(device)) => return device,
                Some(DeviceEvent::Said(..)) => {}
                _ => panic!("it did not join"),
            }
        }
    }

    async fn left(&mut self) -> String {
        loop {
            match soon(self.events.recv()).await {
                Some(DeviceEvent::Left(_, reason)) => return reason.to_string(),
                Some(DeviceEvent::Said(..) | DeviceEvent::Changed(_)) => {}
                _ => panic!("it did not leave"),
            }
        }
    }
}

fn plan(config: SerialConfig) -> SerialPlan {
    sinew_serial::plan(&[config]).expect("valid").remove(0)
}

async fn doubles(device: &Arc<dyn Device>) {
    let args: Args = json!({"n": 21}).as_object().cloned().expect("an object");
    let answer = soon(device.call(Call::new("double", args))).await.expect("an answer");
    assert_eq!(answer.joined_text(), "42");
}

const BOOT: &str =
    "ESP-ROM:esp32c3-api1-20210207\r\nrst:0x1 (POWERON),boot:0xc\r\nI (24) boot: {not a message}\r\n\u{1b}[0;32m";

#[tokio::test]
async fn boards_of_both_dialects_are_found_behind_their_boot_noise() {
    for (name, firmware) in [("sdk", sdk()), ("bare", bare_only()), ("envelope", envelope_only())] {
        let board = Plugged::new(BOOT, firmware);
        let mut family = Family::on(&board.path);
        let device = family.joined().await;
        assert_eq!((device.info().name.as_str(), device.info().family.name.as_str()), ("doubler", "serial"), "{name}");
        doubles(&device).await;
        family.shutdown.cancel();
        assert_eq!(family.left().await, "closed");
        soon(family.running).await.expect("no panic").expect("no error");
    }
}

#[tokio::test]
async fn json_that_a_board_prints_changes_neither_its_dialect_nor_the_greeting() {
    let logs =
        "{\"type\":\"log\",\"msg\":\"hi\"}\r\n{\"temp\":21}\r\n{\"type\":\"mcp\",\"payload\":{\"level\":\"info\"}}\r\n";
    for (name, firmware) in [("bare", bare_only()), ("envelope", envelope_only())] {
        // Also at boot, while the board does not listen yet.
        let mut deaf = 2;
        let mut firmware = firmware;
        let firmware = Box::new(move |text: &str| {
            deaf -= i32::from(deaf > 0);
            if deaf > 0 { None } else { firmware(text) }
        });
        let mut board = Plugged::new(&format!("{BOOT}\r\n{logs}"), firmware);
        let mut family = Family::on(&board.path);
        let device = family.joined().await;
        assert_eq!(device.info().name, "doubler", "{name}");
        for _ in 0..3 {
            board.say(logs);
            doubles(&device).await;
        }
        family.shutdown.cancel();
        assert_eq!(family.left().await, "closed", "{name}");
    }
}

#[tokio::test]
async fn a_log_line_that_quotes_an_answer_is_not_the_answer() {
    let mut board = doubler();
    let firmware = move |text: &str| {
        let message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let forged =
            json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "FORGED"}]}});
        let answer = board.handle_text(text)?;
        Some(if message["method"] == "tools/call" { format!("I (1) net: got {forged}\r\n{answer}") } else { answer })
    };
    let board = Plugged::new("", Box::new(firmware));
    let mut family = Family::on(&board.path);
    doubles(&family.joined().await).await;
}

#[tokio::test]
async fn a_board_that_restarts_is_greeted_again_on_the_same_port() {
    let mut board = Plugged::new("", bare_only());
    let mut family = Family::on(&board.path);
    doubles(&family.joined().await).await;
    board.say("\r\nGuru Meditation Error: Core 0 panic'ed\r\nrst:0xc (SW_CPU_RESET),boot:0x13\r\n");
    assert!(family.left().await.contains("restarted"));
    doubles(&family.joined().await).await;
}

/// The board writes more than the line holds, so somebody must read meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn log_lines_and_lines_without_end_disturb_nobody() {
    let mut board = Plugged::new("", sdk());
    let mut family = Family::on(&board.path);
    let device = family.joined().await;
    for _ in 0..20 {
        board.say(&"x".repeat(4000));
    }
    board.say("\nI (500) app: temperature {21}\n");
    doubles(&device).await;
}

#[tokio::test]
async fn a_board_without_mcp_is_shown_as_such() {
    let board = Plugged::new("hello world\r\n", Box::new(|_| Some("unknown command".to_owned())));
    let mut family = Family::on(&board.path);
    let device = family.joined().await;
    assert!(matches!(&device.info().status, Status::Limited { state, .. } if state == "no MCP"));
}

#[tokio::test]
async fn a_port_that_another_program_uses_is_left_alone_until_it_is_free() {
    let board = Plugged::new("", sdk());
    let other = File::options().read(true).write(true).open(&board.path).expect("open");
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let mut family = Family::on(&board.path);
    let shown = family.joined().await.info();
    assert!(remedy(&shown.status).contains("another program uses this port"), "{:?}", shown.status);
    drop(other);
    assert_eq!(family.left().await, "never connected");
    doubles(&family.joined().await).await;
}

fn remedy(status: &Status) -> &str {
    match status {
        Status::Limited { state, remedy } if state == "not reached" => remedy,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_port_that_is_not_there_is_shown_with_what_to_do_until_it_is() {
    let board = Plugged::new("", sdk());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ttyUSB0");
    let mut family = Family::on(&path);
    let shown = family.joined().await;
    assert!(remedy(&shown.info().status).contains("ttyUSB0 is not there; plug the board in"), "{:?}", shown.info());
    let call = shown.call(Call::new("double", Args::new())).await.expect_err("nobody is there");
    assert_eq!(call.kind, ErrorKind::DeviceAway);
    std::os::unix::fs::symlink(&board.path, &path).expect("plugged in");
    assert_eq!(family.left().await, "never connected");
    doubles(&family.joined().await).await;
}

#[tokio::test]
async fn a_board_that_is_unplugged_while_it_is_written_to_is_away() {
    // It reads no more once its tools are listed.
    let mut board = doubler();
    let (sender, mut listed) = mpsc::unbounded_channel();
    let (unplug, is_unplugged) = std::sync::mpsc::channel::<()>();
    let mut board = Plugged::new(
        "",
        Box::new(move |text| {
            let answer = board.handle_text(text);
            if !text.contains("tools/list") {
                return answer;
            }
            // The answer is written by whoever holds the other end.
            drop(sender.send(answer?));
            let _ = is_unplugged.recv();
            None
        }),
    );
    let mut family = Family::on(&board.path);
    let answer = soon(listed.recv()).await.expect("asked for its tools");
    board.say(&format!("{answer}\r\n"));
    let device = family.joined().await;
    let args: Args = json!({"n": 1, "much": "x".repeat(50_000)}).as_object().cloned().expect("an object");
    let calling = tokio::spawn(async move { device.call(Call::new("double", args)).await });
    // Nothing more can be written when the line is full.
    let full = async {
        while rustix::io::ioctl_fionread(&board.board_side).expect("a number") < 4000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(full).await;
    drop((board, unplug));
    soon(calling).await.expect("no panic").expect_err("unplugged");
    assert!(family.left().await.contains("unplugged"));
}

/// A sysfs tree with one USB port, and a folder for its device file.
fn machine(folder: &Path, name: &str, serial_number: &str, port: &Path) {
    let usb = folder.join("sysfs/devices/usb1").join(serial_number);
    let tty = usb.join("interface").join(name);
    std::fs::create_dir_all(tty.join("driver")).expect("a folder");
    for (file, text) in [("idVendor", "303a"), ("idProduct", "1001"), ("serial", serial_number), ("product", "JTAG")] {
        std::fs::write(usb.join(file), format!("{text}\n")).expect("written");
    }
    let class = folder.join("sysfs/class/tty").join(name);
    std::fs::create_dir_all(&class).expect("a folder");
    std::os::unix::fs::symlink(&tty, class.join("device")).expect("a link");
    std::fs::create_dir_all(folder.join("dev")).expect("a folder");
    std::os::unix::fs::symlink(port, folder.join("dev").join(name)).expect("a link");
}

#[tokio::test]
async fn a_board_that_is_plugged_in_elsewhere_is_known_by_its_usb_serial_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = PortTree { sysfs: folder.path().join("sysfs"), dev: folder.path().join("dev") };
    let (first, other) = (Plugged::new("", sdk()), Plugged::new("", sdk()));
    machine(folder.path(), "ttyACM0", "A0:B1", &first.path);
    machine(folder.path(), "ttyACM1", "FF:FF", &other.path);
    assert_eq!(ports.list().len(), 2);
    let config = SerialConfig { usb: Some("a0:b1".to_owned()), ..SerialConfig::default() };
    let mut family = Family::start(plan(config), ports);
    let device = family.joined().await;
    let key = device.info().key.clone();
    assert_eq!(key.0, "serial:usb:A0:B1");

    // Unplugged, and plugged in again under another name.
    std::fs::remove_dir_all(folder.path().join("sysfs/class/tty/ttyACM0")).expect("removed");
    let again = Plugged::new("", sdk());
    machine(folder.path(), "ttyACM7", "A0:B1", &again.path);
    drop(first);
    assert!(family.left().await.contains("unplugged"));
    let device = family.joined().await;
    assert_eq!(device.info().key, key);
    doubles(&device).await;
}
