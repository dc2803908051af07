//! Phones in the gateway: the story, the reference's door, and real adb with virtual phones behind it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sinew_phones::reference_tools;

use crate::gateway::{PORTS, Process, TestGateway, run, sinew};

#[test]
fn the_story_ends_with_the_note_as_it_was_written() {
    let state = tempfile::tempdir().expect("a folder");
    let told = run(sinew(state.path()).args(["demo", "--story", "--output", "json"])).ok().json();
    let steps = told["steps"].as_array().expect("steps").clone();
    let step = |tool: &str| steps.iter().rfind(|step| step["tool"] == tool).unwrap_or_else(|| panic!("no {tool}"));
    let written = step("set_text")["arguments"]["text"].as_str().expect("a text").to_owned();
    assert!(written.lines().count() > 2 && !written.is_ascii(), "{written}");
    assert_eq!(step("find_elements")["answer"], written);
    assert!(step("scroll_to_element")["answer"].as_str().is_some_and(|answer| answer.starts_with("Scrolled")));
    assert!(step("pinch")["answer"].as_str().is_some_and(|answer| answer.contains("Zoom 3.0×")), "{steps:#?}");
    // It leaves nothing behind, and for people it is a page of text.
    assert_eq!(std::fs::read_dir(state.path()).expect("a folder").count(), 0);
    let page = run(sinew(state.path()).args(["demo", "--story"])).ok().out;
    assert!(page.contains("Pinch it") && page.contains("as it was written"), "{page}");
}

#[test]
fn the_references_door_lists_the_references_schemas() {
    let gateway = TestGateway::demo();
    let (status, body) = gateway.http("GET", "/mcp/v1/tools/list", Some(&gateway.own_token()), "");
    assert_eq!(status, 200);
    let list: Value = serde_json::from_str(&body).expect("JSON");
    let tools = list["result"]["tools"].as_array().expect("tools");
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        tool["inputSchema"].clone()
    };
    let none = json!({"type": "object", "properties": {}, "required": []});
    for name in [
        "get_accessibility_tree",
        "get_current_app",
        "get_screen_info",
        "press_back",
        "press_home",
        "press_recents",
        "open_notifications",
        "open_quick_settings",
    ] {
        assert_eq!(schema(name), none, "{name}");
    }
    let quality = json!({"quality": {"type": "integer", "description": "JPEG quality (1-100)", "default": 80}});
    assert_eq!(schema("capture_screenshot"), json!({"type": "object", "properties": quality, "required": []}));
    for reference in reference_tools() {
        assert_eq!(schema(&reference.name), *reference.input_schema, "{}", reference.name);
    }
}

#[test]
fn without_adb_a_gateway_serves_in_peace() {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = sinew(state.path());
    command.env_remove("ADB_SERVER_SOCKET").env("ANDROID_ADB_SERVER_PORT", "1").env("PATH", "/nonexistent");
    command.arg("serve").args(PORTS).env("SINEW_LOG", "info,sinew_phones=debug");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut log = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut said = String::new();
    while !said.contains("phones cannot be tracked") {
        said.push_str(&log.next().expect("it goes on").expect("a line"));
    }
    assert!(!said.contains("WARN") && !said.contains("ERROR"), "{said}");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");

    let phones = run(sinew(state.path()).arg("phones").env("PATH", "/nonexistent"));
    assert_ne!(phones.code, 0);
    assert!(phones.err.contains("adb") && phones.err.contains("platform-tools"), "{}", phones.err);
}

/// The real adb with a server, a port and a home of its own.
pub struct Adb {
    port: String,
    home: tempfile::TempDir,
    _server: Process,
}

impl Adb {
    /// `None` where there is no adb on this machine.
    pub fn start() -> Option<Adb> {
        Command::new("adb").arg("version").stdout(Stdio::null()).status().ok()?;
        let home = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port().to_string();
        let mut server = Command::new("adb");
        server.args(["-P", &port, "nodaemon", "server"]).env("HOME", home.path());
        server.stdin(Stdio::null()).stderr(Stdio::null());
        Some(Adb { _server: Process::start(&mut server), port, home })
    }

