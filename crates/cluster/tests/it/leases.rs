//! A device is reserved at the node that has it, wherever its callers come in.

use std::sync::Arc;
use std::time::Duration;

use sinew_gateway::{Label, Principal, Reservation, Role};
use sinew_tool::{ErrorKind, Outcome, ToolError, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice, soon};

fn client(name: &str) -> Principal {
    Principal::new(name, Role::Client)
}

fn wish(device: &str, wait: u64) -> Reservation {
    Reservation {
        device: device.to_owned(),
        time: Duration::from_secs(300),
        wait: Duration::from_secs(wait),
        purpose: "a test".to_owned(),
        ..Reservation::default()
    }
}

async fn call(node: &Node, who: &str, device: &str, tool: &str) -> Result<Outcome, ToolError> {
    node.call_as(who, device, tool, json!({}), Arc::new(sinew_tool::Silent)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_reserved_at_one_node_is_kept_from_callers_of_all() {
    let nats = NatsServer::open().await;
    let [a, b, c] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await, Node::open(&nats, "c").await];
    let board = TestDevice::board(1);
    a.join(&board);
    for node in [&b, &c] {
        node.sees("board-1").await;
    }
    let lease = b.gateway.reserve(&client("anna"), wish("board-1", 0)).await.expect("reserved");
    assert_eq!((lease.view.device.as_str(), lease.view.holder.as_str()), ("board-1", "anna"));
    let id = lease.view.device.clone();
    assert_eq!(a.gateway.lease(&id).expect("it is reserved").holder, "anna");
    for node in [&a, &b, &c] {
        let error = call(node, "ben", "board-1", "echo").await.expect_err("it is reserved");
        assert_eq!(error.kind, ErrorKind::Reserved, "{error}");
        call(node, "ben", "board-1", "look").await.expect("looking is always possible");
        call(node, "anna", "board-1", "echo").await.expect("she has it");
        let error = node.gateway.reserve(&client("ben"), wish("board-1", 0)).await.expect_err("it is reserved");
        assert_eq!(error.kind, ErrorKind::Reserved, "{error}");
    }
    // By the lease, where she got it.
    let named = format!("lease:{}", lease.id);
    call(&b, "anna", &named, "echo").await.expect("she has it");
    assert_eq!(call(&b, "ben", &named, "echo").await.expect_err("not his").kind, ErrorKind::Reserved);
    assert_eq!(board.count(), 7);

    // Whoever waits at a third node gets it when it is given back at the second.
    let (anna, ben) = (client("anna"), client("ben"));
    let (waiting, released) = tokio::join!(c.gateway.reserve(&ben, wish("board-1", 30)), async {
        soon("he waits", || async { a.gateway.lease(&id).is_some_and(|lease| lease.waiting > 0) }).await;
        b.gateway.release(&anna, &named).await
    });
    assert_eq!(released, Ok(true));
    waiting.expect("it is free");
    assert_eq!(call(&b, "anna", "board-1", "echo").await.expect_err("he has it").kind, ErrorKind::Reserved);

    // An administrator takes it away at a node that does not have it.
    let admin = Principal::new("admin", Role::Admin);
    let broken = b.gateway.break_lease(&admin, "board-1").await.expect("broken");
    assert_eq!((broken.device.as_str(), broken.holder.as_str()), ("board-1", "ben"));
    let told = call(&c, "ben", "board-1", "echo").await.expect_err("it was taken away");
    assert!(told.message.contains("admin"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_free_device_of_a_label_may_be_at_any_node() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let boards = [TestDevice::board(1), TestDevice::board(2)];
    a.join(&boards[0]);
    b.join(&boards[1]);
    a.sees("board-2").await;
    b.sees("board-1").await;
    let rack = [Label::parse("rack").expect("a label")];
    for device in ["board-1", "board-2"] {
        a.gateway.label(device, &rack, &[]).expect("labelled");
        soon("the label is known", || async {
            b.gateway.find_device(device).is_some_and(|device| device.labels == rack)
        })
        .await;
    }
    let mut devices = Vec::new();
    for who in ["anna", "ben"] {
        let lease = b.gateway.reserve(&client(who), wish("label:rack", 0)).await.expect("one is free");
        devices.push(lease.view.device.to_string());
    }
    devices.sort();
    assert_eq!(devices, ["board-1", "board-2"]);
    let error = a.gateway.reserve(&client("carl"), wish("label:rack", 0)).await.expect_err("none is free");
    assert_eq!(error.kind, ErrorKind::Reserved, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_for_a_device_of_a_dead_node_says_so() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    a.die().await;
    let error = b.gateway.reserve(&client("anna"), wish("board-1", 0)).await.expect_err("nobody is there");
    assert_eq!(error.kind, ErrorKind::DeviceAway, "{error}");
}
