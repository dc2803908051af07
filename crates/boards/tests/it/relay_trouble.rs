//! A relay whose voice server or board misbehaves: everything is bounded, reported, and nobody else notices.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::speech::{Heard, Microphone};
use sinew_tool::{Device, DeviceEvent};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::mqtt::Client;
use crate::relay::{BOARD, FakeAccess, open_for, text};
use crate::support::{Played, TOKEN, TestGateway, answered, call, soon};

/// A voice server whose every word the test chooses, and a board on MQTT.
struct VoiceStage {
    gateway: TestGateway,
    access: Arc<FakeAccess>,
    listener: TcpListener,
    microphone: Microphone,
    heard: mpsc::UnboundedReceiver<Heard>,
    device: Arc<dyn Device>,
}

type ServerSide = WebSocketStream<TcpStream>;

impl VoiceStage {
    async fn open() -> VoiceStage {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (mut gateway, access) = open_for(&url(&listener)).await;
        let (microphone, heard) = Microphone::new();
        let config = BoardConfig {
            token: Some(TOKEN.to_owned()),
            microphone: Some(microphone.clone()),
            ..BoardConfig::new(gateway.mqtt_url(), BOARD, BoardKind::Talking)
        };
        gateway.switch_on(config);
        let device = gateway.joined().await;
        *access.device.lock().expect("no panic") = Some(device.clone());
        VoiceStage { gateway, access, listener, microphone, heard, device }
    }

    /// The board dials; the test plays the server.
    async fn dialled(&mut self) -> ServerSide {
        self.microphone.speak(vec![b"sound".to_vec()]);
        self.accepted().await
    }

    async fn accepted(&mut self) -> ServerSide {
        let (tcp, _) = soon(self.listener.accept()).await.expect("dialled");
        soon(accept_async(tcp)).await.expect("a WebSocket")
    }

    /// A conversation that is open.
    async fn talking(&mut self) -> ServerSide {
        let mut server = self.dialled().await;
        greet(&mut server, "s1").await;
        text(&mut self.heard, |text| text["type"] == "hello").await;
        server
    }

    async fn relay_state(&mut self, wanted: &str) -> String {
        loop {
            if let DeviceEvent::Changed(device) = self.gateway.next().await {
                let state = device.info().attributes["relay"].as_str().unwrap_or_default().to_owned();
                if state.starts_with(wanted) {
                    return state;
                }
            }
        }
    }

    /// The board's tools work for everybody else.
    async fn check_tools(&self) {
        let status = answered(call(&self.device, "self.get_device_status", json!({}))).await;
        assert!(status.expect("an answer").joined_text().contains("volume"));
    }
}

fn url(listener: &TcpListener) -> String {
    let address: SocketAddr = listener.local_addr().expect("bound");
    format!("ws://{address}/xiaozhi/v1/")
}

async fn greet(server: &mut ServerSide, session: &str) {
    while hear(server).await["type"] != "hello" {}
    say(server, json!({"type": "hello", "transport": "websocket", "session_id": session})).await;
}

async fn hear(server: &mut ServerSide) -> Value {
    loop {
        match soon(server.next()).await {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).expect("JSON"),
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
            other => panic!("text was expected, not {other:?}"),
        }
    }
}

async fn say(server: &mut ServerSide, message: Value) {
    soon(server.send(Message::text(message.to_string()))).await.expect("sent");
}

async fn ask(server: &mut ServerSide, id: Value, method: &str, params: Value) {
    let payload = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    say(server, json!({"type": "mcp", "session_id": "other", "payload": payload})).await;
}

async fn answer_to(server: &mut ServerSide, id: &Value) -> Value {
    loop {
        let message = hear(server).await;
        if message["type"] == "mcp" && message["payload"]["id"] == *id {
            return message["payload"].clone();
        }
    }
}

async fn closed(server: &mut ServerSide) {
    while let Some(Ok(message)) = soon(server.next()).await {
        if matches!(message, Message::Close(_)) {
            return;
        }
    }
}

#[tokio::test]
async fn a_voice_server_that_is_down_is_reported_on_the_board_and_at_the_device_and_tools_work() {
    let mut stage = VoiceStage::open().await;
    let address = stage.listener.local_addr().expect("bound");
    drop(std::mem::replace(&mut stage.listener, TcpListener::bind("127.0.0.1:0").await.expect("a port")));
    stage.microphone.speak(vec![b"sound".to_vec()]);
    let state = stage.relay_state("failed").await;
    assert!(state.contains("cannot be reached") && !state.contains("voice-secret"), "{state}");
    let alert = text(&mut stage.heard, |text| text["type"] != "mcp").await;
    assert_eq!(alert["type"], "alert", "no hello: {alert}");
    assert!(alert["message"].as_str().expect("text").contains("voice server"), "{alert} {address}");
    stage.check_tools().await;
    stage.gateway.close().await;
}

