//! NATS that is away, killed or empty; nodes that die; and messages from outside.

use bytes::Bytes;
use futures_util::StreamExt;
use sinew_gateway::Role;
use sinew_tool::{ErrorKind, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_without_nats_serves_its_own_and_joins_later() {
    let mut nats = NatsServer::planned().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let (board, phone) = (TestDevice::board(1), TestDevice::phone(1));
    a.join(&board);
    a.join(&phone);
    a.sees("board-1").await;
    a.sees("phone-1").await;
    a.call("board-1", "echo", json!({})).await.expect("its own board");
    // Another node could reach the phone too, so it is only looked at.
    a.call("phone-1", "look", json!({})).await.expect("looking does no harm");
    let error = a.call("phone-1", "echo", json!({})).await.expect_err("nobody assigned it");
    assert_eq!((error.kind, phone.count()), (ErrorKind::DeviceAway, 1));
    nats.start().await;
    b.sees("board-1").await;
    b.call("board-1", "echo", json!({})).await.expect("at the other node");
    soon("the phone is assigned", || async { b.call("phone-1", "echo", json!({})).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_come_back_after_nats_was_killed_and_after_it_lost_everything() {
    let mut nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let boards = [TestDevice::board(1), TestDevice::board(2), TestDevice::board(3)];
    a.join(&boards[0]);
    b.sees("board-1").await;
    for (number, is_lost) in [(1, false), (2, true)] {
        nats.kill().await;
        soon("the connection is gone", || async { !a.cluster.status().is_connected }).await;
        a.call("board-1", "echo", json!({})).await.expect("its own board");
        let error = b.call("board-1", "echo", json!({})).await.expect_err("at another node");
        assert_eq!(error.kind, ErrorKind::DeviceAway, "{error}");
        // One connects meanwhile.
        a.join(&boards[number]);
        if is_lost {
            nats.lose_store();
        }
        nats.start().await;
        for board in 1..=number + 1 {
            let id = format!("board-{board}");
            soon("all boards are called", || async { b.call(&id, "echo", json!({})).await.is_ok() }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_somebody_deletes_is_made_again_and_told_everything() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    for node in [&a, &b] {
        node.knows(2).await;
        node.is_settled().await;
    }
    let store = async_nats::jetstream::new(nats.client().await);
    store.delete_stream("KV_sinew-test-shared").await.expect("deleted");
    let (_, token) = a.gateway.tokens().create(Role::Client, "laptop").expect("made");
    soon("the token is valid at the other node", || async { b.gateway.tokens().check(&token).is_some() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_node_dies_may_have_happened_and_is_not_repeated() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let (board, other) = (TestDevice::board(1), TestDevice::board(2));
    a.join(&board);
    a.join(&other);
    b.sees("board-1").await;
    b.sees("board-2").await;
    let (answer, ()) = tokio::join!(b.call("board-1", "wait", json!({})), async {
        board.began.notified().await;
        a.die().await;
    });
    let error = answer.expect_err("nobody answers");
    assert_eq!((error.kind, board.count()), (ErrorKind::DeviceLost, 1), "{error}");
    b.loses("board-1").await;
    b.loses("board-2").await;
    let error = b.call("board-2", "echo", json!({})).await.expect_err("it is away");
    assert_eq!((error.kind, other.count()), (ErrorKind::DeviceAway, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_messages_from_outside_change_nothing() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let outside = nats.client().await;
    let mut heard = outside.subscribe("sinew.test.node.a.*").await.expect("subscribed");
    b.call("board-1", "echo", json!({})).await.expect("it answers");
    let subject = heard.next().await.expect("the call").subject;
    let call = r#"{"call":"1","body":{"call":{"device":"00000000000000000000000000000000","fence":{"store":"1","revision":"1"},"form":{"tool":"echo","args":{},"budget":{"secs":1,"nanos":0},"from":""},"origin":{"name":"x","id":"x","is_admin":true,"kind":"token","door":"mcp","policy":"","is_approved":true},"is_patient":false,"repeats_calls":false,"is_urgent":false}}}"#;
    for text in [
        "",
        "hello",
        "{}\n{}",
        "{\"v\":2,\"from\":\"b\",\"boot\":\"1\",\"id\":\"1\",\"part\":0,\"parts\":1}\n{}",
        "{\"v\":1,\"from\":\"b\",\"boot\":\"1\",\"id\":\"1\",\"part\":0,\"parts\":1}\n{\"call\":\"1\",\"body\":\"refused\"}",
        &format!("{{\"v\":1,\"from\":\"b\",\"boot\":\"1\",\"id\":\"1\",\"part\":0,\"parts\":1}}\n{call}"),
    ] {
        outside.publish(subject.clone(), Bytes::copy_from_slice(text.as_bytes())).await.expect("sent");
    }
    for bucket in ["nodes", "devices-0", "devices-7"] {
        for (key, text) in [("x", "{}"), ("00000000000000000000000000000000", "[]"), ("c", r#"{"v":9,"boot":"1"}"#)] {
            let subject = format!("$KV.sinew-test-{bucket}.{key}");
            outside.publish(subject, Bytes::copy_from_slice(text.as_bytes())).await.expect("sent");
        }
    }
    outside.flush().await.expect("sent");
    for _ in 0..5 {
        b.call("board-1", "echo", json!({})).await.expect("it answers");
    }
    assert_eq!(board.count(), 6);
    let c = Node::open(&nats, "c").await;
    c.sees("board-1").await;
    c.knows(3).await;
}
