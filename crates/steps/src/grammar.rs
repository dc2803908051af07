//! The step grammar: a list of objects, checked as a whole before anything runs.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};
use sinew_tool::LOOK;
use sinew_tool::spelling::nearest;
use sinew_tool::text::clean_line;

use crate::condition::Condition;
use crate::template;

/// What a list of steps may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps that are written, at all levels.
    pub written: usize,
    /// Steps that are carried out, loops included.
    pub executed: usize,
    /// Items that one `each` goes through.
    pub items: usize,
    pub time: Duration,
}

impl Limits {
    /// What one run of a tool that is made of steps may cost, with all that it runs in turn.
    pub const OF_TOOL: Limits = Limits { written: 200, executed: 2_000, items: 200, time: Duration::from_secs(600) };
}

/// `if` and `each` in each other.
pub(crate) const MAX_DEPTH: usize = 4;

/// The longest single pause.
const MAX_WAIT: u64 = 60_000;

/// Checked steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    pub(crate) list: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub kind: StepKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    Call { device: Option<Value>, tool: String, arguments: Map<String, Value>, save: Option<String> },
    Expect { condition: Condition, within: Duration },
    If { condition: Condition, then: Vec<Step>, otherwise: Vec<Step> },
    Each { items: Value, name: String, steps: Vec<Step> },
    Wait { time: Duration },
    Return { value: Value },
}

impl StepKind {
    pub fn word(&self) -> &'static str {
        match self {
            StepKind::Call { .. } => "call",
            StepKind::Expect { .. } => "expect",
            StepKind::If { .. } => "if",
            StepKind::Each { .. } => "each",
            StepKind::Wait { .. } => "wait",
            StepKind::Return { .. } => "return",
        }
    }
}

/// What is wrong with a list of steps, and where: `2.then.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepsError {
    pub at: String,
    pub message: String,
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "step {}: {}", self.at, self.message),
        }
    }
}

/// A call as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenCall<'a> {
    /// Its place: `2.then.1`.
    pub at: String,
    pub device: Option<&'a Value>,
    pub tool: &'a str,
    /// None where the grammar makes the arguments itself.
    pub arguments: Option<&'a Map<String, Value>>,
}

impl WrittenCall<'_> {
    /// Whether all its arguments are among these; else the first that is not, with the nearest that is.
    pub fn check_arguments(&self, known: &[&str]) -> Result<(), String> {
        let unknown = self.arguments.into_iter().flat_map(Map::keys).find(|name| !known.contains(&name.as_str()));
        let Some(unknown) = unknown else { return Ok(()) };
        let (tool, unknown) = (clean_line(self.tool, 64), clean_line(unknown, 64));
        Err(match nearest(&unknown, known.iter().copied()) {
            Some(meant) => format!("`{tool}` has no argument `{unknown}`; did you mean `{meant}`?"),
            None if known.is_empty() => format!("`{tool}` has no argument `{unknown}`; it takes none"),
            None => format!("`{tool}` has no argument `{unknown}`; it takes {}", known.join(", ")),
        })
    }
}

fn collect<'a>(list: &'a [Step], within: &str, calls: &mut Vec<WrittenCall<'a>>) {
    for (nth, step) in list.iter().enumerate() {
        let at = format!("{within}{}", nth + 1);
        match &step.kind {
            StepKind::Call { device, tool, arguments, .. } => {
                calls.push(WrittenCall { at, device: device.as_ref(), tool, arguments: Some(arguments) });
            }
            StepKind::If { condition, then, otherwise } => {
                calls.extend(looks(condition, &at));
                collect(then, &format!("{at}.then."), calls);
                collect(otherwise, &format!("{at}.else."), calls);
            }
            StepKind::Each { steps, .. } => collect(steps, &format!("{at}.do."), calls),
            StepKind::Expect { condition, .. } => calls.extend(looks(condition, &at)),
            StepKind::Wait { .. } | StepKind::Return { .. } => {}
        }
    }
}

