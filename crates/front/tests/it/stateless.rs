//! Clients of 2026-07-28, without a handshake or session.

use serde_json::{Value, json};
use sinew_front::FrontSettings;
use sinew_tool::Tool;

use crate::server::TestServer;

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn discover_returns_versions_capabilities_and_instructions() {
    let server = TestServer::new().await;
    let result = server.client().modern("server/discover", json!({})).await.json()["result"].clone();
    let versions = result["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")), "{versions:?}");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(result["capabilities"]["resources"], json!({"subscribe": true, "listChanged": true}));
    assert_eq!(result["capabilities"].get("prompts"), None);
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "sinew");
    assert_eq!(
        result["instructions"].as_str().unwrap_or_default(),
        server.gateway.seen_by(&sinew_gateway::Principal::new("test", sinew_gateway::Role::Admin)).instructions()
    );
    assert_eq!(result["cacheScope"], "private");
}

#[tokio::test]
async fn tools_are_listed_in_order_and_in_stable_pages() {
    let server = TestServer::with(FrontSettings { page_size: 4, ..FrontSettings::default() }, None).await;
    let client = server.client();
    let mut cursor = None;
    let mut all = Vec::new();
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let page = client.modern("tools/list", params).await.json();
        assert_eq!((&page["result"]["cacheScope"], page["result"]["ttlMs"].is_u64()), (&json!("private"), true));
        all.extend(names(&page));
        match page["result"].get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(all, sorted);
    for name in ["echo", "wait", "list_devices", "get_device_events"] {
        assert!(all.contains(&name.to_owned()), "{name} is missing from {all:?}");
    }
}

#[tokio::test]
async fn a_version_is_listed_when_the_device_gave_one() {
    let server = TestServer::new().await;
    let list = server.client().modern("tools/list", json!({})).await.json();
    let tool = |name: &str| {
        let tools = list["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap().clone()
    };
    assert_eq!(tool("measure")["_meta"]["sinew/version"], "2.1.0");
    assert_eq!(tool("measure")["outputSchema"], json!({"type": "object", "properties": {}}));
    assert_eq!(tool("echo").get("_meta"), None);
}

#[tokio::test]
async fn a_call_is_answered_with_json() {
    let server = TestServer::new().await;
    let client = server.client();
    let reply = client.modern("tools/call", json!({"name": "echo", "arguments": {"text": "héllo"}})).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "application/json"));
    let result = reply.json()["result"].clone();
    assert_eq!((&result["content"][0]["text"], &result["resultType"]), (&json!("héllo"), &json!("complete")));
    let result = client.modern("tools/call", json!({"name": "measure"})).await.json()["result"].clone();
    assert_eq!(result["structuredContent"], json!({"n": 21.5}));
    let result = client.modern("tools/call", json!({"name": "picture"})).await.json()["result"].clone();
    assert_eq!(
        (&result["content"][0]["type"], &result["content"][0]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
}

#[tokio::test]
async fn progress_and_log_are_sent_on_the_stream_of_the_call_if_wanted() {
    let server = TestServer::new().await;
    let client = server.client();
    let quiet = client.modern("tools/call", json!({"name": "talk"})).await;
    assert_eq!(quiet.header("content-type"), "application/json", "nothing was wanted, so nothing was said");
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "warning"});
    let mut stream = client.modern_stream("tools/call", json!({"name": "talk", "_meta": meta})).await;
    let mut heard = Vec::new();
    while let Some(message) = stream.next().await {
        heard.push(message);
    }
    let progress: Vec<_> = heard.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0], "each report exceeds the one before");
    let logged: Vec<_> = heard.iter().filter(|message| message["method"] == "notifications/message").collect();
    assert_eq!(logged.len(), 1);
    assert_eq!((&logged[0]["params"]["level"], &logged[0]["params"]["data"]), (&json!("warning"), &json!("warm")));
    assert_eq!(heard.last().unwrap()["result"]["content"][0]["text"], "talked");
}

