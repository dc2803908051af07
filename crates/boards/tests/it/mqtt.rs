//! Boards over MQTT: virtual ones, and one played by hand byte for byte.

use serde_json::{Value, json};
use sinew_sim::board::{BoardConfig, BoardKind, Trust};
use sinew_tool::{Admission, DeviceEvent, LeaveReason, Status};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use crate::support::{Played, TOKEN, TestGateway, answered, call, certificate, soon};

/// A client whose every packet the test chooses.
pub struct Client {
    tcp: TcpStream,
    /// 4 for MQTT 3.1.1, 5 for MQTT 5.
    version: u8,
}

impl Client {
    /// Connects without a word.
    pub async fn dial(gateway: &TestGateway, version: u8) -> Client {
        Client::at(gateway.mqtt, version).await
    }

    pub async fn at(address: SocketAddr, version: u8) -> Client {
        Client { tcp: TcpStream::connect(address).await.expect("open"), version }
    }

    /// A client for which the system keeps little that it has not read.
    pub async fn cramped(gateway: &TestGateway) -> Client {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        Client { tcp: socket.connect(gateway.mqtt).await.expect("open"), version: 4 }
    }

    /// Says CONNECT and gives the code of the answer.
    pub async fn connect(&mut self, client_id: &str, password: &str, keepalive: u16) -> u8 {
        let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', self.version, 0xc2];
        body.extend(keepalive.to_be_bytes());
        if self.version == 5 {
            body.push(0);
        }
        for text in [client_id, "user", password] {
            body.extend((text.len() as u16).to_be_bytes());
            body.extend(text.bytes());
        }
        self.send(0x10, &body).await;
        let (kind, body) = self.packet().await.expect("an answer");
        assert_eq!(kind, 0x20, "CONNACK");
        body[1]
    }

    /// A board that is admitted.
    pub async fn admitted(gateway: &TestGateway, client_id: &str) -> Client {
        let mut client = Client::dial(gateway, 4).await;
        assert_eq!(client.connect(client_id, TOKEN, 240).await, 0);
        client
    }

    pub async fn send(&mut self, kind: u8, body: &[u8]) {
        let mut packet = vec![kind];
        let mut rest = body.len();
        loop {
            packet.push((rest % 128) as u8 | if rest >= 128 { 0x80 } else { 0 });
            rest /= 128;
            if rest == 0 {
                break;
            }
        }
        packet.extend(body);
        self.send_raw(&packet).await;
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        // The other end may have hung up already; what it said counts.
        let _ = self.tcp.write_all(bytes).await;
    }

    /// False where the other end has hung up.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.tcp.write_all(bytes).await.is_ok()
    }

    /// PUBLISH with these flags; with a packet id where they ask for one.
    pub async fn publish(&mut self, flags: u8, payload: &[u8]) {
        self.publish_to("device-server", flags, payload).await;
    }

    pub async fn publish_to(&mut self, topic: &str, flags: u8, payload: &[u8]) {
        let mut body = (topic.len() as u16).to_be_bytes().to_vec();
        body.extend(topic.bytes());
        if flags & 0b0110 != 0 {
            body.extend([0, 9]);
        }
        if self.version == 5 {
            body.push(0);
        }
        body.extend(payload);
        self.send(0x30 | flags, &body).await;
    }

    /// Wants to hear this, and waits until it is granted.
    pub async fn subscribe(&mut self, filter: &str) {
        let mut body = vec![0, 7];
        body.extend((filter.len() as u16).to_be_bytes());
        body.extend(filter.bytes());
        body.push(0);
        self.send(0x82, &body).await;
        assert_eq!(self.packet().await.expect("an answer").0, 0x90, "SUBACK");
    }

    pub async fn say(&mut self, message: Value) {
        self.publish(0, message.to_string().as_bytes()).await;
    }

    /// The next packet: its first byte and its body. `None` when the other end hung up.
    pub async fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = soon(self.tcp.read_u8()).await.ok()?;
        let (mut length, mut factor) = (0usize, 1);
        loop {
            let byte = soon(self.tcp.read_u8()).await.ok()?;
            length += usize::from(byte & 0x7f) * factor;
            factor *= 128;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        soon(self.tcp.read_exact(&mut body)).await.ok()?;
        Some((kind, body))
    }

    /// The next PUBLISH: topic and message.
    pub async fn hear(&mut self) -> (String, Value) {
        let (kind, body) = self.packet().await.expect("a packet");
        assert_eq!(kind, 0x30, "PUBLISH with quality of service 0");
        let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let topic = String::from_utf8(body[2..2 + length].to_vec()).expect("a topic");
        let payload = &body[2 + length + usize::from(self.version == 5)..];
        (topic, serde_json::from_slice(payload).expect("JSON"))
    }

    pub async fn asked(&mut self, method: &str) -> Value {
        loop {
            let (_, message) = self.hear().await;
            if message["payload"].get("id").is_some() {
                assert_eq!(message["payload"]["method"], method, "{message}");
                return message;
            }
        }
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        let payload = json!({"jsonrpc": "2.0", "id": request["payload"]["id"], "result": result});
        self.say(json!({"session_id": "", "type": "mcp", "payload": payload})).await;
    }

    /// Answers `initialize` and `tools/list` with one tool, `echo`.
    pub async fn introduce(&mut self) -> Value {
        let first = self.asked("initialize").await;
        self.answer(&first, json!({"serverInfo": {"name": "played", "version": "0.1"}})).await;
        let list = self.asked("tools/list").await;
        self.answer(&list, json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})).await;
        first
    }
}