    /// What adb itself prints at this server.
    pub fn adb(&self, arguments: &[&str]) -> std::io::Result<String> {
        let output = self.command().stdout(Stdio::piped()).args(arguments).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// adb itself, for what our program does not do.
    pub fn command(&self) -> Command {
        let mut command = Command::new("adb");
        command.env_remove("ADB_SERVER_SOCKET").env("HOME", self.home.path()).stdin(Stdio::null());
        command.args(["-P", &self.port]).stdout(Stdio::null());
        command
    }

    /// Our program, with this adb.
    pub fn sinew(&self, state: &Path) -> Command {
        let mut command = sinew(state);
        command
            .env_remove("ADB_SERVER_SOCKET")
            .env("ANDROID_ADB_SERVER_PORT", &self.port)
            .env("HOME", self.home.path());
        command
    }
}

/// A configuration that asks for no port in particular.
const ANY_PORTS: &str = "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = 'off'";

#[cfg(unix)]
#[test]
fn the_doctor_says_which_adb_there_is_and_where_the_agent_is() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let adb = folder.path().join("adb");
    std::fs::write(&adb, "#!/bin/sh\necho 'Android Debug Bridge version 1.0.41'\necho 'Version 36.0.0-13206524'\n")
        .expect("written");
    std::fs::set_permissions(&adb, std::fs::Permissions::from_mode(0o755)).expect("set");
    let config = folder.path().join("sinew.toml");
    std::fs::write(&config, ANY_PORTS).expect("written");
    let mut command = sinew(&folder.path().join("state"));
    command.env_remove("ADB_SERVER_SOCKET").env("ANDROID_ADB_SERVER_PORT", "1").env("PATH", folder.path());
    let checks = run(command.args(["doctor", "--output", "json", "--config"]).arg(&config)).ok().json();
    let message = |name: &str| {
        let check = checks["checks"].as_array()?.iter().find(|check| check["name"] == name)?;
        check["message"].as_str().map(str::to_owned)
    };
    let version = message("adb").expect("a row");
    assert_eq!(version, "36.0.0-13206524 (Android Debug Bridge version 1.0.41)");
    assert!(message("agent").is_some_and(|agent| agent.starts_with("inside this program")), "{checks:#}");
}

/// Ends the adb server that the gateway started, also where the test fails.
struct EndsAdb<'a>(&'a Adb);

impl Drop for EndsAdb<'_> {
    fn drop(&mut self) {
        let _ = self.0.adb(&["kill-server"]);
    }
}

#[test]
fn connected_phones_come_back_after_adb_was_killed_and_disconnected_ones_stay_away() {
    let Some(adb) = Adb::start() else { return };
    let _end = EndsAdb(&adb);
    let state = tempfile::tempdir().expect("a folder");
    let mut phones =
        Process::start(adb.sinew(state.path()).args(["sim", "phone", "--adb", "127.0.0.1:0", "--count", "2"]));
    let mut address = || phones.until("adb connect").split_whitespace().next_back().expect("an address").to_owned();
    let (stays, leaves) = (address(), address());
    assert_ne!(stays, leaves);
    let ours = |arguments: &[&str]| run(adb.sinew(state.path()).args(arguments));
    // The one that is disconnected later stands first, so it would be asked for first, too.
    ours(&["phones", "connect", &leaves]).ok();
    ours(&["phones", "connect", &stays]).ok();
    let config = state.path().join("sinew.toml");
    std::fs::write(&config, ANY_PORTS).expect("written");
    let mut gateway = Process::start(adb.sinew(state.path()).args(["serve", "--config"]).arg(&config));
    gateway.until("Ctrl-C");
    // The time since when a phone is in a state, once that is later than another time.
    let wait_for = |address: &str, state: &str, after: i64| {
        let since = (0..600).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let phones = ours(&["phones", "--output", "json"]).ok().json();
            let of_address = |phone: &&Value| phone["attributes"]["serial"] == address;
            let phone = phones["phones"].as_array()?.iter().find(of_address)?.clone();
            phone["since"].as_i64().filter(|since| phone["state"] == state && *since > after)
        });
        since.unwrap_or_else(|| panic!("{address} is not {state}: {}", ours(&["phones"]).out))
    };
    let before = [wait_for(&stays, "ready", 0), wait_for(&leaves, "ready", 0)];

    adb.adb(&["kill-server"]).expect("adb runs");
    let again = wait_for(&stays, "ready", before[0]);
    wait_for(&leaves, "ready", before[1]);

    ours(&["phones", "disconnect", &leaves]).ok();
    let left = wait_for(&leaves, "away", 0);
    adb.adb(&["kill-server"]).expect("adb runs");
    wait_for(&stays, "ready", again);
    let listed = adb.adb(&["devices"]).expect("adb runs");
    assert!(listed.contains(&stays) && !listed.contains(&leaves), "{listed}");
    assert_eq!(wait_for(&leaves, "away", 0), left);
    assert!(ours(&["phones", "disconnect", &leaves]).code != 0, "there is nothing to disconnect");
}

