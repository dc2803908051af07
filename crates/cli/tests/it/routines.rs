//! Routines through the real program: the demo's, one's own, and what goes wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gateway::{Process, TestGateway, run, sinew};

/// Switches the second relay as the first was.
const FOLLOW: &str = include_str!("follow.md");

#[test]
fn the_routines_of_the_demo_act_on_boards_and_the_phone() {
    let gateway = TestGateway::demo();
    let page = gateway.json(&["routine", "run", "good_night", "volume=7"]);
    assert_eq!(page["structuredContent"], json!({"status": "success", "volume": 7}), "{page}");
    let status = gateway.run(&["call", "board-ddee01", "self.get_device_status"]).ok().out;
    assert!(status.contains("\"volume\":7"), "{status}");
    let note = gateway.run(&["call", "virtual-phone", "get_screen"]).ok().out;
    assert!(note.contains("the volume is 7"), "{note}");
    // One record for each step and each routine.
    let audit = gateway.json(&["audit", "--limit", "40"]);
    let names: Vec<&str> =
        audit["records"].as_array().into_iter().flatten().filter_map(|record| record["name"].as_str()).collect();
    for name in ["good_night", "self.set_relay", "write_note", "set_text"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let found = gateway.json(&["routine", "run", "find_contact", "name=Mary Hopper"]);
    assert!(found["structuredContent"]["page"].as_str().is_some_and(|page| page.contains("Mary Hopper")), "{found}");
}

#[test]
fn a_routine_of_ones_own_is_written_checked_and_tried() {
    let gateway = TestGateway::demo();
    let folder = gateway.state.path().join("demo/routines");
    let folder = folder.display().to_string();
    gateway.run(&["routine", "new", "status", "--folder", &folder]).ok();
    let file = format!("{folder}/status.md");
    let again = gateway.run(&["routine", "new", "status", "--folder", &folder]);
    assert!(again.code != 0 && again.err.contains("is there already"), "{again:?}");
    let blank = gateway.run(&["routine", "lint", &file]);
    assert!(blank.code == 1 && blank.out.contains("to be filled in"), "{blank:?}");
    let text = std::fs::read_to_string(&file).expect("a file").replace("{{", "").replace("}}", "");
    std::fs::write(&file, text.replace("device: kitchen", "devise: kitchen")).expect("written");
    let wrong = gateway.run(&["routine", "lint", &file]);
    assert!(wrong.code == 1 && wrong.out.contains("has no `devise`") && wrong.out.contains("line "), "{wrong:?}");
    std::fs::write(&file, text.replace("device: kitchen", "device: board-ddee01")).expect("written");
    gateway.run(&["routine", "lint", &file]).ok();
    let explained = gateway.json(&["routine", "explain", &file]);
    assert_eq!(explained["calls"][0]["verdict"], "allow", "{explained}");
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let answer = loop {
        let answer = gateway.run(&["routine", "run", "status", "--output", "json"]);
        if answer.code == 0 || std::time::Instant::now() > ends {
            break answer.ok();
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    assert_eq!(answer.json()["structuredContent"], json!({"status": "success"}), "{answer:?}");
}

/// The ref of the line that has these words on the phone's screen.
fn find_ref(gateway: &TestGateway, words: &str) -> String {
    let screen = gateway.run(&["call", "virtual-phone", "get_screen"]).ok().out;
    let line = screen.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("{words} is not on {screen}"));
    format!("element_id={}", line.split(' ').next().unwrap_or_default())
}

#[test]
fn calls_become_a_routine_that_is_replayed_tested_and_says_what_is_wrong() {
    let gateway = TestGateway::demo();
    let folder = tempfile::tempdir().expect("a folder");
    let (suite, file) = (folder.path().display().to_string(), folder.path().join("jot_down.md"));
    let mut recording = sinew(gateway.state.path())
        .args(["routine", "record", "jot_down", "--folder", &suite])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let told = BufReader::new(recording.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(told.take(4).any(|line| line.contains("Press Enter")));
    let act = |tool: &str, arguments: &[&str]| {
        gateway.run(&[&["call", "virtual-phone", tool][..], arguments].concat()).ok();
    };
    act("open_app", &["app=Notes", "return=diff"]);
    act("click_element", &[&find_ref(&gateway, "New note"), "return=diff"]);
    act("set_text", &[&find_ref(&gateway, "Title"), "text=Groceries"]);
    act("set_text", &[&find_ref(&gateway, "Write something"), "text=Lemons"]);
    gateway.run(&["call", "board-ddee01", "self.audio_speaker.set_volume", "volume=33"]).ok();
    // The first closes the keyboard.
    act("press_back", &["return=diff"]);
    act("press_back", &["return=diff"]);
    recording.stdin.take().expect("piped").write_all(b"\n").expect("written");
    let told = recording.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&told.stdout).contains("from 10 calls"), "{told:?}");

    let text = std::fs::read_to_string(&file).expect("a file");
    for wanted in ["selector: {id: \"new_note\"}", "text: \"${note_title}\"", "volume: \"${volume}\"", "- expect: "] {
        assert!(text.contains(wanted), "{wanted} is missing in {text}");
    }
    assert!(!text.contains("element_id") && !text.contains("get_screen"), "{text}");
    // Nobody records for nothing: the name is taken now.
    let taken = gateway.run(&["routine", "record", "jot_down", "--folder", &suite]);
    assert!(taken.code == 2 && taken.err.contains("is there already") && !taken.err.contains("Recording"), "{taken:?}");
    gateway.run(&["spec", "lint", &file.display().to_string(), "--min-severity", "error"]).ok();
    let path = file.display().to_string();
    let played = gateway.run(&["routine", "run", &path, "note_title=Tools", "note_body=A hammer"]).ok().out;
    assert!(played.contains("ok     1. open_app"), "{played}");
    let screen = gateway.run(&["call", "virtual-phone", "get_screen"]).ok().out;
    assert!(screen.contains("Tools") && screen.contains("A hammer"), "{screen}");

    let moved = "selector: {description: \"New notes\", exact: true}";
    let moved = text.replace("jot_down", "moved").replace("selector: {id: \"new_note\"}", moved);
    std::fs::write(folder.path().join("moved.md"), moved).expect("written");
    let junit = folder.path().join("out.xml").display().to_string();
    let tested = gateway.run(&["routine", "test", &suite, "--junit", &junit]);
    assert!(tested.code == 1 && tested.out.contains("ok     jot_down"), "{tested:?}");
    assert!(tested.out.contains("failed moved") && tested.out.contains("\"New note\""), "{tested:?}");
    let junit = std::fs::read_to_string(junit).expect("a report");
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
}

#[test]
fn an_event_of_a_board_starts_a_routine_as_a_caller_of_its_own() {
    let state = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(state.path().join("routines")).expect("a folder");
    std::fs::write(state.path().join("routines/follow.md"), FOLLOW).expect("written");
    let config = state.path().join("sinew.toml");
    let hooks = r#"
        [[hooks]]
        name = "second-relay"
        event = "notifications/relay_changed"
        device = "board-000001"
        when = {value = "${event.body.channel}", is = 1}
        run = "follow"
        arguments = {on = "${event.body.on}"}
    "#;
    std::fs::write(&config, hooks).expect("written");
    let config = config.display().to_string();
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    let url = gateway.devices_url().to_owned();
    let token = gateway.own_token();
    let board = ["sim", "board", "--kind", "relay", "--connect", &url, "--token", &token, "--first", "1"];
    let _board = Process::start(sinew(gateway.state.path()).args(board));
    gateway.wait_for("02:51:00:00:00:01", "ready");
    gateway.run(&["call", "board-000001", "self.set_relay", "channel=1", "on=true", "--yes"]).ok();
    let ends = Instant::now() + Duration::from_secs(60);
    loop {
        let audit = gateway.json(&["audit", "--limit", "40"]);
        let records = audit["records"].as_array().cloned().unwrap_or_default();
        let is_step = |record: &serde_json::Value| {
            record["principal"] == "hook:second-relay" && record["name"] == "self.set_relay"
        };
        if let Some(step) = records.iter().find(|record| is_step(record)) {
            assert_eq!((&step["outcome"], &step["door"]), (&json!("ok"), &json!("hook")), "{step}");
            break;
        }
        assert!(Instant::now() < ends, "{audit}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Takes requests and keeps each as it came, until the receiving end is dropped.
fn receiver() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/events", listener.local_addr().expect("an address"));
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|read| read > 0) {}
            let length = request.to_lowercase().split("content-length: ").nth(1).map(|rest| rest.to_owned());
            let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            request.push_str(&String::from_utf8_lossy(&body));
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[test]
fn a_web_hook_posts_what_its_condition_and_its_rights_let_through() {
    let (url, received) = receiver();
    let state = tempfile::tempdir().expect("a folder");
    let config = state.path().join("sinew.toml");
    // The first two events do not fit, so they do not count; `blind` may not see the board.
    let text = format!(
        r#"
        [[hooks]]
        name = "third"
        event = "notifications/relay_*"
        when = {{value = "${{event.body.channel}}", is = 3}}
        url = "{url}"
        secret = "s3cret"
        per-minute = 1
        [[hooks]]
        name = "blind"
        event = "*"
        url = "{url}?blind"
        [[policy.rules]]
        id = "no-hearing"
        who = ["hook:blind"]
        on = ["device:board-000001"]
        do = "deny"
        "#
    );
    std::fs::write(&config, text).expect("written");
    let config = config.display().to_string();
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    let (devices, token) = (gateway.devices_url().to_owned(), gateway.own_token());
    let board = ["sim", "board", "--kind", "relay", "--connect", &devices, "--token", &token, "--first", "1"];
    let _board = Process::start(sinew(gateway.state.path()).args(board));
    gateway.wait_for("02:51:00:00:00:01", "ready");
    for channel in ["channel=1", "channel=2", "channel=3"] {
        gateway.run(&["call", "board-000001", "self.set_relay", channel, "on=true", "--yes"]).ok();
    }
    let posted = received.recv_timeout(Duration::from_secs(60)).expect("a post");
    assert!(posted.starts_with("POST /events HTTP/1.1") && posted.contains("\"channel\":3"), "{posted}");
    assert!(posted.to_lowercase().contains("sinew-signature: t="), "{posted}");
    let audit = gateway.json(&["audit", "--limit", "40"]);
    let is_post = |record: &&serde_json::Value| record["principal"] == "hook:third";
    let post = audit["records"].as_array().into_iter().flatten().find(is_post).cloned().unwrap_or_default();
    assert_eq!(
        (&post["name"], &post["device"]),
        (&json!("webhook notifications/relay_changed"), &json!("board-000001"))
    );
    // The next one fits and comes too soon; nothing else was posted, by neither hook.
    gateway.run(&["call", "board-000001", "self.set_relay", "channel=3", "on=false", "--yes"]).ok();
    gateway.run(&["call", "board-000001", "self.get_relays"]).ok();
    assert_eq!(received.recv_timeout(Duration::from_secs(2)), Err(mpsc::RecvTimeoutError::Timeout));
}

#[test]
fn explain_decides_with_the_arguments_and_goes_into_routines_that_are_called() {
    let gateway = TestGateway::demo();
    let page = gateway.json(&["routine", "explain", "good_night", "volume=7"]);
    let calls = page["calls"].as_array().cloned().unwrap_or_default();
    let of = |tool: &str| calls.iter().filter(|call| call["tool"] == tool).cloned().collect::<Vec<_>>();
    let volume = of("self.audio_speaker.set_volume");
    assert_eq!(volume[0]["arguments"]["volume"], 7, "{page}");
    // What it calls through another routine, with the arguments that it gives it.
    assert!(of("set_text").iter().any(|call| call["arguments"]["text"].is_string()), "{page}");
    assert_eq!(page["whole"]["device"], "routines", "{page}");
    let unknown = gateway.run(&["routine", "explain", "good_night", "volum=7"]);
    assert!(unknown.code == 2 && unknown.err.contains("volume"), "{unknown:?}");
}

#[test]
fn a_routine_named_like_a_tool_of_a_device_is_found_by_lint() {
    let gateway = TestGateway::demo();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    gateway.run(&["routine", "new", "tap", "--folder", &path]).ok();
    let file = format!("{path}/tap.md");
    let text = std::fs::read_to_string(&file).expect("a file").replace("{{", "").replace("}}", "");
    std::fs::write(&file, text.replace("device: kitchen", "device: board-ddee01")).expect("written");
    let told = gateway.run(&["routine", "lint", &file]);
    assert!(told.code == 1 && told.out.contains("has a tool `tap` too"), "{told:?}");
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    let state = tempfile::tempdir().expect("a folder");
    let refused = run(sinew(state.path()).args(["routine", "new", "../evil"]));
    assert!(refused.code == 2 && refused.err.contains("small letters"), "{refused:?}");
    let refused = run(sinew(state.path()).args(["routine", "new", "get_run"]));
    assert!(refused.code == 2 && refused.err.contains("a tool of its own"), "{refused:?}");
}
