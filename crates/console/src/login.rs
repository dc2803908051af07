//! Signing in and out. The pages work without scripts, except for the link with a code.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use http::{HeaderMap, Response, StatusCode, header};
use maud::html;
use sinew_api::{PersonLogin, PersonRole};
use sinew_front::query_pairs;
use sinew_gateway::{Principal, Role};
use sinew_tool::{ErrorKind, ToolError, json};

use crate::ConsoleState;
use crate::attempts::Attempts;
use crate::browser::Browser;
use crate::guard::{find_session, problem};
use crate::page::{self, LoginPage};
use crate::people::PeopleFile;
use crate::sessions::Session;

/// Bytes of a form; a passphrase and a token are short.
const MAX_FORM: usize = 16 << 10;

/// Somebody who shows a passphrase besides a token.
pub(crate) async fn check_person(
    people: &PeopleFile,
    attempts: &Attempts,
    who: &Principal,
    login: PersonLogin,
) -> Result<(Principal, PersonRole), ToolError> {
    if !attempts.begin_of_caller(&who.id) {
        return Err(ToolError::new(ErrorKind::Busy, "too many wrong passphrases; try again in a minute"));
    }
    let Some(person) = people.check(&login.name, &login.passphrase).await else {
        return Err(ToolError::new(ErrorKind::PermissionDenied, "the name or the passphrase is wrong"));
    };
    attempts.caller_succeeded(&who.id);
    Ok((Principal::person(&person.name), person.role))
}

/// The values of a form that was sent.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// `None` where it is too long or ends early.
    pub(crate) async fn read(request: Request) -> Option<Form> {
        let bytes = axum::body::to_bytes(request.into_body(), MAX_FORM).await.ok()?;
        Some(Form(query_pairs(&String::from_utf8_lossy(&bytes)).collect()))
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }
}

pub(crate) async fn form(State(state): State<Arc<ConsoleState>>, request: Request) -> Response<Body> {
    let browser = Browser::of(&state, &request);
    let query: Vec<_> = query_pairs(request.uri().query().unwrap_or_default()).collect();
    let next = query.into_iter().find(|(key, _)| key == "next").map(|(_, next)| next).unwrap_or_default();
    if find_session(&state, &browser, request.headers()).is_some() {
        return page::redirect(own_page(&next));
    }
    page::login(&state, &LoginPage { next: &next, problem: None, name: "" }, StatusCode::OK)
}

/// Who wants to sign in, and whether that worked.
struct LoginAttempt {
    /// `token`, `passphrase` or `link`.
    by: &'static str,
    found: Result<(Principal, PersonRole), &'static str>,
}

pub(crate) async fn sign_in(State(state): State<Arc<ConsoleState>>, request: Request) -> Response<Body> {
    let browser = Browser::of(&state, &request);
    let refused = |status, why: &str, form: &Form| {
        let page = LoginPage { next: form.text("next"), problem: Some(why), name: form.text("name") };
        page::login(&state, &page, status)
    };
    if !browser.is_own_page(request.headers()) {
        return refused(StatusCode::FORBIDDEN, &browser.foreign_page(), &Form(Vec::new()));
    }
    let headers = request.headers().clone();
    let Some(form) = Form::read(request).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long or ended early", &Form(Vec::new()));
    };
    let address = browser.address.unwrap_or(IpAddr::from([0, 0, 0, 0]));
    if !state.attempts.begin_of_address(address) {
        let why = "too many wrong attempts from your address; try again in a minute";
        return refused(StatusCode::TOO_MANY_REQUESTS, why, &form);
    }
    let LoginAttempt { by, found } = check(&state, &form).await;
    let details = json!({"by": by, "address": address.to_string()});
    match found {
        Ok((who, role)) => {
            state.attempts.address_succeeded(address);
            state.host.gateway.record_change(&who, "sign_in", None, details, None);
            begin(&state, &browser, &headers, who, role, form.text("next"))
        }
        Err(why) => {
            let unknown = Principal::new("unknown", Role::Client);
            let kind = ErrorKind::PermissionDenied;
            state.host.gateway.record_change(&unknown, "sign_in", None, details, Some(kind));
            tracing::warn!(%address, by, "sign-in refused: {why}");
            refused(StatusCode::UNAUTHORIZED, why, &form)
        }
    }
}

async fn check(state: &ConsoleState, form: &Form) -> LoginAttempt {
    let (code, token) = (form.text("code"), form.text("token").trim());
    if !code.is_empty() {
        let found = state.sessions.spend_code(code, &state.host.gateway);
        let found = found.ok_or("the link was used already or is too old; make another with `sinew console`");
        return LoginAttempt { by: "link", found: found.and_then(administrator) };
    }
    if !token.is_empty() {
        let found = state.host.gateway.tokens().check(token).ok_or("the token is not valid");
        return LoginAttempt { by: "token", found: found.and_then(administrator) };
    }
    let found = state.people.check(form.text("name").trim(), form.text("passphrase")).await;
    let found = found.map(|person| (Principal::person(&person.name), person.role));
    LoginAttempt { by: "passphrase", found: found.ok_or("the name or the passphrase is wrong") }
}

fn administrator(who: Principal) -> Result<(Principal, PersonRole), &'static str> {
    match who.role {
        Role::Admin => Ok((who, PersonRole::Admin)),
        _ => Err("this is the token of a client; sign in with an admin token or a passphrase"),
    }
}

fn begin(
    state: &ConsoleState,
    browser: &Browser,
    headers: &HeaderMap,
    who: Principal,
    role: PersonRole,
    next: &str,
) -> Response<Body> {
    // Whoever signs in again leaves no session behind.
    browser.cookies(headers).into_iter().for_each(|secret| state.sessions.end(secret));
    match state.sessions.begin(who, role) {
        Ok(secret) => {
            let mut response = page::redirect(own_page(next));
            response.headers_mut().insert(header::SET_COOKIE, browser.set_cookie(&secret));
            response
        }
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", &error.message),
    }
}

/// A page of the console, whatever the address says: nobody is led elsewhere after signing in.
fn own_page(next: &str) -> &str {
    let name = next.split('?').next().unwrap_or_default();
    let is_own = name.bytes().all(|byte| byte.is_ascii_lowercase()) && next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own && !next.is_empty() { next } else { "./" }
}

pub(crate) async fn sign_out(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    Extension(browser): Extension<Browser>,
    request: Request,
) -> Response<Body> {
    let headers = request.headers().clone();
    let sent = Form::read(request).await.is_some_and(|form| session.sent(form.text("form_token")));
    if !sent {
        return page::message(StatusCode::FORBIDDEN, "Not signed out", &html! { p { (page::OLD_FORM) } });
    }
    browser.cookies(&headers).into_iter().for_each(|secret| state.sessions.end(secret));
    let mut response = page::redirect("login");
    response.headers_mut().insert(header::SET_COOKIE, browser.set_cookie(""));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_a_page_of_the_console_only() {
        for own in ["devices", "device?id=a&x=http://b", "calls?outcome=failed"] {
            assert_eq!(own_page(own), own);
        }
        for foreign in
            ["", "//evil.example", "https://evil.example", "/x", "..", "\\\\evil", "a/b", "device?x=\r\n", "a b"]
        {
            assert_eq!(own_page(foreign), "./", "{foreign}");
        }
    }
}
