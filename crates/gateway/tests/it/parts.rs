//! Tools that call other tools: who sees them, what they can do, and what a person agrees to at the start.

use std::sync::Arc;

use sinew_gateway::{ApprovalDecision, Gateway, Request, Settings, Shape};
use sinew_tool::{
    Admission, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, Effect, ErrorKind, Family, FamilyName,
    Outcome, PlannedCall, Reach, Status, TextTrust, Tool, ToolError, ToolUse, Toolset, json,
};

use crate::access::access;
use crate::fake::*;

const STEPS: Family = Family::new(FamilyName::of("steps"), TextTrust::Attributed, Reach::OneLink).pass_on();

/// Unlocks with the code 1, after agreeing to it, and then with the code that it is called with.
struct Steps;

fn unlock_use() -> ToolUse {
    ToolUse { device: Some("board-0001".to_owned()), tool: "self.unlock".to_owned() }
}

impl Device for Steps {
    fn info(&self) -> Arc<DeviceInfo> {
        Arc::new(DeviceInfo {
            key: DeviceKey("steps".to_owned()),
            suggested_id: "steps".to_owned(),
            family: STEPS,
            admission: Admission::Configured,
            name: String::new(),
            version: String::new(),
            status: Status::Ready,
            instructions: None,
            attributes: Default::default(),
        })
    }

    fn tools(&self) -> Arc<Toolset> {
        let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
        let mut tool = Tool::new("leave", "Leave the house.", schema).with_effect(Effect::Change);
        tool.uses = vec![unlock_use()];
        Arc::new(Toolset::new([tool]))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let nested = call.nested.within(std::time::Duration::from_secs(60));
            let device = Some("board-0001".to_owned());
            let planned = PlannedCall { device, tool: "self.unlock".to_owned(), args: args(json!({"code": 1})) };
            nested.agree(std::slice::from_ref(&planned)).await?;
            nested.call(planned.device.as_deref(), &planned.tool, planned.args).await?;
            nested.call(Some("board-0001"), "self.unlock", call.args).await
        })
    }
}

fn house(policy: &str) -> (Gateway, Arc<Fake>) {
    let gateway = Gateway::open(Settings { access: access(policy), ..Settings::default() }).unwrap();
    let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
    let unlock = Tool::new("self.unlock", "Open the door.", schema).with_effect(Effect::Danger);
    let door = join(&gateway, Fake::new(1, [unlock]));
    gateway.apply(DeviceEvent::Joined(Arc::new(Steps)));
    (gateway, door)
}

async fn waits(gateway: &Gateway) {
    while gateway.approval_requests().is_empty() {
        tokio::task::yield_now().await;
    }
}

async fn approve_all(gateway: &Gateway, count: usize) {
    for _ in 0..count {
        waits(gateway).await;
        let request = gateway.approval_requests().remove(0);
        gateway.decide_approval(&admin(), &request.id, ApprovalDecision::Once).unwrap();
    }
}

#[tokio::test]
async fn steps_are_approved_together_and_again_only_with_other_arguments() {
    let (gateway, door) = house("");
    let (answer, ()) = tokio::join!(call(&gateway, "leave", json!({"code": 1})), approve_all(&gateway, 1));
    answer.unwrap();
    assert_eq!(door.count(), 2);
    let (answer, ()) = tokio::join!(call(&gateway, "leave", json!({"code": 2})), approve_all(&gateway, 2));
    answer.unwrap();
    assert_eq!(door.count(), 4);
    // Neither approval is good for a call of the tool itself.
    tokio::select! {
        answer = call(&gateway, "self_unlock", json!({"code": 1})) => panic!("{answer:?}"),
        () = waits(&gateway) => {}
    }
}

#[tokio::test]
async fn what_a_person_sees_names_the_steps() {
    let (gateway, _) = house("");
    let look = async {
        waits(&gateway).await;
        let request = gateway.approval_requests().remove(0);
        gateway.decide_approval(&admin(), &request.id, ApprovalDecision::Deny).unwrap();
        request
    };
    let (answer, request) = tokio::join!(call(&gateway, "leave", json!({"code": 1})), look);
    assert!(request.tool.starts_with("leave") && request.args.contains("self.unlock"), "{request:?}");
    assert_eq!(answer.unwrap_err().kind, ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn a_tool_is_hidden_from_whoever_may_not_see_its_parts() {
    let (gateway, door) = house("[[rules]]\nid = 'no'\nwho = ['token:tester']\ntools = ['self.unlock']\ndo = 'deny'\n");
    assert!(!names(&gateway, &client(), Shape::Folded).contains(&"leave".to_owned()));
    assert_eq!(call_kind(&gateway, "leave", json!({"code": 1})).await, ErrorKind::UnknownTool);
    assert!(names(&gateway, &admin(), Shape::Folded).contains(&"leave".to_owned()));
    assert_eq!(door.count(), 0);
}

#[tokio::test]
async fn a_denied_step_stops_a_tool_before_its_first() {
    let policy = "[[rules]]\nid = 'no'\ntools = ['self.unlock']\nif = [{ arg = '/code', is = 1 }]\ndo = 'deny'\n";
    let (gateway, door) = house(policy);
    assert_eq!(call_kind(&gateway, "leave", json!({"code": 2})).await, ErrorKind::PermissionDenied);
    assert_eq!(door.count(), 0);
}

#[tokio::test]
async fn the_worst_part_is_the_effect_of_the_whole() {
    let (gateway, _) = house("");
    let on = |device: Option<&str>, tool: &str| ToolUse { device: device.map(str::to_owned), tool: tool.to_owned() };
    assert_eq!(gateway.worst_effect(&[unlock_use(), on(None, "nothing")]), Some(Effect::Danger));
    assert_eq!(gateway.worst_effect(&[on(Some("steps"), "leave")]), Some(Effect::Change));
    assert_eq!(gateway.worst_effect(&[on(Some("steps"), "leave"), on(None, "nothing")]), None);
    assert_eq!(gateway.worst_effect(&[]), None);
}

#[tokio::test]
async fn an_approval_does_not_pass_a_policy_that_denies_by_now() {
    let (gateway, door) = house("");
    let waiting = gateway.call(Request::new(client(), "self_unlock", args(json!({"code": 1})), "test"));
    let decide = async {
        waits(&gateway).await;
        let id = gateway.approval_requests().remove(0).id;
        gateway.set_access(access("read-only = true\n")).unwrap();
        gateway.decide_approval(&admin(), &id, ApprovalDecision::Once).unwrap();
    };
    let (answer, ()) = tokio::join!(waiting, decide);
    assert_eq!((answer.unwrap_err().kind, door.count()), (ErrorKind::PermissionDenied, 0));
}
