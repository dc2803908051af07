//! One call that waits for a person, on a page that works without scripts.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use http::{Response, StatusCode};
use maud::{Markup, html};
use sinew_api::PersonRole;
use sinew_front::query_pairs;
use sinew_gateway::{ApprovalDecision, ApprovalRequest};
use sinew_tool::text::{clean_line, show_hidden};
use sinew_tool::{Effect, ErrorKind, Value};

use crate::ConsoleState;
use crate::login::Form;
use crate::page;
use crate::sessions::Session;

/// How long "for ten minutes" is.
const TEN_MINUTES: Duration = Duration::from_secs(600);

pub(crate) async fn show(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    request: Request,
) -> Response<Body> {
    let pairs = query_pairs(request.uri().query().unwrap_or_default());
    let id = pairs.into_iter().find(|(key, _)| key == "id").map(|(_, id)| id).unwrap_or_default();
    match state.host.gateway.approval_request(&clean_line(&id, 32)) {
        Ok(call) => {
            let content = waiting(&call, &session, state.host.gateway.takes_decisions_of(&session.who));
            page::plain(StatusCode::OK, "A call waits for you", "approvals", &session, &content)
        }
        Err(error) => page::plain(
            StatusCode::NOT_FOUND,
            "No call waits",
            "approvals",
            &session,
            &html! {
                p { (error.message) }
                p { a href="approvals" { "Calls that wait" } }
            },
        ),
    }
}

fn waiting(call: &ApprovalRequest, session: &Session, is_taken: bool) -> Markup {
    let may_decide = session.role >= PersonRole::Approver;
    html! {
        p { bdi { strong { (shown(&call.principal)) } } " wants to call a tool. Nothing is sent until you agree." }
        dl.facts {
            div { dt { "Device" } dd { bdi { (shown(&call.device)) } } }
            div { dt { "Tool" } dd { code { bdi { (shown(&call.tool)) } } } }
            div { dt { "What it does" } dd { (effect(call.effect)) } }
            div { dt { "Why you are asked" } dd { (shown(&call.reason)) } }
        }
        h2 { "Arguments" }
        pre.arguments tabindex="0" { (arguments(&call.args)) }
        @if may_decide && !is_taken {
            p.note { "Only people who sign in with a passphrase decide here. Sign out, and sign in with yours." }
        } @else if may_decide {
            form.decision method="post" action="approval" {
                (page::form_token(session))
                input type="hidden" name="id" value=(call.id);
                button.primary name="decision" value="once" { (once(call)) }
                button name="decision" value="ten" { "Allow for ten minutes, with any arguments" }
                button name="decision" value="always" { (always(call)) }
                button.danger name="decision" value="deny" { "Deny" }
            }
        } @else {
            p.quiet { "Your role only looks. An approver or an administrator decides." }
        }
    }
}

fn effect(effect: Option<Effect>) -> &'static str {
    match effect {
        Some(Effect::Read) => "It only reads.",
        Some(Effect::Change) => "It changes something.",
        Some(Effect::Danger) => "It can do harm.",
        None => "Nobody said what it does.",
    }
}

/// What "always" means.
fn always(call: &ApprovalRequest) -> &'static str {
    match call.effect {
        Some(Effect::Read | Effect::Change) => "Always allow, with any arguments",
        Some(Effect::Danger) | None => "Always allow, with these arguments",
    }
}

/// What "allow" means, where the policy lets an approval cover more.
fn once(call: &ApprovalRequest) -> String {
    match call.keep.as_secs() {
        0 => "Allow once".to_owned(),
        seconds => format!("Allow, and later calls of this tool for {seconds} s, as the policy says"),
    }
}

/// A text of somebody else, in which every character can be seen.
fn shown(text: &str) -> String {
    show_hidden(&clean_line(text, 2_000))
}

fn arguments(text: &str) -> String {
    let pretty = serde_json::from_str::<Value>(text).ok().and_then(|args| serde_json::to_string_pretty(&args).ok());
    let lines = pretty.as_deref().unwrap_or(text).lines().map(show_hidden);
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn decide(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    request: Request,
) -> Response<Body> {
    let plain = |status, title: &str, content: &Markup| page::plain(status, title, "approvals", &session, content);
    let form = Form::read(request).await.filter(|form| session.sent(form.text("form_token")));
    let Some(form) = form else {
        return plain(StatusCode::FORBIDDEN, "Nothing was decided", &html! { p { (page::OLD_FORM) } });
    };
    if session.role < PersonRole::Approver {
        let content = html! { p { "Your role only looks. An approver or an administrator decides." } };
        return plain(StatusCode::FORBIDDEN, "Nothing was decided", &content);
    }
    let (decision, what) = match form.text("decision") {
        "once" => (ApprovalDecision::Once, "Allowed"),
        "ten" => (ApprovalDecision::For(TEN_MINUTES), "Allowed for ten minutes"),
        "always" => (ApprovalDecision::Always, "Always allowed"),
        "deny" => (ApprovalDecision::Deny, "Denied"),
        _ => {
            let content = html! { p { "Choose one of the buttons." } };
            return plain(StatusCode::BAD_REQUEST, "Nothing was decided", &content);
        }
    };
    let id = clean_line(form.text("id"), 32);
    let more = html! { p { a href="approvals" { "Calls that wait" } } };
    match state.host.gateway.decide_approval(&session.who, "console", &id, decision) {
        Ok(call) => plain(
            StatusCode::OK,
            what,
            &html! {
                p { code { bdi { (shown(&call.tool)) } } " on " bdi { (shown(&call.device)) } " for " bdi { (shown(&call.principal)) } "." }
                (more)
            },
        ),
        Err(error) if error.kind == ErrorKind::PermissionDenied => {
            plain(StatusCode::FORBIDDEN, "Nothing was decided", &html! { p { (error.message) } (more) })
        }
        Err(error) => plain(StatusCode::CONFLICT, "Nothing was decided", &html! { p { (error.message) } (more) }),
    }
}