#[tokio::test]
async fn a_voice_server_that_dies_in_any_state_ends_the_conversation_only() {
    for state in ["before the upgrade", "before its hello", "after its hello", "during a call"] {
        let mut stage = VoiceStage::open().await;
        match state {
            "before the upgrade" => {
                stage.microphone.speak(vec![b"sound".to_vec()]);
                drop(soon(stage.listener.accept()).await.expect("dialled"));
                stage.relay_state("failed").await;
            }
            "before its hello" => {
                drop(stage.dialled().await);
                stage.relay_state("failed").await;
            }
            "after its hello" => {
                drop(stage.talking().await);
                text(&mut stage.heard, |text| text["type"] == "goodbye").await;
            }
            _ => {
                let mut server = stage.talking().await;
                ask(&mut server, json!(9), "tools/call", json!({"name": "self.get_device_status"})).await;
                drop(server);
                text(&mut stage.heard, |text| text["type"] == "goodbye").await;
            }
        }
        stage.check_tools().await;
        stage.gateway.close().await;
    }
}

#[tokio::test]
async fn a_board_that_hangs_up_or_disappears_ends_the_conversation_with_its_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, _access) = open_for(&url(&listener)).await;
    for goodbye in [true, false] {
        let (mut board, mut server) = played_conversation(&gateway, &listener).await;
        match goodbye {
            true => board.say(r#"{"type":"goodbye","session_id":"s1"}"#).await,
            false => drop(board),
        }
        closed(&mut server).await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_board_on_mqtt_that_dies_in_any_state_disconnects_its_server() {
    let hello = json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}});
    for state in ["before the server answers", "while it talks", "during a call of its assistant"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (mut gateway, access) = open_for(&url(&listener)).await;
        let mut board = Client::admitted(&gateway, BOARD).await;
        board.introduce().await;
        *access.device.lock().expect("no panic") = Some(gateway.joined().await);
        board.say(hello.clone()).await;
        let (tcp, _) = soon(listener.accept()).await.expect("dialled");
        let mut server = soon(accept_async(tcp)).await.expect("a WebSocket");
        if state != "before the server answers" {
            greet(&mut server, "s1").await;
            while board.hear().await.1["type"] != "hello" {}
        }
        if state == "during a call of its assistant" {
            ask(&mut server, json!(1), "tools/call", json!({"name": "echo"})).await;
            board.asked("tools/call").await;
        }
        drop(board);
        closed(&mut server).await;
        gateway.close().await;
    }
}

/// A conversation over a WebSocket, both ends of it played.
async fn played_conversation(gateway: &TestGateway, listener: &TcpListener) -> (Played, ServerSide) {
    let mut board = Played::knock(&gateway.url(), BOARD).await;
    board.say(json!({"type": "hello", "version": 1, "transport": "websocket"}).to_string()).await;
    let (tcp, _) = soon(listener.accept()).await.expect("dialled");
    let mut server = soon(accept_async(tcp)).await.expect("a WebSocket");
    greet(&mut server, "s1").await;
    assert_eq!(board.hear().await["session_id"], "s1");
    (board, server)
}

/// A conversation of a board that is played, and another board that must not notice what happens in it.
async fn with_witness(listener: &TcpListener) -> (TestGateway, Played, ServerSide, Arc<dyn Device>) {
    let (mut gateway, _access) = open_for(&url(listener)).await;
    gateway.switch_on(BoardConfig { url: gateway.mqtt_url(), ..gateway.board("02:51:00:00:00:99", BoardKind::Relay) });
    let witness = gateway.joined().await;
    let (board, server) = played_conversation(&gateway, listener).await;
    (gateway, board, server, witness)
}

/// More than every queue and buffer on the way holds.
const MANY_FRAMES: usize = 8_000;

