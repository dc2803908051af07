//! Each call is a span of the log, and belongs to the trace of its caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use sinew_gateway::Request;
use sinew_tool::{TraceParent, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fake::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The fields of each span, in the order in which they began, and of each line.
#[derive(Clone, Default)]
struct Log {
    spans: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
    lines: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.target().starts_with("sinew_gateway")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = BTreeMap::new();
        span.record(&mut Fields(&mut fields));
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.spans.lock().unwrap();
        values.record(&mut Fields(&mut spans[span.into_u64() as usize - 1]));
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.lines.lock().unwrap().push(fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn traced(name: &str, arguments: Value) -> Request {
    Request { trace: TraceParent::parse(PARENT), ..request(name, arguments) }
}

#[tokio::test]
async fn every_call_is_a_span_with_caller_device_tool_and_trace() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let gateway = gateway();
    join(&gateway, Fake::new(1, [plain("press")]));
    // Another test's thread, which has no log, may have been the first to come to a place that logs. What it found out
    // is kept until all such places are asked again.
    for _ in 0..2 {
        log.spans.lock().unwrap().clear();
        log.lines.lock().unwrap().clear();
        gateway.call(traced("press", json!({}))).await.unwrap();
        gateway.call(request("press", json!({}))).await.unwrap();
        gateway.call(request("no_such_tool", json!({}))).await.unwrap_err();
        tracing::callsite::rebuild_interest_cache();
    }
    let spans = log.spans.lock().unwrap().clone();
    let field = |place: usize, name: &str| spans[place].get(name).map(String::as_str);
    assert_eq!(spans.len(), 3, "{spans:?}");
    for place in [0, 1] {
        let about = ["client", "device", "tool"].map(|name| field(place, name));
        assert_eq!(about, [Some("tester"), Some("board-0001"), Some("press")]);
    }
    assert_eq!([0, 1, 2].map(|place| field(place, "trace")), [Some(&PARENT[3..35]), None, None]);
    assert_eq!((field(2, "client"), field(2, "tool")), (Some("tester"), None), "no text of a caller that is no tool");
    let numbers: Vec<_> = (0..3).map(|place| field(place, "call").unwrap()).collect();
    let lines = log.lines.lock().unwrap().clone();
    let ended: Vec<_> = lines.iter().filter_map(|line| line.get("call").map(String::as_str)).collect();
    assert_eq!(ended, numbers, "each line about a call names its span: {lines:?}");
}

#[tokio::test]
async fn devices_learn_the_trace_also_of_calls_within_calls() {
    let gateway = gateway();
    let routine = join(&gateway, Fake::new(1, [run_steps()]).with_manner(Manner::Steps));
    let board = join(&gateway, Fake::new(2, [plain("press")]));
    let steps = json!({"steps": [{"device": "board-0002", "call": "press", "arguments": {}}]});
    gateway.call(traced("run_steps", steps.clone())).await.unwrap();
    for fake in [&routine, &board] {
        assert_eq!(*fake.trace.lock().unwrap(), TraceParent::parse(PARENT));
    }
    gateway.call(request("run_steps", steps)).await.unwrap();
    assert_eq!(*board.trace.lock().unwrap(), None);
}
