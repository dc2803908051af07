//! Phones: the schemas and codes of the remote-control reference at `/mcp/v1`, all tools at `/mcp`.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_phones::{PhoneDevice, Profile, reference_tools, tools};
use sinew_sim::phone::{Denial, Handset, LockScreen, PhoneClock, PhoneSetup, VirtualPhone};
use sinew_tool::DeviceEvent;
use sinew_tool::settings::Setting;

use crate::client::Client;
use crate::server::TestServer;

fn join(server: &TestServer, serial: &str) -> Handset {
    let setup = PhoneSetup { serial: serial.to_owned(), lock: LockScreen::None, ..PhoneSetup::default() };
    let phone = VirtualPhone::new(setup, PhoneClock::Real);
    let handset = phone.handset.clone();
    server.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone, Profile::Full))));
    handset
}

async fn listed(client: &Client) -> Vec<Value> {
    client.get("/mcp/v1/tools/list").await.json()["result"]["tools"].as_array().unwrap().clone()
}

fn named(tools: &[Value], name: &str) -> Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

async fn call(client: &Client, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let reply = client.post("/mcp/v1/tools/call", request).await;
    assert_eq!(reply.status, 200);
    reply.json()
}

async fn code(client: &Client, name: &str, arguments: Value) -> Value {
    call(client, name, arguments).await["error"]["code"].clone()
}

#[tokio::test]
async fn the_rest_interface_lists_exactly_the_reference_and_mcp_lists_everything() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, "one");
    let plain = listed(&client).await;
    for reference in reference_tools() {
        let tool = named(&plain, &reference.name);
        let expected = json!({"name": reference.name, "description": reference.description, "inputSchema": *reference.input_schema});
        assert_eq!(tool, expected);
    }
    // Other tools have the schema of the device.
    let screen = tools(Profile::Full).find("get_screen").unwrap().input_schema.clone();
    assert_eq!(named(&plain, "get_screen")["inputSchema"], *screen);

    let at_mcp = client.modern("tools/list", json!({})).await.message()["result"]["tools"].as_array().unwrap().clone();
    let tap = named(&at_mcp, "tap")["inputSchema"]["properties"].clone();
    assert!(tap["return"].is_object() && tap["device"].is_object(), "{tap}");
}

#[tokio::test]
async fn the_reference_is_listed_in_full_also_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let server = TestServer::in_state(state.path()).await;
    join(&server, "one");
    let before = listed(&server.client()).await;
    server.stop().await;
    server.gateway.close().await;
    drop(server);
    // The phone has not connected again yet.
    let server = TestServer::in_state(state.path()).await;
    let after = listed(&server.client()).await;
    for reference in reference_tools() {
        let expected = json!({"name": reference.name, "description": reference.description, "inputSchema": *reference.input_schema});
        assert_eq!(named(&after, &reference.name), expected);
    }
    assert_eq!(after, before);
}

#[tokio::test]
async fn with_two_phones_the_reference_gains_only_the_device_argument() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, "one");
    join(&server, "two");
    let plain = listed(&client).await;
    for reference in reference_tools() {
        let mut schema = named(&plain, &reference.name)["inputSchema"].clone();
        let device = schema["properties"].as_object_mut().unwrap().remove("device");
        assert!(device.is_some_and(|device| device["type"] == "string"), "{}", reference.name);
        assert_eq!(schema, *reference.input_schema);
    }
    assert_eq!(code(&client, "press_home", json!({})).await, -32602, "which one?");
    let answer = call(&client, "press_home", json!({"device": "virtual-phone"})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Home button press executed successfully");
}

#[tokio::test]
async fn unlisted_but_accepted_arguments_work_at_the_rest_interface() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, "one");
    let answer = call(&client, "press_home", json!({"return": "screen"})).await;
    let screen = answer["result"]["content"][1]["text"].as_str().unwrap().to_owned();
    assert!(screen.contains("Calculator"), "{screen}");
    let picture = call(&client, "capture_screenshot", json!({"quality": 50})).await;
    let picture = &picture["result"]["content"][0];
    assert_eq!(
        (&picture["type"], &picture["mimeType"], &picture["width"], &picture["height"]),
        (&json!("image"), &json!("image/jpeg"), &json!(1080), &json!(2400))
    );
}

