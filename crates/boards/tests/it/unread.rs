//! Boards that ask without reading the answers, and calls larger than a board takes.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_tool::{DeviceEvent, ErrorKind, LeaveReason};
use tokio_tungstenite::tungstenite::Message;

use crate::mqtt::Client;
use crate::support::{TOKEN, TestGateway, answered, call, call_within, soon};

/// Far more than the system keeps for a connection, in both directions.
const MUCH: usize = 64 << 20;

async fn gateway() -> TestGateway {
    TestGateway::open_with(|config| config.limits.unread_time = Duration::from_millis(100)).await
}

async fn is_let_go(gateway: &mut TestGateway) {
    let (_, reason) = gateway.left().await;
    assert!(matches!(&reason, LeaveReason::Dismissed(why) if why.contains("unread")), "{reason}");
}

#[tokio::test]
async fn a_board_that_asks_over_mqtt_and_never_reads_is_not_listened_to_and_let_go() {
    let ping: Vec<u8> = [0xc0, 0].repeat(32 << 10);
    let subscribe = [0x82, 6, 0, 7, 0, 1, b'#', 0].repeat(8 << 10);
    let acknowledged = [0x32, 7, 0, 1, b't', 0, 9, b'{', b'}'].repeat(8 << 10);
    let question = json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}).to_string();
    let mut asked = vec![0x30, (question.len() + 3) as u8, 0, 1, b't'];
    asked.extend(question.bytes());
    for token_bucket in [ping, subscribe, acknowledged, asked.repeat(1 << 10)] {
        let mut gateway = gateway().await;
        let mut client = Client::cramped(&gateway).await;
        assert_eq!(client.connect("aa", TOKEN, 240).await, 0);
        client.introduce().await;
        gateway.joined().await;
        let mut sent = 0;
        while sent < MUCH && soon(client.try_send(&token_bucket)).await {
            sent += token_bucket.len();
        }
        assert!(sent < MUCH, "all of it was read");
        is_let_go(&mut gateway).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_board_that_asks_over_a_websocket_and_never_reads_is_not_listened_to_and_let_go() {
    let question = json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "method": "ping"}});
    let hello = json!({"type": "hello", "transport": "websocket", "features": {"mcp": true}});
    for message in
        [Message::Ping(vec![b'x'; 125].into()), Message::text(question.to_string()), Message::text(hello.to_string())]
    {
        let mut gateway = gateway().await;
        let (played, _) = gateway.played("aa").await;
        let (mut sink, _unread) = played.socket.split();
        let mut sent = 0;
        while sent < MUCH && soon(sink.feed(message.clone())).await.is_ok() {
            sent += message.len();
        }
        assert!(sent < MUCH, "all of it was read");
        is_let_go(&mut gateway).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_board_that_reads_may_ask_as_much_as_it_likes() {
    let mut gateway = gateway().await;
    let (mut played, device) = gateway.played("aa").await;
    let question = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for _ in 0..40 {
        for _ in 0..100 {
            played.socket.feed(Message::Ping(vec![b'x'; 125].into())).await.expect("fed");
        }
        played.payload(question.clone()).await;
        assert_eq!(played.hear().await["payload"]["result"], json!({}));
    }
    let pending = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "here").await;
    answered(pending).await.expect("still here");
    gateway.close().await;
}

fn text_of(bytes: usize) -> Value {
    json!({"text": "x".repeat(bytes)})
}

#[tokio::test]
async fn a_call_larger_than_a_board_takes_is_refused_and_nothing_is_sent() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    for bytes in [1 << 20, 1_100_000, 5 << 20] {
        let error = answered(call(&device, "echo", text_of(bytes))).await.expect_err("too large");
        assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
    }
    // The largest call that is taken arrives whole.
    let pending = call(&device, "echo", text_of((1 << 20) - 200));
    let request = played.asked("tools/call").await;
    assert_eq!(request["params"]["arguments"]["text"].as_str().map(str::len), Some((1 << 20) - 200));
    played.answer_text(&request, "whole").await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "whole");
    gateway.close().await;
}

#[tokio::test]
async fn calls_to_a_board_that_does_not_read_are_kept_back_and_do_not_throw_it_off() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let mut kept_back = 0;
    for _ in 0..64 {
        let late = call_within(&device, "echo", text_of(900_000), Duration::from_millis(20));
        match answered(late).await.expect_err("no answer").kind {
            ErrorKind::Timeout => {}
            ErrorKind::Busy => kept_back += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(kept_back > 0, "everything was sent");
    let last = call(&device, "echo", json!({"last": true}));
    loop {
        let request = played.asked("tools/call").await;
        played.answer_text(&request, "read").await;
        if request["params"]["arguments"]["last"] == true {
            break;
        }
    }
    assert_eq!(answered(last).await.expect("it stayed").joined_text(), "read");
    let rest = gateway.close().await;
    let ended = rest.iter().filter(|event| matches!(event, DeviceEvent::Left(..))).count();
    assert_eq!(ended, 1, "only the end of the test ended it");
}
