//! Faults of clients that are repaired, and errors that name the request.

use serde_json::{Value, json};
use sinew_front::{FrontLimits, FrontSettings};

use crate::lines::{call, hear, initialize, pipe, say};
use crate::server::TestServer;

/// What JavaScript makes of `"😀".slice(0, 1)`.
const HALF: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\ud83d"}}}"#;

#[tokio::test]
async fn half_a_surrogate_pair_is_replaced_and_the_call_goes_on() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    say(&mut pipe.writer, HALF).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "a\u{fffd}");

    let mut client = server.client();
    client.initialize(json!({})).await;
    let session = client.session.clone().unwrap();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", session.as_str()),
    ];
    let reply = client.send("POST", "/mcp", &headers, HALF).await;
    assert_eq!(reply.message()["result"]["content"][0]["text"], "a\u{fffd}");
    let reply = client.send("POST", "/mcp/v1/tools/call", &[("content-type", "application/json")], HALF).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "a\u{fffd}");
    let body = r#"{"tool":"echo","arguments":{"text":"a\uDE00"}}"#;
    let reply = client.send("POST", "/api/v1/call", &[("content-type", "application/json")], body).await;
    assert_eq!(reply.json()["content"][0]["text"], "a\u{fffd}");
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_refused_everywhere_with_the_id() {
    let server = TestServer::new().await;
    let message = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"\xff\"}}}";
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    tokio::io::AsyncWriteExt::write_all(&mut pipe.writer, &[message.as_slice(), b"\n"].concat()).await.unwrap();
    let over_lines = hear(&mut pipe.reader).await;
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let over_http = server.client().send("POST", "/mcp", &headers, message.as_slice()).await.json();
    assert_eq!(over_lines, over_http);
    assert_eq!((&over_http["error"]["code"], &over_http["id"]), (&json!(-32700), &json!(1)), "{over_http}");
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &format!("\u{feff}{}", initialize())).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn a_byte_order_mark_on_a_line_of_its_own_is_skipped() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, "\u{feff}").await;
    say(&mut pipe.writer, &initialize()).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn a_batch_that_is_none_is_an_error_in_a_session_with_batches() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize().replace("2025-06-18", "2025-03-26")).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["protocolVersion"], "2025-03-26");
    say(&mut pipe.writer, "[]").await;
    let refused = hear(&mut pipe.reader).await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null), "{refused}");
    say(&mut pipe.writer, r#"[1, {"jsonrpc":"2.0","id":1e400,"method":"ping"}]"#).await;
    let refused = {
        let mut line = String::new();
        tokio::io::AsyncBufReadExt::read_line(&mut pipe.reader, &mut line).await.unwrap();
        line
    };
    assert!(refused.starts_with('[') && refused.matches("-32600").count() == 1, "{refused}");
    assert!(refused.contains("\"id\":null,") && refused.contains("\"id\":1e400,"), "{refused}");
    say(&mut pipe.writer, r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#).await;
    let refused = hear(&mut pipe.reader).await;
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("not inside another batch"), "{refused}");
}

#[tokio::test]
async fn an_error_has_the_id_of_the_request_also_when_it_is_no_good() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    let long = "x".repeat(5 << 20);
    for (id, line) in [
        ("1.5", r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned()),
        ("18446744073709551617", r#"{"jsonrpc":"2.0","id":18446744073709551617,"method":"ping"}"#.to_owned()),
        ("\"a\"", format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{long}"}}"#)),
        ("9", format!(r#"{{"method":"x","params":{{"id":1,"t":"{long}"}},"jsonrpc":"2.0","id":9}}"#)),
        ("7", r#"{"jsonrpc":"2.0","id":7,"method":"ping",}"#.to_owned()),
        ("1e400", r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#.to_owned()),
        (r#""a\ufffd""#, format!(r#"{{"jsonrpc":"2.0","id":"a\ud83d","method":"{long}"}}"#)),
    ] {
        say(&mut pipe.writer, &line).await;
        let mut answer = String::new();
        tokio::io::AsyncBufReadExt::read_line(&mut pipe.reader, &mut answer).await.unwrap();
        assert!(answer.contains(&format!("\"id\":{id},")), "{id}: {answer}");
    }
    say(&mut pipe.writer, &call(1, "echo", json!({"text": "still here"}))).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["content"][0]["text"], "still here");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_with_its_id() {
    let limits = FrontLimits { body: 1024, ..FrontLimits::default() };
    let server = TestServer::with(FrontSettings { limits, ..FrontSettings::default() }, None).await;
    let body = json!({"jsonrpc": "2.0", "method": "ping", "params": {"x": "x".repeat(2000)}, "id": "late"});
    let reply = server.client().post("/mcp", body).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["id"]), (413, &json!("late")));
}

#[tokio::test]
async fn initialize_without_a_version_is_told_so() {
    let server = TestServer::new().await;
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    let reply = server.client().post("/mcp", serde_json::from_str(bare).unwrap()).await.json();
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32602), &json!(1)));
    assert!(reply["error"]["message"].as_str().unwrap().contains("protocolVersion"), "{reply}");
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, bare).await;
    let refused = hear(&mut pipe.reader).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("protocolVersion"), "{refused}");
    say(&mut pipe.writer, &initialize()).await;
    assert_eq!(hear(&mut pipe.reader).await["result"]["protocolVersion"], "2025-06-18", "it may try again");
}

#[tokio::test]
async fn the_list_of_resource_templates_is_empty() {
    let server = TestServer::new().await;
    let reply = server.client().modern("resources/templates/list", json!({})).await.json();
    assert_eq!(reply["result"]["resourceTemplates"], Value::Array(vec![]));
}
