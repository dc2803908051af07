//! What calling a tool can do, and who says so.

use sinew_tool::{Digest, Effect, Hints, Tool};

use crate::firmware;
use crate::selection::select;
use crate::selector::{AnyOf, DeviceFacts, DeviceSelector, ToolFacts, ToolSelector};

sinew_tool::settings! {
    /// What some tools do. Where several entries match, the most dangerous effect counts.
    pub struct EffectRule {
        /// Devices, as in the rules of the policy. By default all.
        pub on: AnyOf<DeviceSelector> = AnyOf::default();
        /// Tools: a name with `*` for any text.
        pub tools: AnyOf<ToolSelector> = AnyOf::default();
        /// What they do: `read`, `change` or `danger`.
        pub effect: Option<MarkedEffect> = None;
    }
}

/// An effect as the configuration writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkedEffect {
    Read,
    Change,
    #[default]
    Danger,
}

sinew_tool::choices! {
    MarkedEffect { "read" => MarkedEffect::Read, "change" => MarkedEffect::Change, "danger" => MarkedEffect::Danger }
}

impl From<MarkedEffect> for Effect {
    fn from(effect: MarkedEffect) -> Effect {
        match effect {
            MarkedEffect::Read => Effect::Read,
            MarkedEffect::Change => Effect::Change,
            MarkedEffect::Danger => Effect::Danger,
        }
    }
}

/// Where a tool comes from, as far as it bears on whom to believe.
#[derive(Clone, Copy, Debug)]
pub struct ToolOrigin<'a> {
    pub device: DeviceFacts<'a>,
    pub public_name: &'a str,
    /// Whether a person agreed to the device's tools.
    pub pinned: bool,
    /// The effect that the agreement names.
    pub agreed: Option<Effect>,
}

/// Who said what a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectSource {
    Configuration,
    Agreement,
    /// The family defines the tool itself.
    Family,
    /// A known tool of the firmware.
    Firmware,
    /// The device's own hints.
    Hints,
}

/// The effect of a tool; `None` where nobody said. What an untrusted source says can only make it more dangerous than
/// nothing: a tool is never taken for harmless on the word of a device that nobody pinned.
pub fn effect_of(rules: &[EffectRule], tool: &Tool, origin: &ToolOrigin<'_>) -> Option<(Effect, EffectSource)> {
    let facts = ToolFacts {
        name: &tool.name,
        public_name: origin.public_name,
        effect: None,
        hints: tool.hints,
        audience: tool.audience,
    };
    if let Some(effect) = configured(rules, &origin.device, &facts) {
        return Some((effect, EffectSource::Configuration));
    }
    if let Some(effect) = origin.agreed {
        return Some((effect, EffectSource::Agreement));
    }
    if let Some(effect) = tool.effect {
        return Some((effect, EffectSource::Family));
    }
    let known = firmware::find(&tool.name);
    let same_schema = known.is_some_and(|known| known.schema == Digest::of(&tool.input_schema));
    let hinted = hinted_effect(&tool.hints);
    let raised = |effect: Effect| hinted.filter(|hint| *hint > effect).unwrap_or(effect);
    match known {
        Some(known) if same_schema && origin.device.approved => Some((raised(known.effect), EffectSource::Firmware)),
        // Any device can give its tool such a name, so the name alone makes nothing harmless.
        Some(known) if known.effect == Effect::Danger => Some((Effect::Danger, EffectSource::Firmware)),
        _ => match hinted {
            Some(effect) if origin.pinned || effect == Effect::Danger => Some((effect, EffectSource::Hints)),
            _ => None,
        },
    }
}

/// What the configuration says.
pub(crate) fn configured(rules: &[EffectRule], device: &DeviceFacts<'_>, tool: &ToolFacts<'_>) -> Option<Effect> {
    let matches = |rule: &&EffectRule| {
        // An entry that lowers the effect is like a rule that allows.
        let lowers = rule.effect != Some(MarkedEffect::Danger);
        select((&rule.on, &rule.tools), device, tool).is_some_and(|selected| selected.may_allow || !lowers)
    };
    rules.iter().filter(matches).filter_map(|rule| rule.effect.map(Effect::from)).max()
}

/// What the device's hints say, if anything.
pub fn hinted_effect(hints: &Hints) -> Option<Effect> {
    match (hints.read_only, hints.destructive) {
        (_, Some(true)) => Some(Effect::Danger),
        (Some(true), _) => Some(Effect::Read),
        (_, Some(false)) => Some(Effect::Change),
        _ => None,
    }
}

const READING: [&str; 10] = ["get", "list", "read", "show", "find", "search", "status", "query", "check", "is"];
const DANGEROUS: [&str; 17] = [
    "unlock",
    "open",
    "delete",
    "remove",
    "erase",
    "wipe",
    "format",
    "reset",
    "reboot",
    "upgrade",
    "install",
    "uninstall",
    "pay",
    "buy",
    "send",
    "disarm",
    "flash",
];

/// A guess for a tool that nobody marked, from its hints and its name. Only a proposal for a person.
pub fn propose_effect(tool: &Tool) -> Effect {
    hinted_effect(&tool.hints).unwrap_or_else(|| effect_of_name(&tool.name))
}

/// The worst that a tool which nobody marked may do, by its name and its hints. The word of a device makes nothing
/// harmless here.
pub fn suspected_effect(tool: &Tool) -> Effect {
    match (hinted_effect(&tool.hints), effect_of_name(&tool.name)) {
        (Some(Effect::Danger), _) | (_, Effect::Danger) => Effect::Danger,
        (_, by_name) => by_name,
    }
}

fn effect_of_name(name: &str) -> Effect {
    // What it does comes first: `add_to_shopping_list` does not list.
    let own_words = words(name.rsplit('.').next().unwrap_or_default());
    if words(name).iter().any(|word| DANGEROUS.contains(&word.as_str())) {
        Effect::Danger
    } else if own_words.first().is_some_and(|verb| READING.contains(&verb.as_str())) {
        Effect::Read
    } else {
        Effect::Change
    }
}

/// The words of a name, however they are joined: `door.unlock`, `unlock_door`, `unlockDoor`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (was_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
