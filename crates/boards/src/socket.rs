//! A WebSocket that costs little while nothing happens.
//!
//! tungstenite keeps every buffer at the size of its largest message: after one photo an idle board would cost a
//! megabyte for ever. A [`BoardSocket`] counts bytes, so it knows when nothing is half read, and then starts over with
//! small buffers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::BoardLimits;
use crate::frames::TextAsBinary;
use crate::pipe::{CLOSE_BYTES, CLOSE_TIME, CloseReason, PipeError, Received, read_text, unsent_bytes};
use crate::stream::BoardStream;

/// Holds the frames of an ordinary call; buffers for longer ones are freed.
const READ_BUFFER: usize = 512;
/// Messages of one turn leave in one write up to this size.
const WRITE_BUFFER: usize = 4096;
/// A larger message leaves buffers behind that are worth giving back.
const LARGE: usize = READ_BUFFER;

pub(crate) struct BoardSocket {
    /// `None` only while the buffers are exchanged, or when the connection is over.
    socket: Option<WebSocketStream<TextAsBinary>>,
    bounds: Bounds,
    /// Bytes of answers that the board asked for and has not read.
    pub(crate) unread: usize,
    /// Bytes of all messages taken out, as they were on the wire.
    taken: u64,
    /// Something was sent that is not flushed.
    dirty: bool,
    /// A large message passed since the buffers were small.
    swollen: bool,
}

/// The longest message that is read, and the most that may wait to be sent.
#[derive(Clone, Copy)]
struct Bounds {
    message_bytes: usize,
    unsent_bytes: usize,
}

impl BoardSocket {
    /// `early` is what came together with the upgrade.
    pub(crate) async fn new(mut stream: BoardStream, mut early: Vec<u8>, limits: &BoardLimits) -> BoardSocket {
        stream.reset_count(early.len() as u64);
        let mut stream = TextAsBinary::new(stream);
        stream.mark(&mut early);
        let bounds = Bounds { message_bytes: limits.message_bytes, unsent_bytes: unsent_bytes(limits) };
        let socket = open(stream, early, bounds).await;
        BoardSocket { socket: Some(socket), bounds, unread: 0, taken: 0, dirty: false, swollen: false }
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), PipeError> {
        self.swollen |= text.len() > LARGE;
        self.put(Message::text(text))
    }

    pub(crate) fn send_binary(&mut self, bytes: Bytes) -> Result<(), PipeError> {
        self.swollen |= bytes.len() > LARGE;
        self.put(Message::Binary(bytes))
    }

    pub(crate) fn ping(&mut self) -> Result<(), PipeError> {
        self.put(Message::Ping(Bytes::new()))
    }

