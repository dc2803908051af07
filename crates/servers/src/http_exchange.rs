//! The answer to one request over HTTP, or the stream of a server's own messages.
//!
//! [`HttpExchange::next`] may be dropped at any point and called again: whoever waits for a message also waits for other
//! things, and what was read stays.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use sinew_fetch::Answer;
use tokio::time::Instant;

use crate::http_link::{HttpLink, is_event_stream};
use crate::link::{LinkError, LinkErrorKind, MAX_MESSAGE_BYTES};
use crate::message::ServerMessage;
use crate::sse::{SseEvent, SseReader};

/// Events of one stream: progress and log lines of a long call. Beyond it the stream is not read on.
const MAX_EVENTS: usize = 10_000;
/// Bytes of one stream: several of the largest messages.
const MAX_STREAM_BYTES: usize = 4 * MAX_MESSAGE_BYTES;
/// A stream that only listens goes on for days, so its events and bytes are counted anew after this time. One that has more
/// is closed and opened again with a later look at the tools.
const LISTENING_TIME: Duration = Duration::from_secs(60);
/// Events in [`LISTENING_TIME`] of a stream that only listens.
const MAX_HEARD_EVENTS: usize = 2_000;
/// Bytes in [`LISTENING_TIME`] of a stream that only listens: its events are kept only up to some kilobytes each.
const MAX_HEARD_BYTES: usize = 8 << 20;
/// How soon a slow tool is asked again, where the server does not say.
const RESUME_TIME: Duration = Duration::from_millis(500);
/// A server that says `retry: 0` is not asked in a circle.
const MIN_RESUME_TIME: Duration = Duration::from_millis(20);

/// The answer to one request, message by message.
pub(crate) struct HttpExchange {
    link: HttpLink,
    body: Body,
    /// The request that is to be answered; `None` for a stream that only listens.
    id: Option<i64>,
    ready: VecDeque<ServerMessage>,
    /// Where the stream can be resumed.
    last_event: Option<String>,
    resume_after: Duration,
    event_count: usize,
    byte_count: usize,
    counted_since: Instant,
    is_answered: bool,
    /// What could not be read, for an exchange that ends without an answer.
    last_problem: Option<String>,
}

enum Body {
    Json(Answer, BytesMut),
    Events(Answer, SseReader),
    Done,
}

impl Body {
    fn of(answer: Answer) -> Body {
        match is_event_stream(&answer) {
            true => Body::Events(answer, SseReader::new(MAX_MESSAGE_BYTES)),
            false => Body::Json(answer, BytesMut::new()),
        }
    }
}

impl HttpExchange {
    pub(crate) fn of(answer: Answer, link: HttpLink, id: Option<i64>) -> HttpExchange {
        HttpExchange::new(link, Body::of(answer), id, Vec::new())
    }

    /// An exchange whose messages are all there.
    pub(crate) fn done(link: HttpLink, messages: Vec<ServerMessage>) -> HttpExchange {
        HttpExchange::new(link, Body::Done, None, messages)
    }

    fn new(link: HttpLink, body: Body, id: Option<i64>, messages: Vec<ServerMessage>) -> HttpExchange {
        HttpExchange {
            link,
            body,
            id,
            ready: messages.into(),
            last_event: None,
            resume_after: RESUME_TIME,
            event_count: 0,
            byte_count: 0,
            counted_since: Instant::now(),
            is_answered: false,
            last_problem: None,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<ServerMessage>, LinkError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.is_answered |= matches!(&message, ServerMessage::Answer { id, .. } if Some(*id) == self.id);
                return Ok(Some(message));
            }
            match &mut self.body {
                Body::Json(answer, read) => match answer.chunk().await? {
                    Some(chunk) if read.len() + chunk.len() > MAX_MESSAGE_BYTES => {
                        let message = format!("the answer has more than {MAX_MESSAGE_BYTES} bytes");
                        return Err(LinkError::new(LinkErrorKind::TooLarge, message));
                    }
                    Some(chunk) => read.extend_from_slice(&chunk),
                    None => {
                        let messages = ServerMessage::parse(&String::from_utf8_lossy(read));
                        self.body = Body::Done;
                        self.ready = messages.map_err(|why| LinkError::new(LinkErrorKind::Bad, why))?.into();
                    }
                },
                Body::Events(answer, reader) => {
                    let mut events = Vec::new();
                    match answer.chunk().await {
                        Ok(Some(chunk)) => {
                            self.byte_count += chunk.len();
                            reader.read(&chunk, &mut events).map_err(|_| {
                                let message = format!("an event has more than {MAX_MESSAGE_BYTES} bytes");
                                LinkError::new(LinkErrorKind::TooLarge, message)
                            })?;
                            self.take(events)?;
                        }
                        Ok(None) => self.body = Body::Done,
                        // A stream that broke can be resumed where it says how.
                        Err(_) if self.last_event.is_some() => self.body = Body::Done,
                        Err(error) => return Err(error.into()),
                    }
                }
                Body::Done if self.id.is_none() || self.is_answered => return Ok(None),
                Body::Done => self.resume().await?,
            }
        }
    }

    /// Takes the messages of events. What is no message of ours, such as a sign of life, is left out and counted.
    fn take(&mut self, events: Vec<SseEvent>) -> Result<(), LinkError> {
        for event in events {
            self.event_count += 1;
            if let Some(id) = event.id.filter(|id| !id.is_empty()) {
                self.last_event = Some(id);
            }
            if let Some(retry) = event.retry {
                self.resume_after = Duration::from_millis(retry).max(MIN_RESUME_TIME);
            }
            if event.data.trim().is_empty() {
                continue;
            }
            match ServerMessage::parse(&event.data) {
                Ok(messages) => self.ready.extend(messages),
                Err(why) => {
                    tracing::debug!("an event is left out: {why}");
                    self.last_problem = Some(why);
                }
            }
        }
        let (events, bytes) = match self.id {
            Some(_) => (MAX_EVENTS, MAX_STREAM_BYTES),
            None => (MAX_HEARD_EVENTS, MAX_HEARD_BYTES),
        };
        if self.id.is_none() && self.counted_since.elapsed() >= LISTENING_TIME {
            (self.event_count, self.byte_count, self.counted_since) = (0, 0, Instant::now());
        }
        if self.event_count > events || self.byte_count > bytes {
            let message = format!("the stream has more than {events} events or {bytes} bytes without an answer");
            return Err(LinkError::new(LinkErrorKind::TooLarge, message));
        }
        Ok(())
    }

    async fn resume(&mut self) -> Result<(), LinkError> {
        let Some(last_event) = self.last_event.clone() else {
            let problem = self.last_problem.take().map(|why| format!(": {why}")).unwrap_or_default();
            let message = format!("the server closed the answer without a result{problem}");
            return Err(LinkError::new(LinkErrorKind::Bad, message));
        };
        tokio::time::sleep(self.resume_after).await;
        let answer = self.link.get(Some(&last_event)).await?;
        if !answer.status.is_success() {
            let message = format!("the server does not continue its answer ({})", answer.status);
            return Err(LinkError::new(LinkErrorKind::Lost, message));
        }
        self.body = Body::of(answer);
        Ok(())
    }
}
