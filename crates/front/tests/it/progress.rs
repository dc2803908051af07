//! Long calls report that they still run. The clock is paused: it advances only when nothing else happens.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_gateway::{AccessSettings, ApprovalDecision, Principal, Role};
use sinew_tool::settings::Setting;
use tokio::time::Instant;

use crate::lines::{Pipe, hear, initialize, pipe, say};
use crate::server::TestServer;

fn wait(id: i64, token: Option<&str>) -> String {
    call_with("wait", id, token)
}

fn call_with(tool: &str, id: i64, token: Option<&str>) -> String {
    let mut params = json!({"name": tool, "arguments": {}});
    if let Some(token) = token {
        params["_meta"] = json!({"progressToken": token});
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The answer, after reports.
async fn answer(pipe: &mut Pipe) -> Value {
    loop {
        let message = hear(&mut pipe.reader).await;
        if message.get("id").is_some() {
            return message;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_progress_token_may_take_90_seconds_and_is_never_silent_for_5() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    say(&mut pipe.writer, &wait(1, Some("t"))).await;
    assert_eq!(server.signal().await, "started");
    let started = Instant::now();
    let (mut last, mut at) = (0.0, started);
    while started.elapsed() < Duration::from_secs(90) {
        let report = hear(&mut pipe.reader).await;
        assert_eq!(
            (&report["method"], &report["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t"))
        );
        let progress = report["params"]["progress"].as_f64().unwrap();
        assert!(progress > last && at.elapsed() <= Duration::from_secs(5), "{report} after {:?}", at.elapsed());
        (last, at) = (progress, Instant::now());
    }
    server.go_on();
    assert_eq!(answer(&mut pipe).await["result"]["content"][0]["text"], "waited");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_nothing_keeps_a_caller_for_30_seconds_and_one_with_a_progress_token_for_120() {
    for (token, seconds) in [(None, 30), (Some("t"), 120)] {
        let server = TestServer::new().await;
        let mut pipe = pipe(&server);
        say(&mut pipe.writer, &initialize()).await;
        hear(&mut pipe.reader).await;
        let started = Instant::now();
        say(&mut pipe.writer, &wait(1, token)).await;
        let answer = answer(&mut pipe).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("no answer within {seconds} s")), "{text}");
        // The clock runs on while the store works.
        assert!(started.elapsed().as_secs() >= seconds);
        assert_eq!([server.signal().await, server.signal().await], ["started", "dropped"]);
    }
}

/// A person decides 40 s after the call. Without a progress token, the device may need 30 of the 55 s.
#[tokio::test(start_paused = true)]
async fn a_caller_with_a_progress_token_waits_longer_for_a_person() {
    for (token, is_made) in [(None, false), (Some("t"), true)] {
        let server = TestServer::new().await;
        let mut access = AccessSettings::default();
        let ask = json!({"rules": [{"id": "ask", "tools": ["measure"], "do": "ask", "ask": {"wait": 50}}]});
        Setting::read(&mut access.policy, ask).unwrap();
        server.gateway.set_access(access).unwrap();
        let mut pipe = pipe(&server);
        say(&mut pipe.writer, &initialize()).await;
        hear(&mut pipe.reader).await;
        let mut asked = server.gateway.approval_changes();
        say(&mut pipe.writer, &call_with("measure", 1, token)).await;
        asked.changed().await.unwrap();
        let gateway = server.gateway.clone();
        let person = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(40)).await;
            let id = gateway.approval_requests().remove(0).id;
            gateway.decide_approval(&Principal::new("person", Role::Admin), "test", &id, ApprovalDecision::Once)
        });
        let result = answer(&mut pipe).await["result"].clone();
        assert_eq!(result["structuredContent"] == json!({"n": 21.5}), is_made, "{result}");
        assert_eq!(result["_meta"]["sinew/error"]["error_type"] == "ApprovalNeeded", !is_made, "{result}");
        assert!(person.await.unwrap().is_ok(), "the request outlives a call that gave up");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_progress_token_gets_no_reports() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    say(&mut pipe.writer, &wait(1, None)).await;
    assert_eq!(server.signal().await, "started");
    tokio::time::sleep(Duration::from_secs(20)).await;
    server.go_on();
    assert_eq!(hear(&mut pipe.reader).await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn reports_of_the_device_are_passed_on_between_those_of_the_gateway() {
    let server = TestServer::new().await;
    let mut pipe = pipe(&server);
    say(&mut pipe.writer, &initialize()).await;
    hear(&mut pipe.reader).await;
    let params = json!({"name": "slow_steps", "arguments": {}, "_meta": {"progressToken": 7}});
    say(&mut pipe.writer, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string())
        .await;
    let mut reports: Vec<Value> = Vec::new();
    loop {
        let message = hear(&mut pipe.reader).await;
        if message.get("id").is_some() {
            break;
        }
        reports.push(message["params"].clone());
    }
    let numbers: Vec<f64> = reports.iter().map(|report| report["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, two| one < two), "{numbers:?}");
    let steps: Vec<&str> = reports
        .iter()
        .filter_map(|report| report["message"].as_str())
        .filter(|text| text.starts_with("step"))
        .collect();
    assert_eq!(steps, ["step 0", "step 1", "step 2"]);
    assert!(reports.len() >= 3 + 3 * 2, "10 s each: {reports:?}");
}
