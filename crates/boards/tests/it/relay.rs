//! Boards that keep their voice: the whole way between a virtual board and a virtual voice server.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sinew_boards::VoiceRelay;
use sinew_boards::relay::{AssistantAccess, VoiceAddress, VoiceServer};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::speech::{Heard, Microphone};
use sinew_sim::voice::{self, VoiceEvent, VoiceHandle, VoiceOrder, tone};
use sinew_tool::{Args, BoxFuture, Caller, Device, DeviceEvent, DeviceKey, ErrorKind, Outcome, Tool, ToolError};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{TOKEN, TestGateway, answered, call, soon};

pub const BOARD: &str = "aa:bb:cc:dd:ee:01";

/// Stands in for the gateway: the tools of one device are everything there is.
#[derive(Default)]
pub struct FakeAccess {
    pub device: Mutex<Option<Arc<dyn Device>>>,
    pub calls: Mutex<Vec<(String, Value)>>,
    pub commands: Mutex<Vec<String>>,
    /// Boards that are not relayed.
    pub others: Mutex<Vec<String>>,
}

impl AssistantAccess for FakeAccess {
    fn is_relayed(&self, board: &DeviceKey) -> bool {
        !self.others.lock().expect("no panic").contains(&board.0)
    }

    fn tools(&self, _: &DeviceKey) -> BoxFuture<'static, Vec<Tool>> {
        let device = self.device.lock().expect("no panic").clone();
        let tools = device.map(|device| device.tools().iter().cloned().collect()).unwrap_or_default();
        Box::pin(async move { tools })
    }

    fn call(
        &self,
        _: &DeviceKey,
        tool: String,
        args: Args,
        caller: Arc<dyn Caller>,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        self.calls.lock().expect("no panic").push((tool.clone(), Value::Object(args.clone())));
        let device = self.device.lock().expect("no panic").clone();
        Box::pin(async move {
            let device = device.filter(|device| device.tools().find(&tool).is_some());
            let device = device.ok_or_else(|| ToolError::new(ErrorKind::UnknownTool, "unknown tool"))?;
            device.call(sinew_tool::Call { caller, ..sinew_tool::Call::new(tool, args) }).await
        })
    }

    fn record(&self, _: &DeviceKey, command: String) -> BoxFuture<'static, Result<(), ToolError>> {
        self.commands.lock().expect("no panic").push(command);
        Box::pin(async { Ok(()) })
    }
}

/// A gateway whose boards are relayed to a virtual voice server.
pub struct RelayedGateway {
    pub gateway: TestGateway,
    pub voice: VoiceHandle,
    pub events: broadcast::Receiver<(String, VoiceEvent)>,
    pub access: Arc<FakeAccess>,
    /// The voice server runs until this is dropped.
    pub voice_runs: DropGuard,
}

impl RelayedGateway {
    pub async fn open() -> RelayedGateway {
        let server =
            voice::VirtualVoiceServer::open(([127, 0, 0, 1], 0).into(), Some("voice-secret")).await.expect("open");
        let voice = server.handle();
        let (gateway, access) = open_for(&voice.url()).await;
        let shutdown = CancellationToken::new();
        tokio::spawn(server.run(shutdown.clone()));
        let events = voice.events();
        RelayedGateway { gateway, voice, events, access, voice_runs: shutdown.drop_guard() }
    }

    /// A virtual board that has joined, with somebody to speak to it.
    pub async fn board(&mut self, url: String) -> (Microphone, mpsc::UnboundedReceiver<Heard>, Arc<dyn Device>) {
        let (microphone, heard) = Microphone::new();
        let config = BoardConfig {
            token: Some(TOKEN.to_owned()),
            microphone: Some(microphone.clone()),
            ..BoardConfig::new(url, BOARD, BoardKind::Talking)
        };
        self.gateway.switch_on(config);
        let device = self.gateway.joined().await;
        *self.access.device.lock().expect("no panic") = Some(device.clone());
        (microphone, heard, device)
    }