#[tokio::test]
async fn every_error_of_the_reference_has_its_code() {
    let server = TestServer::new().await;
    let client = server.client();
    let handset = join(&server, "one");
    for (denial, name, arguments) in [
        (Denial::Tree, "get_accessibility_tree", json!({})),
        (Denial::Tree, "find_elements", json!({"by": "text", "value": "x"})),
        (Denial::Capture, "capture_screenshot", json!({})),
        (Denial::Input, "press_back", json!({})),
        (Denial::Input, "tap", json!({"x": 100, "y": 100})),
        (Denial::Input, "swipe", json!({"x1": 500, "y1": 1500, "x2": 500, "y2": 500})),
    ] {
        handset.deny(denial, true);
        let answer = call(&client, name, arguments).await;
        assert_eq!(answer["error"]["code"], -32001, "{name}: {answer}");
        assert_eq!(answer["error"]["data"]["error_type"], "PermissionDenied", "{answer}");
        handset.deny(denial, false);
    }
    assert_eq!(code(&client, "click_element", json!({"element_id": "node_none"})).await, -32002);
    assert_eq!(code(&client, "scroll_to_element", json!({"element_id": "node_none"})).await, -32002);
    let found = call(&client, "find_elements", json!({"by": "text", "value": "Calculator"})).await;
    let found: Value = serde_json::from_str(found["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let label = &found["elements"][0]["id"];
    assert_eq!(code(&client, "set_text", json!({"element_id": label, "text": "x"})).await, -32003, "{found}");
    let never = json!({"by": "text", "value": "nowhere", "timeout": 300});
    assert_eq!(code(&client, "wait_for_element", never).await, -32004);
    for (name, arguments) in [
        ("capture_screenshot", json!({"quality": 0})),
        ("tap", json!({"x": -1, "y": 5})),
        ("tap", json!({"x": 5, "y": 99_999})),
        ("tap", json!({"x": 5})),
        ("scroll", json!({"direction": "sideways"})),
        ("wait_for_element", json!({"by": "text", "value": "x", "timeout": "soon"})),
        ("find_elements", json!({"by": "colour", "value": "red"})),
    ] {
        assert_eq!(code(&client, name, arguments).await, -32602, "{name}");
    }
    assert_eq!(code(&client, "no_such_tool", json!({})).await, -32601);

    handset.unplug();
    assert_eq!(code(&client, "press_home", json!({})).await, -32003);
}

fn digest_of(reply: &crate::client::Reply) -> String {
    reply.headers["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_screen_is_watched_with_one_record_for_the_view_and_a_picture_for_each_change() {
    let server = TestServer::new().await;
    let client = server.client();
    let handset = join(&server, "one");
    let path = "/api/v1/phones/virtual-phone/screen?max_side=200";
    let first = client.get(path).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), "image/jpeg");
    let known = digest_of(&first);
    call(&client, "open_app", json!({"app": "Notes"})).await;
    let second = client.get(&format!("{path}&known={}", known.trim_matches('"'))).await;
    assert_eq!(second.status, 200);
    assert_ne!(digest_of(&second), known);
    let records = client.get("/api/v1/audit").await.json()["records"].as_array().unwrap().clone();
    let views = records.iter().filter(|record| record["tool"] == "capture_screenshot").count();
    assert_eq!(views, 1, "{records:?}");

    handset.deny(Denial::Capture, true);
    let refused = client.get(path).await;
    assert_eq!(refused.status, 403);
    handset.deny(Denial::Capture, false);
    for wrong in ["max_side=1", "max_side=x", "quality=0", "quality=101", "max_side=99999"] {
        assert_eq!(client.get(&format!("/api/v1/phones/virtual-phone/screen?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(client.get("/api/v1/phones/nobody/screen").await.status, 404);
}

#[tokio::test]
async fn a_screen_that_does_not_change_is_answered_with_the_tag_that_the_viewer_has() {
    let server = TestServer::new().await;
    let client = server.client();
    // Its clock stands still, so its status bar does not change either.
    let setup = PhoneSetup { lock: LockScreen::None, ..PhoneSetup::default() };
    let phone = VirtualPhone::new(setup, PhoneClock::Virtual);
    server.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone, Profile::Full))));
    let path = "/api/v1/phones/virtual-phone/screen?max_side=100";
    let known = digest_of(&client.get(path).await);
    let weak = format!("W/{known}");
    let look = async |tag: &str| client.send("GET", path, &[("if-none-match", tag)], Vec::new()).await;
    let (one, two) = tokio::join!(look(&known), look(&weak));
    for unchanged in [one, two] {
        assert_eq!((unchanged.status.as_u16(), digest_of(&unchanged)), (304, known.clone()));
        assert!(unchanged.body.is_empty() && !unchanged.headers.contains_key("content-type"));
    }
    let other = look("\"0000000000000000\"").await;
    assert_eq!((other.status.as_u16(), digest_of(&other)), (200, known), "an older picture is not this one");
}

#[tokio::test]
async fn a_view_ends_with_the_right_to_take_pictures() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, "one");
    let path = "/api/v1/phones/virtual-phone/screen?max_side=100";
    assert_eq!(client.get(path).await.status, 200);
    let mut policy = sinew_policy::PolicySettings::default();
    let rule = json!({"id": "no-pictures", "tools": ["capture_screenshot"], "do": "deny"});
    policy.read(json!({"rules": [rule]})).unwrap();
    let deny = sinew_gateway::AccessSettings { policy, ..sinew_gateway::AccessSettings::default() };
    server.gateway.set_access(deny).unwrap();
    let refused = client.get(path).await;
    assert!([403, 404].contains(&refused.status.as_u16()), "{}", refused.status);
}