#[test]
fn virtual_phones_come_through_the_real_adb() {
    let Some(adb) = Adb::start() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let mut phones = Process::start(adb.sinew(state.path()).args([
        "sim",
        "phone",
        "--adb",
        "127.0.0.1:0",
        "--count",
        "2",
        "--android",
        "11",
    ]));
    let said = phones.until("adb connect");
    assert!(said.contains("2 virtual phones") && said.contains("Android 11"), "{said}");
    let first = said.split_whitespace().next_back().expect("an address").to_owned();
    let ours = |arguments: &[&str]| run(adb.sinew(state.path()).args(arguments));
    assert!(ours(&["phones"]).ok().out.contains("No phone is there"));
    assert!(ours(&["phones", "connect", &first]).ok().out.contains("connected to"));
    let seen = ours(&["phones"]).ok().out;
    assert!(seen.contains(&first) && seen.contains("ready") && seen.contains("No gateway runs"), "{seen}");

    let config = state.path().join("sinew.toml");
    std::fs::write(
        &config,
        "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = 'off'\n[phones]\nprofile = 'compact'",
    )
    .expect("written");
    let mut gateway = Process::start(adb.sinew(state.path()).args(["serve", "--config"]).arg(&config));
    gateway.until("Ctrl-C");
    let phone = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let phones = ours(&["phones", "--output", "json"]).ok().json();
        phones["phones"].as_array()?.iter().find(|phone| phone["state"] == "ready").cloned()
    });
    let phone = phone.expect("the phone comes by itself");
    assert_eq!(
        (&phone["id"], &phone["version"], &phone["tools"]),
        (&json!("virtual-phone-1"), &json!("11"), &json!(13))
    );
    let screen = ours(&["call", "virtual-phone-1", "open_app", "app=com.android.settings", "return=screen"]).ok().out;
    assert!(screen.contains("app com.android.settings"), "{screen}");

    // An app is installed with consent alone, from the files that android/build makes.
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/android");
    let built = built.to_str().expect("a plain path");
    let install = |more: &[&str]| {
        let command = [&["phones", "install-companion", "virtual-phone-1", "--files"], more].concat();
        run(adb.sinew(state.path()).args(command).stdin(Stdio::null()))
    };
    let missing = install(&["/nonexistent", "--yes"]);
    assert!(missing.code == 78 && missing.err.contains("android/build"), "{}", missing.err);
    let is_built = Path::new(built).join("companion.apk").is_file();
    assert!(is_built || std::env::var_os("SINEW_TEST_ALL").is_none(), "run android/build");
    if is_built {
        let unasked = install(&[built]);
        assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{}", unasked.err);
        assert!(install(&[built, "--yes"]).ok().out.starts_with("Companion 0.1.0 is on "));
        assert!(ours(&["doctor"]).out.contains(&format!("version 0.1.0 on {first}")));
    }
    let unknown = ours(&["phones", "install-companion", "nobody", "--files", built, "--yes"]);
    assert!(unknown.code != 0 && (!is_built || unknown.err.contains(&first)), "{}", unknown.err);

    let pairing = ours(&["phones", "pair", "127.0.0.1:1", "123456"]);
    assert_ne!(pairing.code, 0, "nobody pairs there");
    let wrong = ours(&["phones", "pair", "127.0.0.1:1", "12"]);
    assert!(wrong.err.contains("six digits"), "{}", wrong.err);
    assert_ne!(ours(&["phones", "connect", "127.0.0.1:1"]).code, 0, "nobody listens there");
}

#[test]
fn a_virtual_phone_without_adb_is_not_looked_for_there() {
    let Some(adb) = Adb::start() else { return };
    let gateway = TestGateway::demo();
    let pull = ["phones", "pull", "virtual-phone", "Download/readme.txt", "here"];
    let pulled = run(adb.sinew(gateway.state.path()).current_dir(gateway.state.path()).args(pull));
    assert!(pulled.code != 0 && pulled.err.contains("`sinew sim phone`"), "{pulled:?}");
}

