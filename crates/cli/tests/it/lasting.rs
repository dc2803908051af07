//! What survives: names, tokens and the audit, also a `kill -9`.

use serde_json::Value;

use crate::house::House;

#[test]
fn a_killed_gateway_loses_no_answered_call_and_no_name() {
    let mut house = House::demo();
    house.run(&["devices", "rename", "board-ddee01", "lamp"]).ok();
    for volume in 1..=5 {
        house.run(&["call", "lamp", "self.audio_speaker.set_volume", &format!("volume={volume}")]).ok();
    }
    let refused = house.run(&["call", "lamp", "self.audio_speaker.set_volume", "volume=400"]);
    assert_eq!(refused.code, 64);
    house.process.kill();

    let house = House::open("demo", house.state, &[]);
    let (status, body) = house.http("GET", "/api/v1/audit?limit=100", Some(&house.own_token()), "");
    assert_eq!(status, 200, "{body}");
    let audit: Value = serde_json::from_str(&body).expect("JSON");
    let calls = audit["records"].as_array().expect("records");
    let count = |outcome: &str| {
        let volume = |call: &&Value| call["tool"] == "self.audio_speaker.set_volume" && call["outcome"] == outcome;
        calls.iter().filter(volume).count()
    };
    assert_eq!((count("ok"), count("ValidationError")), (5, 1), "{audit:#}");
    assert_eq!(house.json(&["devices"])["devices"][0]["name"], "lamp");
}

#[test]
fn a_demo_started_again_has_the_same_token_and_keeps_no_stale_ones() {
    let mut house = House::demo();
    let token = house.page["token"].clone();
    house.process.kill();
    let house = House::open("demo", house.state, &[]);
    assert_eq!(house.page["token"], token);
    let tokens = house.json(&["token", "list"]);
    let of_boards = tokens["tokens"].as_array().expect("tokens").iter().filter(|token| token["role"] == "device");
    assert_eq!(of_boards.count(), 4, "{tokens:#}");
}
