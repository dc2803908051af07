//! What the relay adds to a frame of sound, and to a board that is silent.
//!
//! A voice server of this program sends every frame back. Boards of this program speak to it directly and through the
//! gateway, many at once, and take the time of each round trip, in which a frame passes the relay twice.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sinew_mqtt::Version;
use sinew_mqtt::client::{BrokerPacket, BrokerReader, ClientWriter, Introduction, MqttMessage};
use sinew_wire::sound::{SoundKey, parse_nonce};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, accept_async, connect_async};

use crate::load::{bench_error, percentile};
use crate::process::{self, Process, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, Error, memory_of_each};

/// Conversations at once.
const CONVERSATIONS: usize = 50;
/// Firmware sends a frame of sound every 60 ms.
const FRAME_TIME: Duration = Duration::from_millis(60);
/// A usual frame of speech in Opus.
const FRAME: [u8; 120] = [7; 120];
/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
const PACKET_BYTES: usize = 64 << 10;
const WRITER: ClientWriter = ClientWriter { version: Version::V3 };

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    frames(plan, scratch, report).await?;
    idle_boards(plan, scratch, report).await
}

async fn frames(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (voice, _server) = echo_server().await?;
    let gateway = relaying_gateway(scratch, "voice", &voice).await?;
    let mut lines: [Vec<SoundLine>; 3] = Default::default();
    for number in 0..CONVERSATIONS {
        lines[0].push(over_websocket(&voice, number).await?);
        lines[1].push(over_websocket(gateway.devices_url(), number + CONVERSATIONS).await?);
        lines[2].push(over_mqtt(gateway.mqtt_url(), number + 2 * CONVERSATIONS).await?);
    }
    let mut times: [Vec<f64>; 3] = Default::default();
    // The first round warms up and is not counted.
    for round in 0..=plan.rounds {
        for (lines, times) in lines.iter_mut().zip(&mut times) {
            let talks = lines.iter_mut().map(|line| line.talk(plan.time));
            let taken = try_join_all(talks).await?;
            if round > 0 {
                times.extend(taken.into_iter().flatten());
            }
        }
    }
    gateway.stop().await;
    let [direct, socket, packets] = times.map(|mut times| [0.5, 0.99].map(|share| percentile(&mut times, share)));
    let added = |through: [f64; 2]| [(through[0] - direct[0]) / 2.0, (through[1] - direct[1]) / 2.0];
    let ([socket_p50, socket_p99], [packets_p50, packets_p99]) = (added(socket), added(packets));
    let label = |how: &str, share: &str| format!("relay: added to a frame of sound over {how}, {share}");
    let figures = [
        Figure::at_most("relay_mqtt_p50_ms", &label("MQTT and UDP", "median"), packets_p50, "ms", 1.0),
        Figure::at_most("relay_mqtt_p99_ms", &label("MQTT and UDP", "99th percentile"), packets_p99, "ms", 5.0),
        Figure::at_most("relay_ws_p50_ms", &label("a WebSocket", "median"), socket_p50, "ms", 1.0),
        Figure::at_most("relay_ws_p99_ms", &label("a WebSocket", "99th percentile"), socket_p99, "ms", 5.0),
    ];
    figures.into_iter().for_each(|figure| report.push(figure));
    Ok(())
}

/// The memory of boards that are silent, with and without a relay.
async fn idle_boards(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (voice, _server) = echo_server().await?;
    let plain = process::gateway(&scratch.folder("voice-none")).await?;
    let relaying = relaying_gateway(scratch, "voice-idle", &voice).await?;
    let mut each = Vec::new();
    for gateway in [plain, relaying] {
        each.push(memory_of_each(&gateway, gateway.mqtt_url(), plan.boards).await?);
        gateway.stop().await;
    }
    let label = format!("relay: memory beyond another's for each of {} idle boards on MQTT", plan.boards);
    report.push(Figure::at_most("relay_board_kib", &label, each[1] - each[0], "KiB", 1.0));
    Ok(())
}

