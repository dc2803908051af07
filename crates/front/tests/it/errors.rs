//! The error table at `/mcp`.

use serde_json::json;
use sinew_tool::ErrorKind;
use sinew_tool::error::{McpForm, TABLE};

use crate::server::TestServer;

#[tokio::test]
async fn faults_of_the_request_are_json_rpc_errors() {
    let server = TestServer::new().await;
    let client = server.client();
    for (method, params) in [
        ("tools/call", json!({"name": "no_such_tool"})),
        ("tools/call", json!({"arguments": {}})),
        ("tools/call", json!({"name": "echo", "arguments": [1]})),
        ("tools/list", json!({"cursor": "nonsense"})),
        ("tools/list", json!({"cursor": 5})),
        ("tools/list", json!({"cursor": "after:pz"})),
        ("resources/list", json!({"cursor": "nonsense"})),
        ("resources/list", json!({"cursor": {}})),
        ("resources/read", json!({"uri": "device://nobody"})),
    ] {
        let modern = client.modern(method, params.clone()).await;
        assert_eq!(modern.json()["error"]["code"], -32602, "{method} {params}: {}", modern.json());
        let mut older = server.client();
        older.initialize(json!({})).await;
        let legacy = older.legacy(method, params.clone()).await.message();
        assert_eq!(legacy["error"]["code"], -32602, "{method} {params}: {legacy}");
    }
}

#[tokio::test]
async fn methods_that_were_not_declared_are_unknown() {
    let server = TestServer::new().await;
    let client = server.client();
    let prompt = json!({"name": "x"});
    let completion = json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}});
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", prompt),
        ("completion/complete", completion),
        ("ping", json!({})),
        ("nonsense", json!({})),
    ] {
        let reply = client.modern(method, params).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (404, &json!(-32601)), "{method}");
        assert_eq!(reply.json()["error"]["message"], format!("unknown method `{method}`"));
    }
}

#[tokio::test]
async fn wrong_arguments_give_a_result_that_names_them() {
    let server = TestServer::new().await;
    let result =
        server.client().modern("tools/call", json!({"name": "echo", "arguments": {"text": 5}})).await.json()["result"]
            .clone();
    assert_eq!(result["isError"], true);
    let message = result["content"][0]["text"].as_str().unwrap();
    assert!(message.contains("text"), "{message}");
    assert_eq!(result["_meta"]["sinew/error"]["error_type"], "ValidationError");
}

#[tokio::test]
async fn every_failure_of_a_device_gives_a_result_with_the_standard_object() {
    let server = TestServer::new().await;
    let client = server.client();
    // The fake device can return all of these, but not faults of the request itself, and only the gateway asks people.
    let of_others = [ErrorKind::InputRequired, ErrorKind::ApprovalNeeded];
    for row in TABLE.iter().filter(|row| row.mcp == McpForm::Result && !of_others.contains(&row.kind)) {
        let params = json!({"name": "fail", "arguments": {"type": row.error_type}});
        let result = client.modern("tools/call", params).await.json()["result"].clone();
        let object = &result["_meta"]["sinew/error"];
        assert_eq!((&result["isError"], &object["status"]), (&json!(true), &json!("failure")), "{row:?}");
        assert_eq!(object["error_type"], row.error_type);
        assert_eq!(result["content"][0]["text"], object["error_message"]);
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "the message stands once");
        assert_eq!(object["error_details"]["code"], row.code);
        assert_eq!(&result["structuredContent"], object);
    }
}

#[tokio::test]
async fn a_tool_with_an_output_schema_fails_without_structured_content() {
    let server = TestServer::new().await;
    let result = server.client().modern("tools/call", json!({"name": "fail_declared"})).await.json()["result"].clone();
    assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(true), None));
    assert_eq!(result["_meta"]["sinew/error"]["error_message"], "no number");
}
