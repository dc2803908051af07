//! Tools that call other tools: who sees them, what they can do, and what a person agrees to at the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use sinew_gateway::{ApprovalDecision, AuditFilter, Gateway, JournalSettings, Request, Settings, Shape};
use sinew_policy::{EffectRule, MarkedEffect, RedactionRule};
use sinew_tool::settings::Setting;
use sinew_tool::{
    Admission, BoxFuture, Call, Caller, Device, DeviceEvent, DeviceInfo, DeviceKey, Effect, ErrorKind, Family,
    FamilyName, LogLevel, Outcome, PlannedCall, Question, Reach, Status, StepSource, TextTrust, Tool, ToolError,
    ToolUse, Toolset, json,
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
            labels: Vec::new(),
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
            call.nested.join_run("run-1");
            let nested = call.nested.within(std::time::Duration::from_secs(60), call.caller.clone());
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
        gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    }
}

#[tokio::test]
async fn a_step_is_approved_as_often_as_it_was_shown() {
    let (gateway, door) = house("");
    // It unlocks twice and shows one of them at the start.
    for code in [1, 2] {
        let (answer, ()) = tokio::join!(call(&gateway, "leave", json!({"code": code})), approve_all(&gateway, 2));
        answer.unwrap();
    }
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
        gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Deny).unwrap();
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
        // What was asked under another policy is not asked any more.
        assert!(gateway.approval_requests().is_empty());
        assert!(gateway.decide_approval(&admin(), "test", &id, ApprovalDecision::Once).is_err());
    };
    let (answer, ()) = tokio::join!(waiting, decide);
    let error = answer.unwrap_err();
    assert!(error.message.contains("the policy or the caller's token changed"), "{error}");
    assert_eq!((error.kind, door.count()), (ErrorKind::ApprovalNeeded, 0));
}

fn secret_unlock() -> Tool {
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string", "format": "password"}, "door": {"type": "string"}}});
    Tool::new("unlock", "", schema).with_effect(Effect::Danger)
}

/// A board that runs steps on itself, with room for one call at a time.
fn sequencer(policy: &str) -> (Gateway, Arc<Fake>) {
    let journal = JournalSettings { on: true, ..JournalSettings::default() };
    let settings = Settings { access: access(policy), open_calls: 1, journal, ..Settings::default() };
    let gateway = Gateway::open(settings).unwrap();
    let board = join(&gateway, Fake::new(1, [run_steps(), secret_unlock(), plain("look")]).with_manner(Manner::Steps));
    (gateway, board)
}

async fn recorded(gateway: &Gateway) -> Vec<(String, String, String)> {
    let mut records = gateway.audit(100).await.unwrap();
    records.retain(|record| record.tool.is_some());
    records.reverse();
    records.into_iter().map(|record| (record.tool.unwrap_or_default(), record.args, record.outcome)).collect()
}

#[tokio::test]
async fn steps_of_a_device_on_itself_are_decided_and_recorded_one_by_one() {
    let (gateway, board) = sequencer("[[rules]]\nid = 'no'\ntools = ['unlock']\ndo = 'deny'\n");
    call(&gateway, "run_steps", json!({"steps": [{"call": "look"}, {"call": "look"}]})).await.unwrap();
    assert_eq!(board.count(), 3, "the whole and two steps, though there is room for one call");
    let error =
        call(&gateway, "run_steps", json!({"steps": [{"call": "look"}, {"call": "unlock"}]})).await.unwrap_err();
    assert!(error.message.contains("has no tool `unlock`"), "{error}");
    let tools: Vec<String> = recorded(&gateway).await.into_iter().map(|(tool, ..)| tool).collect();
    assert_eq!(tools, ["look", "look", "run_steps", "look", "run_steps"]);
}

