//! The decision about one call.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sinew_policy::{AskBy, CallLimit, CallerKind, Decision, OverLimit, Reason, RunningCall, Verdict};
use sinew_tool::settings::Setting;
use sinew_tool::text::{clean_line, cut, show_hidden};
use sinew_tool::{Args, Caller, ConsentRequest, ConsentWay, Digest, Effect, ErrorKind, ToolError};

use super::approvals::{Answer, Approved, Asking, Binding, CallIdentity};
use super::parts::CallParts;
use super::{Access, ApprovalRequest, Lens, PolicyInForce};
use crate::nested::{AgreedCall, AgreedCalls};
use crate::principal::Principal;
use crate::record::CallRecord;
use crate::snapshot::{Holder, Presence};

/// Arguments that a person can be shown, in bytes. A call with more is not approved by anybody.
pub(super) const MAX_SHOWN_ARGS: usize = 256 << 10;

/// Arguments in a question that a client shows; its window is small.
const MAX_ASKED_ARGS: usize = 4_000;

/// Clients give a call up after 60 s, so waiting for a person and for the device must end before that together.
const CLIENT_PATIENCE: Duration = Duration::from_secs(55);

/// A call to decide about.
#[derive(Clone, Copy)]
pub(crate) struct ProposedCall<'a> {
    pub(crate) who: &'a Principal,
    pub(crate) lens: &'a Lens,
    pub(crate) holder: Holder<'a>,
    pub(crate) args: &'a Args,
    /// What the call makes in turn.
    pub(crate) parts: &'a CallParts,
    pub(crate) agreement: Agreement<'a>,
    pub(crate) caller: &'a dyn Caller,
    /// How long the call itself may take.
    pub(crate) budget: Duration,
    /// The address of the page about an approval, without its id; `None` where there are no pages.
    pub(crate) page: Option<&'a str>,
    /// Not for a part of another call: its client would repeat the whole, of which something may be done already.
    pub(crate) may_ask_client: bool,
}

/// What a permitted call holds until it ends.
pub(crate) struct Permit {
    /// Whether a person was asked.
    pub(crate) has_waited: bool,
    /// Whether the policy asks a person about the call, and one agreed.
    pub(crate) is_approved: bool,
    _running: Vec<RunningCall>,
}