#[tokio::test]
async fn a_call_is_dropped_when_its_client_disconnects() {
    let server = TestServer::new().await;
    let client = server.client();
    {
        let call = client.modern("tools/call", json!({"name": "wait"}));
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("the call cannot end"),
            signal = server.signal() => assert_eq!(signal, "started"),
        }
    }
    assert_eq!(server.signal().await, "dropped");
}

#[tokio::test]
async fn questions_are_answered_in_rounds_until_the_call_can_end() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.capabilities = json!({"elicitation": {}});
    let call = |answers: Value, state: Value| {
        let params = json!({"name": "ask_name", "arguments": {}, "inputResponses": answers, "requestState": state});
        client.modern("tools/call", params)
    };
    let first =
        client.modern("tools/call", json!({"name": "ask_name", "arguments": {}})).await.json()["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["who"]["method"], "elicitation/create");
    assert_eq!(first["inputRequests"]["who"]["params"]["message"], "Your name?");
    let accept = |key: &str, field: &str, text: &str| json!({key: {"action": "accept", "content": {field: text}}});
    let second = call(accept("who", "name", "Ada"), first["requestState"].clone()).await.json()["result"].clone();
    assert_eq!(second["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["what"]);
    let last = call(accept("what", "colour", "blue"), second["requestState"].clone()).await.json()["result"].clone();
    assert_eq!(last["content"][0]["text"], "Ada likes blue");
}

#[tokio::test]
async fn the_state_of_a_call_is_valid_for_one_caller_and_one_call() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.capabilities = json!({"elicitation": {}});
    let first =
        client.modern("tools/call", json!({"name": "ask_name", "arguments": {}})).await.json()["result"].clone();
    let state = first["requestState"].as_str().unwrap();
    let answers = json!({"who": {"action": "accept", "content": {"name": "Eve"}}});
    let call = |arguments: Value, state: String| json!({"name": "ask_name", "arguments": arguments, "inputResponses": answers, "requestState": state});
    let tampered = client.modern("tools/call", call(json!({}), format!("{state}x"))).await.json();
    assert_eq!(tampered["error"]["code"], -32602);
    let other_arguments = client.modern("tools/call", call(json!({"device": "lamp"}), state.to_owned())).await.json();
    assert_eq!(other_arguments["error"]["code"], -32602);
    // Another caller.
    let (_, token) = server.gateway.tokens().create(sinew_gateway::Role::Client, "eve").unwrap();
    let mut eve = server.client().with_token(Some(&token));
    eve.capabilities = json!({"elicitation": {}});
    let foreign = eve.modern("tools/call", call(json!({}), state.to_owned())).await.json();
    assert_eq!(foreign["error"]["code"], -32602);
}

#[tokio::test]
async fn an_answer_of_the_wrong_form_is_asked_again() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.capabilities = json!({"elicitation": {}});
    for answers in [json!({"who": 5}), json!({"who": {"action": "shrug"}}), json!({"other": {"action": "accept"}})] {
        let params = json!({"name": "ask_name", "arguments": {}, "inputResponses": answers});
        let result = client.modern("tools/call", params).await.json()["result"].clone();
        assert!(result["inputRequests"]["who"].is_object(), "{result}");
    }
}