    fn put(&mut self, message: Message) -> Result<(), PipeError> {
        self.dirty = true;
        Pin::new(self.socket()?).start_send(message).map_err(|error| self.broken(error))
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PipeError>> {
        if self.dirty {
            let flushed = ready!(Pin::new(self.socket()?).poll_flush(cx));
            flushed.map_err(|error| self.broken(error))?;
            (self.dirty, self.unread) = (false, 0);
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, PipeError>> {
        let Some(heard) = ready!(Pin::new(self.socket()?).poll_next(cx)) else {
            return Poll::Ready(Ok(Received::Close));
        };
        let message = heard.map_err(|error| self.broken(error))?;
        self.taken += bytes_on_the_wire(message.len());
        self.swollen |= message.len() > LARGE;
        Poll::Ready(Ok(match message {
            Message::Text(text) => Received::Text(text),
            Message::Binary(bytes) if self.socket()?.get_mut().take_is_text() => read_text(bytes),
            Message::Binary(bytes) => Received::Binary(bytes),
            Message::Close(_) => Received::Close,
            Message::Ping(payload) => {
                // The pong is queued inside and leaves with the next flush.
                self.dirty = true;
                self.unread += payload.len() + 2;
                Received::KeepAlive
            }
            Message::Pong(_) | Message::Frame(_) => Received::KeepAlive,
        }))
    }

    /// Whether large buffers can be freed now: everything was sent, and no byte was read that belongs to a message not
    /// yet taken. Fragments and padded lengths make the count on the wire larger than ours, so they can only prevent
    /// this.
    pub(crate) fn can_shrink(&self) -> bool {
        let read = self.socket.as_ref().map(|socket| socket.get_ref().stream.count());
        self.swollen && !self.dirty && read == Some(self.taken)
    }

    pub(crate) async fn shrink(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.socket = Some(open(socket.into_inner(), Vec::new(), self.bounds).await);
            self.swollen = false;
        }
    }

    /// Closes with a reason. What still arrives is read for a moment, because a connection closed over unread bytes is
    /// reset, and the reason would be lost.
    pub(crate) async fn close(&mut self, farewell: CloseReason, reason: &str) {
        let Some(mut socket) = self.socket.take() else { return };
        let code = code(farewell);
        let farewell = async {
            let frame = CloseFrame { code, reason: within_close_frame(reason).into() };
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                let mut stream = socket.into_inner();
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream.take(CLOSE_BYTES), &mut tokio::io::sink()).await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIME, farewell).await;
    }

    fn socket(&mut self) -> Result<&mut WebSocketStream<TextAsBinary>, PipeError> {
        self.socket.as_mut().ok_or_else(|| PipeError::Network("the connection is over".to_owned()))
    }

    fn broken(&self, error: Error) -> PipeError {
        match error {
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => PipeError::Rule(
                CloseReason::TooLarge,
                format!("the device sent a message of {size} bytes; at most {max_size} are read"),
            ),
            Error::Capacity(error) => PipeError::Rule(CloseReason::TooLarge, error.to_string()),
            Error::Utf8(_) => {
                PipeError::Rule(CloseReason::NotText, "the device sent a text message that is not UTF-8".to_owned())
            }
            Error::WriteBufferFull(_) => PipeError::Rule(
                CloseReason::Policy,
                format!("the device left {} bytes unread that were sent to it", self.bounds.unsent_bytes),
            ),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                PipeError::Network("the device closed the connection without a closing handshake".to_owned())
            }
            Error::Protocol(error) => {
                PipeError::Rule(CloseReason::Protocol, format!("the device broke the WebSocket protocol: {error}"))
            }
            Error::ConnectionClosed | Error::AlreadyClosed => PipeError::Network("the connection is over".to_owned()),
            Error::Io(error) => PipeError::Network(error.to_string()),
            error => PipeError::Network(error.to_string()),
        }
    }
}

async fn open(stream: TextAsBinary, early: Vec<u8>, bounds: Bounds) -> WebSocketStream<TextAsBinary> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(bounds.unsent_bytes)
        .max_message_size(Some(bounds.message_bytes))
        .max_frame_size(Some(bounds.message_bytes));
    WebSocketStream::from_partially_read(stream, early, Role::Server, Some(config)).await
}

fn code(farewell: CloseReason) -> CloseCode {
    match farewell {
        CloseReason::Normal => CloseCode::Normal,
        CloseReason::Closing | CloseReason::Silent => CloseCode::Away,
        CloseReason::Replaced | CloseReason::Policy | CloseReason::Qos => CloseCode::Policy,
        CloseReason::TooLarge => CloseCode::Size,
        CloseReason::NotText => CloseCode::Invalid,
        CloseReason::Protocol => CloseCode::Protocol,
    }
}

/// The length of an unfragmented frame from a client, whose payload is masked.
fn bytes_on_the_wire(payload: usize) -> u64 {
    let header = match payload {
        0..=125 => 6,
        126..=65535 => 8,
        _ => 14,
    };
    header + payload as u64
}

/// A close frame has room for 123 bytes of reason.
fn within_close_frame(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(123)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_reason_is_cut_between_characters() {
        assert_eq!(within_close_frame("short"), "short");
        assert_eq!(within_close_frame(&"ä".repeat(100)).len(), 122);
    }

    #[test]
    fn frame_lengths_are_those_of_the_standard() {
        assert_eq!([0, 125, 126, 65535, 65536].map(bytes_on_the_wire), [6, 131, 134, 65543, 65550]);
    }
}
