//! The calls of steps that can be told before the first of them is made, so that a person agrees to what is really sent.

use serde_json::{Map, Value};
use sinew_tool::{Args, LOOK, PlannedCall, StepSource, Tool};

use crate::condition::Condition;
use crate::grammar::{Limits, Step, StepKind, Steps};
use crate::template;

/// Bytes of all planned arguments together: a long text in a loop is many long texts. A person is shown far less.
const MAX_PLANNED: usize = 4 << 20;

/// A call as far as it is known before the first step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// Its place as it is written: `2.then.1`.
    pub at: String,
    /// What depends on an answer stays a `${reference}`.
    pub call: PlannedCall,
    /// Nothing of it depends on an answer.
    pub is_known: bool,
    /// It looks at a screen for a condition, as often as that takes.
    pub is_look: bool,
}

impl Steps {
    /// The calls that depend on nothing but these values, each as often as it is made: a loop over a known list is gone
    /// through, and of a decision both branches count.
    pub fn known_calls(&self, scope: &Map<String, Value>, limits: &Limits) -> Vec<PlannedCall> {
        let planned = self.planned_steps(scope, limits).into_iter();
        planned.filter(|step| step.is_known && !step.is_look).map(|step| step.call).collect()
    }

    /// All calls as far as they are known, in the order of the steps; those of an unknown list once.
    pub fn planned_steps(&self, scope: &Map<String, Value>, limits: &Limits) -> Vec<PlannedStep> {
        let (scope, left, room) = (scope.clone(), limits.executed, MAX_PLANNED);
        let mut planner = Planner { scope, left, room, planned: Vec::new() };
        planner.list(&self.list, "");
        planner.planned
    }
}

/// The values that the steps of a tool may refer to from the start. A parameter that was not given is its default, or
/// null.
pub fn scope_of(tool: &Tool, args: &Args) -> Map<String, Value> {
    let value =
        |name: &str, schema: &Value| args.get(name).or_else(|| schema.get("default")).cloned().unwrap_or(Value::Null);
    tool.properties().into_iter().flatten().map(|(name, schema)| (name.clone(), value(name, schema))).collect()
}

/// The calls that a tool makes with these arguments, as far as they are known; none where the tool has no steps of its
/// own.
pub fn calls_of(tool: &Tool, args: &Args) -> Vec<PlannedCall> {
    let StepSource::Tool(written) = &tool.steps else { return Vec::new() };
    let scope = scope_of(tool, args);
    // Whoever made the tool has checked its steps.
    let steps = Steps::parse(written, scope.keys().map(String::as_str), &Limits::OF_TOOL);
    steps.map(|steps| steps.known_calls(&scope, &Limits::OF_TOOL)).unwrap_or_default()
}

struct Planner {
    /// The values that are known at this place.
    scope: Map<String, Value>,
    /// Steps that may still be carried out, and bytes that may still be planned.
    left: usize,
    room: usize,
    planned: Vec<PlannedStep>,
}

impl Planner {
    fn list(&mut self, steps: &[Step], within: &str) {
        for (nth, step) in steps.iter().enumerate() {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            let at = format!("{within}{}", nth + 1);
            match &step.kind {
                StepKind::Call { device, tool, arguments, save } => {
                    self.plan(&at, device.as_ref(), tool, arguments, false);
                    // From here on the name stands for an answer.
                    save.iter().for_each(|name| drop(self.scope.remove(name)));
                }
                StepKind::If { condition, then, otherwise } => {
                    self.look(&at, condition);
                    self.list(then, &format!("{at}.then."));
                    self.list(otherwise, &format!("{at}.else."));
                }
                StepKind::Each { items, name, steps } => self.each(items, name, steps, &format!("{at}.do.")),
                StepKind::Expect { condition, .. } => self.look(&at, condition),
                StepKind::Wait { .. } | StepKind::Return { .. } => {}
            }
        }
    }

    fn each(&mut self, items: &Value, name: &str, steps: &[Step], within: &str) {
        let outer = self.scope.remove(name);
        match template::fill(items, &self.scope) {
            Ok(Value::Array(items)) => {
                for item in items {
                    self.scope.insert(name.to_owned(), item);
                    self.list(steps, within);
                }
            }
            // Once at least, if at all.
            _ => self.list(steps, within),
        }
        self.scope.remove(name);
        self.scope.extend(outer.map(|value| (name.to_owned(), value)));
    }

    fn look(&mut self, at: &str, condition: &Condition) {
        for device in condition.screens() {
            self.plan(at, device, LOOK, &Map::new(), true);
        }
    }