/// What was agreed to before a call is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Agreement<'a> {
    /// The caller is an administrator who was asked already.
    pub(crate) is_confirmed: bool,
    /// A person approved it at the gateway that took it, under the policy of this version.
    pub(crate) elsewhere: Option<&'a str>,
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
        self.decisions[decision.verdict as usize].fetch_add(1, Ordering::Relaxed);
        let verdict = |approval: &str| {
            let (word, reason) = (decision.verdict.word(), decision.reason.text());
            format!("{word} by {reason}{approval}; policy {}", in_force.version())
        };
        record.note_decision(&verdict(""));
        let must_ask = match decision.verdict {
            Verdict::Allow => false,
            Verdict::Ask if agreement.is_confirmed && in_force.takes_decision_of(who) => {
                record.note_decision(&verdict(", confirmed by the caller"));
                false
            }
            Verdict::Ask if agreement.elsewhere == Some(&**in_force.version()) => {
                record.note_decision(&verdict(", approved at the gateway that took the call"));
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
            let is_approved = decision.verdict == Verdict::Ask;
            return Ok(Permit { has_waited: false, is_approved, _running: self.count(who, holder, &decision)? });
        }
        // Nobody is asked about a call that is over a limit.
        self.check_limits(who, holder, &decision)?;
        let wanted = call.parts.asked.iter().map(|part| part.wait).fold(decision.ask.wait, Duration::min);
        let wait = patience(who, wanted, budget);
        let approved = self.ask(call, &decision, record.args_digest(), wait).await?;
        agreement.calls.add(call.parts.asked_calls());
        record.note_decision(&verdict(&format!(", approval {} of {}", approved.id, approved.by)));
        match self.count(who, holder, &decision) {
            Ok(running) => Ok(Permit { has_waited: true, is_approved: true, _running: running }),
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
        let ProposedCall { who, lens, holder, args, parts, .. } = call;
        // Nobody is asked about a call that the device would refuse.
        if let Presence::Here(device) = &holder.entry.presence {
            device.check_call(&holder.offered.tool.name, args).await?;
        }
        let tool = &holder.offered.tool;
        let binding = Binding {
            principal: who.id.clone(),
            policy: lens.in_force().version().clone(),
            asked_by: askers(decision).into_iter().chain(parts.askers()).collect(),
            call: parts.identity_with(CallIdentity::of(holder, args)),
        };
        let own_effect = lens.in_force().effect_of(holder).map(|(effect, _)| effect);
        let effect = worse_effect(own_effect, parts.worst_effect(), parts.asked.is_empty());
        let shown = parts.shown_with(lens.shown(holder, args));
        if shown.len() > MAX_SHOWN_ARGS {
            return Err(too_long_to_approve(&tool.name, &holder.entry.title(), shown.len()));
        }
        let request = ApprovalRequest {
            id: String::new(),
            principal: who.name.clone(),
            device: holder.entry.title(),
            tool: clean_line(&tool.name, 128),
            args: shown,
            effect,
            reason: decision.reason.text(),
            keep: parts.keep().map_or(decision.ask.keep, |keep| keep.min(decision.ask.keep)),
            at: unix_ms(),
        };
        // A client shows no passphrase.
        let by = if lens.in_force().needs_passphrase() { AskBy::Person } else { parts.ask_by(decision.ask.by) };
        let question = question(&request, by, call.page).filter(|_| call.may_ask_client);
        let binds_args = !parts.asked.is_empty() || !matches!(effect, Some(Effect::Read | Effect::Change));
        let (on, who) = (holder.entry.id.clone(), who.clone());
        let asking = Asking { binding, on, request, args_digest, who, question, binds_args };
        match self.approvals.ask(asking, wait, call.caller).await? {
            Answer::Approved(approved) => Ok(approved),
            Answer::Denied { by } => {
                let message =
                    format!("{by} did not approve `{}` on {}; nothing was sent", tool.name, holder.entry.title());
                Err(ToolError::new(ErrorKind::PermissionDenied, message))
            }
            Answer::Waiting { id } => Err(waiting(holder, &decision.reason, &id, call.page)),
            Answer::Asked => {
                let message = format!("the client asks about `{}` and then repeats the call", tool.name);
                Err(ToolError::new(ErrorKind::InputRequired, message))
            }
            Answer::Declined { id } => {
                let message = format!(
                    "the client did not approve `{}` on {}; nothing was sent. If nobody was asked, the client cannot \
                     show the question: an administrator approves it with `sinew approvals approve {id}`, and then the \
                     same call goes through",
                    tool.name,
                    holder.entry.title()
                );
                let details = json!({"approval": id, "url": page_of(call.page, &id)});
                Err(ToolError::new(ErrorKind::PermissionDenied, message).with_details(details))
            }
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
        // With what the rule says: an approval that stays must not be one for a rule that was changed.
        false => decision
            .asked_by
            .iter()
            .map(|rule| format!("{}#{}", rule.id, Digest::of(&rule.to_value()).short(16)))
            .collect(),
    }
}

/// How long a call waits for a person.
pub(super) fn patience(who: &Principal, wanted: Duration, budget: Duration) -> Duration {
    match who.kind {
        // Somebody who speaks does not wait in silence: the request is kept, and the answer comes at once.
        CallerKind::Relay => Duration::ZERO,
        _ => wanted.min(CLIENT_PATIENCE.saturating_sub(budget)),
    }
}

pub(super) fn denied(holder: Holder<'_>, reason: &Reason) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message =
        format!("`{tool}` on {title} is not allowed with these arguments, by {}; nothing was sent", reason.text());
    ToolError::new(ErrorKind::PermissionDenied, message).with_details(json!({"reason": reason.text()}))
}

fn waiting(holder: Holder<'_>, reason: &Reason, id: &str, page: Option<&str>) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let url = page_of(page, id);
    let at = url.as_ref().map(|url| format!(" at {url} or")).unwrap_or_default();
    let message = format!(
        "`{tool}` on {title} waits for a person's approval ({}); nothing was sent. An administrator approves it{at} with \
         `sinew approvals approve {id}`; then repeat this call unchanged within ten minutes",
        reason.text()
    );
    ToolError::new(ErrorKind::ApprovalNeeded, message).with_details(json!({"approval": id, "url": url}))
}

/// What a call and its parts do; where nobody said it of one of them, nobody knows the worst.
fn worse_effect(own: Option<Effect>, parts: Option<Effect>, is_alone: bool) -> Option<Effect> {
    match (own, parts) {
        _ if is_alone => own,
        (Some(Effect::Danger), _) | (_, Some(Effect::Danger)) => Some(Effect::Danger),
        (Some(own), Some(parts)) => Some(own.max(parts)),
        _ => None,
    }
}

/// The page of an approval, where there are pages.
pub(super) fn page_of(page: Option<&str>, id: &str) -> Option<String> {
    page.map(|page| format!("{page}{id}"))
}

/// How the client asks its user. Without pages, a person who signs in cannot be asked through it.
fn question(request: &ApprovalRequest, by: AskBy, page: Option<&str>) -> Option<ConsentRequest> {
    let way = match by {
        AskBy::Client => ConsentWay::Form,
        AskBy::Person => ConsentWay::Page(page?.to_owned()),
    };
    let ApprovalRequest { principal, device, tool, args, reason, effect, .. } = request;
    let does = match effect {
        Some(Effect::Read) => "It only reads.",
        Some(Effect::Change) => "It changes something.",
        Some(Effect::Danger) => "It can do harm.",
        None => "Nobody said what it does.",
    };
    let shown = show_hidden(cut(args, MAX_ASKED_ARGS));
    let rest = if args.len() > MAX_ASKED_ARGS { "\n… (cut)" } else { "" };
    let [principal, device, tool] = [principal, device, tool].map(|text| show_hidden(&clean_line(text, 200)));
    let message = format!(
        "Sinew asks: may `{principal}` call `{tool}` on `{device}`? {does} Asked because of {reason}.\n\
         Arguments, as the model wrote them:\n{shown}{rest}"
    );
    Some(ConsentRequest { approval: String::new(), message, way })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Role;

    #[test]
    fn a_call_waits_and_runs_for_less_time_than_clients_have() {
        let who = Principal::new("model", Role::Client);
        let seconds =
            |wanted, budget| patience(&who, Duration::from_secs(wanted), Duration::from_secs(budget)).as_secs();
        assert_eq!(seconds(45, 5), 45);
        for budget in [0, 10, 30, 54, 55, 60, 600] {
            let held = seconds(600, budget);
            assert!(held == 0 || held + budget <= 55, "{held} s and {budget} s");
        }
        assert_eq!((seconds(45, 30), seconds(45, 60)), (25, 0));
    }
}
