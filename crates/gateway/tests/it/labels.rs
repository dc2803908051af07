//! Labels on devices, and calls to all devices with one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use sinew_gateway::{Gateway, Label, Request, Shape};
use sinew_tool::{
    Answer, BoxFuture, Caller, Content, ErrorKind, LogLevel, Outcome, Question, Tool, ToolError, Value, json,
};
use tokio::sync::Semaphore;

use crate::fake::*;

const STATUS: &str = "self_get_device_status";

fn labels(words: &[&str]) -> Vec<Label> {
    words.iter().map(|word| Label::parse(word).unwrap()).collect()
}

fn label(gateway: &Gateway, device: &str, words: &[&str]) -> Vec<String> {
    let view = gateway.label(device, &labels(words), &[]).unwrap();
    view.labels.iter().map(Label::to_string).collect()
}

/// Boards with the label `kitchen`.
fn kitchen(gateway: &Gateway, count: usize) -> Vec<Arc<Fake>> {
    (1..=count)
        .map(|number| {
            let board = join(gateway, Fake::board(number));
            label(gateway, &format!("board-{number:04}"), &["kitchen"]);
            board
        })
        .collect()
}

#[tokio::test]
async fn labels_are_added_removed_shown_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let board = join(&gateway, Fake::board(1));
    gateway.rename("board-0001", "Lamp").unwrap();
    assert_eq!(label(&gateway, "lamp", &["kitchen", "CI", "kitchen"]), ["ci", "kitchen"]);
    let listed = call(&gateway, "list_devices", json!({})).await.unwrap();
    assert_eq!(listed["devices"][0]["labels"], json!(["ci", "kitchen"]));
    assert_eq!(gateway.devices()[0].to_json()["labels"], json!(["ci", "kitchen"]));
    assert!(gateway.seen_by(&admin()).instructions().contains("label:NAME"));
    leave(&gateway, &board);
    gateway.close().await;

    let gateway = gateway_in(dir.path());
    assert_eq!(gateway.find_device("lamp").unwrap().labels, labels(&["ci", "kitchen"]));
    join(&gateway, Fake::board(1));
    let view = gateway.label("lamp", &labels(&["attic"]), &labels(&["ci", "kitchen"])).unwrap();
    assert_eq!(view.labels, labels(&["attic"]));
    let missing = gateway.label("lamp", &[], &labels(&["ci"])).unwrap_err();
    assert!(missing.kind == ErrorKind::InvalidArguments && missing.message.contains("attic"), "{missing}");
    assert_eq!(gateway.label("cellar", &[], &[]).unwrap_err().kind, ErrorKind::UnknownDevice);
    assert!(gateway.rename("lamp", "label:attic").is_err(), "no device is called like a label");
}

#[tokio::test]
async fn a_call_to_a_label_is_answered_by_every_device_and_recorded_for_each() {
    let gateway = gateway();
    let boards = kitchen(&gateway, 3);
    let other = join(&gateway, Fake::board(4));
    for (name, device) in [(STATUS, None), ("self.get_device_status", Some("label:kitchen"))] {
        let outcome = match device {
            Some(device) => gateway.call_on(device, request(name, json!({}))).await.unwrap(),
            None => gateway.call(request(name, json!({"device": " label:Kitchen "}))).await.unwrap(),
        };
        let whole = outcome.structured.unwrap();
        assert_eq!((&whole["label"], &whole["succeeded"], &whole["failed"]), (&json!("kitchen"), &json!(3), &json!(0)));
        for (place, id) in ["board-0001", "board-0002", "board-0003"].into_iter().enumerate() {
            let line = &whole["devices"][place];
            assert_eq!((&line["id"], &line["ok"], &line["result"]["device"]), (&json!(id), &json!(true), &json!(id)));
        }
        assert_eq!(outcome.content[0], Content::Text("board-0001: ok".to_owned()));
    }
    assert!(boards.iter().all(|board| board.count() == 2) && other.count() == 0);
    let records = gateway.audit(10).await.unwrap();
    let mut devices: Vec<_> = records.iter().filter_map(|record| record.device.clone()).collect();
    devices.sort();
    assert_eq!(devices, ["board-0001", "board-0001", "board-0002", "board-0002", "board-0003", "board-0003"]);
    assert!(records.iter().all(|record| record.outcome == "ok"));
}