#[tokio::test]
async fn steps_wait_for_a_person_before_the_first_and_the_caller_learns_it() {
    let (gateway, board) = sequencer("[[rules]]\nid = 'soon'\ntools = ['unlock']\ndo = 'ask'\nask = { wait = 0 }\n");
    let steps = json!({"steps": [{"call": "look"}, {"call": "unlock"}, {"call": "unlock"}]});
    let error = call(&gateway, "run_steps", steps.clone()).await.unwrap_err();
    assert_eq!((error.kind, board.count()), (ErrorKind::ApprovalNeeded, 1), "{error}");
    let request = gateway.approval_requests().remove(0);
    assert_eq!(request.args.matches("\"tool\":\"unlock\"").count(), 2, "{request:?}");
    gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    call(&gateway, "run_steps", steps.clone()).await.unwrap();
    assert_eq!(board.count(), 5);
    // It is used up.
    assert_eq!(call_kind(&gateway, "run_steps", steps.clone()).await, ErrorKind::ApprovalNeeded);
    // An administrator who was asked about the call was shown the steps.
    let confirmed = Request { is_confirmed: true, ..Request::new(admin(), "run_steps", args(steps.clone()), "test") };
    gateway.call(confirmed).await.unwrap();
    let client = Request { is_confirmed: true, ..Request::new(client(), "run_steps", args(steps), "test") };
    assert_eq!(gateway.call(client).await.unwrap_err().kind, ErrorKind::ApprovalNeeded);
}

#[tokio::test]
async fn an_approval_of_steps_is_good_for_no_other_steps() {
    let (gateway, board) = sequencer("[[rules]]\nid = 'soon'\ntools = ['unlock']\ndo = 'ask'\nask = { wait = 0 }\n");
    let steps = json!({"steps": [{"call": "look"}, {"call": "unlock"}]});
    assert_eq!(call_kind(&gateway, "run_steps", steps.clone()).await, ErrorKind::ApprovalNeeded);
    let request = gateway.approval_requests().remove(0);
    let shown: sinew_tool::Value = serde_json::from_str(&request.args).unwrap();
    assert_eq!(shown["arguments"], steps);
    assert_eq!((&shown["steps"][0]["tool"], &shown["steps"][0]["approve_because"]), (&json!("look"), &json!(null)));
    assert_eq!(shown["steps"][1]["approve_because"], "rule `soon`");
    gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    let before = board.count();
    let others = [json!([{"call": "unlock"}]), json!([{"call": "unlock"}, {"call": "look"}])];
    for (others, made) in others.into_iter().zip(1..) {
        assert_eq!(call_kind(&gateway, "run_steps", json!({"steps": others})).await, ErrorKind::ApprovalNeeded);
        assert_eq!(board.count(), before + made, "nothing but the whole was made");
    }
    call(&gateway, "run_steps", steps).await.unwrap();
}

#[tokio::test]
async fn secrets_in_malformed_steps_are_kept_nowhere() {
    let mut rule = RedactionRule::default();
    rule.read(toml::Deserializer::parse("tools = ['write']\nargs = ['/text']\n").unwrap()).unwrap();
    let journal = JournalSettings { on: true, ..JournalSettings::default() };
    let access = sinew_gateway::AccessSettings { redactions: vec![rule], ..access("") };
    let gateway = Gateway::open(Settings { access, journal, ..Settings::default() }).unwrap();
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}, "field": {"type": "string"}}});
    let write = Tool::new("write", "", schema).with_effect(Effect::Change);
    join(&gateway, Fake::new(1, [run_steps(), write, plain("look")]).with_manner(Manner::Steps));
    let secret = "hunter2";
    for steps in [
        json!(format!("[{{\"tool\": \"write\", \"arguments\": {{\"text\": \"{secret}\"}}}}]")),
        json!([format!("write {secret}")]),
        json!([{"tool": "write", "arguments": format!("{{\"text\": \"{secret}\"}}")}]),
        json!([{"tool": "write", "args": {"text": secret}}]),
        json!([{"tool": "write", "text": secret}]),
        json!([{"name": "write", "arguments": {"text": secret}}]),
        json!([{"call": "write", "tool": "look", "arguments": {"text": secret}}]),
        json!([{"tool": "write", "arguments": {"Text": secret}}]),
        json!([{"tool": "Write", "arguments": {"text": secret}}]),
        json!({"tool": "write", "arguments": {"text": secret}}),
        json!([[{"tool": "write", "arguments": {"text": secret}}]]),
        json!([{"each": [secret], "do": [{"tool": "write", "arguments": {"text": "${item}"}}]}]),
    ] {
        for name in ["steps", "step"] {
            let _ = call(&gateway, "run_steps", json!({name: steps})).await;
        }
    }
    for wrong in [json!({"Text": secret}), json!({"text": {"text": secret}}), json!({"field": "a", "txt": secret})] {
        let _ = call(&gateway, "write", wrong).await;
    }
    call(&gateway, "write", json!({"field": "title", "text": secret})).await.unwrap();
    let records = gateway.audit(100).await.unwrap();
    let kept = format!("{records:?} {:?}", gateway.find_journal(0, None, 100).unwrap());
    assert!(!kept.contains(secret) && kept.contains("title"), "{kept}");
}

