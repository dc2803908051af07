//! `/api/v1`: what the command line and the console use.
//!
//! Clients read devices, tools and events and call tools; the rest is for administrators.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::routing::{delete, get, post};
use http::{Response, StatusCode, request::Parts};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sinew_gateway::{Change, Principal, PublicTool, Request as Call, Role, Shape, TokenView};
use sinew_tool::error::{Actor, Retry};
use sinew_tool::{Args, ErrorKind, Outcome, Silent, ToolError};

use crate::body::{TOO_SLOW, Unread};
use crate::hall::Hall;
use crate::{inspect, query, reply};

/// Longer waits are cut to this; proxies give up on a silent connection after about a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(55);

pub(crate) fn routes(hall: Arc<Hall>) -> Router {
    Router::new()
        .route("/api/v1/devices", get(devices))
        .route("/api/v1/devices/{id}/rename", post(rename))
        .route("/api/v1/devices/{id}/forget", post(forget))
        .route("/api/v1/devices/{id}/changes", get(changes))
        .route("/api/v1/devices/{id}/pin", post(pin))
        .route("/api/v1/devices/{id}/unpin", post(unpin))
        .route("/api/v1/devices/{id}/accept", post(accept))
        .route("/api/v1/boards", get(boards))
        .route("/api/v1/boards/approve", post(approve_board))
        .route("/api/v1/tools", get(tools))
        .route("/api/v1/call", post(call))
        .route("/api/v1/events", get(events))
        .route("/api/v1/tokens", get(list_tokens).post(new_token))
        .route("/api/v1/tokens/{id}", delete(revoke_token))
        .route("/api/v1/audit", get(audit))
        .with_state(hall)
}

/// Whoever the guard let in.
struct Who(Arc<Principal>);

/// Whoever the guard let in, if that is an administrator.
struct Admin;

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, Response<Body>> {
        let who = parts.extensions.get::<Arc<Principal>>().cloned();
        who.map(Who).ok_or_else(|| reply::empty(StatusCode::UNAUTHORIZED))
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Admin, Response<Body>> {
        let Who(who) = Who::from_request_parts(parts, state).await?;
        if who.role == Role::Admin {
            return Ok(Admin);
        }
        let message = "this needs an admin token; the gateway's own token is one";
        Err(reply::problem(StatusCode::FORBIDDEN, "forbidden", message))
    }
}

/// The parameters of the address.
struct Query(Vec<(String, String)>);

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

async fn devices(State(hall): State<Arc<Hall>>, _: Who) -> Response<Body> {
    let devices: Vec<Value> = hall.gateway.devices().iter().map(|device| device.to_json()).collect();
    answer(Ok(json!({"devices": devices})))
}

async fn rename(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>, request: Request) -> Response<Body> {
    #[derive(Deserialize)]
    struct Rename {
        name: String,
    }
    let renamed = async {
        let Rename { name } = body(&hall, request).await?;
        Ok(hall.gateway.rename(&id, &name)?.to_json())
    };
    answer(renamed.await)
}

/// What is held back of a device's tools, and why.
async fn changes(State(hall): State<Arc<Hall>>, _: Who, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.changes(&id))
}

async fn forget(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.forget(&id).map(|device| device.to_json()))
}

async fn pin(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.pin(&id).map(|device| device.to_json()))
}

async fn unpin(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.unpin(&id).map(|device| device.to_json()))
}

/// Takes what is held back: the tool that is named, else all.
async fn accept(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>, request: Request) -> Response<Body> {
    #[derive(Deserialize)]
    struct Wanted {
        tool: Option<String>,
    }
    let accepted = async {
        let Wanted { tool } = body(&hall, request).await?;
        Ok(hall.gateway.accept(&id, tool.as_deref())?.to_json())
    };
    answer(accepted.await)
}

/// The boards that wait to be let in.
async fn boards(State(hall): State<Arc<Hall>>, _: Admin) -> Response<Body> {
    answer(Ok(json!({"boards": hall.gateway.waiting()})))
}

async fn approve_board(State(hall): State<Arc<Hall>>, _: Admin, request: Request) -> Response<Body> {
    #[derive(Deserialize)]
    struct Approval {
        code: String,
    }
    let approved = async {
        let Approval { code } = body(&hall, request).await?;
        Ok(json!(hall.gateway.approve(&code)?))
    };
    answer(approved.await)
}

