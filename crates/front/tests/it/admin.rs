//! `/api/v1`.

use serde_json::{Value, json};
use sinew_gateway::Role;

use crate::client::Client;
use crate::server::TestServer;

fn client_role(server: &TestServer) -> Client {
    let (_, token) = server.gateway.tokens().create(Role::Client, "reader").unwrap();
    server.client().with_token(Some(&token))
}

#[tokio::test]
async fn clients_read_and_call() {
    let server = TestServer::new().await;
    let client = client_role(&server);
    let devices = client.get("/api/v1/devices").await.json();
    assert_eq!(devices["devices"][0]["id"], "lamp");
    let tools = client.get("/api/v1/tools").await.json();
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let own = client.get("/api/v1/tools?device=lamp").await.json();
    assert!(own["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "lamp__echo"), "{own}");
    for request in
        [json!({"tool": "measure"}), json!({"device": "lamp", "tool": "measure", "arguments": {}, "timeout_ms": 1000})]
    {
        let reply = client.post("/api/v1/call", request).await.json();
        assert_eq!(reply["structuredContent"], json!({"n": 21.5}));
        assert_eq!(reply["content"][0]["type"], "text");
    }
}

#[tokio::test]
async fn other_routes_need_an_admin_token() {
    let server = TestServer::new().await;
    let client = client_role(&server);
    for (method, path) in [
        ("POST", "/api/v1/devices/lamp/rename"),
        ("POST", "/api/v1/devices/lamp/pin"),
        ("POST", "/api/v1/devices/lamp/unpin"),
        ("POST", "/api/v1/devices/lamp/accept"),
        // What is held back is new text of a device, and a client's token is a model's.
        ("GET", "/api/v1/devices/lamp/changes"),
        ("GET", "/api/v1/status"),
        ("GET", "/api/v1/tokens"),
        ("POST", "/api/v1/tokens"),
        ("DELETE", "/api/v1/tokens/x"),
        ("GET", "/api/v1/audit"),
    ] {
        let reply = client.send(method, path, &[], "{}").await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]), (403, &json!("forbidden")), "{path}");
    }
}

#[tokio::test]
async fn a_device_is_renamed() {
    let server = TestServer::new().await;
    let admin = server.client();
    let renamed = admin.post("/api/v1/devices/lamp/rename", json!({"name": "desk lamp"})).await.json();
    assert_eq!((&renamed["id"], &renamed["name"]), (&json!("lamp"), &json!("desk lamp")));
    let reply = admin.post("/api/v1/call", json!({"device": "desk lamp", "tool": "measure"})).await;
    assert_eq!(reply.status, 200);
    let nobody = admin.post("/api/v1/devices/nobody/rename", json!({"name": "x"})).await;
    assert_eq!((nobody.status.as_u16(), &nobody.json()["error"]["error_type"]), (404, &json!("DeviceNotFound")));
}

