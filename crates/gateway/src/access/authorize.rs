//! The decision about one call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sinew_policy::{CallerKind, Decision, OverLimit, Reason, RunningCall, Verdict};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Digest, ErrorKind, ToolError};

use super::approvals::{Answer, Binding, CallIdentity};
use super::{Access, ApprovalRequest, Lens};
use crate::nested::AgreedCalls;
use crate::principal::{Principal, Role};
use crate::snapshot::Holder;

/// Arguments that a person is shown, in bytes.
pub(super) const MAX_SHOWN_ARGS: usize = 2_000;

/// Clients give a call up after 60 s, so waiting for a person and for the device must end before that together.
const CLIENT_PATIENCE: Duration = Duration::from_secs(55);

/// What a permitted call holds until it ends.
pub(crate) struct Permit {
    /// Whether a person was asked.
    pub(crate) has_waited: bool,
    _running: Vec<RunningCall>,
}

/// What was agreed to before a call is looked at.
pub(crate) struct Agreement<'a> {
    /// The caller is an administrator who was asked already.
    pub(crate) is_confirmed: bool,
    pub(crate) calls: &'a AgreedCalls,
}

impl Access {
    /// Whether the call may be made, after asking a person where the policy says so.
    pub(crate) async fn authorize(
        &self,
        who: &Principal,
        lens: &Lens,
        holder: Holder<'_>,
        args: &Args,
        agreement: Agreement<'_>,
        budget: Duration,
    ) -> Result<Permit, ToolError> {
        let plan = lens.plan(holder);
        let in_force = lens.in_force();
        let decision = in_force.policy().decide(&plan, args, in_force.local_time());
        let must_ask = match decision.verdict {
            Verdict::Allow => false,
            Verdict::Ask => {
                let is_confirmed = agreement.is_confirmed && who.role == Role::Admin;
                !is_confirmed && !agreement.calls.contains(&CallIdentity::of(holder, args))
            }
            Verdict::Deny => return Err(denied(holder, &decision.reason)),
        };
        if must_ask {
            self.ask(who, lens, holder, args, &decision, patience(who, &decision, budget)).await?;
        }
        Ok(Permit { has_waited: must_ask, _running: self.count(who, holder, &decision)? })
    }

    async fn ask(
        &self,
        who: &Principal,
        lens: &Lens,
        holder: Holder<'_>,
        args: &Args,
        decision: &Decision<'_>,
        wait: Duration,
    ) -> Result<(), ToolError> {
        let tool = &holder.offered.tool;
        let value = Value::Object(args.clone());
        let binding = Binding {
            principal: who.id.clone(),
            policy: lens.in_force().policy().version().to_owned(),
            call: CallIdentity::of(holder, args),
        };
        let shown = lens.in_force().redact(holder, args).map_or(value, Value::Object);
        let request = ApprovalRequest {
            id: String::new(),
            principal: who.name.clone(),
            device: holder.entry.title(),
            tool: clean_line(&tool.name, 128),
            args: clean_line(&shown.to_string(), MAX_SHOWN_ARGS),
            reason: decision.reason.text(),
            at: unix_ms(),
        };
        match self.approvals.ask(binding, &holder.entry.id, request, wait).await? {
            Answer::Approved => Ok(()),
            Answer::Denied { by } => {
                let message =
                    format!("{by} did not approve `{}` on {}; nothing was sent", tool.name, holder.entry.title());
                Err(ToolError::new(ErrorKind::PermissionDenied, message))
            }
            Answer::Waiting { id } => Err(waiting(holder, &decision.reason, &id)),
        }
    }

    fn count(
        &self,
        who: &Principal,
        holder: Holder<'_>,
        decision: &Decision<'_>,
    ) -> Result<Vec<RunningCall>, ToolError> {
        let enter = |rule: &&sinew_policy::PolicyRule| {
            let key = (rule.id.as_str(), who.id.as_str(), &*holder.offered.public);
            self.limiter
                .enter(key, rule.rate, rule.concurrent, self.running_time())
                .map_err(|over| over_limit(holder, &rule.id, over))
        };
        decision.limits.iter().map(enter).collect()
    }
}

impl Lens {
    /// The view of the caller as it is now, where a call that a person approved under the view before is still allowed.
    pub(crate) fn still_permits(self, now: Lens, holder: Holder<'_>, args: &Args) -> Result<Lens, ToolError> {
        let (before, policy) = (self.in_force().policy(), now.in_force().policy());
        let decision = policy.decide(&now.plan(holder), args, now.in_force().local_time());
        if before.version() == policy.version() && now.sees(holder) && decision.verdict != Verdict::Deny {
            return Ok(now);
        }
        let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
        let message = format!(
            "the policy changed while `{tool}` on {title} waited for approval; nothing was sent. Call it again"
        );
        Err(ToolError::new(ErrorKind::PermissionDenied, message))
    }
}

impl CallIdentity {
    pub(super) fn of(holder: Holder<'_>, args: &Args) -> CallIdentity {
        CallIdentity {
            device: holder.entry.info.key.0.clone(),
            tool: Digest::of(&holder.offered.tool.to_record()),
            args: Digest::of(&Value::Object(args.clone())),
        }
    }
}

/// How long a call waits for a person.
pub(super) fn patience(who: &Principal, decision: &Decision<'_>, budget: Duration) -> Duration {
    match who.kind {
        // Somebody who speaks does not wait in silence: the request is kept, and the answer comes at once.
        CallerKind::Relay => Duration::ZERO,
        _ => decision.ask.wait.min(CLIENT_PATIENCE.saturating_sub(budget)),
    }
}

pub(super) fn denied(holder: Holder<'_>, reason: &Reason) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message =
        format!("`{tool}` on {title} is not allowed with these arguments, by {}; nothing was sent", reason.text());
    ToolError::new(ErrorKind::PermissionDenied, message).with_details(json!({"reason": reason.text()}))
}

fn waiting(holder: Holder<'_>, reason: &Reason, id: &str) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message = format!(
        "`{tool}` on {title} waits for a person's approval ({}); nothing was sent. An administrator approves it with \
         `sinew approvals approve {id}`; then repeat this call unchanged within ten minutes",
        reason.text()
    );
    ToolError::new(ErrorKind::ApprovalNeeded, message).with_details(json!({"approval": id}))
}

fn over_limit(holder: Holder<'_>, rule: &str, over: OverLimit) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message = match over {
        OverLimit::Rate { limit, retry_in } => {
            let seconds = retry_in.as_secs_f64().ceil().max(1.0);
            format!(
                "`{tool}` on {title} is over the limit of {limit} of rule `{rule}`; nothing was sent. Try again in {seconds} s"
            )
        }
        OverLimit::Concurrent { limit } => {
            format!(
                "`{tool}` on {title} already has {limit} calls at once, the limit of rule `{rule}`; nothing was sent"
            )
        }
    };
    ToolError::new(ErrorKind::Busy, message)
}

pub(super) fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
