//! What carries text between a board and its task: a WebSocket, MQTT, or a share of a connection to a broker.

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

/// How long a farewell may take, and how much is listened to meanwhile.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(1);
pub(crate) const CLOSE_BYTES: u64 = 4 << 20;

/// The large ones are boxed, so that the hundred thousand boards behind a broker need not carry their size.
pub(crate) enum Pipe {
    WebSocket(Box<BoardSocket>),
    Mqtt(Box<Link>),
    Broker(BrokerPipe),
    Line(Box<LinePipe>),
}

/// What a board sent.
pub(crate) enum Received {
    Text(Utf8Bytes),
    /// A text that is not UTF-8, with what could not be read of it replaced.
    Lossy(String),
    Binary(Bytes),
    /// A ping, a pong, or whatever else only shows that the board is there.
    KeepAlive,
    /// The board closed the connection in order.
    Close,
}

/// Why a pipe cannot be used any more.
pub(crate) enum PipeError {
    /// The network failed, or the other end vanished.
    Network(String),
    /// The board broke a rule; it is told which where the pipe has words for it.
    Rule(CloseReason, String),
}

/// The kind of farewell, which each pipe says in its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Normal,
    /// The door closes.
    Closing,
    /// The same board came again.
    Replaced,
    /// Nothing was heard for too long.
    Silent,
    Policy,
    TooLarge,
    NotText,
    Protocol,
    Qos,
}

/// How it is found out that a silent board is gone.
pub(crate) enum Liveness {
    /// By pinging it.
    Ping,
    /// By its own pings, which must not stay away for longer than this.
    MaxSilence(Option<Duration>),
}

impl Pipe {
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Pipe::WebSocket(_) => Transport::WebSocket,
            // Its talk is over when it does not answer, as on a WebSocket.
            Pipe::Broker(pipe) if pipe.is_mcp_server() => Transport::WebSocket,
            Pipe::Mqtt(_) | Pipe::Broker(_) | Pipe::Line(_) => Transport::Udp,
        }
    }

    /// Whether the board has another way for sound.
    pub(crate) fn has_sound(&self) -> bool {
        matches!(self, Pipe::Mqtt(_))
    }

    /// Why nothing can be sent at the moment, where the pipe may be mended.
    pub(crate) fn unavailable_reason(&self) -> Option<&'static str> {
        match self {
            Pipe::WebSocket(_) | Pipe::Mqtt(_) | Pipe::Line(_) => None,
            Pipe::Broker(pipe) => pipe.unavailable_reason(),
        }
    }

    /// It is this board's turn to be asked, where boards take turns.
    pub(crate) fn hold_setup_permit(&mut self, turn: OwnedSemaphorePermit) {
        if let Pipe::Broker(pipe) = self {
            pipe.hold_setup_permit(turn);
        }
    }

    /// The board has answered all that it was asked.
    pub(crate) fn finish_setup(&mut self) {
        if let Pipe::Broker(pipe) = self {
            pipe.finish_setup();
        }
    }

    pub(crate) fn liveness(&self) -> Liveness {
        match self {
            Pipe::WebSocket(_) => Liveness::Ping,
            Pipe::Mqtt(link) => Liveness::MaxSilence(link.silence_limit),
            // The broker tells when a board is gone, and so does a line.
            Pipe::Broker(_) | Pipe::Line(_) => Liveness::MaxSilence(None),
        }
    }

    /// The longest text that the board takes for certain.
    pub(crate) fn text_bytes(&self) -> Option<usize> {
        match self {
            Pipe::WebSocket(_) => None,
            Pipe::Mqtt(link) => Some(link.text_bytes.map_or(MQTT_TEXT_BYTES, |bytes| bytes.min(MQTT_TEXT_BYTES))),
            Pipe::Broker(pipe) => Some(pipe.text_bytes),
            Pipe::Line(line) => line.longest_message(),
        }
    }

    /// Bytes of answers that the board asked for and has not read, as far as we can tell.
    pub(crate) fn unread(&self) -> usize {
        match self {
            Pipe::WebSocket(socket) => socket.unread,
            Pipe::Mqtt(link) => link.unread,
            // The broker reads for all of its boards; see `BrokerOutbox::reply`.
            Pipe::Broker(_) => 0,
            Pipe::Line(line) => line.unread,
        }
    }

    /// Sends an answer to what the board asked.
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

    /// Asks for a sign of life, where the pipe can.
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
            // What the board says comes as a command.
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

/// Bytes that may wait to be sent: the longest call, beside answers that the board has not read yet. Calls are kept back
/// while anything waits, so no caller can exceed this.
pub(crate) fn unsent_bytes(limits: &BoardLimits) -> usize {
    limits.message_bytes + 2 * limits.unread_bytes + AROUND
}

/// What envelope and framing add to a call, and our own questions.
const AROUND: usize = 16 << 10;

/// 8 KiB: the largest MQTT message that firmware and the gateways made for it agree on.
const MQTT_TEXT_BYTES: usize = 8192;
