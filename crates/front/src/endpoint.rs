//! `/mcp`: Streamable HTTP for clients with and without sessions, around rmcp's service.
//!
//! rmcp answers unreadable messages in plain text. Here every error has a JSON-RPC body, a session belongs to the caller
//! that started it, and the number of sessions is limited.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use sinew_gateway::Principal;
use sinew_tool::ErrorKind;
use tokio_util::sync::CancellationToken;

use crate::fast_call::FastCall;
use crate::inspect::{MessageError, MessageHead};
use crate::listing::ListForm;
use crate::mcp::Mcp;
use crate::memory::MemoryShare;
use crate::revision::Revision;
use crate::sessions::{SessionRefusal, SessionUse, Sessions};
use crate::state::FrontState;
use crate::tracked_body::TrackedBody;
use crate::{batch, body, http_batch, inspect, reply};

const SESSION: &str = "mcp-session-id";
const NO_SESSION: &str = "no such session: it has ended, or the gateway was restarted; start again with `initialize`";

type RmcpService = StreamableHttpService<Mcp, LocalSessionManager>;

tokio::task_local! {
    /// The caller of the request that rmcp handles: it creates a handler without saying for whom.
    static CALLER: Arc<Principal>;
}

pub(crate) struct McpEndpoint {
    front: Arc<FrontState>,
    /// One for each form of the tool list.
    services: [RmcpService; 4],
    sessions: Arc<Sessions>,
}

