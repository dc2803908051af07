//! The calls that a call makes in turn, as far as they are known before the first of them: a person is asked once, about
//! all of them.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_policy::{AskBy, AskSettings, Decision, Verdict};
use sinew_steps::{Limits, calls_of};
use sinew_tool::{Args, Digest, Effect, PlannedCall, StepSource, ToolError, ToolUse};

use super::Lens;
use super::approvals::CallIdentity;
use super::authorize::{askers, denied};
use crate::gateway::Gateway;
use crate::labels::Label;
use crate::nested::{AgreedCall, MAX_DEPTH, Nesting};
use crate::route::{self, RequestedTool, Target};
use crate::snapshot::{Holder, Snapshot};
use crate::view::Shape;

/// The parts of a call.
#[derive(Default)]
pub(crate) struct CallParts {
    /// Those that a person must approve.
    pub(super) asked: Vec<AskedPart>,
    /// All, as a person is shown them.
    pub(super) shown: Vec<Value>,
}

/// A part that a person must approve.
pub(super) struct AskedPart {
    pub(super) call: AgreedCall,
    pub(super) asked_by: Vec<String>,
    /// How long it waits for a person, and for how long an approval holds.
    pub(super) wait: Duration,
    keep: Duration,
    by: AskBy,
    /// What it does; `None` where nobody said so.
    effect: Option<Effect>,
}

impl CallParts {
    pub(super) fn asked_calls(&self) -> Vec<AgreedCall> {
        self.asked.iter().map(|part| part.call.clone()).collect()
    }

    pub(super) fn askers(&self) -> impl Iterator<Item = String> {
        self.asked.iter().flat_map(|part| part.asked_by.iter().cloned())
    }

    /// For how long an approval of all of them holds; `None` where none must be approved.
    pub(super) fn keep(&self) -> Option<Duration> {
        self.asked.iter().map(|part| part.keep).min()
    }

    /// Who must agree to a call with its parts: a person, where one of them wants that.
    pub(super) fn ask_by(&self, whole: AskBy) -> AskBy {
        self.asked.iter().map(|part| part.by).fold(whole, AskBy::max)
    }

    /// The worst that the asked parts do; `None` where nobody said it of one of them.
    pub(super) fn worst_effect(&self) -> Option<Effect> {
        let mut effects = self.asked.iter().map(|part| part.effect);
        match effects.clone().any(|effect| effect == Some(Effect::Danger)) {
            true => Some(Effect::Danger),
            false => effects.try_fold(Effect::Read, |worst, effect| effect.map(|effect| worst.max(effect))),
        }
    }

    /// What is approved: a call, and the parts that must be. No tool has the digest of a list, so that approving them
    /// approves nothing else.
    pub(super) fn identity_with(&self, whole: CallIdentity) -> CallIdentity {
        if self.asked.is_empty() {
            return whole;
        }
        let calls = || self.asked.iter().map(|part| &part.call.call);
        let tools: Vec<Value> = calls().map(|call| json!([call.device, call.tool.hex()])).collect();
        let args: Vec<String> = calls().map(|call| call.args.hex()).collect();
        CallIdentity {
            tool: Digest::of(&json!([whole.tool.hex(), tools])),
            args: Digest::of(&json!([whole.args.hex(), args])),
            ..whole
        }
    }

    /// The arguments of the whole with its parts, in JSON.
    pub(super) fn shown_with(&self, args: Args) -> String {
        match self.shown.is_empty() {
            true => Value::Object(args).to_string(),
            false => json!({"arguments": args, "steps": self.shown}).to_string(),
        }
    }
}

/// Who is asked about parts, and what is agreed to already.
pub(super) struct PartsContext<'a> {
    pub(super) lens: &'a Lens,
    /// Calls that may be made without asking again; those that are among the parts are taken out.
    pub(super) agreed: Vec<AgreedCall>,
    /// Whether the caller has confirmed calls to a device.
    pub(super) confirms: &'a (dyn Fn(Option<&str>) -> bool + Sync),
    /// How many calls the parts are within.
    pub(super) depth: u8,
}

impl Gateway {
    /// The parts of a call that a person is asked about, where its tool is made of steps.
    pub(crate) async fn parts_of(
        &self,
        lens: &Lens,
        holder: Holder<'_>,
        args: &Args,
        nesting: &Nesting,
    ) -> Result<CallParts, ToolError> {
        if !matches!(holder.offered.tool.steps, StepSource::Tool(_)) {
            return Ok(CallParts::default());
        }
        let in_force = lens.in_force();
        let decision = in_force.policy().decide(&lens.plan(holder), args, in_force.local_time());
        // Otherwise the steps are asked about when the run begins.
        if decision.verdict != Verdict::Ask {
            return Ok(CallParts::default());
        }
        let calls = calls_of(&holder.offered.tool, args);
        let agreed = nesting.agreed.unused();
        let (confirms, depth) = (&|_: Option<&str>| false, nesting.depth + 1);
        self.parts(calls, PartsContext { lens, agreed, confirms, depth }).await
    }

