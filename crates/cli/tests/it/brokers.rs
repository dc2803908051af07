//! A real broker between the parts of the gateway: boards behind it, and two gateways that meet there as MCP server and
//! client.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::gateway::{Process, TestGateway, run, sinew};

struct Mosquitto {
    url: String,
    process: Child,
    _folder: TempDir,
}

impl Mosquitto {
    fn open() -> Mosquitto {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let file = folder.path().join("mosquitto.conf");
        std::fs::write(&file, format!("listener {} 127.0.0.1\nallow_anonymous true\n", address.port()))
            .expect("written");
        let found = Path::new("/usr/sbin/mosquitto").exists();
        let process = Command::new(if found { "/usr/sbin/mosquitto" } else { "mosquitto" })
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto is needed for this test; scripts/install installs it");
        let listens = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            std::net::TcpStream::connect(address).is_ok()
        });
        assert!(listens, "mosquitto does not listen");
        Mosquitto { url: format!("mqtt://{address}"), process, _folder: folder }
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A gateway with this in its configuration.
fn serve(lines: &str) -> TestGateway {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    std::fs::write(&file, lines).expect("written");
    let file = file.to_str().expect("UTF-8").to_owned();
    TestGateway::open("serve", state, &["--config", &file])
}

#[test]
fn a_board_behind_a_broker_is_listed_called_and_gone_and_the_doctor_knows_the_broker() {
    let mosquitto = Mosquitto::open();
    let section = format!("[[brokers]]\nurl = \"{}\"\n", mosquitto.url);
    let gateway = serve(&section);
    let command = ["sim", "board", "--broker", &mosquitto.url, "--kind", "relay", "--first", "7"];
    let board = Process::start(sinew(gateway.state.path()).args(command));
    let device = gateway.wait_for("02:51:00:00:00:07", "ready");
    assert_eq!((&device["id"], &device["admitted_by"]), (&json!("board-000007"), &json!("broker")));
    let read = gateway.json(&["call", "board-000007", "self.read_sensors"]);
    assert!(read.to_string().contains("temperature"), "{read}");
    drop(board);
    gateway.wait_for("02:51:00:00:00:07", "away");

    let file = gateway.state.path().join("sinew.toml");
    let doctor = run(sinew(gateway.state.path()).args(["doctor", "--config"]).arg(&file));
    assert!(doctor.out.contains("welcomes us"), "{doctor:?}");
    drop(mosquitto);
    let doctor = run(sinew(gateway.state.path()).args(["doctor", "--config"]).arg(&file));
    assert!(doctor.out.contains("cannot be reached"), "{doctor:?}");
}

#[test]
fn two_gateways_meet_at_a_broker_and_one_uses_the_tools_of_the_other() {
    let mosquitto = Mosquitto::open();
    let offering = serve(&format!("[[brokers]]\nurl = \"{}\"\noffer = \"sinew/cellar\"\n", mosquitto.url));
    let command =
        ["sim", "board", "--connect", offering.devices_url(), "--token", &offering.own_token(), "--kind", "relay"];
    let _board = Process::start(sinew(offering.state.path()).args(command));
    offering.wait_for("02:51:00:00:00:01", "ready");

    let using = serve(&format!("[[brokers]]\nurl = \"{}\"\nservers = \"#\"\n", mosquitto.url));
    let device = using.wait_for("cellar", "ready");
    assert_eq!((&device["family"], &device["attributes"]["server_name"]), (&json!("provider"), &json!("sinew/cellar")));
    let read = using.json(&["call", "cellar", "self_read_sensors"]);
    assert!(read.to_string().contains("temperature"), "{read}");
    drop(offering);
    using.wait_for("cellar", "away");
}