async fn tools(State(hall): State<Arc<Hall>>, Who(who): Who, query: Query) -> Response<Body> {
    let listed = || -> Result<Value, ToolError> {
        let device = match query.text("device") {
            // Where there is none, this says so in the gateway's words.
            Some(text) => hall.gateway.changes(text)?["id"].as_str().map(str::to_owned),
            None => None,
        };
        let shape = match (query.text("shape"), &device) {
            (Some("unfolded"), _) | (None, Some(_)) => Shape::Unfolded,
            (Some("folded") | None, None) => Shape::Folded,
            (Some(_), _) => {
                let message = "`shape` must be `folded` or `unfolded`; with `device` it is `unfolded`";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let list = hall.gateway.list(&who, shape);
        let fitting = list
            .tools
            .iter()
            .filter(|tool| device.is_none() || tool.device.as_ref().map(|id| id.as_str()) == device.as_deref());
        let entry = |public: &PublicTool| {
            let mut entry = public.tool.to_json();
            if device.is_some() {
                // Of one device, also the name it knows the tool by.
                entry["own_name"] = json!(public.own_name);
            }
            entry
        };
        Ok(json!({"tools": fitting.map(entry).collect::<Vec<_>>()}))
    };
    answer(listed())
}

async fn call(State(hall): State<Arc<Hall>>, Who(who): Who, request: Request) -> Response<Body> {
    #[derive(Deserialize)]
    struct Wanted {
        device: Option<String>,
        tool: String,
        #[serde(default)]
        arguments: Args,
        timeout_ms: Option<u64>,
    }
    let called = async {
        let wanted: Wanted = body(&hall, request).await?;
        let _running = hall.calls.token();
        let who = (*who).clone();
        let budget = wanted.timeout_ms.map(Duration::from_millis);
        let outcome = match wanted.device {
            Some(device) => {
                let (tool, args) = (wanted.tool.as_str(), wanted.arguments);
                hall.gateway.call_on(who, &device, tool, args, Arc::new(Silent), budget, "api").await
            }
            None => {
                let (name, args, caller) = (wanted.tool, wanted.arguments, Arc::new(Silent));
                let request = Call { who, name, args, shape: Shape::Folded, caller, budget, door: "api" };
                hall.gateway.call(request).await
            }
        };
        outcome.map(shown)
    };
    answer(called.await)
}

fn shown(outcome: Outcome) -> Value {
    let mut result = json!({"content": outcome.content.iter().map(|item| item.to_json()).collect::<Vec<_>>()});
    if let Some(structured) = outcome.structured {
        result["structuredContent"] = structured;
    }
    result
}

/// With `wait_ms`, an empty answer is held back until something happens or the time is up.
async fn events(State(hall): State<Arc<Hall>>, _: Who, query: Query) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 1000) as usize;
        let wait = Duration::from_millis(query.number("wait_ms")?.unwrap_or(0)).min(LONGEST_WAIT);
        let late = tokio::time::Instant::now() + wait;
        let (device, since) = (query.text("device"), query.text("since"));
        let mut watch = hall.gateway.watch();
        loop {
            let page = hall.gateway.events(device, since, limit).await?;
            if !page.events.is_empty() || tokio::time::Instant::now() >= late {
                return Ok(json!(page));
            }
            let something =
                async { while !matches!(watch.next().await, Change::Event { .. } | Change::Devices { .. }) {} };
            tokio::select! {
                () = something => {}
                () = tokio::time::sleep_until(late) => {}
                () = hall.drain.cancelled() => return Ok(json!(page)),
            }
        }
    };
    answer(read.await)
}

async fn list_tokens(State(hall): State<Arc<Hall>>, _: Admin) -> Response<Body> {
    let tokens: Vec<Value> = hall.gateway.tokens().list().iter().map(token).collect();
    answer(Ok(json!({"tokens": tokens})))
}

async fn new_token(State(hall): State<Arc<Hall>>, _: Admin, request: Request) -> Response<Body> {
    #[derive(Deserialize)]
    struct Wanted {
        role: String,
        #[serde(default)]
        label: String,
        device: Option<String>,
    }
    let made = async {
        let wanted: Wanted = body(&hall, request).await?;
        let role = match (wanted.role.as_str(), wanted.device) {
            ("client", None) => Role::Client,
            ("admin", None) => Role::Admin,
            ("device", Some(device)) if !device.is_empty() => Role::Device(device),
            _ => {
                let message = "`role` must be `client`, `admin`, or `device` together with `device`, the device's id";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        let (view, secret) = hall.gateway.tokens().create(role, &wanted.label)?;
        let mut shown = token(&view);
        shown["token"] = json!(secret);
        Ok(shown)
    };
    answer(made.await)
}

async fn revoke_token(State(hall): State<Arc<Hall>>, _: Admin, Path(id): Path<String>) -> Response<Body> {
    answer(hall.gateway.tokens().revoke(&id).map(|view| token(&view)))
}

async fn audit(State(hall): State<Arc<Hall>>, _: Admin, query: Query) -> Response<Body> {
    let read = async {
        let limit = query.number("limit")?.unwrap_or(100).clamp(1, 10_000) as usize;
        Ok(json!({"records": hall.gateway.audit(limit).await?}))
    };
    answer(read.await)
}

fn token(view: &TokenView) -> Value {
    json!({"id": view.id, "role": view.role, "label": view.label, "device": view.device, "created": view.created})
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

fn answer(answer: Result<Value, ToolError>) -> Response<Body> {
    match answer {
        Ok(value) => reply::value(StatusCode::OK, &value),
        Err(error) => {
            let body = json!({"error": error.to_object(), "code": error.kind.row().code});
            reply::value(status(error.kind), &body)
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