fn collect_returns<'a>(list: &'a [Step], within: &str, returns: &mut Vec<(String, &'a Value)>) {
    for (nth, step) in list.iter().enumerate() {
        let at = format!("{within}{}", nth + 1);
        match &step.kind {
            StepKind::Return { value } => returns.push((at, value)),
            StepKind::If { then, otherwise, .. } => {
                collect_returns(then, &format!("{at}.then."), returns);
                collect_returns(otherwise, &format!("{at}.else."), returns);
            }
            StepKind::Each { steps, .. } => collect_returns(steps, &format!("{at}.do."), returns),
            StepKind::Call { .. } | StepKind::Expect { .. } | StepKind::Wait { .. } => {}
        }
    }
}

fn looks<'a>(condition: &'a Condition, at: &str) -> Vec<WrittenCall<'a>> {
    let look = |device| WrittenCall { at: at.to_owned(), device, tool: LOOK, arguments: None };
    condition.screens().into_iter().map(look).collect()
}

impl Steps {
    /// Reads and checks a list. `known` are the names that may be referred to from the start.
    pub fn parse<'a>(
        value: &Value,
        known: impl IntoIterator<Item = &'a str>,
        limits: &Limits,
    ) -> Result<Steps, StepsError> {
        let known = known.into_iter().map(str::to_owned).collect();
        let mut reader = Reader { known, written: 0, limits };
        let list = reader.list(value, "", MAX_DEPTH)?;
        Ok(Steps { list })
    }

    /// The calls that are written, at all levels. Looking at a screen is one too.
    pub fn calls(&self) -> Vec<WrittenCall<'_>> {
        let mut calls = Vec::new();
        collect(&self.list, "", &mut calls);
        calls
    }

    /// The values that are returned, as they are written, with the place of each.
    pub fn returns(&self) -> Vec<(String, &Value)> {
        let mut returns = Vec::new();
        collect_returns(&self.list, "", &mut returns);
        returns
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

struct Reader<'a> {
    known: BTreeSet<String>,
    written: usize,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn list(&mut self, value: &Value, at: &str, depth: usize) -> Result<Vec<Step>, StepsError> {
        let wrong = |message: String| StepsError { at: at.to_owned(), message };
        let steps = value.as_array().ok_or_else(|| wrong("steps must be a list".to_owned()))?;
        if steps.is_empty() {
            return Err(wrong("a list of steps must have at least one".to_owned()));
        }
        self.written += steps.len();
        if self.written > self.limits.written {
            return Err(wrong(format!("there may be {} steps, and there are more", self.limits.written)));
        }
        let mut list = Vec::with_capacity(steps.len());
        for (nth, step) in steps.iter().enumerate() {
            let at = if at.is_empty() { format!("{}", nth + 1) } else { format!("{at}.{}", nth + 1) };
            list.push(self.step(step, &at, depth)?);
        }
        Ok(list)
    }

    fn step(&mut self, value: &Value, at: &str, depth: usize) -> Result<Step, StepsError> {
        let wrong = |message: String| StepsError { at: at.to_owned(), message };
        let kinds = "call, expect, if, each, wait or return";
        let Value::Object(members) = value else { return Err(wrong(format!("a step must be an object with {kinds}"))) };
        // `tool` is how a call of `run_steps` names what `call` names.
        let words = ["call", "tool", "expect", "if", "each", "wait", "return"];
        let kind = words.into_iter().find(|name| members.contains_key(*name));
        let kind = kind.ok_or_else(|| {
            let meant = members.keys().find_map(|name| Some((name, nearest(name, words)?)));
            let hint = meant.map_or(String::new(), |(name, meant)| format!("; did you mean `{meant}` by `{name}`?"));
            wrong(format!("a step must have one of {kinds}{hint}"))
        })?;
        let allowed: &[&str] = match kind {
            "call" | "tool" => &["arguments", "device", "as"],
            "expect" => &["within"],
            "if" => &["then", "else"],
            "each" => &["as", "do"],
            _ => &[],
        };
        if let Some(other) = members.keys().find(|name| *name != kind && !allowed.contains(&name.as_str())) {
            return Err(wrong(unknown_member(&format!("a step with `{kind}`"), other, allowed)));
        }
        if matches!(kind, "if" | "each") && depth == 0 {
            return Err(wrong(format!("`if` and `each` may be nested {MAX_DEPTH} deep")));
        }
        let main = &members[kind];
        let kind = match kind {
            "call" | "tool" => self.call(main, members).map_err(wrong)?,
            "expect" => {
                let condition = self.condition(main).map_err(wrong)?;
                StepKind::Expect { condition, within: milliseconds(members.get("within"), 0).map_err(wrong)? }
            }
            "if" => {
                let condition = self.condition(main).map_err(wrong)?;
                let then = members.get("then").ok_or_else(|| wrong("a step with `if` needs `then`".to_owned()))?;
                // What only one branch saves is not known after it.
                let before = self.known.clone();
                let then = self.list(then, &format!("{at}.then"), depth - 1)?;
                let after_then = std::mem::replace(&mut self.known, before);
                let otherwise = match members.get("else") {
                    Some(steps) => self.list(steps, &format!("{at}.else"), depth - 1)?,
                    None => Vec::new(),
                };
                self.known.retain(|name| after_then.contains(name));
                StepKind::If { condition, then, otherwise }
            }
            "each" => {
                self.check(main).map_err(wrong)?;
                let items = match main {
                    Value::Array(items) if items.len() <= self.limits.items => main.clone(),
                    Value::String(_) => main.clone(),
                    _ => {
                        let most = self.limits.items;
                        return Err(wrong(format!(
                            "`each` must be a list of at most {most} items or a `${{reference}}` to one"
                        )));
                    }
                };
                let name = members.get("as").map_or(Ok("item".to_owned()), name).map_err(wrong)?;
                let steps = members.get("do").ok_or_else(|| wrong("a step with `each` needs `do`".to_owned()))?;
                let before = self.known.clone();
                self.known.insert(name.clone());
                let steps = self.list(steps, &format!("{at}.do"), depth - 1)?;
                self.known = before;
                StepKind::Each { items, name, steps }
            }
            "wait" => StepKind::Wait { time: milliseconds(Some(main), 0).map_err(wrong)? },
            _ => {
                self.check(main).map_err(wrong)?;
                StepKind::Return { value: main.clone() }
            }
        };
        Ok(Step { kind })
    }

    fn call(&mut self, tool: &Value, members: &Map<String, Value>) -> Result<StepKind, String> {
        let tool = tool.as_str().filter(|tool| !tool.is_empty() && tool.len() <= 200);
        let tool = tool.ok_or("a call must name its tool")?.to_owned();
        let arguments = match members.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(arguments @ Value::Object(inner)) => {
                self.check(arguments)?;
                inner.clone()
            }
            Some(_) => return Err("`arguments` must be an object".to_owned()),
        };
        let device = match members.get("device") {
            None => None,
            Some(device @ Value::String(_)) => {
                self.check(device)?;
                Some(device.clone())
            }
            Some(_) => return Err("`device` must be a text".to_owned()),
        };
        let save = members.get("as").map(name).transpose()?;
        self.known.extend(save.clone());
        Ok(StepKind::Call { device, tool, arguments, save })
    }

    fn condition(&self, value: &Value) -> Result<Condition, String> {
        let condition = Condition::parse(value)?;
        condition.values().into_iter().try_for_each(|value| self.check(value))?;
        Ok(condition)
    }

    /// Whether every reference in a value names something that is known by then.
    fn check(&self, value: &Value) -> Result<(), String> {
        match template::names(value)?.into_iter().find(|name| !self.known.contains(name)) {
            None => Ok(()),
            Some(name) if self.known.is_empty() => {
                Err(format!("`${{{name}}}`: nothing is known yet; save an answer with `as`"))
            }
            Some(name) => {
                let known = self.known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                Err(format!("`${{{name}}}`: nothing is called `{name}` here; known are {known}"))
            }
        }
    }
}

