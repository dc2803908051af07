//! The page on which a person lets a client in. It works without scripts, and a client learns nothing before the person
//! presses a button.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use http::{Response, StatusCode};
use maud::{Markup, html};
use sinew_front::{connect_role, query_pairs};
use sinew_policy::CallerKind;
use sinew_signin::{AuthorizationServer, ConsentRequest, RequestProblem, SignIn};
use sinew_tool::text::{clean_line, show_hidden};

use crate::ConsoleState;
use crate::guard::FormTarget;
use crate::login::Form;
use crate::page;
use crate::sessions::Session;

/// The parts of a request that the page sends again with its button.
const PARTS: [&str; 8] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "code_challenge",
    "code_challenge_method",
    "resource",
    "scope",
    "state",
];

pub(crate) async fn show(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    request: Request,
) -> Response<Body> {
    let pairs: Vec<_> = query_pairs(request.uri().query().unwrap_or_default()).collect();
    let server = match server(&state, &session) {
        Ok(server) => server,
        Err(refused) => return *refused,
    };
    match server.check_request(&pairs).await {
        Ok(asked) => question(&asked, &pairs, &session),
        Err(problem) => failed(&problem, &session),
    }
}

pub(crate) async fn decide(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    request: Request,
) -> Response<Body> {
    let plain = |status, title: &str, content: &Markup| page::plain(status, title, "", &session, content);
    let form = Form::read(request).await.filter(|form| session.sent(form.text("form_token")));
    let Some(form) = form else {
        return plain(StatusCode::FORBIDDEN, "Nothing was connected", &html! { p { (page::OLD_FORM) } });
    };
    let server = match server(&state, &session) {
        Ok(server) => server,
        Err(refused) => return *refused,
    };
    // Everything is checked again: between page and button, the client may have changed.
    let asked = match server.check_request(form.pairs()).await {
        Ok(asked) => asked,
        Err(problem) => return failed(&problem, &session),
    };
    let address = match form.text("decision") {
        "allow" => server.allow(&asked, &session.who),
        "deny" => Ok(server.deny(&asked, &session.who)),
        _ => {
            return plain(
                StatusCode::BAD_REQUEST,
                "Nothing was connected",
                &html! { p { "Choose one of the buttons." } },
            );
        }
    };
    match address {
        Ok(address) => page::redirect(&address),
        Err(error) => {
            plain(StatusCode::INTERNAL_SERVER_ERROR, "Nothing was connected", &html! { p { (error.message) } })
        }
    }
}

/// The issuer, where the person of the session may let clients in.
fn server<'a>(state: &'a ConsoleState, session: &Session) -> Result<&'a AuthorizationServer, Box<Response<Body>>> {
    let refused = |status, content: Markup| {
        Err(Box::new(page::plain(status, "No client can be connected", "", session, &content)))
    };
    let Some(server) = state.host.sign_in.as_deref().and_then(SignIn::own) else {
        return refused(StatusCode::NOT_FOUND, html! { p { "Clients do not sign in at this gateway." } });
    };
    // What a person lets in is theirs, and ends with them.
    if session.who.kind != CallerKind::Person {
        return refused(
            StatusCode::FORBIDDEN,
            html! {
                p { "Clients are let in by people, and you signed in with a token. Sign out, and sign in with your passphrase." }
                p { code { "sinew people add NAME --role admin" } " adds a person." }
            },
        );
    }
    let needed = connect_role(server);
    if session.role < needed {
        let content = html! { p { "This needs the role " (needed.word()) ". Ask an administrator." } };
        return refused(StatusCode::FORBIDDEN, content);
    }
    Ok(server)
}

fn question(asked: &ConsentRequest, pairs: &[(String, String)], session: &Session) -> Response<Body> {
    let name = match asked.client.name.is_empty() {
        true => "A client".to_owned(),
        false => shown(&asked.client.name),
    };
    let part =
        |name: &&str| pairs.iter().find(|(key, _)| key == name).map(|(key, value)| (key.as_str(), value.as_str()));
    let content = html! {
        p { bdi { strong { (name) } } " wants to use your devices in your name. The policy of this gateway decides what it may do." }
        dl.facts {
            dt { "Identity" }
            dd {
                @match &asked.client.host {
                    Some(host) => { "Published by " bdi { (shown(host)) } },
                    None => "Not verified: the client registered itself and chose its own name",
                }
            }
            dt { "Answers go to" }
            dd {
                bdi { (shown(&asked.redirect.host)) }
                @if asked.is_local() { " (a program on this computer)" }
            }
            dt { "In the audit" } dd { code { bdi { (shown(&format!("{}@{}", session.who.name, asked.place))) } } }
            dt { "To end it later" } dd { a href="tokens" { "Tokens" } " lists it, as does " code { "sinew sign-ins" } }
        }
        @if asked.is_local() {
            p.note { "Any program on this computer can claim to be this client. Allow it only if you started connecting it just now." }
        }
        form.decision method="post" action="authorize" {
            (page::form_token(session))
            @for (name, value) in PARTS.iter().filter_map(part) {
                input type="hidden" name=(name) value=(value);
            }
            button.primary name="decision" value="allow" { "Allow" }
            button.danger name="decision" value="deny" { "Deny" }
        }
    };
    let mut response = page::plain(StatusCode::OK, "A client wants to sign in", "", session, &content);
    response.extensions_mut().insert(FormTarget(asked.redirect.form_action.clone()));
    response
}

/// A person decides whether to go back, too: an address of a stranger is not opened by itself.
fn failed(problem: &RequestProblem, session: &Session) -> Response<Body> {
    let content = html! {
        p { "The client asked in a way that is not accepted: " (shown(&problem.message)) "." }
        @if let Some((host, address)) = &problem.back {
            p { a href=(address) rel="noreferrer" { "Go back to " bdi { (shown(host)) } } }
        }
    };
    page::plain(StatusCode::BAD_REQUEST, "No client was connected", "", session, &content)
}

/// A text of somebody else, in which every character can be seen.
fn shown(text: &str) -> String {
    show_hidden(&clean_line(text, 300))
}