    /// What these calls do, with what tools made of steps call in turn. Calls whose tool is not there now are asked about
    /// when they are made. Fails where one is denied.
    pub(super) async fn parts(
        &self,
        calls: Vec<PlannedCall>,
        mut context: PartsContext<'_>,
    ) -> Result<CallParts, ToolError> {
        let (lens, depth) = (context.lens, context.depth);
        let mut parts = CallParts::default();
        let mut open: Vec<(PlannedCall, u8, Option<String>)> =
            calls.into_iter().rev().map(|call| (call, depth, None)).collect();
        let mut left = Limits::OF_TOOL.executed;
        while let Some((call, depth, within)) = open.pop() {
            for (holder, args) in targets(lens, &call, self.settings().spec_tools) {
                let Some(less) = left.checked_sub(1) else { return Ok(parts) };
                left = less;
                self.add_part(&mut parts, &mut context, (&call, holder, &args, within.as_deref())).await?;
                if depth < MAX_DEPTH {
                    let inner = calls_of(&holder.offered.tool, &args);
                    let name = &holder.offered.tool.name;
                    open.extend(inner.into_iter().rev().map(|call| (call, depth + 1, Some(name.clone()))));
                }
            }
        }
        Ok(parts)
    }

    async fn add_part(
        &self,
        parts: &mut CallParts,
        context: &mut PartsContext<'_>,
        (call, holder, args, within): (&PlannedCall, Holder<'_>, &Args, Option<&str>),
    ) -> Result<(), ToolError> {
        let (lens, in_force) = (context.lens, context.lens.in_force());
        let plan = lens.plan(holder);
        let decision = in_force.policy().decide(&plan, args, in_force.local_time());
        let mut must_ask = false;
        match decision.verdict {
            Verdict::Allow => {}
            Verdict::Deny => return Err(denied(holder, &decision.reason)),
            Verdict::Ask if (context.confirms)(call.device.as_deref()) => {}
            Verdict::Ask => {
                let agreed = |args: &Args| AgreedCall {
                    policy: in_force.version().clone(),
                    call: CallIdentity::of(holder, args),
                };
                must_ask = !agreed(args).take_from(&mut context.agreed);
                if must_ask {
                    // As the call will be made; one that cannot be is refused when it comes, if it comes.
                    let Ok(checked) = self.check(holder, args.clone(), false).await else { return Ok(()) };
                    let call = agreed(&checked);
                    must_ask = !call.take_from(&mut context.agreed);
                    if must_ask {
                        let AskSettings { wait, keep, by } = decision.ask;
                        let effect = in_force.effect_of(holder).map(|(effect, _)| effect);
                        parts.asked.push(AskedPart { call, asked_by: askers(&decision), wait, keep, by, effect });
                    }
                }
            }
        }
        parts.shown.push(describe(lens, holder, args, &decision, must_ask, within));
        Ok(())
    }
}

/// The tools that a call reaches, each with its arguments: one, or one on each device of a label.
fn targets<'s>(lens: &'s Lens, call: &PlannedCall, spec_tools: bool) -> Vec<(Holder<'s>, Args)> {
    let snapshot = lens.snapshot();
    if call.device.as_deref().is_some_and(|device| Label::selected(device).is_some()) {
        let wanted = ToolUse { device: call.device.clone(), tool: call.tool.clone() };
        let members = snapshot.used(&wanted).into_iter().filter(|holder| lens.sees(*holder));
        return members.map(|holder| (holder, call.args.clone())).collect();
    }
    if let Some(members) = labelled_targets(lens, snapshot, call) {
        return members;
    }
    let mut args = call.args.clone();
    let requested = match &call.device {
        Some(device) => RequestedTool::On { device, tool: &call.tool },
        None => RequestedTool::Public { name: &call.tool, shape: Shape::Folded },
    };
    match route::find(snapshot, requested, &mut args, lens, spec_tools) {
        Ok(Target::Device(holder)) => vec![(holder, args)],
        _ => Vec::new(),
    }
}

/// The same for a tool that is called by its public name with a label as its device; `None` for any other call.
fn labelled_targets<'s>(lens: &Lens, snapshot: &'s Snapshot, call: &PlannedCall) -> Option<Vec<(Holder<'s>, Args)>> {
    if call.device.is_some() {
        return None;
    }
    let selector = &snapshot.find_seen(&call.tool, lens)?.selector;
    let label = call.args.get(selector)?.as_str().and_then(Label::selected)?;
    let mut args = call.args.clone();
    args.shift_remove(selector);
    let entries = snapshot.devices.iter().filter(|entry| entry.labels.iter().any(|own| own.as_str() == label));
    let holders = entries.filter_map(|entry| Some(Holder { entry, offered: snapshot.offered(&call.tool, entry)? }));
    Some(holders.filter(|holder| lens.sees(*holder)).map(|holder| (holder, args.clone())).collect())
}

/// One of the calls, as a person is shown it.
fn describe(
    lens: &Lens,
    holder: Holder<'_>,
    args: &Args,
    decision: &Decision<'_>,
    must_ask: bool,
    within: Option<&str>,
) -> Value {
    let shown = lens.shown(holder, args);
    let (tool, device) = (&holder.offered.tool.name, holder.entry.title());
    let mut step = json!({"tool": tool, "device": device, "arguments": shown});
    if let Some(within) = within {
        step["within"] = json!(within);
    }
    if must_ask {
        step["approve_because"] = json!(decision.reason.text());
    }
    step
}
