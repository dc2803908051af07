//! Secrets in the arguments of a call, also those that it only passes on to the steps of a tool that is made of others.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use sinew_steps::{Limits, Steps};
use sinew_tool::{Args, LOOK, StepSource, ToolUse, json};

use super::Lens;
use crate::builtin;
use crate::nested::MAX_DEPTH;
use crate::redaction::{self, REDACTED};
use crate::snapshot::Holder;

/// What may not be kept of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallSecrets {
    /// The arguments as people may see them; `None` where nothing in them is secret.
    pub(crate) shown: Option<Args>,
    /// The answer may have secrets too.
    pub(crate) in_answer: bool,
}

impl Lens {
    pub(crate) fn secrets(&self, holder: Holder<'_>, args: &Args) -> CallSecrets {
        self.secrets_at(holder, args, MAX_DEPTH)
    }

    /// The arguments of a call as people may see them.
    pub(crate) fn shown(&self, holder: Holder<'_>, args: &Args) -> Args {
        self.secrets(holder, args).shown.unwrap_or_else(|| args.clone())
    }

    fn secrets_at(&self, holder: Holder<'_>, args: &Args, depth: u8) -> CallSecrets {
        let tool = &holder.offered.tool;
        let marked = self.in_force().redact_marked(holder, args);
        let in_answer = tool.output_schema.as_deref().is_some_and(redaction::has_secrets);
        let args = marked.as_ref().unwrap_or(args);
        if self.may_miss_secrets(holder, args) {
            return CallSecrets { shown: Some(redaction::hide_values(args)), in_answer };
        }
        let mut steps = match &tool.steps {
            StepSource::Nowhere => return CallSecrets { shown: marked, in_answer },
            StepSource::Tool(steps) => (**steps).clone(),
            StepSource::Argument(name) => args.get(name).cloned().unwrap_or_default(),
        };
        let mut found =
            StepSecrets { lens: self, caller: holder, depth, names: BTreeSet::new(), any: false, in_answer };
        found.hide_in_calls(&mut steps);
        while found.hide_in_loops(&mut steps) {}
        let StepSecrets { names, any, in_answer, .. } = found;
        if !any {
            return CallSecrets { shown: marked, in_answer };
        }
        if !has_known_names(holder, args) {
            return CallSecrets { shown: Some(redaction::hide_values(args)), in_answer };
        }
        let mut shown = args.clone();
        match &tool.steps {
            StepSource::Argument(name) => drop(shown.insert(name.clone(), steps)),
            _ => shown.iter_mut().filter(|(name, _)| names.contains(*name)).for_each(|(_, value)| hide(value)),
        }
        CallSecrets { shown: Some(shown), in_answer }
    }
}

impl Lens {
    /// Whether steps could have secrets, and are not in the form in which those are found.
    fn may_miss_secrets(&self, holder: Holder<'_>, args: &Args) -> bool {
        let StepSource::Argument(name) = &holder.offered.tool.steps else { return false };
        let entry = holder.entry;
        let has_secrets = |offered| self.in_force().has_secrets(Holder { entry, offered });
        let is_read = || args.get(name).is_none_or(|steps| Steps::parse(steps, [], &ANY).is_ok());
        entry.offer.tools.iter().any(has_secrets) && !(has_known_names(holder, args) && is_read())
    }
}

/// How many steps there may be is for the device to say.
const ANY: Limits = Limits { written: usize::MAX, executed: usize::MAX, items: usize::MAX, time: Duration::MAX };

fn has_known_names(holder: Holder<'_>, args: &Args) -> bool {
    let known = holder.offered.tool.properties();
    let is_known =
        |name: &String| *name == holder.offered.selector || known.is_some_and(|known| known.contains_key(name));
    args.keys().all(is_known)
}

/// Looks for secrets in steps as they are written.
struct StepSecrets<'a> {
    lens: &'a Lens,
    /// The tool that runs the steps.
    caller: Holder<'a>,
    depth: u8,
    /// What secret arguments refer to.
    names: BTreeSet<String>,
    /// Whether a step has secret arguments.
    any: bool,
    in_answer: bool,
}

