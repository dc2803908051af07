//! Calls that wait for a person, on the page that needs no script.

use http::StatusCode;
use sinew_gateway::{Gateway, Principal, Request, Role};
use sinew_tool::{DeviceEvent, ErrorKind, Outcome, Tool, ToolError, json};
use tokio::task::JoinHandle;

use crate::browser::{Browser, Echo, House, unlock};

const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"'";

fn call(gateway: &Gateway, device: &str, tool: &str) -> JoinHandle<Result<Outcome, ToolError>> {
    let mut args = sinew_tool::Args::new();
    args.insert("door".to_owned(), json!(HOSTILE));
    let request = Request::new(Principal::new("tablet", Role::Client), tool.to_owned(), args, "test");
    let (gateway, device) = (gateway.clone(), device.to_owned());
    tokio::spawn(async move { gateway.call_on(&device, request).await })
}

async fn waiting(gateway: &Gateway) -> String {
    let mut changes = gateway.approval_changes();
    loop {
        if let Some(request) = gateway.approval_requests().first() {
            return request.id.clone();
        }
        changes.changed().await.unwrap();
    }
}

#[tokio::test]
async fn an_approver_allows_a_call_on_a_plain_page() {
    let house = House::new().await;
    let approver = house.person("anton", "approver").await;
    let called = call(&house.gateway, "lock", "self.unlock");
    let id = waiting(&house.gateway).await;
    let path = format!("approval?id={id}");
    let page = approver.get(&path).await;
    assert!(page.text.contains("tablet") && page.text.contains("self.unlock") && page.text.contains("Allow once"));
    let form_token = approver.form_token(&path).await;
    let fields = [("form_token", form_token.as_str()), ("id", &id), ("decision", "once")];
    let decided = approver.submit("approval", &fields).await;
    assert!(decided.status == StatusCode::OK && decided.text.contains("Allowed"), "{}", decided.text);
    assert!(called.await.unwrap().is_ok());
    let again = approver.submit("approval", &fields).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "the first decision counts");
}

