//! A serial port as a line for the board protocol.
//!
//! We speak first: some boards say nothing by themselves. `initialize` is repeated until the board answers, once as bare
//! JSON-RPC and once in the envelope of the board protocol. Its answer alone shows which of them the board speaks: boards
//! print JSON of many kinds.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde_json::value::RawValue;
use sinew_boards::Line;
use sinew_tool::Value;
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
/// Greetings whose answers are known; each connection has one or two.
const MAX_GREETINGS: usize = 8;
/// Bytes that may wait until the board reads them: the longest call, and some answers.
const MAX_UNSENT_BYTES: usize = 4 * MAX_LINE_BYTES;

pub(crate) struct SerialLine {
    port: Arc<Port>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    name: String,
    reader: SerialReader,
    unsent: Vec<u8>,
    is_bare: bool,
    has_answered: bool,
    has_long_lines: bool,
    /// `initialize`, until it is answered.
    greeting: Option<String>,
    greeting_ids: VecDeque<i64>,
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
            has_answered: false,
            has_long_lines: false,
            greeting: None,
            greeting_ids: VecDeque::new(),
            repeats: 0,
            repeat_at: Box::pin(tokio::time::sleep(REPEAT_TIME)),
        }
    }

    fn write(&mut self, text: &str) {
        let bare = if self.is_bare { unwrapped(text) } else { None };
        self.unsent.extend_from_slice(bare.as_deref().unwrap_or(text).as_bytes());
        self.unsent.push(b'\n');
    }

    /// From here to its answer, `initialize` is repeated in both forms.
    fn begin_greeting(&mut self, id: i64, text: String) {
        self.greeting_ids.push_back(id);
        if self.greeting_ids.len() > MAX_GREETINGS {
            self.greeting_ids.pop_front();
        }
        (self.greeting, self.repeats) = (Some(text), 0);
        self.repeat_at.as_mut().reset(Instant::now() + REPEAT_TIME);
    }

    /// The answer to a greeting shows how the board speaks.
    fn end_greeting(&mut self, text: &str) {
        let answered = if self.greeting.is_some() { read_answer(text) } else { None };
        if let Some((id, is_bare)) = answered.filter(|(id, _)| self.greeting_ids.contains(id)) {
            tracing::debug!(board = %self.name, id, is_bare, "the board has answered");
            (self.greeting, self.is_bare, self.has_answered) = (None, is_bare, true);
        }
    }

    fn poll_repeat(&mut self, cx: &mut Context<'_>) {
        while let Some(greeting) = self.greeting.clone()
            && self.repeat_at.as_mut().poll(cx).is_ready()
        {
            self.repeats += 1;
            let pause = if self.repeats > MAX_QUICK_REPEATS { RARE_REPEAT_TIME } else { REPEAT_TIME };
            self.repeat_at.as_mut().reset(Instant::now() + pause);
            self.is_bare = !self.is_bare;
            if self.unsent.is_empty() {
                self.write(&greeting);
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
        if let Some(id) = read_greeting(&text) {
            self.begin_greeting(id, text);
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
                        self.end_greeting(&text);
                        return Poll::Ready(Ok(Some(text.into_bytes())));
                    }
                    SerialText::Boot if self.has_answered => {
                        return Poll::Ready(Err(io::Error::other("the board restarted")));
                    }
                    SerialText::Boot => {}
                    SerialText::Log(line) => tracing::debug!(board = %self.name, "{line}"),
                    // Reported once: a board at the wrong speed sends nothing else.
                    SerialText::TooLong if std::mem::replace(&mut self.has_long_lines, true) => {}
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

/// The JSON-RPC message in a text, and whether it stands there bare, without the envelope of the board protocol.
fn read_message(text: &str) -> Option<(Value, bool)> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    match message["type"] == "mcp" {
        true => Some((message["payload"].take(), false)),
        false => Some((message, true)),
    }
}

/// The id of an `initialize`.
fn read_greeting(text: &str) -> Option<i64> {
    let (message, _) = read_message(text).filter(|_| text.contains("\"initialize\""))?;
    message["id"].as_i64().filter(|_| message["method"] == "initialize")
}

/// The id of an answer, and whether it is bare. Some boards send ids back as text.
fn read_answer(text: &str) -> Option<(i64, bool)> {
    let (message, is_bare) = read_message(text)?;
    let is_answer = message["method"].is_null() && (message.get("result").is_some() || message.get("error").is_some());
    let id = &message["id"];
    let id = id.as_i64().or_else(|| id.as_str()?.parse().ok()).or_else(|| Some(id.as_f64()? as i64));
    Some((id.filter(|_| is_answer)?, is_bare))
}

/// The JSON-RPC message in the envelope of the board protocol; `None` where there is none.
fn unwrapped(text: &str) -> Option<String> {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
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

    #[test]
    fn only_an_answer_shows_how_a_board_speaks() {
        for (text, answered) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Some((7, true))),
            (r#"{"id":"7","error":{}}"#, Some((7, true))),
            (r#"{"type":"mcp","payload":{"id":7.0,"result":{}}}"#, Some((7, false))),
            (r#"{"type":"log","msg":"hi"}"#, None),
            (r#"{"type":"log","id":7,"msg":"hi"}"#, None),
            (r#"{"temp":21}"#, None),
            (r#"{"type":"mcp"}"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, None),
            (r#"[7]"#, None),
        ] {
            assert_eq!(read_answer(text), answered, "{text}");
        }
    }
}
