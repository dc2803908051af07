//! A config on a free port, and a board played by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_boards::{AdvertisedAddress, Boards, HubConfig, http};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_tool::{
    Admission, Admit, Args, Bearer, Call, Device, DeviceEvent, DeviceKey, LeaveReason, Notice, Outcome, TokenId,
    ToolError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;

pub const TOKEN: &str = "gateway-secret";

/// The id of the token that reads `token of DEVICE`.
pub fn token_id(device: &str) -> TokenId {
    TokenId::parse(device).expect("a plain id")
}

pub fn device_token(device: &str) -> Admission {
    Admission::DeviceToken(token_id(device))
}

/// Knows the gateway's token, and those that read `token of KEY`; a key without a family is a board's.
struct TestTokens;

impl Admit for TestTokens {
    fn admit(&self, token: Option<&str>, key: &DeviceKey) -> Option<Admission> {
        match token.and_then(|token| self.find_bearer(token)) {
            Some(Bearer::Device { key: bound, .. }) if bound != *key => None,
            bearer => bearer.map(|bearer| bearer.admission()),
        }
    }

    fn find_bearer(&self, token: &str) -> Option<Bearer> {
        match token {
            TOKEN => Some(Bearer::Any),
            _ => {
                let device = token.strip_prefix("token of ")?;
                let is_key = device.starts_with("provider:") || device.starts_with("board:");
                let key = DeviceKey(if is_key { device.to_owned() } else { format!("board:{device}") });
                Some(Bearer::Device { token: token_id(device), key })
            }
        }
    }

    fn is_known(&self, key: &DeviceKey) -> bool {
        key.0.contains("known")
    }

    /// The token of the board `revoked` is revoked as soon as it was used.
    fn is_valid(&self, admission: &Admission) -> bool {
        *admission != device_token("revoked")
    }
}

/// An open config and what it announces.
pub struct TestGateway {
    pub boards: Boards,
    pub address: SocketAddr,
    pub mqtt: SocketAddr,
    pub sound: u16,
    pub events: mpsc::UnboundedReceiver<DeviceEvent>,
    pub shutdown: CancellationToken,
    pub running: JoinHandle<std::io::Result<()>>,
}

impl TestGateway {
    pub async fn open() -> TestGateway {
        TestGateway::open_with(|_| {}).await
    }

    pub async fn open_with(change: impl FnOnce(&mut HubConfig)) -> TestGateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, events) = mpsc::unbounded_channel();
        let mut config = HubConfig::new(Arc::new(TestTokens), Arc::new(move |event| drop(sender.send(event))));
        let mqtt_listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let sound = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let mqtt = mqtt_listener.local_addr().expect("bound");
        let sound_port = sound.local_addr().expect("bound").port();
        config.reach = Some(AdvertisedAddress {
            host: "127.0.0.1".to_owned(),
            http: address.port(),
            mqtt: Some(mqtt.port()),
            sound: Some(sound_port),
        });
        change(&mut config);
        let shutdown = CancellationToken::new();
        let boards = Boards::new(config).expect("random numbers");
        let over_http = http::run(listener, boards.clone(), shutdown.clone());
        let over_mqtt = sinew_boards::mqtt::run(mqtt_listener, sound, boards.clone(), shutdown.clone());
        let running = tokio::spawn(async { tokio::try_join!(over_http, over_mqtt).map(|_| ()) });
        TestGateway { boards, address, mqtt, sound: sound_port, events, shutdown, running }
    }

    pub fn mqtt_url(&self) -> String {
        format!("mqtt://{}", self.mqtt)
    }

    /// A plain HTTP request at the boards' port; gives status and body.
    pub async fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        self.request_as("x", method, path, headers, body).await
    }

    /// The same under this name of the host.
    pub async fn request_as(
        &self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, String) {
        let mut tcp = TcpStream::connect(self.address).await.expect("open");
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        tcp.write_all(head.as_bytes()).await.expect("sent");
        // A refused body may be cut off while it is sent; the answer counts.
        let _ = tcp.write_all(body).await;
        let mut answer = Vec::new();
        let _ = soon(tcp.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"));
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    pub fn url(&self) -> String {
        format!("ws://{}/xiaozhi/v1/", self.address)
    }

    /// A virtual board at this config, not yet running.
    pub fn board(&self, hardware_id: &str, kind: BoardKind) -> BoardConfig {
        BoardConfig { token: Some(TOKEN.to_owned()), ..BoardConfig::new(self.url(), hardware_id, kind) }
    }

    /// Switches a virtual board on; it lives until the gateway closes.
    pub fn switch_on(&self, config: BoardConfig) -> JoinHandle<()> {
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move { sinew_sim::board::run(config, shutdown).await.expect("the board lives") })
    }

    pub async fn next(&mut self) -> DeviceEvent {
        soon(self.events.recv()).await.expect("the config is open")
    }

    pub async fn joined(&mut self) -> Arc<dyn Device> {
        loop {
            if let DeviceEvent::Joined(device) = self.next().await {
                return device;
            }
        }
    }

    pub async fn left(&mut self) -> (Arc<dyn Device>, LeaveReason) {
        loop {
            if let DeviceEvent::Left(device, reason) = self.next().await {
                return (device, reason);
            }
        }
    }

    pub async fn said(&mut self, topic: &str) -> Notice {
        loop {
            if let DeviceEvent::Said(_, notice) = self.next().await
                && notice.topic == topic
            {
                return notice;
            }
        }
    }

    /// A board played by hand, which has joined with one tool, `echo`.
    pub async fn played(&mut self, hardware_id: &str) -> (Played, Arc<dyn Device>) {
        let mut played = Played::knock(&self.url(), hardware_id).await;
        played.introduce().await;
        (played, self.joined().await)
    }

    /// Closes and returns what was announced meanwhile.
    pub async fn close(mut self) -> Vec<DeviceEvent> {
        self.shutdown.cancel();
        soon(self.running).await.expect("no panic").expect("no error");
        let mut rest = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            rest.push(event);
        }
        rest
    }
}

