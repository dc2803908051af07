//! The REST interface of the remote-control reference.

use serde_json::{Value, json};
use sinew_tool::ErrorKind;

use crate::server::{PIXEL, TestServer, tools};

fn call(id: Value, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn success_has_the_form_of_the_reference() {
    let server = TestServer::new().await;
    let client = server.client();
    let reply = client.post("/mcp/v1/tools/call", call(json!(1), "echo", json!({"text": "hi"}))).await;
    let content = json!([{"type": "text", "text": "hi"}]);
    assert_eq!(reply.json(), json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}));
    let reply = client.post("/mcp/v1/tools/call", call(json!("a"), "picture", json!({}))).await;
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png", "width": 1, "height": 1});
    assert_eq!(reply.json(), json!({"jsonrpc": "2.0", "id": "a", "result": {"content": [image]}}));
}

#[tokio::test]
async fn initialize_and_dispatch_go_by_method_and_not_by_path() {
    let server = TestServer::new().await;
    let client = server.client();
    for path in ["/mcp/v1/initialize", "/mcp/v1/tools/call"] {
        let reply = client.post(path, json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"})).await.json();
        assert_eq!(reply["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(reply["result"]["capabilities"], json!({"tools": {"listChanged": false}}));
        let reply = client.post(path, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await.json();
        assert!(reply["result"]["tools"].is_array());
    }
}

#[tokio::test]
async fn the_list_is_complete_and_has_the_wanted_id() {
    let server = TestServer::new().await;
    let client = server.client();
    for (query, id) in [("", Value::Null), ("?id=7", json!(7)), ("?id=abc", json!("abc")), ("?id=1.5", json!("1.5"))] {
        let reply = client.get(&format!("/mcp/v1/tools/list{query}")).await.json();
        assert_eq!(reply["id"], id, "{query}");
        assert!(reply["result"]["tools"].as_array().unwrap().len() >= tools().len());
        assert_eq!(reply.get("error"), None);
    }
}

#[tokio::test]
async fn a_schema_is_that_of_the_device_until_there_is_a_choice() {
    let server = TestServer::new().await;
    let client = server.client();
    let schema = async |name: &str| {
        let list = client.get("/mcp/v1/tools/list").await.json();
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"].clone()
    };
    for tool in tools() {
        assert_eq!(schema(&tool.name).await, *tool.input_schema, "{}", tool.name);
    }
    server.join("second", tools());
    let chosen = schema("echo").await;
    assert!(chosen["properties"]["device"].is_object() && chosen["properties"]["text"].is_object(), "{chosen}");
    let ambiguous = client.post("/mcp/v1/tools/call", call(json!(1), "measure", json!({}))).await.json();
    assert_eq!(ambiguous["error"]["code"], -32602);
    let named = client.post("/mcp/v1/tools/call", call(json!(1), "measure", json!({"device": "second"}))).await.json();
    assert!(named["result"]["content"].is_array(), "{named}");
}

#[tokio::test]
async fn errors_have_status_200_and_the_codes_of_the_reference() {
    let server = TestServer::new().await;
    let client = server.client();
    let cases = [
        (json!({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}), -32601, "Method not found: nonsense"),
        (call(json!(1), "no_such_tool", json!({})), -32601, "Method not found: no_such_tool"),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}), -32602, "Missing params for tools/call"),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}), -32602, "Missing 'name' in params"),
        (json!({"jsonrpc": "3.0", "id": 1, "method": "x"}), -32600, "Unsupported JSON-RPC version: 3.0"),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}),
            -32602,
            "'params' must be an object",
        ),
        (json!([]), -32600, ""),
    ];
    for (request, code, message) in cases {
        let reply = client.post("/mcp/v1/tools/call", request.clone()).await;
        assert_eq!(reply.status, 200, "{request}");
        let reply = reply.json();
        assert_eq!(reply["error"]["code"], code, "{request}");
        assert!(message.is_empty() || reply["error"]["message"] == message, "{reply}");
        assert_eq!(reply["error"]["data"]["status"], "failure");
        assert_eq!(reply.get("result"), None, "never both");
    }
    let long = client.post("/mcp/v1/tools/call", call(json!(1), &"x".repeat(50_000), json!({}))).await;
    assert!(long.json()["error"]["code"] == -32601 && long.body.len() < 1000);
    let unreadable = client.send("POST", "/mcp/v1/tools/call", &[], "{").await;
    assert_eq!(unreadable.status, 200);
    assert_eq!(unreadable.json()["error"]["message"], "Parse error: invalid JSON");
    assert_eq!(unreadable.json()["id"], Value::Null);
}

#[tokio::test]
async fn device_failures_keep_their_code() {
    let server = TestServer::new().await;
    let client = server.client();
    for kind in [ErrorKind::PermissionDenied, ErrorKind::ElementNotFound, ErrorKind::ActionFailed, ErrorKind::Timeout] {
        let request = call(json!(1), "fail", json!({"type": kind.row().error_type}));
        let reply = client.post("/mcp/v1/tools/call", request).await.json();
        assert_eq!(reply["error"]["code"], kind.row().code, "{reply}");
        assert_eq!(reply["error"]["data"]["error_type"], kind.row().error_type);
    }
}

#[tokio::test]
async fn a_notification_is_handled_but_not_answered() {
    let server = TestServer::new().await;
    let client = server.client();
    for request in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}),
    ] {
        let reply = client.post("/mcp/v1/tools/call", request).await;
        assert_eq!((reply.status.as_u16(), reply.body.len()), (202, 0));
    }
    let audit = server.gateway.audit(10).await.unwrap();
    assert!(audit.iter().any(|record| record.name == "echo" && record.door == "rest"), "{audit:?}");
}