#[tokio::test]
async fn secrets_in_steps_are_kept_nowhere() {
    let (gateway, _) = sequencer("danger = 'allow'\n");
    let steps = json!({"steps": [
        {"call": "unlock", "arguments": {"pin": "1234", "door": "front"}},
        {"each": ["5678"], "as": "pin", "do": [{"call": "unlock", "arguments": {"pin": "${pin}", "door": "back"}}]},
        {"call": "no_such_tool", "arguments": {"pin": "9999"}},
    ]});
    let _ = call(&gateway, "run_steps", steps).await;
    let _ = call(&gateway, "run_steps", json!({"steps": {"call": "unlock", "arguments": {"pin": "1234"}}})).await;
    let kept = format!("{:?} {:?}", recorded(&gateway).await, gateway.find_journal(0, None, 100).unwrap());
    for secret in ["1234", "5678", "9999"] {
        assert!(!kept.contains(secret), "{secret} in {kept}");
    }
    assert!(kept.contains("front") && kept.contains("unlock"), "{kept}");
}

/// A device with one tool that is made of steps.
fn composite(steps: sinew_tool::Value) -> Fake {
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string"}, "pins": {"type": "array"}, "room": {"type": "string"}}});
    let mut tool = Tool::new("leave", "", schema).with_effect(Effect::Change);
    tool.steps = StepSource::Tool(Arc::new(steps));
    Fake::new(7, [tool])
}

#[tokio::test]
async fn an_argument_that_becomes_a_secret_of_a_step_is_a_secret() {
    let through = |steps| async {
        let (gateway, _) = sequencer("");
        join(&gateway, composite(steps));
        let given = json!({"pin": "1234", "pins": ["5678"], "room": "kitchen"});
        call(&gateway, "leave", given).await.unwrap();
        format!("{:?} {:?}", recorded(&gateway).await, gateway.find_journal(0, None, 100).unwrap())
    };
    let on = "board-0001";
    let plain = through(json!([{"call": "unlock", "device": on, "arguments": {"door": "${room}"}}])).await;
    assert!(plain.contains("1234") && plain.contains("kitchen"), "{plain}");
    for steps in [
        json!([{"call": "unlock", "device": on, "arguments": {"pin": "${pin}"}}]),
        json!([{"if": {"value": 1, "is": 1}, "then": [{"call": "unlock", "device": on, "arguments": {"pin": "A ${pin}", "door": "${status.door}"}}]}]),
        json!([{"call": "unlock", "device": "label:doors", "arguments": {"pin": "${pin}"}}]),
    ] {
        let kept = through(steps.clone()).await;
        assert!(!kept.contains("1234"), "{steps}: {kept}");
    }
    let kept = through(
        json!([{"each": "${pins}", "do": [{"call": "unlock", "device": on, "arguments": {"pin": "${item}"}}]}]),
    )
    .await;
    assert!(!kept.contains("5678") && kept.contains("1234"), "{kept}");
}

