//! Calls that wait for a person, on the page that needs no script.

use http::StatusCode;
use sinew_gateway::{Gateway, Principal, Request, Role};
use sinew_tool::{DeviceEvent, ErrorKind, Outcome, Tool, ToolError, json};
use tokio::task::JoinHandle;

use crate::browser::{Echo, House, unlock};

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
