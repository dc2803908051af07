//! The MQTT connection of one board, once it is admitted.
//!
//! Text of either side is the payload of a PUBLISH. Everything else of MQTT ends here: pings are
//! answered, subscriptions granted, and what breaks the rules ends the connection with a reason.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sinew_mqtt::Version;
use sinew_mqtt::server::{ClientPacket, ClientReader, DisconnectCode, ReadProblem, ServerWriter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::pipe::{CLOSE_BYTES, CLOSE_TIME, CloseReason, PipeError, Received, read_text};
use crate::stream::BoardStream;

/// Firmware sends no more than 8 KiB at once; what is longer comes in pieces.
const READ_BYTES: usize = 4096;

pub(crate) struct Link {
    stream: BoardStream,
    reader: ClientReader,
    writer: ServerWriter,
    /// Where the board expects what is meant for it; firmware takes anything.
    topic: Box<str>,
    /// The longest silence, as the client chose it; `None` where it chose none.
    pub(crate) silence_limit: Option<Duration>,
    /// The longest text the client takes, where it says so.
    pub(crate) text_bytes: Option<usize>,
    message_bytes: usize,
    /// The most that may wait to be sent.
    unsent_bytes: usize,
    /// Bytes of answers that the board asked for and has not read.
    pub(crate) unread: usize,
    heard: VecDeque<Received>,
    /// A rule was broken behind what was heard.
    broken: Option<PipeError>,
    out: Vec<u8>,
    written: usize,
}

/// What was agreed at CONNECT.
pub(crate) struct Terms {
    pub(crate) version: Version,
    pub(crate) topic: String,
    pub(crate) silence_limit: Option<Duration>,
    pub(crate) packet_bytes: Option<u32>,
    pub(crate) message_bytes: usize,
    pub(crate) unsent_bytes: usize,
}

impl Link {
    /// `early` is what came together with CONNECT.
    pub(crate) fn new(stream: BoardStream, mut reader: ClientReader, terms: Terms, early: &[u8]) -> Link {
        let Terms { version, topic, silence_limit, packet_bytes, message_bytes, unsent_bytes } = terms;
        reader.set_limit(message_bytes);
        // Fixed header, topic with its length, and an empty list of properties.
        let around = topic.len() + 8;
        let mut link = Link {
            stream,
            reader,
            writer: ServerWriter { version },
            topic: topic.into(),
            silence_limit,
            text_bytes: packet_bytes.map(|bytes| (bytes as usize).saturating_sub(around)),
            message_bytes,
            unsent_bytes,
            unread: 0,
            heard: VecDeque::new(),
            broken: None,
            out: Vec::new(),
            written: 0,
        };
        link.writer.accept(message_bytes, &mut link.out);
        link.take(early);
        link
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), PipeError> {
        self.writer.publish(&self.topic, text, &mut self.out);
        if self.out.len() - self.written > self.unsent_bytes {
            let what = format!("the board left {} bytes unread that were sent to it", self.unsent_bytes);
            return Err(PipeError::Rule(CloseReason::Policy, what));
        }
        Ok(())
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PipeError>> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest)) {
                Ok(0) => return Poll::Ready(Err(PipeError::Network("the connection is over".to_owned()))),
                Ok(count) => self.written += count,
                Err(error) => return Poll::Ready(Err(PipeError::Network(error.to_string()))),
            }
        }
        if self.written > 0 {
            // An idle board keeps no buffer.
            (self.out, self.written, self.unread) = (Vec::new(), 0, 0);
            let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
            flushed.map_err(|error| PipeError::Network(error.to_string()))?;
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, PipeError>> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Poll::Ready(Ok(heard));
            }
            if let Some(broken) = self.broken.take() {
                return Poll::Ready(Err(broken));
            }
            self.heard = VecDeque::new();
            let mut room = [0; READ_BYTES];
            let mut room = ReadBuf::new(&mut room);
            if let Err(error) = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room)) {
                return Poll::Ready(Err(PipeError::Network(error.to_string())));
            }
            if room.filled().is_empty() {
                let what = "the board closed the connection without a closing handshake";
                return Poll::Ready(Err(PipeError::Network(what.to_owned())));
            }
            self.take(room.filled());
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while self.broken.is_none() {
            match self.reader.read(&mut bytes) {
                Ok(Some(packet)) => self.handle(packet),
                Ok(None) => return,
                Err(problem) => self.broken = Some(self.to_error(problem)),
            }
        }
    }

    fn handle(&mut self, packet: ClientPacket) {
        let before = self.out.len();
        self.answer(packet);
        self.unread += self.out.len() - before;
    }

    fn answer(&mut self, packet: ClientPacket) {
        let out = &mut self.out;
        match packet {
            ClientPacket::Publish { payload, id } => {
                if let Some(id) = id {
                    self.writer.acknowledge(id, out);
                }
                return self.heard.push_back(read_text(payload));
            }
            ClientPacket::Disconnect => return self.heard.push_back(Received::Close),
            ClientPacket::Ping => self.writer.pong(out),
            ClientPacket::Subscribe { id, topics } => self.writer.grant(id, topics, out),
            ClientPacket::Unsubscribe { id, topics } => self.writer.release(id, topics, out),
            // The reader lets no second one pass.
            ClientPacket::Connect(_) => {}
        }
        // A thousand pings read at once say no more than one.
        if !matches!(self.heard.back(), Some(Received::KeepAlive)) {
            self.heard.push_back(Received::KeepAlive);
        }
    }

    fn to_error(&self, problem: ReadProblem) -> PipeError {
        match problem {
            ReadProblem::TooLarge => PipeError::Rule(
                CloseReason::TooLarge,
                format!("the board sent a packet of more than {} bytes, the most that is read", self.message_bytes),
            ),
            ReadProblem::Qos => {
                let what = "the board published with quality of service 2; only 0 and 1 are served".to_owned();
                PipeError::Rule(CloseReason::Qos, what)
            }
            ReadProblem::Version => PipeError::Rule(CloseReason::Protocol, "the version of MQTT changed".to_owned()),
            ReadProblem::Malformed(what) => {
                PipeError::Rule(CloseReason::Protocol, format!("the board broke the MQTT protocol: {what}"))
            }
        }
    }

    /// Says why where the version of MQTT allows it, and closes.
    pub(crate) async fn close(&mut self, farewell: CloseReason, reason: &str) {
        let mut out = self.out.split_off(self.written);
        self.writer.disconnect(code(farewell), reason, &mut out);
        (self.out, self.written) = (Vec::new(), 0);
        let stream = &mut self.stream;
        let _ = tokio::time::timeout(CLOSE_TIME, async {
            if stream.write_all(&out).await.is_ok() && stream.shutdown().await.is_ok() {
                let _ = tokio::io::copy(&mut stream.take(CLOSE_BYTES), &mut tokio::io::sink()).await;
            }
        })
        .await;
    }
}

fn code(reason: CloseReason) -> DisconnectCode {
    match reason {
        CloseReason::Normal => DisconnectCode::Normal,
        CloseReason::Closing => DisconnectCode::ShuttingDown,
        CloseReason::Replaced => DisconnectCode::TakenOver,
        CloseReason::Silent => DisconnectCode::KeepAliveTimeout,
        CloseReason::Policy => DisconnectCode::Administrative,
        CloseReason::TooLarge => DisconnectCode::TooLarge,
        CloseReason::NotText => DisconnectCode::NotText,
        CloseReason::Protocol => DisconnectCode::Malformed,
        CloseReason::Qos => DisconnectCode::Qos,
    }
}
