//! What was agreed about a device's tools, through the real program.

use serde_json::{Value, json};

use crate::gateway::{Process, TestGateway, sinew};

const BOARD: &str = "board-ddee01";
const TOOL: &str = "self.audio_speaker.set_volume";

fn names(gateway: &TestGateway, device: &str) -> Vec<Value> {
    let tools = gateway.json(&["tools", device]);
    tools["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect()
}

#[test]
fn a_tool_whose_words_are_not_those_agreed_on_is_held_back_until_it_is_accepted() {
    let gateway = TestGateway::demo();
    assert!(gateway.run(&["devices", "pin", BOARD]).ok().out.contains("agreed on"));
    let TestGateway { state, mut process, .. } = gateway;
    process.kill();
    // As if the board had been agreed on with other words: what it says now was never seen.
    let lock = state.path().join("demo/sinew.lock");
    let text = std::fs::read_to_string(&lock).expect("a lock");
    let mut agreed: Value = serde_json::from_str(&text).expect("a lock is JSON");
    let owner = agreed["owners"].as_object_mut().expect("owners").values_mut().next().expect("an owner");
    let tools = owner["tools"].as_array_mut().expect("tools");
    let tool = tools.iter_mut().find(|entry| entry["tool"]["name"] == TOOL).expect("the tool");
    tool["tool"]["description"] = json!("Set the volume, gently.");
    std::fs::write(&lock, agreed.to_string()).expect("written");

    let gateway = TestGateway::open("demo", state, &[]);
    let device = gateway.wait_for(BOARD, "ready");
    assert_eq!((&device["pinned"], &device["quarantined"]), (&json!(true), &json!(1)));
    assert!(!names(&gateway, BOARD).contains(&json!(TOOL)));
    let refused = gateway.run(&["call", BOARD, TOOL, "--args", "{\"volume\": 7}"]);
    assert!(refused.code != 0 && refused.err.contains("held back"), "{refused:?}");
    let typed = gateway.run(&["call", BOARD, TOOL, "volume=7"]);
    assert!(typed.code != 0 && typed.err.contains("held back"), "{typed:?}");
    assert!(gateway.run(&["devices"]).ok().out.contains("sinew devices accept"));
    let changes = gateway.run(&["devices", "changes", BOARD]).ok().out;
    assert!(changes.contains("differs") && changes.contains(TOOL) && changes.contains("cosmetic"), "{changes}");
    let digest = gateway.json(&["devices", "changes", BOARD])["digest"].as_str().expect("a digest").to_owned();
    assert!(changes.contains(&format!("sinew devices accept {BOARD} {digest}")), "{changes}");
    let other = gateway.run(&["devices", "accept", BOARD, "0123456789abcdef0123456789abcdef"]);
    assert!(other.code != 0 && other.err.contains("look at it again"), "{other:?}");
    gateway.run(&["devices", "pin", BOARD]).ok();
    assert!(!names(&gateway, BOARD).contains(&json!(TOOL)), "pinning again accepts nothing");
    gateway.run(&["devices", "accept", BOARD, &digest]).ok();
    assert!(names(&gateway, BOARD).contains(&json!(TOOL)));
    gateway.run(&["call", BOARD, TOOL, "volume=7"]).ok();
    assert_ne!(gateway.run(&["devices", "accept", BOARD, &digest]).code, 0, "nothing is left to accept");
    assert_eq!(gateway.json(&["devices", "unpin", BOARD])["pinned"], false);
}

#[test]
fn an_unpinned_board_that_comes_back_with_other_tools_is_told() {
    let gateway = TestGateway::serve();
    let mac = "02:51:00:00:00:01";
    let sim = |kind: &str| Process::start(sinew(gateway.state.path()).args(["sim", "board", "--kind", kind]));
    let mut board = sim("companion");
    gateway.wait_for(mac, "ready");
    board.kill();
    gateway.wait_for(mac, "away");
    let _board = sim("relay");
    let id = gateway.wait_for(mac, "ready")["id"].as_str().expect("an id").to_owned();
    let events = gateway.json(&["events", &id]);
    let told =
        events["events"].as_array().expect("events").iter().find(|event| event["topic"] == "sinew/tools_changed");
    let body = &told.expect("an event")["body"];
    assert_eq!(body["bump"], "major", "{body:#}");
    let shown = gateway.run(&["devices", "changes", &id]).ok().out;
    assert!(shown.contains("not pinned") && shown.contains("tool-removed"), "{shown}");
}
