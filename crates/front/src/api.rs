//! `/api/v1`: what the command line and the console use.
//!
//! Who may use which route is in the table of `sinew_api`; the guard has checked it before a handler runs.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use http::{Response, StatusCode, request::Parts};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sinew_api::{
    Accept, Approve, Audit, CallRequest, CreatedToken, Devices, Labels, NewToken, Rename, RequestFailure, TokenList,
    TokenRole, Tools, WaitingBoards,
};
use sinew_gateway::{Label, Principal, Request as Call, Role, Shape, Update};
use sinew_tool::error::{Actor, Retry};
use sinew_tool::{ErrorKind, ToolError};

use crate::body::{TOO_SLOW, Unread};
use crate::hall::Hall;
use crate::{inspect, query, reply, words};

/// Longer waits are cut to this; proxies give up on a silent connection after about a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(55);

/// Whoever the guard let in.
pub(crate) struct Who(Arc<Principal>);

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, Response<Body>> {
        let who = parts.extensions.get::<Arc<Principal>>().cloned();
        who.map(Who).ok_or_else(|| reply::empty(StatusCode::UNAUTHORIZED))
    }
}

/// The parameters of the address.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query, Self::Rejection> {
        Ok(Query(query::pairs(parts.uri.query().unwrap_or_default()).collect()))
    }
}

impl Query {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Result<Option<u64>, ToolError> {
        let parse = |text: &str| {
            let wrong = || format!("`{key}` must be a whole number that is not negative, not `{text}`");
            text.parse().map_err(|_| ToolError::new(ErrorKind::InvalidArguments, wrong()))
        };
        self.text(key).map(parse).transpose()
    }
}

pub(crate) async fn document() -> Response<Body> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(sinew_api::document);
    reply::value(StatusCode::OK, &DOCUMENT)
}

pub(crate) async fn devices(State(hall): State<Arc<Hall>>) -> Response<Body> {
    answer(Ok(Devices { devices: hall.gateway.devices().into_iter().map(words::device).collect() }))
}

pub(crate) async fn rename(State(hall): State<Arc<Hall>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    let renamed = async {
        let Rename { name } = body(&hall, request).await?;
        hall.gateway.rename(&id, &name).map(words::device)
    };
    answer(renamed.await)
}

pub(crate) async fn label(State(hall): State<Arc<Hall>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    let labelled = async {
        let Labels { add, remove } = body(&hall, request).await?;
        let parse = |labels: Vec<String>| labels.iter().map(|label| Label::parse(label)).collect::<Result<Vec<_>, _>>();
        hall.gateway.label(&id, &parse(add)?, &parse(remove)?).map(words::device)
    };
    answer(labelled.await)
}

/// What is held back of a device's tools, and why.
pub(crate) async fn changes(State(hall): State<Arc<Hall>>, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.changes(&id))
}

pub(crate) async fn forget(State(hall): State<Arc<Hall>>, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.forget(&id).map(words::device))
}

pub(crate) async fn pin(State(hall): State<Arc<Hall>>, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.pin(&id).map(words::device))
}

pub(crate) async fn unpin(State(hall): State<Arc<Hall>>, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.unpin(&id).map(words::device))
}

/// Takes what is held back: the tool that is named, else all.
pub(crate) async fn accept(State(hall): State<Arc<Hall>>, Path(id): Path<String>, request: Request) -> Response<Body> {
    let accepted = async {
        let Accept { tool } = body(&hall, request).await?;
        hall.gateway.accept(&id, tool.as_deref()).map(words::device)
    };
    answer(accepted.await)
}

/// The boards that wait for approval.
pub(crate) async fn boards(State(hall): State<Arc<Hall>>) -> Response<Body> {
    answer(Ok(WaitingBoards { boards: hall.gateway.waiting().into_iter().map(words::board).collect() }))
}

pub(crate) async fn approve(State(hall): State<Arc<Hall>>, request: Request) -> Response<Body> {
    let approved = async {
        let Approve { code } = body(&hall, request).await?;
        hall.gateway.approve(&code).map(words::board)
    };
    answer(approved.await)
}