#[tokio::test]
async fn a_voice_server_that_reads_nothing_costs_its_own_sound_and_delays_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, mut board, mut server, witness) = with_witness(&listener).await;
    // The board is read from all the time: it would not come to an end otherwise.
    for _ in 0..MANY_FRAMES {
        soon(board.socket.send(Message::binary(vec![1; 1_200]))).await.expect("sent");
    }
    answered(call(&witness, "self.get_relays", json!({}))).await.expect("the other one is well");
    drop(board);
    let mut passed = 0;
    while let Some(Ok(message)) = soon(server.next()).await {
        passed += usize::from(message.is_binary());
    }
    assert!(passed < MANY_FRAMES, "all {passed} frames waited somewhere");
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_reads_nothing_makes_its_voice_server_wait_and_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, board, mut server, witness) = with_witness(&listener).await;
    let mut sent = 0;
    let flood = async {
        while server.send(Message::binary(vec![1; 12_000])).await.is_ok() {
            sent += 1;
        }
    };
    let others = async {
        for _ in 0..20 {
            answered(call(&witness, "self.get_relays", json!({}))).await.expect("the other one is well");
        }
        drop(board);
    };
    // The flood ends when the board is gone.
    soon(async { tokio::join!(flood, others) }).await;
    assert!(sent > 0);
    gateway.close().await;
}

#[tokio::test]
async fn a_board_on_a_websocket_that_stops_reading_loses_its_conversation_and_then_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (mut gateway, _access) = open_for(&url(&listener)).await;
    gateway.switch_on(BoardConfig { url: gateway.mqtt_url(), ..gateway.board("02:51:00:00:00:99", BoardKind::Relay) });
    let witness = gateway.joined().await;
    let mut board = Played::knock(&gateway.url(), BOARD).await;
    let hello = json!({"type": "hello", "version": 1, "transport": "websocket", "features": {"mcp": true}});
    board.say(hello.to_string()).await;
    let (tcp, _) = soon(listener.accept()).await.expect("dialled");
    let mut server = soon(accept_async(tcp)).await.expect("a WebSocket");
    greet(&mut server, "s1").await;
    board.set_up().await;
    let device = gateway.joined().await;
    let flood = async { while server.send(Message::binary(vec![1; 12_000])).await.is_ok() {} };
    let ending = async {
        let mut states = Vec::new();
        loop {
            match gateway.next().await {
                DeviceEvent::Changed(board) if board.info().key == device.info().key => {
                    states.push(board.info().attributes["relay"].clone());
                }
                DeviceEvent::Left(board, _) if board.info().key == device.info().key => return states,
                _ => {}
            }
        }
    };
    let (_, states) = soon(async { tokio::join!(flood, ending) }).await;
    assert_eq!(states.last().expect("a state"), "failed: the board read nothing for 10 s", "{states:?}");
    answered(call(&witness, "self.get_relays", json!({}))).await.expect("the other one is well");
    drop(board);
    gateway.close().await;
}

#[tokio::test]
async fn a_new_hello_ends_the_old_conversation_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, _access) = open_for(&url(&listener)).await;
    let mut board = Played::knock(&gateway.url(), BOARD).await;
    let hello = json!({"type": "hello", "version": 1, "transport": "websocket"}).to_string();
    board.say(hello.clone()).await;
    let mut first = soon(accept_async(soon(listener.accept()).await.expect("dialled").0)).await.expect("a WebSocket");
    greet(&mut first, "first").await;
    assert_eq!(board.hear().await["session_id"], "first");
    board.say(hello).await;
    closed(&mut first).await;
    let mut second = soon(accept_async(soon(listener.accept()).await.expect("dialled").0)).await.expect("a WebSocket");
    greet(&mut second, "second").await;
    assert_eq!(board.hear().await["session_id"], "second");
    gateway.close().await;
}

