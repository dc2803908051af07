//! Who decides about calls that wait, what an approval reaches, and what clients answer themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sinew_gateway::{
    AccessSettings, ApprovalDecision, Gateway, GrantReach, Principal, Request, Reservation, Role, Settings,
};
use sinew_tool::settings::Setting;
use sinew_tool::{
    BoxFuture, Caller, Consent, ConsentRequest, ConsentWay, Effect, ErrorKind, LogLevel, Outcome, Question, Silent,
    Tool, ToolError, Value, json,
};

use crate::fake::*;

const DOOR: &str = "board-0001";
const UNLOCK: &str = "self.unlock";
const DIM: &str = "self.dim";

fn access(policy: Value) -> AccessSettings {
    let mut access = AccessSettings::default();
    Setting::read(&mut access.policy, policy).unwrap();
    access
}

fn asking() -> Value {
    json!({"rules": [{"id": "ask", "tools": ["self.*"], "do": "ask", "ask": {"wait": 0}}]})
}

fn join_door(gateway: &Gateway) {
    let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
    let unlock = Tool::new(UNLOCK, "Open the door.", schema.clone()).with_effect(Effect::Danger);
    join(gateway, Fake::new(1, [unlock, Tool::new(DIM, "Dim the light.", schema).with_effect(Effect::Change)]));
}

fn house(policy: Value) -> Gateway {
    let gateway = Gateway::open(Settings { access: access(policy), ..Settings::default() }).unwrap();
    join_door(&gateway);
    gateway
}

async fn call(gateway: &Gateway, who: &Principal, tool: &str, code: u8) -> Result<Outcome, ToolError> {
    gateway.call_on(DOOR, Request::new(who.clone(), tool, args(json!({"code": code})), "test")).await
}

/// Makes a call that asks, and the id of its request.
async fn ask(gateway: &Gateway, who: &Principal, tool: &str, code: u8) -> String {
    let error = call(gateway, who, tool, code).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ApprovalNeeded, "{error}");
    error.details["approval"].as_str().unwrap().to_owned()
}

fn decide(gateway: &Gateway, who: &Principal, id: &str, decision: ApprovalDecision) -> Result<(), ErrorKind> {
    gateway.decide_approval(who, "test", id, decision).map(drop).map_err(|error| error.kind)
}

#[tokio::test(start_paused = true)]
async fn nobody_approves_a_call_of_their_own() {
    let gateway = house(asking());
    let (_, secret) = gateway.tokens().create(Role::Admin, "desk").unwrap();
    let desk = gateway.tokens().check(&secret).unwrap();
    for who in [admin(), desk, Principal::person("Ada")] {
        let id = ask(&gateway, &who, UNLOCK, 1).await;
        for decision in
            [ApprovalDecision::Once, ApprovalDecision::For(Duration::from_secs(60)), ApprovalDecision::Always]
        {
            assert_eq!(decide(&gateway, &who, &id, decision), Err(ErrorKind::PermissionDenied), "{who:?}");
        }
        assert_eq!(ask(&gateway, &who, UNLOCK, 1).await, id, "it still waits");
        decide(&gateway, &Principal::person("grace"), &id, ApprovalDecision::Once).unwrap();
        call(&gateway, &who, UNLOCK, 1).await.unwrap();
    }
    let id = ask(&gateway, &admin(), UNLOCK, 1).await;
    decide(&gateway, &admin(), &id, ApprovalDecision::Deny).unwrap();
}