#[test]
fn files_and_apps_are_copied_to_and_from_a_phone_and_nothing_of_somebody_else_is_replaced() {
    let Some(adb) = Adb::start() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let mut phones = Process::start(adb.sinew(state.path()).args(["sim", "phone", "--adb", "127.0.0.1:0"]));
    let phone = phones.until("adb connect").split_whitespace().next_back().expect("an address").to_owned();
    let ours = |arguments: &[&str]| run(adb.sinew(state.path()).current_dir(state.path()).args(arguments));
    ours(&["phones", "connect", &phone]).ok();

    // More than one piece of adb's, with every byte in it, under a name that a shell would take apart.
    let name = "Download/it's $(reboot) & \"x\" Grüße.bin";
    let bytes: Vec<u8> = (0..300_000u32).map(|number| (number * 7 % 256) as u8).collect();
    std::fs::write(state.path().join("here"), &bytes).expect("written");
    let pushed = ours(&["phones", "push", &phone, "here", name, "--output", "json"]).ok().json();
    assert_eq!(pushed["bytes"], 300_000);
    assert!(ours(&["phones", "pull", &phone, name, "back"]).ok().out.starts_with("Wrote 300000 bytes to back"));
    assert_eq!(std::fs::read(state.path().join("back")).expect("read"), bytes);

    std::fs::create_dir(state.path().join("folder")).expect("made");
    ours(&["phones", "pull", &phone, "Download/readme.txt", "folder"]).ok();
    assert!(state.path().join("folder/readme.txt").is_file());
    // Where a path leads the phone says; what its copy is called, the user.
    ours(&["phones", "push", &phone, "here", "Download/.profile"]).ok();
    let link = ["-s", &phone, "shell", "ln -s /sdcard/Download/.profile /sdcard/Download/notes.bin"];
    assert!(adb.command().args(link).status().expect("adb runs").success());
    ours(&["phones", "pull", &phone, "Download/notes.bin"]).ok();
    assert!(state.path().join("notes.bin").is_file() && !state.path().join(".profile").exists());

    for (arguments, says) in [
        (vec!["pull", &phone, name, "back"], "exists already"),
        (vec!["pull", &phone, "Download/none"], "'Download/none' cannot be copied"),
        (vec!["pull", &phone, "/system/bin/sh"], "outside"),
        (vec!["pull", &phone, "../x"], "'..'"),
        (vec!["pull", &phone, "/"], "outside"),
        (vec!["pull", &phone, "/sdcard/."], "names no file"),
        (vec!["push", &phone, "here", "Download"], "it is a folder"),
        (vec!["push", &phone, "here", "/data/local/tmp/sinew-agent.jar"], "Sinew's own"),
        (vec!["push", &phone, "missing", "Download/x"], "missing"),
        (vec!["install", &phone, "here"], "is not an APK"),
        (vec!["record", &phone, "back", "--seconds", "1"], "exists already"),
    ] {
        let refused = ours(&[vec!["phones"], arguments.clone()].concat());
        assert!(refused.code != 0 && refused.err.contains(says), "{arguments:?}: {}", refused.err);
    }
    // A download that somebody else has begun stays as it is.
    std::fs::write(state.path().join("mine.part"), "half").expect("written");
    let refused = ours(&["phones", "pull", &phone, name, "mine"]);
    assert!(refused.code != 0 && refused.err.contains("mine.part"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(state.path().join("mine.part")).expect("read"), "half");

    std::fs::write(state.path().join("shop.apk"), sinew_sim::phone::shopping().apk).expect("written");
    assert!(ours(&["phones", "install", &phone, "shop.apk"]).ok().out.starts_with("Installed shop.apk"));
    let split = state.path().join("split");
    std::fs::create_dir(&split).expect("made");
    for part in ["base.apk", "config.de.apk"] {
        std::fs::copy(state.path().join("shop.apk"), split.join(part)).expect("copied");
    }
    ours(&["phones", "install", &phone, "split"]).ok();
    ours(&["phones", "record", &phone, "screen.mp4", "--seconds", "1"]).ok();
    assert_eq!(&std::fs::read(state.path().join("screen.mp4")).expect("read")[4..8], b"ftyp");
    let left = std::fs::read_dir(state.path())
        .expect("a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let parts: Vec<String> = left.filter(|name| name.ends_with(".part")).collect();
    assert_eq!(parts, ["mine.part"]);
}
