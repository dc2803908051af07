//! The addresses of sign-in: the documents that clients look for, and where they get and give back tokens. The page on
//! which a person agrees is the console's.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::routing::{get, post};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};
use sinew_api::{PersonRole, SignInEntry, SignIns};
use sinew_signin::{AuthorizationServer, ConnectRole, OAuthError, SignIn, SignInView};
use sinew_tool::{ErrorKind, ToolError};

use crate::api::{Authenticated, Change, answer};
use crate::state::FrontState;
use crate::{query, reply};

/// Bytes of a form of a client, and of a registration.
const MAX_FORM: usize = 16 << 10;
const MAX_REGISTRATION: usize = 64 << 10;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Bytes of the query that opens the page of a person.
const MAX_QUERY: usize = 8 << 10;

const WELL_KNOWN: [&str; 3] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];
const OWN: [&str; 4] = ["/oauth/authorize", "/oauth/token", "/oauth/register", "/oauth/revoke"];

/// Paths that need no token, from pages of any origin: no cookie and no token of ours is taken there.
pub(crate) fn is_open_path(path: &str) -> bool {
    OWN.contains(&path)
        || WELL_KNOWN
            .iter()
            .any(|known| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

pub(crate) fn routes(front: &Arc<FrontState>, sign_in: &SignIn) -> Router {
    let known = WELL_KNOWN.iter().fold(Router::new(), |router, path| {
        let handler = get(document).options(preflight);
        router.route(path, handler.clone()).route(&format!("{path}/{{*rest}}"), handler)
    });
    let own = sign_in.own().map(|_| {
        Router::new()
            .route("/oauth/authorize", get(authorize))
            .route("/oauth/token", post(token).options(preflight))
            .route("/oauth/register", post(register).options(preflight))
            .route("/oauth/revoke", post(revoke).options(preflight))
    });
    known.merge(own.unwrap_or_default()).layer(axum::middleware::map_response(add_headers)).with_state(front.clone())
}

/// Clients in browsers read these from any page. Nothing of a person is in them.
async fn add_headers(mut response: Response<Body>) -> Response<Body> {
    const FIXED: [(HeaderName, &str); 3] = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in FIXED {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn preflight() -> Response<Body> {
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, mcp-protocol-version"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn document(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    match front.sign_in.as_deref().and_then(|sign_in| sign_in.document(request.uri().path())) {
        Some(document) => reply::value(StatusCode::OK, &document),
        None => reply::problem(StatusCode::NOT_FOUND, "not_found", "there is no such document at this gateway"),
    }
}

/// Leads to the page of the console. Browsers send its cookie, which is for the console's own pages alone, only where a
/// page of ours leads there; so this is a page and not a redirect.
async fn authorize(request: Request) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    let is_plain = query.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$'()*+,;=%&".contains(&byte));
    if query.len() > MAX_QUERY || !is_plain {
        return reply::problem(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "the query is too long, or has characters that none has",
        );
    }
    let address = format!("../console/authorize?{}", query.replace('&', "&amp;").replace('\'', "%27"));
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={address}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Sign in · Sinew</title></head>\
         <body><main><h1>Sign in</h1><p><a href=\"{address}\">Go on to Sinew</a></p></main></body></html>"
    );
    let mut response = Response::new(Body::from(page));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn token(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let form = match form(request).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    work(&front, move |front, own| own.token(&form, |person| may_connect(front, own, person))).await
}

async fn revoke(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let form = match form(request).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    work(&front, move |_, own| own.revoke(&form).map(|()| json!({}))).await
}

async fn register(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let body = match body(request, MAX_REGISTRATION).await {
        Ok(body) => body,
        Err(refused) => return *refused,
    };
    let mut response = work(&front, move |_, own| own.register(&body)).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// Does what may write to the disk, away from the threads that serve calls.
async fn work(
    front: &Arc<FrontState>,
    work: impl FnOnce(&FrontState, &AuthorizationServer) -> Result<Value, OAuthError> + Send + 'static,
) -> Response<Body> {
    let front = front.clone();
    let done = tokio::task::spawn_blocking(move || {
        let off = OAuthError::new("server_error", "this gateway issues no tokens");
        front.sign_in.as_deref().and_then(SignIn::own).map_or(Err(off), |own| work(&front, own))
    });
    match done.await {
        Ok(Ok(value)) => reply::value(StatusCode::OK, &value),
        Ok(Err(error)) => refused(&error),
        Err(_) => reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn refused(error: &OAuthError) -> Response<Body> {
    let status = match error.code {
        "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
        "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "access_denied" => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    };
    reply::value(status, &Value::from(error))
}

async fn form(request: Request) -> Result<Vec<(String, String)>, Box<Response<Body>>> {
    let is_form = |headers: &HeaderMap| {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
    };
    if request.method() != Method::POST || !is_form(request.headers()) {
        let message = "send a form: POST with `Content-Type: application/x-www-form-urlencoded`";
        return Err(Box::new(refused(&OAuthError::new("invalid_request", message))));
    }
    let bytes = body(request, MAX_FORM).await?;
    Ok(query::pairs(&String::from_utf8_lossy(&bytes)).collect())
}

async fn body(request: Request, limit: usize) -> Result<Vec<u8>, Box<Response<Body>>> {
    let reading = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(request.into_body(), limit));
    match reading.await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        _ => {
            let message = format!(
                "the body has more than {limit} bytes, ended early or took longer than {} s",
                BODY_TIME.as_secs()
            );
            Err(Box::new(refused(&OAuthError::new("invalid_request", &message))))
        }
    }
}

/// The least role of people who may let a client in.
pub fn connect_role(own: &AuthorizationServer) -> PersonRole {
    match own.role() {
        ConnectRole::Admin => PersonRole::Admin,
        ConnectRole::Approver => PersonRole::Approver,
        ConnectRole::Viewer => PersonRole::Viewer,
    }
}

/// Whether a person still may let clients in.
fn may_connect(front: &FrontState, own: &AuthorizationServer, person: &str) -> bool {
    let people = front.console.as_deref().map(|pages| pages.people()).unwrap_or_default();
    people.iter().any(|known| known.name == person && known.role >= connect_role(own))
}

/// Ends the sign-ins of somebody who is gone, or is perhaps somebody else now.
pub(crate) async fn end_of_person(front: &Arc<FrontState>, person: &str) {
    let (front, person) = (front.clone(), person.to_lowercase());
    let ending = tokio::task::spawn_blocking(move || {
        if let Some(own) = front.sign_in.as_deref().and_then(SignIn::own) {
            own.end_people(|of| of.to_lowercase() == person);
        }
    });
    let _ = ending.await;
}

fn own(front: &FrontState) -> Result<&AuthorizationServer, ToolError> {
    let off =
        || ToolError::new(ErrorKind::Unsupported, "clients do not sign in at this gateway; see `docs/sign-in.md`");
    front.sign_in.as_deref().and_then(SignIn::own).ok_or_else(off)
}

pub(crate) async fn sign_ins(State(front): State<Arc<FrontState>>) -> Response<Body> {
    let own = front.sign_in.as_deref().and_then(SignIn::own);
    let sign_ins = own.map(|own| own.list().into_iter().map(entry).collect()).unwrap_or_default();
    answer(Ok(SignIns { enabled: own.is_some(), sign_ins }))
}

pub(crate) async fn end_sign_in(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let change = Change { what: "end_sign_in", device: None, details: json!({"id": id}) };
    answer(change.record(&front, &who, || own(&front)?.end(&id).map(entry)))
}

fn entry(view: SignInView) -> SignInEntry {
    let SignInView { id, person, client, place, scope, created, last_use, ends } = view;
    SignInEntry {
        caller: format!("{person}@{place}"),
        id,
        person,
        client,
        place,
        scope,
        created,
        last_use,
        ends,
        more: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_addresses_of_sign_in_need_no_token() {
        for open in
            ["/oauth/token", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
        {
            assert!(is_open_path(open), "{open}");
        }
        for other in
            ["/mcp", "/oauth", "/oauth/", "/oauth/tokens", "/.well-known/", "/.well-known/oauth-protected-resourcex"]
        {
            assert!(!is_open_path(other), "{other}");
        }
    }
}
