//! Calls that meet a node which stops.

use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sinew_cluster::Timing;
use sinew_gateway::Settings;
use sinew_tool::{ErrorKind, Value, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice};

/// Everything that is said to a node.
async fn said_to(outside: &Client, node: &str) -> Subscriber {
    let heard = outside.subscribe(format!("sinew.test.node.{node}.*")).await.expect("subscribed");
    outside.flush().await.expect("subscribed");
    heard
}

/// The head of a message and its text.
fn read(message: &Message) -> (Value, Value) {
    let mut lines = message.payload.splitn(2, |byte| *byte == b'\n');
    let mut next = || serde_json::from_slice(lines.next().expect("a line")).expect("JSON");
    (next(), next())
}

/// Who is counted on for so long that nothing of this test depends on it.
async fn patient(nats: &NatsServer, name: &str) -> Node {
    let timing =
        Timing { act_for: Duration::from_secs(590), dead_after: Duration::from_secs(600), ..Timing::default() };
    Node::open_timed(nats, "test", name, Settings::default(), timing).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_came_too_late_for_a_node_that_stopped_runs_elsewhere_unless_an_answer_may_be_lost() {
    for (connected_ms, is_run_elsewhere) in [(600_000, true), (0, false)] {
        let nats = NatsServer::open().await;
        let [a, b, c] = [patient(&nats, "a").await, patient(&nats, "b").await, patient(&nats, "c").await];
        let (old, new) = (TestDevice::board(1), TestDevice::board(1));
        a.join(&old);
        c.sees("board-1").await;
        // The call is sent to a process that reads nothing more, which the server does not know yet.
        let outside = nats.client().await;
        let mut unread = said_to(&outside, "a").await;
        a.die().await;
        let last_word = async {
            // Other nodes may have something else to say before.
            let (message, head) = loop {
                let message = unread.next().await.expect("the call");
                let (head, text) = read(&message);
                if text["body"]["call"]["form"]["tool"] == "echo" {
                    break (message, head);
                }
            };
            b.join(&new);
            b.is_settled().await;
            let caller = format!("sinew.test.node.c.{}", head["boot"].as_str().expect("a run"));
            let run = message.subject.rsplit('.').next().expect("a run");
            let head = json!({"v": 1, "from": "a", "boot": run, "id": "last", "part": 0, "parts": 1});
            let text = json!({"call": "", "body": {"stopped": {"connected_ms": connected_ms}}});
            outside.publish(caller, Bytes::from(format!("{head}\n{text}"))).await.expect("sent");
        };
        let (answer, ()) = tokio::join!(c.call("board-1", "echo", json!({})), last_word);
        assert_eq!((old.count(), new.count()), (0, usize::from(is_run_elsewhere)));
        match is_run_elsewhere {
            true => drop(answer.expect("the other node has the device")),
            false => assert_eq!(answer.expect_err("nobody knows").kind, ErrorKind::DeviceLost),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_the_moment_in_which_a_node_stops_run_once_each() {
    let nats = NatsServer::open().await;
    let [a, b, c] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await, Node::open(&nats, "c").await];
    b.is_settled().await;
    let boards = || (0..10).map(TestDevice::board).collect::<Vec<_>>();
    let (old, new) = (boards(), boards());
    old.iter().for_each(|board| a.join(board));
    let ids: Vec<String> = (0..10).map(|number| format!("board-{number}")).collect();
    for id in &ids {
        c.sees(id).await;
    }
    // As many as a device takes at once.
    let many = ids.iter().flat_map(|id| (0..50).map(move |_| id));
    let mut calls: FuturesUnordered<_> = many.map(|id| c.call(id, "echo", json!({}))).collect();
    let answered = async {
        while let Some(answer) = calls.next().await {
            answer.expect("it is answered here or there");
        }
    };
    let moving = async { new.iter().for_each(|board| b.join(board)) };
    tokio::join!(answered, a.stop_with(Duration::from_secs(50)), moving);
    assert_eq!(old.iter().chain(&new).map(|board| board.count()).sum::<usize>(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_process_is_gone_ends_without_waiting_for_its_lease() {
    let nats = NatsServer::open().await;
    let [a, c] = [patient(&nats, "a").await, patient(&nats, "c").await];
    let board = TestDevice::board(1);
    a.join(&board);
    c.sees("board-1").await;
    let (answer, ()) = tokio::join!(c.call("board-1", "wait", json!({})), async {
        board.began.notified().await;
        a.die().await;
    });
    assert_eq!(answer.expect_err("nobody answers").kind, ErrorKind::DeviceLost);
}