#[tokio::test]
async fn a_wrong_argument_is_told_in_one_voice_and_in_the_references_words_where_they_are_known() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, "one");
    for (tool, arguments, plain, voice) in [
        (
            "tap",
            json!({"x": "5", "y": 5}),
            "Parameter 'x' must be a number, got string: '5'",
            "argument `x` must be a number, got the string \"5\"",
        ),
        ("tap", json!({"y": 5}), "Missing required parameter: 'x'", "argument `x` is missing"),
        (
            "tap",
            json!({"x": 99_999, "y": 5}),
            "Parameter 'x' must be on the screen (0 to 1079), got: 99999.0",
            "argument `x` must be on the screen (0 to 1079), got 99999.0",
        ),
        (
            "swipe",
            json!({"x1": 1, "y1": 1, "x2": 2, "y2": 2, "duration": 0}),
            "Parameter 'duration' must be between 1 and 60000, got: 0",
            "argument `duration` must be between 1 and 60000, got 0",
        ),
        (
            "wait_for_idle",
            json!({"timeout": 99_999}),
            "Timeout must be between 1 and 30000 ms, got: 99999",
            "argument `timeout` must be between 1 and 30000 ms, got 99999",
        ),
    ] {
        let answer = call(&client, tool, arguments.clone()).await;
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32602), &json!(plain)));
        let params = json!({"name": tool, "arguments": arguments});
        let answer = client.modern("tools/call", params).await.message();
        let text = answer["result"]["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        assert!(text.starts_with(voice), "{answer}");
        assert_eq!(text.matches(voice).count(), 1, "said once: {answer}");
        assert!(answer.to_string().contains("-32602"), "with the reference's number: {answer}");
    }
    let answer = call(&client, "scroll", json!({"direction": "UP"})).await;
    assert!(answer["result"].is_object(), "the reference takes words in any case: {answer}");
}
