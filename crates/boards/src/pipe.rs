//! The connection between a board and its task: a WebSocket, MQTT, a line, or a share of a connection to a broker.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use sinew_wire::host::Transport;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::BoardLimits;
use crate::broker::BrokerPipe;
use crate::line::LinePipe;
use crate::mqtt::Link;
use crate::socket::BoardSocket;

/// How long closing may take, and how much is read meanwhile.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(1);
pub(crate) const CLOSE_BYTES: u64 = 4 << 20;

/// The large ones are boxed, so that a hundred thousand boards behind a broker stay small.
pub(crate) enum Pipe {
    WebSocket(Box<BoardSocket>),
    Mqtt(Box<Link>),
    Broker(BrokerPipe),
    Line(Box<LinePipe>),
}

/// A message from a board.
pub(crate) enum Received {
    Text(Utf8Bytes),
    /// A text that was not UTF-8, with invalid bytes replaced.
    Lossy(String),
    Binary(Bytes),
    /// A ping, a pong, or anything else that only shows that the board is there.
    KeepAlive,
    /// The board closed the connection cleanly.
    Close,
}

/// Why a pipe cannot be used any more.
pub(crate) enum PipeError {
    /// The network failed, or the board disappeared.
    Network(String),
    /// The board broke a rule; it is told which, if the transport can.
    Rule(CloseReason, String),
}

/// Why we close a connection; each transport has its own code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Normal,
    /// The gateway shuts down.
    Closing,
    /// The same board reconnected.
    Replaced,
    /// The board was silent for too long.
    Silent,
    Policy,
    TooLarge,
    NotText,
    Protocol,
    Qos,
}

/// How a silent board is found to be gone.
pub(crate) enum Liveness {
    /// By pinging it.
    Ping,
    /// By its own pings, at most this far apart.
    MaxSilence(Option<Duration>),
}

