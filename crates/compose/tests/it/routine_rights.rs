//! Routines through a gateway: what a person is asked, whose runs are whose, and what a pin holds back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_gateway::{ApprovalDecision, EffectFilter, Gateway, Principal, Request, Role, Settings};
use sinew_tool::{
    Admission, Answer, BoxFuture, Call, Caller, Device, DeviceEvent, DeviceInfo, DeviceKey, Effect, ErrorKind, Family,
    FamilyName, LogLevel, Outcome, Question, Reach, Status, TextTrust, Tool, ToolError, Toolset,
};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A device that notes its calls. `unlock` is dangerous, and `ask` asks its caller.
struct House {
    name: &'static str,
    calls: Mutex<Vec<String>>,
}

impl House {
    fn new(name: &'static str) -> Arc<House> {
        Arc::new(House { name, calls: Mutex::default() })
    }

    fn count(&self, tool: &str) -> usize {
        self.calls.lock().expect("not poisoned").iter().filter(|call| call.starts_with(tool)).count()
    }
}

impl Device for House {
    fn info(&self) -> Arc<DeviceInfo> {
        Arc::new(DeviceInfo {
            key: DeviceKey(self.name.to_owned()),
            suggested_id: self.name.to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: String::new(),
            version: "1.0.0".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: vec!["doors".to_owned()],
            attributes: Default::default(),
        })
    }

    fn tools(&self) -> Arc<Toolset> {
        let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}, "note": {"type": "string"}}});
        let tool = |name: &str, effect| Tool::new(name, "", schema.clone()).with_effect(effect);
        Arc::new(Toolset::new([tool("count", Effect::Read), tool("unlock", Effect::Danger), tool("ask", Effect::Read)]))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            self.calls.lock().expect("not poisoned").push(format!("{} {}", call.tool, json!(call.args)));
            if call.tool != "ask" {
                return Ok(Outcome::json(json!({"code": 7})));
            }
            let question = Question::Form { message: "Which?".to_owned(), schema: json!({}) };
            let answers = call.caller.ask(BTreeMap::from([("which".to_owned(), question)])).await?;
            Ok(Outcome::json(json!({"answer": answers["which"]})))
        })
    }
}

struct World {
    gateway: Gateway,
    house: Arc<House>,
    folder: TempDir,
    _end: DropGuard,
}

fn file(name: &str, steps: &str) -> String {
    let text = sinew_routines::new_from_template(name).replace("{{", "").replace("}}", "");
    let parameter = "| Parameter Name | Type | Required | Description | Example Value |\n|---|---|---|---|---|\n\
                     | `code` | integer | No | A code. | `1` |\n\
                     | `note` | string | No | A note. | `x` |";
    let text = text.replace("This tool takes no parameters.", parameter);
    let start = text.find("```yaml\n").expect("steps") + "```yaml\n".len();
    format!("{}{steps}\n- return: {{status: success}}\n```\n", &text[..start])
}

fn write(folder: &Path, name: &str, steps: &str) {
    std::fs::write(folder.join(format!("{name}.md")), file(name, steps)).expect("written");
}

async fn world(files: &[(&str, &str)]) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    files.iter().for_each(|(name, steps)| write(folder.path(), name, steps));
    let gateway = Gateway::open(Settings::default()).expect("a gateway");
    let house = House::new("house");
    gateway.apply(DeviceEvent::Joined(house.clone()));
    let (end, effects) = (CancellationToken::new(), gateway.clone());
    let effect_of = Arc::new(move |uses: &[sinew_tool::ToolUse]| effects.worst_effect(uses));
    tokio::spawn(sinew_routines::run(folder.path().to_owned(), effect_of, gateway.announce(), end.clone()));
    let world = World { gateway, house, folder, _end: end.drop_guard() };
    world.until(|gateway| gateway.find_device("routines").is_some_and(|own| own.tools > files.len())).await;
    world
}

impl World {
    async fn until(&self, is_so: impl Fn(&Gateway) -> bool) {
        let mut watch = self.gateway.watch();
        while !is_so(&self.gateway) {
            watch.next().await;
        }
    }

    fn request(&self, name: &str, args: Value) -> Request {
        Request::new(
            Principal::new("tester", Role::Client),
            name,
            args.as_object().cloned().unwrap_or_default(),
            "test",
        )
    }

    async fn call(&self, name: &str, args: Value) -> Result<Outcome, ToolError> {
        self.gateway.call_on("routines", self.request(name, args)).await
    }

