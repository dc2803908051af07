//! Checks every request to the pages behind the login, and the headers of every answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::middleware::Next;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use sinew_tool::json;

use crate::ConsoleState;
use crate::browser::{Browser, OWN_HEADER};
use crate::page;
use crate::sessions::Session;

/// In front of the paths of the API.
const API: &str = "/console/api/";

/// Passes a request on with its session, or leads to the login.
pub(crate) async fn require_session(
    State(state): State<Arc<ConsoleState>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let browser = Browser::of(&state, &request);
    let is_page = !request.uri().path().starts_with(API) && request.uri().path() != "/console/stream";
    if !is_page && browser.is_other_page(request.headers()) {
        // It could read nothing of the answer, but looking at a phone is a call that is recorded.
        return problem(StatusCode::FORBIDDEN, "foreign_page", &browser.foreign_page());
    }
    let Some(session) = find_session(&state, &browser, request.headers()) else {
        return match is_page {
            true => page::redirect(&login_address(request.uri())),
            false => problem(StatusCode::UNAUTHORIZED, "unauthorized", "you are signed out; sign in again"),
        };
    };
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    if is_change && !browser.is_own_page(request.headers()) {
        return problem(StatusCode::FORBIDDEN, "foreign_page", &browser.foreign_page());
    }
    if is_change && !is_page && !request.headers().contains_key(OWN_HEADER) {
        let message = "requests that change something need the header `X-Sinew: 1`";
        return problem(StatusCode::FORBIDDEN, "header_missing", message);
    }
    request.extensions_mut().insert(session.clone());
    request.extensions_mut().insert(browser);
    let (who, ended) = (session.who.clone(), session.ended.clone());
    let has_ended = ended.clone();
    let answer = |request| async move {
        let signed_out = || problem(StatusCode::UNAUTHORIZED, "unauthorized", "you are signed out; sign in again");
        has_ended.run_until_cancelled(next.run(request)).await.unwrap_or_else(signed_out)
    };
    state.host.serve(who, ended, request, answer).await
}

pub(crate) fn find_session(state: &ConsoleState, browser: &Browser, headers: &HeaderMap) -> Option<Arc<Session>> {
    browser.cookies(headers).into_iter().find_map(|secret| state.sessions.find(secret, &state.host.gateway))
}

/// The login, which leads back to the page that was asked for.
fn login_address(uri: &Uri) -> String {
    let page = uri.path().trim_start_matches("/console/");
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let wanted = format!("{page}{query}");
    match wanted.is_empty() {
        true => "login".to_owned(),
        false => format!("login?next={}", page::encode(&wanted)),
    }
}

/// Answers a request of the API for the person of the session.
pub(crate) async fn pass_to_api(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    mut request: Request,
) -> Response<Body> {
    let path = request.uri().path_and_query().map(|path| path.as_str().trim_start_matches("/console"));
    let Some(uri) = path.and_then(|path| path.parse().ok()) else {
        return problem(StatusCode::BAD_REQUEST, "bad_path", "the path cannot be read");
    };
    *request.uri_mut() = uri;
    // Sessions and tokens are different ways in.
    request.headers_mut().remove(header::COOKIE);
    request.headers_mut().remove(header::AUTHORIZATION);
    state.host.api(session.who.clone(), session.role, request).await
}

pub(crate) fn problem(status: StatusCode, error: &str, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({"error": error, "message": message}).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Where the form of one page leads besides ours: browsers also check the redirect that answers it.
#[derive(Clone)]
pub(crate) struct FormTarget(pub(crate) String);

/// What browsers are told about every answer.
pub(crate) async fn add_headers(
    State(state): State<Arc<ConsoleState>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let mut response = next.run(request).await;
    let target = response.extensions_mut().remove::<FormTarget>();
    let ancestors = match state.settings.frame_ancestors.as_slice() {
        some @ [_, ..] if target.is_none() => some.join(" "),
        // A button that lets somebody in is never shown inside a page of others.
        _ => "'none'".to_owned(),
    };
    let target = target.map(|target| format!(" {}", target.0)).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
         form-action 'self'{target}; base-uri 'none'; frame-ancestors {ancestors}; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in FIXED {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// With the policy `no-referrer` browsers would send `Origin: null` with our own forms.
const FIXED: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
];
