//! The client commands against a running demo.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::gateway::{Process, TestGateway, run, sinew};

const BOARD: &str = "board-ddee01";

#[test]
fn devices_are_listed_for_people_and_for_scripts() {
    let gateway = TestGateway::demo();
    let table = gateway.run(&["devices"]).ok().out;
    assert!(table.starts_with("DEVICE"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("ready")).count(), 10, "{table}");
    assert!(table.contains("device token") && !table.contains("gateway token"), "{table}");
    let devices = gateway.json(&["devices"]);
    let first = &devices["devices"][0];
    assert_eq!((&first["id"], &first["state"], &first["family"]), (&json!(BOARD), &json!("ready"), &json!("board")));
}

#[test]
fn tools_are_listed_folded_unfolded_and_for_one_device() {
    let gateway = TestGateway::demo();
    let names = |arguments: &[&str]| -> Vec<String> {
        let tools = gateway.json(arguments)["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let folded = names(&["tools"]);
    assert!(folded.contains(&"list_devices".to_owned()), "{folded:?}");
    assert_eq!(folded.iter().filter(|name| name.ends_with("set_volume")).count(), 1, "{folded:?}");
    let unfolded = names(&["tools", "--unfolded"]);
    assert_eq!(unfolded.iter().filter(|name| name.ends_with("set_volume")).count(), 2, "{unfolded:?}");
    let one = names(&["tools", "board-ddee03"]);
    assert!(one.iter().any(|name| name.ends_with("set_relay")) && !one.iter().any(|name| name.ends_with("set_volume")));
    assert!(gateway.run(&["tools", BOARD]).ok().out.contains("volume"));
}

#[test]
fn a_call_with_key_and_value_changes_the_board() {
    let gateway = TestGateway::demo();
    gateway.run(&["call", BOARD, "self.audio_speaker.set_volume", "volume=42"]).ok();
    let status = gateway.run(&["call", BOARD, "self.get_device_status"]).ok().out;
    assert!(status.contains("\"volume\":42"), "{status}");
    gateway.run(&["call", BOARD, "self.audio_speaker.set_volume", "--args", "{\"volume\": 43}"]).ok();
    let answer = gateway.json(&["call", BOARD, "self.get_device_status"]);
    let text = answer["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON")["audio_speaker"]["volume"], 43);
}

#[test]
fn devices_are_labelled_and_called_by_label() {
    let gateway = TestGateway::demo();
    let labelled = gateway.run(&["devices", "label", BOARD, "Kitchen", "ci"]).ok().out;
    assert!(labelled.contains("ci, kitchen"), "{labelled}");
    gateway.run(&["devices", "label", "board-ddee02", "kitchen"]).ok();
    assert!(gateway.run(&["devices"]).ok().out.contains("ci, kitchen"));
    assert_eq!(gateway.json(&["devices"])["devices"][0]["labels"], json!(["ci", "kitchen"]));

    let answer = gateway.json(&["call", "label:kitchen", "self.audio_speaker.set_volume", "volume=41"]);
    assert_eq!(answer["structuredContent"]["succeeded"], 2, "{answer}");
    let shown = gateway.run(&["call", "label:kitchen", "self.get_device_status"]).ok().out;
    assert!(shown.contains("board-ddee01: ok") && shown.contains("board-ddee02: ok"), "{shown}");
    assert_eq!(shown.matches("\"volume\":41").count(), 2, "{shown}");

    let odd = gateway.run(&["devices", "label", BOARD, "küche"]);
    assert!(odd.code != 0 && odd.err.contains("letters a-z"), "{}", odd.err);
    let nobody = gateway.run(&["call", "label:attic", "self.audio_speaker.set_volume", "volume=41"]);
    assert!(nobody.code != 0 && nobody.err.contains("0 devices have the label"), "{}", nobody.err);
    let none = gateway.run(&["devices", "unlabel", BOARD, "kitchen", "ci"]).ok().out;
    assert!(none.contains("no labels"), "{none}");
}

#[test]
fn a_photo_is_shown_as_size_and_type_and_saved_on_request() {
    let gateway = TestGateway::demo();
    let photo = ["call", BOARD, "self.camera.take_photo", "question=what?"];
    let shown = gateway.run(&photo).ok().out;
    assert!(shown.contains("image/jpeg") && shown.contains("--save"), "{shown}");
    let folder = gateway.state.path().join("photos");
    let saved = gateway.run(&[&photo[..], &["--save", folder.to_str().expect("a path")]].concat()).ok().out;
    assert!(saved.contains("saved to"), "{saved}");
    let file = std::fs::read_dir(&folder).expect("a folder").next().expect("a file").expect("a file").path();
    assert!(std::fs::read(&file).expect("readable").starts_with(&[0xff, 0xd8, 0xff]), "{}", file.display());
}

#[test]
fn a_speaking_name_works_wherever_a_device_is_named() {
    let gateway = TestGateway::demo();
    gateway.run(&["devices", "rename", BOARD, "Kitchen"]).ok();
    assert!(gateway.run(&["devices"]).ok().out.contains("Kitchen"));
    gateway.run(&["call", "Kitchen", "self.get_device_status"]).ok();
    gateway.run(&["call", BOARD, "self.get_device_status"]).ok();
    gateway.run(&["tools", "Kitchen"]).ok();
    assert_eq!(gateway.run(&["devices", "rename", "nobody", "x"]).code, 66);
    let nameless = gateway.run(&["devices", "rename", BOARD, ""]).ok().out;
    assert!(nameless.contains(BOARD) && nameless.contains("no name of its own any more"), "{nameless}");
    assert_eq!(gateway.run(&["call", "Kitchen", "self.get_device_status"]).code, 66);
}

#[test]
fn events_are_shown_as_they_come() {
    let gateway = TestGateway::demo();
    let mut follower = Process::start(sinew(gateway.state.path()).args(["events", "--follow", BOARD]));
    gateway.run(&["call", BOARD, "self.audio_speaker.set_volume", "volume=7"]).ok();
    let seen = follower.until("state_changed");
    assert!(seen.contains(BOARD), "{seen}");
    let past = gateway.json(&["events", BOARD]);
    let events = past["events"].as_array().expect("events");
    assert!(events.iter().any(|event| event["body"].to_string().contains("audio_speaker.volume")), "{past:#}");
}

#[test]
fn failures_have_the_exit_codes_of_the_table() {
    let gateway = TestGateway::demo();
    let codes = |arguments: &[&str]| {
        let plain = gateway.run(arguments);
        assert!(plain.err.starts_with("error: "), "{plain:?}");
        let json = gateway.run(&[arguments, &["--output", "json"]].concat());
        assert_eq!(plain.code, json.code);
        let object = json.json();
        assert_eq!(object["status"], "failure");
        (plain.code, object["error_type"].as_str().expect("a word").to_owned())
    };
    let volume = "self.audio_speaker.set_volume";
    assert_eq!(codes(&["call", "nobody", "x"]), (66, "DeviceNotFound".to_owned()));
    assert_eq!(codes(&["call", BOARD, "no_such_tool"]), (66, "ToolNotFound".to_owned()));
    assert_eq!(codes(&["call", BOARD, volume, "volume=loud"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["call", BOARD, volume, "volum=40"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["call", BOARD, volume, "volume=400"]), (64, "ValidationError".to_owned()));
    assert_eq!(codes(&["call", BOARD, volume]), (64, "ValidationError".to_owned()));
    assert_eq!(codes(&["call", BOARD, "self.screen.set_theme", "theme=pink"]), (1, "ActionFailed".to_owned()));
    assert_eq!(codes(&["call", BOARD, volume, "--args", "[]"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["devices", "--token", "wrong-token-0123456789"]), (77, "TokenRefused".to_owned()));
    assert_eq!(codes(&["devices", "--url", "http://127.0.0.1:1"]), (69, "NoGateway".to_owned()));
    assert_eq!(codes(&["devices", "--url", "nonsense"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["devcies"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["call"]), (2, "UsageError".to_owned()));
    assert_eq!(codes(&["spec", "diff", "--frmat"]), (2, "UsageError".to_owned()));
    let misspelt = gateway.run(&["devcies", "--output=json"]).json();
    let message = misspelt["error_message"].as_str().expect("a message");
    assert!(message.contains("devcies") && message.contains("devices") && !message.contains("Usage:"), "{message}");
    assert!(gateway.run(&["--help", "--output", "json"]).ok().out.contains("Usage:"));
}

#[test]
fn a_command_line_that_is_no_text_is_misread_in_good_order() {
    use std::os::unix::ffi::OsStrExt;
    let state = tempfile::tempdir().expect("a folder");
    let wrong = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    for flags in [&[][..], &["--output", "json"]] {
        let misread = run(sinew(state.path()).arg("call").arg(wrong).args(flags));
        assert_eq!(misread.code, 2, "{misread:?}");
        assert!(!misread.err.contains("panicked"), "{misread:?}");
    }
    let told = run(sinew(state.path()).args(["sim", "board", "--count", "0", "--output", "json"])).json();
    let message = told["error_message"].as_str().expect("a message");
    assert!(message.contains("--count") && !message.contains("For more information"), "{message}");
}

#[test]
fn a_log_level_that_is_none_is_told_and_left_aside() {
    let state = tempfile::tempdir().expect("a folder");
    for wrong in ["verbose", "sinew_boards=loud"] {
        let told = run(sinew(state.path()).args(["completions", "bash"]).env("SINEW_LOG", wrong)).ok();
        assert!(told.err.contains("SINEW_LOG") && told.err.lines().count() == 1, "{}", told.err);
    }
    let fine = run(sinew(state.path()).args(["completions", "bash"]).env("SINEW_LOG", "info,sinew_boards=trace")).ok();
    assert_eq!(fine.err, "");
}

#[test]
fn a_virtual_board_dials_no_nonsense() {
    let state = tempfile::tempdir().expect("a folder");
    for wrong in [["--connect", "nonsense"], ["--connect", "http://x"], ["--broker", "ws://x"], ["--ota", "https:///"]]
    {
        let refused = run(sinew(state.path()).args(["sim", "board"]).args(wrong));
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{wrong:?}: {refused:?}");
        assert!(refused.err.contains(wrong[0]) && refused.err.contains("://HOST"), "{refused:?}");
    }
}

#[test]
fn the_environment_names_gateway_and_token() {
    let gateway = TestGateway::demo();
    let away = tempfile::tempdir().expect("a folder");
    let token = gateway.own_token();
    let asked = run(sinew(away.path()).arg("devices").env("SINEW_URL", gateway.url()).env("SINEW_TOKEN", &token));
    assert!(asked.ok().out.contains(BOARD));
    let alone = run(sinew(away.path()).arg("devices"));
    assert_eq!(alone.code, 69);
    assert!(alone.err.contains("sinew demo"), "{}", alone.err);
}

#[test]
fn the_report_of_steps_is_saved_whether_they_succeed_or_fail() {
    let gateway = TestGateway::demo();
    let folder = tempfile::tempdir().expect("a folder");
    let steps = |tool: &str| {
        let argument = if tool == "open_app" { "app" } else { "query" };
        // So many that the report is larger than other details may be.
        let before = "{\"tool\":\"press_home\"},".repeat(8);
        format!("steps=[{before}{{\"tool\":\"{tool}\",\"arguments\":{{\"{argument}\":\"none\"}}}}]")
    };
    for (tool, form, start) in [
        ("open_app", "html", "<!DOCTYPE html>"),
        ("open_app", "json", "{"),
        ("list_apps", "html", "<!DOCTYPE html>"),
        ("list_apps", "json", "{"),
    ] {
        let path = folder.path().join(format!("{tool}.{form}")).to_str().expect("a path").to_owned();
        let form = format!("report={form}");
        let arguments = ["call", "virtual-phone", "run_steps", &steps(tool), &form, "--save", &path, "--yes"];
        let ran = gateway.run(&arguments);
        assert_eq!(ran.code == 0, tool == "list_apps", "{ran:?}");
        assert!(format!("{}{}", ran.out, ran.err).contains(&path), "{ran:?}");
        let report = std::fs::read_to_string(&path).expect("a report");
        assert!(report.starts_with(start) && report.contains(tool), "{report}");
        assert!(report.len() > 64 << 10, "{} bytes", report.len());
    }
}

#[test]
fn the_virtual_phone_of_a_demo_is_as_the_configuration_says() {
    let state = tempfile::tempdir().expect("a folder");
    let config = state.path().join("sinew.toml");
    std::fs::create_dir(state.path().join("apks")).expect("a folder");
    std::fs::write(&config, "[phones]\nprofile = \"tester\"\napks = \"apks\"\n").expect("written");
    let config = config.display().to_string();
    let gateway = TestGateway::open("demo", state, &["--config", &config]);
    let install = gateway.run(&["call", "virtual-phone", "install_app", "file=none.apk", "--yes"]);
    assert!(install.code != 0 && install.err.contains("none.apk") && !install.err.contains("`apks`"), "{install:?}");
    let written = ["call", "virtual-phone", "write_file", "path=Download/a.txt", "text=Hello there", "--yes"];
    gateway.run(&written).ok();
    let read = gateway.run(&["call", "virtual-phone", "read_file", "path=Download/a.txt"]).ok().out;
    assert_eq!(read, "Hello there\n");
}

#[test]
fn a_virtual_board_joins_the_running_gateway_and_leaves_it() {
    let gateway = TestGateway::serve();
    assert!(gateway.run(&["devices"]).ok().out.contains("sinew sim board"));
    let mut boards =
        Process::start(sinew(gateway.state.path()).args(["sim", "board", "--count", "2", "--kind", "relay"]));
    boards.until("Connecting");
    let device = gateway.wait_for("02:51:00:00:00:02", "ready");
    assert_eq!(device["admitted_by"], "gateway token");
    assert_eq!(gateway.json(&["devices"])["devices"].as_array().map(Vec::len), Some(2));
    boards.kill();
    let away = gateway.wait_for("02:51:00:00:00:02", "away");
    let id = away["id"].as_str().expect("an id");
    assert_eq!(gateway.run(&["call", id, "self.read_sensors"]).code, 69, "an away device is worth a later try");
}

#[test]
fn a_virtual_board_that_cannot_dial_says_why() {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = sinew(state.path());
    command.args(["sim", "board", "--count", "3", "--connect", "ws://127.0.0.1:1/xiaozhi/v1/"]);
    let mut process = Process::start(command.stderr(std::process::Stdio::piped()));
    let mut told = BufReader::new(process.child.stderr.take().expect("piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("a line");
    assert!(line.contains("no gateway answers there") && line.contains("tried again"), "{line}");
    process.kill();
}

#[test]
fn the_doctor_is_content_with_a_running_demo_and_names_a_fault() {
    let gateway = TestGateway::demo();
    let well = gateway.run(&["doctor"]).ok().out;
    assert!(well.contains("answers, and accepts") && well.contains("10 ready of 10 known"), "{well}");
    let unwell = gateway.run(&["doctor", "--token", "wrong-token-0123456789"]);
    assert_eq!(unwell.code, 1, "{unwell:?}");
    assert!(unwell.out.contains("refuses the token") && unwell.out.contains('→'), "{}", unwell.out);
    let checks = gateway.json(&["doctor"]);
    let names: Vec<_> =
        checks["checks"].as_array().expect("checks").iter().map(|check| check["name"].clone()).collect();
    for name in ["state directory", "gateway", "token", "certificate", "adb"] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
}

#[test]
fn every_shell_gets_its_completions() {
    let state = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(sinew(state.path()).args(["completions", shell])).ok().out;
        assert!(script.contains("sinew") && script.contains("doctor"), "{shell}");
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().join("share/man1");
    run(sinew(state.path()).arg("manual").arg(&folder)).ok();
    let page = std::fs::read_to_string(folder.join("sinew-devices-pin.1")).expect("a page");
    assert!(page.contains(".TH sinew-devices-pin 1") && page.contains("sinew devices pin"), "{page}");
    assert!(folder.join("sinew.1").exists() && !folder.join("sinew-bench-peer.1").exists());
    let refused = run(sinew(state.path()).arg("manual").arg(folder.join("sinew.1/below")));
    assert_eq!(refused.code, 74, "{refused:?}");
}

#[test]
fn health_is_an_exit_code() {
    let gateway = TestGateway::serve();
    assert_eq!(gateway.run(&["health"]).ok().out, "ready\n");
    assert_eq!(gateway.json(&["health"])["ready"], json!(true));
    let nobody = tempfile::tempdir().expect("a folder");
    assert_eq!(run(sinew(nobody.path()).arg("health")).code, 69);
}
