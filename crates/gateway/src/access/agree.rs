//! Calls that are parts of a larger one: what they can do together, and whether a person agrees to them before the first
//! is made.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_policy::Verdict;
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Digest, Effect, ErrorKind, PlannedCall, ToolAccess, ToolError, ToolUse};

use super::approvals::{Answer, Asking, Binding, CallIdentity};
use super::authorize::{MAX_SHOWN_ARGS, page_of, patience, too_long_to_approve, unix_ms};
use super::parts::PartsContext;
use super::{ApprovalRequest, Lens};
use crate::gateway::Gateway;
use crate::nested::{AgreedCall, AsCaller};
use crate::principal::Principal;
use crate::redaction;
use crate::snapshot::Holder;
use crate::store::hex;

/// Whoever asks again and again says in between that it waits.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

impl AsCaller {
    /// How long a person may take to agree.
    fn patience(&self, wanted: Duration) -> Duration {
        match () {
            () if self.asks_again => SHORT_PATIENCE,
            () if self.nesting.is_detached => wanted.min(self.deadline.time_left()),
            () if self.caller.is_patient() => patience(&self.who, wanted, Duration::ZERO),
            () => patience(&self.who, wanted, self.deadline.whole_time()),
        }
    }
}

impl Gateway {
    /// Asks once for all of these calls that a person must approve, and for what they call in turn. Calls whose tool is
    /// not there now are asked about when they are made.
    pub(crate) async fn agree(&self, caller: &AsCaller, calls: &[PlannedCall]) -> Result<(), ToolError> {
        let lens = self.lens(&caller.who);
        let policy = lens.in_force().version();
        let confirms = |device: Option<&str>| lens.in_force().takes_decision_of(&caller.who) && caller.confirms(device);
        let context = PartsContext {
            lens: &lens,
            agreed: caller.nesting.agreed.unused(),
            confirms: &confirms,
            depth: caller.nesting.depth + 1,
        };
        let parts = self.parts(calls.to_vec(), context).await?;
        let waits = parts.asked.iter().map(|part| caller.patience(part.wait)).min();
        let (waiting, steps) = (parts.asked_calls(), &parts.shown);
        let (Some(wait), Some(AgreedCall { call: first, .. })) = (waits, waiting.first()) else { return Ok(()) };
        let asked_by = parts.askers().collect();
        // No tool has the digest of a list, so that approving the steps approves nothing else; and no other call of the
        // same tool, which could make the same calls among others.
        let tools = waiting.iter().map(|AgreedCall { call, .. }| json!([call.device, call.tool.hex()]));
        let whole = json!([caller.device.as_str(), caller.tool, Digest::of(&json!(*caller.args)).hex()]);
        let tools: Vec<Value> = [whole].into_iter().chain(tools).collect();
        let args: Vec<Value> = waiting.iter().map(|agreed| json!(agreed.call.args.hex())).collect();
        let call = CallIdentity {
            device: first.device.clone(),
            tool: Digest::of(&json!(tools)),
            args: Digest::of(&json!(args)),
        };
        let binding = Binding { principal: caller.who.id.clone(), policy: policy.clone(), asked_by, call };
        let Some(on) = lens.snapshot().devices.iter().find(|entry| entry.info.key.0 == first.device) else {
            return Ok(());
        };
        let shown = json!({"arguments": self.shown_whole(caller, &lens), "steps": steps}).to_string();
        // Keyed, as in every record: a plain digest gives short secrets away.
        let args_digest = hex(&self.recorder().key.digest(json!(binding.call.args.hex()).to_string().as_bytes()));
        if shown.len() > MAX_SHOWN_ARGS {
            return Err(too_long_to_approve(&caller.tool, &on.title(), shown.len()));
        }
        let request = ApprovalRequest {
            id: String::new(),
            principal: caller.who.name.clone(),
            device: on.title(),
            tool: clean_line(&format!("{} (its steps)", caller.tool), 128),
            args: shown,
            reason: format!("{} of its steps must be approved", waiting.len()),
            effect: parts.worst_effect(),
            keep: Duration::ZERO,
            at: unix_ms(),
        };
        // The client would repeat the whole call, of which something may be done already: it is not asked.
        let (on, who) = (on.id.clone(), caller.who.clone());
        let asking = Asking { binding, on, request, args_digest, who, question: None, binds_args: true };
        match caller.deadline.pause(wait, self.access().approvals.ask(asking, wait, &*caller.caller)).await? {
            Answer::Approved(_) => {
                caller.nesting.agreed.add(waiting);
                Ok(())
            }
            // Without a question, the client answers nothing.
            Answer::Asked | Answer::Declined { .. } => {
                Err(ToolError::new(ErrorKind::Internal, "a client answered what it was not asked"))
            }
            Answer::Denied { by } => {
                let message = format!("{by} did not approve the steps of `{}`; nothing was sent", caller.tool);
                Err(ToolError::new(ErrorKind::PermissionDenied, message))
            }
            Answer::Waiting { id } => {
                let url = page_of(self.approval_page().as_deref().map(String::as_str), &id);
                let at = url.as_ref().map(|url| format!(" at {url} or")).unwrap_or_default();
                let message = format!(
                    "steps of `{}` wait for a person's approval; nothing was sent. An administrator approves them{at} \
                     with `sinew approvals approve {id}`; then repeat this call unchanged within ten minutes",
                    caller.tool
                );
                let details = json!({"approval": id, "url": url});
                Err(ToolError::new(ErrorKind::ApprovalNeeded, message).with_details(details))
            }
        }
    }

    /// What the tool that makes the calls was called with, as a person may see it.
    fn shown_whole(&self, caller: &AsCaller, lens: &Lens) -> Args {
        let entry = lens.snapshot().entry(caller.device.as_str());
        let holder = entry.and_then(|entry| Some(Holder { entry, offered: entry.offer.find(&caller.tool)? }));
        holder.map_or_else(|| redaction::hide_values(&caller.args), |holder| lens.shown(holder, &caller.args))
    }

    /// What a caller may do with a tool of a device, whatever its arguments.
    pub(crate) fn access_to(&self, who: &Principal, device: &str, tool: &str) -> ToolAccess {
        let lens = self.lens(who);
        let found = lens.snapshot().entry(device).and_then(|entry| {
            let holder = Holder { entry, offered: entry.offer.find(tool)? };
            lens.sees(holder).then_some(holder)
        });
        let Some(holder) = found else { return ToolAccess::Unknown };
        let in_force = lens.in_force();
        match in_force.policy().decide(&lens.plan(holder), &Args::new(), in_force.local_time()).verdict {
            Verdict::Allow => ToolAccess::Free,
            Verdict::Ask | Verdict::Deny => ToolAccess::Guarded,
        }
    }

    /// The worst that a tool can do that calls these; `None` where nobody said it of one of them.
    pub fn worst_effect(&self, uses: &[ToolUse]) -> Option<Effect> {
        let (snapshot, in_force) = (self.snapshot(), self.access().in_force());
        let effects = uses.iter().flat_map(|tool| {
            let effects: Vec<Option<Effect>> = snapshot
                .used(tool)
                .into_iter()
                .map(|holder| in_force.effect_of(holder).map(|(effect, _)| effect))
                .collect();
            // Of a tool that is not there, nobody knows.
            if effects.is_empty() { vec![None] } else { effects }
        });
        let effects: Vec<Option<Effect>> = effects.collect();
        match effects.contains(&Some(Effect::Danger)) {
            true => Some(Effect::Danger),
            false if effects.contains(&None) => None,
            false => effects.into_iter().flatten().max(),
        }
    }
}
