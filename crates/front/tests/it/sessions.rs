//! Clients that start with `initialize`.

use serde_json::{Value, json};
use sinew_front::{FrontLimits, FrontSettings};
use sinew_gateway::Role;
use sinew_tool::Tool;

use crate::server::TestServer;

#[tokio::test]
async fn a_session_lists_and_calls() {
    let server = TestServer::new().await;
    let mut client = server.client();
    let info = client.initialize(json!({})).await;
    assert_eq!((&info["protocolVersion"], &info["serverInfo"]["name"]), (&json!("2025-11-25"), &json!("sinew")));
    assert_eq!(
        info["instructions"].as_str().unwrap_or_default(),
        server.gateway.seen_by(&sinew_gateway::Principal::new("test", sinew_gateway::Role::Admin)).instructions()
    );
    let list = client.legacy("tools/list", json!({})).await.message();
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let resources = client.legacy("resources/list", json!({})).await.message();
    for word in ["ttlMs", "cacheScope"] {
        assert_eq!((list["result"].get(word), resources["result"].get(word)), (None, None), "older clients have none");
    }
    let call = json!({"name": "echo", "arguments": {"text": "hi"}});
    let result = client.legacy("tools/call", call).await.message()["result"].clone();
    assert_eq!(result["content"][0]["text"], "hi");
    assert_eq!(result.get("resultType"), None, "older clients do not know the word");
    assert_eq!(client.legacy("ping", json!({})).await.message()["result"], json!({}));
}

#[tokio::test]
async fn the_oldest_revision_is_still_supported() {
    let server = TestServer::new().await;
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let result = server.client().legacy("initialize", params).await.message()["result"].clone();
    assert_eq!(result["protocolVersion"], "2024-11-05");
}

#[tokio::test]
async fn changes_are_reported_on_the_stream_of_the_session() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let mut stream = client.listen().await;
    let subscribed = client.legacy("resources/subscribe", json!({"uri": "device://lamp/events"})).await.message();
    assert_eq!(subscribed["result"], json!({}));
    server.lamp_sends("notifications/hot");
    let updated = stream.find("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "device://lamp/events");
    server.join("second", vec![Tool::new("blink", "Blinks", json!({"type": "object"}))]);
    stream.find("notifications/tools/list_changed").await;
    let unknown = client.legacy("resources/subscribe", json!({"uri": "device://nobody"})).await.message();
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn a_cancelled_call_is_dropped() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "wait"}});
    let _stream = client.legacy_stream(call).await;
    assert_eq!(server.signal().await, "started");
    client.notify("notifications/cancelled", json!({"requestId": 77})).await;
    assert_eq!(server.signal().await, "dropped");
}

#[tokio::test]
async fn questions_are_asked_over_the_connection() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({"elicitation": {}})).await;
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ask_name"}});
    let mut stream = client.legacy_stream(call).await;
    for (field, text) in [("name", "Ada"), ("colour", "blue")] {
        let question = stream.find("elicitation/create").await;
        assert_eq!(question["params"]["message"], format!("Your {field}?"));
        let answer = json!({"action": "accept", "content": {field: text}});
        let sent = client.legacy_send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
        assert_eq!(sent.status, 202);
    }
    let answer = stream.next().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "Ada likes blue");
}

#[tokio::test]
async fn a_client_without_capabilities_is_not_asked() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let result = client.legacy("tools/call", json!({"name": "ask_name"})).await.message()["result"].clone();
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["sinew/error"]["error_type"], "Unsupported");
}

#[tokio::test]
async fn progress_is_reported_and_the_log_respects_its_level() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let mut listening = client.listen().await;
    assert_eq!(client.legacy("logging/setLevel", json!({"level": "debug"})).await.message()["result"], json!({}));
    let params = json!({"name": "talk", "_meta": {"progressToken": 9}});
    let mut stream =
        client.legacy_stream(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    let mut progress = 0;
    while let Some(message) = stream.next().await {
        progress += i32::from(message["method"] == "notifications/progress");
    }
    assert_eq!(progress, 3);
    let first = listening.find("notifications/message").await;
    assert_eq!(first["params"], json!({"level": "debug", "data": "too quiet"}));
}

#[tokio::test]
async fn a_session_belongs_to_the_caller_that_started_it() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.initialize(json!({})).await;
    let (_, token) = server.gateway.tokens().create(Role::Client, "other").unwrap();
    let mut other = server.client().with_token(Some(&token));
    other.session = client.session.clone();
    let reply = other.legacy("tools/list", json!({})).await;
    assert_eq!((reply.status.as_u16(), reply.json()["error"]["code"].clone()), (404, json!(-32600)));
    assert_eq!(client.legacy("tools/list", json!({})).await.status, 200);
}

#[tokio::test]
async fn the_number_of_sessions_is_limited() {
    let limits = FrontLimits { sessions: 1, ..FrontLimits::default() };
    let server = TestServer::with(FrontSettings { limits, ..FrontSettings::default() }, None).await;
    let mut first = server.client();
    first.initialize(json!({})).await;
    let _in_use = first.listen().await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let refused = server.client().legacy("initialize", params.clone()).await;
    assert_eq!(refused.status, 503);
    assert_eq!((&refused.json()["id"], refused.json()["error"]["message"].is_string()), (&json!(1), true));
    let modern = server.client().modern("tools/list", json!({})).await;
    assert_eq!(modern.status, 200, "requests without a session are not counted");
    let session = first.session.clone().unwrap();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let ended = first.send("DELETE", "/mcp", &headers, "").await;
    assert_eq!(ended.status, 204);
    let again = server.client().legacy("initialize", params).await;
    assert_eq!(again.status, 200);
    let gone = first.legacy("tools/list", json!({})).await;
    assert_eq!((gone.status.as_u16(), gone.json()["jsonrpc"].clone()), (404, Value::from("2.0")));
}

#[tokio::test]
async fn one_token_cannot_use_up_all_sessions() {
    let limits = FrontLimits { sessions_each: 2, ..FrontLimits::default() };
    let server = TestServer::with(FrontSettings { limits, ..FrontSettings::default() }, None).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut client = server.client();
        client.initialize(json!({})).await;
        streams.push(client.listen().await);
    }
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(server.client().legacy("initialize", params.clone()).await.status, 503);
    let (_, token) = server.gateway.tokens().create(Role::Client, "other").unwrap();
    let other = server.client().with_token(Some(&token));
    assert_eq!(other.legacy("initialize", params).await.status, 200);
}

#[tokio::test]
async fn two_tokens_are_two_callers() {
    let limits = FrontLimits { sessions_each: 1, ..FrontLimits::default() };
    let server = TestServer::with(FrontSettings { limits, ..FrontSettings::default() }, None).await;
    let tokens = ["guest", "guest"].map(|name| server.gateway.tokens().create(Role::Client, name).unwrap().1);
    let [mut one, mut two] = tokens.map(|token| server.client().with_token(Some(&token)));
    server.client().initialize(json!({})).await;
    one.initialize(json!({})).await;
    two.initialize(json!({})).await;
    assert_eq!(one.legacy("tools/list", json!({})).await.status, 200);
    two.session = one.session.clone();
    assert_eq!(two.legacy("tools/list", json!({})).await.status, 404, "a session of somebody else");
}
