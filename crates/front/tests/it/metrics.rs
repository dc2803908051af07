//! `/metrics`.

use serde_json::json;
use sinew_gateway::Role;

use crate::server::TestServer;

/// The value of a metric with its labels, as it stands in the text.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test]
async fn calls_are_counted_by_family_outcome_and_endpoint() {
    let server = TestServer::new().await;
    let (_, token) = server.gateway.tokens().create(Role::Client, "prometheus").unwrap();
    let client = server.client().with_token(Some(&token));
    client.post("/api/v1/call", json!({"device": "lamp", "tool": "measure"})).await;
    client.post("/api/v1/call", json!({"device": "lamp", "tool": "measure"})).await;
    client.post("/api/v1/call", json!({"device": "lamp", "tool": "fail"})).await;
    client.post("/api/v1/call", json!({"device": "nobody", "tool": "measure\nsinew_calls_total 7"})).await;
    let answer = client.get("/metrics").await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let calls = |labels: &str| value(&text, &format!("sinew_calls_total{{{labels}}}"));
    assert_eq!(calls("family=\"board\",outcome=\"ok\",via=\"api\""), Some(2.0), "{text}");
    assert_eq!(calls("family=\"board\",outcome=\"ActionFailed\",via=\"api\""), Some(1.0));
    assert_eq!(calls("family=\"none\",outcome=\"DeviceNotFound\",via=\"api\""), Some(1.0));
    assert_eq!(value(&text, "sinew_call_duration_seconds_count"), Some(4.0));
    assert_eq!(value(&text, "sinew_call_duration_seconds_bucket{le=\"60.0\"}"), Some(4.0));
    // Without a last bucket for everything, Prometheus computes no quantile.
    assert_eq!(value(&text, "sinew_call_duration_seconds_bucket{le=\"+Inf\"}"), Some(4.0), "{text}");
    assert_eq!(value(&text, "sinew_policy_decisions_total{verdict=\"allow\"}"), Some(3.0));
    assert_eq!(value(&text, "sinew_devices{family=\"board\",state=\"ready\"}"), Some(1.0));
    assert_eq!(value(&text, "sinew_device_connections_total{family=\"board\"}"), Some(1.0));
    assert_eq!(value(&text, "sinew_recording"), Some(1.0));
    assert!(value(&text, "sinew_store_commit_seconds_count").is_some_and(|commits| commits > 0.0));
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains("lamp") && !text.contains("measure"), "no label is chosen by a device or a client: {text}");
}

#[tokio::test]
async fn metrics_need_a_token() {
    let server = TestServer::new().await;
    assert_eq!(server.client().with_token(None).get("/metrics").await.status, 401);
}