impl McpEndpoint {
    pub(crate) fn front(&self) -> &FrontState {
        &self.front
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn new(front: Arc<FrontState>) -> Arc<McpEndpoint> {
        let sessions = Sessions::new(&front.settings.limits, front.settings.open);
        let service = |form| {
            let config = config(front.stop.clone(), front.settings.limits.body);
            let front = front.clone();
            let make = move || Ok(Mcp::new(front.clone(), form, "mcp", CALLER.try_with(Arc::clone).ok()));
            StreamableHttpService::new(make, sessions.manager.clone(), config)
        };
        front.tasks.spawn(end_revoked(front.clone(), sessions.clone()));
        Arc::new(McpEndpoint { services: ListForm::ALL.map(service), sessions, front })
    }

    async fn post(
        &self,
        request: Request,
        who: &Arc<Principal>,
        form: Result<ListForm, MessageError>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let refused = |status, error: MessageError| reply::json_body(status, error.to_text().into_bytes());
        let message = match body::read(&self.front, &parts, body).await {
            Ok(message) => message,
            Err(body::BodyError::Refused(error)) => return refused(body::status(&error), error),
            Err(body::BodyError::Slow) => return body::too_slow(),
            Err(body::BodyError::Broken) => return reply::empty(StatusCode::BAD_REQUEST),
        };
        let body::RequestBody { bytes, share } = message;
        if !is_json(&parts.headers) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, MessageError::content_type().for_request(&bytes));
        }
        let form = match form {
            Ok(form) => form,
            Err(error) => return refused(StatusCode::BAD_REQUEST, error.for_request(&bytes)),
        };
        if accepts_anything(&parts.headers) {
            parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        }
        let share = Arc::new(share);
        let has_batches = || session_of(&parts.headers).is_some_and(|session| self.sessions.has_batches(session));
        match batch::split(&bytes).filter(|_| has_batches()) {
            None => self.answer(parts, bytes, &share, who, form).await,
            Some(Err(message)) => {
                refused(StatusCode::BAD_REQUEST, MessageError::new(ErrorKind::InvalidRequest, message))
            }
            Some(Ok(messages)) => {
                let answers = messages
                    .into_iter()
                    .map(|message| self.answer(parts.clone(), bytes.slice_ref(message), &share, who, form));
                http_batch::merge(futures_util::future::join_all(answers).await)
            }
        }
    }

    /// Answers one message.
    async fn answer(
        &self,
        parts: http::request::Parts,
        bytes: Bytes,
        share: &Arc<MemoryShare>,
        who: &Arc<Principal>,
        form: ListForm,
    ) -> Response<Body> {
        let refused = |status, error: MessageError| reply::json_body(status, error.to_text().into_bytes());
        let share = share.clone();
        let running = self.front.calls.token();
        let session = session_of(&parts.headers).map(str::to_owned);
        if session.is_none()
            && let Some(fast_call) = FastCall::read(&parts.headers, &bytes)
            && !self.front.has_header_arguments(who, form)
        {
            let (parts, body) = fast_call.run(&self.front, who, form.shape).await.into_parts();
            return Response::from_parts(parts, Body::new(TrackedBody::new(body, (running, share))));
        }
        if let Some(error) = inspect::check_parameters(&bytes) {
            return refused(StatusCode::OK, error);
        }
        let head = MessageHead::of(&bytes);
        let (mut session_use, mut slot) = (None, None);
        match &session {
            Some(session) => match self.sessions.start_use(session, who, head.request_id()) {
                Ok(used) => session_use = used,
                Err(SessionRefusal::Foreign) => return no_session(&bytes),
                Err(SessionRefusal::SameId) => {
                    let error = MessageError::new(ErrorKind::InvalidRequest, inspect::SAME_ID);
                    return refused(StatusCode::BAD_REQUEST, error.for_request(&bytes));
                }
            },
            None if head.method.as_deref() == Some("initialize") => match self.sessions.open(who).await {
                Ok(free) => slot = Some(free),
                Err(message) => {
                    let error = MessageError::new(ErrorKind::Internal, message).for_request(&bytes);
                    return refused(StatusCode::SERVICE_UNAVAILABLE, error);
                }
            },
            None => {}
        }
        let request = Request::from_parts(parts, Full::new(bytes.clone()));
        // Boxed, so that quick calls do not carry its size along.
        let response = CALLER.scope(who.clone(), Box::pin(self.service(form).handle(request))).await;
        let mut revision = session_use.as_ref().map(SessionUse::revision);
        if let (Some(slot), Some(Ok(session))) = (slot, response.headers().get(SESSION).map(HeaderValue::to_str)) {
            let asked = Revision::parse(&asked_revision(&bytes));
            slot.opened(session, asked);
            revision = Some(asked);
        }
        let (parts, body) = response.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return explain(parts, body, &bytes).await;
        }
        let body = TrackedBody::new(body, (running, share, session_use));
        Response::from_parts(parts, Body::new(body.for_revision(revision)))
    }

    fn service(&self, form: ListForm) -> &RmcpService {
        let index = ListForm::ALL.iter().position(|one| *one == form).unwrap_or_default();
        &self.services[index]
    }
}

/// Ends the sessions of tokens that are no longer valid.
async fn end_revoked(front: Arc<FrontState>, sessions: Arc<Sessions>) {
    let tokens = front.gateway.tokens();
    let mut revocations = tokens.revocations();
    while let Some(Ok(())) = front.stop.run_until_cancelled(revocations.changed()).await {
        sessions.end(|owner| !tokens.is_valid(owner)).await;
    }
}

/// The revision that an `initialize` asks for.
fn asked_revision(message: &[u8]) -> String {
    let message = serde_json::from_slice::<Value>(message).unwrap_or_default();
    message["params"]["protocolVersion"].as_str().unwrap_or_default().to_owned()
}

fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).map(|session| session.to_str().unwrap_or_default())
}

/// Answers as if the session did not exist, also when it belongs to another caller.
fn no_session(request: &[u8]) -> Response<Body> {
    let error = MessageError::new(ErrorKind::InvalidRequest, NO_SESSION).for_request(request);
    reply::json_body(StatusCode::NOT_FOUND, error.to_text().into_bytes())
}

