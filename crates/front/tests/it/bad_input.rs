//! Bad input gets an error that says what is wrong, and the gateway continues.

use serde_json::{Value, json};
use sinew_front::{FrontLimits, FrontSettings};

use crate::server::TestServer;

const JSON: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

#[tokio::test]
async fn unreadable_messages_get_json_rpc_errors() {
    let server = TestServer::new().await;
    let client = server.client();
    let deep = "[".repeat(10_000);
    let nested = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{deep}{}}}"#, "]".repeat(10_000));
    let cases: [(&[u8], i32, Value); 9] = [
        (b"{\"jsonrpc\": ", -32700, Value::Null),
        (b"", -32700, Value::Null),
        (b"\xff\xfe{}", -32700, Value::Null),
        (deep.as_bytes(), -32700, Value::Null),
        (nested.as_bytes(), -32700, json!(1)),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600, json!(7)),
        (br#"{"jsonrpc":"2.0","id":"a"}"#, -32600, json!("a")),
    ];
    for (body, code, id) in cases {
        let reply = client.send("POST", "/mcp", &JSON, body.to_vec()).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (400, "application/json"), "{shown}");
        assert_eq!((&reply.json()["error"]["code"], &reply.json()["id"]), (&json!(code), &id), "{shown}");
        assert!(reply.json()["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    assert_eq!(client.modern("tools/list", json!({})).await.status, 200, "the gateway goes on");
}

#[tokio::test]
async fn other_content_types_and_large_bodies_are_refused_with_json_rpc_errors() {
    let limits = FrontLimits { body: 1000, ..FrontLimits::default() };
    let server = TestServer::with(FrontSettings { limits, ..FrontSettings::default() }, None).await;
    let client = server.client();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
        let reply = client.send("POST", "/mcp", &[("content-type", kind)], r#"{"id": 77}"#).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (415, &json!(-32600)), "{kind}");
        assert_eq!(reply.json()["id"], json!(77), "{kind}");
    }
    for path in ["/mcp?schemas=foo", "/mcp?tools=foo"] {
        let reply = client.send("POST", path, &[("content-type", "application/json")], r#"{"id": 77}"#).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["id"]), (400, &json!(77)), "{path}");
    }
    let call = json!({"name": "echo", "arguments": {"text": "x".repeat(2000)}});
    // The REST interface answers 200 to everything that is not about the token.
    for (status, reply) in [
        (413, client.modern("tools/call", call).await),
        (200, client.post("/mcp/v1/tools/call", json!("x".repeat(2000))).await),
        (413, client.post("/mcp", json!("x".repeat(8 << 20))).await),
    ] {
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (status, &json!(-32602)));
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains("1000"));
        assert_eq!(reply.json()["error"]["data"]["error_type"], "TooLarge");
    }
    let reply = client.send("POST", "/mcp/v1/tools/call", &[("content-type", "text/plain")], r#"{"id": 77}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (200, &json!(-32600)));
    assert_eq!(reply.json()["id"], json!(77));
    assert_eq!(reply.json()["error"]["data"]["error_type"], "InvalidRequest");
}

#[tokio::test]
async fn plain_text_errors_of_rmcp_become_json() {
    let server = TestServer::new().await;
    let client = server.client();
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    let picky = [("content-type", "application/json"), ("accept", "text/html")];
    let reply = client.send("POST", "/mcp", &picky, ping.clone()).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["id"]), (406, &json!(3)));
    let mut lost = server.client();
    lost.session = Some("no-such-session".to_owned());
    let reply = lost.legacy("tools/list", json!({})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (404, &json!(-32600)));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("start again with `initialize`"));
    let reply = client.send("PUT", "/mcp", &[], "").await;
    assert_eq!((reply.status.as_u16(), reply.header("allow").is_empty()), (405, false));
    assert_eq!(reply.json()["jsonrpc"], "2.0");
}

#[tokio::test]
async fn headers_that_contradict_the_message_are_refused() {
    let server = TestServer::new().await;
    let client = server.client();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "_meta": meta}});
    let headers =
        [JSON[0], JSON[1], ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "wait")];
    let reply = client.send("POST", "/mcp", &headers, body.to_string()).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (400, &json!(-32020)));
}

#[tokio::test]
async fn an_unknown_path_gets_the_list_of_paths() {
    let server = TestServer::new().await;
    let reply = server.client().get("/elsewhere").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]), (404, &json!("not_found")));
    let reply = server.client().get("/mcp/v1/tools/call").await;
    assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "POST"));
    assert_eq!(reply.json()["error"], "method_not_allowed");
    let reply = server.client().post("/mcp?tools=bogus", json!({})).await;
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(reply.status == 400 && message.contains("`folded` or `unfolded`"), "{message}");
    let reply = server.client().get("/mcp/stream").await;
    assert_eq!((reply.status.as_u16(), reply.header("upgrade")), (426, "sinew-mcp"));
}

#[tokio::test]
async fn a_client_that_accepts_anything_is_served() {
    let server = TestServer::new().await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    for accept in
        [&[("content-type", "application/json"), ("accept", "*/*")][..], &[("content-type", "application/json")]]
    {
        let reply = server.client().send("POST", "/mcp", accept, body.clone()).await;
        assert_eq!(reply.message()["result"]["serverInfo"]["name"], "sinew");
    }
}
