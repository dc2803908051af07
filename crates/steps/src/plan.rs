//! The calls of steps that can be told before the first of them is made, so that a person agrees to what is really sent.

use serde_json::{Map, Value};
use sinew_tool::PlannedCall;

use crate::grammar::{Limits, Step, StepKind, Steps};
use crate::template;

impl Steps {
    /// The calls that depend on nothing but these values, each as often as it is made: a loop over a known list is gone
    /// through, and of a decision both branches count.
    pub fn known_calls(&self, scope: &Map<String, Value>, limits: &Limits) -> Vec<PlannedCall> {
        let mut planner = Planner { scope: scope.clone(), left: limits.executed, calls: Vec::new() };
        planner.list(&self.list);
        planner.calls
    }
}

struct Planner {
    /// The values that are known at this place.
    scope: Map<String, Value>,
    /// Steps that may still be carried out.
    left: usize,
    calls: Vec<PlannedCall>,
}

impl Planner {
    fn list(&mut self, steps: &[Step]) {
        for step in steps {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            match &step.kind {
                StepKind::Call { device, tool, arguments, save } => {
                    self.calls.extend(self.known(device.as_ref(), tool, arguments));
                    // From here on the name stands for an answer.
                    save.iter().for_each(|name| drop(self.scope.remove(name)));
                }
                StepKind::If { then, otherwise, .. } => {
                    self.list(then);
                    self.list(otherwise);
                }
                StepKind::Each { items, name, steps } => self.each(items, name, steps),
                StepKind::Expect { .. } | StepKind::Wait { .. } | StepKind::Return { .. } => {}
            }
        }
    }

    fn each(&mut self, items: &Value, name: &str, steps: &[Step]) {
        let outer = self.scope.remove(name);
        match template::fill(items, &self.scope) {
            Ok(Value::Array(items)) => {
                for item in items {
                    self.scope.insert(name.to_owned(), item);
                    self.list(steps);
                }
            }
            // Once at least, if at all.
            _ => self.list(steps),
        }
        self.scope.remove(name);
        self.scope.extend(outer.map(|value| (name.to_owned(), value)));
    }

    fn known(&self, device: Option<&Value>, tool: &str, arguments: &Map<String, Value>) -> Option<PlannedCall> {
        let fill = |value: &Value| template::fill(value, &self.scope).ok();
        let device = match device {
            Some(device) => Some(fill(device)?.as_str()?.to_owned()),
            None => None,
        };
        let Value::Object(args) = fill(&Value::Object(arguments.clone()))? else { return None };
        Some(PlannedCall { device, tool: tool.to_owned(), args })
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
