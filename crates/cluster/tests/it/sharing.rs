//! What is done at one node counts at all: tokens, public names, what people gave devices, the keys of request state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sinew_gateway::{Follow, IfTaken, Label, Principal, Role, Settings, Shape};
use sinew_tool::{Applicant, DeviceId, DeviceKey, Enrol, Enrolment, Reach, Tool, json};

use crate::nats_server::NatsServer;
use crate::support::{Node, TestDevice, soon};

async fn open_at(nats: &NatsServer, name: &str, folder: &Path) -> Node {
    let settings = Settings { state_dir: Some(folder.to_owned()), ..Settings::default() };
    Node::open_in(nats, "test", name, settings).await
}

async fn accepts(node: &Node, token: &str) {
    soon("the token is valid", || async { node.gateway.tokens().check(token).is_some() }).await;
}

async fn refuses(node: &Node, token: &str) {
    soon("the token is not valid", || async { node.gateway.tokens().check(token).is_none() }).await;
}

/// Waits until a node has what the others shared, and the others what it has.
async fn is_joined(nodes: &[&Node]) {
    for node in nodes {
        node.is_settled().await;
        let keys = || async { node.gateway.request_keys().len() == nodes.len() };
        soon("all keys are known", keys).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_valid_and_revoked_at_all_nodes() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let (view, token) = a.gateway.tokens().create(Role::Client, "laptop").expect("made");
    accepts(&b, &token).await;
    // Whoever comes later has it too, also with its label and its end.
    let until = view.created + 3_600_000;
    let (_, dated) = b.gateway.tokens().create_until(Role::Admin, "phone", Some(until), IfTaken::Refuse).expect("made");
    let c = Node::open(&nats, "c").await;
    accepts(&c, &token).await;
    accepts(&c, &dated).await;
    let listed = c.gateway.tokens().list();
    let phone = listed.iter().find(|token| token.label == "phone").expect("listed");
    assert_eq!((phone.role, phone.expires), ("admin", Some(until)));

    // Revoked at one node, it ends the sessions of all.
    let who = a.gateway.tokens().check(&token).expect("valid");
    let ended = a.gateway.tokens().revoked(&who);
    c.gateway.tokens().revoke(&view.id).expect("revoked");
    tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.expect("the session ended");
    for node in [&a, &b, &c] {
        refuses(node, &token).await;
        assert!(node.gateway.tokens().check(&dated).is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_revoked_while_nats_was_away_or_lost_everything_stays_so() {
    let (mut nats, folders) = (NatsServer::open().await, [(); 2].map(|()| tempfile::tempdir().expect("a folder")));
    let a = open_at(&nats, "a", folders[0].path()).await;
    let b = open_at(&nats, "b", folders[1].path()).await;
    is_joined(&[&a, &b]).await;
    let tokens: Vec<_> = (0..2).map(|_| a.gateway.tokens().create(Role::Client, "laptop").expect("made")).collect();
    for (_, token) in &tokens {
        accepts(&b, token).await;
    }
    nats.kill().await;
    soon("the connection is gone", || async { !a.cluster.status().is_connected }).await;
    a.gateway.tokens().revoke(&tokens[0].0.id).expect("revoked");
    assert!(b.gateway.tokens().check(&tokens[0].1).is_some(), "it cannot know");
    // A new token meanwhile, and a restart of the node that revoked the other.
    let (_, third) = b.gateway.tokens().create(Role::Client, "tablet").expect("made");
    let gateway = a.gateway.clone();
    a.die().await;
    gateway.close().await;
    drop(gateway);
    nats.lose_store();
    nats.start().await;
    let a = open_at(&nats, "a", folders[0].path()).await;
    refuses(&b, &tokens[0].1).await;
    accepts(&a, &third).await;
    for node in [&a, &b] {
        assert!(node.gateway.tokens().check(&tokens[0].1).is_none());
        assert!(node.gateway.tokens().check(&tokens[1].1).is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_the_store_refuses_is_written_when_it_takes_it() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    let (view, token) = a.gateway.tokens().create(Role::Client, "laptop").expect("made");
    accepts(&b, &token).await;
    soon("everything is shared", || async { a.cluster.status().unshared == 0 }).await;
    // The server takes no records for a while, and the connection to it stays.
    let store = async_nats::jetstream::new(nats.client().await);
    let whole = store.get_stream("KV_sinew-test-shared").await.expect("a bucket").cached_info().config.clone();
    let tiny = async_nats::jetstream::stream::Config { max_message_size: 1, ..whole.clone() };
    store.update_stream(tiny).await.expect("changed");
    a.gateway.tokens().revoke(&view.id).expect("revoked");
    assert_eq!((a.cluster.status().unshared, a.gateway.tokens().check(&token).is_none()), (1, true));
    assert!(b.gateway.tokens().check(&token).is_some(), "it cannot know");
    store.update_stream(whole).await.expect("changed");
    refuses(&b, &token).await;
    soon("everything is shared", || async { a.cluster.status().unshared == 0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_opens_what_another_sealed_also_after_a_restart_without_nats() {
    let (mut nats, folder) = (NatsServer::open().await, tempfile::tempdir().expect("a folder"));
    let a = open_at(&nats, "a", folder.path()).await;
    let b = Node::open(&nats, "b").await;
    is_joined(&[&a, &b]).await;
    let keys = |node: &Node| node.gateway.request_keys();
    let sealing = [keys(&a)[0], keys(&b)[0]];
    assert_ne!(sealing[0], sealing[1], "each seals with its own");
    assert!(keys(&a).contains(&sealing[1]) && keys(&b).contains(&sealing[0]));
    let gateway = a.gateway.clone();
    a.die().await;
    gateway.close().await;
    drop(gateway);
    nats.kill().await;
    let a = open_at(&nats, "a", folder.path()).await;
    assert!(keys(&a)[0] == sealing[0] && keys(&a).contains(&sealing[1]));
}

fn tool(name: &str, number: u8) -> Tool {
    Tool::new(name, "Sets something.", json!({"type": "object", "properties": {"v": {"maxLength": number}}}))
}

/// The public names at a node, each with how long its argument may be.
fn names(node: &Node) -> BTreeSet<(String, u64)> {
    let who = Principal::new("tester", Role::Admin);
    let list = node.gateway.list(&who, Shape::Folded);
    let own = list.tools.iter().filter(|tool| tool.selector.is_some());
    let number = |tool: &sinew_gateway::PublicTool| tool.tool.input_schema["properties"]["v"]["maxLength"].as_u64();
    own.map(|tool| (tool.name.clone(), number(tool).unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_name_means_the_same_tool_at_all_nodes() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    // Two devices whose tools want one name, at the same time at two nodes.
    a.join(&TestDevice::new(1, Reach::OneLink, vec![tool("set", 1)]));
    b.join(&TestDevice::new(2, Reach::OneLink, vec![tool("set", 2)]));
    let agree = || async {
        let (first, second) = (names(&a), names(&b));
        first.len() == 2 && first == second
    };
    soon("both nodes list both tools under the same names", agree).await;
    let known = names(&a);
    assert!(known.iter().any(|(name, _)| name == "set"));
    let numbers: BTreeSet<u64> = known.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, BTreeSet::from([1, 2]));
    // A node that comes later agrees.
    let c = Node::open(&nats, "c").await;
    soon("the third node agrees", || async { names(&c) == known }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_give_a_device_is_known_at_all_nodes() {
    let mut nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let board = TestDevice::board(1);
    a.join(&board);
    b.sees("board-1").await;
    let kitchen = [Label::parse("kitchen").expect("a label")];
    // At the node that does not have it.
    b.gateway.rename("board-1", "Küche").expect("renamed");
    a_has(&a, "Küche", &[]).await;
    a.gateway.label("Küche", &kitchen, &[]).expect("labelled");
    a_has(&b, "Küche", &kitchen).await;
    // What is changed while NATS is away follows.
    nats.kill().await;
    soon("the connection is gone", || async { !b.cluster.status().is_connected }).await;
    b.gateway.rename("board-1", "Flur").expect("renamed");
    nats.start().await;
    a_has(&a, "Flur", &kitchen).await;
    // A node that comes later gets both with the device.
    let c = Node::open(&nats, "c").await;
    a_has(&c, "Flur", &kitchen).await;
    a.gateway.label("Flur", &[], &kitchen).expect("removed");
    for node in [&b, &c] {
        a_has(node, "Flur", &[]).await;
    }
}

async fn a_has(node: &Node, name: &str, labels: &[Label]) {
    let is_it = || async {
        let device = node.gateway.find_device("board-1");
        device.is_some_and(|device| device.name.as_deref() == Some(name) && device.labels == labels)
    };
    soon(&format!("the device is {name} with {labels:?}"), is_it).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_another_policy_are_noticed() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    let policies = || {
        let nodes = a.cluster.status().nodes;
        nodes.into_iter().map(|node| node.policy).collect::<Vec<_>>()
    };
    let equal = || async {
        let policies = policies();
        policies.len() == 2 && policies[0].is_some() && policies[0] == policies[1]
    };
    soon("both have the same policy", equal).await;
    let mut access = sinew_gateway::AccessSettings::default();
    access.policy.read_only = true;
    b.gateway.set_access(access).expect("a policy");
    soon("they differ", || async {
        let policies = policies();
        policies.len() == 2 && policies[1].is_some() && policies[0] != policies[1]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_records_of_strangers_are_left_alone() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    let store = async_nats::jetstream::new(nats.client().await);
    let shared = store.get_key_value("sinew-test-shared").await.expect("a bucket");
    for (key, text) in [
        ("token.0a1b2c3d", "{}".to_owned()),
        ("token.0a1b2c3d", r#"{"v":9,"token":null}"#.to_owned()),
        ("name.00", "{}".to_owned()),
        ("device.zz", "[".repeat(5_000)),
        ("whatever", "x".repeat(600_000)),
        ("request-key.a", r#"{"v":1,"key":"00"}"#.to_owned()),
    ] {
        shared.put(key, text.into()).await.expect("written");
    }
    let (_, token) = a.gateway.tokens().create(Role::Client, "laptop").expect("made");
    accepts(&b, &token).await;
    assert_eq!(b.gateway.tokens().list().len(), 2, "its own, and the laptop's");
    assert_eq!(b.gateway.request_keys().len(), 2);
}

/// The devices of a node by their keys: who has which id there.
fn ids(node: &Node) -> BTreeMap<DeviceKey, DeviceId> {
    node.gateway.id_claims().into_iter().map(|(id, key)| (key, id)).collect()
}

/// A board that calls itself `esp32`, as many do.
fn esp32(number: usize) -> Arc<TestDevice> {
    let board = TestDevice::board(number);
    Arc::make_mut(&mut board.info.lock().expect("a lock")).suggested_id = "esp32".to_owned();
    board
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_means_the_same_device_at_all_nodes() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    for number in 0..10 {
        [&a, &b][number % 2].join(&esp32(number));
    }
    soon("both know all", || async { ids(&a).len() == 10 && ids(&b).len() == 10 }).await;
    assert_eq!(ids(&a), ids(&b));
    assert!(ids(&a).values().any(|id| id.as_str() == "esp32"));
    assert!(a.cluster.status().ids_twice.is_empty() && b.cluster.status().ids_twice.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_two_nodes_gave_while_nats_was_away_is_reported() {
    let mut nats = NatsServer::planned().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    for (number, node) in [&a, &b].into_iter().enumerate() {
        node.join(&esp32(number));
        node.sees("esp32").await;
    }
    nats.start().await;
    let told = || async { a.cluster.status().ids_twice.len() + b.cluster.status().ids_twice.len() == 1 };
    soon("one of both says so", told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_was_approved_at_one_node_gets_the_same_token_at_another() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    let board = |secret: &str| Applicant {
        hardware_id: "aa:bb:cc:dd:ee:01".to_owned(),
        secret: secret.to_owned(),
        kind: "bread-compact-wifi".to_owned(),
        version: "1.0".to_owned(),
        address: "192.168.1.7".parse().expect("an address"),
    };
    let Enrolment::Pending { code } = a.gateway.enrol(&board("own")) else { panic!("nobody approved it yet") };
    a.gateway.approve(&code).expect("approved");
    let Enrolment::Approved { token } = a.gateway.enrol(&board("own")) else { panic!("it was approved") };
    let same = || async { b.gateway.enrol(&board("own")) == Enrolment::Approved { token: token.clone() } };
    soon("the other node gives it the same", same).await;
    assert!(matches!(b.gateway.enrol(&board("another")), Enrolment::Pending { .. }), "it is another board");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_agreed_on_about_a_device_holds_at_all_nodes_also_when_it_moves() {
    let nats = NatsServer::open().await;
    let [a, b] = [Node::open(&nats, "a").await, Node::open(&nats, "b").await];
    is_joined(&[&a, &b]).await;
    let device = |number| TestDevice::new(1, Reach::OneLink, vec![tool("set", number)]);
    a.join(&device(1));
    b.sees("board-1").await;
    a.gateway.pin("board-1", Follow::Nothing).expect("pinned");
    let pinned = |node: &Node| node.gateway.find_device("board-1").is_some_and(|device| device.pinned);
    soon("the other node knows", || async { pinned(&b) }).await;
    // With other tools it comes to the other node, and to one that never knew it.
    let c = Node::open(&nats, "c").await;
    c.is_settled().await;
    b.join(&device(2));
    for node in [&a, &b, &c] {
        soon("its tools are held back", || async {
            node.gateway.find_device("board-1").is_some_and(|device| device.quarantined > 0)
        })
        .await;
    }
    // Not pinned any more, nothing is held back anywhere.
    c.gateway.unpin("board-1").expect("unpinned");
    for node in [&a, &b, &c] {
        let is_free = || async { !pinned(node) && names(node).iter().any(|(_, number)| *number == 2) };
        soon("it is not pinned", is_free).await;
    }
}