    pub async fn event(&mut self, wanted: impl Fn(&VoiceEvent) -> bool) -> VoiceEvent {
        loop {
            let (board, event) = soon(self.events.recv()).await.expect("the voice server runs");
            assert_eq!(board, BOARD);
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Waits until the device shows this state of its relay.
    pub async fn relay_state(&mut self, wanted: &str) -> String {
        loop {
            if let DeviceEvent::Changed(device) = self.gateway.next().await {
                let state =
                    device.info().attributes.get("relay").and_then(Value::as_str).unwrap_or_default().to_owned();
                if state.starts_with(wanted) {
                    return state;
                }
            }
        }
    }
}

pub async fn open_for(url: &str) -> (TestGateway, Arc<FakeAccess>) {
    let access = Arc::new(FakeAccess::default());
    let address = VoiceAddress::new(url, Some("voice-secret"), false).expect("valid");
    let relay = VoiceRelay { server: VoiceServer::At(address), access: access.clone(), passes_firmware: false };
    let gateway = TestGateway::open_with(|config| config.relay = Some(relay)).await;
    (gateway, access)
}

pub async fn text(heard: &mut mpsc::UnboundedReceiver<Heard>, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        if let Heard::Text(text) = soon(heard.recv()).await.expect("the board lives")
            && wanted(&text)
        {
            return text;
        }
    }
}

fn sounds(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| (0..=number).map(|byte| (byte * 7 + number) as u8).collect()).collect()
}

/// A conversation with a tool call, from both ends.
async fn talk(relayed: &mut RelayedGateway, url: String, version: u64) {
    let (microphone, mut heard, _) = relayed.board(url).await;
    relayed.voice.hear(BOARD, "set the volume to 33");
    let spoken = sounds(20);
    microphone.speak(spoken.clone());

    let VoiceEvent::Connected { path, headers } =
        relayed.event(|event| matches!(event, VoiceEvent::Connected { .. })).await
    else {
        panic!("not connected")
    };
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(path, "/xiaozhi/v1/");
    assert_eq!((header("device-id"), header("protocol-version")), (Some(BOARD), Some("1")));
    assert_eq!(header("authorization"), Some("Bearer voice-secret"), "the voice server's own token");
    assert!(header("client-id").is_some_and(|id| !id.is_empty()));
    assert!(!headers.iter().any(|(_, value)| value.contains(TOKEN)), "Sinew's token does not leave");
    let VoiceEvent::Text(hello) = relayed.event(|event| matches!(event, VoiceEvent::Text(_))).await else { panic!() };
    assert_eq!((&hello["transport"], &hello["version"]), (&json!("websocket"), &json!(version)));
    assert_eq!(hello["audio_params"]["sample_rate"], 16000);

    // The conversation as the board hears it, in order.
    let hello = text(&mut heard, |text| text["type"] == "hello").await;
    assert_eq!((&hello["session_id"], &hello["audio_params"]["sample_rate"]), (&json!("virtual-voice"), &json!(24000)));
    assert!(!hello.to_string().contains("voice-secret"));
    let mut received = Vec::new();
    while received.len() < spoken.len() {
        if let VoiceEvent::Sound(frame) = relayed.event(|event| matches!(event, VoiceEvent::Sound(_))).await {
            received.push(frame);
        }
    }
    assert!(received == spoken, "sound reaches the server byte for byte");
    let mut steps = Vec::new();
    let mut answer = Vec::new();
    while steps.last().is_none_or(|step| step != "tts stop") || answer.len() < tone().len() {
        match soon(heard.recv()).await.expect("the board lives") {
            Heard::Text(text) => {
                let word = |name: &str| text[name].as_str().map(str::to_owned);
                steps.push([word("type"), word("state")].into_iter().flatten().collect::<Vec<_>>().join(" "));
            }
            Heard::Sound(frame) => answer.push(frame),
        }
    }
    assert_eq!(steps, ["stt", "llm", "tts start", "tts sentence_start", "tts stop"]);
    assert!(answer == tone(), "sound reaches the board byte for byte");
    let calls = relayed.access.calls.lock().expect("no panic").clone();
    assert_eq!(calls, [("self.audio_speaker.set_volume".to_owned(), json!({"volume": 33}))]);
}

