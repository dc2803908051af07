//! A board on MQTT: at a gateway's own door, played byte for byte, and through a real Mosquitto.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_runner::device::Board;
use sinew_runner::{Account, CancellationToken, Dialer, Firmware, HangUp, Identity, RunError, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::lamp;

const ID: &str = "02:00:00:00:00:07";

/// A lamp that pulls its plug when it is switched.
struct Fuse(Board, bool);

impl Firmware for Fuse {
    fn hello(&mut self) -> String {
        self.0.hello()
    }

    fn handle_text(&mut self, _: Duration, text: &str) -> Vec<String> {
        let answer = self.0.handle_text(text);
        self.1 = answer.is_some();
        answer.into_iter().collect()
    }

    fn hang_up(&mut self) -> Option<HangUp> {
        std::mem::take(&mut self.1).then_some(HangUp { why: "no power", pause: Some(Duration::from_secs(600)) })
    }
}

struct Switch {
    shutdown: CancellationToken,
    life: JoinHandle<Result<(), RunError>>,
}

fn switch_on(dialer: Dialer, firmware: impl Firmware + 'static) -> Switch {
    let shutdown = CancellationToken::new();
    let identity = Identity::new(ID).with_token("secret");
    let ending = shutdown.clone();
    let life = tokio::spawn(async move { dialer.run(firmware, identity, ending).await });
    Switch { shutdown, life }
}

impl Switch {
    async fn off(self) {
        self.shutdown.cancel();
        soon(self.life).await.unwrap().unwrap();
    }
}

/// The other end of a connection, packet by packet.
struct Peer(TcpStream);

impl Peer {
    async fn send(&mut self, kind: u8, body: &[u8]) {
        assert!(body.len() < 16_384);
        let length = match body.len() {
            short @ 0..=127 => vec![short as u8],
            long => vec![(long % 128) as u8 | 0x80, (long / 128) as u8],
        };
        self.0.write_all(&[&[kind][..], &length, body].concat()).await.unwrap();
    }

    async fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = soon(self.0.read_u8()).await.ok()?;
        let mut length = usize::from(soon(self.0.read_u8()).await.ok()?);
        if length >= 128 {
            length += (usize::from(soon(self.0.read_u8()).await.ok()?) << 7) - 128;
        }
        let mut body = vec![0; length];
        soon(self.0.read_exact(&mut body)).await.ok()?;
        Some((kind, body))
    }

    async fn publish(&mut self, topic: &str, payload: &Value) {
        self.send(0x30, &[text(topic), payload.to_string().into_bytes()].concat()).await;
    }

    /// The next PUBLISH: topic and payload. Whatever else comes is passed over.
    async fn hear(&mut self) -> (String, Value) {
        loop {
            let (kind, body) = self.packet().await.expect("a packet");
            if kind >> 4 == 3 {
                let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
                let start = end + if kind & 0b0110 == 0 { 0 } else { 2 };
                let topic = String::from_utf8(body[2..end].to_vec()).unwrap();
                return (topic, serde_json::from_slice(&body[start..]).unwrap());
            }
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

fn switch(id: i64) -> Value {
    let params = json!({"name": "self.lamp.switch", "arguments": {"on": true}});
    let payload = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    json!({"session_id": "", "type": "mcp", "payload": payload})
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn at_a_gateways_door_a_board_connects_as_firmware_does_and_dials_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mqtt://{}", listener.local_addr().unwrap());
    let board = switch_on(Dialer::new(&url, &Trust::System).unwrap(), lamp());
    for id in 1..=2 {
        let mut gateway = Peer(soon(listener.accept()).await.unwrap().0);
        let (kind, body) = gateway.packet().await.unwrap();
        let head = [0, 4, b'M', b'Q', b'T', b'T', 4, 0xc2, 0, 240];
        assert_eq!((kind, body), (0x10, [&head[..], &text(ID), &text("board"), &text("secret")].concat()));
        gateway.send(0x20, &[0, 0]).await;
        // No subscription and no hello: the next thing to come is the answer to what is pushed.
        gateway.publish("devices/p2p/any", &switch(id)).await;
        let (topic, answer) = gateway.hear().await;
        assert_eq!((topic.as_str(), &answer["payload"]["id"]), ("device-server", &json!(id)));
        assert_eq!(answer["payload"]["result"]["content"][0]["text"], "true");
    }
    board.off().await;
}

#[tokio::test]
async fn a_refused_password_ends_the_run_and_a_busy_gateway_does_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mqtt://{}", listener.local_addr().unwrap());
    let board = switch_on(Dialer::new(&url, &Trust::System).unwrap(), lamp());
    for code in [3, 4] {
        let mut gateway = Peer(soon(listener.accept()).await.unwrap().0);
        gateway.packet().await.unwrap();
        gateway.send(0x20, &[0, code]).await;
    }
    let refused = soon(board.life).await.unwrap().unwrap_err();
    assert!(matches!(refused, RunError::Refused { status: Some(401), .. }), "{refused}");
}

/// A real broker with one user, and a folder of its own.
struct Broker {
    port: u16,
    folder: tempfile::TempDir,
    process: Child,
}

impl Broker {
    async fn start() -> Broker {
        let (port, folder) = (free_port().await, tempfile::tempdir().unwrap());
        let users = folder.path().join("users");
        let made = Command::new("mosquitto_passwd").args(["-b", "-c"]).arg(&users).args(["board", "pass"]).output();
        assert!(made.await.expect("Mosquitto is installed; scripts/install does it").status.success());
        let settings =
            format!("listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\nuser root\n", users.display());
        std::fs::write(folder.path().join("settings"), settings).unwrap();
        let process = run(folder.path(), port).await;
        Broker { port, folder, process }
    }

    async fn restart(&mut self) {
        self.process.kill().await.unwrap();
        self.process = run(self.folder.path(), self.port).await;
    }

    fn dialer(&self, password: &str) -> Dialer {
        let account = Account::at_broker(&Identity::new(ID)).with_login("board", password);
        Dialer::new(&format!("mqtt://127.0.0.1:{}", self.port), &Trust::System).unwrap().with_account(account).unwrap()
    }

    /// A client that listens to everything.
    async fn client(&self) -> Peer {
        let mut peer = Peer(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap());
        let head = [0, 4, b'M', b'Q', b'T', b'T', 4, 0xc2, 0, 60];
        peer.send(0x10, &[&head[..], &text("gateway"), &text("board"), &text("pass")].concat()).await;
        assert_eq!(peer.packet().await, Some((0x20, vec![0, 0])));
        peer.send(0x82, &[&[0, 1][..], &text("sinew/#"), &[0]].concat()).await;
        assert_eq!(peer.packet().await, Some((0x90, vec![0, 1, 0])));
        peer
    }
}

async fn run(folder: &Path, port: u16) -> Child {
    let mut command = Command::new("mosquitto");
    command.arg("-c").arg(folder.join("settings")).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let process = command.spawn().expect("Mosquitto is installed; scripts/install does it");
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process
}

fn topic(end: &str) -> String {
    format!("sinew/boards/{ID}/{end}")
}

/// The board is there, and answers.
async fn serves(client: &mut Peer, id: i64) {
    loop {
        if client.hear().await == (topic("presence"), json!({"online": true, "name": "lamp"})) {
            break;
        }
    }
    client.publish(&topic("down"), &switch(id)).await;
    loop {
        let (from, answer) = client.hear().await;
        if from == topic("up") {
            assert_eq!(answer["payload"]["id"], id);
            return assert_eq!(answer["payload"]["result"]["isError"], false);
        }
    }
}

#[tokio::test]
async fn through_a_broker_a_board_is_found_by_its_presence_and_outlives_a_restart() {
    let mut broker = Broker::start().await;
    let board = switch_on(broker.dialer("pass"), lamp());
    serves(&mut broker.client().await, 1).await;
    // What is retained is there for who comes later.
    let mut late = broker.client().await;
    serves(&mut late, 2).await;

    broker.restart().await;
    let mut client = broker.client().await;
    serves(&mut client, 3).await;
    board.off().await;
    loop {
        if client.hear().await == (topic("presence"), json!({"online": false})) {
            break;
        }
    }
}

#[tokio::test]
async fn the_will_of_a_board_that_vanishes_is_said_and_retained() {
    let broker = Broker::start().await;
    let mut client = broker.client().await;
    let _board = switch_on(broker.dialer("pass"), Fuse(lamp(), false));
    assert_eq!(client.hear().await, (topic("presence"), json!({"online": true})));
    client.publish(&topic("down"), &switch(1)).await;
    loop {
        if client.hear().await == (topic("presence"), json!({"online": false})) {
            break;
        }
    }
    let mut late = broker.client().await;
    assert_eq!(late.hear().await, (topic("presence"), json!({"online": false})));
}

#[tokio::test]
async fn a_broker_that_refuses_the_login_ends_the_run() {
    let broker = Broker::start().await;
    let refused = soon(switch_on(broker.dialer("wrong"), lamp()).life).await.unwrap().unwrap_err();
    assert!(matches!(refused, RunError::Refused { status: Some(401), .. }), "{refused}");
}