#[tokio::test]
async fn partial_success_is_visible_and_total_failure_is_an_error() {
    let gateway = gateway();
    kitchen(&gateway, 1);
    let refusal = || ToolError::new(ErrorKind::ActionFailed, "stuck");
    for number in [2, 3] {
        join(&gateway, Fake::board(number).with_manner(Manner::Answer(Err(refusal()))));
    }
    label(&gateway, "board-0002", &["kitchen", "broken"]);
    label(&gateway, "board-0003", &["broken"]);
    join(&gateway, Fake::new(5, [Tool::new("other", "", json!({"type": "object"}))]));
    label(&gateway, "board-0005", &["kitchen"]);

    let whole = call(&gateway, STATUS, json!({"device": "label:kitchen"})).await.unwrap();
    assert_eq!((&whole["succeeded"], &whole["failed"]), (&json!(1), &json!(1)));
    let failed = &whole["devices"][1];
    assert_eq!((&failed["ok"], &failed["error"]["error_type"]), (&json!(false), &json!("ActionFailed")));
    assert_eq!(whole["without_tool"], json!(["board-0005"]));

    let error = call(&gateway, STATUS, json!({"device": "label:broken"})).await.unwrap_err();
    assert_eq!((error.kind, &error.details["failed"]), (ErrorKind::ActionFailed, &json!(2)));
    assert!(error.message.contains("all 2 devices") && error.message.contains("stuck"), "{error}");
    let mut outcomes = outcomes(&gateway).await;
    outcomes.sort();
    assert_eq!(outcomes, ["ActionFailed", "ActionFailed", "ActionFailed", "ok"]);
}

#[tokio::test]
async fn no_device_too_many_and_odd_labels_are_errors_with_one_record() {
    let gateway = gateway();
    let boards = kitchen(&gateway, 65);
    let wrong = |label: &str| {
        let gateway = gateway.clone();
        let device = format!("label:{label}");
        async move { call(&gateway, STATUS, json!({"device": device})).await.unwrap_err() }
    };
    let many = wrong("kitchen").await;
    assert_eq!((many.kind, &many.details["count"]), (ErrorKind::InvalidArguments, &json!(65)));
    assert!(many.message.contains("65") && many.message.contains("64"), "{many}");
    let none = wrong("attic").await;
    assert_eq!((none.kind, &none.details["count"]), (ErrorKind::UnknownDevice, &json!(0)));
    assert!(none.message.starts_with("0 devices"), "{none}");
    for odd in ["", "a b", "küche", "label:kitchen"] {
        assert_eq!(wrong(odd).await.kind, ErrorKind::InvalidArguments, "{odd:?}");
    }
    assert!(boards.iter().all(|board| board.count() == 0));
    assert_eq!(outcomes(&gateway).await.len(), 6);

    gateway.label("board-0065", &[], &labels(&["kitchen"])).unwrap();
    let whole = call(&gateway, STATUS, json!({"device": "label:kitchen"})).await.unwrap();
    assert_eq!(whole["succeeded"], 64);
}

#[tokio::test]
async fn devices_of_a_label_are_called_a_few_at_a_time() {
    let gateway = gateway();
    let turns = Arc::new(Semaphore::new(0));
    let boards: Vec<_> = (1..=20)
        .map(|number| {
            let board = join(&gateway, Fake::board(number).with_manner(Manner::Queue(turns.clone())));
            label(&gateway, &format!("board-{number:04}"), &["kitchen"]);
            board
        })
        .collect();
    let called = || boards.iter().map(|board| board.count()).sum::<usize>();
    let mut whole = std::pin::pin!(gateway.call(request(STATUS, json!({"device": "label:kitchen"}))));
    // Nobody answers, so after any number of turns only the first few were asked.
    for _ in 0..100 {
        assert!(whole.as_mut().now_or_never().is_none());
    }
    assert_eq!(called(), 8);
    turns.add_permits(20);
    assert_eq!(whole.await.unwrap().structured.unwrap()["succeeded"], 20);
    assert_eq!(called(), 20);
}