#[tokio::test]
async fn a_client_is_not_asked_what_it_cannot_answer() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.capabilities = json!({"elicitation": {}});
    let reply = client.modern("tools/call", json!({"name": "ask_model"})).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["code"], -32021);
    assert_eq!(reply.json()["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
}

#[tokio::test]
async fn a_subscription_gets_what_it_asked_for_and_ends_with_the_gateway() {
    let server = TestServer::new().await;
    let client = server.client();
    let uris = json!(["device://lamp/events", "device://lamp", "device://nobody"]);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
    let mut stream = client.modern_stream("subscriptions/listen", json!({"notifications": filter})).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let accepted = first["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap();
    assert_eq!(accepted.len(), 2, "{accepted:?}");

    server.lamp_sends("notifications/hot");
    let updated = stream.find("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "device://lamp/events");
    server.join("second", vec![Tool::new("blink", "Blinks", json!({"type": "object"}))]);
    let changed = stream.find("notifications/tools/list_changed").await;
    assert!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].is_i64());

    server.shutdown.cancel();
    let mut last = Value::Null;
    while let Some(message) = stream.next().await {
        last = message;
    }
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    server.stop().await;
}

#[tokio::test]
async fn devices_are_resources() {
    let server = TestServer::new().await;
    let client = server.client();
    let list = client.modern("resources/list", json!({})).await.json()["result"].clone();
    let uris: Vec<_> = list["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["device://lamp", "device://lamp/events"]);
    let read = |uri: &str| client.modern("resources/read", json!({"uri": uri}));
    let text = |reply: Value| -> Value {
        serde_json::from_str(reply["result"]["contents"][0]["text"].as_str().unwrap()).unwrap()
    };
    let lamp = text(read("device://lamp").await.json());
    assert_eq!((&lamp["id"], &lamp["state"]), (&json!("lamp"), &json!("ready")));
    assert!(lamp["tools"].as_array().unwrap().contains(&json!("echo")), "{lamp}");
    let start = client.get("/api/v1/events?device=lamp").await.json()["next"].as_str().unwrap().to_owned();
    server.lamp_sends("notifications/hot");
    client.get(&format!("/api/v1/events?device=lamp&since={start}&wait_ms=50000")).await;
    let events = text(read("device://lamp/events").await.json());
    let topics: Vec<_> = events["events"].as_array().unwrap().iter().map(|event| event["topic"].clone()).collect();
    assert!(topics.contains(&json!("notifications/hot")) && events["next"].is_string(), "{events}");
    let none = read("device://nobody").await.json();
    assert_eq!((&none["error"]["code"], &none["error"]["data"]["uri"]), (&json!(-32602), &json!("device://nobody")));
}

#[tokio::test]
async fn a_client_may_choose_one_tool_per_device() {
    let server = TestServer::new().await;
    let mut client = server.client();
    client.path = "/mcp?tools=unfolded".to_owned();
    let list = client.modern("tools/list", json!({})).await.json();
    assert!(names(&list).contains(&"lamp__echo".to_owned()), "{:?}", names(&list));
    let call = json!({"name": "lamp__echo", "arguments": {"text": "there"}});
    let result = client.modern("tools/call", call).await.json()["result"].clone();
    assert_eq!(result["content"][0]["text"], "there");
}

/// A call with a progress token goes through rmcp, one without takes the fast path.
#[tokio::test]
async fn the_fast_path_and_rmcp_give_the_same_answer() {
    let server = TestServer::new().await;
    let mut client = server.client();
    let calls = [
        json!({"name": "echo", "arguments": {"text": "ü \u{1F600} \"\\"}}),
        json!({"name": "echo", "arguments": {"text": 5}}),
        json!({"name": "echo"}),
        json!({"name": "nothing"}),
        json!({"name": "measure"}),
        json!({"name": "picture"}),
        json!({"name": "fail", "arguments": {"type": "timeout"}}),
        json!({"name": "fail_declared"}),
        json!({"name": "ask_name"}),
        json!({"name": "ask_model"}),
        json!({"name": "ask_name", "requestState": "made up"}),
    ];
    for capabilities in [json!({}), json!({"elicitation": {}, "sampling": {}})] {
        client.capabilities = capabilities;
        for call in &calls {
            let mut slow = call.clone();
            slow["_meta"] = json!({"progressToken": 1});
            let [mut short, mut long] =
                [client.modern("tools/call", call.clone()).await, client.modern("tools/call", slow).await]
                    .map(|reply| (reply.status, reply.header("content-type").to_owned(), reply.json()));
            for (_, _, answer) in [&mut short, &mut long] {
                answer["id"].take();
                // Sealed with a new nonce each time.
                answer["result"]["requestState"].take();
            }
            assert_eq!(short, long, "{call}");
        }
    }
}