/// What is wrong with a member that has no place where it stands.
pub(crate) fn unknown_member(whole: &str, other: &str, allowed: &[&str]) -> String {
    let other = clean_line(other, 64);
    match nearest(&other, allowed.iter().copied()) {
        Some(meant) => format!("{whole} has no `{other}`; did you mean `{meant}`?"),
        None if allowed.is_empty() => format!("{whole} has no `{other}`; beside it there may be nothing"),
        None => format!("{whole} has no `{other}`; beside it there may be {}", allowed.join(", ")),
    }
}

fn name(value: &Value) -> Result<String, String> {
    let is_name = |text: &&str| {
        (1..=40).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let name = value.as_str().filter(is_name);
    name.map(str::to_owned).ok_or_else(|| "`as` must be a name of small letters, digits and `_`".to_owned())
}

fn milliseconds(value: Option<&Value>, default: u64) -> Result<Duration, String> {
    let Some(value) = value else { return Ok(Duration::from_millis(default)) };
    let time = value.as_u64().filter(|time| *time <= MAX_WAIT);
    time.map(Duration::from_millis).ok_or_else(|| format!("times are milliseconds from 0 to {MAX_WAIT}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIMITS: Limits = Limits { written: 20, executed: 100, items: 10, time: Duration::from_secs(60) };

    fn error(steps: Value) -> String {
        Steps::parse(&steps, ["who"], &LIMITS).unwrap_err().to_string()
    }

    #[test]
    fn a_list_is_read_with_all_its_kinds() {
        let steps = json!([
            {"call": "list_apps", "as": "apps"},
            {"tool": "open_app", "arguments": {"app": "${apps.apps.0.package}"}, "device": "label:ci"},
            {"if": {"screen": {"text": "${who}"}}, "then": [{"wait": 100}], "else": [{"call": "press_back"}]},
            {"each": "${apps.apps}", "as": "app", "do": [{"expect": {"value": "${app.package}", "is_not": ""}, "within": 500}]},
            {"return": {"count": "${apps.apps}"}},
        ]);
        let steps = Steps::parse(&steps, ["who"], &LIMITS).unwrap();
        let tools: Vec<&str> = steps.calls().into_iter().map(|call| call.tool).collect();
        assert_eq!((steps.len(), tools), (5, vec!["list_apps", "open_app", "find_elements", "press_back"]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (steps, part) in [
            (json!({}), "must be a list"),
            (json!([]), "at least one"),
            (json!([{"call": ""}]), "step 1: a call must name its tool"),
            (json!([{"wait": 1}, {"do": 1}]), "step 2: a step must have one of"),
            (json!([{"wait": 1_000_000}]), "milliseconds"),
            (json!([{"call": "x", "argument": {}}]), "has no `argument`"),
            (json!([{"call": "x", "arguments": {"a": "${later}"}}]), "nothing is called `later` here; known are who"),
            (json!([{"if": {"value": 1, "is": 1}, "then": [{"call": "x", "as": "y"}]}, {"return": "${y}"}]), "step 2"),
            (json!([{"each": [1], "do": [{"wait": 1}]}, {"return": "${item}"}]), "`item`"),
            (json!([{"if": {"value": 1}, "then": [{"wait": 1}]}]), "one of `is`"),
            (json!([{"expect": {"screen": "Saved"}}]), "must be a selector"),
            (json!([{"expect": {"screen": {"idd": "x"}}}]), "a selector has no `idd`; did you mean `id`?"),
            (json!([{"expect": {"screen": {"near": {"txt": "x"}}}}]), "a selector has no `txt`"),
            (json!([{"each": 5, "do": []}]), "must be a list of at most 10"),
            (json!([{"call": "x", "as": "Big"}]), "small letters"),
        ] {
            let message = error(steps.clone());
            assert!(message.contains(part), "{steps}: {message}");
        }
        let many: Vec<Value> = (0..21).map(|_| json!({"wait": 1})).collect();
        assert!(error(json!(many)).contains("there may be 20 steps"));
        let mut deep = json!([{"wait": 1}]);
        for _ in 0..6 {
            deep = json!([{"if": {"value": 1, "is": 1}, "then": deep}]);
        }
        assert!(error(deep).contains("nested 4 deep"));
    }
}
