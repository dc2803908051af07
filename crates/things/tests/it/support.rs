//! The family in a test, a real broker, and gadgets on it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sinew_boards::broker::{Address, Connection, client_id};
use sinew_mqtt::client::{BrokerPacket, Introduction, MqttMessage, Subscription};
use sinew_things::ThingConfig;
use sinew_tool::{Call, Device, DeviceEvent, DeviceKey, Outcome, ToolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it happens")
}

pub struct Family {
    pub events: mpsc::UnboundedReceiver<DeviceEvent>,
    pub shutdown: CancellationToken,
}

impl Family {
    pub fn start(thing: ThingConfig, brokers: &[Address]) -> Family {
        let plan = sinew_things::plan(&[thing], brokers).expect("valid").remove(0);
        let (sender, events) = mpsc::unbounded_channel();
        let shutdown = CancellationToken::new();
        let unknown = Arc::new(|_: Option<&str>, _: &DeviceKey| None);
        let announce = Arc::new(move |event| drop(sender.send(event)));
        tokio::spawn(sinew_things::run(plan, unknown, announce, shutdown.clone()));
        Family { events, shutdown }
    }

    pub async fn joined(&mut self) -> Arc<dyn Device> {
        match soon(self.events.recv()).await {
            Some(DeviceEvent::Joined(device)) => device,
            _ => panic!("it did not join"),
        }
    }

    pub async fn left(&mut self) -> String {
        match soon(self.events.recv()).await {
            Some(DeviceEvent::Left(_, reason)) => reason.to_string(),
            _ => panic!("it did not leave"),
        }
    }
}

pub async fn call(device: &Arc<dyn Device>, tool: &str, arguments: Value) -> Result<Outcome, ToolError> {
    soon(device.call(Call::new(tool, arguments.as_object().cloned().expect("an object")))).await
}

/// A real broker on a port of its own, ended with the value.
pub struct Mosquitto {
    port: u16,
    folder: tempfile::TempDir,
    process: Child,
}

impl Mosquitto {
    pub async fn open() -> Mosquitto {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\n");
        std::fs::write(folder.path().join("mosquitto.conf"), text).expect("written");
        let process = spawn(folder.path());
        let broker = Mosquitto { port, folder, process };
        broker.is_there().await;
        broker
    }

    pub fn address(&self) -> Address {
        Address::new(&format!("mqtt://127.0.0.1:{}", self.port), None, None).expect("valid")
    }

    pub async fn stop(&mut self) {
        self.process.kill().await.expect("killed");
    }

    pub async fn start(&mut self) {
        self.process = spawn(self.folder.path());
        self.is_there().await;
    }

    async fn is_there(&self) {
        let there = async {
            while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon(there).await;
    }
}

fn spawn(folder: &Path) -> Child {
    let program = if Path::new("/usr/sbin/mosquitto").exists() { "/usr/sbin/mosquitto" } else { "mosquitto" };
    Command::new(program)
        .arg("-c")
        .arg(folder.join("mosquitto.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("mosquitto is needed for this test; scripts/install installs it")
}

/// A connection to a broker.
pub async fn client_of(broker: &Mosquitto) -> Connection {
    let client_id = client_id();
    let introduction = Introduction {
        client_id: &client_id,
        login: None,
        keep_alive: 30,
        packet_bytes: 1 << 16,
        will: None,
        properties: &[],
    };
    Connection::open(&broker.address(), introduction).await.expect("connected")
}

/// A gadget on a broker: what it publishes for each message that it gets.
pub async fn gadget_on(
    broker: &Mosquitto,
    filter: &str,
    answers: impl Fn(&str, &str) -> Vec<(String, String)> + Send + 'static,
) -> JoinHandle<()> {
    let mut connection = client_of(broker).await;
    let subscription = Subscription { filter: filter.to_owned(), ..Subscription::default() };
    connection.subscribed(&[subscription], drop).await.expect("subscribed");
    tokio::spawn(async move {
        while let Ok(packet) = connection.next().await {
            let BrokerPacket::Publish(message) = packet else { continue };
            for (topic, text) in answers(&message.topic, &String::from_utf8_lossy(&message.payload)) {
                connection.publish(&MqttMessage { topic, payload: text.into_bytes(), ..MqttMessage::default() });
            }
        }
    })
}

/// A gadget over HTTP, and the requests it gets.
pub async fn http_gadget(
    answer: impl Fn(&str) -> (u16, String) + Send + 'static,
) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let (sender, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut input = Vec::new();
            loop {
                let text = String::from_utf8_lossy(&input).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
                    if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                        break;
                    }
                }
                if stream.read_buf(&mut input).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let request = String::from_utf8_lossy(&input).into_owned();
            let (status, body) = answer(&request);
            drop(sender.send(request));
            let text =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            drop(stream.write_all(text.as_bytes()).await);
        }
    });
    (url, heard)
}
