//! Calls that belong to a trace of their caller.

use serde_json::{Value, json};
use sinew_tool::Tool;

use crate::client::Client;
use crate::server::TestServer;

const IN_META: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const IN_HEADER: &str = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

async fn server() -> TestServer {
    let server = TestServer::new().await;
    server.join("probe", vec![Tool::new("trace", "Says the trace", json!({"type": "object", "properties": {}}))]);
    server
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

/// The trace of a call of a client of 2026-07-28; with a progress token, rmcp makes it.
async fn modern(client: &Client, meta: Value) -> String {
    text(&client.modern("tools/call", json!({"name": "trace", "arguments": {}, "_meta": meta})).await.message())
        .to_owned()
}

#[tokio::test]
async fn a_call_belongs_to_the_trace_in_its_meta() {
    let server = server().await;
    let mut client = server.client();
    assert_eq!(modern(&client, json!({})).await, "none");
    assert_eq!(modern(&client, json!({"traceparent": IN_META})).await, IN_META);
    assert_eq!(modern(&client, json!({"traceparent": IN_META, "progressToken": 1})).await, IN_META);
    for wrong in [json!("nonsense"), json!("x".repeat(10_000)), json!({"a": 1})] {
        assert_eq!(modern(&client, json!({"traceparent": wrong})).await, "none");
    }
    client.initialize(json!({})).await;
    let params = json!({"name": "trace", "arguments": {}, "_meta": {"traceparent": IN_META}});
    assert_eq!(text(&client.legacy("tools/call", params).await.message()), IN_META);
}

#[tokio::test]
async fn a_call_belongs_to_the_trace_in_its_header_unless_it_names_another() {
    let server = server().await;
    let client = server.client();
    let header = ("traceparent", IN_HEADER);
    let json_headers = [header, ("content-type", "application/json")];
    for (path, body) in [
        ("/api/v1/call", json!({"device": "probe", "tool": "trace"})),
        (
            "/mcp/v1/tools/call",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "trace", "arguments": {}}}),
        ),
    ] {
        let answer = client.send("POST", path, &json_headers, body.to_string()).await;
        assert!(String::from_utf8_lossy(&answer.body).contains(IN_HEADER), "{path}: {:?}", answer.body);
    }
    for (meta, expected) in [(json!({}), IN_HEADER), (json!({"traceparent": IN_META}), IN_META)] {
        // With a progress token, rmcp makes the call.
        for progress in [None, Some(1)] {
            let mut meta = meta.clone();
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            if let Some(token) = progress {
                meta["progressToken"] = json!(token);
            }
            let params = json!({"name": "trace", "arguments": {}, "_meta": meta});
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let headers = [
                header,
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "trace"),
            ];
            let answer = client.send("POST", "/mcp", &headers, body.to_string()).await;
            assert_eq!(text(&answer.message()), expected);
        }
    }
}
