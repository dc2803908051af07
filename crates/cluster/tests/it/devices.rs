//! Every node lists the devices of all.

use std::sync::Arc;

use sinew_tool::{DeviceEvent, Status, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice, soon, text_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_one_node_is_listed_and_called_at_all() {
    let nats = NatsServer::open().await;
    let [a, b, c] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await, Node::open(&nats, "c").await];
    let board = TestDevice::board(1);
    a.join(&board);
    for node in [&a, &b, &c] {
        node.sees("board-1").await;
        let answer = node.call("board-1", "echo", json!({"x": 1})).await.expect("it answers");
        assert_eq!(text_of(&answer), r#"{"x":1}"#);
    }
    assert_eq!(board.count(), 3);
    let mirrored = b.gateway.find_device("board-1").expect("listed");
    assert_eq!((mirrored.family.name.as_str(), &mirrored.attributes["node"]), ("board", &json!("a")));
    assert_eq!(c.gateway.find_device("board-1").expect("listed").attributes["node"], json!("a"));
    assert_eq!(a.gateway.find_device("board-1").expect("listed").attributes.get("node"), None);

    a.leave(&board);
    for node in [&a, &b, &c] {
        node.loses("board-1").await;
    }
    for node in [a, b, c] {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_device_is_changed_at_all() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let set_status = |status| {
        Arc::make_mut(&mut board.info.lock().expect("a lock")).status = status;
        (a.gateway.announce())(DeviceEvent::Changed(board.clone()));
    };
    set_status(Status::Limited { state: "no MCP".to_owned(), remedy: "wait".to_owned() });
    b.loses("board-1").await;
    set_status(Status::Ready);
    b.sees("board-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_tools_travel_once() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let boards: Vec<_> = (0..200).map(TestDevice::board).collect();
    boards.iter().for_each(|board| a.join(board));
    for number in [0, 99, 199] {
        b.sees(&format!("board-{number}")).await;
    }
    soon("all are listed", || async { (0..200).all(|number| b.is_ready(&format!("board-{number}"))) }).await;
    let store = async_nats::jetstream::new(nats.client().await);
    let sets = store.get_stream("KV_sinew-test-toolsets").await.expect("a bucket");
    // A head, and one part.
    assert_eq!(sets.get_info().await.expect("a bucket").state.messages, 2);
    let status = b.cluster.status();
    assert_eq!(
        status.nodes.iter().map(|node| (node.name.as_str(), node.devices)).collect::<Vec<_>>(),
        [("a", 200), ("b", 0)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_takes_its_devices_along() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    a.join(&TestDevice::board(1));
    b.sees("board-1").await;
    a.stop().await;
    b.loses("board-1").await;
    b.knows(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_on_one_server_do_not_meet() {
    let nats = NatsServer::open().await;
    let mine = Node::open(&nats, "a").await;
    let other = Node::open_in(&nats, "other", "a", sinew_gateway::Settings::default()).await;
    let friend = Node::open(&nats, "b").await;
    other.join(&TestDevice::board(7));
    mine.join(&TestDevice::board(1));
    friend.sees("board-1").await;
    other.is_settled().await;
    for node in [&mine, &friend] {
        assert!(node.gateway.find_device("board-7").is_none());
        node.knows(2).await;
    }
    assert!(other.gateway.find_device("board-1").is_none());
    other.knows(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_of_one_name_keeps_to_its_own_devices() {
    let nats = NatsServer::open().await;
    let [a, twin] = [Node::open(&nats, "a").await, Node::open(&nats, "a").await];
    let b = Node::open(&nats, "b").await;
    let boards = [TestDevice::board(1), TestDevice::board(2)];
    a.join(&boards[0]);
    twin.join(&boards[1]);
    // One of the two is the node; the other serves what it has.
    soon("one of them is in", || async { b.is_ready("board-1") || b.is_ready("board-2") }).await;
    assert!(a.call("board-1", "echo", json!({})).await.is_ok());
    assert!(twin.call("board-2", "echo", json!({})).await.is_ok());
}