    fn plan(&mut self, at: &str, device: Option<&Value>, tool: &str, arguments: &Map<String, Value>, is_look: bool) {
        let mut is_known = true;
        let mut fill = |value: &Value| {
            let (filled, is_whole) = template::fill_known(value, &self.scope);
            is_known &= is_whole;
            filled
        };
        let device = match device.map(&mut fill) {
            None => None,
            Some(Value::String(device)) => Some(device),
            // A device that is no text is refused when the step comes.
            Some(_) => return,
        };
        let Value::Object(args) = fill(&Value::Object(arguments.clone())) else { return };
        let size = args.iter().map(|(name, value)| name.len() + template::weigh(value)).sum();
        match self.room.checked_sub(size) {
            None => self.left = 0,
            Some(room) => {
                self.room = room;
                let call = PlannedCall { device, tool: tool.to_owned(), args };
                self.planned.push(PlannedStep { at: at.to_owned(), call, is_known, is_look });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    const LIMITS: Limits = Limits { written: 50, executed: 20, items: 20, time: Duration::from_secs(60) };

    fn planned(steps: Value) -> Vec<String> {
        let scope = json!({"pin": "1234", "rooms": ["a", "b"]});
        let scope = scope.as_object().unwrap();
        let steps = Steps::parse(&steps, scope.keys().map(String::as_str), &LIMITS).unwrap();
        let call = |call: PlannedCall| format!("{} {}", call.tool, json!(call.args));
        steps.known_calls(scope, &LIMITS).into_iter().map(call).collect()
    }

    #[test]
    fn a_loop_over_a_known_list_is_planned_for_every_item() {
        let steps =
            json!([{"each": "${rooms}", "as": "room", "do": [{"call": "unlock", "arguments": {"room": "${room}"}}]}]);
        assert_eq!(planned(steps), [r#"unlock {"room":"a"}"#, r#"unlock {"room":"b"}"#]);
        let steps = json!([{"each": [1, 2, 3], "do": [{"call": "unlock"}]}]);
        assert_eq!(planned(steps), ["unlock {}", "unlock {}", "unlock {}"]);
        let endless =
            json!([{"each": [1, 2, 3, 4, 5, 6], "do": [{"each": [1, 2, 3, 4, 5, 6], "do": [{"call": "unlock"}]}]}]);
        assert!(planned(endless).len() <= LIMITS.executed);
    }

    #[test]
    fn a_long_text_in_a_loop_is_not_planned_without_end() {
        let scope = json!({"text": "x".repeat(500_000), "rooms": (0..20).collect::<Vec<_>>()});
        let scope = scope.as_object().unwrap();
        let steps = json!([{"each": "${rooms}", "do": [{"call": "write", "arguments": {"it": "${text}"}}]}]);
        let steps = Steps::parse(&steps, scope.keys().map(String::as_str), &LIMITS).unwrap();
        let planned = steps.known_calls(scope, &LIMITS).len();
        assert!((1..=8).contains(&planned), "{planned}");
    }

    #[test]
    fn what_is_not_known_yet_is_planned_with_its_reference() {
        let scope = json!({"pin": "1234"});
        let scope = scope.as_object().unwrap();
        let steps = json!([
            {"call": "ask", "device": "phone", "as": "door"},
            {"if": {"screen": {"text": "x"}, "device": "phone"}, "then": [
                {"call": "unlock", "device": "${door.id}", "arguments": {"pin": "${pin}", "door": "${door.id}"}},
            ]},
        ]);
        let steps = Steps::parse(&steps, scope.keys().map(String::as_str), &LIMITS).unwrap();
        let planned = steps.planned_steps(scope, &LIMITS);
        let about = |step: &PlannedStep| (step.at.clone(), step.call.tool.clone(), step.is_known, step.is_look);
        let all: Vec<_> = planned.iter().map(about).collect();
        let row = |at: &str, tool: &str, is_known, is_look| (at.to_owned(), tool.to_owned(), is_known, is_look);
        assert_eq!(
            all,
            [
                row("1", "ask", true, false),
                row("2", "find_elements", true, true),
                row("2.then.1", "unlock", false, false)
            ]
        );
        assert_eq!(json!(planned[2].call.args), json!({"pin": "1234", "door": "${door.id}"}));
    }

    #[test]
    fn what_depends_on_an_answer_is_not_planned_even_where_it_has_the_name_of_a_parameter() {
        let steps = json!([
            {"call": "try", "arguments": {"pin": "${pin}"}},
            {"call": "ask", "as": "pin"},
            {"call": "unlock", "arguments": {"pin": "${pin}"}},
            {"each": "${pin}", "do": [{"call": "unlock", "arguments": {"pin": "${item}"}}]},
            {"if": {"value": 1, "is": 1}, "then": [{"call": "yes"}], "else": [{"call": "no"}]},
        ]);
        assert_eq!(planned(steps), [r#"try {"pin":"1234"}"#, "ask {}", "yes {}", "no {}"]);
    }
}