pub(crate) async fn handle(State(endpoint): State<Arc<McpEndpoint>>, request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let form = ListForm::of(request.uri()).map_err(|message| MessageError::new(ErrorKind::InvalidRequest, message));
    if request.method() == Method::POST {
        return endpoint.post(request, &who, form).await;
    }
    let form = match form {
        Ok(form) => form,
        Err(error) => return reply::json_body(StatusCode::BAD_REQUEST, error.to_text().into_bytes()),
    };
    let ends = request.method() == Method::DELETE;
    let session_use =
        match session_of(request.headers()).map(|session| endpoint.sessions.start_use(session, &who, None)) {
            Some(Err(_)) => return no_session(&[]),
            Some(Ok(session_use)) => session_use,
            None => None,
        };
    let (parts, _) = request.into_parts();
    let request = Request::from_parts(parts, Full::<Bytes>::default());
    let answered = CALLER.scope(who, Box::pin(endpoint.service(form).handle(request))).await;
    let (mut parts, body) = answered.into_parts();
    if ends && parts.status == StatusCode::ACCEPTED {
        // The Python client treats every status but 200 and 204 as a failure.
        parts.status = StatusCode::NO_CONTENT;
    }
    if parts.status.is_client_error() || parts.status.is_server_error() {
        return explain(parts, body, &[]).await;
    }
    let revision = session_use.as_ref().map(SessionUse::revision);
    Response::from_parts(parts, Body::new(TrackedBody::new(body, session_use).for_revision(revision)))
}

/// The settings of `/mcp`; the baseline server of the benchmark uses the same.
pub(crate) fn config(stop: CancellationToken, body: usize) -> StreamableHttpServerConfig {
    // The guard has checked Host and Origin already.
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_cancellation_token(stop)
        .with_max_request_body_bytes(body)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// MCP requires both media types in `Accept`; curl and similar programs name none and take either.
fn accepts_anything(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).is_none_or(|accept| accept.as_bytes() == b"*/*")
}

/// Turns an error in plain text into a JSON-RPC body; other answers stay as they are.
async fn explain<B>(mut parts: http::response::Parts, body: B, request: &[u8]) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if is_json(&parts.headers) {
        if parts.status == StatusCode::NOT_FOUND {
            return explain_method(parts, body, request).await;
        }
        return Response::from_parts(parts, Body::new(body));
    }
    let error = match parts.status {
        // rmcp's status for a message that it could not read.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            parts.status = StatusCode::BAD_REQUEST;
            inspect::explain(request)
        }
        _ => {
            let text = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let message = with_remedy(parts.status, &text);
            let kind = if parts.status.is_server_error() { ErrorKind::Internal } else { ErrorKind::InvalidRequest };
            MessageError::new(kind, message).for_request(request)
        }
    };
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(error.to_text()))
}

/// rmcp's message, or ours when rmcp's has no remedy.
fn with_remedy(status: StatusCode, text: &[u8]) -> String {
    match status {
        StatusCode::NOT_FOUND => NO_SESSION.to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "/mcp does not support this HTTP method; send messages with POST".to_owned(),
        StatusCode::BAD_REQUEST if text.ends_with(b"Session ID is required") => {
            "the header `Mcp-Session-Id` is missing; start with `initialize`, whose answer has it".to_owned()
        }
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

/// When rmcp does not know a method, its message is only the name; ours says what is wrong.
async fn explain_method<B>(mut parts: http::response::Parts, body: B, request: &[u8]) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let code = serde_json::from_slice::<Value>(&bytes).map(|answer| answer["error"]["code"] == -32601);
    let head = MessageHead::of(request);
    let (Ok(true), Some(method)) = (code, head.method.as_deref()) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    parts.headers.remove(CONTENT_LENGTH);
    let error = MessageError::unknown_method(method).for_request(request);
    Response::from_parts(parts, Body::from(error.to_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each layer around the endpoint moves what answers a request; with the call inside it that was 12 KB each time.
    #[test]
    fn what_answers_a_request_is_small() {
        fn size<F: Future>(_: impl Fn(State<Arc<McpEndpoint>>, Request) -> F) -> usize {
            size_of::<F>()
        }
        assert!(size(handle) <= 4 << 10, "{} bytes", size(handle));
    }
}
