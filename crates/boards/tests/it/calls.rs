//! Calls: one at a time to a board, side by side to several, answered exactly once.

use serde_json::{Value, json};
use sinew_sim::board::BoardKind;
use sinew_tool::{Content, DeviceEvent, ErrorKind};
use sinew_wire::device::{Board, BoardDialect, Reply, ToolSpec};

use crate::support::{Played, TestGateway, answered, call};

#[tokio::test]
async fn what_is_set_on_a_virtual_board_shows_in_its_status_and_is_told() {
    let mut gateway = TestGateway::open().await;
    gateway.switch_on(gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking));
    let device = gateway.joined().await;
    let set = answered(call(&device, "self.audio_speaker.set_volume", json!({"volume": 33}))).await.expect("set");
    assert_eq!(set.joined_text(), "true");
    let told = gateway.said("notifications/state_changed").await;
    assert_eq!(told.body, json!({"newState": 33, "oldState": 70, "part": "audio_speaker.volume"}));
    let status = answered(call(&device, "self.get_device_status", json!({}))).await.expect("a status");
    let status: Value = serde_json::from_str(&status.joined_text()).expect("JSON");
    assert_eq!(status["audio_speaker"]["volume"], 33);

    let wrong = answered(call(&device, "self.screen.set_theme", json!({"theme": "\"pink\""}))).await;
    let wrong = wrong.expect_err("there is no such theme");
    assert_eq!(wrong.kind, ErrorKind::ActionFailed);
    assert!(wrong.message.contains("pink"), "{wrong}");
    gateway.close().await;
}

