//! Routines that are called.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sinew_routines::run;
use sinew_tool::{
    Answer, Args, BoxFuture, Call, Caller, Device, DeviceEvent, Effect, ErrorKind, LogLevel, NestedCalls, Outcome,
    PlannedCall, Question, Silent, ToolAccess, ToolError, Value, json,
};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::files::routine_file;

/// Notes every call. `unlock` must be approved, `fail` fails, `slow` takes a minute.
#[derive(Default)]
pub(crate) struct House {
    calls: Mutex<Vec<String>>,
    planned: Mutex<Vec<String>>,
    is_approved: Mutex<bool>,
}

#[derive(Clone)]
struct Resident {
    house: Arc<House>,
    name: &'static str,
    caller: Arc<dyn Caller>,
}

impl NestedCalls for Resident {
    fn principal(&self) -> &str {
        self.name
    }

    fn device(&self) -> &str {
        "routines"
    }

    fn is_part(&self) -> bool {
        false
    }

    fn access(&self, _: &str) -> ToolAccess {
        ToolAccess::Free
    }

    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        args: Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            self.house.calls.lock().unwrap().push(format!("{}{tool} {}", device.unwrap_or_default(), json!(args)));
            match tool {
                "fail" => Err(ToolError::new(ErrorKind::ElementNotFound, "no such button")),
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    Ok(Outcome::json(json!({"slow": true})))
                }
                "ask" => {
                    let form = Question::Form { message: "Which?".to_owned(), schema: json!({}) };
                    let answers = self.caller.ask(BTreeMap::from([("which".to_owned(), form)])).await?;
                    Ok(Outcome::json(answers["which"].clone()))
                }
                "status" => Ok(Outcome::json(json!({"volume": 70}))),
                _ => Ok(Outcome::text("done")),
            }
        })
    }

    fn agree<'a>(&'a self, calls: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        let mut planned = self.house.planned.lock().unwrap();
        planned.extend(calls.iter().map(|call| call.tool.clone()));
        // A part of a larger question is asked about when it is called.
        let asks = matches!(calls, [only] if only.tool == "unlock") && !*self.house.is_approved.lock().unwrap();
        let answer = match asks {
            true => Err(ToolError::new(ErrorKind::ApprovalNeeded, "a person must approve it")),
            false => Ok(()),
        };
        Box::pin(async move {
            // A person is waited for, as long as a gateway does.
            if asks {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            answer
        })
    }

    fn join_run(&self, id: &str) -> String {
        id.to_owned()
    }

    fn within(&self, _: Duration, caller: Arc<dyn Caller>) -> Arc<dyn NestedCalls> {
        Arc::new(Resident { caller, ..self.clone() })
    }
}

/// A followed directory, and the device that it became.
pub(crate) struct Bench {
    house: Arc<House>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) events: mpsc::UnboundedReceiver<DeviceEvent>,
    pub(crate) folder: TempDir,
    end: CancellationToken,
}