async fn relaying_gateway(scratch: &Scratch, name: &str, voice: &str) -> Result<Process, Error> {
    let folder = scratch.folder(name);
    let file = folder.join("sinew.toml");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&file, format!("[relay]\nurl = \"{voice}\"\ntoken = \"voice\"\n")));
    written.map_err(|error| bench_error(format!("{}: {error}", file.display())))?;
    process::gateway_with(&folder, &file).await
}

/// A task that ends with its handle.
struct OwnTask(JoinHandle<()>);

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A voice server that sends every frame back; its address.
async fn echo_server() -> Result<(String, OwnTask), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed("no free port", &error))?;
    let address = listener.local_addr().map_err(|error| failed("no free port", &error))?;
    let serve = async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(echo(stream));
        }
    };
    Ok((format!("ws://{address}/voice"), OwnTask(tokio::spawn(serve))))
}

async fn echo(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(mut socket) = accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let answer = match message {
            Message::Text(text) if text.contains(r#""hello""#) => {
                let audio = json!({"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60});
                let hello = json!({
                    "type": "hello", "transport": "websocket", "session_id": "bench", "audio_params": audio,
                });
                Message::text(hello.to_string())
            }
            Message::Binary(frame) => Message::Binary(frame),
            _ => continue,
        };
        if socket.send(answer).await.is_err() {
            return;
        }
    }
}

/// A board's end of an open conversation.
enum SoundLine {
    Socket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
    Packets { socket: UdpSocket, key: SoundKey, conversation: u32, sent: u32, _board: OwnTask },
}

impl SoundLine {
    /// Speaks for some time; the milliseconds until each frame came back.
    async fn talk(&mut self, time: Duration) -> Result<Vec<f64>, Error> {
        let (mut clock, end, mut times) = (interval(FRAME_TIME), Instant::now() + time, Vec::new());
        while Instant::now() < end {
            clock.tick().await;
            let sent = Instant::now();
            let back = timeout(PATIENCE, self.round_trip()).await;
            back.map_err(|_| bench_error("a frame of sound did not come back"))??;
            times.push(sent.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    }

    async fn round_trip(&mut self) -> Result<(), Error> {
        match self {
            SoundLine::Socket(socket) => {
                let sent = socket.send(Message::binary(FRAME.to_vec())).await;
                sent.map_err(|error| failed("sending sound", &error))?;
                loop {
                    match socket.next().await {
                        Some(Ok(Message::Binary(frame))) if frame[..] == FRAME => return Ok(()),
                        Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_))) => {}
                        other => return Err(bench_error(format!("sound was expected, not {other:?}"))),
                    }
                }
            }
            SoundLine::Packets { socket, key, conversation, sent, .. } => {
                *sent += 1;
                let packet = key.seal(*conversation, 0, *sent, &FRAME);
                let packet = packet.ok_or_else(|| bench_error("a frame is too long for a packet"))?;
                socket.send(&packet).await.map_err(|error| failed("sending sound", &error))?;
                let mut packet = [0; 2048];
                let length = socket.recv(&mut packet).await.map_err(|error| failed("receiving sound", &error))?;
                match key.open(&packet[..length]) {
                    Some((_, frame)) if frame == FRAME => Ok(()),
                    _ => Err(bench_error("another frame came back")),
                }
            }
        }
    }
}

async fn over_websocket(url: &str, number: usize) -> Result<SoundLine, Error> {
    let wrong = |error: &dyn std::fmt::Display| failed(url, error);
    let mut request = url.into_client_request().map_err(|error| wrong(&error))?;
    for (name, value) in [("authorization", format!("Bearer {TOKEN}")), ("device-id", hardware_id(number))] {
        request.headers_mut().insert(name, value.parse().map_err(|error| wrong(&error))?);
    }
    let (mut socket, _) = connect_async(request).await.map_err(|error| wrong(&error))?;
    if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
        stream.set_nodelay(true).map_err(|error| wrong(&error))?;
    }
    let hello = json!({"type": "hello", "version": 1, "transport": "websocket"});
    socket.send(Message::text(hello.to_string())).await.map_err(|error| wrong(&error))?;
    while let Some(Ok(message)) = timeout(PATIENCE, socket.next()).await.map_err(|error| wrong(&error))? {
        if matches!(&message, Message::Text(text) if text.contains(r#""hello""#)) {
            return Ok(SoundLine::Socket(Box::new(socket)));
        }
    }
    Err(wrong(&"no hello came"))
}