#[tokio::test]
async fn a_device_is_pinned_and_unpinned() {
    let server = TestServer::new().await;
    let admin = server.client();
    assert_eq!(admin.post("/api/v1/devices/lamp/pin", json!({})).await.json()["pinned"], true);
    let changes = admin.get("/api/v1/devices/lamp/changes").await.json();
    assert_eq!((&changes["pinned"], &changes["quarantined"]), (&json!(true), &json!([])));
    assert_eq!(
        admin.post("/api/v1/devices/lamp/accept", json!({"digest": "0"})).await.status,
        400,
        "nothing is held back"
    );
    assert_eq!(admin.post("/api/v1/devices/lamp/accept", json!({})).await.status, 400, "a digest is needed");
    assert_eq!(admin.post("/api/v1/devices/lamp/pin", json!({"follow": "all"})).await.status, 400);
    admin.post("/api/v1/devices/lamp/pin", json!({"follow": "minor"})).await;
    assert_eq!(admin.get("/api/v1/devices/lamp/changes").await.json()["follow"], "minor");
    assert_eq!(admin.post("/api/v1/devices/lamp/unpin", json!({})).await.json()["pinned"], false);
    assert_eq!(admin.get("/api/v1/devices/nobody/changes").await.status, 404);
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked() {
    let server = TestServer::new().await;
    let admin = server.client();
    let made = admin.post("/api/v1/tokens", json!({"role": "client", "label": "desk"})).await.json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let holder = server.client().with_token(Some(token));
    assert_eq!(holder.get("/api/v1/devices").await.status, 200);
    let list = admin.get("/api/v1/tokens").await.json();
    let listed = list["tokens"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    assert_eq!((&listed["label"], listed.get("token")), (&json!("desk"), None));
    assert_eq!(admin.send("DELETE", &format!("/api/v1/tokens/{id}"), &[], "").await.status, 200);
    assert_eq!(holder.get("/api/v1/devices").await.status, 401);
    for wrong in
        [json!({"role": "king"}), json!({"role": "device"}), json!({}), json!({"role": "client", "device": "x"})]
    {
        assert_eq!(admin.post("/api/v1/tokens", wrong.clone()).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn events_can_be_waited_for() {
    let server = TestServer::new().await;
    let client = server.client();
    let start = client.get("/api/v1/events?device=lamp").await.json();
    let next = start["next"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/events?device=lamp&since={next}&wait_ms=50000");
    let waiting = client.get(&path);
    tokio::pin!(waiting);
    let nothing_yet = futures_util::poll!(&mut waiting);
    assert!(nothing_yet.is_pending());
    server.lamp_sends("notifications/hot");
    let page = waiting.await.json();
    assert_eq!(page["events"][0]["topic"], "notifications/hot", "{page}");
}

#[tokio::test]
async fn failures_are_standard_objects_with_a_code() {
    let server = TestServer::new().await;
    let client = server.client();
    let cases: [(&str, Value, u16, &str); 5] = [
        ("/api/v1/call", json!({"tool": "nonsense"}), 404, "ToolNotFound"),
        ("/api/v1/call", json!({"device": "nobody", "tool": "echo"}), 404, "DeviceNotFound"),
        ("/api/v1/call", json!({"tool": "echo", "arguments": {}}), 400, "ValidationError"),
        ("/api/v1/call", json!({"tool": 5}), 400, "ValidationError"),
        ("/api/v1/call", json!({"tool": "fail", "arguments": {"type": "Timeout"}}), 504, "Timeout"),
    ];
    for (path, body, status, word) in cases {
        let reply = client.post(path, body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["error_type"]), (status, &json!(word)), "{body}");
        assert!(reply.json()["code"].is_i64());
    }
    let unreadable = client.send("POST", "/api/v1/call", &[], "{").await;
    assert_eq!((unreadable.status.as_u16(), &unreadable.json()["code"]), (400, &json!(-32700)));
    assert_eq!(client.get("/api/v1/events?limit=many").await.status, 400);
    assert_eq!(client.get("/api/v1/tools?device=nobody").await.status, 404);
}

#[tokio::test]
async fn devices_are_searched_and_come_in_pages() {
    let server = TestServer::new().await;
    let admin = server.client();
    for number in 0..9 {
        server.join(&format!("sensor-{number}"), crate::server::tools());
    }
    admin.post("/api/v1/devices/sensor-3/rename", json!({"name": "Greenhouse Door"})).await;
    let find = async |query: &str| {
        let answer = admin.get(&format!("/api/v1/devices?{query}")).await.json();
        let ids = answer["devices"].as_array().unwrap().iter().map(|device| device["id"].clone()).collect::<Vec<_>>();
        (answer["total"].as_u64().unwrap(), ids)
    };
    assert_eq!(find("").await.0, 10);
    let names = |ids: &[&str]| ids.iter().map(|id| json!(id)).collect::<Vec<_>>();
    assert_eq!(find("id=sensor-7&id=lamp&id=nobody").await, (2, names(&["lamp", "sensor-7"])));
    assert_eq!(find("id=greenhouse+door").await, (1, names(&["sensor-3"])));
    assert_eq!(find("id=").await, (0, vec![]));
    admin.post("/api/v1/devices/sensor-5/labels", json!({"add": ["porch"]})).await;
    assert_eq!(find("label=porch").await, (1, names(&["sensor-5"])));
    assert_eq!(find("search=SENSOR&limit=2").await, (9, vec![json!("sensor-0"), json!("sensor-1")]));
    assert_eq!(find("search=sensor&limit=2&after=sensor-6").await, (9, vec![json!("sensor-7"), json!("sensor-8")]));
    assert_eq!(find("search=door+green").await, (1, vec![json!("sensor-3")]));
    assert_eq!(find("search=nothing").await, (0, vec![]));
    assert_eq!((find("state=ready").await.0, find("state=away").await.0, find("family=phone").await.0), (10, 0, 0));
    let page = admin.get("/api/v1/devices?limit=4").await.json();
    assert_eq!(page["next"], "sensor-2");
    assert_eq!(admin.get("/api/v1/devices?limit=4&after=sensor-6").await.json().get("next"), None);
    for wrong in ["state=asleep", "limit=many", "label=no+label"] {
        assert_eq!(admin.get(&format!("/api/v1/devices?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn no_list_is_longer_than_a_page() {
    let server = TestServer::new().await;
    let admin = server.client();
    for number in 0..104 {
        server.join(&format!("sensor-{number}"), crate::server::tools());
        server.gateway.tokens().create(Role::Client, &format!("client-{number}")).unwrap();
    }
    for (path, list, total) in
        [("devices", "devices", 105), ("tokens", "tokens", 105), ("policy/effects", "tools", 1_050)]
    {
        let first = admin.get(&format!("/api/v1/{path}")).await.json();
        let count = first[list].as_array().unwrap().len();
        assert_eq!((count, first["total"].as_u64(), first["next"].is_string()), (100, Some(total), true), "{path}");
        let next = first["next"].as_str().unwrap();
        let more = admin.get(&format!("/api/v1/{path}?limit=1000&after={next}")).await.json();
        assert_eq!(more[list].as_array().unwrap().len() as u64, (total - 100).min(1_000), "{path}");
    }
    let marked = admin.get("/api/v1/policy/effects?search=sensor-103+echo&effect=unmarked").await.json();
    assert_eq!((&marked["total"], &marked["tools"][0]["device"]), (&json!(1), &json!("sensor-103")));
    for wrong in ["tokens?after=x", "policy/effects?after=x", "policy/effects?effect=bad"] {
        assert_eq!(admin.get(&format!("/api/v1/{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn the_overview_counts_devices_calls_and_failures() {
    let server = TestServer::new().await;
    let admin = server.client();
    admin.post("/api/v1/call", json!({"device": "lamp", "tool": "measure"})).await;
    admin.post("/api/v1/call", json!({"device": "lamp", "tool": "fail", "arguments": {"type": "Timeout"}})).await;
    let overview = admin.get("/api/v1/overview").await.json();
    assert_eq!((&overview["states"], &overview["families"]), (&json!({"ready": 1}), &json!({"board": 1})));
    let minutes = overview["minutes"].as_array().unwrap();
    let sum = |key: &str| minutes.iter().map(|minute| minute[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("calls"), sum("failures")), (2, 1));
    assert_eq!(
        (&overview["failures"][0]["tool"], &overview["failures"][0]["device"]),
        (&json!("fail"), &json!("lamp"))
    );
    let failed = admin.get("/api/v1/audit?outcome=failed").await.json();
    assert_eq!((failed["records"].as_array().unwrap().len(), &failed["records"][0]["tool"]), (1, &json!("fail")));
}
