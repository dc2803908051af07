//! The decision about one call.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sinew_policy::{CallLimit, CallerKind, Decision, OverLimit, Reason, RunningCall, Verdict};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Caller, Digest, ErrorKind, ToolError};

use super::approvals::{Answer, Approved, Asking, Binding, CallIdentity};
use super::{Access, ApprovalRequest, Lens, PolicyInForce};
use crate::nested::{AgreedCall, AgreedCalls};
use crate::principal::{Principal, Role};
use crate::record::CallRecord;
use crate::snapshot::Holder;

/// Arguments that a person can be shown, in bytes. A call with more is not approved by anybody.
pub(super) const MAX_SHOWN_ARGS: usize = 256 << 10;

/// Clients give a call up after 60 s, so waiting for a person and for the device must end before that together.
const CLIENT_PATIENCE: Duration = Duration::from_secs(55);

/// A call to decide about.
#[derive(Clone, Copy)]
pub(crate) struct ProposedCall<'a> {
    pub(crate) who: &'a Principal,
    pub(crate) lens: &'a Lens,
    pub(crate) holder: Holder<'a>,
    pub(crate) args: &'a Args,
    pub(crate) agreement: Agreement<'a>,
    pub(crate) caller: &'a dyn Caller,
    /// How long the call itself may take.
    pub(crate) budget: Duration,
}

/// What a permitted call holds until it ends.
pub(crate) struct Permit {
    /// Whether a person was asked.
    pub(crate) has_waited: bool,
    _running: Vec<RunningCall>,
}

/// What was agreed to before a call is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Agreement<'a> {
    /// The caller is an administrator who was asked already.
    pub(crate) is_confirmed: bool,
    pub(crate) calls: &'a AgreedCalls,
}

impl Agreement<'_> {
    fn spend(&self, in_force: &PolicyInForce, holder: Holder<'_>, args: &Args) -> bool {
        let call = AgreedCall { policy: in_force.version().clone(), call: CallIdentity::of(holder, args) };
        self.calls.spend(&call)
    }
}

impl Access {
    /// Whether the call may be made, after asking a person where the policy says so.
    pub(crate) async fn authorize(&self, call: ProposedCall<'_>, record: &mut CallRecord) -> Result<Permit, ToolError> {
        let ProposedCall { who, lens, holder, args, agreement, budget, .. } = call;
        let plan = lens.plan(holder);
        let in_force = lens.in_force();
        let decision = in_force.policy().decide(&plan, args, in_force.local_time());
        let verdict = |approval: &str| {
            let (word, reason) = (decision.verdict.word(), decision.reason.text());
            format!("{word} by {reason}{approval}; policy {}", in_force.version())
        };
        record.note_decision(&verdict(""));
        let must_ask = match decision.verdict {
            Verdict::Allow => false,
            Verdict::Ask if agreement.is_confirmed && who.role == Role::Admin => {
                record.note_decision(&verdict(", confirmed by the caller"));
                false
            }
            Verdict::Ask if agreement.spend(in_force, holder, args) => {
                record.note_decision(&verdict(", approved as a part of a larger call"));
                false
            }
            Verdict::Ask => true,
            Verdict::Deny => return Err(denied(holder, &decision.reason)),
        };
        if !must_ask {
            return Ok(Permit { has_waited: false, _running: self.count(who, holder, &decision)? });
        }
        // Nobody is asked about a call that is over a limit.
        self.check_limits(who, holder, &decision)?;
        let wait = patience(who, &decision, budget);
        let approved = self.ask(call, &decision, record.args_digest(), wait).await?;
        record.note_decision(&verdict(&format!(", approval {} of {}", approved.id, approved.by)));
        match self.count(who, holder, &decision) {
            Ok(running) => Ok(Permit { has_waited: true, _running: running }),
            Err(over) => {
                self.approvals.give_back(approved);
                Err(over)
            }
        }
    }

    async fn ask(
        &self,
        call: ProposedCall<'_>,
        decision: &Decision<'_>,
        args_digest: String,
        wait: Duration,
    ) -> Result<Approved, ToolError> {
        let ProposedCall { who, lens, holder, args, .. } = call;
        let tool = &holder.offered.tool;
        let binding = Binding {
            principal: who.id.clone(),
            policy: lens.in_force().version().clone(),
            asked_by: askers(decision),
            call: CallIdentity::of(holder, args),
        };
        let shown = Value::Object(lens.shown(holder, args)).to_string();
        if shown.len() > MAX_SHOWN_ARGS {
            return Err(too_long_to_approve(&tool.name, &holder.entry.title(), shown.len()));
        }
        let request = ApprovalRequest {
            id: String::new(),
            principal: who.name.clone(),
            device: holder.entry.title(),
            tool: clean_line(&tool.name, 128),
            args: shown,
            reason: decision.reason.text(),
            keep: decision.ask.keep,
            at: unix_ms(),
        };
        let asking = Asking { binding, on: holder.entry.id.clone(), request, args_digest, who: who.clone() };
        match self.approvals.ask(asking, wait, call.caller).await? {
            Answer::Approved(approved) => Ok(approved),
            Answer::Denied { by } => {
                let message =
                    format!("{by} did not approve `{}` on {}; nothing was sent", tool.name, holder.entry.title());
                Err(ToolError::new(ErrorKind::PermissionDenied, message))
            }
            Answer::Waiting { id } => Err(waiting(holder, &decision.reason, &id)),
        }
    }

    fn check_limits(&self, who: &Principal, holder: Holder<'_>, decision: &Decision<'_>) -> Result<(), ToolError> {
        decision.limits.iter().try_for_each(|rule| {
            let limit = CallLimit::of(rule, &who.id, &holder.offered.public);
            self.limiter.check(&limit, self.running_time()).map_err(|over| over_limit(holder, &rule.id, over))
        })
    }

    fn count(
        &self,
        who: &Principal,
        holder: Holder<'_>,
        decision: &Decision<'_>,
    ) -> Result<Vec<RunningCall>, ToolError> {
        let enter = |rule: &&sinew_policy::PolicyRule| {
            let limit = CallLimit::of(rule, &who.id, &holder.offered.public);
            self.limiter.enter(limit, self.running_time()).map_err(|over| over_limit(holder, &rule.id, over))
        };
        decision.limits.iter().map(enter).collect()
    }
}

pub(super) fn too_long_to_approve(tool: &str, title: &str, bytes: usize) -> ToolError {
    let message = format!(
        "`{tool}` on {title} needs a person's approval, and its arguments are too long to read ({bytes} bytes, at most \
         {MAX_SHOWN_ARGS}); nothing was sent. Send less"
    );
    ToolError::new(ErrorKind::InvalidArguments, message)
}

impl Lens {
    /// The view of the caller as it is now, where a call that a person approved under the view before is still allowed.
    pub(crate) fn still_permits(self, now: Lens, holder: Holder<'_>, args: &Args) -> Result<Lens, ToolError> {
        let (before, after) = (self.in_force(), now.in_force());
        let decision = after.policy().decide(&now.plan(holder), args, after.local_time());
        if before.version() == after.version() && now.sees(holder) && decision.verdict != Verdict::Deny {
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

/// What says that a person is asked.
pub(super) fn askers(decision: &Decision<'_>) -> Vec<String> {
    match decision.asked_by.is_empty() {
        true => vec![decision.reason.text()],
        false => decision.asked_by.iter().map(|rule| rule.id.clone()).collect(),
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
