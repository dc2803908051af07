//! Calls that wait for a person, as MCP clients of both eras ask about them.

use serde_json::{Value, json};
use sinew_gateway::{AccessSettings, ApprovalDecision, Principal, Role};
use sinew_tool::settings::Setting;

use crate::client::Client;
use crate::server::TestServer;

const PAGE: &str = "https://sinew.example/console/approval?id=";

/// A gateway that asks about `echo`.
async fn server(by: &str) -> TestServer {
    waiting_server(by, 0).await
}

async fn waiting_server(by: &str, wait: u64) -> TestServer {
    let server = TestServer::new().await;
    let mut access = AccessSettings::default();
    let ask = json!({"rules": [{"id": "ask", "tools": ["echo"], "do": "ask", "ask": {"wait": wait, "by": by}}]});
    Setting::read(&mut access.policy, ask).unwrap();
    server.gateway.set_access(access).unwrap();
    server.gateway.set_approval_page(PAGE.to_owned());
    server
}

fn client(server: &TestServer, capabilities: Value) -> Client {
    let (_, token) = server.gateway.tokens().create(Role::Client, "model").unwrap();
    let mut client = server.client().with_token(Some(&token));
    client.capabilities = capabilities;
    client
}

async fn call(client: &Client, more: Value) -> Value {
    let mut params = json!({"name": "echo", "arguments": {"text": "hi"}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.modern("tools/call", params).await.json()["result"].clone()
}

fn answer(action: &str, state: &Value) -> Value {
    json!({"inputResponses": {"sinew/approval": {"action": action}}, "requestState": state})
}

fn decide(server: &TestServer, decision: ApprovalDecision) {
    let id = server.gateway.approval_requests().remove(0).id;
    server.gateway.decide_approval(&Principal::new("person", Role::Admin), "test", &id, decision).unwrap();
}

fn is_refused(result: &Value) -> bool {
    result["isError"] == true
}

#[tokio::test]
async fn a_modern_client_is_led_to_the_page_on_which_a_person_decides() {
    let server = server("person").await;
    let client = client(&server, json!({"elicitation": {"form": {}, "url": {}}}));
    let asked = call(&client, json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["sinew/approval"];
    let id = server.gateway.approval_requests()[0].id.clone();
    assert_eq!((&question["method"], &question["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
    assert_eq!(question["params"]["url"], format!("{PAGE}{id}"));
    // What the client says decides nothing.
    let early = call(&client, answer("accept", &asked["requestState"])).await;
    assert!(is_refused(&early) && early.to_string().contains(&id), "{early}");
    decide(&server, ApprovalDecision::Once);
    let made = call(&client, answer("accept", &asked["requestState"])).await;
    assert_eq!(made["content"][0]["text"], "hi", "{made}");
    // The state of an old round opens nothing more.
    let again = call(&client, answer("accept", &asked["requestState"])).await;
    assert_eq!(again["resultType"], "input_required", "{again}");
}

#[tokio::test]
async fn what_a_person_denied_is_not_asked_again() {
    let server = server("person").await;
    let client = client(&server, json!({"elicitation": {"url": {}}}));
    let asked = call(&client, json!({})).await;
    decide(&server, ApprovalDecision::Deny);
    let denied = call(&client, answer("accept", &asked["requestState"])).await;
    assert!(is_refused(&denied) && denied.to_string().contains("did not approve"), "{denied}");
    assert!(server.gateway.approval_requests().is_empty());
}

#[tokio::test]
async fn answers_that_nobody_asked_for_approve_nothing() {
    for by in ["client", "person"] {
        let server = server(by).await;
        let client = client(&server, json!({"elicitation": {"form": {}, "url": {}}}));
        let accept = json!({"action": "accept", "content": {}});
        let unasked = json!({"inputResponses": {"sinew/approval": accept, "consent": accept, "approval": accept}});
        let first = call(&client, unasked.clone()).await;
        assert_eq!(first["resultType"], "input_required", "{first}");
        let id = server.gateway.approval_requests()[0].id.clone();
        let forged = json!({"inputResponses": {"sinew/approval": accept}, "requestState": json!({"sinew/approval": id}).to_string()});
        let forged = client.modern("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}, "inputResponses": forged["inputResponses"], "requestState": forged["requestState"]})).await.json();
        assert_eq!(forged["error"]["code"], -32602, "{forged}");
        // The state of one call is none for another.
        let other = json!({"name": "echo", "arguments": {"text": "other"}, "inputResponses": unasked["inputResponses"], "requestState": first["requestState"]});
        assert_eq!(client.modern("tools/call", other).await.json()["error"]["code"], -32602);
        assert_eq!(server.gateway.approval_requests().len(), 1);
    }
}

#[tokio::test]
async fn a_modern_client_asks_its_user_where_a_rule_leaves_it_to_the_client() {
    let server = server("client").await;
    let client = client(&server, json!({"elicitation": {}}));
    let asked = call(&client, json!({})).await;
    let question = &asked["inputRequests"]["sinew/approval"]["params"];
    assert!(question["message"].as_str().unwrap().contains("\"text\":\"hi\""), "{question}");
    assert_eq!(call(&client, answer("accept", &asked["requestState"])).await["content"][0]["text"], "hi");
    let asked = call(&client, json!({})).await;
    let declined = call(&client, answer("decline", &asked["requestState"])).await;
    assert!(is_refused(&declined) && declined.to_string().contains("sinew approvals approve"), "{declined}");
    // A client without forms waits for a person like all others.
    let plain = client.with_capabilities(json!({}));
    assert!(call(&plain, json!({})).await.to_string().contains("ApprovalNeeded"));
}

#[tokio::test]
async fn an_older_client_is_asked_over_its_connection() {
    for (by, mode, action, is_made) in [
        ("client", Value::Null, "accept", true),
        ("client", Value::Null, "decline", false),
        ("person", json!("url"), "accept", false),
    ] {
        let server = waiting_server(by, 25).await;
        let mut client = client(&server, json!({}));
        client.revision = "2025-11-25";
        client.initialize(json!({"elicitation": {"form": {}, "url": {}}})).await;
        let mut notices = client.listen().await;
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}});
        let mut stream = client.legacy_stream(message).await;
        let question = stream.find("elicitation/create").await;
        assert_eq!(question["params"]["mode"], mode, "{question}");
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}});
        assert_eq!(client.legacy_send(reply).await.status, 202);
        if by == "person" {
            decide(&server, ApprovalDecision::Deny);
            let done = notices.find("notifications/elicitation/complete").await;
            assert_eq!(done["params"], json!({"elicitationId": question["params"]["elicitationId"]}));
        }
        let last = loop {
            let message = stream.next().await.expect("an answer");
            if message["id"] == 7 {
                break message["result"].clone();
            }
        };
        assert_eq!(!is_refused(&last), is_made, "{by} {action} {last}");
    }
}
