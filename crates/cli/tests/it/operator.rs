//! What an operator relies on: the log, SIGHUP, and fingerprints that outlive a certificate.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sinew_front::tls::TlsIdentity;

use crate::gateway::{PORTS, Process, TestGateway, run, sinew};

/// A gateway whose log goes to a file.
fn logging_gateway(folder: &Path, config: &str) -> Process {
    let path = folder.join("sinew.toml");
    std::fs::write(&path, config).expect("written");
    let mut command = sinew(folder);
    command.args(["serve", "--output", "json", "--config", path.to_str().expect("a text")]).args(PORTS);
    command.env_remove("SINEW_LOG").stderr(File::create(folder.join("log")).expect("a file"));
    Process::start(&mut command)
}

/// Reads the log until a line is as wanted.
fn wait_for_line(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut log = String::new();
    for _ in 0..400 {
        log = std::fs::read_to_string(folder.join("log")).expect("a log");
        if let Some(line) = log.lines().find(|line| is_wanted(line)) {
            return line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("no such line in the log:\n{log}")
}

#[cfg(unix)]
fn hangup(process: &Process) {
    let sent = std::process::Command::new("kill").args(["-HUP", &process.child.id().to_string()]).status();
    assert!(sent.expect("`kill` runs").success());
}

#[test]
fn a_state_directory_without_room_is_found_by_the_doctor() {
    let state = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(state.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("private");
    // A file size limit is a full disk without a disk; the signal that comes with it is ignored.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' 25; ulimit -f 16; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_sinew"));
    let told = run(limited.args(["doctor", "--state"]).arg(state.path()));
    assert!(told.code == 1 && told.out.contains("cannot be written"), "{told:?}");
    assert!(told.out.contains("free some space"), "{told:?}");
    assert_eq!(std::fs::read_dir(state.path()).expect("a folder").count(), 0, "nothing is left");
}

#[test]
fn the_log_says_who_called_what_and_how_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gateway = logging_gateway(folder.path(), "[log]\nformat = 'json'\n");
    let page: Value = serde_json::from_str(&gateway.line()).expect("a page");
    let mut board = Process::start(sinew(folder.path()).args(["sim", "board", "--output", "json"]));
    board.line();
    let line = |message: &str| {
        let is_it = |line: &str| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["message"].as_str() == Some(message))
        };
        serde_json::from_str::<Value>(&wait_for_line(folder.path(), is_it)).expect("JSON")
    };
    let connected = line("device connected");
    assert_eq!((&connected["device"], &connected["tools"]), (&"board-000001".into(), &5.into()), "{connected}");
    run(sinew(folder.path()).args(["call", "board-000001", "self.get_device_status"])).ok();
    let called = line("tool called");
    for (field, value) in [("client", "gateway"), ("tool", "self.get_device_status"), ("outcome", "ok")] {
        assert_eq!(called[field], value, "{called}");
    }
    assert!(called["call"].is_u64() && called.get("trace").is_none(), "{called}");
    assert!(called["ms"].is_u64() || called["ms"].is_i64(), "{called}");
    let url = page["url"].as_str().expect("an address");
    assert_eq!(run(sinew(folder.path()).args(["devices", "--url", url, "--token", "snw_wrong_wrong"])).code, 77);
    assert_eq!(line("request refused: its token is missing, wrong or expired")["address"], "127.0.0.1");
    board.kill();
    assert!(line("device disconnected")["reason"].is_string());
    run(sinew(folder.path()).args(["call", "board-000001", "self.get_device_status"]));
    assert_eq!(line("call failed")["outcome"], "DeviceAway");
    line("policy loaded");
    line("configuration loaded");
}

#[cfg(unix)]
#[test]
fn a_hangup_has_the_configuration_read_again_and_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gateway = logging_gateway(folder.path(), "");
    gateway.line();
    wait_for_line(folder.path(), |line| line.contains("configuration loaded"));
    hangup(&gateway);
    wait_for_line(folder.path(), |line| line.contains("reading the configuration again"));
    run(sinew(folder.path()).arg("devices")).ok();

    let plain = TestGateway::serve();
    hangup(&plain.process);
    plain.run(&["devices"]).ok();
}

#[cfg(unix)]
#[test]
fn renewed_files_are_served_without_a_restart_and_commands_here_follow_a_new_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = |name: &str| {
        let made = tempfile::tempdir().expect("a folder");
        TlsIdentity::self_signed(made.path(), &[name.to_owned()]).expect("a certificate");
        for (from, to) in [("tls-cert.pem", "cert.pem"), ("tls-key.pem", "key.pem")] {
            std::fs::copy(made.path().join(from), folder.path().join(to)).expect("copied");
        }
    };
    files("one.example");
    let mut gateway = logging_gateway(
        folder.path(),
        "tls-cert = 'cert.pem'\ntls-key = 'key.pem'\n[clients]\nallowed-hosts = ['one.example']\n",
    );
    gateway.line();
    run(sinew(folder.path()).arg("devices")).ok();
    files("two.example");
    hangup(&gateway);
    wait_for_line(folder.path(), |line| line.contains("certificate renewed"));
    let warned = wait_for_line(folder.path(), |line| line.contains("the certificate ") && line.contains("two.example"));
    assert!(warned.contains("one.example"), "{warned}");
    run(sinew(folder.path()).arg("devices")).ok();
}

#[test]
fn the_fingerprint_stays_when_the_machine_gets_another_name() {
    let state = tempfile::tempdir().expect("a folder");
    let first = TestGateway::open("serve", state, &["--tls", "--advertise", "one.example"]);
    let TestGateway { state, page, process } = first;
    drop(process);
    let second = TestGateway::open("serve", state, &["--tls", "--advertise", "two.example"]);
    assert_eq!(page["fingerprint"], second.page["fingerprint"]);
    let (url, token) = (second.url(), second.own_token());
    let known = page["fingerprint"].as_str().expect("a fingerprint");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let ask = |url: &str, fingerprint: &str| {
        let words = ["devices", "--url", url, "--token", &token, "--fingerprint", fingerprint];
        run(sinew(elsewhere.path()).args(words))
    };
    ask(url, known).ok();
    assert!(ask(url, &"00".repeat(32)).err.contains("fingerprint"));
    let plain =
        run(sinew(elsewhere.path()).args(["devices", "--url", &url.replace("https", "http"), "--token", &token]));
    assert!(plain.err.contains("https://"), "{plain:?}");
}