#[tokio::test]
async fn an_approval_does_not_outlive_the_marks_of_tools() {
    let (gateway, board) = sequencer("[[rules]]\nid = 'soon'\ntools = ['unlock']\ndo = 'ask'\nask = { wait = 0 }\n");
    assert_eq!(call_kind(&gateway, "unlock", json!({})).await, ErrorKind::ApprovalNeeded);
    let id = gateway.approval_requests().remove(0).id;
    gateway.decide_approval(&admin(), "test", &id, ApprovalDecision::Once).unwrap();
    let mut settings = access("[[rules]]\nid = 'soon'\ntools = ['unlock']\ndo = 'ask'\nask = { wait = 0 }\n");
    settings.effects = vec![EffectRule { effect: Some(MarkedEffect::Danger), ..EffectRule::default() }];
    gateway.set_access(settings).unwrap();
    assert_eq!((call_kind(&gateway, "unlock", json!({})).await, board.count()), (ErrorKind::ApprovalNeeded, 0));
}

#[tokio::test]
async fn a_whole_and_its_parts_have_one_run_in_the_audit() {
    let (gateway, _) = house("danger = 'allow'\n");
    call(&gateway, "leave", json!({"code": 2})).await.unwrap();
    call(&gateway, "self_unlock", json!({"code": 3})).await.unwrap();
    let of_run = AuditFilter { run: Some("run-1".to_owned()), ..AuditFilter::default() };
    let records = gateway.find_records(of_run, 10).await.unwrap();
    let tools: Vec<Option<&str>> = records.iter().map(|record| record.tool.as_deref()).collect();
    assert_eq!(tools, [Some("leave"), Some("self.unlock"), Some("self.unlock")]);
    let all = gateway.find_records(AuditFilter::default(), 10).await.unwrap();
    assert_eq!(all.iter().filter(|record| record.run.is_none() && record.tool.is_some()).count(), 1, "{all:?}");
    assert_eq!(gateway.verify_audit().await.unwrap().problems, []);
}

/// Asks who is there, and answers with the answer.
struct Asker;

impl Device for Asker {
    fn info(&self) -> Arc<DeviceInfo> {
        let name = "board-0001".to_owned();
        Arc::new(DeviceInfo { key: DeviceKey(name.clone()), suggested_id: name, ..(*Steps.info()).clone() })
    }

    fn tools(&self) -> Arc<Toolset> {
        Arc::new(Toolset::new([Tool::new("self.unlock", "", json!({"type": "object"})).with_effect(Effect::Read)]))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let question = Question::Form { message: "Who is there?".to_owned(), schema: json!({}) };
            let answers = call.caller.ask(BTreeMap::from([("who".to_owned(), question)])).await?;
            Ok(Outcome::json(json!({"who": answers["who"]})))
        })
    }
}

/// Answers each question with its message.
struct Echo;

impl Caller for Echo {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: sinew_tool::Value) {}

    fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, sinew_tool::Value>, ToolError>> {
        let text = |question: Question| match question {
            Question::Form { message, .. } => json!(message),
            _ => json!(null),
        };
        let answers = questions.into_iter().map(|(key, question)| (key, text(question))).collect();
        Box::pin(std::future::ready(Ok(answers)))
    }
}

#[tokio::test]
async fn a_question_of_a_part_says_who_asks() {
    let gateway = Gateway::open(Settings { access: access("danger = 'allow'\n"), ..Settings::default() }).unwrap();
    gateway.apply(DeviceEvent::Joined(Arc::new(Asker)));
    gateway.apply(DeviceEvent::Joined(Arc::new(Steps)));
    let request = Request { caller: Arc::new(Echo), ..Request::new(client(), "leave", args(json!({})), "test") };
    let outcome = gateway.call(request).await.unwrap();
    assert_eq!(outcome.structured, Some(json!({"who": "`self.unlock` of board-0001 asks: Who is there?"})));
}
