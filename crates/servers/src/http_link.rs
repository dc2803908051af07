//! MCP over Streamable HTTP, with the patience that boards need.
//!
//! Seen on boards: answers without a reason phrase and always chunked; connections that are closed after each answer; a
//! slow tool that answers with one empty event and an id, and wants to be asked again with `Last-Event-Id`; GET refused
//! with 405; sessions that are gone after ten minutes or a restart. Seen on servers: a redirect from `/mcp` to `/mcp/`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sinew_fetch::header::{ACCEPT, CONTENT_TYPE};
use sinew_fetch::{Answer, HeaderMap, HeaderName, HeaderValue, HttpClient, Method, StatusCode};
use sinew_tool::text::clip;

use crate::link::{LinkError, LinkErrorKind, MAX_MESSAGE_BYTES, Outgoing};
use crate::message::ServerMessage;
use crate::sse::{SseEvent, SseReader};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// `/mcp` to `/mcp/`, and perhaps one more.
const MAX_REDIRECTS: usize = 3;
/// The explanation of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Events of one stream: progress and log lines of a long call. Beyond it the stream is not read on.
const MAX_EVENTS: usize = 10_000;
/// Bytes of one stream: several of the largest messages.
const MAX_STREAM_BYTES: usize = 4 * MAX_MESSAGE_BYTES;
/// How soon a slow tool is asked again, where the server does not say.
const RESUME_TIME: Duration = Duration::from_millis(500);
/// A server that says `retry: 0` is not asked in a circle.
const MIN_RESUME_TIME: Duration = Duration::from_millis(20);
/// How long the end of a session may take: nobody waits for it.
const CLOSE_TIME: Duration = Duration::from_secs(1);

pub(crate) struct HttpLink {
    client: HttpClient,
    state: Mutex<LinkState>,
}

#[derive(Clone, Default)]
struct LinkState {
    /// The path after a redirect.
    path: Option<String>,
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

impl HttpLink {
    pub(crate) fn new(client: HttpClient) -> HttpLink {
        HttpLink { client, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reset(&self) {
        let mut state = self.state();
        (state.session, state.revision) = (None, None);
    }

    pub(crate) fn set_revision(&self, revision: &str) {
        self.state().revision = HeaderValue::from_str(revision).ok();
    }

    pub(crate) fn rest(&self) {
        self.client.close_idle();
    }

    pub(crate) async fn close(&self) {
        if self.state().session.is_some() {
            let ending = self.exchange(Method::DELETE, HeaderMap::new(), Bytes::new(), true);
            // Many servers answer 405; the session then ends by itself.
            let _ = tokio::time::timeout(CLOSE_TIME, ending).await;
        }
        self.rest();
    }

    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<HttpExchange, LinkError> {
        let Outgoing { text, id, mut headers, repeatable } = outgoing;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let answer = self.exchange(Method::POST, headers, Bytes::from(text), repeatable).await?;
        self.adopt_session(&answer);
        self.read(answer, id).await
    }

    fn adopt_session(&self, answer: &Answer) {
        let mut state = self.state();
        if state.session.is_none() {
            state.session = answer.headers.get(&SESSION).cloned();
        }
    }

    /// The stream of a server's own messages. `None` where the server has none.
    pub(crate) async fn listen(&self) -> Result<Option<HttpExchange>, LinkError> {
        let answer = self.get(None).await?;
        if !answer.status.is_success() || !is_event_stream(&answer) {
            return Ok(None);
        }
        Ok(Some(HttpExchange::new(
            self.clone_for_resuming(),
            Body::Events(answer, SseReader::new(MAX_MESSAGE_BYTES)),
            None,
        )))
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Answer, LinkError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT, id);
        }
        self.exchange(Method::GET, headers, Bytes::new(), true).await
    }

