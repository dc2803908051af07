//! Who may do what, and what the others can learn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;
use sinew_gateway::{
    AccessSettings, ApprovalDecision, AuditFilter, Gateway, Label, Principal, Request, Role, Settings, Shape, Update,
};
use sinew_policy::{PolicySettings, Verdict};
use sinew_tool::settings::Setting;
use sinew_tool::{
    BoxFuture, Caller, Device, Effect, ErrorKind, LogLevel, PendingApproval, Question, Silent, TextTrust, Tool,
    ToolError, Value, json,
};

use crate::fake::*;

const UNLOCK: &str = "self_unlock";
const VOLUME: &str = "self_audio_speaker_set_volume";

pub fn access(policy: &str) -> AccessSettings {
    let mut settings = PolicySettings::default();
    settings.read(toml::Deserializer::parse(policy).unwrap()).unwrap();
    AccessSettings { policy: settings, ..AccessSettings::default() }
}

fn gateway_with(policy: &str) -> Gateway {
    Gateway::open(Settings { access: access(policy), ..Settings::default() }).unwrap()
}

fn unlock() -> Tool {
    let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
    Tool::new("self.unlock", "Open the door.", schema).with_effect(Effect::Danger)
}

/// A board with a dangerous tool, and an ordinary one.
fn house(gateway: &Gateway) -> std::sync::Arc<Fake> {
    join(gateway, Fake::board(2));
    join(gateway, Fake::new(1, [unlock(), set_volume()]))
}

fn tablet() -> Principal {
    Principal::new("tablet", Role::Client)
}

async fn call_as(gateway: &Gateway, who: Principal, name: &str, arguments: Value) -> Result<Value, ToolError> {
    let request = Request::new(who, name, args(arguments), "test");
    gateway.call(request).await.map(|outcome| outcome.structured.unwrap_or_default())
}

const NO_TABLET: &str = "[[rules]]\nid = 'tablet'\nwho = ['token:tablet']\non = ['device:board-0001']\ndo = 'deny'\n";

