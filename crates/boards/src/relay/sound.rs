//! The sound of boards on MQTT: packets over UDP, encrypted, found by the number of their conversation.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use sinew_tool::{Value, json};
use sinew_wire::sound::{self, SoundHeader, SoundKey};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::conversation::ToServer;
use crate::hub::BoardHub;

/// Milliseconds of one frame, where the voice server does not say.
const USUAL_FRAME_MS: u32 = 60;
/// Packets that may be missing in a row: three minutes, longer than a conversation is silent.
const MAX_AHEAD: u32 = 3_000;
/// The header in front of each frame, for servers that cancel echoes.
const TIMED_HEADER_BYTES: usize = 16;

/// The conversations whose sound is carried, and the socket that carries it.
#[derive(Default)]
pub(crate) struct SoundRegistry {
    channels: Mutex<HashMap<u32, Arc<SoundChannel>>>,
    pub(crate) socket: OnceLock<Arc<UdpSocket>>,
}

/// The sound of one conversation.
pub(crate) struct SoundChannel {
    conversation: u32,
    key: SoundKey,
    /// The board, as its MQTT connection shows it. Nobody else sends its sound.
    board: IpAddr,
    /// Whether frames to and from the voice server have a header with a timestamp.
    has_timestamps: bool,
    frame_ms: OnceLock<u32>,
    state: Mutex<ChannelState>,
    to_server: mpsc::WeakSender<ToServer>,
}

#[derive(Default)]
struct ChannelState {
    /// Where the board's last good packet came from.
    address: Option<SocketAddr>,
    received: u32,
    sent: u32,
}

/// A channel that is open; dropping it closes it.
pub(crate) struct OpenChannel {
    hub: Arc<BoardHub>,
    pub(crate) channel: Arc<SoundChannel>,
}

impl OpenChannel {
    /// `None` where the gateway has no sound socket or no random numbers.
    pub(crate) fn open(
        hub: &Arc<BoardHub>,
        board: IpAddr,
        has_timestamps: bool,
        to_server: mpsc::WeakSender<ToServer>,
    ) -> Option<OpenChannel> {
        hub.sounds.socket.get()?;
        let mut random = [0; 20];
        getrandom::fill(&mut random).ok()?;
        let (key, number) = random.split_first_chunk::<16>()?;
        let mut channels = hub.sounds.channels();
        let mut conversation = u32::from_be_bytes(number.try_into().ok()?);
        while channels.contains_key(&conversation) {
            conversation = conversation.wrapping_add(1);
        }
        let channel = Arc::new(SoundChannel {
            conversation,
            key: SoundKey::new(*key),
            board: board.to_canonical(),
            has_timestamps,
            frame_ms: OnceLock::new(),
            state: Mutex::default(),
            to_server,
        });
        channels.insert(conversation, channel.clone());
        Some(OpenChannel { hub: hub.clone(), channel })
    }

    /// The `udp` section of the hello to the board. `frame_ms`: how much sound a frame of the voice server holds.
    pub(crate) fn section(&self, frame_ms: Option<u32>) -> Option<Value> {
        let reach = self.hub.config.reach.as_ref()?;
        let _ = self.channel.frame_ms.set(frame_ms.unwrap_or(USUAL_FRAME_MS));
        Some(json!({
            "server": reach.host,
            "port": reach.sound?,
            "encryption": "aes-128-ctr",
            "key": self.channel.key.to_hex(),
            "nonce": sound::nonce(self.channel.conversation),
        }))
    }

    /// Sends a frame of the voice server to the board; false where it cannot be sent.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        let Some((address, packet)) = self.channel.seal(frame) else { return false };
        // Sound that the network does not take at once is too late anyway.
        self.hub.sounds.socket.get().is_some_and(|socket| socket.try_send_to(&packet, address).is_ok())
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        self.hub.sounds.channels().remove(&self.channel.conversation);
    }
}