    /// Approves one request; what it showed.
    async fn approve(&self) -> Value {
        loop {
            if let Some(request) = self.gateway.approval_requests().pop() {
                let by = Principal::new("person", Role::Admin);
                self.gateway.decide_approval(&by, "test", &request.id, ApprovalDecision::Once).expect("decided");
                return serde_json::from_str(&request.args).expect("JSON");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn a_person_is_asked_once_about_a_routine_its_steps_and_the_routines_that_it_calls() {
    let inner = "- call: unlock\n  device: house\n  arguments: {code: 2, note: \"${note}\"}";
    let outer = "- call: count\n  device: house\n- call: unlock\n  device: house\n  arguments: {code: \"${code}\"}\n\
                 - call: inner\n  device: routines\n  arguments: {note: \"from outside\"}";
    let world = world(&[("inner", inner), ("outer", outer)]).await;
    // Effects of routines within routines are known after the second look.
    let effect_of = async |gateway: &Gateway, name: &str| {
        let known = gateway.effects(EffectFilter::default(), None, 1_000).await.expect("a page");
        let known = known.items.into_iter().find(|known| known.tool == name);
        known.and_then(|known| known.effect).map(|(effect, _)| effect)
    };
    while effect_of(&world.gateway, "outer").await != Some(Effect::Danger) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (answer, shown) = tokio::join!(world.call("outer", json!({"code": 1})), world.approve());
    answer.expect("one approval is enough");
    assert_eq!((world.house.count("unlock"), world.house.count("count")), (2, 1));
    let asked: Vec<&Value> = shown["steps"].as_array().into_iter().flatten().collect();
    let about = |step: &&Value| (step["tool"].clone(), step["within"].clone(), step["approve_because"].is_string());
    assert_eq!(
        asked.iter().map(about).collect::<Vec<_>>(),
        [
            (json!("count"), json!(null), false),
            (json!("unlock"), json!(null), true),
            (json!("inner"), json!(null), true),
            (json!("unlock"), json!("inner"), true),
        ],
        "{shown}"
    );
    assert_eq!(shown["arguments"], json!({"code": 1}));
    // Other arguments are another question, and the approval was used up.
    for code in [1, 9] {
        tokio::select! {
            answer = world.call("outer", json!({"code": code})) => panic!("{answer:?}"),
            () = async { while world.gateway.approval_requests().is_empty() { tokio::task::yield_now().await } } => {}
        }
    }
    assert_eq!(world.house.count("unlock"), 2);
}

#[tokio::test]
async fn a_step_whose_arguments_become_known_later_is_asked_about_again() {
    let steps = "- call: count\n  device: house\n  as: found\n- call: unlock\n  device: house\n  arguments: {code: \"${found.code}\"}";
    let world = world(&[("later", steps)]).await;
    let approve_both = async {
        world.approve().await;
        let shown = world.approve().await;
        assert_eq!(world.house.count("count"), 1, "asked before the first step, and at this one");
        shown
    };
    let (answer, shown) = tokio::join!(world.call("later", json!({})), approve_both);
    answer.expect("approved twice");
    assert_eq!(shown["steps"][0]["arguments"], json!({"code": 7}), "{shown}");
    assert_eq!((world.house.count("count"), world.house.count("unlock")), (1, 1));
}

#[tokio::test]
async fn the_devices_of_a_label_are_asked_about_together() {
    let world = world(&[("all", "- call: unlock\n  device: label:doors\n  arguments: {code: 1}")]).await;
    let shed = House::new("shed");
    world.gateway.apply(DeviceEvent::Joined(shed.clone()));
    let (answer, shown) = tokio::join!(world.call("all", json!({})), world.approve());
    answer.expect("one approval is enough");
    assert_eq!((world.house.count("unlock"), shed.count("unlock")), (1, 1), "{shown}");
}

#[tokio::test]
async fn an_administrator_who_confirmed_a_routine_is_not_asked_about_its_steps() {
    let world = world(&[("open", "- call: unlock\n  device: house\n  arguments: {code: 1}")]).await;
    let who = Principal::new("person", Role::Admin);
    let request = Request { who, is_confirmed: true, ..world.request("open", json!({})) };
    world.gateway.call_on("routines", request).await.expect("confirmed");
    // Nobody else can confirm anything.
    let request = Request { is_confirmed: true, ..world.request("open", json!({})) };
    tokio::select! {
        answer = world.gateway.call_on("routines", request) => panic!("{answer:?}"),
        () = async { while world.gateway.approval_requests().is_empty() { tokio::task::yield_now().await } } => {}
    }
    assert_eq!(world.house.count("unlock"), 1);
}

#[tokio::test]
async fn routines_within_routines_share_one_number_of_steps() {
    let inner = format!("- each: [{}]\n  do:\n    - call: count\n      device: house", vec!["1"; 99].join(", "));
    let outer = format!("- each: [{}]\n  do:\n    - call: inner\n      device: routines", vec!["1"; 200].join(", "));
    let world = world(&[("inner", &inner), ("outer", &outer)]).await;
    let error = world.call("outer", json!({})).await.expect_err("too many");
    assert!(error.kind == ErrorKind::TooLarge && error.message.contains("2000 steps"), "{error:?}");
    let made = world.house.count("count");
    assert!((1_900..2_000).contains(&made), "{made}");
}

/// A caller that answers what it has answers for, and repeats its call otherwise.
#[derive(Default)]
struct Repeating {
    answers: BTreeMap<String, Answer>,
    run: Option<String>,
    asked: Mutex<Vec<String>>,
    parked: Mutex<Option<String>>,
}

impl Caller for Repeating {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn repeats_calls(&self) -> bool {
        true
    }

    fn continues(&self) -> Option<String> {
        self.run.clone()
    }

    fn parked(&self, run: &str) {
        *self.parked.lock().expect("not poisoned") = Some(run.to_owned());
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let known: BTreeMap<String, Answer> =
            self.answers.clone().into_iter().filter(|(key, _)| questions.contains_key(key)).collect();
        let answered = match known.len() == questions.len() {
            true => Ok(known),
            false => {
                self.asked.lock().expect("not poisoned").extend(questions.into_keys());
                Err(ToolError::new(ErrorKind::InputRequired, "asked"))
            }
        };
        Box::pin(std::future::ready(answered))
    }
}

impl World {
    /// One round of a call; what it asked and the run that waits.
    async fn round(
        &self,
        name: &str,
        answers: &[(&str, &str)],
        run: Option<&str>,
    ) -> (Result<Outcome, ToolError>, Vec<String>, Option<String>) {
        let answers = answers.iter().map(|(key, answer)| ((*key).to_owned(), json!(answer))).collect();
        let caller = Arc::new(Repeating { answers, run: run.map(str::to_owned), ..Repeating::default() });
        let request = Request { caller: caller.clone(), ..self.request(name, json!({})) };
        let answer = self.gateway.call_on("routines", request).await;
        let (asked, parked) =
            (caller.asked.lock().expect("not poisoned").clone(), caller.parked.lock().expect("not poisoned").clone());
        (answer, asked, parked)
    }
}

const ASKING: &str = "- call: count\n  device: house\n- call: ask\n  device: house\n- call: count\n  device: house";

#[tokio::test]
async fn a_run_that_asked_is_never_replayed_with_its_old_answers() {
    let world = world(&[("choose", ASKING)]).await;
    let (first, asked, run) = world.round("choose", &[], None).await;
    assert_eq!(first.expect_err("asked").kind, ErrorKind::InputRequired);
    let (key, run) = (asked[0].as_str(), run.expect("a run"));
    assert!(key.starts_with(&run), "{key} is bound to {run}");
    let (done, ..) = world.round("choose", &[(key, "blue")], Some(&run)).await;
    done.expect("answered");
    assert_eq!((world.house.count("count"), world.house.count("ask")), (2, 1));
    // The same request again gets the same answer, and nothing is done.
    world.round("choose", &[(key, "red")], Some(&run)).await.0.expect("the answer of the run");
    assert_eq!(world.house.count("count"), 2);
    // Without the run it is a new call, which the old answer does not fit.
    let (again, asked, other) = world.round("choose", &[(key, "blue")], None).await;
    assert_eq!(again.expect_err("asked").kind, ErrorKind::InputRequired);
    assert!(asked[0] != key && other.as_deref() != Some(&*run), "{asked:?}");
    // A run that is gone begins nothing; neither does somebody else's.
    let before = world.house.count("count");
    let gone = world.round("choose", &[(key, "blue")], Some("run-0000000000000000")).await.0.expect_err("gone");
    assert!(gone.kind == ErrorKind::InvalidArguments && gone.message.contains("is gone"), "{gone:?}");
    assert_eq!(world.house.count("count"), before);
}

#[tokio::test]
async fn a_caller_whose_token_is_revoked_while_its_run_waits_makes_no_further_step() {
    let world = world(&[("choose", ASKING)]).await;
    let (token, secret) = world.gateway.tokens().create(Role::Client, "guest").expect("a token");
    let who = world.gateway.tokens().check(&secret).expect("valid");
    let round = |answers: BTreeMap<String, Answer>, run: Option<String>| {
        let caller = Arc::new(Repeating { answers, run, ..Repeating::default() });
        let request = Request { who: who.clone(), caller: caller.clone(), ..world.request("choose", json!({})) };
        (caller, world.gateway.call_on("routines", request))
    };
    let (caller, call) = round(BTreeMap::new(), None);
    assert_eq!(call.await.expect_err("asked").kind, ErrorKind::InputRequired);
    let (key, run) =
        (caller.asked.lock().expect("not poisoned")[0].clone(), caller.parked.lock().expect("not poisoned").clone());
    world.gateway.tokens().revoke(&token.id).expect("revoked");
    // An answer that was on its way already reaches the step that asked, and no other step is made.
    let (_, call) = round(BTreeMap::from([(key, json!("blue"))]), run);
    let refused = call.await.expect_err("revoked");
    assert!(refused.message.contains("revoked"), "{refused:?}");
    assert_eq!(world.house.count("count"), 1);
}

#[tokio::test]
async fn two_routines_that_call_a_third_have_a_run_of_it_each() {
    let third = "- call: third\n  device: routines";
    let world = world(&[("third", ASKING), ("one", third), ("two", third)]).await;
    let (_, of_one, run_one) = world.round("one", &[], None).await;
    let (_, of_two, run_two) = world.round("two", &[], None).await;
    assert_eq!(world.house.count("ask"), 2, "each asks for itself");
    assert!(of_one != of_two && run_one != run_two);
    // A call of the third itself joins neither.
    let (_, of_third, _) = world.round("third", &[], None).await;
    assert_eq!((world.house.count("ask"), of_third.len()), (3, 1));
    world.round("one", &[(&of_one[0], "blue")], run_one.as_deref()).await.0.expect("answered");
    // The answer of the first is no answer for the second.
    let (second, ..) = world.round("two", &[(&of_one[0], "blue")], run_two.as_deref()).await;
    assert_eq!(second.expect_err("asked").kind, ErrorKind::InputRequired);
    world.round("two", &[(&of_two[0], "red")], run_two.as_deref()).await.0.expect("answered");
    assert_eq!(world.house.count("count"), 5);
}

#[tokio::test]
async fn a_pin_holds_back_changed_steps() {
    let world = world(&[("leave", "- call: count\n  device: house")]).await;
    world.gateway.pin("routines", sinew_spec::lock::Follow::Nothing).expect("pinned");
    world.call("leave", json!({})).await.expect("as agreed");
    write(world.folder.path(), "leave", "- call: ask\n  device: house");
    world.until(|gateway| gateway.changes("routines").is_ok_and(|changes| !changes.held.is_empty())).await;
    let refused = world.call("leave", json!({})).await.expect_err("held back");
    assert_eq!(refused.kind, ErrorKind::UnknownTool, "{refused:?}");
    assert_eq!(world.house.count("ask"), 0);
    let changes = world.gateway.changes("routines").expect("changes");
    assert!(changes.held[0].changes[0].message.contains("ask"), "{changes:?}");
    world.gateway.accept("routines", &changes.digest.expect("a digest"), None).expect("accepted");
    world.call("leave", json!({})).await.expect_err("it asks, and this caller cannot answer");
    assert_eq!(world.house.count("ask"), 1);
}

#[tokio::test]
async fn nobody_is_asked_about_a_proposal_that_is_no_routine() {
    let world = world(&[("leave", "- call: count\n  device: house")]).await;
    for (name, text, part) in [
        ("better", "no routine", "is no routine"),
        ("leave", &file("leave", "- call: count"), "already"),
        ("../x", "", "small letters"),
    ] {
        let refused = world.call("save_routine", json!({"name": name, "file": text})).await.expect_err("refused");
        assert!(refused.kind == ErrorKind::InvalidArguments && refused.message.contains(part), "{refused:?}");
    }
    assert!(world.gateway.approval_requests().is_empty());
    let saved = world.call("save_routine", json!({"name": "better", "file": file("better", "- wait: 1")}));
    let (saved, shown) = tokio::join!(saved, world.approve());
    saved.expect("approved");
    assert_eq!(shown["name"], "better");
}
