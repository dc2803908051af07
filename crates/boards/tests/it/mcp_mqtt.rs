//! "MCP over MQTT" through a real Mosquitto, both ways: servers there are devices, and the gateway is such a server.

use serde_json::{Value, json};
use sinew_boards::broker::{self, Address, OfferedServer};
use sinew_sim::server::{self, ServerConfig};
use sinew_tool::{Admission, Device, DeviceEvent, LeaveReason};
use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::mosquitto::Mosquitto;
use crate::mqtt::Client;
use crate::support::{TestGateway, answered, call, soon};

fn address(mosquitto: &Mosquitto) -> Address {
    Address::new(&mosquitto.url(), None, None).expect("an address")
}

fn follow(gateway: &TestGateway, mosquitto: &Mosquitto) -> JoinHandle<std::io::Result<()>> {
    follow_with(gateway, mosquitto, true)
}

fn follow_with(gateway: &TestGateway, mosquitto: &Mosquitto, gateways: bool) -> JoinHandle<std::io::Result<()>> {
    let (boards, shutdown) = (gateway.boards.clone(), gateway.shutdown.clone());
    tokio::spawn(broker::follow_servers(address(mosquitto), "#".to_owned(), gateways, boards, shutdown))
}

#[tokio::test]
async fn where_tools_are_offered_other_gateways_are_not_followed() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let (_gateway, _) = lamp(&mosquitto, "sinew-0123456789ab");
    // Who offers nothing finds it, so its presence is with the broker.
    let mut other = TestGateway::open().await;
    let _watching = follow(&other, &mosquitto);
    other.joined().await;
    let _following = follow_with(&gateway, &mosquitto, false);
    // Each of them begins when the one before has joined; a gateway that is followed would be there long before the last.
    for id in ["lamp-1", "lamp-2", "lamp-3"] {
        let (_lamp, _) = lamp_named(&mosquitto, id, &format!("home/{id}"));
        assert_eq!(gateway.joined().await.info().attributes["hardware_id"], id);
    }
}

fn lamp(mosquitto: &Mosquitto, id: &str) -> (CancellationToken, JoinHandle<()>) {
    lamp_named(mosquitto, id, "home/Desk Lamp")
}

fn lamp_named(mosquitto: &Mosquitto, id: &str, name: &str) -> (CancellationToken, JoinHandle<()>) {
    let config = ServerConfig {
        url: mosquitto.url(),
        server_id: id.to_owned(),
        server_name: name.to_owned(),
        description: "A lamp on the desk".to_owned(),
    };
    let shutdown = CancellationToken::new();
    let end = shutdown.clone();
    (end, tokio::spawn(async move { server::run(config, shutdown).await.expect("it lives") }))
}

fn names(device: &std::sync::Arc<dyn Device>) -> Vec<String> {
    device.tools().iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_server_on_a_broker_is_a_device_tells_of_new_tools_and_leaves() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    // It is there before anybody looks.
    let (end, life) = lamp(&mosquitto, "lamp-1");
    let following = follow(&gateway, &mosquitto);
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!((info.key.0.as_str(), info.suggested_id.as_str()), ("provider:mqtt:/home/Desk Lamp", "desk-lamp"));
    assert_eq!(info.instructions.as_deref(), Some("A lamp on the desk"));
    assert!(matches!(info.admission, Admission::Broker(_)), "{:?}", info.admission);
    let outcome = answered(call(&device, "switch", json!({"on": true}))).await.expect("an answer");
    assert!(format!("{outcome:?}").contains("true"), "{outcome:?}");
    assert!(!names(&device).contains(&"dim".to_owned()));
    answered(call(&device, "grow", json!({}))).await.expect("an answer");
    loop {
        if let DeviceEvent::Changed(changed) = gateway.next().await
            && names(&changed).contains(&"dim".to_owned())
        {
            break;
        }
    }
    end.cancel();
    soon(life).await.expect("no panic");
    assert_eq!(gateway.left().await.1, LeaveReason::Closed);
    gateway.shutdown.cancel();
    soon(following).await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn a_server_that_vanishes_is_gone_by_its_will_and_comes_back() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let _following = follow(&gateway, &mosquitto);
    let (_, life) = lamp(&mosquitto, "lamp-1");
    gateway.joined().await;
    life.abort();
    gateway.left().await;
    let (_end, _life) = lamp(&mosquitto, "lamp-1");
    assert!(names(&gateway.joined().await).contains(&"switch".to_owned()));
}

