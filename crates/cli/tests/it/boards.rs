//! Boards of one's own: bootstrapped, approved, over MQTT, with photos.

use std::time::Duration;

use serde_json::json;

use crate::gateway::{Process, TestGateway, sinew};
use crate::stdio::Client;

fn sim(gateway: &TestGateway, arguments: &[&str]) -> Process {
    let mut process = Process::start(sinew(gateway.state.path()).args(["sim", "board"]).args(arguments));
    process.until("Connecting");
    process
}

#[test]
fn a_board_that_knows_one_address_is_approved_and_can_be_used_until_its_token_is_revoked() {
    let gateway = TestGateway::serve();
    let ota = gateway.page["ota_url"].as_str().expect("an address").to_owned();
    assert!(ota.starts_with("http://127.0.0.1:") && ota.ends_with("/xiaozhi/ota/"), "{ota}");
    assert!(gateway.run(&["boards"]).ok().out.contains("No board waits"));

    let mut board = sim(&gateway, &["--ota", &ota, "--first", "5"]);
    let waiting = (0..200).find_map(|_| {
        let waiting = gateway.json(&["boards"])["boards"][0].clone();
        std::thread::sleep(Duration::from_millis(50));
        (!waiting.is_null()).then_some(waiting)
    });
    let waiting = waiting.expect("a board waits");
    assert_eq!((&waiting["hardware_id"], &waiting["kind"]), (&json!("02:51:00:00:00:05"), &json!("virtual-companion")));
    let code = waiting["code"].as_str().expect("a code");
    assert!(gateway.run(&["boards"]).ok().out.contains(code));
    let said = board.until("waiting for approval");
    assert!(said.contains(&format!("`sinew boards approve {code}`")), "{said}");
    assert_eq!(gateway.run(&["boards", "approve", "000"]).code, 64, "an unknown code is refused");
    assert!(gateway.run(&["boards", "approve", code]).ok().out.contains("02:51:00:00:00:05 is approved"));

    board.until("02:51:00:00:00:05: approved");
    board.until("02:51:00:00:00:05: connected to mqtt://");
    let device = gateway.wait_for("02:51:00:00:00:05", "ready");
    assert_eq!((&device["attributes"]["transport"], &device["admitted_by"]), (&json!("mqtt"), &json!("device token")));
    let id = device["id"].as_str().expect("an id");
    let photo = gateway.json(&["call", id, "self.camera.take_photo", "question=What is there?"]);
    assert_eq!(photo["content"][1]["mimeType"], "image/jpeg", "{photo}");
    let mut client = Client::start(sinew(gateway.state.path()).arg("stdio"));
    let uri = format!("device://{id}/photo");
    let kept = client.ask("resources/read", json!({"uri": uri}));
    assert_eq!(kept["contents"][0]["blob"], photo["content"][1]["data"]);
    let listed = client.ask("resources/list", json!({}));
    let listed = listed["resources"].as_array().expect("resources");
    assert!(listed.iter().any(|resource| resource["uri"] == uri && resource["mimeType"] == "image/jpeg"));
    let tokens = gateway.json(&["token", "list"]);
    let tokens = tokens["tokens"].as_array().expect("tokens");
    let own = tokens.iter().find(|token| token["label"] == "bootstrap").expect("one of its own");
    gateway.run(&["token", "revoke", own["id"].as_str().expect("an id")]).ok();
    gateway.wait_for("02:51:00:00:00:05", "away");
    let devices = gateway.run(&["devices"]).ok().out;
    assert!(devices.contains("its token was revoked"), "a connection that stood was ended: {devices}");
    drop(board);
    let _again = sim(&gateway, &["--ota", &ota, "--first", "5"]);
    let asks_again = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        gateway.json(&["boards"])["boards"][0]["hardware_id"] == "02:51:00:00:00:05"
    });
    assert!(asks_again, "a revoked board is a stranger");
}

#[test]
fn the_mqtt_door_can_be_named_and_closed() {
    let gateway = TestGateway::serve();
    let mqtt = gateway.page["mqtt_url"].as_str().expect("an address").to_owned();
    let _board = sim(&gateway, &["--connect", &mqtt, "--kind", "relay", "--first", "7"]);
    let device = gateway.wait_for("02:51:00:00:00:07", "ready");
    assert_eq!(device["attributes"]["transport"], "mqtt");
    assert!(gateway.run(&["doctor"]).out.contains("/xiaozhi/ota/"));
    drop(gateway);
    let state = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(sinew(state.path()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--devices",
        "127.0.0.1:0",
        "--mqtt",
        "off",
        "--advertise",
        "gateway.local",
        "--output",
        "json",
    ]));
    let page: serde_json::Value = serde_json::from_str(&process.line()).expect("a page");
    assert!(page["mqtt_url"].is_null());
    assert!(page["ota_url"].as_str().is_some_and(|url| url.starts_with("http://gateway.local:")), "{page}");
}
