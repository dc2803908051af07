//! The HTML around the pages: navigation, login and plain messages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use maud::{DOCTYPE, Markup, html};

use crate::ConsoleState;
use crate::assets;
use crate::sessions::Session;

/// What a form says that belongs to no page of the session.
pub(crate) const OLD_FORM: &str =
    "The page is too old or was not opened by you. Open it again and repeat what you did.";

/// A page whose content comes from a script.
pub(crate) struct Page {
    /// The last part of its path, and the name of its script.
    name: &'static str,
    title: &'static str,
    /// Whether the navigation has it; other pages belong to the one named here.
    place: Place,
}

enum Place {
    Navigation,
    Below(&'static str),
}

const fn listed(name: &'static str, title: &'static str) -> Page {
    Page { name, title, place: Place::Navigation }
}

pub(crate) const PAGES: [Page; 12] = [
    listed("overview", "Overview"),
    listed("devices", "Devices"),
    Page { name: "device", title: "Device", place: Place::Below("devices") },
    Page { name: "phone", title: "Phone", place: Place::Below("devices") },
    listed("calls", "Calls"),
    Page { name: "call", title: "Call", place: Place::Below("calls") },
    listed("approvals", "Approvals"),
    listed("routines", "Routines"),
    listed("waiting", "Connect"),
    listed("policy", "Policy"),
    listed("tokens", "Tokens"),
    listed("people", "People"),
];

impl Page {
    pub(crate) fn path(&self) -> String {
        format!("/console/{}", self.address())
    }

    pub(crate) fn script(&self) -> String {
        format!("{}.js", self.name)
    }

    /// Relative to the console's folder.
    fn address(&self) -> &'static str {
        if self.name == "overview" { "" } else { self.name }
    }

    fn is_at(&self, current: &str) -> bool {
        self.name == current || PAGES.iter().any(|page| page.name == current && page.is_below(self.name))
    }

    fn is_below(&self, name: &str) -> bool {
        matches!(self.place, Place::Below(above) if above == name)
    }
}

pub(crate) async fn shell(
    page: &'static Page,
    _: State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
) -> Response<Body> {
    let content = html! {
        h1 id="title" { (page.title) }
        div id="content" { p.quiet { "Loading" } }
        noscript { p.problem { "This page needs scripts. Signing in and deciding about one call work without them." } }
    };
    html_page(StatusCode::OK, &document(page.title, Some(&page.script()), &frame(page.name, &session, &content)))
}

/// A page inside the console that needs no script.
pub(crate) fn plain(
    status: StatusCode,
    title: &str,
    place: &str,
    session: &Session,
    content: &Markup,
) -> Response<Body> {
    let content = html! { h1 { (title) } (content) };
    html_page(status, &document(title, None, &frame(place, session, &content)))
}

fn frame(current: &str, session: &Session, content: &Markup) -> Markup {
    html! {
        a.skip href="#main" { "Skip to the content" }
        header.top {
            a.brand href="./" { img src=(assets::address("mark.svg")) alt="" width="22" height="22"; "Sinew" }
            nav aria-label="Pages" {
                ul {
                    @for page in PAGES.iter().filter(|page| matches!(page.place, Place::Navigation)) {
                        li {
                            a href=(if page.address().is_empty() { "./" } else { page.address() })
                                aria-current=[page.is_at(current).then_some("page")] {
                                (page.title)
                                @if page.name == "approvals" { span.badge id="waiting" hidden {} }
                            }
                        }
                    }
                }
            }
            form.who method="post" action="logout" {
                span { bdi { (session.who.name) } " " span.quiet { (session.role.word()) } }
                (form_token(session))
                button type="submit" { "Sign out" }
            }
        }
        main id="main" tabindex="-1" data-role=(session.role.word()) data-name=(session.who.name) { (content) }
        p.visually-hidden id="status" role="status" {}
    }
}

/// What proves that a form is one of the session's pages.
pub(crate) fn form_token(session: &Session) -> Markup {
    html! { input type="hidden" name="form_token" value=(session.form_token); }
}

pub(crate) struct LoginPage<'a> {
    /// The page to go on with.
    pub(crate) next: &'a str,
    pub(crate) problem: Option<&'a str>,
    pub(crate) name: &'a str,
}

pub(crate) fn login(state: &ConsoleState, page: &LoginPage<'_>, status: StatusCode) -> Response<Body> {
    let LoginPage { next, problem, name } = page;
    let has_people = !state.people.list().is_empty();
    let passphrase = html! {
        form.card method="post" action="login" {
            h2 { "With a passphrase" }
            input type="hidden" name="next" value=(next);
            label { "Name" input name="name" autocomplete="username" value=(name) required autofocus[has_people]; }
            label { "Passphrase" input type="password" name="passphrase" autocomplete="current-password" required; }
            button.primary type="submit" { "Sign in" }
        }
    };
    let content = html! {
        main.login id="main" {
            h1 { img src=(assets::address("mark.svg")) alt="" width="32" height="32"; "Sinew" }
            @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
            @if has_people { (passphrase) }
            form.card method="post" action="login" id="with-token" {
                h2 { "With an admin token" }
                input type="hidden" name="next" value=(next);
                input type="hidden" name="code" value="";
                label {
                    "Token"
                    input type="password" name="token" autocomplete="off" required autofocus[!has_people];
                }
                button.primary[!has_people] type="submit" { "Sign in" }
            }
            p.quiet {
                "On the gateway's machine, " code { "sinew console" } " opens this page signed in. "
                @if !has_people { code { "sinew people add NAME" } " adds a person with a passphrase." }
            }
        }
    };
    html_page(status, &document("Sign in", Some("login.js"), &content))
}

/// A page for somebody who may not be signed in.
pub(crate) fn message(status: StatusCode, title: &str, content: &Markup) -> Response<Body> {
    let content = html! { main.login id="main" { h1 { (title) } (content) p { a href="./" { "Open the console" } } } };
    html_page(status, &document(title, None, &content))
}

fn document(title: &str, script: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Sinew" }
                link rel="icon" href=(assets::address("mark.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(assets::address("console.css"));
                @if let Some(script) = script { script type="module" src=(assets::address(script)) {} }
            }
            body { (body) }
        }
    }
}

fn html_page(status: StatusCode, document: &Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(document.0.clone()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// Leads a browser to an address relative to the one it asked for, so that it works below any path of a proxy.
pub(crate) fn redirect(address: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::from_str(address).unwrap_or_else(|_| HeaderValue::from_static("./"));
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// A text as a value in a query.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