#[tokio::test]
async fn the_answers_of_all_devices_together_are_bounded() {
    let settings = sinew_gateway::Settings { max_result: 1_000, ..Default::default() };
    let gateway = Gateway::open(settings).unwrap();
    for number in 1..=3 {
        let answer = Outcome::text("x".repeat(400));
        join(&gateway, Fake::board(number).with_manner(Manner::Answer(Ok(answer))));
        label(&gateway, &format!("board-{number:04}"), &["kitchen"]);
    }
    let whole = call(&gateway, STATUS, json!({"device": "label:kitchen"})).await.unwrap();
    assert_eq!((&whole["succeeded"], &whole["failed"]), (&json!(2), &json!(1)));
    assert!(whole.to_string().contains("TooLarge"), "{whole}");
}

#[tokio::test]
async fn a_text_argument_that_looks_like_a_label_is_no_selection() {
    let gateway = gateway();
    let text = Tool::new("say", "", json!({"type": "object", "properties": {"text": {"type": "string"}}}));
    let board = join(&gateway, Fake::new(1, [text]));
    call(&gateway, "say", json!({"text": "label:kitchen"})).await.unwrap();
    assert_eq!(board.count(), 1);
}

#[tokio::test]
async fn the_output_schema_of_labelled_devices_allows_the_answer_of_a_label() {
    let gateway = gateway();
    let schema = json!({"type": "object", "required": ["on"], "properties": {"on": {"type": "boolean"}}});
    let tool = Tool::new("get", "", json!({"type": "object"})).with_output_schema(schema.clone());
    let answer = Outcome::json(json!({"on": true}));
    join(&gateway, Fake::new(1, [tool]).with_manner(Manner::Answer(Ok(answer))));
    let listed = |gateway: &Gateway| {
        let list = gateway.list(&client(), Shape::Folded);
        (**list.find("get").unwrap().tool.output_schema.as_ref().unwrap()).clone()
    };
    assert_eq!(listed(&gateway), schema);
    label(&gateway, "board-0001", &["kitchen"]);
    let both = listed(&gateway);
    let one = call(&gateway, "get", json!({})).await.unwrap();
    let all = call(&gateway, "get", json!({"device": "label:kitchen"})).await.unwrap();
    for answer in [&one, &all] {
        assert!(jsonschema::is_valid(&both, answer), "{answer} does not fit {both}");
    }
    assert!(!jsonschema::is_valid(&both, &json!({"on": 5})));
    gateway.label("board-0001", &[], &labels(&["kitchen"])).unwrap();
    assert_eq!(listed(&gateway), schema);
}

#[derive(Default)]
struct Listener {
    progress: Mutex<Vec<(f64, Option<f64>)>>,
    logged: AtomicUsize,
}

impl Caller for Listener {
    fn progress(&self, progress: f64, total: Option<f64>, _: Option<&str>) {
        self.progress.lock().unwrap().push((progress, total));
    }

    fn log(&self, _: LogLevel, _: Value) {
        self.logged.fetch_add(1, Ordering::SeqCst);
    }

    fn ask(
        &self,
        _: std::collections::BTreeMap<String, Question>,
    ) -> BoxFuture<'_, Result<std::collections::BTreeMap<String, Answer>, ToolError>> {
        Box::pin(std::future::ready(Ok(Default::default())))
    }
}

#[tokio::test]
async fn the_caller_hears_how_many_devices_have_answered() {
    let gateway = gateway();
    kitchen(&gateway, 3);
    let caller = Arc::new(Listener::default());
    let asked = Request { caller: caller.clone(), ..request(STATUS, json!({"device": "label:kitchen"})) };
    gateway.call(asked).await.unwrap();
    assert_eq!(*caller.progress.lock().unwrap(), [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
}
