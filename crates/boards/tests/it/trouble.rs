//! Boards that die, token_bucket, babble or break the rules. Nobody else may notice, and nobody waits in vain.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::{Value, json};
use sinew_tool::{DeviceEvent, ErrorKind, LeaveReason};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::mqtt::Client;
use crate::support::{TestGateway, answered, call, soon};

#[tokio::test]
async fn a_board_that_dies_mid_call_answers_its_callers_at_once() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let in_flight = call(&device, "echo", json!({}));
    played.asked("tools/call").await;
    let queued = call(&device, "echo", json!({}));
    tokio::task::yield_now().await;
    drop(played);
    let error = answered(in_flight).await.expect_err("it died");
    assert_eq!(error.kind, ErrorKind::DeviceLost);
    assert!(error.message.contains("board-aa") && error.message.contains("echo"), "{error}");
    let error = answered(queued).await.expect_err("it died");
    assert!(matches!(error.kind, ErrorKind::DeviceLost | ErrorKind::DeviceAway));
    assert!(matches!(gateway.left().await.1, LeaveReason::Broken(_)));
    assert!(gateway.close().await.is_empty(), "it left once");
}

#[tokio::test]
async fn a_board_that_closes_in_order_is_said_to_have() {
    let mut gateway = TestGateway::open().await;
    let (mut played, _) = gateway.played("aa").await;
    played.socket.close(None).await.expect("sent");
    assert_eq!(gateway.left().await.1, LeaveReason::Closed);
    played.closed().await;
    gateway.close().await;
}

#[tokio::test]
async fn garbled_text_is_reported_and_survived() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let deep = "[".repeat(10_000);
    for noise in ["", "{", "null", "[]", "{\"type\":5}", "{\"type\":\"mcp\"}", "\u{0}\u{0}", &deep] {
        played.say(noise).await;
    }
    assert!(gateway.said("warning").await.body["message"].is_string());
    let pending = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "still here").await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "still here");
    gateway.close().await;
}

#[tokio::test]
async fn an_error_as_firmware_writes_it_is_understood() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let pending = call(&device, "echo", json!({}));
    let id = played.asked("tools/call").await["id"].to_string();
    let broken = r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":ID,"error":{"message":"no "such" thing"}}}"#;
    played.say(broken.replace("ID", &id)).await;
    let error = answered(pending).await.expect_err("it failed");
    assert_eq!(error.kind, ErrorKind::ActionFailed);
    assert!(error.message.contains("such"), "{error}");
    gateway.close().await;
}

#[tokio::test]
async fn answers_that_are_not_utf8_are_read_as_far_as_they_can_be() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let mut client = Client::admitted(&gateway, "bb").await;
    client.introduce().await;
    let over_mqtt = gateway.joined().await;
    let answer = |id: &Value| {
        let text = json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "caf#"}]}}});
        text.to_string()
            .into_bytes()
            .into_iter()
            .map(|byte| if byte == b'#' { 0xe9 } else { byte })
            .collect::<Vec<u8>>()
    };
    let pending = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    let frame = Frame::message(answer(&request["id"]), OpCode::Data(Data::Text), true);
    played.socket.send(Message::Frame(frame)).await.expect("sent");
    assert_eq!(answered(pending).await.expect("an answer").joined_text(), "caf\u{fffd}");
    assert!(gateway.said("warning").await.body["message"].as_str().is_some_and(|why| why.contains("UTF-8")));

    let pending = call(&over_mqtt, "echo", json!({}));
    let request = client.asked("tools/call").await;
    client.publish(0, &answer(&request["payload"]["id"])).await;
    assert_eq!(answered(pending).await.expect("an answer").joined_text(), "caf\u{fffd}");
    assert!(gateway.said("warning").await.body["message"].as_str().is_some_and(|why| why.contains("UTF-8")));
    gateway.close().await;
}