#[tokio::test]
async fn a_call_that_waits_holds_neither_the_queue_nor_a_lease_of_its_device() {
    let rules = json!({"rules": [{"id": "door", "tools": [UNLOCK], "do": "ask", "ask": {"wait": 45}}]});
    let settings = Settings { access: access(rules), open_calls: 1, ..Settings::default() };
    let gateway = Gateway::open(settings).unwrap();
    join_door(&gateway);
    let mut changes = gateway.approval_changes();
    let waits = tokio::spawn({
        let gateway = gateway.clone();
        async move { call(&gateway, &client(), UNLOCK, 1).await }
    });
    while gateway.approval_requests().is_empty() {
        changes.changed().await.unwrap();
    }
    let other = Principal::new("other", Role::Client);
    // With one place in the queue and no patience for a lease, these would fail.
    call(&gateway, &other, DIM, 1).await.unwrap();
    let wish = Reservation { device: DOOR.to_owned(), time: Duration::from_secs(60), ..Reservation::default() };
    gateway.reserve(&other, wish).await.unwrap();
    assert_eq!(gateway.approval_requests().len(), 1, "it waits still");
    assert!(gateway.release(&other, DOOR).await.unwrap());
    let id = gateway.approval_requests()[0].id.clone();
    decide(&gateway, &admin(), &id, ApprovalDecision::Once).unwrap();
    waits.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn with_passphrases_no_token_approves_or_confirms_anything() {
    let mut policy = asking();
    policy["approvals"] = json!("passphrase");
    let gateway = house(policy);
    let id = ask(&gateway, &client(), UNLOCK, 1).await;
    assert_eq!(decide(&gateway, &admin(), &id, ApprovalDecision::Once), Err(ErrorKind::PermissionDenied));
    let confirmed = Request { is_confirmed: true, ..Request::new(admin(), UNLOCK, args(json!({"code": 1})), "test") };
    assert_eq!(gateway.call_on(DOOR, confirmed).await.unwrap_err().kind, ErrorKind::ApprovalNeeded);
    decide(&gateway, &Principal::person("ada"), &id, ApprovalDecision::Once).unwrap();
    call(&gateway, &client(), UNLOCK, 1).await.unwrap();
    let own = Request { is_confirmed: true, ..Request::new(Principal::person("ada"), UNLOCK, args(json!({})), "test") };
    gateway.call_on(DOOR, own).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn always_means_any_arguments_of_a_harmless_tool_and_these_of_a_dangerous_one() {
    let gateway = house(asking());
    let id = ask(&gateway, &client(), DIM, 1).await;
    assert_eq!(gateway.approval_request(&id).unwrap().effect, Some(Effect::Change));
    decide(&gateway, &admin(), &id, ApprovalDecision::Always).unwrap();
    let id = ask(&gateway, &client(), UNLOCK, 1).await;
    assert_eq!(gateway.approval_request(&id).unwrap().effect, Some(Effect::Danger));
    decide(&gateway, &admin(), &id, ApprovalDecision::Always).unwrap();
    tokio::time::advance(Duration::from_secs(7 * 86_400)).await;
    for code in [1, 2, 3] {
        call(&gateway, &client(), DIM, code).await.unwrap();
    }
    call(&gateway, &client(), UNLOCK, 1).await.unwrap();
    ask(&gateway, &client(), UNLOCK, 2).await;
    let other = Principal::new("other", Role::Client);
    ask(&gateway, &other, DIM, 1).await;
    let grants = gateway.grants();
    let reaches: Vec<GrantReach> = grants.iter().map(|grant| grant.reach).collect();
    assert_eq!(reaches.len(), 2);
    assert!(reaches.contains(&GrantReach::AnyArguments) && reaches.contains(&GrantReach::SameArguments));
    for grant in grants {
        assert!(gateway.revoke_grant(&client(), "test", &grant.id).is_err(), "a client revokes nothing");
        gateway.revoke_grant(&admin(), "test", &grant.id).unwrap();
        assert_eq!(gateway.revoke_grant(&admin(), "test", &grant.id).unwrap_err().kind, ErrorKind::UnknownResource);
    }
    ask(&gateway, &client(), DIM, 1).await;
    ask(&gateway, &client(), UNLOCK, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_for_a_while_is_listed_and_ends_when_it_is_revoked() {
    let gateway = house(asking());
    let id = ask(&gateway, &client(), UNLOCK, 1).await;
    decide(&gateway, &admin(), &id, ApprovalDecision::For(Duration::from_secs(600))).unwrap();
    call(&gateway, &client(), UNLOCK, 7).await.unwrap();
    let [grant] = &gateway.grants()[..] else { panic!("{:?}", gateway.grants()) };
    assert_eq!((grant.id.as_str(), grant.principal.as_str(), grant.tool.as_str()), (id.as_str(), "tester", UNLOCK));
    assert!(grant.ends.is_some() && grant.args.is_none());
    gateway.revoke_grant(&admin(), "test", &id).unwrap();
    ask(&gateway, &client(), UNLOCK, 7).await;
}

#[tokio::test]
async fn what_is_always_allowed_survives_a_restart_and_ends_with_its_rule_tool_or_token() {
    let dir = tempfile::tempdir().unwrap();
    let open = |policy: Value| {
        let settings =
            Settings { access: access(policy), state_dir: Some(dir.path().to_owned()), ..Settings::default() };
        let gateway = Gateway::open(settings).unwrap();
        join_door(&gateway);
        gateway
    };
    let gateway = open(asking());
    let (view, secret) = gateway.tokens().create(Role::Client, "tablet").unwrap();
    let tablet = gateway.tokens().check(&secret).unwrap();
    for (tool, code) in [(DIM, 1), (UNLOCK, 77)] {
        let id = ask(&gateway, &tablet, tool, code).await;
        decide(&gateway, &admin(), &id, ApprovalDecision::Always).unwrap();
    }
    let once = ask(&gateway, &tablet, UNLOCK, 5).await;
    decide(&gateway, &admin(), &once, ApprovalDecision::Once).unwrap();
    gateway.close().await;
    drop(gateway);

    let gateway = open(asking());
    assert_eq!(gateway.grants().len(), 2, "a restart approves nothing else");
    call(&gateway, &tablet, DIM, 9).await.unwrap();
    call(&gateway, &tablet, UNLOCK, 77).await.unwrap();
    ask(&gateway, &tablet, UNLOCK, 5).await;
    ask(&gateway, &tablet, UNLOCK, 76).await;
    // Another rule elsewhere changes nothing; another text of the same rule does.
    let mut more = asking();
    more["rules"].as_array_mut().unwrap().push(json!({"id": "b", "tools": ["other"], "do": "deny"}));
    gateway.set_access(access(more)).unwrap();
    call(&gateway, &tablet, DIM, 9).await.unwrap();
    gateway
        .set_access(access(json!({"rules": [{"id": "ask", "tools": ["self.d*"], "do": "ask", "ask": {"wait": 0}}]})))
        .unwrap();
    ask(&gateway, &tablet, DIM, 9).await;
    gateway.set_access(access(asking())).unwrap();
    call(&gateway, &tablet, DIM, 9).await.unwrap();
    gateway.tokens().revoke(&view.id).unwrap();
    assert_eq!(gateway.grants(), []);
    gateway.close().await;
    drop(gateway);
    assert_eq!(open(asking()).grants(), [], "also in the file");

    let file = dir.path().join("grants.json");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("77"));
    for broken in ["", "{", "[]", "{\"grants\": [{}]}"] {
        std::fs::write(&file, broken).unwrap();
        let settings = Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() };
        let Err(error) = Gateway::open(settings) else { panic!("{broken}") };
        assert!(error.to_string().contains("grants.json"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_always_allowed_ends_with_the_person_and_where_only_people_may_allow_it() {
    let dir = tempfile::tempdir().unwrap();
    let with_passphrase = || {
        let mut policy = asking();
        policy["approvals"] = json!("passphrase");
        policy
    };
    let open = |policy: Value| {
        let settings =
            Settings { access: access(policy), state_dir: Some(dir.path().to_owned()), ..Settings::default() };
        let gateway = Gateway::open(settings).unwrap();
        join_door(&gateway);
        gateway
    };
    let gateway = open(asking());
    let (_, secret) = gateway.tokens().create(Role::Client, "tablet").unwrap();
    let tablet = gateway.tokens().check(&secret).unwrap();
    let (ada, bob) = (Principal::person("ada"), Principal::person("bob"));
    for (who, code) in [(&admin(), 1), (&ada, 2), (&bob, 3)] {
        let id = ask(&gateway, &tablet, UNLOCK, code).await;
        decide(&gateway, who, &id, ApprovalDecision::Always).unwrap();
        call(&gateway, &tablet, UNLOCK, code).await.unwrap();
    }
    gateway.forget_person(&bob);
    ask(&gateway, &tablet, UNLOCK, 3).await;
    gateway.set_access(access(with_passphrase())).unwrap();
    ask(&gateway, &tablet, UNLOCK, 1).await;
    call(&gateway, &tablet, UNLOCK, 2).await.unwrap();
    // Where it was set meanwhile, the next start looks too.
    gateway.set_access(access(asking())).unwrap();
    let id = ask(&gateway, &tablet, UNLOCK, 4).await;
    decide(&gateway, &admin(), &id, ApprovalDecision::Always).unwrap();
    gateway.close().await;
    drop(gateway);
    let gateway = open(with_passphrase());
    let by: Vec<String> = gateway.grants().into_iter().map(|grant| grant.by).collect();
    assert_eq!(by, ["ada"]);
    call(&gateway, &tablet, UNLOCK, 2).await.unwrap();
}

/// A client that is asked, and answers like this.
struct AskedCaller {
    answer: Consent,
    resumed: Option<String>,
    asked: Mutex<Vec<ConsentRequest>>,
}

impl Caller for AskedCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Value>, ToolError>> {
        Silent.ask(questions)
    }

    fn consent<'a>(&'a self, request: &'a ConsentRequest) -> BoxFuture<'a, Consent> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(self.answer))
    }

    fn resumed_approval(&self) -> Option<String> {
        self.resumed.clone()
    }
}

async fn call_with(
    gateway: &Gateway,
    answer: Consent,
    resumed: Option<&str>,
) -> (Result<Outcome, ToolError>, Vec<ConsentRequest>) {
    let caller = Arc::new(AskedCaller { answer, resumed: resumed.map(str::to_owned), asked: Mutex::default() });
    let request =
        Request { caller: caller.clone(), ..Request::new(client(), UNLOCK, args(json!({"code": 1})), "test") };
    let answer = gateway.call_on(DOOR, request).await;
    let asked = caller.asked.lock().unwrap().clone();
    (answer, asked)
}

fn by_client() -> Value {
    json!({"rules": [{"id": "ask", "tools": ["self.*"], "do": "ask", "ask": {"wait": 0, "by": "client"}}]})
}

#[tokio::test(start_paused = true)]
async fn a_client_asks_its_user_where_a_rule_says_so_and_the_record_says_whose_word_it_was() {
    let gateway = house(by_client());
    let (answer, asked) = call_with(&gateway, Consent::Accepted, None).await;
    answer.unwrap();
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.way, ConsentWay::Form);
    assert!(
        question.message.contains("`self.unlock`") && question.message.contains("{\"code\":1}"),
        "{}",
        question.message
    );
    let records = gateway.audit(10).await.unwrap();
    let decided = records.iter().find_map(|record| record.decided.clone()).unwrap();
    assert!(decided.contains("the client's own word"), "{decided}");
    // An accepted call is one call.
    let (answer, _) = call_with(&gateway, Consent::Waits, None).await;
    assert_eq!(answer.unwrap_err().kind, ErrorKind::ApprovalNeeded);
    let (answer, _) = call_with(&gateway, Consent::Declined, None).await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert_eq!(gateway.approval_requests().len(), 1, "a client may decline without asking anybody");
    let id = error.details["approval"].as_str().unwrap();
    decide(&gateway, &admin(), id, ApprovalDecision::Once).unwrap();
    call_with(&gateway, Consent::Declined, None).await.0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn with_passphrases_no_client_answers_for_its_user() {
    let mut policy = by_client();
    policy["approvals"] = json!("passphrase");
    let gateway = house(policy);
    let (answer, asked) = call_with(&gateway, Consent::Accepted, None).await;
    assert_eq!((answer.unwrap_err().kind, asked), (ErrorKind::ApprovalNeeded, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn only_a_person_who_signs_in_decides_where_a_person_is_asked() {
    let gateway = house(asking());
    let (_, asked) = call_with(&gateway, Consent::Waits, None).await;
    assert_eq!(asked, [], "there are no pages");
    gateway.set_approval_page("https://sinew.example/console/approval?id=".to_owned());
    let (answer, asked) = call_with(&gateway, Consent::Repeats, None).await;
    assert_eq!(answer.unwrap_err().kind, ErrorKind::InputRequired);
    let id = gateway.approval_requests()[0].id.clone();
    let page = format!("https://sinew.example/console/approval?id={id}");
    assert_eq!(asked[0].way, ConsentWay::Page(page.clone()));
    let (answer, _) = call_with(&gateway, Consent::Accepted, Some(&id)).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind, error.details["url"].as_str()), (ErrorKind::ApprovalNeeded, Some(page.as_str())));
    decide(&gateway, &admin(), &id, ApprovalDecision::Deny).unwrap();
    let (answer, asked) = call_with(&gateway, Consent::Repeats, Some(&id)).await;
    assert_eq!((answer.unwrap_err().kind, asked), (ErrorKind::PermissionDenied, Vec::new()), "no was said already");
    // Without its id, it is a new call.
    assert_eq!(call_with(&gateway, Consent::Repeats, None).await.0.unwrap_err().kind, ErrorKind::InputRequired);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_of_a_thousand_callers_leave_room_to_decide() {
    let gateway = house(asking());
    let mut kinds = BTreeMap::new();
    for number in 0..1_000 {
        let who = Principal::new(format!("client-{}", number % 100), Role::Client);
        let error = call(&gateway, &who, UNLOCK, (number / 100) as u8).await.unwrap_err();
        *kinds.entry(format!("{:?}", error.kind)).or_insert(0) += 1;
    }
    assert_eq!(gateway.approval_requests().len(), 200, "{kinds:?}");
    assert_eq!(kinds["Busy"], 800, "{kinds:?}");
    for request in gateway.approval_requests() {
        decide(&gateway, &admin(), &request.id, ApprovalDecision::Deny).unwrap();
    }
    ask(&gateway, &client(), UNLOCK, 1).await;
}
