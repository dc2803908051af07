//! The dial-out endpoint, with a broker that behaves like existing ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_front::dialout::{self, EndpointAddress};
use sinew_front::{Front, FrontSettings};
use sinew_gateway::Shape;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_util::sync::CancellationToken;

use crate::server::TestServer;

struct Broker {
    listener: TcpListener,
    address: EndpointAddress,
}

/// A tool provider as the broker sees it.
struct Provider(WebSocketStream<TcpStream>);

impl Broker {
    async fn new() -> Broker {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("ws://{}/mcp/?token=secret-token", listener.local_addr().unwrap());
        Broker { listener, address: address.parse().unwrap() }
    }

    fn connect(&self, server: &TestServer, shutdown: &CancellationToken) -> JoinHandle<std::io::Result<()>> {
        let front = Front::new(server.gateway.clone(), FrontSettings::default());
        tokio::spawn(dialout::serve(front, self.address.clone(), Shape::Folded, shutdown.clone()))
    }

    /// Accepts the next provider and sends the first requests of brokers: `initialize` and `tools/list`.
    async fn provider(&self) -> (Provider, Value) {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut provider = Provider(tokio_tungstenite::accept_async(stream).await.unwrap());
        let hello = provider
            .ask(
                json!(0),
                "initialize",
                json!({
                    "protocolVersion": "2024-11-05", "capabilities": {"sampling": {}, "roots": {"listChanged": false}},
                    "clientInfo": {"name": "xz-mcp-broker", "version": "0.0.1"},
                }),
            )
            .await;
        assert_eq!(hello["result"]["protocolVersion"], "2024-11-05", "{hello}");
        provider.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let tools = provider.ask(json!(1), "tools/list", json!({})).await;
        (provider, tools["result"]["tools"].clone())
    }
}

impl Provider {
    async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        self.answer(&id).await
    }

    /// The answer with exactly this id.
    async fn answer(&mut self, id: &Value) -> Value {
        loop {
            let Message::Text(text) = self.0.next().await.unwrap().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message.get("id") == Some(id) {
                return message;
            }
        }
    }
}

fn echo(text: &str) -> Value {
    json!({"name": "echo", "arguments": {"text": text}, "serialNumber": null})
}

#[tokio::test]
async fn a_broker_lists_pings_and_calls_with_ids_of_any_kind() {
    let (server, broker, shutdown) = (TestServer::new().await, Broker::new().await, CancellationToken::new());
    let serving = broker.connect(&server, &shutdown);
    let (mut provider, tools) = broker.provider().await;
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "echo"), "{tools}");
    assert_eq!(provider.ask(json!(0), "ping", json!({})).await["result"], json!({}));
    provider.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(provider.answer(&json!("p")).await["result"], json!({}));
    for id in [json!(0), json!(7), json!("6f1c_n_3"), json!("")] {
        let answer = provider.ask(id, "tools/call", echo("hi")).await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
    }
    let audit = server.gateway.audit(1).await.unwrap();
    assert_eq!(audit[0].door, "endpoint");
    shutdown.cancel();
    assert!(provider.0.next().await.is_some_and(|end| end.is_ok_and(|message| message.is_close())));
    drop(provider);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_gateway_reconnects_to_a_broker_that_closes_or_refuses() {
    let (server, broker, shutdown) = (TestServer::new().await, Broker::new().await, CancellationToken::new());
    let serving = broker.connect(&server, &shutdown);
    let (mut provider, _) = broker.provider().await;
    let fault = CloseFrame { code: 4004.into(), reason: "Internal server error: secret-token".into() };
    provider.0.close(Some(fault)).await.unwrap();
    let (mut refused, _) = broker.listener.accept().await.unwrap();
    let mut asked = [0; 1024];
    let length = refused.read(&mut asked).await.unwrap();
    assert!(asked[..length].starts_with(b"GET /mcp/?token=secret-token HTTP/1.1\r\n"));
    refused.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    drop(refused);
    let (mut provider, tools) = broker.provider().await;
    assert_ne!(tools, json!([]));
    let answer = provider.ask(json!(2), "tools/call", echo("again")).await;
    assert_eq!(answer["result"]["content"][0]["text"], "again");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_open_call_is_answered_before_the_gateway_disconnects() {
    let (server, broker, shutdown) = (TestServer::new().await, Broker::new().await, CancellationToken::new());
    let serving = broker.connect(&server, &shutdown);
    let (mut provider, _) = broker.provider().await;
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "wait"}});
    provider.say(call).await;
    assert_eq!(server.signal().await, "started");
    shutdown.cancel();
    server.go_on();
    assert_eq!(provider.answer(&json!(9)).await["result"]["content"][0]["text"], "waited");
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn invalid_messages_of_a_broker_are_answered() {
    let (server, broker, shutdown) = (TestServer::new().await, Broker::new().await, CancellationToken::new());
    let serving = broker.connect(&server, &shutdown);
    let (mut provider, _) = broker.provider().await;
    for noise in ["", "{", "[]", "\n\n", "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}"] {
        provider.0.send(Message::text(noise)).await.unwrap();
    }
    provider.0.send(Message::binary(vec![0xff; 1000])).await.unwrap();
    assert_eq!(provider.ask(json!(3), "tools/call", echo("fine")).await["result"]["content"][0]["text"], "fine");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_broker_is_not_dialled_while_the_gateway_is_unreachable() {
    let (broker, shutdown, tries) = (Broker::new().await, CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let open = || {
        let (shutdown, tries) = (shutdown.clone(), tries.clone());
        async move {
            if tries.fetch_add(1, Ordering::Relaxed) == 1 {
                shutdown.cancel();
            }
            Err::<tokio::io::DuplexStream, _>(std::io::Error::other("it is down"))
        }
    };
    dialout::run(&broker.address, open, shutdown.clone()).await.unwrap();
    assert_eq!(tries.load(Ordering::Relaxed), 2);
}
