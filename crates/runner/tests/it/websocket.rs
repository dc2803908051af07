//! A board on real sockets, with a gateway made of a few lines.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_runner::device::Board;
use sinew_runner::{CancellationToken, Dialer, Firmware, HangUp, Identity, RunError, Trust};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::lamp;

/// A lamp that says when it is ready, and restarts when it has switched itself.
struct Talker {
    board: Board,
    told: bool,
    restarts: bool,
}

impl Firmware for Talker {
    fn hello(&mut self) -> String {
        self.told = false;
        self.board.hello()
    }

    fn handle_text(&mut self, _: Duration, text: &str) -> Vec<String> {
        let answer = self.board.handle_text(text);
        self.restarts |= answer.is_some();
        answer.into_iter().collect()
    }

    fn handle_time(&mut self, _: Duration) -> Vec<String> {
        let told = std::mem::replace(&mut self.told, true);
        if told { Vec::new() } else { vec![self.board.notify("notifications/ready", json!({}))] }
    }

    fn next_due(&self) -> Option<Duration> {
        (!self.told).then_some(Duration::ZERO)
    }

    fn hang_up(&mut self) -> Option<HangUp> {
        std::mem::take(&mut self.restarts).then_some(HangUp { why: "restart", pause: Some(Duration::ZERO) })
    }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/xiaozhi/v1/", listener.local_addr().unwrap());
    (listener, url)
}

fn switch_on(url: &str, trust: Trust, firmware: impl Firmware + 'static) -> Switch {
    let shutdown = CancellationToken::new();
    let dialer = Dialer::new(url, &trust).unwrap();
    let identity = Identity::new("02:00:00:00:00:07").with_token("secret");
    let life = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { dialer.run(firmware, identity, shutdown).await }
    });
    Switch { shutdown, life }
}

struct Switch {
    shutdown: CancellationToken,
    life: JoinHandle<Result<(), RunError>>,
}

impl Switch {
    async fn off(self) {
        self.shutdown.cancel();
        self.life.await.unwrap().unwrap();
    }
}

struct Gateway<S>(WebSocketStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Gateway<S> {
    async fn hear(&mut self) -> Value {
        let message = self.0.next().await.unwrap().unwrap();
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    async fn greet(&mut self) {
        assert_eq!(self.hear().await["type"], "hello");
        self.0.send(Message::text(r#"{"type":"hello","transport":"websocket","session_id":"s1"}"#)).await.unwrap();
    }

    async fn switch(&mut self) -> Value {
        let params = json!({"name": "self.lamp.switch", "arguments": {"on": true}});
        let payload = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.0.send(Message::text(json!({"type": "mcp", "payload": payload}).to_string())).await.unwrap();
        self.hear().await
    }
}

async fn accept(stream: TcpStream) -> Gateway<TcpStream> {
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("authorization"), Some("Bearer secret"));
        assert_eq!(header("protocol-version"), Some("1"));
        assert_eq!(header("device-id"), Some("02:00:00:00:00:07"));
        assert!(header("client-id").is_some_and(|id| id.len() == 36));
        Ok(response)
    };
    Gateway(tokio_tungstenite::accept_hdr_async(stream, check).await.unwrap())
}

#[tokio::test]
async fn a_board_dials_as_firmware_does_and_dials_again() {
    let (listener, url) = listen().await;
    let board = switch_on(&url, Trust::System, lamp());
    for _ in 0..2 {
        let mut gateway = accept(listener.accept().await.unwrap().0).await;
        gateway.greet().await;
        let answer = gateway.switch().await;
        assert_eq!((&answer["session_id"], &answer["payload"]["id"]), (&json!("s1"), &json!(1)));
        assert_eq!(answer["payload"]["result"]["content"][0]["text"], "true");
    }
    board.off().await;
}

#[tokio::test]
async fn a_board_speaks_unasked_and_may_restart() {
    let (listener, url) = listen().await;
    let board = switch_on(&url, Trust::System, Talker { board: lamp(), told: false, restarts: false });
    for _ in 0..2 {
        let mut gateway = accept(listener.accept().await.unwrap().0).await;
        gateway.greet().await;
        assert_eq!(gateway.hear().await["payload"]["method"], "notifications/ready");
        assert_eq!(gateway.switch().await["payload"]["result"]["isError"], false);
        assert!(gateway.0.next().await.is_none_or(|message| message.is_err()));
    }
    board.off().await;
}

#[tokio::test]
async fn a_refused_token_ends_the_run_and_a_busy_gateway_does_not() {
    let (listener, url) = listen().await;
    let board = switch_on(&url, Trust::System, lamp());
    for status in ["503 Service Unavailable", "429 Too Many Requests", "401 Unauthorized"] {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_ne!(stream.read(&mut [0; 2048]).await.unwrap(), 0);
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 9\r\n\r\nwho am I?");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    let refused = board.life.await.unwrap().unwrap_err();
    assert!(
        matches!(&refused, RunError::Refused { status: Some(401), why, .. } if why.contains("who am I?")),
        "{refused}"
    );
}

#[tokio::test]
async fn over_tls_only_a_trusted_certificate_is_believed() {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let private = PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![key.cert.der().clone()], private).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, url) = listen().await;
    let url = url.replace("ws://", "wss://");

    let wary = switch_on(&url, Trust::Fingerprint([7; 32]), lamp());
    let (stream, _) = listener.accept().await.unwrap();
    assert!(acceptor.accept(stream).await.is_err());
    let refused = wary.life.await.unwrap().unwrap_err();
    assert!(matches!(refused, RunError::Tls(..)), "{refused}");

    let board = switch_on(&url, Trust::Pem(key.cert.pem().into_bytes()), lamp());
    let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
    let mut gateway = Gateway(tokio_tungstenite::accept_async(stream).await.unwrap());
    gateway.greet().await;
    assert_eq!(gateway.switch().await["payload"]["result"]["isError"], false);
    board.off().await;
}