impl<'a> StepSecrets<'a> {
    fn hide_in_calls(&mut self, steps: &mut Value) {
        match steps {
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_calls(item)),
            Value::Object(step) => {
                let tool = ["call", "tool"].iter().find_map(|key| step.get(*key)?.as_str()).map(str::to_owned);
                let device = step.get("device").cloned();
                for (name, value) in step.iter_mut() {
                    match (&tool, name.as_str()) {
                        (Some(tool), "arguments") => self.hide_in_arguments(tool, device.as_ref(), value),
                        (None, "screen") => self.hide_in_look(device.as_ref(), value),
                        _ => self.hide_in_calls(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// A condition on a screen is a call too.
    fn hide_in_look(&mut self, device: Option<&Value>, selector: &mut Value) {
        let is_own = matches!(self.caller.offered.tool.steps, StepSource::Argument(_));
        // A device that has no such tool looks with another one.
        if is_own && self.holders(LOOK, device).is_empty() {
            return;
        }
        let mut arguments = json!({"selector": selector.take()});
        self.hide_in_arguments(LOOK, device, &mut arguments);
        *selector = arguments["selector"].take();
    }

    fn hide_in_arguments(&mut self, tool: &str, device: Option<&Value>, arguments: &mut Value) {
        let Value::Object(written) = &*arguments else { return hide(arguments) };
        if device.is_none() && builtin::NAMES.contains(&tool) {
            return;
        }
        let mut shown = None;
        let holders = self.holders(tool, device);
        if holders.is_empty() || self.depth == 0 {
            // Of a tool that is not there, nobody knows what is secret.
            shown = Some(redaction::hide_values(written));
        }
        for holder in holders.into_iter().filter(|_| self.depth > 0) {
            let args = shown.as_ref().unwrap_or(written);
            let secrets = self.lens.secrets_at(holder, args, self.depth - 1);
            self.in_answer |= secrets.in_answer;
            shown = secrets.shown.or(shown);
        }
        if let Some(shown) = shown {
            self.any = true;
            let shown = Value::Object(shown);
            hidden_references(arguments, &shown, &mut self.names);
            *arguments = shown;
        }
    }

    /// The tools that a step may mean.
    fn holders(&self, tool: &str, device: Option<&Value>) -> Vec<Holder<'a>> {
        match self.caller.offered.tool.steps {
            StepSource::Argument(_) => {
                let entry = self.caller.entry;
                entry.offer.find(tool).map(|offered| Holder { entry, offered }).into_iter().collect()
            }
            _ => {
                let device = device.and_then(Value::as_str).map(str::to_owned);
                self.lens.snapshot().used(&ToolUse { device, tool: tool.to_owned() })
            }
        }
    }

    /// Hides a list whose items become secret arguments, or several. Whether there was any.
    fn hide_in_loops(&mut self, steps: &mut Value) -> bool {
        match steps {
            Value::Array(items) => items.iter_mut().any(|item| self.hide_in_loops(item)),
            Value::Object(step) => {
                let name = step.get("as").and_then(Value::as_str).unwrap_or("item").to_owned();
                let mut any = false;
                for (key, value) in step.iter_mut() {
                    if key == "each" && self.names.contains(&name) && *value != json!(REDACTED) {
                        hidden_references(value, &json!(REDACTED), &mut self.names);
                        hide(value);
                        any = true;
                    }
                    any |= self.hide_in_loops(value);
                }
                any
            }
            _ => false,
        }
    }
}

fn hide(value: &mut Value) {
    *value = json!(REDACTED);
}

/// Adds the names that references stand for in those texts of `written` that differ in `shown`.
fn hidden_references(written: &Value, shown: &Value, names: &mut BTreeSet<String>) {
    match (written, shown) {
        (Value::Object(written), Value::Object(shown)) => {
            written.iter().for_each(|(name, value)| {
                hidden_references(value, shown.get(name).unwrap_or(&Value::Null), names);
            });
        }
        (Value::Array(written), Value::Array(shown)) => {
            written.iter().zip(shown).for_each(|(written, shown)| hidden_references(written, shown, names));
        }
        (Value::Object(written), _) => {
            written.values().for_each(|value| hidden_references(value, shown, names));
        }
        (Value::Array(written), _) => written.iter().for_each(|value| hidden_references(value, shown, names)),
        (Value::String(text), shown) if shown.as_str() != Some(text) => {
            let references = text.split("${").skip(1).filter_map(|rest| rest.split(['.', '}']).next());
            names.extend(references.map(str::to_owned));
        }
        _ => {}
    }
}
