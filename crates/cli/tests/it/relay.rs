//! Voice: what the commands say about relayed boards.

use std::process::{Command, Stdio};
use std::time::Duration;

use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::speech::Microphone;
use sinew_sim::voice::tone;
use tokio_util::sync::CancellationToken;

use crate::gateway::{Process, TestGateway, path_with_sinew, run, sinew};

#[tokio::test]
async fn the_hint_of_a_virtual_voice_server_works_as_it_stands() {
    let state = tempfile::tempdir().expect("a folder");
    let mut server = Process::start(sinew(state.path()).args(["sim", "voice", "--listen", "127.0.0.1:0"]));
    let page = server.until("sinew sim say");
    let url = page.split([' ', ';']).find(|word| word.starts_with("ws://")).expect("an address");
    let hint = page.lines().find(|line| line.starts_with("sinew sim say")).expect("a command");
    let board = hint.split(' ').find(|word| word.matches(':').count() == 5).expect("a hardware address");

    let shutdown = CancellationToken::new();
    let _runs = shutdown.clone().drop_guard();
    let (microphone, _heard) = Microphone::new();
    let config =
        BoardConfig { microphone: Some(microphone.clone()), ..BoardConfig::new(url, board, BoardKind::Talking) };
    tokio::spawn(sinew_sim::board::run(config, shutdown));
    let mut say = Command::new("sh");
    say.args(["-c", hint]).env("PATH", path_with_sinew()).stdout(Stdio::piped());
    let mut say = say.spawn().expect("a shell");
    // The voice server hears the text when somebody speaks to the board.
    while say.try_wait().expect("a child").is_none() {
        microphone.speak(tone());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let said = say.wait_with_output().expect("a child");
    let told = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && told.contains("heard: turn on the relay"), "{told}");
}

#[test]
fn the_doctor_names_devices_and_labels_of_the_relay_that_no_device_has() {
    let gateway = TestGateway::demo();
    let file = gateway.state.path().join("relay.toml");
    let text = "[relay]\nurl = 'ws://127.0.0.1:1/'\nboards = ['board-ddee01', 'kitchn']\nshare = ['label:lihgt']\n";
    std::fs::write(&file, text).expect("written");
    let doctor = run(sinew(gateway.state.path()).args(["doctor", "--config"]).arg(&file));
    let told = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for (key, name) in [("boards", "kitchn"), ("share", "label:lihgt")] {
        let part = format!("note relay `{key}` of [relay] names `{name}`, which no known device has");
        assert!(told.contains(&part), "{part}: {}", doctor.out);
    }
    assert!(!told.contains("`board-ddee01`"), "{}", doctor.out);
}