/// A board whose every word the test chooses.
pub struct Played {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Played {
    pub async fn knock(url: &str, hardware_id: &str) -> Played {
        let headers = [("authorization", format!("Bearer {TOKEN}")), ("device-id", hardware_id.to_owned())];
        Played::knock_with(url, &headers).await.expect("admitted")
    }

    pub async fn knock_with(url: &str, headers: &[(&'static str, String)]) -> Result<Played, tungstenite::Error> {
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        Ok(Played { socket: soon(connect_async(request)).await?.0 })
    }

    pub async fn say(&mut self, text: impl Into<String>) {
        soon(self.socket.send(Message::text(text.into()))).await.expect("sent");
    }

    pub async fn hello(&mut self, features: Value) -> Value {
        self.say(json!({"type": "hello", "version": 1, "transport": "websocket", "features": features}).to_string())
            .await;
        self.hear().await
    }

    pub async fn hear(&mut self) -> Value {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).expect("JSON"),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("text was expected, not {other:?}"),
            }
        }
    }

    /// The next request of this method; notifications are skipped.
    pub async fn asked(&mut self, method: &str) -> Value {
        loop {
            let message = self.hear().await;
            if message["payload"].get("id").is_some() {
                assert_eq!(message["payload"]["method"], method, "{message}");
                return message["payload"].clone();
            }
        }
    }

    pub async fn payload(&mut self, payload: Value) {
        self.say(json!({"session_id": "", "type": "mcp", "payload": payload}).to_string()).await;
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.payload(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub async fn answer_text(&mut self, request: &Value, text: &str) {
        self.answer(request, json!({"content": [{"type": "text", "text": text}], "isError": false})).await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.payload(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub async fn introduce(&mut self) {
        let hello = self.hello(json!({"mcp": true})).await;
        assert_eq!((&hello["type"], &hello["transport"]), (&json!("hello"), &json!("websocket")));
        self.set_up().await;
    }

    /// Answers `initialize` and `tools/list`.
    pub async fn set_up(&mut self) {
        let request = self.asked("initialize").await;
        let info = json!({"name": "played", "version": "0.1"});
        self.answer(
            &request,
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": info}),
        )
        .await;
        let request = self.asked("tools/list").await;
        let echo =
            json!({"name": "echo", "description": "Say it again", "inputSchema": {"type": "object", "properties": {}}});
        self.answer(&request, json!({"tools": [echo]})).await;
    }

    /// Reads until the other end closes; the code and reason it gave, if any.
    pub async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Close(frame))) => {
                    return frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

pub fn call(device: &Arc<dyn Device>, tool: &str, args: Value) -> JoinHandle<Result<Outcome, ToolError>> {
    call_within(device, tool, args, Duration::from_secs(30))
}

pub fn call_within(
    device: &Arc<dyn Device>,
    tool: &str,
    args: Value,
    budget: Duration,
) -> JoinHandle<Result<Outcome, ToolError>> {
    let device = device.clone();
    let args: Args = args.as_object().cloned().unwrap_or_default();
    let call = Call { budget, ..Call::new(tool, args) };
    tokio::spawn(async move { device.call(call).await })
}

pub async fn answered(call: JoinHandle<Result<Outcome, ToolError>>) -> Result<Outcome, ToolError> {
    soon(call).await.expect("no panic")
}

/// Nothing here takes long; what does hangs, and is reported instead of waited for.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it hangs")
}

/// A certificate for loopback, as a config and as a board want it.
pub fn certificate() -> (Arc<ServerConfig>, Vec<u8>) {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .expect("they fit");
    (Arc::new(config), key.cert.pem().into_bytes())
}