impl SoundRegistry {
    /// Passes a packet of a board to its voice server; false for every other packet.
    pub(crate) fn receive(&self, packet: &[u8], from: SocketAddr) -> bool {
        let Some(header) = SoundHeader::parse(packet) else { return false };
        let channel = self.channels().get(&header.conversation).cloned();
        channel.is_some_and(|channel| channel.receive(packet, from))
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<u32, Arc<SoundChannel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoundChannel {
    fn receive(&self, packet: &[u8], from: SocketAddr) -> bool {
        if from.ip().to_canonical() != self.board {
            return false;
        }
        let Some((header, frame)) = self.key.open(packet) else { return false };
        {
            let mut state = self.state();
            // Late and repeated packets are left out, as firmware does.
            let ahead = header.sequence.saturating_sub(state.received);
            if !(1..=MAX_AHEAD).contains(&ahead) {
                return false;
            }
            (state.received, state.address) = (header.sequence, Some(from));
        }
        let frame = match self.has_timestamps {
            true => with_timestamp(self.timestamp(&header), &frame),
            false => frame,
        };
        // A voice server that does not keep up loses sound; texts wait.
        let sender = self.to_server.upgrade();
        sender.is_some_and(|sender| sender.try_send(ToServer::Sound(Bytes::from(frame))).is_ok())
    }

    /// Firmware sends 0 where it does not know the time; then the count of frames tells it.
    fn timestamp(&self, header: &SoundHeader) -> u32 {
        match header.timestamp {
            0 => header.sequence.wrapping_mul(USUAL_FRAME_MS),
            timestamp => timestamp,
        }
    }

    /// The packet for the board and where to send it; `None` while the board's address is not known.
    fn seal(&self, frame: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        let (timestamp, frame) = match self.has_timestamps {
            true => without_timestamp(frame).map(|(timestamp, frame)| (Some(timestamp), frame))?,
            false => (None, frame),
        };
        let mut state = self.state();
        let address = state.address?;
        state.sent = state.sent.wrapping_add(1);
        let frame_ms = self.frame_ms.get().copied().unwrap_or(USUAL_FRAME_MS);
        // Another time for each packet: with the same time the key streams of two packets would overlap.
        let timestamp = timestamp.unwrap_or_else(|| state.sent.wrapping_mul(frame_ms));
        let packet = self.key.seal(self.conversation, timestamp, state.sent, frame)?;
        Some((address, packet))
    }

    fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_timestamp(timestamp: u32, frame: &[u8]) -> Vec<u8> {
    let mut timed = vec![0; TIMED_HEADER_BYTES];
    timed[8..12].copy_from_slice(&timestamp.to_be_bytes());
    timed[12..16].copy_from_slice(&u32::try_from(frame.len()).unwrap_or(0).to_be_bytes());
    timed.extend_from_slice(frame);
    timed
}

/// Timestamp and frame; `None` where the header announces more than there is.
fn without_timestamp(timed: &[u8]) -> Option<(u32, &[u8])> {
    let (header, frame) = timed.split_first_chunk::<TIMED_HEADER_BYTES>()?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let length = usize::try_from(number(12)?).ok()?;
    Some((number(8)?, frame.get(..length)?))
}

/// For fuzzing: reads a packet of a board and a frame of a voice server as the relay does.
#[doc(hidden)]
pub fn read_foreign_sound(packet: &[u8]) {
    let key = SoundKey::new([7; 16]);
    if let Some((header, frame)) = key.open(packet) {
        assert_eq!(usize::from(header.length), frame.len());
        let timed = with_timestamp(header.timestamp, &frame);
        assert_eq!(without_timestamp(&timed), Some((header.timestamp, frame.as_slice())));
        let again = key.seal(header.conversation, header.timestamp, header.sequence, &frame);
        assert_eq!(again.map(|again| again[16..].len()), Some(frame.len()));
    }
    if let Some((_, frame)) = without_timestamp(packet) {
        assert!(frame.len() <= packet.len() - TIMED_HEADER_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(has_timestamps: bool) -> (SoundChannel, mpsc::Sender<ToServer>, mpsc::Receiver<ToServer>) {
        let (to_server, received) = mpsc::channel(2);
        let channel = SoundChannel {
            conversation: 5,
            key: SoundKey::new([1; 16]),
            board: IpAddr::from([10, 0, 0, 7]),
            has_timestamps,
            frame_ms: OnceLock::new(),
            state: Mutex::default(),
            to_server: to_server.downgrade(),
        };
        (channel, to_server, received)
    }

    fn packet(sequence: u32) -> Vec<u8> {
        SoundKey::new([1; 16]).seal(5, 0, sequence, b"sound").expect("short")
    }

    const BOARD: ([u8; 4], u16) = ([10, 0, 0, 7], 900);

    #[test]
    fn only_new_packets_from_the_boards_own_address_are_passed_on() {
        let (channel, _sender, mut received) = channel(false);
        assert!(!channel.receive(&packet(1), ([10, 0, 0, 8], 900).into()), "another machine");
        assert!(channel.receive(&packet(3), BOARD.into()));
        assert!(!channel.receive(&packet(3), BOARD.into()), "a repeated packet");
        assert!(!channel.receive(&packet(2), BOARD.into()), "a late packet");
        assert!(!channel.receive(&packet(u32::MAX), BOARD.into()), "one that would make all others late");
        assert!(channel.receive(&packet(4), BOARD.into()));
        assert!(!channel.receive(&packet(5), BOARD.into()), "the server does not keep up");
        assert!(matches!(received.try_recv(), Ok(ToServer::Sound(frame)) if *frame == *b"sound"));
    }

    #[test]
    fn sound_goes_to_where_the_board_last_sent_from_and_never_twice_under_one_counter() {
        let (channel, _sender, _received) = channel(false);
        assert!(channel.seal(b"early").is_none(), "nobody knows where the board is");
        assert!(channel.receive(&packet(1), BOARD.into()));
        let headers: Vec<SoundHeader> = (0..3)
            .map(|_| {
                let (address, packet) = channel.seal(b"answer").expect("sent");
                assert_eq!(address, BOARD.into());
                SoundHeader::parse(&packet).expect("a packet")
            })
            .collect();
        assert_eq!(
            headers.iter().map(|header| (header.sequence, header.timestamp)).collect::<Vec<_>>(),
            [(1, 60), (2, 120), (3, 180)]
        );
    }

    #[test]
    fn servers_that_cancel_echoes_get_and_give_timestamps() {
        let (channel, _sender, mut received) = channel(true);
        let packet = SoundKey::new([1; 16]).seal(5, 77, 1, b"sound").expect("short");
        assert!(channel.receive(&packet, BOARD.into()));
        let Ok(ToServer::Sound(timed)) = received.try_recv() else { panic!("no sound") };
        assert_eq!(without_timestamp(&timed), Some((77, b"sound".as_slice())));
        let (_, packet) = channel.seal(&with_timestamp(99, b"answer")).expect("sent");
        assert_eq!(
            channel.key.open(&packet).map(|(header, frame)| (header.timestamp, frame)),
            Some((99, b"answer".to_vec()))
        );
        assert!(channel.seal(b"no header").is_none());
        assert!(channel.seal(&[&with_timestamp(1, b"cut")[..17]].concat()).is_none());
    }
}