pub(crate) async fn tools(State(hall): State<Arc<Hall>>, Who(who): Who, query: Query) -> Response<Body> {
    let listed = || -> Result<Tools, ToolError> {
        let device = query.text("device").map(|text| hall.gateway.device(text)).transpose()?.map(|device| device.id);
        let shape = match (query.text("shape"), &device) {
            (Some("unfolded"), _) | (None, Some(_)) => Shape::Unfolded,
            (Some("folded") | None, None) => Shape::Folded,
            (Some(_), _) => {
                let message = "`shape` must be `folded` or `unfolded`; with `device` it is `unfolded`";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let list = hall.gateway.list(&who, shape);
        let fitting = list.tools.iter().filter(|tool| device.is_none() || tool.device == device);
        Ok(Tools { tools: fitting.map(|tool| words::tool(tool, device.is_some())).collect() })
    };
    answer(listed())
}

pub(crate) async fn call(State(hall): State<Arc<Hall>>, Who(who): Who, request: Request) -> Response<Body> {
    let called = async {
        let wanted: CallRequest = body(&hall, request).await?;
        let _running = hall.calls.token();
        let who = (*who).clone();
        let budget = wanted.timeout_ms.map(Duration::from_millis);
        let request = Call { budget, ..Call::new(who, wanted.tool, wanted.arguments, "api") };
        let outcome = match wanted.device {
            Some(device) => hall.gateway.call_on(&device, request).await,
            None => hall.gateway.call(request).await,
        };
        outcome.map(words::result)
    };
    answer(called.await)
}

/// With `wait_ms`, an empty answer is held back until something happens or the time is up.
pub(crate) async fn events(State(hall): State<Arc<Hall>>, query: Query) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 1000) as usize;
        let wait = Duration::from_millis(query.number("wait_ms")?.unwrap_or(0)).min(LONGEST_WAIT);
        let late = tokio::time::Instant::now() + wait;
        let (device, since) = (query.text("device"), query.text("since"));
        let mut watch = hall.gateway.watch();
        loop {
            let page = hall.gateway.events(device, since, limit).await?;
            if !page.events.is_empty() || tokio::time::Instant::now() >= late {
                return Ok(words::events(page));
            }
            let something =
                async { while !matches!(watch.next().await, Update::Event { .. } | Update::Devices { .. }) {} };
            tokio::select! {
                () = something => {}
                () = tokio::time::sleep_until(late) => {}
                () = hall.drain.cancelled() => return Ok(words::events(page)),
            }
        }
    };
    answer(read.await)
}

pub(crate) async fn tokens(State(hall): State<Arc<Hall>>) -> Response<Body> {
    answer(Ok(TokenList { tokens: hall.gateway.tokens().list().into_iter().map(words::token).collect() }))
}

pub(crate) async fn new_token(State(hall): State<Arc<Hall>>, request: Request) -> Response<Body> {
    let made = async {
        let NewToken { role, label, device, expires_in_s } = body(&hall, request).await?;
        let role = match (role, device) {
            (TokenRole::Client, None) => Role::Client,
            (TokenRole::Admin, None) => Role::Admin,
            (TokenRole::Device, Some(device)) if !device.is_empty() => Role::Device(device),
            _ => {
                let message = "`device` must be the id of the device for the role `device`, and left out for others";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let expires = expires_in_s.map(|seconds| unix_ms().saturating_add(seconds.saturating_mul(1000)));
        let expires = expires.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        let (view, token) = hall.gateway.tokens().create_until(role, &label, expires)?;
        Ok(CreatedToken { about: words::token(view), token })
    };
    answer(made.await)
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) async fn revoke_token(State(hall): State<Arc<Hall>>, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.tokens().revoke(&id).map(words::token))
}

pub(crate) async fn audit(State(hall): State<Arc<Hall>>, query: Query) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 10_000) as usize;
        let records = hall.gateway.audit(limit).await?;
        Ok(Audit { records: records.into_iter().map(words::record).collect() })
    };
    answer(read.await)
}

async fn body<T: DeserializeOwned>(hall: &Hall, request: Request) -> Result<T, ToolError> {
    let (parts, body) = request.into_parts();
    let message = crate::body::read(hall, &parts.headers, body).await.map_err(|unread| match unread {
        Unread::Refused(refusal) => refusal.to_error(),
        Unread::Slow => ToolError::new(ErrorKind::InvalidRequest, TOO_SLOW),
        Unread::Broken => ToolError::new(ErrorKind::InvalidRequest, "the request ended early; send it again"),
    })?;
    serde_json::from_slice(&message.bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ToolError::new(ErrorKind::InvalidArguments, error.to_string()),
        _ => ToolError::new(ErrorKind::Parse, inspect::refusal(&message.bytes).message),
    })
}

fn answer(answer: Result<impl Serialize, ToolError>) -> Response<Body> {
    match answer {
        Ok(answer) => match serde_json::to_vec(&answer) {
            Ok(body) => reply::json_body(StatusCode::OK, body),
            Err(_) => reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
        },
        Err(error) => {
            let failure = RequestFailure { error: error.to_object(), code: error.kind.row().code };
            let body = serde_json::to_vec(&failure).unwrap_or_default();
            reply::json_body(status(error.kind), body)
        }
    }
}

/// The HTTP status that comes nearest to a row of the table.
fn status(kind: ErrorKind) -> StatusCode {
    let row = kind.row();
    match (kind, row.retry, row.actor) {
        (ErrorKind::UnknownTool | ErrorKind::UnknownDevice | ErrorKind::UnknownResource, ..) => StatusCode::NOT_FOUND,
        (ErrorKind::PermissionDenied, ..) => StatusCode::FORBIDDEN,
        (ErrorKind::TooLarge, ..) => StatusCode::PAYLOAD_TOO_LARGE,
        (ErrorKind::Timeout, ..) => StatusCode::GATEWAY_TIMEOUT,
        (ErrorKind::Internal, ..) => StatusCode::INTERNAL_SERVER_ERROR,
        (_, Retry::Later, _) => StatusCode::SERVICE_UNAVAILABLE,
        (_, _, Actor::Device) => StatusCode::BAD_GATEWAY,
        _ => StatusCode::BAD_REQUEST,
    }
}
