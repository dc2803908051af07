//! What the policy says about calls, for people who write one.

use std::sync::Arc;

use sinew_policy::{EffectSource, Explanation, PolicyProblem, PolicySettings, Verdict, propose_effect};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Effect, ErrorKind, ToolError};

use crate::gateway::Gateway;
use crate::identity::unknown_device;
use crate::page_of::{PageOf, in_background, search_words, unknown_cursor};
use crate::principal::Principal;
use crate::snapshot::{DeviceEntry, Holder};
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

/// Which tools are asked for; all by default.
#[derive(Clone, Debug, Default)]
pub struct EffectFilter {
    /// All must occur in the device's id or the tool's name, in lower case.
    words: Vec<String>,
    /// What the tool does; within, `None` for tools of which nobody said it.
    effect: Option<Option<Effect>>,
}

impl EffectFilter {
    /// Reads the texts `search` and `effect`.
    pub fn read<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<EffectFilter, ToolError> {
        let effect = match text("effect") {
            None => None,
            Some("unmarked") => Some(None),
            Some("read") => Some(Some(Effect::Read)),
            Some("change") => Some(Some(Effect::Change)),
            Some("danger") => Some(Some(Effect::Danger)),
            Some(_) => {
                let message = "`effect` must be `read`, `change`, `danger` or `unmarked`";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        };
        Ok(EffectFilter { words: search_words(text("search"))?, effect })
    }

    fn has(&self, gateway: &Gateway, holder: Holder<'_>) -> bool {
        let has_words = || {
            let text = format!("{} {}", holder.entry.id, holder.offered.tool.name).to_lowercase();
            self.words.iter().all(|word| text.contains(word))
        };
        let effect = || gateway.access().in_force().effect_of(holder).map(|(effect, _)| effect);
        (self.words.is_empty() || has_words()) && self.effect.is_none_or(|wanted| wanted == effect())
    }
}

/// The tools that a device offers, by name.
fn by_name(entry: &Arc<DeviceEntry>) -> impl Iterator<Item = Holder<'_>> {
    let mut offered: Vec<_> = entry.offer.tools.iter().collect();
    offered.sort_by(|one, other| one.tool.name.cmp(&other.tool.name));
    offered.into_iter().map(move |offered| Holder { entry, offered })
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

    /// A page of the tools that are offered, with their effects, by device and name. `after` is the `next` of the page
    /// before.
    pub async fn effects(
        &self,
        wanted: EffectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<PageOf<ToolEffect>, ToolError> {
        let after = after.map(|after| after.split_once('/').ok_or_else(unknown_cursor)).transpose()?;
        let (device, tool) = after.unwrap_or_default();
        let (device, tool, gateway) = (device.to_owned(), tool.to_owned(), self.clone());
        in_background(move || {
            let after = (device.as_str(), tool.as_str());
            let snapshot = gateway.snapshot();
            let fitting = snapshot.devices.iter().flat_map(by_name).filter(|holder| wanted.has(&gateway, *holder));
            let place = |holder: &Holder<'_>| format!("{}/{}", holder.entry.id, holder.offered.tool.name);
            let is_after = |holder: &Holder<'_>| (holder.entry.id.as_str(), holder.offered.tool.name.as_str()) > after;
            PageOf::collect(fitting, is_after, limit, place).map(|holder| gateway.effect_of(holder))
        })
        .await
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