#[tokio::test]
async fn a_photo_of_firmware_arrives_as_a_picture() {
    let mut gateway = TestGateway::open().await;
    gateway.switch_on(gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking));
    let device = gateway.joined().await;
    for _ in 0..3 {
        let photo = answered(call(&device, "self.camera.take_photo", json!({"question": "What is there?"}))).await;
        let photo = photo.expect("a photo");
        assert!(matches!(&photo.content[0], Content::Image { mime_type, .. } if mime_type == "image/jpeg"));
        assert!(photo.content[0].bytes().expect("base64").starts_with(&[0xff, 0xd8, 0xff]));
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_pulse_of_a_relay_is_told_when_it_ends() {
    let mut gateway = TestGateway::open().await;
    gateway.switch_on(gateway.board("aa:bb:cc:dd:ee:02", BoardKind::Relay));
    let device = gateway.joined().await;
    answered(call(&device, "self.pulse_relay", json!({"channel": 2, "ms": 10}))).await.expect("pulsed");
    for on in [true, false] {
        assert_eq!(gateway.said("notifications/relay_changed").await.body, json!({"channel": 2, "on": on}));
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_slow_board_does_not_hold_up_another() {
    let mut gateway = TestGateway::open().await;
    let (mut slow, slow_device) = gateway.played("aa").await;
    gateway.switch_on(gateway.board("bb", BoardKind::Relay));
    let quick_device = gateway.joined().await;

    let waiting = call(&slow_device, "echo", json!({}));
    let request = slow.asked("tools/call").await;
    for _ in 0..20 {
        answered(call(&quick_device, "self.read_sensors", json!({}))).await.expect("at once");
    }
    assert!(!waiting.is_finished());
    slow.answer_text(&request, "at last").await;
    assert_eq!(answered(waiting).await.expect("fine").joined_text(), "at last");
    gateway.close().await;
}

#[tokio::test]
async fn calls_to_one_board_run_one_at_a_time_and_in_order() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let mut calls = Vec::new();
    for number in 0..4 {
        calls.push(call(&device, "echo", json!({"n": number})));
        tokio::task::yield_now().await;
    }
    for (number, call) in calls.into_iter().enumerate() {
        let request = played.asked("tools/call").await;
        assert_eq!(request["params"]["arguments"]["n"], number);
        // Nothing else was sent: the answer to a ping of ours comes next.
        played.payload(json!({"jsonrpc": "2.0", "id": 900 + number, "method": "ping"})).await;
        assert_eq!(played.hear().await["payload"], json!({"jsonrpc": "2.0", "id": 900 + number, "result": {}}));
        played.answer_text(&request, &number.to_string()).await;
        assert_eq!(answered(call).await.expect("fine").joined_text(), number.to_string());
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_silent_board_times_out_and_its_queue_moves_on() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let given_up = call(&device, "echo", json!({"n": 1}));
    let first = played.asked("tools/call").await;
    let next = call(&device, "echo", json!({"n": 2}));
    given_up.abort();
    let _ = given_up.await;

    let second = played.asked("tools/call").await;
    assert_eq!(second["params"]["arguments"]["n"], 2);
    played.answer_text(&first, "late").await;
    played.answer_text(&second, "in time").await;
    played.answer_text(&second, "doubled").await;
    assert_eq!(answered(next).await.expect("fine").joined_text(), "in time");

    let third = call(&device, "echo", json!({"n": 3}));
    let request = played.asked("tools/call").await;
    played.answer_text(&second, "doubled again").await;
    played.answer_text(&request, "its own").await;
    assert_eq!(answered(third).await.expect("fine").joined_text(), "its own");
    gateway.close().await;
}

#[tokio::test]
async fn a_call_given_up_leaves_the_queue_or_frees_the_board() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    let in_flight = call(&device, "echo", json!({"n": 1}));
    let first = played.asked("tools/call").await;
    let queued = call(&device, "echo", json!({"n": 2}));
    tokio::task::yield_now().await;
    let kept = call(&device, "echo", json!({"n": 3}));
    tokio::task::yield_now().await;
    queued.abort();
    let _ = queued.await;
    in_flight.abort();
    let _ = in_flight.await;

    let request = played.asked("tools/call").await;
    assert_eq!(request["params"]["arguments"]["n"], 3, "the queued call was never sent");
    played.answer_text(&first, "too late").await;
    played.answer_text(&request, "kept").await;
    assert_eq!(answered(kept).await.expect("fine").joined_text(), "kept");
    gateway.close().await;
}

#[tokio::test]
async fn a_full_queue_says_so_and_frees_itself() {
    let mut gateway = TestGateway::open_with(|config| config.limits.session.queue = 1).await;
    let (mut played, device) = gateway.played("aa").await;
    let first = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    assert_eq!(answered(call(&device, "echo", json!({}))).await.expect_err("full").kind, ErrorKind::Busy);
    played.answer_text(&request, "done").await;
    answered(first).await.expect("fine");
    let again = call(&device, "echo", json!({}));
    let request = played.asked("tools/call").await;
    played.answer_text(&request, "done").await;
    answered(again).await.expect("there is room again");
    gateway.close().await;
}

#[tokio::test]
async fn a_long_tool_list_comes_page_by_page() {
    let mut gateway = TestGateway::open().await;
    let mut firmware = Board::new("talkative", "1").speaking(BoardDialect::Firmware);
    for index in 0..60 {
        let spec = ToolSpec::new(format!("self.tool_{index:02}"), "x".repeat(400));
        firmware.add(spec, move |_| Ok(Reply::from(index)));
    }
    let mut played = Played::knock(&gateway.url(), "aa").await;
    played.say(firmware.hello()).await;
    let playing = tokio::spawn(async move {
        let mut pages = 0;
        loop {
            let message = played.hear().await;
            pages += usize::from(message["payload"]["method"] == "tools/list");
            if let Some(answer) = firmware.handle_text(&message.to_string()) {
                assert!(answer.len() < 8_200, "a page keeps to the limit of real firmware");
                played.say(answer).await;
            }
            if message["payload"]["method"] == "tools/call" {
                return pages;
            }
        }
    });
    let device = gateway.joined().await;
    assert_eq!(device.tools().len(), 60);
    assert_eq!(answered(call(&device, "self.tool_59", json!({}))).await.expect("the last one").joined_text(), "59");
    assert!(playing.await.expect("no panic") > 3);
    gateway.close().await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    played.notify("notifications/tools/list_changed", json!({})).await;
    let request = played.asked("tools/list").await;
    let tools = ["one", "two"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    played.answer(&request, json!({"tools": tools})).await;
    loop {
        if let DeviceEvent::Changed(changed) = gateway.next().await {
            assert_eq!(changed.info().key, device.info().key);
            break;
        }
    }
    assert_eq!(device.tools().len(), 2);
    gateway.close().await;
}

#[tokio::test]
async fn large_and_small_messages_in_one_breath_all_arrive() {
    use futures_util::SinkExt;
    use tokio_tungstenite::tungstenite::Message;
    let mut gateway = TestGateway::open().await;
    let (mut played, device) = gateway.played("aa").await;
    for round in 0..50_usize {
        let pending = call(&device, "echo", json!({"pad": "y".repeat(round * 100)}));
        let request = played.asked("tools/call").await;
        let text = "x".repeat(round * 211);
        let payload =
            json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": text}]}});
        let notice = json!({"jsonrpc": "2.0", "method": "after", "params": {"round": round}});
        for payload in [payload, notice] {
            let message = json!({"type": "mcp", "payload": payload}).to_string();
            played.socket.feed(Message::text(message)).await.expect("fed");
        }
        if round % 3 == 0 {
            played.socket.feed(Message::Ping("p".into())).await.expect("fed");
        }
        played.socket.flush().await.expect("sent");
        assert_eq!(answered(pending).await.expect("fine").joined_text().len(), text.len());
        assert_eq!(gateway.said("after").await.body, json!({"round": round}));
    }
    gateway.close().await;
}
