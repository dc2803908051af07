//! MCP over Streamable HTTP, with the patience that boards need.
//!
//! Seen on boards: answers without a reason phrase and always chunked; connections that are closed after each answer; a
//! slow tool that answers with one empty event and an id, and wants to be asked again with `Last-Event-Id`; GET refused
//! with 405; sessions that are gone after ten minutes or a restart. Seen on servers: a redirect from `/mcp` to `/mcp/`.
//!
//! A call is sent once. It is sent again only where the answer proves that the server did not handle it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sinew_fetch::header::{ACCEPT, CONTENT_TYPE};
use sinew_fetch::{Answer, HeaderMap, HeaderName, HeaderValue, HttpClient, Method, StatusCode};
use sinew_tool::text::clip;

use crate::http_exchange::HttpExchange;
use crate::link::{LinkError, LinkErrorKind, Outgoing};
use crate::message::{ServerMessage, is_error_without_request};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// `/mcp` to `/mcp/`, and perhaps one more. A call follows one.
const MAX_REDIRECTS: usize = 3;
/// The explanation of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
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
        let had_session = self.state().session.is_some();
        let answer = self.exchange(Method::POST, headers, Bytes::from(text), repeatable).await?;
        self.adopt_session(&answer);
        self.read(answer, id, had_session).await
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
        Ok(Some(HttpExchange::of(answer, self.clone_for_resuming(), None)))
    }

    pub(crate) async fn get(&self, last_event: Option<&str>) -> Result<Answer, LinkError> {
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
        let mut visited = Vec::new();
        loop {
            let path = self.state().path.clone();
            let sent = self.client.send(method.clone(), path.as_deref(), headers.clone(), body.clone(), repeatable);
            let answer = sent.await?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            visited.push(path.unwrap_or_else(|| self.client.url().path().to_owned()));
            let target = self.redirected(&answer, &visited, repeatable)?;
            self.state().path = Some(target);
        }
    }

    /// The path that a redirect leads to. A call is sent again only where the status says that it was not handled.
    fn redirected(&self, answer: &Answer, visited: &[String], repeatable: bool) -> Result<String, LinkError> {
        let url = self.client.url();
        let (status, location) = (answer.status, answer.header("location"));
        let is_unhandled = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !repeatable && !is_unhandled {
            let message = format!("{url} answers {status}, which says nothing about the result");
            return Err(LinkError::new(LinkErrorKind::Lost, message));
        }
        let Some(target) = url.redirected(location) else {
            let message = format!(
                "{url} redirects to `{}`, which is another server and is not followed; write that address into the configuration if you trust it",
                clip(location)
            );
            return Err(LinkError::new(LinkErrorKind::Denied, message));
        };
        let most = if repeatable { MAX_REDIRECTS } else { 1 };
        if visited.len() > most || visited.iter().any(|path| path == target.path()) {
            let kind = if repeatable { LinkErrorKind::Denied } else { LinkErrorKind::Lost };
            return Err(LinkError::new(kind, format!("{url} redirects in a circle")));
        }
        Ok(target.path().to_owned())
    }

    async fn read(&self, answer: Answer, id: Option<i64>, had_session: bool) -> Result<HttpExchange, LinkError> {
        if !answer.status.is_success() {
            let messages = self.read_refusal(answer, id, had_session).await?;
            return Ok(HttpExchange::done(self.clone_for_resuming(), messages));
        }
        if id.is_none() || matches!(answer.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // Read to its end, so that the connection can be used again.
            drop(answer.whole(MAX_REFUSAL_BYTES).await);
            return Ok(HttpExchange::done(self.clone_for_resuming(), Vec::new()));
        }
        Ok(HttpExchange::of(answer, self.clone_for_resuming(), id))
    }

    /// A status that is no success: an error as JSON-RPC has it, or why there is none.
    async fn read_refusal(
        &self,
        answer: Answer,
        id: Option<i64>,
        had_session: bool,
    ) -> Result<Vec<ServerMessage>, LinkError> {
        let (status, url) = (answer.status, self.client.url().clone());
        let body = answer.whole(MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body).into_owned();
        if had_session && is_lost_session(status, &text) {
            let message = format!("{url} does not know the session any more ({status})");
            return Err(LinkError::new(LinkErrorKind::NewSession, message));
        }
        let is_it = |message: &ServerMessage| matches!(message, ServerMessage::Answer { id: answered, .. } if Some(*answered) == id);
        if let Ok(messages) = ServerMessage::parse(&text)
            && messages.iter().any(is_it)
        {
            return Ok(messages);
        }
        let said = if text.trim().is_empty() { String::new() } else { format!(": {}", clip(text.trim())) };
        let (kind, hint) = refusal(status);
        Err(LinkError::new(kind, format!("{url} answers {status}{said}{hint}")))
    }

    /// The part of a link that an exchange needs to ask again.
    fn clone_for_resuming(&self) -> HttpLink {
        HttpLink { client: self.client.clone(), state: Mutex::new(self.state().clone()) }
    }
}

pub(crate) fn is_event_stream(answer: &Answer) -> bool {
    answer.header(CONTENT_TYPE.as_str()).to_ascii_lowercase().starts_with("text/event-stream")
}

/// Whether a refusal proves that our session is gone and the request was not handled: what MCP says of 404, and what the
/// official SDKs answer after a restart: 400 with an error that belongs to no request. No word in a text proves that.
fn is_lost_session(status: StatusCode, text: &str) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => is_error_without_request(text),
        _ => false,
    }
}

/// What a status says about a request, and what its user can do. Only those that servers send before they handle a
/// request say that nothing was done.
fn refusal(status: StatusCode) -> (LinkErrorKind, &'static str) {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (LinkErrorKind::Denied, "; set `token` or `headers` of this server")
        }
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            (LinkErrorKind::Denied, "; there is no MCP over Streamable HTTP at this path, check the `url`")
        }
        StatusCode::BAD_REQUEST
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::LENGTH_REQUIRED
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => (LinkErrorKind::Denied, ""),
        StatusCode::TOO_MANY_REQUESTS => (LinkErrorKind::Busy, ""),
        status if status.is_client_error() => (LinkErrorKind::Bad, ""),
        // A proxy answers 502 to 504 also when the server went away during the call.
        _ => (LinkErrorKind::Lost, ""),
    }
}