#[tokio::test]
async fn nobody_decides_without_the_role_and_the_page() {
    let house = House::new().await;
    let (viewer, approver) = (house.person("vera", "viewer").await, house.person("anton", "approver").await);
    let called = call(&house.gateway, "lock", "self.unlock");
    let id = waiting(&house.gateway).await;
    let path = format!("approval?id={id}");
    assert!(!viewer.get(&path).await.text.contains("Allow once"));
    let form_token = viewer.form_token(&path).await;
    let fields = [("form_token", form_token.as_str()), ("id", &id), ("decision", "once")];
    assert_eq!(viewer.submit("approval", &fields).await.status, StatusCode::FORBIDDEN);
    assert_eq!(approver.submit("approval", &fields).await.status, StatusCode::FORBIDDEN, "the form of another session");
    assert_eq!(approver.submit("approval", &fields[1..]).await.status, StatusCode::FORBIDDEN);
    let form_token = approver.form_token(&path).await;
    let nonsense = [("form_token", form_token.as_str()), ("id", &id), ("decision", "perhaps")];
    assert_eq!(approver.submit("approval", &nonsense).await.status, StatusCode::BAD_REQUEST);
    let deny = [("form_token", form_token.as_str()), ("id", &id), ("decision", "deny")];
    assert!(approver.submit("approval", &deny).await.text.contains("Denied"));
    assert_eq!(called.await.unwrap().unwrap_err().kind, ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn what_devices_and_callers_write_is_text_on_every_page() {
    let house = House::new().await;
    let tool = Tool::new("self.unlock", HOSTILE, (*unlock().input_schema).clone());
    house.gateway.apply(DeviceEvent::Joined(Echo::new("evil", HOSTILE, vec![tool])));
    let _called = call(&house.gateway, "evil", "self.unlock");
    let id = waiting(&house.gateway).await;
    let admin = house.admin().await;
    let page = admin.get(&format!("approval?id={id}")).await.text;
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"), "{page}");
    assert!(!page.contains('\u{202e}'), "characters that turn the text around are visible");
    for path in ["approval?id=%3Cscript%3E", "login?next=%22%3E%3Cscript%3Ealert(1)", "device?id=%3Cscript%3E"] {
        assert!(!admin.get(path).await.text.contains("<script>alert"), "{path}");
    }
    let stranger = house.browser().get("login?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").await.text;
    assert!(!stranger.contains("<script>alert"), "{stranger}");
}

#[tokio::test]
async fn with_passphrases_only_people_decide_and_say_who_people_are() {
    let policy = json!({"approvals": "passphrase", "rules": [{"id": "doors", "tools": ["self.unlock"], "do": "ask"}]});
    let house = House::with_policy(Default::default(), policy).await;
    // The first person who may decide is added with a token.
    let ada = house.person("ada", "admin").await;
    let admin = house.admin().await;
    let refused = admin.post("api/v1/people", json!({"name": "eve", "role": "approver"})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let refused =
        admin.send("DELETE", "/console/api/v1/people/ada", &[("origin", &admin.origin), ("x-sinew", "1")], "").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    // Nor does a token decide by the way, by what rules and agreements go by.
    for (what, body) in [
        ("labels", json!({"add": ["open"]})),
        ("rename", json!({"name": "window"})),
        ("pin", json!({})),
        ("unpin", json!({})),
        ("accept", json!({"digest": "00"})),
        ("forget", json!({})),
    ] {
        let refused = admin.post(&format!("api/v1/devices/lock/{what}"), body).await;
        let is_refused = refused.status == StatusCode::FORBIDDEN && refused.text.contains("passphrase");
        assert!(is_refused, "{what}: {}", refused.text);
    }
    let labelled = ada.post("api/v1/devices/lock/labels", json!({"add": ["vault"]})).await;
    assert_eq!(labelled.status, StatusCode::OK, "{}", labelled.text);
    let made = ada.post("api/v1/people", json!({"name": "anton", "role": "approver"})).await.json();
    let passphrase = made["passphrase"].as_str().unwrap().to_owned();
    ada.post("api/v1/people", json!({"name": "vera", "role": "viewer", "passphrase": "a long passphrase"})).await;

    let called = call(&house.gateway, "lock", "self.unlock");
    let id = waiting(&house.gateway).await;
    let path = format!("api/v1/approvals/{id}");
    assert!(!admin.get(&format!("approval?id={id}")).await.text.contains("Allow once"));
    assert_eq!(admin.post(&path, json!({"decision": "approve"})).await.status, StatusCode::FORBIDDEN);
    for person in [
        json!({"name": "anton", "passphrase": "wrong"}),
        json!({"name": "nobody", "passphrase": passphrase}),
        json!({"name": "vera", "passphrase": "a long passphrase"}),
    ] {
        let refused = admin.post(&path, json!({"decision": "approve", "person": person})).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    }
    let as_anton = json!({"decision": "approve", "person": {"name": "anton", "passphrase": passphrase}});
    let approved = admin.post(&path, as_anton).await;
    assert_eq!(approved.status, StatusCode::OK, "{}", approved.text);
    assert!(called.await.unwrap().is_ok());
    for _ in 0..5 {
        admin.post(&path, json!({"decision": "approve", "person": {"name": "anton", "passphrase": "guess"}})).await;
    }
    let guess = json!({"decision": "approve", "person": {"name": "anton", "passphrase": passphrase}});
    assert!(admin.post(&path, guess.clone()).await.text.contains("too many wrong passphrases"));
    let other = ada.post(&path, guess).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND, "one who guesses stops nobody else: {}", other.text);
}

#[tokio::test]
async fn a_token_confirms_its_own_calls_only_while_nobody_else_could_decide() {
    let rules = json!({"rules": [{"id": "doors", "tools": ["self.unlock"], "do": "ask", "ask": {"wait": 0}}]});
    let house = House::with_policy(Default::default(), rules).await;
    let desk = house.admin().await;
    let confirmed = json!({"device": "lock", "tool": "self.unlock", "confirmed": true});
    let explain = json!({"device": "lock", "tool": "self.unlock"});
    let may_confirm = async |browser: &Browser| {
        browser.post("api/v1/policy/explain", explain.clone()).await.json()["may_confirm"].clone()
    };
    assert_eq!(may_confirm(&desk).await, true);
    assert_eq!(desk.post("api/v1/call", confirmed.clone()).await.status, StatusCode::OK);
    // Somebody who only looks decides nothing.
    house.person("vera", "viewer").await;
    assert_eq!(desk.post("api/v1/call", confirmed.clone()).await.status, StatusCode::OK);

    let ada = house.person("ada", "admin").await;
    assert_eq!(may_confirm(&desk).await, false);
    let waits = desk.post("api/v1/call", confirmed.clone()).await;
    assert!(waits.status != StatusCode::OK && waits.text.contains("ApprovalNeeded"), "{}", waits.text);
    let id = house.gateway.approval_requests()[0].id.clone();
    let path = format!("api/v1/approvals/{id}");
    assert_eq!(desk.post(&path, json!({"decision": "approve"})).await.status, StatusCode::FORBIDDEN);
    assert_eq!(ada.post(&path, json!({"decision": "approve"})).await.status, StatusCode::OK);
    assert_eq!(desk.post("api/v1/call", confirmed.clone()).await.status, StatusCode::OK);
    // Whoever showed a passphrase is the person who is asked.
    assert_eq!(may_confirm(&ada).await, true);
    assert_eq!(ada.post("api/v1/call", confirmed.clone()).await.status, StatusCode::OK);
    let asks = json!({"device": "lock", "tool": "self.unlock"});
    assert!(ada.post("api/v1/call", asks).await.text.contains("ApprovalNeeded"));
}

#[tokio::test]
async fn what_is_allowed_in_advance_is_listed_and_revoked_by_those_who_decide() {
    let house = House::new().await;
    let (viewer, approver) = (house.person("vera", "viewer").await, house.person("anton", "approver").await);
    let called = call(&house.gateway, "lock", "self.unlock");
    let id = waiting(&house.gateway).await;
    let path = format!("approval?id={id}");
    let page = approver.get(&path).await.text;
    assert!(
        page.contains("Nobody said what it does.") && page.contains("Always allow, with these arguments"),
        "{page}"
    );
    let form_token = approver.form_token(&path).await;
    let fields = [("form_token", form_token.as_str()), ("id", &id), ("decision", "always")];
    assert!(approver.submit("approval", &fields).await.text.contains("Always allowed"));
    assert!(called.await.unwrap().is_ok());
    assert!(call(&house.gateway, "lock", "self.unlock").await.unwrap().is_ok());
    let grants = viewer.get("api/v1/grants").await.json();
    assert_eq!((&grants["grants"][0]["id"], &grants["grants"][0]["by"]), (&json!(id), &json!("anton")), "{grants}");
    let revoke = format!("/console/api/v1/grants/{id}");
    let remove = async |browser: &Browser| {
        browser.send("DELETE", &revoke, &[("origin", &browser.origin), ("x-sinew", "1")], "").await.status
    };
    assert_eq!(remove(&viewer).await, StatusCode::FORBIDDEN);
    assert_eq!(remove(&approver).await, StatusCode::OK);
    assert_eq!(remove(&approver).await, StatusCode::NOT_FOUND);
    assert_eq!(viewer.get("api/v1/grants").await.json()["grants"], json!([]));
}
