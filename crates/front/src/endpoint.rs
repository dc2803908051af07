//! `/mcp`: Streamable HTTP for both eras, around rmcp's service.
//!
//! rmcp answers what it cannot read in plain text. Here every refusal gets a JSON-RPC body, a session
//! belongs to the caller that began it, and there is a limit to how many may be open.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use sinew_gateway::Principal;
use sinew_tool::ErrorKind;
use tokio_util::sync::CancellationToken;

use crate::express::Express;
use crate::hall::Hall;
use crate::listing::Form;
use crate::mcp::Mcp;
use crate::sessions::{NoVisit, Sessions};
use crate::{body, inspect, reply};

const SESSION: &str = "mcp-session-id";
const NO_SESSION: &str = "no such session: it ended, or the gateway started anew; begin again with `initialize`";

type Service = StreamableHttpService<Mcp, LocalSessionManager>;

tokio::task_local! {
    /// The caller of the request that rmcp is being handed: it asks for a handler without saying for
    /// whom.
    static CALLER: Arc<Principal>;
}

pub(crate) struct Endpoint {
    hall: Arc<Hall>,
    /// One for each form of the list.
    services: [Service; 4],
    sessions: Arc<Sessions>,
    /// Ends every stream that is still open.
    pub stop: CancellationToken,
}

impl Endpoint {
    pub(crate) fn new(hall: Arc<Hall>) -> Arc<Endpoint> {
        let stop = CancellationToken::new();
        let sessions = Sessions::new(&hall.settings.limits, hall.settings.open);
        let service = |form| {
            let config = config(stop.clone(), hall.settings.limits.body);
            let hall = hall.clone();
            let make = move || Ok(Mcp::new(hall.clone(), form, "mcp", CALLER.try_with(Arc::clone).ok()));
            StreamableHttpService::new(make, sessions.manager.clone(), config)
        };
        hall.tasks.spawn(end_revoked(hall.clone(), sessions.clone(), stop.clone()));
        Arc::new(Endpoint { services: Form::ALL.map(service), sessions, stop, hall })
    }

    async fn post(&self, request: Request, who: &Arc<Principal>, form: Form) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let refused = |status, refusal: inspect::Refusal| reply::value(status, &refusal.to_json());
        if !is_json(&parts.headers) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, inspect::Refusal::content_type());
        }
        let message = match body::read(&self.hall, &parts.headers, body).await {
            Ok(message) => message,
            Err(body::Unread::Refused(refusal)) => return refused(body::status(&refusal), refusal),
            Err(body::Unread::Slow) => return body::too_slow(),
            Err(body::Unread::Broken) => return reply::empty(StatusCode::BAD_REQUEST),
        };
        let body::Message { bytes, share } = message;
        if accepts_anything(&parts.headers) {
            parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        }
        let running = self.hall.calls.token();
        let session = session_of(&parts.headers).map(str::to_owned);
        if session.is_none()
            && let Some(express) = Express::read(&parts.headers, &bytes)
            && !self.hall.listing(who, form).annotated
        {
            let (parts, body) = express.run(&self.hall, who, form.shape, &self.stop).await.into_parts();
            return Response::from_parts(parts, Body::new(Answer { body, _open: (running, share) }));
        }
        if let Some(refusal) = inspect::refusal_of_readable(&bytes) {
            return refused(StatusCode::OK, refusal);
        }
        let glance = Glance::at(&bytes);
        let (mut visit, mut opening) = (None, None);
        match &session {
            Some(session) => match self.sessions.visit(session, who, glance.request_id()) {
                Ok(visited) => visit = visited,
                Err(NoVisit::Foreign) => return no_session(),
                Err(NoVisit::SameId) => {
                    let refusal = inspect::Refusal::new(ErrorKind::InvalidRequest, inspect::SAME_ID);
                    return refused(StatusCode::BAD_REQUEST, inspect::Refusal { id: id_of(&bytes), ..refusal });
                }
            },
            None if glance.method == Some("initialize".into()) => match self.sessions.open(who).await {
                Ok(place) => opening = Some(place),
                Err(message) => {
                    return reply::rpc_error(StatusCode::SERVICE_UNAVAILABLE, &id_of(&bytes), -32603, message);
                }
            },
            None => {}
        }
        let request = Request::from_parts(parts, Full::new(bytes.clone()));
        let response = CALLER.scope(who.clone(), self.service(form).handle(request)).await;
        if let (Some(opening), Some(Ok(session))) = (opening, response.headers().get(SESSION).map(HeaderValue::to_str))
        {
            opening.opened(session);
        }
        let (parts, body) = response.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return explain(parts, body, &bytes).await;
        }
        Response::from_parts(parts, Body::new(Answer { body, _open: (running, share, visit) }))
    }

    fn service(&self, form: Form) -> &Service {
        let place = Form::ALL.iter().position(|one| *one == form).unwrap_or_default();
        &self.services[place]
    }
}

/// Ends the sessions of tokens that are no longer valid.
async fn end_revoked(hall: Arc<Hall>, sessions: Arc<Sessions>, stop: CancellationToken) {
    let tokens = hall.gateway.tokens();
    let mut revocations = tokens.revocations();
    while let Some(Ok(())) = stop.run_until_cancelled(revocations.changed()).await {
        sessions.end(|owner| !tokens.is_valid(owner)).await;
    }
}

fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).map(|session| session.to_str().unwrap_or_default())
}

/// A session is the business of the caller who began it; to others it does not exist.
fn no_session() -> Response<Body> {
    reply::rpc_error(StatusCode::NOT_FOUND, &Value::Null, -32600, NO_SESSION)
}

pub(crate) async fn handle(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let form = match Form::of(request.uri()) {
        Ok(form) => form,
        Err(message) => {
            let refusal = inspect::Refusal::new(ErrorKind::InvalidRequest, message);
            return reply::value(StatusCode::BAD_REQUEST, &refusal.to_json());
        }
    };
    if request.method() == Method::POST {
        return endpoint.post(request, &who, form).await;
    }
    let ends = request.method() == Method::DELETE;
    let visit = match session_of(request.headers()).map(|session| endpoint.sessions.visit(session, &who, None)) {
        Some(Err(_)) => return no_session(),
        Some(Ok(visit)) => visit,
        None => None,
    };
    let (parts, _) = request.into_parts();
    let request = Request::from_parts(parts, Full::<Bytes>::default());
    let (mut parts, body) = CALLER.scope(who, endpoint.service(form).handle(request)).await.into_parts();
    if ends && parts.status == StatusCode::ACCEPTED {
        // The Python client takes anything but 200 and 204 for a failure.
        parts.status = StatusCode::NO_CONTENT;
    }
    if parts.status.is_client_error() || parts.status.is_server_error() {
        return explain(parts, body, &[]).await;
    }
    Response::from_parts(parts, Body::new(Answer { body, _open: visit }))
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

/// As much of a message as decides about its session.
#[derive(Default, Deserialize)]
struct Glance<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Value,
}

impl Glance<'_> {
    fn at(bytes: &[u8]) -> Glance<'_> {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// The id of a request; notifications and answers have none.
    fn request_id(&self) -> Option<String> {
        (self.method.is_some() && !self.id.is_null()).then(|| self.id.to_string())
    }
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

/// An answer, and what stays open until it is out: the call counts as running, its request in memory, its session as
/// busy.
struct Answer<B, O> {
    body: B,
    _open: O,
}

impl<B: hyper::body::Body + Unpin, O: Unpin> hyper::body::Body for Answer<B, O> {
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
