//! Each client gets what its revision of MCP knows, and may send what its revision allows.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sinew_tool::{Hints, Tool};

use crate::client::Client;
use crate::lines::{call, hear, pipe, say};
use crate::server::TestServer;

fn initialize(revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

async fn session(server: &TestServer, revision: &'static str) -> Client {
    let mut client = server.client();
    client.revision = revision;
    client.initialize(json!({})).await;
    client
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

#[tokio::test]
async fn a_tool_is_listed_with_the_fields_of_the_clients_revision() {
    let server = TestServer::new().await;
    let rich = Tool {
        title: Some("Rich".to_owned()),
        hints: Hints { read_only: Some(true), ..Hints::default() },
        ..Tool::new("rich", "Has it all", json!({"type": "object"}))
    };
    server.join("second", vec![rich.with_output_schema(json!({"type": "object"}))]);
    for (revision, fields) in [
        ("2024-11-05", vec![]),
        ("2025-03-26", vec!["annotations"]),
        ("2025-06-18", vec!["annotations", "outputSchema", "title"]),
        ("2025-11-25", vec!["annotations", "outputSchema", "title"]),
    ] {
        let client = session(&server, revision).await;
        let list = client.legacy("tools/list", json!({})).await.message();
        let basic = ["name", "description", "inputSchema"];
        let keys: BTreeSet<&str> = named(&list, "rich").as_object().unwrap().keys().map(String::as_str).collect();
        let further: Vec<&str> = keys.into_iter().filter(|key| !basic.contains(key)).collect();
        assert_eq!(further, fields, "{revision}");
        // A version is in `_meta`, which tools have had since titles.
        assert_eq!(named(&list, "measure").get("_meta").is_some(), revision >= "2025-06-18", "{revision}");
    }
}

#[tokio::test]
async fn a_result_has_structured_content_where_the_revision_knows_it() {
    let server = TestServer::new().await;
    for (revision, is_structured) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true)] {
        let mut pipe = pipe(&server);
        say(&mut pipe.writer, &initialize(revision)).await;
        let info = hear(&mut pipe.reader).await["result"].clone();
        assert_eq!(info["protocolVersion"], revision);
        assert_eq!(info["serverInfo"].get("title").is_some(), is_structured, "titles came with structured content");
        say(&mut pipe.writer, &call(1, "measure", json!({}))).await;
        let result = hear(&mut pipe.reader).await["result"].clone();
        assert_eq!(result.get("structuredContent").is_some(), is_structured, "{revision}: {result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, json!({"n": 21.5}));
        say(&mut pipe.writer, &call(2, "fail", json!({}))).await;
        let failure = hear(&mut pipe.reader).await["result"].clone();
        assert_eq!(
            (failure["isError"].as_bool(), failure.get("structuredContent").is_some()),
            (Some(true), is_structured)
        );
    }
}

#[tokio::test]
async fn a_stream_starts_with_an_event_without_a_message_only_where_the_revision_has_it() {
    let server = TestServer::new().await;
    for (revision, has_priming) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)]
    {
        let mut client = server.client();
        let first: Value = serde_json::from_str(&initialize(revision)).unwrap();
        let mut stream = client.legacy_stream(first).await;
        let opened = stream.next().await.expect("an answer");
        assert_eq!((opened["result"]["protocolVersion"].as_str(), stream.was_primed), (Some(revision), has_priming));
        client.session = Some(stream.headers["mcp-session-id"].to_str().unwrap().to_owned());
        client.revision = revision;
        client.notify("notifications/initialized", json!({})).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let mut stream = client.legacy_stream(list).await;
        assert_eq!(stream.next().await.expect("an answer")["id"], 1);
        assert_eq!(stream.was_primed, has_priming, "{revision}");
        let mut notices = client.listen().await;
        server.join(revision, vec![Tool::new(format!("of-{revision}"), "A new tool", json!({"type": "object"}))]);
        notices.find("notifications/tools/list_changed").await;
        assert_eq!(notices.was_primed, has_priming, "{revision}");
    }
}

#[tokio::test]
async fn a_revision_from_the_future_is_answered_with_one_we_know() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize("2031-01-01")).await;
    let agreed = hear(&mut pipe.reader).await["result"]["protocolVersion"].clone();
    assert_eq!(agreed, "2025-11-25");
    say(&mut pipe.writer, &call(1, "measure", json!({}))).await;
    assert!(hear(&mut pipe.reader).await["result"].get("structuredContent").is_some());
}

fn batch() -> Value {
    let request = |id: i64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let echo: Value = serde_json::from_str(&call(3, "echo", json!({"text": "hi"}))).unwrap();
    json!([request(1, "ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 5, echo, request(4, "nonsense")])
}

#[track_caller]
fn check_batch(answers: &[Value]) {
    let find = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!(find(json!(1))["result"], json!({}));
    assert_eq!(find(json!(3))["result"]["content"][0]["text"], "hi");
    assert_eq!(find(json!(4))["error"]["code"], -32601);
    assert_eq!(find(Value::Null)["error"]["code"], -32600);
}

#[tokio::test]
async fn a_batch_is_answered_in_one_line_by_sessions_of_2025_03_26_and_refused_by_others() {
    let server = TestServer::new().await;
    let mut old = pipe(&server);
    say(&mut old.writer, &initialize("2025-03-26")).await;
    hear(&mut old.reader).await;
    say(&mut old.writer, &batch().to_string()).await;
    check_batch(hear(&mut old.reader).await.as_array().unwrap());
    say(&mut old.writer, r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
    say(&mut old.writer, "[]").await;
    assert_eq!(hear(&mut old.reader).await["error"]["code"], -32600, "only the empty batch is answered");

    let mut later = pipe(&server);
    say(&mut later.writer, &initialize("2025-06-18")).await;
    hear(&mut later.reader).await;
    say(&mut later.writer, &batch().to_string()).await;
    let refused = hear(&mut later.reader).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("2025-03-26"), "{refused}");
}

#[tokio::test]
async fn a_cancelled_request_of_a_batch_does_not_hold_up_the_others() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize("2025-03-26")).await;
    hear(&mut pipe.reader).await;
    let wait: Value = serde_json::from_str(&call(1, "wait", json!({}))).unwrap();
    let echo: Value = serde_json::from_str(&call(2, "echo", json!({"text": "hi"}))).unwrap();
    say(&mut pipe.writer, &json!([wait, echo]).to_string()).await;
    assert_eq!(server.signal().await, "started");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    say(&mut pipe.writer, &cancel.to_string()).await;
    let answers = hear(&mut pipe.reader).await;
    assert_eq!(answers.as_array().unwrap().len(), 1, "{answers}");
    assert_eq!(answers[0]["id"], 2);
    assert_eq!(server.signal().await, "dropped");
}

#[tokio::test]
async fn a_batch_over_http_is_answered_on_one_stream() {
    let server = TestServer::new().await;
    let client = session(&server, "2025-03-26").await;
    let mut stream = client.legacy_stream(batch()).await;
    let mut answers = Vec::new();
    while let Some(message) = stream.next().await {
        answers.push(message);
    }
    check_batch(&answers);
    let notified = client.legacy_send(json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}])).await;
    assert_eq!(notified.status, 202);
    let later = session(&server, "2025-06-18").await;
    let refused = later.legacy_send(batch()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (400, &json!(-32600)));
}
