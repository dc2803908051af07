//! Devices that move between nodes, and those that several nodes can reach.

use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{DeviceKey, ErrorKind, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_dials_another_node_is_taken_over_and_the_old_node_lets_go() {
    let nats = NatsServer::open().await;
    let [a, b, c] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await, Node::open(&nats, "c").await];
    let (old, new) = (TestDevice::board(1), TestDevice::board(1));
    a.join(&old);
    for node in [&b, &c] {
        node.sees("board-1").await;
    }
    b.join(&new);
    soon("the old node lets go", || async { *a.let_go.lock().expect("a lock") == [DeviceKey("board:1".to_owned())] })
        .await;
    for node in [&a, &b, &c] {
        soon("calls go to the new connection", || async {
            let before = new.count();
            node.call("board-1", "echo", json!({})).await.is_ok() && new.count() == before + 1
        })
        .await;
    }
    // What the old connection says now ends nothing.
    a.leave(&old);
    a.call("board-1", "echo", json!({})).await.expect("it is at the other node");
    assert_eq!((old.count(), b.cluster.status().moves), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_moves_all_the_time_runs_every_call_once_or_not_at_all() {
    let nats = NatsServer::open().await;
    let [a, b, c] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await, Node::open(&nats, "c").await];
    let connections: Vec<Arc<TestDevice>> = (0..6).map(|_| TestDevice::board(1)).collect();
    let (mut answered, mut unknown, mut refused) = (0, 0, 0);
    for (number, connection) in connections.iter().enumerate() {
        [&a, &b][number % 2].join(connection);
        c.sees("board-1").await;
        for _ in 0..20 {
            match c.call("board-1", "echo", json!({})).await {
                Ok(_) => answered += 1,
                Err(error) if error.kind == ErrorKind::DeviceAway => refused += 1,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::DeviceLost, "{error}");
                    unknown += 1;
                }
            }
        }
    }
    let ran: usize = connections.iter().map(|connection| connection.count()).sum();
    assert!((answered..=answered + unknown).contains(&ran), "{answered} {unknown} {refused}: {ran} ran");
    assert!(answered > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_two_nodes_reach_is_used_by_one_and_taken_over_by_the_other() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let (of_a, of_b) = (TestDevice::phone(1), TestDevice::phone(1));
    a.join(&of_a);
    soon("it is held", || async { a.call("phone-1", "echo", json!({})).await.is_ok() }).await;
    b.sees("phone-1").await;
    b.join(&of_b);
    b.is_settled().await;
    let before = of_a.count();
    for _ in 0..5 {
        b.call("phone-1", "echo", json!({})).await.expect("the other node has it");
    }
    assert_eq!((of_a.count() - before, of_b.count()), (5, 0));
    a.stop().await;
    soon("it is taken over", || async { b.call("phone-1", "echo", json!({})).await.is_ok() }).await;
    assert_eq!((of_a.count() - before, of_b.count() > 0), (5, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_a_board_whose_node_stops_and_none_fails() {
    let nats = NatsServer::open().await;
    let mut nodes = vec![Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let caller = Node::open(&nats, "c").await;
    let mut connections = vec![TestDevice::board(1)];
    for node in &nodes {
        node.is_settled().await;
    }
    nodes[0].join(&connections[0]);
    caller.sees("board-1").await;
    let restarts = async {
        for number in 0..3 {
            // A call is under way when the node stops.
            let (board, stopping) = (connections[number].clone(), nodes.remove(0));
            board.began.notified().await;
            let stopped = tokio::spawn(stopping.stop_with(Duration::from_secs(20)));
            let next = TestDevice::board(1);
            nodes[0].join(&next);
            connections.push(next);
            board.go_on.notify_one();
            stopped.await.expect("it stops");
            // As `sinew cluster` would show it, before the next node stops.
            let started = Node::open(&nats, ["a", "b"][number % 2]).await;
            started.is_settled().await;
            nodes.push(started);
        }
    };
    let calls = async {
        for _ in 0..3 {
            let waiting = caller.call("board-1", "wait", json!({})).await;
            waiting.expect("the node answers what it took before it ends");
            for _ in 0..5 {
                caller.call("board-1", "echo", json!({})).await.expect("the call waits for the board");
            }
        }
    };
    tokio::join!(calls, restarts);
    let ran: usize = connections.iter().map(|connection| connection.count()).sum();
    assert_eq!(ran, 18);
}
