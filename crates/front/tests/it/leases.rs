//! Leases as clients of both eras name them, and administrators break them.

use serde_json::{Value, json};
use sinew_gateway::Role;

use crate::client::Client;
use crate::server::TestServer;

/// A call of one of two agents that share a token.
async fn measure(client: &Client, lease: Option<&str>) -> Value {
    let mut params = json!({"name": "measure", "arguments": {}});
    if let Some(lease) = lease {
        params["_meta"] = json!({"sinew/lease": lease});
    }
    let reply = match client.session {
        Some(_) => client.legacy("tools/call", params).await,
        None => client.modern("tools/call", params).await,
    };
    reply.message()["result"].clone()
}

fn is_reserved(result: &Value) -> bool {
    result["isError"] == true && result["_meta"]["sinew/error"]["error_type"] == "Reserved"
}

#[tokio::test]
async fn a_call_names_its_lease_beside_its_arguments_in_both_eras() {
    for is_modern in [true, false] {
        let server = TestServer::new().await;
        let [mut agent, mut other] = ["agents", "others"].map(|label| {
            let (_, token) = server.gateway.tokens().create(Role::Client, label).unwrap();
            server.client().with_token(Some(&token))
        });
        if !is_modern {
            agent.initialize(json!({})).await;
            other.initialize(json!({})).await;
        }
        let wish = json!({"name": "reserve_device", "arguments": {"device": "lamp", "run": "agent-2"}});
        let reserved = match is_modern {
            true => agent.modern("tools/call", wish).await,
            false => agent.legacy("tools/call", wish).await,
        };
        let lease = reserved.message()["result"]["structuredContent"]["lease"].as_str().unwrap().to_owned();
        let made = measure(&agent, Some(&lease)).await;
        assert_eq!(made["structuredContent"], json!({"n": 21.5}), "modern: {is_modern}");
        for (client, lease) in [(&agent, None), (&agent, Some("nonsense")), (&other, None), (&other, Some(&*lease))] {
            let refused = measure(client, lease).await;
            assert!(is_reserved(&refused), "modern: {is_modern}, {lease:?}: {refused}");
        }
    }
}

#[tokio::test]
async fn breaking_a_lease_is_recorded_with_who_had_it_and_who_took_it() {
    let server = TestServer::new().await;
    let admin = server.client();
    let (_, token) = server.gateway.tokens().create(Role::Client, "tablet").unwrap();
    let tablet = server.client().with_token(Some(&token));
    let reserve = "/api/v1/devices/lamp/reserve";
    assert_eq!(tablet.post(reserve, json!({"seconds": 60})).await.status, 200);
    let path = "/api/v1/devices/lamp/break-lease";
    assert_eq!(tablet.post(path, json!({})).await.status, 403, "only administrators break leases");
    let broken = admin.post(path, json!({})).await;
    assert_eq!((broken.status.as_u16(), &broken.json()["holder"]), (200, &json!("tablet")));
    // Whoever took it has it for a moment.
    admin.post("/api/v1/devices/lamp/release", json!({})).await;
    let nobodys = admin.post(path, json!({})).await.json();
    assert_eq!(nobodys["error"]["error_type"], "ActionFailed", "{nobodys}");
    let unknown = admin.get("/api/v1/audit?kind=changes").await;
    assert!(unknown.status == 400 && unknown.json().to_string().contains("call, decision, change, device"));
    let audit = admin.get("/api/v1/audit?kind=change&device=lamp").await.json();
    let records: Vec<Value> = (audit["records"].as_array().unwrap().iter())
        .filter(|record| record["name"] == "break_lease")
        .map(|record| {
            let args: Value = serde_json::from_str(record["args"].as_str().unwrap()).unwrap();
            json!([record["principal"], record["device"], record["outcome"], args["holder"]])
        })
        .collect();
    let own = server.gateway.tokens().check(&server.token).unwrap().name;
    assert_eq!(records, [json!([own, "lamp", "ActionFailed", null]), json!([own, "lamp", "ok", "tablet"])]);
}