#[tokio::test]
async fn a_server_with_another_id_at_each_start_is_one_device() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let _following = follow(&gateway, &mosquitto);
    let (end, life) = lamp(&mosquitto, "random-1");
    let key = gateway.joined().await.info().key.clone();
    // The next one starts before the last one has gone.
    let (_end, _life) = lamp(&mosquitto, "random-2");
    end.cancel();
    soon(life).await.expect("no panic");
    let (left, reason) = gateway.left().await;
    assert_eq!((&left.info().key, reason), (&key, LeaveReason::Closed));
    let next = gateway.joined().await.info();
    assert_eq!((&next.key, &next.attributes["hardware_id"]), (&key, &json!("random-2")));
}

#[tokio::test]
async fn a_server_that_is_known_by_its_own_id_stays_that_device() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let _following = follow(&gateway, &mosquitto);
    let (_known, _) = lamp(&mosquitto, "known");
    assert_eq!(gateway.joined().await.info().key.0, "provider:mqtt:known/home/Desk Lamp");
    let (_other, _) = lamp(&mosquitto, "other");
    assert_eq!(gateway.joined().await.info().key.0, "provider:mqtt:/home/Desk Lamp");
}

#[tokio::test]
async fn presence_without_a_server_and_words_that_are_none_are_left_alone() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let mut stranger = Client::at(mosquitto.address, 4).await;
    assert_eq!(stranger.connect("stranger", "x", 60).await, 0);
    let online = br#"{"jsonrpc":"2.0","method":"notifications/server/online","params":{}}"#;
    for (topic, payload) in [
        ("$mcp-server/presence/stale/a/b", &online[..]),
        ("$mcp-server/presence/odd/a", b"hello"),
        ("$mcp-server/presence/odd/a", b"\xff"),
        ("$mcp-server/presence/only-an-id", online),
    ] {
        stranger.publish_to(topic, 1, payload).await;
    }
    let _following = follow(&gateway, &mosquitto);
    let (_end, _life) = lamp(&mosquitto, "lamp-1");
    assert_eq!(gateway.joined().await.info().attributes["server_name"], "home/Desk Lamp");
}

/// What speaks MCP at the other end of a pipe: a board of the SDK, a message a line.
fn mcp() -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(theirs);
        let mut board = Board::new("gateway", "1.0").tool(
            ToolSpec::new("add", "Add").with(Property::integer("a", ..)).with(Property::integer("b", ..)),
            |arguments| Ok(Reply::from((arguments.integer("a")? + arguments.integer("b")?).to_string())),
        );
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(answer) = board.handle_rpc(message) {
                writer.write_all(format!("{answer}\n").as_bytes()).await.expect("written");
            }
        }
    });
    ours
}

#[tokio::test]
async fn the_gateway_is_a_server_on_a_broker_for_whoever_introduces_itself() {
    let (mosquitto, mut gateway) = (Mosquitto::open().await, TestGateway::open().await);
    let offering = OfferedServer::new("sinew-test".to_owned(), "sinew/test", "Everything here").expect("a name");
    let shutdown = CancellationToken::new();
    let offered = broker::offer(address(&mosquitto), offering, |_| mcp(), shutdown.clone());
    let offered = tokio::spawn(offered);
    // Whoever does not say who it is, or speaks out of turn, gets no session.
    let mut stranger = Client::at(mosquitto.address, 4).await;
    assert_eq!(stranger.connect("stranger", "x", 60).await, 0);
    for text in [r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, "{}", "\u{7f}", r#"{"method":"tools/list"}"#] {
        stranger.publish_to("$mcp-server/sinew-test/sinew/test", 0, text.as_bytes()).await;
        stranger.publish_to("$mcp-rpc/stranger/sinew-test/sinew/test", 0, text.as_bytes()).await;
    }
    let _following = follow(&gateway, &mosquitto);
    let device = gateway.joined().await;
    assert_eq!(device.info().instructions.as_deref(), Some("Everything here"));
    // The arguments arrive in the order of the declaration, whatever the caller's.
    let outcome = answered(call(&device, "add", json!({"b": 2, "a": 40}))).await.expect("an answer");
    assert!(format!("{outcome:?}").contains("42"), "{outcome:?}");
    shutdown.cancel();
    soon(offered).await.expect("no panic").expect("no error");
    assert_eq!(gateway.left().await.1, LeaveReason::Closed);
}

#[test]
fn a_server_name_is_levels_without_wildcards() {
    for wrong in ["", "a/", "/a", "a/+", "#"] {
        assert!(OfferedServer::new("x".to_owned(), wrong, "").expect_err(wrong).contains("sinew/home"));
    }
}