#[tokio::test]
async fn a_board_on_mqtt_talks_to_its_voice_server_and_its_assistant_calls_its_tools() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.mqtt_url();
    talk(&mut relayed, url, 1).await;
    assert_eq!(relayed.gateway.boards.sound_packets(), 0);
    relayed.gateway.close().await;
}

#[tokio::test]
async fn a_board_on_a_websocket_talks_to_its_voice_server_and_its_assistant_calls_its_tools() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.url();
    talk(&mut relayed, url, 1).await;
    relayed.gateway.close().await;
}

#[tokio::test]
async fn the_assistant_and_another_client_use_the_board_at_the_same_time() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.mqtt_url();
    let (microphone, mut heard, device) = relayed.board(url).await;
    for round in 1..=5 {
        relayed.voice.hear(BOARD, &format!("set the volume to {round}"));
        microphone.speak(sounds(3));
        let others: Vec<_> = (0..8).map(|_| call(&device, "self.get_device_status", json!({}))).collect();
        text(&mut heard, |text| text["type"] == "tts" && text["state"] == "stop").await;
        for other in others {
            assert!(answered(other).await.expect("an answer").joined_text().contains("volume"));
        }
    }
    assert_eq!(relayed.access.calls.lock().expect("no panic").len(), 5);
    relayed.gateway.close().await;
}

#[tokio::test]
async fn the_state_of_the_relay_is_shown_and_tools_work_without_a_conversation() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.mqtt_url();
    let (microphone, mut heard, device) = relayed.board(url).await;
    assert_eq!(device.info().attributes["relay"], "idle");
    assert!(answered(call(&device, "self.get_device_status", json!({}))).await.is_ok());
    microphone.speak(sounds(1));
    relayed.relay_state("talking").await;
    // The server ends the conversation: goodbye with the session that its hello named.
    text(&mut heard, |text| text["type"] == "hello").await;
    assert!(relayed.voice.order(BOARD, VoiceOrder::Close));
    let goodbye = text(&mut heard, |text| text["type"] == "goodbye").await;
    assert_eq!(goodbye["session_id"], "virtual-voice");
    relayed.relay_state("idle").await;
    assert!(answered(call(&device, "self.get_device_status", json!({}))).await.is_ok());
    // And the next one starts as usual.
    microphone.speak(sounds(1));
    relayed.relay_state("talking").await;
    relayed.gateway.close().await;
}

#[tokio::test]
async fn a_board_that_is_not_relayed_gets_sinews_own_hello() {
    let mut relayed = RelayedGateway::open().await;
    relayed.access.others.lock().expect("no panic").push(format!("board:{BOARD}"));
    let url = relayed.gateway.mqtt_url();
    let (microphone, mut heard, _device) = relayed.board(url).await;
    assert_eq!(relayed.relay_state("off").await, "off; `boards` of [relay] does not name it");
    microphone.speak(sounds(1));
    let hello = text(&mut heard, |text| text["type"] == "hello").await;
    assert_ne!(hello["session_id"], "virtual-voice");
    assert_eq!(text(&mut heard, |text| text["type"] == "goodbye").await["session_id"], hello["session_id"]);
    relayed.gateway.close().await;
}

#[tokio::test]
async fn commands_of_the_voice_server_are_recorded_and_other_texts_pass_untouched() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.url();
    let (_microphone, mut heard, _) = relayed.board(url).await;
    relayed.event(|event| matches!(event, VoiceEvent::Ready(_))).await;
    let custom = r#"{"type":"custom","payload":{"b":1,"a":"ä"},"session_id":"virtual-voice"}"#;
    for text in [r#"{"type":"system","command":"reboot"}"#, custom, "no JSON", "{}"] {
        assert!(relayed.voice.order(BOARD, VoiceOrder::Text(text.to_owned())));
    }
    text(&mut heard, |text| text["type"] == "system").await;
    let passed = text(&mut heard, |_| true).await;
    assert_eq!(passed.to_string(), custom, "what has no type is left out, and order is kept");
    assert_eq!(*relayed.access.commands.lock().expect("no panic"), ["reboot"]);
    relayed.gateway.close().await;
}