impl Pipe {
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Pipe::WebSocket(_) => Transport::WebSocket,
            // If it does not answer, its session is over, as on a WebSocket.
            Pipe::Broker(pipe) if pipe.is_mcp_server() => Transport::WebSocket,
            Pipe::Mqtt(_) | Pipe::Broker(_) | Pipe::Line(_) => Transport::Udp,
        }
    }

    /// Whether a voice server can be reached for a board on this connection.
    pub(crate) fn can_relay(&self) -> bool {
        matches!(self, Pipe::WebSocket(_) | Pipe::Mqtt(_))
    }

    /// Whether the board sends sound beside this connection.
    pub(crate) fn has_sound(&self) -> bool {
        matches!(self, Pipe::Mqtt(_))
    }

    /// Why nothing can be sent at the moment, on a connection that may recover.
    pub(crate) fn unavailable_reason(&self) -> Option<&'static str> {
        match self {
            Pipe::WebSocket(_) | Pipe::Mqtt(_) | Pipe::Line(_) => None,
            Pipe::Broker(pipe) => pipe.unavailable_reason(),
        }
    }

    /// Keeps the permit to be asked until the setup is finished, on connections where boards take turns.
    pub(crate) fn hold_setup_permit(&mut self, turn: OwnedSemaphorePermit) {
        if let Pipe::Broker(pipe) = self {
            pipe.hold_setup_permit(turn);
        }
    }

    /// The board has answered everything it was asked.
    pub(crate) fn finish_setup(&mut self) {
        if let Pipe::Broker(pipe) = self {
            pipe.finish_setup();
        }
    }

    pub(crate) fn liveness(&self) -> Liveness {
        match self {
            Pipe::WebSocket(_) => Liveness::Ping,
            Pipe::Mqtt(link) => Liveness::MaxSilence(link.silence_limit),
            // The broker reports when a board is gone, and so does a line.
            Pipe::Broker(_) | Pipe::Line(_) => Liveness::MaxSilence(None),
        }
    }

    /// The longest text that the board can certainly read.
    pub(crate) fn text_bytes(&self) -> Option<usize> {
        match self {
            Pipe::WebSocket(_) => None,
            Pipe::Mqtt(link) => Some(link.text_bytes.map_or(MQTT_TEXT_BYTES, |bytes| bytes.min(MQTT_TEXT_BYTES))),
            Pipe::Broker(pipe) => Some(pipe.text_bytes),
            Pipe::Line(line) => line.longest_message(),
        }
    }

    /// Bytes of answers that the board asked for and has not read, as far as we know.
    pub(crate) fn unread(&self) -> usize {
        match self {
            Pipe::WebSocket(socket) => socket.unread,
            Pipe::Mqtt(link) => link.unread,
            // The broker reads for all of its boards; see `BrokerOutbox::reply`.
            Pipe::Broker(_) => 0,
            Pipe::Line(line) => line.unread,
        }
    }

    /// Sends an answer to a request of the board.
    pub(crate) fn reply(&mut self, text: String) -> Result<(), PipeError> {
        let size = text.len();
        match self {
            Pipe::WebSocket(socket) => socket.unread += size,
            Pipe::Mqtt(link) => link.unread += size,
            Pipe::Broker(pipe) => {
                pipe.reply(text);
                return Ok(());
            }
            Pipe::Line(line) => line.unread += size,
        }
        self.send(text)
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), PipeError> {
        match self {
            Pipe::WebSocket(socket) => socket.send(text),
            Pipe::Mqtt(link) => link.send(text),
            Pipe::Broker(pipe) => {
                pipe.send(text);
                Ok(())
            }
            Pipe::Line(line) => line.send(text),
        }
    }

    /// Sends bytes, where the transport carries them.
    pub(crate) fn send_binary(&mut self, bytes: Bytes) -> Result<(), PipeError> {
        match self {
            Pipe::WebSocket(socket) => socket.send_binary(bytes),
            Pipe::Mqtt(_) | Pipe::Broker(_) | Pipe::Line(_) => Ok(()),
        }
    }

    /// Pings the board, if the transport can.
    pub(crate) fn ping(&mut self) -> Result<(), PipeError> {
        match self {
            Pipe::WebSocket(socket) => socket.ping(),
            Pipe::Mqtt(_) | Pipe::Broker(_) | Pipe::Line(_) => Ok(()),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PipeError>> {
        match self {
            Pipe::WebSocket(socket) => socket.poll_flush(cx),
            Pipe::Mqtt(link) => link.poll_flush(cx),
            Pipe::Broker(_) => Poll::Ready(Ok(())),
            Pipe::Line(line) => line.poll_flush(cx),
        }
    }

    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, PipeError>> {
        match self {
            Pipe::WebSocket(socket) => socket.poll_receive(cx),
            Pipe::Mqtt(link) => link.poll_receive(cx),
            // Messages of the board arrive as commands.
            Pipe::Broker(_) => Poll::Pending,
            Pipe::Line(line) => line.poll_receive(cx),
        }
    }

    /// Whether large buffers can be given back now.
    pub(crate) fn can_shrink(&self) -> bool {
        match self {
            Pipe::WebSocket(socket) => socket.can_shrink(),
            Pipe::Mqtt(_) | Pipe::Broker(_) | Pipe::Line(_) => false,
        }
    }

    pub(crate) async fn shrink(&mut self) {
        if let Pipe::WebSocket(socket) = self {
            socket.shrink().await;
        }
    }

    pub(crate) async fn close(&mut self, farewell: CloseReason, reason: &str) {
        match self {
            Pipe::WebSocket(socket) => socket.close(farewell, reason).await,
            Pipe::Mqtt(link) => link.close(farewell, reason).await,
            Pipe::Broker(_) | Pipe::Line(_) => {}
        }
    }
}

/// A message as text, whatever its encoding.
pub(crate) fn read_text(bytes: impl Into<Bytes>) -> Received {
    let bytes: Bytes = bytes.into();
    match Utf8Bytes::try_from(bytes.clone()) {
        Ok(text) => Received::Text(text),
        Err(_) => Received::Lossy(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Bytes that may wait to be sent: the longest call, and answers that the board has not read yet. Calls are held back
pub(crate) fn unsent_bytes(limits: &BoardLimits) -> usize {
    limits.message_bytes + 2 * limits.unread_bytes + AROUND
}

/// What envelope and framing add to a call, and our own requests.
const AROUND: usize = 16 << 10;

/// 8 KiB: the largest MQTT message that firmware and the gateways made for it agree on.
const MQTT_TEXT_BYTES: usize = 8192;
