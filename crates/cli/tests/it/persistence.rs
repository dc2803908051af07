//! What survives: names, tokens and the audit, also a `kill -9`.

use std::path::Path;

use serde_json::Value;

use crate::gateway::{TestGateway, sinew};
use crate::stdio::Client;

#[test]
fn a_killed_gateway_loses_no_answered_call_and_no_name() {
    let mut gateway = TestGateway::demo();
    gateway.run(&["devices", "rename", "board-ddee01", "lamp"]).ok();
    for volume in 1..=5 {
        gateway.run(&["call", "lamp", "self.audio_speaker.set_volume", &format!("volume={volume}")]).ok();
    }
    let refused = gateway.run(&["call", "lamp", "self.audio_speaker.set_volume", "volume=400"]);
    assert_eq!(refused.code, 64);
    gateway.process.kill();

    let gateway = TestGateway::open("demo", gateway.state, &[]);
    let (status, body) = gateway.http("GET", "/api/v1/audit?limit=100", Some(&gateway.own_token()), "");
    assert_eq!(status, 200, "{body}");
    let audit: Value = serde_json::from_str(&body).expect("JSON");
    let calls = audit["records"].as_array().expect("records");
    let count = |outcome: &str| {
        let volume = |call: &&Value| call["tool"] == "self.audio_speaker.set_volume" && call["outcome"] == outcome;
        calls.iter().filter(volume).count()
    };
    assert_eq!((count("ok"), count("ValidationError")), (5, 1), "{audit:#}");
    assert_eq!(gateway.json(&["devices"])["devices"][0]["name"], "lamp");
}

#[test]
fn a_demo_started_again_has_the_same_token_and_keeps_no_stale_ones() {
    let mut gateway = TestGateway::demo();
    let token = gateway.page["token"].clone();
    gateway.process.kill();
    let gateway = TestGateway::open("demo", gateway.state, &[]);
    assert_eq!(gateway.page["token"], token);
    let tokens = gateway.json(&["token", "list"]);
    let of_boards = tokens["tokens"].as_array().expect("tokens").iter().filter(|token| token["role"] == "device");
    assert_eq!(of_boards.count(), 4, "{tokens:#}");
}

#[test]
fn every_file_of_the_state_directory_is_explained() {
    let state = tempfile::tempdir().expect("a folder");
    let gateway = TestGateway::open("serve", state, &["--tls"]);
    let _client = Client::start(sinew(gateway.state.path()).arg("stdio"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/state.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let names = std::fs::read_dir(gateway.state.path()).expect("a folder").flatten();
    let names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name == "clients") && names.iter().any(|name| name == "tls-key.pem"), "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}/`")), "{name} is not explained");
    }
}
