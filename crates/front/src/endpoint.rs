//! `/mcp`: Streamable HTTP for both eras, around rmcp's service.
//!
//! rmcp answers what it cannot read in plain text. Here every refusal gets a JSON-RPC body, a session
//! belongs to the caller that began it, and there is a limit to how many may be open.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use sinew_gateway::{Principal, Shape};
use sinew_tool::ErrorKind;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::express::Express;
use crate::hall::Hall;
use crate::mcp::Mcp;
use crate::{body, inspect, query, reply};

const SESSION: &str = "mcp-session-id";
/// A desktop client may rest over lunch with only its event stream open, and few begin a new session
/// by themselves; what is abandoned for longer makes room under the session limit.
const SESSION_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

const NO_SESSION: &str = "no such session: it ended, or the gateway started anew; begin again with `initialize`";

type Service = StreamableHttpService<Mcp, LocalSessionManager>;

tokio::task_local! {
    /// The caller of the request that rmcp is being handed: it asks for a handler without saying for
    /// whom.
    static CALLER: Arc<Principal>;
}

pub(crate) struct Endpoint {
    hall: Arc<Hall>,
    folded: Service,
    unfolded: Service,
    sessions: Arc<LocalSessionManager>,
    /// Who began which session.
    owners: Mutex<HashMap<String, String>>,
    /// Ends every stream that is still open.
    pub stop: CancellationToken,
}

impl Endpoint {
    pub(crate) fn new(hall: Arc<Hall>) -> Arc<Endpoint> {
        let stop = CancellationToken::new();
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        let sessions = Arc::new(sessions);
        let service = |shape| {
            let config = config(stop.clone(), hall.settings.limits.body);
            let hall = hall.clone();
            let make = move || Ok(Mcp::new(hall.clone(), shape, "mcp", CALLER.try_with(Arc::clone).ok()));
            StreamableHttpService::new(make, sessions.clone(), config)
        };
        Arc::new(Endpoint {
            folded: service(Shape::Folded),
            unfolded: service(Shape::Unfolded),
            sessions,
            owners: Mutex::default(),
            stop,
            hall,
        })
    }

    async fn post(&self, request: Request, who: &Arc<Principal>, shape: Shape) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let limit = self.hall.settings.limits.body;
        let refused = |status, refusal: inspect::Refusal| reply::value(status, &refusal.to_json());
        if !is_json(&parts.headers) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, inspect::Refusal::content_type());
        }
        let bytes = match body::read(&parts.headers, body, limit).await {
            Ok(bytes) => bytes,
            Err(body::Unread::TooLarge(refusal)) => return refused(StatusCode::PAYLOAD_TOO_LARGE, refusal),
            Err(body::Unread::Slow) => return body::too_slow(),
            Err(body::Unread::Broken) => return reply::empty(StatusCode::BAD_REQUEST),
        };
        if accepts_anything(&parts.headers) {
            parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        }
        let running = self.hall.calls.token();
        let new = !parts.headers.contains_key(SESSION);
        if new
            && let Some(express) = Express::read(&parts.headers, &bytes)
            && !self.hall.listing(who, shape).annotated
        {
            let (parts, body) = express.run(&self.hall, who, shape, &self.stop).await.into_parts();
            return Response::from_parts(parts, Body::new(Answer { body, _running: running }));
        }
        if let Some(refusal) = inspect::refusal_of_readable(&bytes) {
            return refused(StatusCode::OK, refusal);
        }
        if new
            && let Some(message) = self.is_full(who).await
            && is_initialize(&bytes)
        {
            return reply::rpc_error(StatusCode::SERVICE_UNAVAILABLE, &id_of(&bytes), -32603, message);
        }
        let request = Request::from_parts(parts, Full::new(bytes.clone()));
        let response = CALLER.scope(who.clone(), self.service(shape).handle(request)).await;
        if new && let Some(session) = response.headers().get(SESSION) {
            self.remember(session, who).await;
        }
        let (parts, body) = response.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return explain(parts, body, &bytes).await;
        }
        Response::from_parts(parts, Body::new(Answer { body, _running: running }))
    }

    fn service(&self, shape: Shape) -> &Service {
        match shape {
            Shape::Folded => &self.folded,
            Shape::Unfolded => &self.unfolded,
        }
    }

    /// Why no further session may begin. One token cannot take the places of all the others.
    async fn is_full(&self, who: &Principal) -> Option<&'static str> {
        let limits = &self.hall.settings.limits;
        let open = self.sessions.sessions.read().await;
        if open.len() >= limits.sessions {
            return Some("too many sessions are open; end one, or try again in some minutes");
        }
        // Without tokens everyone is the same caller.
        if self.hall.settings.open || open.len() < limits.sessions_each {
            return None;
        }
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let own = owners.iter().filter(|(session, owner)| **owner == who.id && open.contains_key(session.as_str()));
        (own.count() >= limits.sessions_each)
            .then_some("this token has too many sessions open; end one with DELETE, or give each client its own token")
    }

    /// A session is the business of the caller who began it; to others it does not exist.
    fn is_foreign(&self, headers: &HeaderMap, who: &Principal) -> bool {
        let Some(session) = headers.get(SESSION).and_then(|session| session.to_str().ok()) else { return false };
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(session).is_some_and(|owner| *owner != who.id)
    }

    async fn remember(&self, session: &HeaderValue, who: &Principal) {
        let Ok(session) = session.to_str() else { return };
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|session, _| open.contains_key(session.as_str()));
        owners.insert(session.to_owned(), who.id.clone());
    }
}