#[tokio::test]
async fn a_photo_that_the_assistant_asked_for_is_explained_by_its_server() {
    let mut relayed = RelayedGateway::open_with_photos().await;
    let url = relayed.gateway.mqtt_url();
    let (microphone, mut heard, device) = relayed.board(url).await;
    microphone.speak(sounds(1));
    relayed.event(|event| matches!(event, VoiceEvent::Ready(_))).await;
    text(&mut heard, |text| text["type"] == "hello").await;
    let (address, mut photos) = photo_server().await;
    let vision = json!({"url": format!("http://{address}/mcp/vision/explain"), "token": "vision-secret"});
    let ask = |id: u64, method: &str, params: Value| {
        let payload = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        VoiceOrder::Text(json!({"type": "mcp", "payload": payload}).to_string())
    };
    relayed.voice.order(BOARD, ask(70, "initialize", json!({"capabilities": {"vision": vision}})));
    let photo = json!({"name": "self.camera.take_photo", "arguments": {"question": "What is it?"}});
    relayed.voice.order(BOARD, ask(71, "tools/call", photo));
    let posted = soon(photos.recv()).await.expect("a photo");
    assert!(posted.contains("vision-secret") && posted.contains(BOARD) && posted.contains("What is it?"), "{posted}");
    assert!(!posted.contains(TOKEN));
    let answer = relayed.event(|event| matches!(event, VoiceEvent::Text(text) if text["payload"]["id"] == 71)).await;
    let VoiceEvent::Text(answer) = answer else { panic!("no text") };
    assert!(answer.to_string().contains("a virtual cat"), "{answer}");
    // The photo of another caller stays with Sinew.
    let other = answered(call(&device, "self.camera.take_photo", json!({"question": "?"}))).await.expect("a photo");
    assert!(other.content.iter().any(|content| content.bytes().is_some()));
    relayed.gateway.close().await;
}

impl RelayedGateway {
    async fn open_with_photos() -> RelayedGateway {
        let server = voice::VirtualVoiceServer::open(([127, 0, 0, 1], 0).into(), None).await.expect("open");
        let voice = server.handle();
        let access = Arc::new(FakeAccess::default());
        let address = VoiceAddress::new(&voice.url(), None, false).expect("valid");
        let relay = VoiceRelay { server: VoiceServer::At(address), access: access.clone(), passes_firmware: false };
        let gateway = TestGateway::open_with(|config| {
            config.relay = Some(relay);
            config.pictures = Some(sinew_boards::Pictures::Attach);
        })
        .await;
        let shutdown = CancellationToken::new();
        tokio::spawn(server.run(shutdown.clone()));
        let events = voice.events();
        RelayedGateway { gateway, voice, events, access, voice_runs: shutdown.drop_guard() }
    }
}

/// Explains every photo as a cat, and reports what was posted.
async fn photo_server() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        let (mut received, mut room) = (Vec::new(), [0; 4096]);
        while !received.windows(4).any(|end| end == b"--\r\n") {
            let count = tcp.read(&mut room).await.expect("read");
            received.extend_from_slice(&room[..count]);
        }
        sender.send(String::from_utf8_lossy(&received).into_owned()).expect("a reader");
        let body = r#"{"success":true,"action":"RESPONSE","response":"a virtual cat"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        tcp.write_all(answer.as_bytes()).await.expect("sent");
    });
    (address, receiver)
}

#[tokio::test]
async fn closing_the_gateway_ends_every_conversation() {
    let mut relayed = RelayedGateway::open().await;
    let url = relayed.gateway.url();
    let (_microphone, _heard, _) = relayed.board(url).await;
    relayed.event(|event| matches!(event, VoiceEvent::Ready(_))).await;
    let RelayedGateway { gateway, mut events, voice_runs, .. } = relayed;
    gateway.close().await;
    // The voice server still runs, so it was the gateway that ended the conversation.
    while soon(events.recv()).await.expect("the voice server runs").1 != VoiceEvent::Closed {}
    drop(voice_runs);
}
