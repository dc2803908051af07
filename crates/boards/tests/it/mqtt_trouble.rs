//! MQTT clients that misbehave. Each is refused or ended with a reason, and no other board notices.

use serde_json::json;
use sinew_sim::board::{BoardConfig, BoardKind, RunError};
use sinew_tool::{DeviceEvent, LeaveReason};

use crate::mqtt::Client;
use crate::support::{TOKEN, TestGateway, answered, call};

/// A board that joined, and another one that must not notice what happens to the first.
async fn with_witness(gateway: &mut TestGateway, version: u8) -> (Client, std::sync::Arc<dyn sinew_tool::Device>) {
    gateway.switch_on(BoardConfig { url: gateway.mqtt_url(), ..gateway.board("02:51:00:00:00:99", BoardKind::Relay) });
    let witness = gateway.joined().await;
    let mut client = Client::dial(gateway, version).await;
    assert_eq!(client.connect("aa", TOKEN, 240).await, 0);
    client.introduce().await;
    gateway.joined().await;
    (client, witness)
}

/// The end of the first board, and proof that the other one is well.
async fn ended(
    gateway: &mut TestGateway,
    client: &mut Client,
    witness: &std::sync::Arc<dyn sinew_tool::Device>,
) -> (String, Option<u8>) {
    let (left, reason) = gateway.left().await;
    let LeaveReason::Dismissed(why) = reason else { panic!("{reason}") };
    assert_eq!(left.info().attributes["trouble"], json!(why), "people can read it too");
    let mut code = None;
    while let Some((kind, body)) = client.packet().await {
        if kind == 0xe0 {
            code = body.first().copied();
        }
    }
    answered(call(witness, "self.get_relays", json!({}))).await.expect("the other one is well");
    (why, code)
}

#[tokio::test]
async fn publishes_of_wrong_quality_size_or_kind_end_the_connection_with_a_reason() {
    for version in [4, 5] {
        let mut gateway = TestGateway::open_with(|config| config.limits.message_bytes = 10_000).await;
        let (mut client, witness) = with_witness(&mut gateway, version).await;
        client.publish(0b0100, b"{}").await;
        let (why, code) = ended(&mut gateway, &mut client, &witness).await;
        assert!(why.contains("quality of service 2"), "{why}");
        assert_eq!(code, (version == 5).then_some(0x9b));
        gateway.close().await;

        let mut gateway = TestGateway::open_with(|config| config.limits.message_bytes = 10_000).await;
        let (mut client, witness) = with_witness(&mut gateway, version).await;
        client.publish(0, &vec![b'x'; 20_000]).await;
        let (why, code) = ended(&mut gateway, &mut client, &witness).await;
        assert!(why.contains("10000 bytes"), "{why}");
        assert_eq!(code, (version == 5).then_some(0x95));
        gateway.close().await;
    }
}

#[tokio::test]
async fn malformed_packets_end_the_connection_with_a_reason() {
    // Reserved bits, a second CONNECT, a packet only servers send, a length without end, PUBLISH without a topic.
    let wrong: [&[u8]; 5] =
        [&[0xc1, 0], &[0x10, 2, 0, 4], &[0x20, 2, 0, 0], &[0x30, 0xff, 0xff, 0xff, 0xff], &[0x30, 0]];
    for bytes in wrong {
        let mut gateway = TestGateway::open().await;
        let (mut client, witness) = with_witness(&mut gateway, 5).await;
        client.send_raw(bytes).await;
        let (why, code) = ended(&mut gateway, &mut client, &witness).await;
        assert!(why.contains("MQTT protocol"), "{bytes:?}: {why}");
        assert_eq!(code, Some(0x81), "{bytes:?}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn whoever_does_not_begin_with_connect_is_hung_up_on() {
    let mut gateway = TestGateway::open().await;
    let huge = [&[0x10, 0xff, 0xff, 0x7f][..], &[0; 100]].concat();
    let wrong: [&[u8]; 4] = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[0xc0, 0], &huge, &[0x10, 3, 0, 4, b'M']];
    for bytes in wrong {
        let mut client = Client::dial(&gateway, 4).await;
        client.send_raw(bytes).await;
        assert_eq!(client.packet().await, None, "{bytes:?}");
    }
    // MQTT 3.1 is told which versions there are.
    let mut old = Client::dial(&gateway, 4).await;
    old.send(0x10, &[0, 6, b'M', b'Q', b'I', b's', b'd', b'p', 3, 2, 0, 60, 0, 1, b'a']).await;
    assert_eq!(old.packet().await, Some((0x20, vec![0, 1])));
    assert!(gateway.events.try_recv().is_err(), "nobody was announced");
    gateway.close().await;
}

#[tokio::test]
async fn credentials_open_the_door_for_their_own_board_only() {
    let gateway = TestGateway::open().await;
    let cases = [
        ("aa", "token of aa", 0, 0),
        ("aa", TOKEN, 0, 0),
        ("aa", "wrong", 4, 0x86),
        ("aa", "", 4, 0x86),
        // Another board's credentials, and the same under another name of it.
        ("bb", "token of aa", 4, 0x86),
        ("g@@@bb@@@uuid", "token of aa", 4, 0x86),
        ("g@@@@@@uuid", TOKEN, 2, 0x85),
    ];
    for (client_id, password, plain, new) in cases {
        for (version, code) in [(4, plain), (5, new)] {
            let mut client = Client::dial(&gateway, version).await;
            assert_eq!(client.connect(client_id, password, 60).await, code, "{client_id} {password} {version}");
            if code != 0 {
                assert_eq!(client.packet().await, None, "a refused client is hung up on");
            }
        }
    }
    let wrong = BoardConfig {
        url: gateway.mqtt_url(),
        token: Some("wrong".to_owned()),
        ..gateway.board("02:51:00:00:00:01", BoardKind::Relay)
    };
    let refused = sinew_sim::board::run(wrong, gateway.shutdown.clone()).await.expect_err("refused");
    assert!(matches!(refused, RunError::Refused { .. }), "{refused}");
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_connects_many_times_a_second_is_turned_away_and_keeps_its_place() {
    let mut gateway = TestGateway::open_with(|config| {
        config.limits.connects_per_second = 1;
        config.limits.connect_burst = 3;
    })
    .await;
    let mut codes = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut client = Client::dial(&gateway, 5).await;
        codes.push(client.connect("aa", TOKEN, 240).await);
        clients.push(client);
    }
    assert_eq!(&codes[..3], [0, 0, 0]);
    assert_eq!(codes.last(), Some(&0x9f), "connection rate exceeded: {codes:?}");
    let last = codes.iter().rposition(|code| *code == 0).expect("some came in");
    clients[last].introduce().await;
    let device = loop {
        if let DeviceEvent::Joined(device) = gateway.next().await {
            break device;
        }
    };
    let mut other = Client::admitted(&gateway, "bb").await;
    other.introduce().await;
    gateway.joined().await;
    let trouble = device.info().attributes.get("trouble").cloned();
    assert!(trouble.is_some_and(|why| why.to_string().contains("too often")), "people can read it");
    gateway.close().await;
}

#[tokio::test]
async fn beyond_the_limit_boards_are_put_off() {
    let gateway = TestGateway::open_with(|config| config.limits.boards = 1).await;
    let _first = Client::admitted(&gateway, "aa").await;
    let mut second = Client::dial(&gateway, 4).await;
    assert_eq!(second.connect("bb", TOKEN, 60).await, 3, "server unavailable");
    gateway.close().await;
}
