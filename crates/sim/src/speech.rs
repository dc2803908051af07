//! The board's side of a conversation: it says hello, streams what its microphone hears, and plays what comes back.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex, PoisonError};

use sinew_tool::{Value, json};
use sinew_wire::sound::{SoundKey, parse_nonce};
use tokio::sync::mpsc;

/// Larger than any packet of sound.
const PACKET_BYTES: usize = 2048;

/// Speaks to a virtual board.
#[derive(Clone, Debug)]
pub struct Microphone {
    said: Arc<Mutex<VecDeque<Vec<Vec<u8>>>>>,
    heard: mpsc::UnboundedSender<Heard>,
}

/// What a board hears in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Any message but MCP.
    Text(Value),
    /// One frame of sound.
    Sound(Vec<u8>),
}

impl Microphone {
    pub fn new() -> (Microphone, mpsc::UnboundedReceiver<Heard>) {
        let (heard, receiver) = mpsc::unbounded_channel();
        (Microphone { said: Arc::default(), heard }, receiver)
    }

    /// Says something: these frames of sound. A board on MQTT starts a conversation for it, if it is in none.
    pub fn speak(&self, frames: Vec<Vec<u8>>) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push_back(frames);
    }

    fn has_something_to_say(&self) -> bool {
        !self.said.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take(&self) -> Option<Vec<Vec<u8>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// How far a conversation is.
enum TalkState {
    Idle,
    /// The board has said hello.
    Greeting,
    Open {
        session_id: String,
        udp: Option<UdpLine>,
    },
}

/// The sound of a board on MQTT.
struct UdpLine {
    socket: UdpSocket,
    key: SoundKey,
    conversation: u32,
    sent: u32,
}

pub(crate) struct Speech {
    microphone: Microphone,
    is_mqtt: bool,
    state: TalkState,
    /// Sound for a WebSocket.
    outgoing: Vec<Vec<u8>>,
}

impl Speech {
    pub(crate) fn new(microphone: Microphone, is_mqtt: bool) -> Speech {
        Speech { microphone, is_mqtt, state: TalkState::Idle, outgoing: Vec::new() }
    }

    /// The connection is new.
    pub(crate) fn reset(&mut self) {
        self.state = TalkState::Idle;
        self.outgoing.clear();
    }

    pub(crate) fn handle_text(&mut self, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let session = message["session_id"].as_str().unwrap_or_default();
        match message["type"].as_str() {
            None | Some("mcp") => return,
            Some("hello") => {
                let udp = open_line(&message["udp"]);
                self.state = TalkState::Open { session_id: session.to_owned(), udp };
            }
            // There is no voice service now; what was said is lost.
            Some("alert") if matches!(self.state, TalkState::Greeting) => {
                self.state = TalkState::Idle;
                self.microphone.take();
            }
            Some("goodbye") => {
                // Firmware ignores a goodbye to another conversation.
                if matches!(&self.state, TalkState::Open { session_id, .. } if session_id == session) {
                    self.state = TalkState::Idle;
                }
            }
            Some(_) => {}
        }
        let _ = self.microphone.heard.send(Heard::Text(message));
    }

    pub(crate) fn handle_sound(&mut self, frame: &[u8]) {
        let _ = self.microphone.heard.send(Heard::Sound(frame.to_vec()));
    }

    pub(crate) fn take_sound(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outgoing)
    }

    /// Receives sound, and says what the microphone hears.
    pub(crate) fn poll(&mut self) -> Vec<String> {
        self.receive_packets();
        match &mut self.state {
            TalkState::Idle if self.is_mqtt && self.microphone.has_something_to_say() => {
                self.state = TalkState::Greeting;
                let audio = json!({"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60});
                let hello = json!({
                    "type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}, "audio_params": audio,
                });
                vec![hello.to_string()]
            }
            TalkState::Idle | TalkState::Greeting => Vec::new(),
            TalkState::Open { session_id, udp } => {
                let Some(frames) = self.microphone.take() else { return Vec::new() };
                let listen = |state: &str| {
                    json!({"session_id": session_id, "type": "listen", "state": state, "mode": "manual"}).to_string()
                };
                let texts = vec![listen("start"), listen("stop")];
                match udp {
                    Some(line) => frames.iter().for_each(|frame| line.send(frame)),
                    None => self.outgoing.extend(frames),
                }
                texts
            }
        }
    }

    fn receive_packets(&mut self) {
        let TalkState::Open { udp: Some(line), .. } = &self.state else { return };
        let mut room = [0; PACKET_BYTES];
        while let Ok(count) = line.socket.recv(&mut room) {
            if let Some((_, frame)) = line.key.open(&room[..count]) {
                let _ = self.microphone.heard.send(Heard::Sound(frame));
            }
        }
    }
}

impl UdpLine {
    fn send(&mut self, frame: &[u8]) {
        self.sent += 1;
        if let Some(packet) = self.key.seal(self.conversation, 0, self.sent, frame) {
            // Sound may get lost; firmware does not look either.
            let _ = self.socket.send(&packet);
        }
    }
}

/// The UDP socket that a hello describes.
fn open_line(udp: &Value) -> Option<UdpLine> {
    let key = SoundKey::parse(udp["key"].as_str()?)?;
    let conversation = parse_nonce(udp["nonce"].as_str()?)?;
    let server = udp["server"].as_str()?;
    let socket = UdpSocket::bind(if server.contains(':') { "[::]:0" } else { "0.0.0.0:0" }).ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect((server, u16::try_from(udp["port"].as_u64()?).ok()?)).ok()?;
    Some(UdpLine { socket, key, conversation, sent: 0 })
}