    async fn exchange(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        repeatable: bool,
    ) -> Result<Answer, LinkError> {
        let LinkState { session, revision, .. } = self.state().clone();
        for (name, value) in [(SESSION, session), (REVISION, revision)] {
            if let Some(value) = value.filter(|_| !headers.contains_key(&name)) {
                headers.insert(name, value);
            }
        }
        for _ in 0..=MAX_REDIRECTS {
            let path = self.state().path.clone();
            let sent = self.client.send(method.clone(), path.as_deref(), headers.clone(), body.clone(), repeatable);
            let answer = sent.await?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            let location = answer.header("location");
            let Some(target) = self.client.url().redirected(location) else {
                let message = format!(
                    "{} redirects to `{}`, which is another server and is not followed; write that address into the configuration if you trust it",
                    self.client.url(),
                    clip(location)
                );
                return Err(LinkError::new(LinkErrorKind::Denied, message));
            };
            self.state().path = Some(target.path().to_owned());
        }
        Err(LinkError::new(LinkErrorKind::Denied, format!("{} redirects in a circle", self.client.url())))
    }

    async fn read(&self, answer: Answer, id: Option<i64>) -> Result<HttpExchange, LinkError> {
        if !answer.status.is_success() {
            let messages = self.read_refusal(answer, id).await?;
            return Ok(HttpExchange::new(self.clone_for_resuming(), Body::Done, id).with(messages));
        }
        let body = if id.is_none() || matches!(answer.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // Read to its end, so that the connection can be used again.
            drop(answer.whole(MAX_REFUSAL_BYTES).await);
            Body::Done
        } else if is_event_stream(&answer) {
            Body::Events(answer, SseReader::new(MAX_MESSAGE_BYTES))
        } else {
            Body::Json(answer)
        };
        Ok(HttpExchange::new(self.clone_for_resuming(), body, id))
    }

    /// A status that is no success: an error as JSON-RPC has it, or why there is none.
    async fn read_refusal(&self, answer: Answer, id: Option<i64>) -> Result<Vec<ServerMessage>, LinkError> {
        let (status, url) = (answer.status, self.client.url().clone());
        let body = answer.whole(MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        let has_session = self.state().session.is_some();
        if (status == StatusCode::NOT_FOUND && has_session) || (status.is_client_error() && is_about_session(&text)) {
            let message = format!("{url} does not know the session any more ({status})");
            return Err(LinkError::new(LinkErrorKind::NewSession, message));
        }
        if let (Some(id), Ok(messages)) = (id, ServerMessage::parse(&text))
            && messages
                .iter()
                .any(|message| matches!(message, ServerMessage::Answer { id: answered, .. } if *answered == id))
        {
            return Ok(messages);
        }
        let said = if text.trim().is_empty() { String::new() } else { format!(": {}", clip(text.trim())) };
        let (kind, hint) = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                (LinkErrorKind::Denied, "; set `token` or `headers` of this server")
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                (LinkErrorKind::Denied, "; there is no MCP over Streamable HTTP at this path, check the `url`")
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (LinkErrorKind::Busy, ""),
            status if status.is_client_error() => (LinkErrorKind::Denied, ""),
            _ => (LinkErrorKind::Lost, ""),
        };
        Err(LinkError::new(kind, format!("{url} answers {status}{said}{hint}")))
    }

    /// The part of a link that an exchange needs to ask again.
    fn clone_for_resuming(&self) -> HttpLink {
        HttpLink { client: self.client.clone(), state: Mutex::new(self.state().clone()) }
    }
}

fn is_event_stream(answer: &Answer) -> bool {
    answer.header(CONTENT_TYPE.as_str()).to_ascii_lowercase().starts_with("text/event-stream")
}

/// Whether a refusal says that there is no session, or that the server was not initialized: boards forget both when
/// they restart, and report it in many forms.
pub(crate) fn is_about_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_gone = ["not found", "invalid", "expired", "unknown", "missing", "no valid", "required", "terminated"];
    text.contains("not initialized")
        || text.contains("uninitialized")
        || (text.contains("session") && is_gone.iter().any(|word| text.contains(word)))
}

