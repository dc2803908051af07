//! What the policy says about calls, for people who write one.

use sinew_policy::{EffectSource, Explanation, PolicyProblem, PolicySettings, Verdict, propose_effect};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Effect, ErrorKind, ToolError};

use crate::gateway::Gateway;
use crate::identity::unknown_device;
use crate::principal::Principal;
use crate::snapshot::Holder;
use crate::token_labels;

/// What a tool does, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEffect {
    pub device: String,
    pub tool: String,
    /// `None` where nobody said what it does.
    pub effect: Option<(Effect, EffectSource)>,
    /// A guess from its hints and its name.
    pub proposal: Effect,
}

/// What the policy says about one call, whether or not the caller sees the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct CallExplanation {
    pub effect: ToolEffect,
    /// Whether the tool is listed for the caller.
    pub is_listed: bool,
    pub decision: Explanation,
}

impl Gateway {
    /// Which selectors of a policy match none of the callers, devices and tools that are known now.
    pub fn check_policy(&self, settings: &PolicySettings) -> Vec<PolicyProblem> {
        let snapshot = self.snapshot();
        let in_force = self.access().in_force();
        let facts: Vec<_> = snapshot
            .devices
            .iter()
            .map(|entry| (entry, entry.kind(), entry.labels.iter().map(|label| label.as_str()).collect::<Vec<_>>()))
            .collect();
        let devices = facts.iter().map(|(entry, kind, labels)| {
            let tools = entry.offer.tools.iter().map(|offered| in_force.tool_facts(Holder { entry, offered }));
            (in_force.device_facts(entry, kind, labels), tools.collect())
        });
        let tokens = self.tokens().names();
        let mut problems = settings.check_callers(|name| token_labels::may_be_caller(name, &tokens));
        problems.extend(settings.check_against(devices));
        problems
    }

    /// What happens to calls of dangerous tools that no rule is about.
    pub fn danger_default(&self) -> Verdict {
        self.access().in_force().policy().settings().danger
    }

    /// Every tool that is offered, with its effect, by device.
    pub fn effects(&self) -> Vec<ToolEffect> {
        let snapshot = self.snapshot();
        let holders = snapshot
            .devices
            .iter()
            .flat_map(|entry| entry.offer.tools.iter().map(move |offered| Holder { entry, offered }));
        holders.map(|holder| self.effect_of(holder)).collect()
    }

    fn effect_of(&self, holder: Holder<'_>) -> ToolEffect {
        let tool = &holder.offered.tool;
        ToolEffect {
            device: holder.entry.id.to_string(),
            tool: tool.name.clone(),
            effect: self.access().in_force().effect_of(holder),
            proposal: propose_effect(tool),
        }
    }

    /// What the policy would say about a call now. Nothing is called.
    pub fn explain(
        &self,
        who: &Principal,
        device: &str,
        tool: &str,
        args: &Args,
    ) -> Result<CallExplanation, ToolError> {
        let snapshot = self.snapshot();
        let entry = snapshot.entry(device).ok_or_else(|| unknown_device(device, snapshot.devices.iter()))?;
        let offered = entry.offer.find(tool).ok_or_else(|| {
            let message = format!("{} has no tool `{}`", entry.title(), clean_line(tool, 128));
            ToolError::new(ErrorKind::UnknownTool, message)
        })?;
        let (holder, lens) = (Holder { entry, offered }, self.lens(who));
        let in_force = lens.in_force();
        let decision = in_force.policy().explain(&lens.plan(holder), args, in_force.local_time());
        Ok(CallExplanation { effect: self.effect_of(holder), is_listed: lens.sees(holder), decision })
    }
}
