//! A serial port as a line for the board protocol.
//!
//! We speak first: some boards say nothing by themselves. The first request is repeated until the board answers, once as
//! bare JSON-RPC and once in the envelope of the board protocol, and the answer shows which of them the board speaks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde_json::value::RawValue;
use sinew_boards::Line;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::lines::{MAX_LINE_BYTES, SerialReader, SerialText};
use crate::port::Port;

/// How soon the first request is repeated: a board that restarts when its port is opened needs a second or two.
const REPEAT_TIME: Duration = Duration::from_secs(2);
/// After so many repetitions they become rare.
const MAX_QUICK_REPEATS: u32 = 8;
/// The board may be given its firmware later.
const RARE_REPEAT_TIME: Duration = Duration::from_secs(15);
/// Bytes that may wait until the board reads them: the longest call, and some answers.
const MAX_UNSENT_BYTES: usize = 4 * MAX_LINE_BYTES;

pub(crate) struct SerialLine {
    port: Arc<Port>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    name: String,
    reader: SerialReader,
    unsent: Vec<u8>,
    is_bare: bool,
    has_spoken: bool,
    first_request: Option<String>,
    repeats: u32,
    repeat_at: Pin<Box<Sleep>>,
}

impl SerialLine {
    /// The line closes with `end`.
    pub(crate) fn new(port: Arc<Port>, name: String, end: CancellationToken) -> SerialLine {
        SerialLine {
            port,
            end: Box::pin(end.cancelled_owned()),
            name,
            reader: SerialReader::default(),
            unsent: Vec::new(),
            is_bare: true,
            has_spoken: false,
            first_request: None,
            repeats: 0,
            repeat_at: Box::pin(tokio::time::sleep(REPEAT_TIME)),
        }
    }

    fn write(&mut self, text: &str) {
        let bare = if self.is_bare { unwrapped(text) } else { None };
        self.unsent.extend_from_slice(bare.as_deref().unwrap_or(text).as_bytes());
        self.unsent.push(b'\n');
    }

    fn poll_repeat(&mut self, cx: &mut Context<'_>) {
        while !self.has_spoken && self.repeat_at.as_mut().poll(cx).is_ready() {
            self.repeats += 1;
            let pause = if self.repeats > MAX_QUICK_REPEATS { RARE_REPEAT_TIME } else { REPEAT_TIME };
            self.repeat_at.as_mut().reset(Instant::now() + pause);
            self.is_bare = !self.is_bare;
            if let Some(text) = self.first_request.clone().filter(|_| self.unsent.is_empty()) {
                self.write(&text);
            }
        }
    }
}

impl Line for SerialLine {
    fn send(&mut self, text: String) -> io::Result<()> {
        if self.unsent.len() + text.len() > MAX_UNSENT_BYTES {
            return Err(io::Error::other("the board does not read what is sent to it"));
        }
        self.write(&text);
        if !self.has_spoken {
            self.first_request = Some(text);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let written = ready!(self.port.poll_write(cx, &self.unsent))?;
            self.unsent.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(None));
        }
        self.poll_repeat(cx);
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        let mut buffer = [0; 4096];
        loop {
            while let Some(text) = self.reader.next_text() {
                match text {
                    SerialText::Message(text) => {
                        self.is_bare = !has_envelope(&text);
                        self.has_spoken = true;
                        self.first_request = None;
                        return Poll::Ready(Ok(Some(text.into_bytes())));
                    }
                    SerialText::Boot if self.has_spoken => {
                        return Poll::Ready(Err(io::Error::other("the board restarted")));
                    }
                    SerialText::Boot => {}
                    SerialText::Log(line) => tracing::debug!(board = %self.name, "{line}"),
                    SerialText::TooLong => {
                        tracing::warn!(board = %self.name, "a line of more than {MAX_LINE_BYTES} bytes was dropped");
                    }
                }
            }
            let read = ready!(self.port.poll_read(cx, &mut buffer))?;
            self.reader.read(&buffer[..read]);
        }
    }

    fn longest_message(&self) -> Option<usize> {
        Some(MAX_LINE_BYTES - 1)
    }
}

type Members = std::collections::BTreeMap<String, Box<RawValue>>;

/// Whether a message is one of the board protocol and not bare JSON-RPC.
fn has_envelope(text: &str) -> bool {
    serde_json::from_str::<Members>(text).is_ok_and(|members| members.contains_key("type"))
}

/// The JSON-RPC message in the envelope of the board protocol; `None` where there is none.
fn unwrapped(text: &str) -> Option<String> {
    let mut members: Members = serde_json::from_str(text).ok()?;
    Some(members.remove("payload")?.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_out_of_its_envelope() {
        let text = r#"{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":1}}"#;
        assert_eq!(unwrapped(text).as_deref(), Some(r#"{"jsonrpc":"2.0","id":1}"#));
        for other in [r#"{"jsonrpc":"2.0","id":1}"#, r#"{"type":"hello"}"#, "x"] {
            assert_eq!(unwrapped(other), None, "{other}");
        }
    }
}