/// The answer to one request, message by message.
pub(crate) struct HttpExchange {
    link: HttpLink,
    body: Body,
    /// The request that is to be answered; `None` for a stream that only listens.
    id: Option<i64>,
    ready: VecDeque<ServerMessage>,
    events: Vec<SseEvent>,
    /// Where the stream can be resumed.
    last_event: Option<String>,
    resume_after: Duration,
    event_count: usize,
    byte_count: usize,
    is_answered: bool,
}

enum Body {
    Json(Answer),
    Events(Answer, SseReader),
    Done,
}

impl HttpExchange {
    fn new(link: HttpLink, body: Body, id: Option<i64>) -> HttpExchange {
        HttpExchange {
            link,
            body,
            id,
            ready: VecDeque::new(),
            events: Vec::new(),
            last_event: None,
            resume_after: RESUME_TIME,
            event_count: 0,
            byte_count: 0,
            is_answered: false,
        }
    }

    fn with(mut self, messages: Vec<ServerMessage>) -> HttpExchange {
        self.ready = messages.into();
        self
    }

    pub(crate) async fn next(&mut self) -> Result<Option<ServerMessage>, LinkError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.is_answered |= matches!(message, ServerMessage::Answer { .. });
                return Ok(Some(message));
            }
            match std::mem::replace(&mut self.body, Body::Done) {
                Body::Json(answer) => {
                    let body = answer.whole(MAX_MESSAGE_BYTES).await?;
                    let messages = ServerMessage::parse(&String::from_utf8_lossy(&body));
                    self.ready = messages.map_err(|why| LinkError::new(LinkErrorKind::Bad, why))?.into();
                }
                Body::Events(answer, reader) => self.read_events(answer, reader).await?,
                Body::Done if self.id.is_none() || self.is_answered => return Ok(None),
                Body::Done => self.resume().await?,
            }
        }
    }

    async fn read_events(&mut self, mut answer: Answer, mut reader: SseReader) -> Result<(), LinkError> {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(()),
            // A stream that broke can be resumed where it says how.
            Err(_) if self.last_event.is_some() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.byte_count += chunk.len();
        reader.read(&chunk, &mut self.events).map_err(|_| {
            let message = format!("an event has more than {MAX_MESSAGE_BYTES} bytes");
            LinkError::new(LinkErrorKind::TooLarge, message)
        })?;
        for event in std::mem::take(&mut self.events) {
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
                Err(why) if self.id.is_some() => return Err(LinkError::new(LinkErrorKind::Bad, why)),
                Err(why) => tracing::debug!("an event is left out: {why}"),
            }
        }
        if self.event_count > MAX_EVENTS || self.byte_count > MAX_STREAM_BYTES {
            let message =
                format!("the stream has more than {MAX_EVENTS} events or {MAX_STREAM_BYTES} bytes without an answer");
            return Err(LinkError::new(LinkErrorKind::TooLarge, message));
        }
        self.body = Body::Events(answer, reader);
        Ok(())
    }

    /// Asks for the rest of an answer that is not complete.
    async fn resume(&mut self) -> Result<(), LinkError> {
        let Some(last_event) = self.last_event.clone() else {
            return Err(LinkError::new(LinkErrorKind::Bad, "the server closed the answer without a result"));
        };
        tokio::time::sleep(self.resume_after).await;
        let answer = self.link.get(Some(&last_event)).await?;
        match answer.status {
            status if status.is_success() && is_event_stream(&answer) => {
                self.body = Body::Events(answer, SseReader::new(MAX_MESSAGE_BYTES));
            }
            status if status.is_success() => self.body = Body::Json(answer),
            status => {
                let message = format!("the server does not continue its answer ({status})");
                return Err(LinkError::new(LinkErrorKind::Lost, message));
            }
        }
        Ok(())
    }
}