#[tokio::test(start_paused = true)]
async fn a_dangerous_call_waits_for_a_person_who_can_say_yes() {
    let gateway = gateway();
    let door = house(&gateway);
    let waiting = tokio::spawn({
        let gateway = gateway.clone();
        async move { call(&gateway, UNLOCK, json!({"code": 1})).await }
    });
    while gateway.approval_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let request = gateway.approval_requests().remove(0);
    assert_eq!((request.principal.as_str(), request.tool.as_str()), ("tester", "self.unlock"));
    assert_eq!((request.args.as_str(), door.count()), (r#"{"code":1}"#, 0));
    gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    assert_eq!(waiting.await.unwrap().unwrap()["tool"], "self.unlock");
    assert_eq!(door.count(), 1);
    let again = gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap_err();
    assert_eq!(again.kind, ErrorKind::UnknownResource);
}

#[tokio::test(start_paused = true)]
async fn a_person_can_say_no() {
    let gateway = gateway();
    let door = house(&gateway);
    let call = call(&gateway, UNLOCK, json!({}));
    let decide = async {
        while gateway.approval_requests().is_empty() {
            tokio::task::yield_now().await;
        }
        let id = gateway.approval_requests().remove(0).id;
        gateway.decide_approval(&admin(), "test", &id, ApprovalDecision::Deny).unwrap();
    };
    let (answer, ()) = tokio::join!(call, decide);
    let error = answer.unwrap_err();
    assert!(error.kind == ErrorKind::PermissionDenied && error.message.contains("person did not approve"), "{error}");
    assert_eq!(door.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_answered_when_the_gateway_stops() {
    let gateway = gateway();
    let door = house(&gateway);
    let waiting = call(&gateway, UNLOCK, json!({"code": 1}));
    let stop = async {
        until_waiting(&gateway).await;
        gateway.end_waiting();
    };
    let (answer, ()) = tokio::join!(waiting, stop);
    let later = call(&gateway, UNLOCK, json!({"code": 2})).await;
    for error in [answer.unwrap_err(), later.unwrap_err()] {
        assert!(error.kind == ErrorKind::ApprovalNeeded && error.message.contains("the gateway stops"), "{error}");
    }
    assert_eq!((door.count(), gateway.approval_requests()), (0, vec![]));
}

async fn until_waiting(gateway: &Gateway) -> sinew_gateway::ApprovalRequest {
    while gateway.approval_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    gateway.approval_requests().remove(0)
}

#[tokio::test(start_paused = true)]
async fn of_equal_calls_that_wait_each_needs_an_approval_of_its_own() {
    let gateway = gateway();
    let door = house(&gateway);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let gateway = gateway.clone();
            tokio::spawn(async move { call(&gateway, UNLOCK, json!({"code": 1})).await })
        })
        .collect();
    for approved in 1..=3 {
        let request = until_waiting(&gateway).await;
        gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
        while door.count() < approved {
            tokio::task::yield_now().await;
        }
        assert_eq!(door.count(), approved);
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

/// Keeps the ids of the approvals that its call waits for.
#[derive(Default)]
struct WaitingCaller(std::sync::Mutex<Vec<String>>);

impl Caller for WaitingCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Value>, ToolError>> {
        Silent.ask(questions)
    }

    fn waits_for_approval(&self, pending: &PendingApproval) {
        self.0.lock().unwrap().push(pending.id.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_hears_of_the_approval_that_its_own_call_waits_for_and_of_no_other() {
    let gateway = gateway();
    house(&gateway);
    let [first, second, free] = [0; 3].map(|_| Arc::new(WaitingCaller::default()));
    let make = |tool: &'static str, code: u8, caller: &Arc<WaitingCaller>| {
        let asked = Request::new(client(), tool, args(json!({"code": code})), "test");
        gateway.call(Request { caller: caller.clone(), ..asked })
    };
    let decide = async {
        while gateway.approval_requests().len() < 2 {
            tokio::task::yield_now().await;
        }
        let ids: Vec<String> = gateway.approval_requests().into_iter().map(|request| request.id).collect();
        for id in &ids {
            gateway.decide_approval(&admin(), "test", id, ApprovalDecision::Once).unwrap();
        }
        ids
    };
    let (one, two, ids) = tokio::join!(make(UNLOCK, 1, &first), make(UNLOCK, 2, &second), decide);
    one.unwrap();
    two.unwrap();
    let _ = make(VOLUME, 1, &free).await;
    let heard = |caller: &WaitingCaller| caller.0.lock().unwrap().clone();
    let [one, two] = [heard(&first), heard(&second)];
    assert!(one.len() == 1 && two.len() == 1 && one != two, "{one:?} {two:?}");
    assert!(ids.contains(&one[0]) && ids.contains(&two[0]), "{ids:?}");
    assert!(heard(&free).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_request_of_a_revoked_token_is_gone() {
    let gateway = gateway();
    house(&gateway);
    let (view, token) = gateway.tokens().create(Role::Client, "tablet").unwrap();
    let who = gateway.tokens().check(&token).unwrap();
    let error = call_as(&gateway, who, UNLOCK, json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ApprovalNeeded);
    assert_eq!(gateway.approval_requests().len(), 1);
    gateway.tokens().revoke(&view.id).unwrap();
    assert_eq!(gateway.approval_requests(), []);
    let id = error.details["approval"].as_str().unwrap();
    assert!(gateway.decide_approval(&admin(), "test", id, ApprovalDecision::Once).is_err());
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_sees_all_arguments_and_one_that_is_too_long_is_not_asked_about() {
    let gateway = gateway();
    house(&gateway);
    let arguments = json!({"filler": "x".repeat(5_000), "code": 1});
    assert_eq!(call_kind(&gateway, UNLOCK, arguments.clone()).await, ErrorKind::ApprovalNeeded);
    let id = gateway.approval_requests().remove(0).id;
    assert_eq!(gateway.approval_request(&id).unwrap().args, arguments.to_string());
    let huge = json!({"filler": "x".repeat(300_000), "code": 1});
    assert_eq!(call_kind(&gateway, UNLOCK, huge).await, ErrorKind::InvalidArguments);
}

#[tokio::test(start_paused = true)]
async fn a_rule_can_let_one_approval_cover_later_calls() {
    let gateway = gateway_with("[[rules]]\nid = 'a'\ntools = ['*unlock']\ndo = 'ask'\nask = { keep = 600 }\n");
    let door = house(&gateway);
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
    let request = gateway.approval_requests().remove(0);
    assert_eq!(request.keep, Duration::from_secs(600));
    gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    for code in 1..4 {
        call(&gateway, UNLOCK, json!({"code": code})).await.unwrap();
    }
    assert_eq!(door.count(), 3);
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
}

#[tokio::test(start_paused = true)]
async fn an_approval_for_a_time_is_not_one_for_the_calls_of_another_rule() {
    let gateway = gateway_with(
        "[[rules]]\nid = 'small'\ntools = ['*unlock']\nif = [{ arg = '/code', max = 10 }]\ndo = 'ask'\nask = { keep = 600 }\n\
         [[rules]]\nid = 'large'\ntools = ['*unlock']\nif = [{ arg = '/code', min = 10 }]\ndo = 'ask'\nask = { keep = 600 }\n",
    );
    let door = house(&gateway);
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
    let request = gateway.approval_requests().remove(0);
    gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    call(&gateway, UNLOCK, json!({"code": 2})).await.unwrap();
    for of_another in [11, 10] {
        assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": of_another})).await, ErrorKind::ApprovalNeeded);
    }
    // Dangerous by default, which no rule here speaks of.
    assert_eq!(call_kind(&gateway, UNLOCK, json!({})).await, ErrorKind::ApprovalNeeded);
    assert_eq!(door.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_about_a_call_over_its_limit_and_no_approval_is_lost_by_one() {
    let gateway = gateway_with("[[rules]]\nid = 'a'\ntools = ['*unlock']\ndo = 'ask'\nrate = '1/h'\n");
    let door = house(&gateway);
    let approve = || {
        let request = gateway.approval_requests().remove(0);
        gateway.decide_approval(&admin(), "test", &request.id, ApprovalDecision::Once).unwrap();
    };
    // Two calls are asked about before either is made.
    for code in [1, 2] {
        assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": code})).await, ErrorKind::ApprovalNeeded);
        approve();
    }
    call(&gateway, UNLOCK, json!({"code": 1})).await.unwrap();
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 2})).await, ErrorKind::Busy);
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 3})).await, ErrorKind::Busy);
    assert_eq!(gateway.approval_requests(), []);
    // Another limit is counted anew, but another policy also needs other approvals.
    let slower = "[[rules]]\nid = 'a'\ntools = ['*unlock']\ndo = 'ask'\nrate = '2/h'\n";
    gateway.set_access(access(slower)).unwrap();
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 2})).await, ErrorKind::ApprovalNeeded);
    approve();
    call(&gateway, UNLOCK, json!({"code": 2})).await.unwrap();
    assert_eq!(door.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_decision_names_the_call_that_was_decided_about() {
    let gateway = gateway();
    house(&gateway);
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
    let id = gateway.approval_requests().remove(0).id;
    gateway.decide_approval(&admin(), "test", &id, ApprovalDecision::Once).unwrap();
    call(&gateway, UNLOCK, json!({"code": 1})).await.unwrap();
    let records = gateway.find_records(AuditFilter::default(), 3).await.unwrap();
    let [called, decision, asked] = &records[..] else { panic!("{records:?}") };
    let details: Value = serde_json::from_str(&decision.args).unwrap();
    assert_eq!(
        (details["approval"].as_str(), details["args_digest"].as_str()),
        (Some(id.as_str()), Some(called.args_digest.as_str()))
    );
    assert_eq!(asked.args_digest, called.args_digest);
    let decided = called.decided.as_deref().unwrap();
    assert!(
        decided.contains(&format!("approval {id} of ")) && asked.decided.as_deref().unwrap().starts_with("ask by"),
        "{decided}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_comes_late_is_good_for_the_same_call_once() {
    let gateway = gateway();
    let door = house(&gateway);
    let error = call(&gateway, UNLOCK, json!({"code": 1})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ApprovalNeeded);
    let id = error.details["approval"].as_str().unwrap();
    assert!(error.message.contains(&format!("sinew approvals approve {id}")), "{error}");
    gateway.decide_approval(&admin(), "test", id, ApprovalDecision::Once).unwrap();
    for (who, arguments) in [(client(), json!({"code": 2})), (tablet(), json!({"code": 1}))] {
        let error = call_as(&gateway, who, UNLOCK, arguments).await.unwrap_err();
        assert_eq!((error.kind, door.count()), (ErrorKind::ApprovalNeeded, 0));
    }
    call(&gateway, UNLOCK, json!({"code": 1})).await.unwrap();
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
    assert_eq!(door.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_outlive_its_time_its_policy_or_its_tool() {
    let gateway = gateway();
    let door = house(&gateway);
    let approve = async || {
        let error = call(&gateway, UNLOCK, json!({})).await.unwrap_err();
        let id = error.details["approval"].as_str().unwrap().to_owned();
        gateway.decide_approval(&admin(), "test", &id, ApprovalDecision::Once).unwrap();
    };
    approve().await;
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(call_kind(&gateway, UNLOCK, json!({})).await, ErrorKind::ApprovalNeeded);
    gateway.decide_approval(&admin(), "test", &gateway.approval_requests()[0].id, ApprovalDecision::Once).unwrap();
    gateway.set_access(access("[[rules]]\nid = 'other'\non = ['device:lamp']\ndo = 'ask'\n")).unwrap();
    assert_eq!(call_kind(&gateway, UNLOCK, json!({})).await, ErrorKind::ApprovalNeeded);
    gateway.decide_approval(&admin(), "test", &gateway.approval_requests()[0].id, ApprovalDecision::Once).unwrap();
    door.set_tools([Tool { description: "Open all doors.".to_owned(), ..unlock() }]);
    gateway.apply(sinew_tool::DeviceEvent::Changed(stay(&door)));
    assert_eq!(call_kind(&gateway, UNLOCK, json!({})).await, ErrorKind::ApprovalNeeded);
    assert_eq!(door.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_approval_for_a_while_covers_other_arguments_until_it_ends() {
    let gateway = gateway();
    let door = house(&gateway);
    let id = call(&gateway, UNLOCK, json!({"code": 1})).await.unwrap_err().details["approval"].clone();
    let decision = ApprovalDecision::For(Duration::from_secs(60));
    gateway.decide_approval(&admin(), "test", id.as_str().unwrap(), decision).unwrap();
    for code in 1..=3 {
        call(&gateway, UNLOCK, json!({"code": code})).await.unwrap();
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(call_kind(&gateway, UNLOCK, json!({"code": 1})).await, ErrorKind::ApprovalNeeded);
    assert_eq!(door.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_do_not_bury_the_person() {
    let gateway = gateway();
    house(&gateway);
    let calls = (0..1_000).map(|code| {
        let who = Principal::new(format!("client-{}", code % 100), Role::Client);
        let gateway = gateway.clone();
        async move { call_as(&gateway, who, UNLOCK, json!({"code": code})).await.unwrap_err().kind }
    });
    let kinds = futures_util::future::join_all(calls).await;
    let waiting = kinds.iter().filter(|kind| **kind == ErrorKind::ApprovalNeeded).count();
    assert_eq!((waiting, gateway.approval_requests().len()), (200, 200));
    assert!(kinds.iter().all(|kind| matches!(kind, ErrorKind::ApprovalNeeded | ErrorKind::Busy)));
}

#[tokio::test(start_paused = true)]
async fn only_an_administrator_confirms_a_call_or_decides_about_one() {
    let gateway = gateway();
    let door = house(&gateway);
    let confirmed = |who| Request { is_confirmed: true, ..Request::new(who, UNLOCK, args(json!({})), "test") };
    assert_eq!(gateway.call(confirmed(client())).await.unwrap_err().kind, ErrorKind::ApprovalNeeded);
    gateway.call(confirmed(admin())).await.unwrap();
    assert_eq!(door.count(), 1);
    let id = gateway.approval_requests()[0].id.clone();
    let error = gateway.decide_approval(&client(), "test", &id, ApprovalDecision::Once).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn what_is_denied_cannot_be_seen_called_or_learned() {
    let gateway = gateway_with(NO_TABLET);
    let door = house(&gateway);
    say(&gateway, &door, "opened", json!({"by": "key"}));
    settled(&gateway).await;
    for shape in [Shape::Folded, Shape::Unfolded] {
        let listed = names(&gateway, &tablet(), shape);
        assert!(listed.iter().all(|name| !name.contains("unlock") && !name.contains("0001")), "{listed:?}");
        assert!(names(&gateway, &client(), shape).iter().any(|name| name.contains("unlock")));
    }
    let unknown = call_as(&gateway, tablet(), "self_nothing", json!({})).await.unwrap_err();
    let hidden = call_as(&gateway, tablet(), UNLOCK, json!({})).await.unwrap_err();
    assert_eq!(hidden.message, unknown.message.replace("self_nothing", UNLOCK));
    let on = |device: &'static str, tool: &'static str| {
        gateway.call_on(device, Request::new(tablet(), tool, args(json!({})), "test"))
    };
    let absent = on("board-0009", "self.unlock").await.unwrap_err();
    let hidden = on("board-0001", "self.unlock").await.unwrap_err();
    assert_eq!((hidden.kind, &hidden.message), (absent.kind, &absent.message.replace("0009", "0001")));
    assert!(!absent.message.contains("known are board-0001"), "{absent}");
    let misspelt = on("baord-0002", "self.unlock").await.unwrap_err();
    assert!(misspelt.message.contains("did you mean `board-0002`?"), "{misspelt}");
    let chosen = call_as(&gateway, tablet(), VOLUME, json!({"volume": 1})).await.unwrap();
    assert_eq!(chosen["device"], "board-0002", "the hidden one is no choice");
    let devices = call_as(&gateway, tablet(), "list_devices", json!({})).await.unwrap();
    let events = call_as(&gateway, tablet(), "get_device_events", json!({})).await.unwrap();
    let seen = gateway.seen_by(&tablet());
    let views = format!("{:?}", seen_devices(&gateway, &tablet()).await);
    for text in [devices.to_string(), events.to_string(), seen.instructions(), views] {
        assert!(!text.contains("board-0001") && !text.contains("unlock"), "{text}");
    }
    assert!(seen.device("board-0001").is_err());
    assert_eq!(door.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_sees_no_change_hears_of_none() {
    let gateway = gateway_with(NO_TABLET);
    join(&gateway, Fake::board(2));
    let mut hidden = gateway.watch_as(&tablet(), Shape::Folded);
    let mut open = gateway.watch_as(&client(), Shape::Folded);
    let door = join(&gateway, Fake::new(1, [unlock()]));
    say(&gateway, &door, "opened", json!({}));
    assert!(matches!(open.next().await, Update::Tools | Update::Event { .. }));
    tokio::time::sleep(SECOND).await;
    settled(&gateway).await;
    assert_eq!(hidden.next().now_or_never(), None);
}

#[tokio::test]
async fn a_page_of_events_is_the_same_with_and_without_hidden_ones() {
    let read = async |hidden: usize| {
        let gateway = gateway_with(NO_TABLET);
        let (door, seen) = (join(&gateway, Fake::new(1, [plain("x")])), join(&gateway, Fake::board(2)));
        let since = gateway.seen_by(&tablet()).events(None, None, 100).await.unwrap();
        say(&gateway, &seen, "first", json!({}));
        // More than are looked through at once.
        for _ in 0..hidden {
            say(&gateway, &door, "opened", json!({}));
            settled(&gateway).await;
        }
        say(&gateway, &seen, "second", json!({}));
        settled(&gateway).await;
        let view = gateway.seen_by(&tablet());
        let one = view.events(None, Some(&since.next), 1).await.unwrap();
        let two = view.events(None, Some(&one.next), 100).await.unwrap();
        let end = view.events(None, Some(&two.next), 100).await.unwrap();
        assert_eq!((end.events.len(), &end.next), (0, &two.next));
        say(&gateway, &door, "opened", json!({}));
        settled(&gateway).await;
        assert_eq!(view.events(None, Some(&two.next), 100).await.unwrap().next, two.next, "a hidden event moved it");
        assert!(view.events(None, Some("7"), 100).await.is_err());
        let told = |page: &sinew_gateway::EventPage| {
            page.events.iter().map(|event| (event.seq, event.topic.clone())).collect::<Vec<_>>()
        };
        (told(&one), told(&two), one.dropped + two.dropped)
    };
    let without = read(0).await;
    assert_eq!(without.0.len() + without.1.len(), 2, "{without:?}");
    assert_eq!(read(1_100).await, without);
}

#[tokio::test]
async fn a_changed_policy_changes_lists_and_tells_those_concerned() {
    let gateway = gateway();
    house(&gateway);
    let mut watch = gateway.watch_as(&tablet(), Shape::Folded);
    assert!(names(&gateway, &tablet(), Shape::Folded).iter().any(|name| name == UNLOCK));
    gateway.set_access(access(NO_TABLET)).unwrap();
    assert_eq!(watch.next().await, Update::Tools);
    assert!(!names(&gateway, &tablet(), Shape::Folded).iter().any(|name| name == UNLOCK));
    let wrong = gateway.set_access(access("[[rules]]\nid = 'x'\n")).unwrap_err();
    assert!(wrong[0].message.contains("does nothing"), "{wrong:?}");
    assert!(!names(&gateway, &tablet(), Shape::Folded).iter().any(|name| name == UNLOCK), "the old policy stays");
}

#[tokio::test]
async fn arguments_decide_where_a_rule_says_so() {
    let gateway = gateway_with(
        "[[rules]]\nid = 'quiet'\ntools = ['self.audio_speaker.set_volume']\nif = [{ arg = '/volume', max = 50 }]\n\
         do = 'allow'\nelse = 'deny'\n",
    );
    let board = join(&gateway, Fake::board(1));
    call(&gateway, VOLUME, json!({"volume": 50})).await.unwrap();
    let error = call(&gateway, VOLUME, json!({"volume": 51})).await.unwrap_err();
    assert!(error.kind == ErrorKind::PermissionDenied && error.message.contains("rule `quiet`"), "{error}");
    assert_eq!(board.count(), 1);
    assert_eq!(outcomes(&gateway).await, ["ok", "PermissionDenied"]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_counted_per_caller() {
    let gateway = gateway_with("[[rules]]\nid = 'slow'\nrate = '2/min'\n");
    join(&gateway, Fake::board(1));
    let volume = || json!({"volume": 1});
    for _ in 0..2 {
        call(&gateway, VOLUME, volume()).await.unwrap();
    }
    let error = call(&gateway, VOLUME, volume()).await.unwrap_err();
    assert!(error.kind == ErrorKind::Busy && error.message.contains("2/min"), "{error}");
    call_as(&gateway, tablet(), VOLUME, volume()).await.unwrap();
    tokio::time::advance(Duration::from_secs(31)).await;
    call(&gateway, VOLUME, volume()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unmarked_tools_of_devices_that_nobody_approved_ask() {
    let gateway = gateway();
    let app = Fake::new(3, [plain("order")]).with_info(|info| {
        info.family.text_trust = TextTrust::Quoted;
        info.admission = sinew_tool::Admission::Local;
    });
    let app = join(&gateway, app);
    assert_eq!(call_kind(&gateway, "order", json!({})).await, ErrorKind::ApprovalNeeded);
    gateway.pin("board-0003", sinew_gateway::Follow::Nothing).unwrap();
    call(&gateway, "order", json!({})).await.unwrap();
    assert_eq!(app.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_member_of_a_label_is_decided_for_itself() {
    let gateway = gateway_with(
        "[[rules]]\nid = 'no'\non = ['device:board-0001']\nif = [{ arg = '/volume', min = 50 }]\ndo = 'deny'\n",
    );
    for number in 1..=2 {
        join(&gateway, Fake::board(number));
        let label = sinew_gateway::Label::parse("kitchen").unwrap();
        gateway.label(&format!("board-{number:04}"), &[label], &[]).unwrap();
    }
    let answer = call(&gateway, VOLUME, json!({"device": "label:kitchen", "volume": 60})).await.unwrap();
    assert_eq!((&answer["succeeded"], &answer["failed"]), (&json!(1), &json!(1)));
    assert_eq!(answer["devices"][0]["error"]["error_type"], "PermissionDenied");
}

const TOOLS: [&str; 3] = ["alpha", "bravo", "charlie"];

/// A rule of a small house: two devices with two tools each, and arguments from 0 to 2.
fn any_rule() -> impl Strategy<Value = String> {
    let who = prop::sample::select(vec![
        "",
        "who = ['token:tablet']\n",
        "who = ['token:other']\n",
        "who = ['role:client']\n",
    ]);
    let on = prop::sample::select(vec![
        "",
        "on = ['device:board-0001']\n",
        "on = ['label:door']\n",
        "on = ['device:board-0002', 'label:none']\n",
    ]);
    let tools = prop::sample::select(vec![
        "",
        "tools = ['alpha']\n",
        "tools = ['*a*']\n",
        "tools = ['bravo', 'charlie']\n",
        "tools = ['effect:danger']\n",
    ]);
    let condition = prop::sample::select(vec![
        "",
        "if = [{ arg = '/n', max = 1 }]\n",
        "if = [{ arg = '/n', is = 2 }]\nelse = 'deny'\n",
        "if = [{ arg = '/n', absent = true }]\nelse = 'ask'\n",
    ]);
    let verdict = prop::sample::select(vec!["allow", "deny", "deny", "ask"]);
    (who, on, tools, condition, verdict)
        .prop_map(|(who, on, tools, condition, verdict)| format!("{who}{on}{tools}{condition}do = '{verdict}'\n"))
}

fn any_policy() -> impl Strategy<Value = String> {
    let defaults = prop::sample::select(vec![
        "",
        "danger = 'deny'\n",
        "unmarked = 'deny'\n",
        "read-only = true\n",
        "default = 'deny'\n",
    ]);
    (defaults, prop::collection::vec(any_rule(), 0..5)).prop_map(|(defaults, rules)| {
        let rule =
            |(index, rule): (usize, &String)| format!("[[rules]]\nid = 'r{index}'\nask = {{ wait = 1 }}\n{rule}");
        format!("{defaults}{}", rules.iter().enumerate().map(rule).collect::<String>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_denied_is_listed_suggested_or_sent(policy in any_policy()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check_policy(&policy));
    }
}

async fn check_policy(policy: &str) {
    let gateway = gateway_with(policy);
    let numbered =
        |name: &str| Tool::new(name, "", json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let devices = [
        (
            "board-0001",
            join(&gateway, Fake::new(1, [numbered("alpha").with_effect(Effect::Danger), numbered("bravo")])),
        ),
        (
            "board-0002",
            join(&gateway, Fake::new(2, [numbered("alpha").with_effect(Effect::Read), numbered("charlie")])),
        ),
    ];
    // Both run steps: on themselves and on others. The rules are about them too.
    for number in [3, 4] {
        join(&gateway, Fake::new(number, [run_steps()]).with_manner(Manner::Steps));
    }
    for (id, label) in [("board-0001", "door"), ("board-0002", "hall")] {
        gateway.label(id, &[Label::parse(label).unwrap()], &[]).unwrap();
    }
    let arguments = [json!({}), json!({"n": 0}), json!({"n": 1}), json!({"n": 2})];
    // What a tablet may not learn, and what others may.
    let mut hidden = Vec::new();
    for (id, fake) in &devices {
        for tool in fake.tools().iter() {
            let verdict = |given: &Value| gateway.explain(&tablet(), id, &tool.name, &args(given.clone())).unwrap();
            if !verdict(&arguments[0]).is_listed {
                let is_denied = |given: &Value| verdict(given).decision.verdict == Verdict::Deny;
                assert!(arguments.iter().all(is_denied), "{policy}\n{id} {} is hidden and could be used", tool.name);
                hidden.push((*id, tool.name.clone()));
            }
            for given in &arguments {
                let before = fake.count();
                let is_allowed = verdict(given).decision.verdict == Verdict::Allow;
                let request = Request::new(tablet(), tool.name.clone(), args(given.clone()), "test");
                let called = gateway.call_on(id, request).await;
                assert_eq!(called.is_ok(), is_allowed, "{policy}\n{id} {} {given}: {called:?}", tool.name);
                assert_eq!(fake.count() - before, usize::from(is_allowed), "{policy}");
                check_detours(&gateway, policy, (id, &tool.name, given), (fake, is_allowed)).await;
            }
        }
    }
    let sees = |id: &str| {
        devices.iter().any(|(other, fake)| {
            *other == id && fake.tools().iter().any(|tool| !hidden.contains(&(id, tool.name.clone())))
        })
    };
    let unfolded = names(&gateway, &tablet(), Shape::Unfolded);
    for (id, tool) in &hidden {
        assert!(
            !unfolded.iter().any(|name| name.contains(id) && name.contains(tool.as_str())),
            "{policy}\n{unfolded:?}"
        );
    }
    let mut texts = vec![
        call_as(&gateway, tablet(), "list_devices", json!({})).await.unwrap().to_string(),
        gateway.seen_by(&tablet()).instructions(),
        call_as(&gateway, tablet(), "alphb", json!({})).await.unwrap_err().message,
        call_as(&gateway, tablet(), "alpha", json!({"device": "board-0009"}))
            .await
            .map_or_else(|error| error.message, |value| value.to_string()),
    ];
    texts.extend(names(&gateway, &tablet(), Shape::Folded));
    for text in texts {
        for (id, _) in devices.iter().filter(|(id, _)| !sees(id)) {
            assert!(!text.contains(id), "{policy}\n{id} shines through: {text}");
        }
        let everywhere = |tool: &&&str| {
            let holders = devices.iter().filter(|(_, fake)| fake.tools().iter().any(|held| held.name == **tool));
            holders.clone().all(|(id, _)| hidden.contains(&(*id, (**tool).to_owned())))
        };
        // The two wrong calls name what they asked for.
        for tool in TOOLS.iter().filter(everywhere).filter(|tool| **tool != "alpha") {
            assert!(!text.contains(*tool), "{policy}\n{tool} shines through: {text}");
        }
    }
}

/// Nothing denied is sent by a label, by steps, or by steps of steps; and whatever is allowed is sent by each of them that
/// is allowed itself.
async fn check_detours(
    gateway: &Gateway,
    policy: &str,
    (id, tool, given): (&str, &str, &Value),
    (fake, is_allowed): (&Fake, bool),
) {
    let label = if id == "board-0001" { "label:door" } else { "label:hall" };
    let step = |device: &str| json!({"steps": [{"call": tool, "device": device, "arguments": given}]});
    let nested = json!({"steps": [{"call": "run_steps", "device": "board-0004", "arguments": step(id)}]});
    let may_run = |board: &str, steps: &Value| {
        gateway.explain(&tablet(), board, "run_steps", &args(steps.clone())).unwrap().decision.verdict == Verdict::Allow
    };
    let may_nest = may_run("board-0003", &nested) && may_run("board-0004", &step(id));
    for (on, tool, arguments, may_run) in [
        (label, tool, given.clone(), true),
        ("board-0003", "run_steps", step(id), may_run("board-0003", &step(id))),
        ("board-0003", "run_steps", step(label), may_run("board-0003", &step(label))),
        ("board-0003", "run_steps", nested, may_nest),
    ] {
        let before = fake.count();
        let request = Request::new(tablet(), tool, args(arguments.clone()), "test");
        let called = gateway.call_on(on, request).await;
        let is_sent = fake.count() - before;
        assert_eq!(is_sent, usize::from(is_allowed && may_run), "{policy}\n{on} {tool} {arguments}: {called:?}");
    }
}

#[tokio::test]
async fn nothing_tells_of_hidden_tools_by_labels_changes_or_missing_devices() {
    let gateway = gateway_with(NO_TABLET);
    let door = house(&gateway);
    gateway.label("board-0001", &[Label::parse("home").unwrap()], &[]).unwrap();
    // A label is answered like any other argument of a tool that does not exist.
    let to_label = json!({"device": "label:home"});
    let hidden = call_as(&gateway, tablet(), UNLOCK, to_label.clone()).await.unwrap_err();
    let unknown = call_as(&gateway, tablet(), "no_such_tool", to_label).await.unwrap_err();
    assert_eq!((hidden.kind, unknown.kind), (ErrorKind::UnknownTool, ErrorKind::UnknownTool));
    // A hidden device stays hidden when it has no tools.
    door.set_tools([]);
    gateway.apply(sinew_tool::DeviceEvent::Changed(stay(&door)));
    assert_eq!(seen_devices(&gateway, &tablet()).await.len(), 1);
    assert_eq!(seen_devices(&gateway, &admin()).await.len(), 2);
}

#[tokio::test]
async fn what_is_held_back_of_a_hidden_tool_is_not_told() {
    let gateway = gateway_with("[[rules]]\nid = 'no'\nwho = ['token:tablet']\ntools = ['self.unlock']\ndo = 'deny'\n");
    let door = house(&gateway);
    gateway.pin("board-0001", sinew_gateway::Follow::Nothing).unwrap();
    let mut changed = unlock();
    changed.description = "Open all doors.".to_owned();
    door.set_tools([changed, set_volume()]);
    gateway.apply(sinew_tool::DeviceEvent::Changed(stay(&door)));
    let seen = gateway.seen_by(&tablet());
    let views = seen_devices(&gateway, &tablet()).await;
    let told = format!("{views:?} {:?}", seen.events(None, None, 100).await.unwrap());
    assert!(!told.contains("unlock"), "{told}");
    let by_admin = gateway.seen_by(&admin());
    assert_eq!(by_admin.device("board-0001").unwrap().quarantined, 1);
    let request = Request::new(tablet(), "self.unlock", args(json!({})), "test");
    let held = gateway.call_on("board-0001", request).await.unwrap_err();
    assert!(!held.message.contains("held back"), "{held}");
}

#[tokio::test]
async fn an_administrator_sees_devices_whatever_may_be_called() {
    let gateway = gateway_with("read-only = true\n");
    house(&gateway);
    assert_eq!(seen_devices(&gateway, &admin()).await.len(), 2);
}
