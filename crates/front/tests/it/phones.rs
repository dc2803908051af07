//! Phones: the schemas and codes of the remote-control reference at `/mcp/v1`, all tools at `/mcp`.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_phones::{PhoneDevice, Profile, reference_tools, tools};
use sinew_sim::phone::{Denial, Handset, LockScreen, PhoneClock, PhoneSetup, VirtualPhone};
use sinew_tool::DeviceEvent;

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