async fn over_mqtt(url: &str, number: usize) -> Result<SoundLine, Error> {
    let wrong = |error: &dyn std::fmt::Display| failed(url, error);
    let address = url.strip_prefix("mqtt://").unwrap_or(url);
    let mut board = MqttBoard::dial(address, &hardware_id(number)).await.map_err(|error| wrong(&error))?;
    let hello =
        timeout(PATIENCE, board.hello()).await.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))?;
    let udp = &hello["udp"];
    let text = |name: &str| udp[name].as_str().unwrap_or_default();
    let key = SoundKey::parse(text("key")).ok_or_else(|| wrong(&"no key for sound"))?;
    let conversation = parse_nonce(text("nonce")).ok_or_else(|| wrong(&"no nonce for sound"))?;
    let port = udp["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
    let socket = UdpSocket::bind("127.0.0.1:0").await.map_err(|error| wrong(&error))?;
    socket.connect((text("server"), port)).await.map_err(|error| wrong(&error))?;
    let _board = OwnTask(tokio::spawn(async move { while board.next().await.is_ok() {} }));
    Ok(SoundLine::Packets { socket, key, conversation, sent: 0, _board })
}

fn hardware_id(number: usize) -> String {
    format!("02:52:00:00:{:02x}:{:02x}", number / 256, number % 256)
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    bench_error(format!("{what}: {error}"))
}

/// A board on MQTT that has no tools.
struct MqttBoard {
    stream: TcpStream,
    reader: BrokerReader,
    received: Vec<u8>,
}

impl MqttBoard {
    async fn dial(address: &str, hardware_id: &str) -> std::io::Result<MqttBoard> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut board =
            MqttBoard { stream, reader: BrokerReader::new(Version::V3, PACKET_BYTES), received: Vec::new() };
        let introduction = Introduction {
            client_id: hardware_id,
            login: Some(("bench", Some(TOKEN))),
            keep_alive: 240,
            packet_bytes: PACKET_BYTES,
            will: None,
            properties: &[],
        };
        let mut out = Vec::new();
        WRITER.connect(&introduction, &mut out);
        board.stream.write_all(&out).await?;
        Ok(board)
    }

    /// Starts a conversation; the hello of the voice server.
    async fn hello(&mut self) -> std::io::Result<Value> {
        let hello = json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}});
        self.say(&hello).await?;
        loop {
            let message = self.next().await?;
            if message["type"] == "hello" {
                return Ok(message);
            }
        }
    }

    async fn say(&mut self, message: &Value) -> std::io::Result<()> {
        let topic = "device-server".to_owned();
        let message = MqttMessage { topic, payload: message.to_string().into_bytes(), ..MqttMessage::default() };
        let mut out = Vec::new();
        WRITER.publish(&message, None, &mut out);
        self.stream.write_all(&out).await
    }

    /// The next message; requests of the gateway are answered first.
    async fn next(&mut self) -> std::io::Result<Value> {
        loop {
            let mut rest = self.received.as_slice();
            let read = self.reader.read(&mut rest).map_err(std::io::Error::other)?;
            self.received = rest.to_vec();
            let Some((packet, _)) = read else {
                if self.stream.read_buf(&mut self.received).await? == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            };
            let BrokerPacket::Publish(message) = packet else { continue };
            let message: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            self.answer(&message["payload"]).await?;
            return Ok(message);
        }
    }

    async fn answer(&mut self, request: &Value) -> std::io::Result<()> {
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": []}),
            _ => return Ok(()),
        };
        let payload = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.say(&json!({"session_id": "", "type": "mcp", "payload": payload})).await
    }
}