pub(crate) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    if endpoint.is_foreign(request.headers(), &who) {
        return reply::rpc_error(StatusCode::NOT_FOUND, &Value::Null, -32600, NO_SESSION);
    }
    let shape = match shape(request.uri()) {
        Ok(shape) => shape,
        Err(message) => {
            let refusal = inspect::Refusal::new(ErrorKind::InvalidRequest, message);
            return reply::value(StatusCode::BAD_REQUEST, &refusal.to_json());
        }
    };
    if request.method() == Method::POST {
        return endpoint.post(request, &who, shape).await;
    }
    let ends = request.method() == Method::DELETE;
    let (parts, _) = request.into_parts();
    let request = Request::from_parts(parts, Full::<Bytes>::default());
    let (mut parts, body) = CALLER.scope(who, endpoint.service(shape).handle(request)).await.into_parts();
    if ends && parts.status == StatusCode::ACCEPTED {
        // The Python client takes anything but 200 and 204 for a failure.
        parts.status = StatusCode::NO_CONTENT;
    }
    if parts.status.is_client_error() || parts.status.is_server_error() {
        return explain(parts, body, &[]).await;
    }
    Response::from_parts(parts, Body::new(body))
}

/// The form of the tools that a client chose in the address.
pub(crate) fn shape(uri: &http::Uri) -> Result<Shape, String> {
    let chosen = query::pairs(uri.query().unwrap_or_default()).find(|(key, _)| key == "tools");
    match chosen.as_ref().map(|(_, shape)| shape.as_str()) {
        None | Some("folded") => Ok(Shape::Folded),
        Some("unfolded") => Ok(Shape::Unfolded),
        Some(other) => Err(format!("`tools` in the address is `folded` or `unfolded`, not `{}`", inspect::clip(other))),
    }
}

/// How `/mcp` is set up; the yardstick server uses the same.
pub(crate) fn config(stop: CancellationToken, body: usize) -> StreamableHttpServerConfig {
    // Host and Origin are checked for all doors before rmcp sees the request.
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

/// MCP wants both forms named; `curl` and its like name neither and take what comes.
fn accepts_anything(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).is_none_or(|accept| accept.as_bytes() == b"*/*")
}

fn is_initialize(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Value>(bytes).is_ok_and(|message| message["method"] == "initialize")
}

fn id_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).map(|message| inspect::id_of(&message)).unwrap_or_default()
}

/// Gives a refusal in plain text a JSON-RPC body; one that has it stays as it is.
async fn explain<B>(mut parts: http::response::Parts, body: B, request: &[u8]) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if is_json(&parts.headers) {
        if parts.status == StatusCode::NOT_FOUND {
            return name_method(parts, body, request).await;
        }
        return Response::from_parts(parts, Body::new(body));
    }
    let refusal = match parts.status {
        // This is how rmcp says that it could not read the message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            parts.status = StatusCode::BAD_REQUEST;
            inspect::refusal(request)
        }
        _ => {
            let text = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let message = in_own_words(parts.status, &text);
            let kind = if parts.status.is_server_error() { ErrorKind::Internal } else { ErrorKind::InvalidRequest };
            inspect::Refusal { id: id_of(request), kind, message }
        }
    };
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(refusal.to_json().to_string()))
}

/// rmcp's words, or better ones where they lack the remedy.
fn in_own_words(status: StatusCode, text: &[u8]) -> String {
    match status {
        StatusCode::NOT_FOUND => NO_SESSION.to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "this method is not served at /mcp; send messages with POST".to_owned(),
        StatusCode::BAD_REQUEST if text.ends_with(b"Session ID is required") => {
            "the header `Mcp-Session-Id` is missing; begin again with `initialize`, whose answer has it".to_owned()
        }
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Where rmcp itself has no such method, its message is the bare name; ours says what is the matter.
async fn name_method<B>(mut parts: http::response::Parts, body: B, request: &[u8]) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let code = serde_json::from_slice::<Value>(&bytes).map(|answer| answer["error"]["code"] == -32601);
    let request = serde_json::from_slice::<Value>(request).unwrap_or_default();
    let (Ok(true), Some(method)) = (code, request["method"].as_str()) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    parts.headers.remove(CONTENT_LENGTH);
    let refusal = inspect::Refusal { id: inspect::id_of(&request), ..inspect::Refusal::unknown_method(method) };
    Response::from_parts(parts, Body::from(refusal.to_json().to_string()))
}

/// The answer to a call counts as a running call until it is out.
struct Answer<B> {
    body: B,
    _running: TaskTrackerToken,
}

impl<B: hyper::body::Body + Unpin> hyper::body::Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