impl Bench {
    pub(crate) async fn with(files: &[(&str, &str)]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, steps)| write(folder.path(), name, steps));
        Bench::at(folder).await
    }

    pub(crate) async fn at(folder: TempDir) -> Bench {
        let (sender, mut events) = mpsc::unbounded_channel();
        let announce = Arc::new(move |event| drop(sender.send(event)));
        let end = CancellationToken::new();
        let effect_of = Arc::new(|uses: &[sinew_tool::ToolUse]| {
            uses.iter().any(|used| used.tool == "unlock").then_some(Effect::Danger)
        });
        tokio::spawn(run(folder.path().to_owned(), effect_of, announce, end.clone()));
        let Some(DeviceEvent::Joined(device)) = events.recv().await else { panic!("it did not join") };
        Bench { house: Arc::default(), device, events, folder, end }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Outcome, ToolError> {
        self.call_as("ann", tool, args).await
    }

    async fn call_as(&self, who: &'static str, tool: &str, args: Value) -> Result<Outcome, ToolError> {
        self.call_through(Arc::new(Silent), who, tool, args).await
    }

    async fn call_through(
        &self,
        caller: Arc<dyn Caller>,
        who: &'static str,
        tool: &str,
        args: Value,
    ) -> Result<Outcome, ToolError> {
        let nested = Arc::new(Resident { house: self.house.clone(), name: who, caller: Arc::new(Silent) });
        let call = Call {
            tool: tool.to_owned(),
            args: args.as_object().cloned().unwrap_or_default(),
            budget: Duration::from_secs(600),
            from: who.to_owned(),
            caller,
            nested,
        };
        self.device.call(call).await
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.house.calls.lock().unwrap().clone()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

pub(crate) fn write(folder: &Path, name: &str, steps: &str) {
    std::fs::write(folder.join(format!("{name}.md")), routine_file(name, steps)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn steps_are_calls_and_the_answer_is_what_they_return() {
    let bench = Bench::with(&[(
        "quiet",
        "- call: status\n  device: kitchen\n  as: now\n- call: set\n  arguments: {to: '${now.volume}'}\n- return: {was: '${now.volume}'}",
    )])
    .await;
    let outcome = bench.call("quiet", json!({})).await.unwrap();
    assert_eq!(outcome.structured, Some(json!({"was": 70})));
    assert_eq!(bench.calls(), ["kitchenstatus {}", "set {\"to\":70}"]);
    // What can be told before the first step is agreed to in advance, and every step again when it comes.
    assert_eq!(*bench.house.planned.lock().unwrap(), ["status", "status", "set"]);
    let names: Vec<String> = bench.device.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["quiet", "get_run", "cancel_run", "save_routine"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_says_what_was_done_before_it() {
    let bench = Bench::with(&[("press", "- call: open\n- call: fail\n- call: never")]).await;
    let error = bench.call("press", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ElementNotFound);
    assert!(
        error.message.contains("step 2 (`fail`) failed: no such button; done before it: open"),
        "{}",
        error.message
    );
    assert_eq!(bench.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_long_run_goes_on_after_its_call_was_answered() {
    let bench = Bench::with(&[("wash", "- call: slow\n  as: done\n- return: '${done}'")]).await;
    let error = bench.call("wash", json!({})).await.unwrap_err();
    let run = error.details["run"].as_str().unwrap().to_owned();
    let state = |page: Outcome| page.structured.unwrap();
    assert_eq!(state(bench.call("get_run", json!({"run": run})).await.unwrap())["state"], "running");
    assert!(bench.call_as("eve", "get_run", json!({"run": run})).await.is_err());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let page = state(bench.call("get_run", json!({"run": run})).await.unwrap());
    assert_eq!((&page["state"], &page["result"]), (&json!("done"), &json!({"slow": true})));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_gives_up_the_step_under_way_and_makes_no_other() {
    let bench = Bench::with(&[("wash", "- call: slow\n- call: never")]).await;
    let error = bench.call("wash", json!({})).await.unwrap_err();
    let run = json!({"run": error.details["run"]});
    bench.call("cancel_run", run.clone()).await.unwrap();
    // The step under way would take another twenty seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let page = bench.call("get_run", run).await.unwrap().structured.unwrap();
    assert_eq!((&page["state"], bench.calls().len()), (&json!("cancelled"), 1), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_person_is_not_begun_again() {
    let bench = Bench::with(&[("leave", "- call: count\n- call: unlock\n- return: {open: true}")]).await;
    let error = bench.call("leave", json!({})).await.unwrap_err();
    assert!(error.message.contains("waits for a person's approval of `unlock`"), "{}", error.message);
    // The same call joins the run; somebody else's does not.
    let (again, other) = tokio::join!(bench.call("leave", json!({})), bench.call_as("bob", "leave", json!({})));
    assert!(again.is_err() && other.is_err());
    *bench.house.is_approved.lock().unwrap() = true;
    let outcome = bench.call("leave", json!({})).await.unwrap();
    assert_eq!(outcome.structured, Some(json!({"open": true})));
    let counted = bench.calls().iter().filter(|call| call.starts_with("count")).count();
    assert_eq!(counted, 2, "one for each caller: {:?}", bench.calls());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_repeated_while_a_person_is_asked_joins_the_run_and_may_leave_it() {
    let bench = Bench::with(&[("leave", "- call: count\n- call: unlock\n- return: {open: true}")]).await;
    let again = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::time::timeout(Duration::from_secs(1), bench.call("leave", json!({}))).await.unwrap_err();
        *bench.house.is_approved.lock().unwrap() = true;
    };
    let (first, ()) = tokio::join!(bench.call("leave", json!({})), again);
    assert_eq!(first.unwrap().structured, Some(json!({"open": true})));
    assert_eq!(bench.calls().len(), 2, "{:?}", bench.calls());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_waits_and_expects_no_more_and_is_not_done() {
    let bench = Bench::with(&[
        ("hoping", "- expect: {value: 1, is: 2}\n  within: 60000\n- return: 1"),
        ("idle", "- wait: 50000\n- wait: 50000\n- return: 1"),
    ])
    .await;
    for name in ["hoping", "idle"] {
        let error = bench.call(name, json!({})).await.unwrap_err();
        let run = json!({"run": error.details["run"]});
        bench.call("cancel_run", run.clone()).await.unwrap();
        let page = loop {
            let page = bench.call("get_run", run.clone()).await.unwrap().structured.unwrap();
            if page["state"] != "running" {
                break page;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(page["state"], "cancelled", "{page}");
    }
}

#[tokio::test]
async fn values_that_are_repeated_without_end_are_refused() {
    let list = vec!["\"${x}\""; 5_000].join(", ");
    let file = routine_file("bomb", &format!("- return: [{list}]"));
    let file = file.replace("This tool takes no parameters.", "| Name | Type | Required | Description | Example |\n|---|---|---|---|---|\n| `x` | string | Yes | A text. | `x` |");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bomb.md"), &file).unwrap();
    let bench = Bench::at(folder).await;
    let refused = bench.call("bomb", json!({"x": "x".repeat(10_000)})).await.unwrap_err();
    assert!(refused.message.contains("512 KiB"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_at_once_all_end() {
    let bench = Bench::with(&[("quick", "- call: status\n  as: now\n- wait: 20\n- return: '${now}'")]).await;
    let calls = (0..1_000).map(|_| bench.call("quick", json!({})));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(bench.calls().len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_a_person_can_be_cancelled() {
    let bench = Bench::with(&[("leave", "- call: count\n- call: unlock")]).await;
    let error = bench.call("leave", json!({})).await.unwrap_err();
    let run = json!({"run": error.details["run"]});
    bench.call("cancel_run", run.clone()).await.unwrap();
    *bench.house.is_approved.lock().unwrap() = true;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let page = bench.call("get_run", run).await.unwrap().structured.unwrap();
    assert_eq!((&page["state"], bench.calls().len()), (&json!("cancelled"), 1), "{page}");
}

/// Answers whatever it is asked, over its connection.
struct Connected;

impl Caller for Connected {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        Box::pin(std::future::ready(Ok(questions.into_keys().map(|key| (key, json!("blue"))).collect())))
    }
}

/// Answers what it has answers for, and otherwise ends the call.
struct Asked {
    answers: BTreeMap<String, Answer>,
}

impl Caller for Asked {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn repeats_calls(&self) -> bool {
        true
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let known: BTreeMap<String, Answer> =
            self.answers.clone().into_iter().filter(|(key, _)| questions.contains_key(key)).collect();
        let answered = match known.len() == questions.len() {
            true => Ok(known),
            false => {
                let keys: Vec<&String> = questions.keys().collect();
                Err(ToolError::new(ErrorKind::InputRequired, "asked").with_details(json!(keys)))
            }
        };
        Box::pin(std::future::ready(answered))
    }
}

const ASKING: &str =
    "- call: count\n- call: ask\n  as: one\n- call: count\n- call: ask\n  as: two\n- return: ['${one}', '${two}']";

#[tokio::test(start_paused = true)]
async fn a_caller_that_repeats_its_call_answers_each_question_where_the_run_stands() {
    let bench = Bench::with(&[("choose", ASKING)]).await;
    let mut answers = BTreeMap::new();
    let mut rounds = 0;
    let outcome = loop {
        rounds += 1;
        let caller = Arc::new(Asked { answers: answers.clone() });
        match bench.call_through(caller, "ann", "choose", json!({})).await {
            Ok(outcome) => break outcome,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::InputRequired, "{error:?}");
                let key = error.details["cause"][0].as_str().unwrap().to_owned();
                answers.insert(key, json!(format!("answer {rounds}")));
            }
        }
    };
    assert_eq!(outcome.structured, Some(json!(["answer 1", "answer 2"])));
    assert_eq!(bench.calls().iter().filter(|call| call.starts_with("count")).count(), 2, "{:?}", bench.calls());
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_a_connection_answers_at_once_and_one_that_cannot_be_asked_fails_the_step() {
    let bench = Bench::with(&[("choose", ASKING)]).await;
    let outcome = bench.call_through(Arc::new(Connected), "ann", "choose", json!({})).await.unwrap();
    assert_eq!(outcome.structured, Some(json!(["blue", "blue"])));
    let error = bench.call("choose", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InputRequired);
    assert!(error.message.contains("step 2 (`ask`) failed") && error.message.contains("elicitation"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn loops_within_loops_end_at_the_limit_of_steps() {
    let items = format!("[{}]", vec!["1"; 200].join(", "));
    let steps = format!(
        "- each: {items}\n  do:\n    - each: {items}\n      do:\n        - each: {items}\n          do:\n            - call: status"
    );
    let bench = Bench::with(&[("bomb", &steps)]).await;
    let error = bench.call("bomb", json!({})).await.unwrap_err();
    assert!(error.kind == ErrorKind::TooLarge && error.message.contains("more than 2000 steps"), "{error:?}");
    assert!(bench.calls().len() < 2_000);
}
