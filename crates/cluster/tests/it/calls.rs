//! Calls to the node that has the device, and everything on the way back.

use std::collections::BTreeMap;
use std::sync::Arc;

use sinew_gateway::{Principal, Request, Role, Settings};
use sinew_tool::outcome::SOURCE_KEY;
use sinew_tool::{
    Answer, Args, Attachment, BoxFuture, Caller, ErrorKind, LogLevel, Question, ToolError, TraceParent, Value, json,
};

use crate::nats_server::NatsServer;
use crate::support::{Listener, Node, TestDevice, text_of};

#[tokio::test(flavor = "multi_thread")]
async fn progress_log_and_questions_reach_the_caller() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    let listener = Arc::new(Listener::default());
    let answer = b.call_with("board-1", "talk", json!({}), listener.clone()).await.expect("it answers");
    assert_eq!(text_of(&answer), r#"{"sure":{"action":"accept"}}"#);
    let heard = listener.heard.lock().expect("a lock").clone();
    assert_eq!(heard, [r#"1 of Some(2.0): Some("half")"#, r#"Info {"step":1}"#, r#"asked for ["sure"]"#]);
    // A caller that cannot be asked: the device learns so, and the caller gets its error.
    let error = b.call("board-1", "talk", json!({})).await.expect_err("nobody answers");
    assert_eq!(error.kind, ErrorKind::InputRequired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_stays_in_its_callers_trace() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let trace = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let request = Request::new(Principal::new("tester", Role::Client), "look", Args::new(), "test");
    b.gateway.call_on("board-1", Request { trace: trace.clone(), ..request }).await.expect("it answers");
    assert_eq!(*board.trace.lock().expect("a lock"), trace);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_answers_of_megabytes_come_whole() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let long = "ä\"".repeat(1 << 20);
    let answer = b.call("board-1", "echo", json!({"long": long})).await.expect("it answers");
    assert_eq!(text_of(&answer), json!({"long": long}).to_string());
    // The text of this one is longer than any node passes on.
    let error = b.call("board-1", "echo", json!({"long": "\u{1}".repeat(5 << 20)})).await.expect_err("too long");
    assert_eq!((error.kind, board.count()), (ErrorKind::TooLarge, 1), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_given_up_at_the_device() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    tokio::select! {
        answer = b.call("board-1", "wait", json!({})) => panic!("it should wait: {answer:?}"),
        () = board.began.notified() => {}
    }
    board.cancelled.notified().await;
    assert_eq!((b.cluster.status().calls_out, board.count()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_recorded_where_it_came_in_and_where_it_ran() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    b.call("board-1", "echo", json!({"x": 1})).await.expect("it answers");
    for (node, door) in [(&a, "cluster"), (&b, "test")] {
        let calls = node.gateway.audit(10).await.expect("a log");
        let [call] = &calls[..] else { panic!("one call was expected: {calls:?}") };
        assert_eq!((call.door.as_str(), call.principal.as_str(), call.outcome.as_str()), (door, "tester", "ok"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_others_stays_marked_on_its_way() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    let quote = b.call("board-1", "quote", json!({})).await.expect("it answers");
    assert_eq!(quote.meta[SOURCE_KEY], json!({"device": "board-1", "family": "board", "third_party": true}));
    let plain = b.call("board-1", "echo", json!({})).await.expect("it answers");
    assert_eq!(plain.meta[SOURCE_KEY], json!({"device": "board-1", "family": "board"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_that_has_the_device_decides_too() {
    let nats = NatsServer::open().await;
    let mut settings = Settings::default();
    settings.access.policy.read_only = true;
    let strict = Node::open_in(&nats, "test", "a", settings).await;
    let b = Node::open(&nats, "b").await;
    let board = TestDevice::board(1);
    strict.join(&board);
    b.sees("board-1").await;
    let error = b.call("board-1", "echo", json!({})).await.expect_err("the other node forbids it");
    assert!(
        matches!(error.kind, ErrorKind::PermissionDenied | ErrorKind::UnknownTool | ErrorKind::ActionFailed),
        "{error:?}"
    );
    assert_eq!(board.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_reports_faster_than_it_is_heard_is_still_asked_and_answered() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    let listener = Arc::new(Listener::default());
    let answer = b.call_with("board-1", "flood", json!({}), listener.clone()).await.expect("it ends");
    assert_eq!(text_of(&answer), "done");
    let heard = listener.heard.lock().expect("a lock");
    assert!(heard.len() < 100_000, "all of {} reports waited somewhere", heard.len());
    assert_eq!(heard.iter().filter(|line| line.starts_with("asked")).count(), 1);
}

/// A caller that sends a file along.
struct Sender;

impl Attachment for Sender {
    fn sizes(&self) -> &[u64] {
        &[1]
    }

    fn next(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl Caller for Sender {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, _: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn attachment(&self) -> Option<Arc<dyn Attachment>> {
        Some(Arc::new(Sender))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_files_is_refused_and_the_node_that_takes_it_is_named() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let error = b.call_with("board-1", "echo", json!({}), Arc::new(Sender)).await.expect_err("files stay here");
    assert_eq!((error.kind, board.count()), (ErrorKind::Unsupported, 0));
    assert!(error.message.contains("the node `a`"), "{error}");
    a.call_with("board-1", "echo", json!({}), Arc::new(Sender)).await.expect("the device is here");
}