#[tokio::test]
async fn binary_frames_of_every_framing_pass_untouched_on_a_websocket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, _access) = open_for(&url(&listener)).await;
    for version in ["1", "2", "3"] {
        let headers = [
            ("authorization", format!("Bearer {TOKEN}")),
            ("device-id", BOARD.to_owned()),
            ("protocol-version", version.to_owned()),
        ];
        let mut board = Played::knock_with(&gateway.url(), &headers).await.expect("admitted");
        board.say(json!({"type": "hello", "version": 1, "transport": "websocket"}).to_string()).await;
        let (tcp, _) = soon(listener.accept()).await.expect("dialled");
        let mut asked = None;
        // The type of a refusal is the library's.
        #[allow(clippy::result_large_err)]
        let check = |request: &tokio_tungstenite::tungstenite::handshake::server::Request,
                     response: tokio_tungstenite::tungstenite::handshake::server::Response| {
            asked = request.headers().get("protocol-version").cloned();
            Ok(response)
        };
        let mut server = soon(tokio_tungstenite::accept_hdr_async(tcp, check)).await.expect("a WebSocket");
        assert_eq!(asked.expect("a version"), version);
        greet(&mut server, "s1").await;
        assert_eq!(board.hear().await["session_id"], "s1");
        let sound = |kind: u8| [&[0, 2, 0, kind, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 3][..], b"abc"].concat();
        let frames = [b"plain".to_vec(), sound(0), vec![0, 0, 0, 3, 1, 2, 3]];
        for frame in &frames {
            soon(board.socket.send(Message::binary(frame.clone()))).await.expect("sent");
            assert_eq!(soon(server.next()).await.expect("open").expect("fine").into_data(), frame[..]);
            soon(server.send(Message::binary(frame.clone()))).await.expect("sent");
            assert_eq!(soon(board.socket.next()).await.expect("open").expect("fine").into_data(), frame[..]);
        }
        let text = br#"{"type":"listen","state":"stop"}"#;
        let framed = [&[0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, text.len() as u8][..], text].concat();
        soon(board.socket.send(Message::binary(framed.clone()))).await.expect("sent");
        let heard = soon(server.next()).await.expect("open").expect("fine");
        assert!(heard.is_binary() && heard.into_data() == framed[..], "a text in a frame");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_long_session_id_is_passed_on_whole_or_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (gateway, _access) = open_for(&url(&listener)).await;
    for (length, is_accepted) in [(1_000, true), (1_025, false)] {
        let mut board = Played::knock(&gateway.url(), BOARD).await;
        board.say(json!({"type": "hello", "version": 1, "transport": "websocket"}).to_string()).await;
        let (tcp, _) = soon(listener.accept()).await.expect("dialled");
        let mut server = soon(accept_async(tcp)).await.expect("a WebSocket");
        let session = "s".repeat(length);
        greet(&mut server, &session).await;
        let heard = board.hear().await;
        match is_accepted {
            true => assert_eq!(heard["session_id"], session),
            false => assert!(heard.to_string().contains("at most 1024 are read"), "{heard}"),
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn requests_with_foreign_ids_and_methods_are_answered_and_none_reaches_the_board() {
    let mut stage = VoiceStage::open().await;
    let mut server = stage.talking().await;
    // One id for everything, as the common server has it for its pages.
    for (method, is_fine) in [("initialize", true), ("tools/list", true), ("ping", true), ("resources/list", false)] {
        ask(&mut server, json!(2), method, json!({})).await;
        let answer = answer_to(&mut server, &json!(2)).await;
        assert_eq!(answer["result"].is_object(), is_fine, "{method}: {answer}");
    }
    let unknown = json!({"name": "unlock_the_door", "arguments": {}});
    ask(&mut server, json!("text"), "tools/call", unknown).await;
    assert_eq!(answer_to(&mut server, &json!("text")).await["error"]["message"], "unknown tool");
    for odd in [json!({"name": 7}), json!({"name": "x", "arguments": [1]}), json!(null)] {
        ask(&mut server, json!(3), "tools/call", odd).await;
        assert!(answer_to(&mut server, &json!(3)).await["error"].is_object());
    }
    // Answers and notifications nobody asked for are nothing.
    for odd in [
        json!({"id": 1, "result": {}}),
        json!({"method": "notifications/x"}),
        json!(7),
        json!({"id": {}, "method": "ping"}),
    ] {
        say(&mut server, json!({"type": "mcp", "payload": odd})).await;
    }
    ask(&mut server, json!(4), "ping", json!({})).await;
    answer_to(&mut server, &json!(4)).await;
    stage.check_tools().await;
    stage.gateway.close().await;
}

#[tokio::test]
async fn nothing_that_a_board_would_take_for_mcp_or_a_command_passes_by_the_gateway() {
    let mut stage = VoiceStage::open().await;
    let mut server = stage.talking().await;
    let call = r#""payload":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"self.reboot"}}"#;
    for smuggled in [
        format!(r#"{{"Type":"mcp","type":"tts",{call}}}"#),
        format!(r#"{{"type":"mcp","type":"tts",{call}}}"#),
        format!(r#"{{"type":"mcp\u0000",{call}}}"#),
        r#"{"TYPE":"system","type":"llm","command":"reboot"}"#.to_owned(),
        r#"{"type":"system","Command":"reboot","command":"x"}"#.to_owned(),
    ] {
        soon(server.send(Message::text(smuggled))).await.expect("sent");
    }
    for number in 0..20 {
        say(&mut server, json!({"type": "system", "command": format!("c{number}")})).await;
    }
    say(&mut server, json!({"type": "tts", "state": "stop"})).await;
    let mut commands = 0;
    loop {
        let heard = text(&mut stage.heard, |_| true).await;
        match heard["type"].as_str() {
            Some("system") => commands += 1,
            Some("tts") => break,
            other => panic!("{other:?} passed: {heard}"),
        }
    }
    assert_eq!((commands, stage.access.commands.lock().expect("no panic").len()), (8, 8));
    stage.gateway.close().await;
}

#[tokio::test]
async fn what_is_said_before_the_voice_server_answers_becomes_no_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (mut gateway, _access) = open_for(&url(&listener)).await;
    let mut board = Client::admitted(&gateway, BOARD).await;
    board.introduce().await;
    gateway.joined().await;
    let listen = json!({"type": "listen", "state": "detect", "text": "a wake word"});
    board.say(json!({"type": "hello", "version": 3, "transport": "udp"})).await;
    let (tcp, _) = soon(listener.accept()).await.expect("dialled");
    board.say(listen.clone()).await;
    board.publish(0, b"a wake word").await;
    let mut server = soon(accept_async(tcp)).await.expect("a WebSocket");
    greet(&mut server, "s1").await;
    while board.hear().await.1["type"] != "hello" {}
    drop(server);
    while board.hear().await.1["type"] != "goodbye" {}
    board.say(listen).await;
    board.say(json!({"type": "custom", "done": true})).await;
    loop {
        let DeviceEvent::Said(_, notice) = gateway.next().await else { continue };
        assert!(!format!("{notice:?}").contains("wake word"), "{notice:?}");
        if notice.topic == "custom" {
            break;
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_flood_of_requests_is_answered_and_delays_nobody_else() {
    let mut stage = VoiceStage::open().await;
    let mut server = stage.talking().await;
    let calls = 200;
    for id in 0..calls {
        ask(&mut server, json!(id), "tools/call", json!({"name": "self.get_device_status"})).await;
    }
    stage.check_tools().await;
    let mut answers = 0;
    let mut refused = 0;
    while answers < calls {
        let message = hear(&mut server).await;
        if message["type"] == "mcp" {
            answers += 1;
            refused += i32::from(message["payload"]["error"].is_object());
        }
    }
    assert!(refused < calls, "some were made");
    let made = stage.access.calls.lock().expect("no panic").len();
    assert_eq!(made as i32, calls - refused);
    stage.gateway.close().await;
}

#[tokio::test]
async fn a_flood_of_texts_and_huge_frames_end_nothing_but_the_conversation() {
    let mut stage = VoiceStage::open().await;
    let mut server = stage.talking().await;
    let tts = json!({"type": "tts", "state": "sentence_start", "text": "x".repeat(500)}).to_string();
    let flood = async {
        for _ in 0..3000 {
            soon(server.send(Message::text(tts.clone()))).await.expect("sent");
        }
        // Sound for nobody, too long, and then a message beyond every limit.
        soon(server.send(Message::binary(vec![0; 20_000]))).await.expect("sent");
        let _ = server.send(Message::binary(vec![0; 1 << 20])).await;
        let _ = soon(server.next()).await;
    };
    tokio::join!(flood, stage.check_tools());
    text(&mut stage.heard, |text| text["type"] == "goodbye").await;
    let state = stage.relay_state("failed").await;
    assert!(!state.contains("xxx"), "{state}");
    stage.check_tools().await;
    stage.gateway.close().await;
}

#[tokio::test]
async fn sound_of_strangers_is_dropped() {
    let mut stage = VoiceStage::open().await;
    let mut server = stage.talking().await;
    assert!(matches!(soon(server.next()).await, Some(Ok(_))));
    let port = stage.gateway.sound;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    while stage.gateway.boards.sound_packets() < 3 {
        let mut packet = vec![1; 16 + 40];
        packet[2..4].copy_from_slice(&40_u16.to_be_bytes());
        stranger.send_to(&packet, ("127.0.0.1", port)).await.expect("sent");
        tokio::task::yield_now().await;
    }
    stage.gateway.close().await;
}

#[tokio::test]
async fn a_voice_server_that_failed_is_not_dialled_again_at_once() {
    let mut stage = VoiceStage::open().await;
    drop(stage.dialled().await);
    let first = stage.relay_state("failed").await;
    text(&mut stage.heard, |text| text["type"] == "alert").await;
    stage.microphone.speak(vec![b"sound".to_vec()]);
    let second = stage.relay_state("failed").await;
    assert_eq!(second.split("; the next try").next(), Some(first.as_str()));
    let alert = text(&mut stage.heard, |text| text["type"] == "alert").await;
    assert!(alert["message"].as_str().expect("text").contains("next try"), "{alert}");
    stage.check_tools().await;
    stage.gateway.close().await;
}
