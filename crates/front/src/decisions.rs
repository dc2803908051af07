//! `/api/v1/approvals` and `/api/v1/grants`: calls that wait for a person, and what people allowed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use http::Response;
use sinew_api::{ApprovalVerdict, Approvals, Decide, Grants, PersonRole};
use sinew_gateway::ApprovalDecision;
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, ToolError, json};

use crate::api::{Authenticated, Change, answer, body};
use crate::console::{Door, pages};
use crate::state::FrontState;
use crate::to_api;

/// A day: an approval for a longer time is one that stays until it is revoked.
const MAX_APPROVAL_S: u64 = 86_400;

/// The calls that wait for a person.
pub(crate) async fn approvals(State(front): State<Arc<FrontState>>) -> Response<Body> {
    let waiting = front.gateway.approval_requests();
    answer(Ok(Approvals { approvals: waiting.into_iter().map(to_api::short_waiting_call).collect() }))
}

pub(crate) async fn approval(State(front): State<Arc<FrontState>>, Path(id): Path<String>) -> Response<Body> {
    answer(front.gateway.approval_request(&id).map(to_api::waiting_call))
}

pub(crate) async fn decide(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let door = Door::of(request.extensions());
    let decided = async {
        let wanted: Decide = body(&front, request).await?;
        let decision = read_decision(&wanted)?;
        let person = match wanted.person {
            Some(login) => {
                let details = json!({"name": clean_line(&login.name, 64)});
                let checked = pages(&front)?.check_person(&who, login).await;
                let change = Change { what: "show_passphrase", device: None, details };
                let (person, role) = change.record(&front, &who, || checked)?;
                if role < PersonRole::Approver {
                    let message = "this person only looks; an approver or an administrator decides";
                    return Err(ToolError::new(ErrorKind::PermissionDenied, message));
                }
                Some(person)
            }
            None => None,
        };
        let who = person.as_ref().unwrap_or(&who);
        front.gateway.decide_approval(who, door, &id, decision).map(to_api::waiting_call)
    };
    answer(decided.await)
}

fn read_decision(wanted: &Decide) -> Result<ApprovalDecision, ToolError> {
    let invalid = |message: String| Err(ToolError::new(ErrorKind::InvalidArguments, message));
    match wanted {
        Decide { decision: ApprovalVerdict::Deny, .. } => Ok(ApprovalDecision::Deny),
        Decide { always: true, for_s: Some(_), .. } => invalid("`always` and `for_s` exclude each other".to_owned()),
        Decide { always: true, .. } => Ok(ApprovalDecision::Always),
        Decide { for_s: None, .. } => Ok(ApprovalDecision::Once),
        Decide { for_s: Some(seconds @ 1..=MAX_APPROVAL_S), .. } => {
            Ok(ApprovalDecision::For(Duration::from_secs(*seconds)))
        }
        Decide { .. } => invalid(format!("`for_s` must be from 1 to {MAX_APPROVAL_S} seconds")),
    }
}

/// The approvals that can still be used.
pub(crate) async fn grants(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(Ok(Grants { grants: front.gateway.grants().into_iter().map(to_api::grant).collect() }))
}

pub(crate) async fn revoke_grant(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    answer(front.gateway.revoke_grant(&who, Door::of(request.extensions()), &id).map(to_api::grant))
}