#[tokio::test]
async fn a_virtual_board_that_never_subscribes_joins_is_called_and_tells() {
    let mut gateway = TestGateway::open().await;
    let config = BoardConfig { url: gateway.mqtt_url(), ..gateway.board("aa:bb:cc:dd:ee:01", BoardKind::Talking) };
    gateway.switch_on(config);
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!((info.key.0.as_str(), info.name.as_str()), ("board:aa:bb:cc:dd:ee:01", "virtual-companion"));
    assert_eq!((&info.attributes["transport"], &info.admission), (&json!("mqtt"), &Admission::OwnToken));
    let set = answered(call(&device, "self.audio_speaker.set_volume", json!({"volume": 33}))).await.expect("set");
    assert_eq!(set.joined_text(), "true");
    assert_eq!(gateway.said("notifications/state_changed").await.body["newState"], 33);
    let photo = answered(call(&device, "self.camera.take_photo", json!({"question": "?"}))).await.expect("a photo");
    assert!(photo.content[0].bytes().expect("an image").len() > 1000, "larger than one read");
    gateway.close().await;
}

#[tokio::test]
async fn a_board_is_asked_at_connect_and_talks_with_sound_going_nowhere() {
    let mut gateway = TestGateway::open().await;
    let mut client = Client::dial(&gateway, 4).await;
    assert_eq!(client.connect("GID_test@@@aa_bb_cc_dd_ee_01@@@uuid-7", "token of aa:bb:cc:dd:ee:01", 240).await, 0);
    let (topic, first) = client.hear().await;
    assert_eq!(topic, "devices/p2p/aa_bb_cc_dd_ee_01");
    assert_eq!((&first["session_id"], &first["payload"]["method"]), (&json!(""), &json!("initialize")));
    client.answer(&first, json!({})).await;
    let list = client.asked("tools/list").await;
    client.answer(&list, json!({"tools": [{"name": "echo"}]})).await;
    let device = gateway.joined().await;
    let info = device.info();
    assert_eq!(info.attributes["client_id"], "uuid-7");
    assert!(matches!(info.admission, Admission::DeviceToken(_)), "{:?}", info.admission);

    client.say(json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}})).await;
    let (_, hello) = client.hear().await;
    assert_eq!((&hello["type"], &hello["transport"]), (&json!("hello"), &json!("udp")));
    let udp = &hello["udp"];
    assert_eq!((&udp["server"], &udp["encryption"]), (&json!("127.0.0.1"), &json!("aes-128-ctr")));
    for secret in ["key", "nonce"] {
        let secret = udp[secret].as_str().expect("a secret");
        assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
    }
    assert_ne!(udp["key"], udp["nonce"]);
    let sound = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let port = udp["port"].as_u64().expect("a port") as u16;
    while gateway.boards.sound_packets() < 3 {
        sound.send_to(&[1; 200], ("127.0.0.1", port)).await.expect("sent");
        tokio::task::yield_now().await;
    }

    // Its hello may come from a new start, so the tools are listed again; a goodbye ends the talk alone.
    let list = client.asked("tools/list").await;
    client.answer(&list, json!({"tools": [{"name": "echo"}]})).await;
    client.say(json!({"type": "goodbye", "session_id": hello["session_id"]})).await;
    gateway.said("goodbye").await;
    let echo = call(&device, "echo", json!({}));
    let request = client.asked("tools/call").await;
    assert_eq!(request["session_id"], "");
    client.answer(&request, json!({"content": [{"type": "text", "text": "still here"}]})).await;
    assert_eq!(answered(echo).await.expect("an answer").joined_text(), "still here");

    client.send(0xe0, &[]).await;
    assert_eq!(gateway.left().await.1, LeaveReason::Closed);
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_never_answers_is_listed_without_mcp_until_it_speaks() {
    let mut gateway =
        TestGateway::open_with(|config| config.limits.session.setup_time = Duration::from_millis(20)).await;
    let mut client = Client::admitted(&gateway, "aa").await;
    let device = gateway.joined().await;
    let Status::Limited { state, remedy } = &device.info().status else { panic!("not limited") };
    assert_eq!(state, "no MCP");
    assert!(remedy.contains("firmware"), "{remedy}");
    let error = answered(call(&device, "echo", json!({}))).await.expect_err("no tools");
    assert!(error.message.contains("MCP"), "{error}");
    for _ in 0..2 {
        client.asked("initialize").await;
    }
    client.say(json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}})).await;
    client.introduce().await;
    loop {
        if let DeviceEvent::Changed(device) = gateway.next().await
            && device.info().status == Status::Ready
        {
            break assert!(device.tools().find("echo").is_some());
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn pings_are_answered_and_subscriptions_granted_in_both_versions() {
    let gateway = TestGateway::open().await;
    for version in [4, 5] {
        let mut client = Client::dial(&gateway, version).await;
        assert_eq!(client.connect("aa", TOKEN, 240).await, 0);
        client.asked("initialize").await;
        client.send(0xc0, &[]).await;
        assert_eq!(client.packet().await, Some((0xd0, Vec::new())));
        let properties: &[u8] = if version == 5 { &[0] } else { &[] };
        client.send(0x82, &[&[0, 7], properties, &[0, 1, b'#', 0, 0, 1, b't', 1]].concat()).await;
        assert_eq!(client.packet().await, Some((0x90, [&[0, 7], properties, &[0, 0]].concat())));
        client.send(0xa2, &[&[0, 8], properties, &[0, 1, b'#']].concat()).await;
        let released = if version == 5 { vec![0, 8, 0, 0] } else { vec![0, 8] };
        assert_eq!(client.packet().await, Some((0xb0, released)));
        // What a board publishes with a receipt is acknowledged.
        client.publish(0b0010, b"{\"type\":\"listen\"}").await;
        let (kind, body) = client.packet().await.expect("a receipt");
        assert_eq!((kind, &body[..2]), (0x40, &[0, 9][..]));
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_board_that_comes_again_replaces_itself_through_whichever_door() {
    let mut gateway = TestGateway::open().await;
    let mut first = Client::admitted(&gateway, "aa:bb:cc:dd:ee:01").await;
    first.introduce().await;
    let over_mqtt = gateway.joined().await;
    let mut second = Client::dial(&gateway, 5).await;
    assert_eq!(second.connect("g@@@aa_bb_cc_dd_ee_01@@@u", TOKEN, 240).await, 0);
    let (left, reason) = gateway.left().await;
    assert!(std::sync::Arc::ptr_eq(&left, &over_mqtt));
    assert_eq!(reason, LeaveReason::Replaced);
    while first.packet().await.is_some() {}
    second.introduce().await;
    gateway.joined().await;

    let (mut played, _) = {
        let mut played = Played::knock(&gateway.url(), "aa:bb:cc:dd:ee:01").await;
        played.introduce().await;
        assert_eq!(gateway.left().await.1, LeaveReason::Replaced);
        (played, gateway.joined().await)
    };
    // MQTT 5 has a word for it.
    let farewell = loop {
        match second.packet().await {
            Some((0xe0, body)) => break body,
            Some(_) => {}
            None => panic!("no farewell"),
        }
    };
    assert_eq!(farewell[0], 0x8e, "session taken over");
    let _third = Client::admitted(&gateway, "aa:bb:cc:dd:ee:01").await;
    assert!(played.closed().await.expect("a reason").1.contains("replaced"));
    gateway.close().await;
}

#[tokio::test]
async fn silence_longer_than_half_as_long_again_as_the_keepalive_ends_a_stay() {
    let mut gateway = TestGateway::open().await;
    let mut client = Client::dial(&gateway, 5).await;
    assert_eq!(client.connect("aa", TOKEN, 1).await, 0);
    client.introduce().await;
    gateway.joined().await;
    let (_, reason) = gateway.left().await;
    assert!(matches!(&reason, LeaveReason::Broken(why) if why.contains("keepalive")), "{reason}");
    while let Some((kind, body)) = client.packet().await {
        if kind == 0xe0 {
            assert_eq!(body[0], 0x8d, "keep alive timeout");
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn mqtt_is_spoken_over_tls_where_the_door_is_encrypted() {
    let (config, pem) = certificate();
    let mut gateway = TestGateway::open_with(|hub| hub.tls = Some(config)).await;
    let url = gateway.mqtt_url().replace("mqtt://", "mqtts://");
    let board = gateway.board("aa", BoardKind::Relay);
    gateway.switch_on(BoardConfig { url, trust: Trust::Pem(pem), ..board });
    let device = gateway.joined().await;
    answered(call(&device, "self.get_relays", json!({}))).await.expect("an answer");
    gateway.close().await;
}

#[tokio::test]
async fn what_firmware_could_not_take_whole_is_not_sent() {
    let mut gateway = TestGateway::open().await;
    let mut client = Client::admitted(&gateway, "aa").await;
    client.introduce().await;
    let device = gateway.joined().await;
    let error = answered(call(&device, "echo", json!({"text": "x".repeat(9000)}))).await.expect_err("too large");
    assert!(error.message.contains("8192"), "{error}");
    gateway.close().await;
}