#[tokio::test]
async fn a_frame_beyond_the_limit_closes_the_connection_with_the_reason() {
    let mut gateway = TestGateway::open_with(|config| config.limits.message_bytes = 64 << 10).await;
    let (mut played, device) = gateway.played("aa").await;
    let pending = call(&device, "echo", json!({}));
    played.asked("tools/call").await;
    let (mut sink, mut stream) = futures_util::StreamExt::split(played.socket);
    let sending = tokio::spawn(async move { sink.send(Message::text("x".repeat(300 << 10))).await.is_ok() });
    let reason = loop {
        match soon(futures_util::StreamExt::next(&mut stream)).await {
            Some(Ok(Message::Close(frame))) => break frame.expect("a reason"),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(u16::from(reason.code), 1009);
    assert!(reason.reason.contains("65536"), "{}", reason.reason);
    assert_eq!(answered(pending).await.expect_err("cut off").kind, ErrorKind::DeviceLost);
    assert!(matches!(gateway.left().await.1, LeaveReason::Dismissed(_)));
    let _ = soon(sending).await;
    gateway.close().await;
}

#[tokio::test]
async fn sound_is_dropped() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    for length in [0, 1, 15, 16, 17, 3000] {
        played.socket.send(Message::binary(vec![2; length])).await.expect("sent");
    }
    let pending = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "fine").await;
    answered(pending).await.expect("sound disturbs nothing");
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_floods_is_cut_down_and_reported_once() {
    let mut gateway = TestGateway::open_with(|config| {
        config.limits.notice_burst = 50;
        config.limits.notices_per_second = 1;
    })
    .await;
    let (mut played, device) = gateway.played("aa").await;
    let text = json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "method": "tick", "params": {}}}).to_string();
    for _ in 0..5000 {
        played.socket.feed(Message::text(text.clone())).await.expect("fed");
    }
    let pending = call(&device, "echo", json!({}));
    played.socket.flush().await.expect("sent");
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "through the token_bucket").await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "through the token_bucket");

    let rest = gateway.close().await;
    let count = |topic: &str| {
        rest.iter().filter(|event| matches!(event, DeviceEvent::Said(_, notice) if notice.topic == topic)).count()
    };
    assert!((50..2500).contains(&count("tick")), "{} passed", count("tick"));
    assert_eq!(count("warning"), 1);
    let dropped = |event: &DeviceEvent| if let DeviceEvent::Dropped(_, count) = event { *count } else { 0 };
    assert_eq!(count("tick") as u64 + rest.iter().map(dropped).sum::<u64>(), 5000, "every one is accounted for");
}

#[tokio::test]
async fn a_board_that_answers_no_ping_counts_as_gone() {
    let mut gateway = TestGateway::open_with(|config| config.limits.ping_after = Duration::from_millis(200)).await;
    // Its socket is not read any more, so no pong leaves it.
    let (_played, _) = gateway.played("aa").await;
    let (_, reason) = gateway.left().await;
    assert!(matches!(&reason, LeaveReason::Broken(why) if why.contains("pings")), "{reason}");
    gateway.close().await;
}

#[tokio::test]
async fn a_quiet_board_that_answers_pings_stays() {
    let mut gateway = TestGateway::open_with(|config| config.limits.ping_after = Duration::from_millis(200)).await;
    let (mut played, device) = gateway.played("aa").await;
    let mut pings = 0;
    while pings < 3 {
        if let Message::Ping(_) =
            soon(futures_util::StreamExt::next(&mut played.socket)).await.expect("open").expect("whole")
        {
            pings += 1;
        }
    }
    let pending = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "here").await;
    answered(pending).await.expect("still here");
    gateway.close().await;
}

#[tokio::test]
async fn a_goodbye_ends_the_stay_and_answers_the_caller() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let pending = call(&device, "echo", json!({}));
    played.asked("tools/call").await;
    played.say(json!({"type": "goodbye"}).to_string()).await;
    assert_eq!(answered(pending).await.expect_err("gone").kind, ErrorKind::DeviceLost);
    gateway.left().await;
    gateway.close().await;
}

#[tokio::test]
async fn other_messages_of_firmware_are_notices() {
    let mut gateway = TestGateway::open().await;
    let (mut played, _) = gateway.played("aa").await;
    played.say(json!({"type": "listen", "state": "detect", "text": "hi"}).to_string()).await;
    assert_eq!(gateway.said("listen").await.body, json!({"state": "detect", "text": "hi"}));
    gateway.close().await;
}
