//! JSON Schema as this crate needs it: local references, validity under 2020-12, and checking values
//! with bounded work.
//!
//! Nothing is ever fetched: a reference that leaves the document is a problem. [`sinew_schema`] counts the
//! work of checking, and a document has a budget for it.

use std::borrow::Cow;

use serde_json::Value;
use sinew_schema::{Cost, Failure, Invalid, Meter, Rejection, Step, Validator};
use sinew_tool::text::clip;

/// Schema objects in one schema; a larger one is not for models.
const MAX_SCHEMAS: usize = 20_000;
/// Steps for checking one value: some ten milliseconds. Real examples need some hundreds.
const MAX_STEPS: u64 = 1_000_000;
/// Problems reported of one schema or value.
const MAX_PROBLEMS: usize = 5;

/// Something wrong with a schema, or with a value under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaProblem {
    /// JSON pointer into the schema or value.
    pub pointer: String,
    pub message: String,
}

impl SchemaProblem {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> SchemaProblem {
        SchemaProblem { pointer: pointer.into(), message: message.into() }
    }
}

/// The schema a local reference leads to: `#`, `#/$defs/x`, `#anchor`.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&percent_decode(fragment));
    }
    let definitions = ["$defs", "definitions"].iter().filter_map(|key| root.get(key)?.as_object());
    definitions.flat_map(|map| map.values()).find(|schema| {
        ["$anchor", "$dynamicAnchor"].iter().any(|key| schema.get(key).and_then(Value::as_str) == Some(fragment))
    })
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Everything is read as 2020-12, whatever `$schema` claims.
fn without_dialect(schema: &Value) -> Cow<'_, Value> {
    if schema.get("$schema").is_none() {
        return Cow::Borrowed(schema);
    }
    let mut bare = schema.clone();
    if let Some(members) = bare.as_object_mut() {
        members.remove("$schema");
    }
    Cow::Owned(bare)
}

/// What may still be spent on schemas and examples. One budget is shared by all tools of a document.
pub(crate) struct CheckBudget {
    compile: Cost,
    /// Steps of [`Meter`]s.
    steps: u64,
}

impl Default for CheckBudget {
    /// Less than a second and 20 MB for any document; a thousand ordinary tools take a tenth of it.
    fn default() -> CheckBudget {
        let compile = Cost {
            schemas: 100_000,
            patterns: 5_000,
            pattern_bytes: 500_000,
            pattern_states: 300_000,
            properties: 500,
        };
        CheckBudget { compile, steps: 20_000_000 }
    }
}

/// A schema ready to check values.
pub(crate) struct Checker<'a> {
    schema: Cow<'a, Value>,
    validator: Validator,
}

impl<'a> Checker<'a> {
    /// The error is everything that makes the schema unusable.
    pub(crate) fn new(schema: &'a Value, budget: &mut CheckBudget) -> Result<Checker<'a>, Vec<SchemaProblem>> {
        let schema = without_dialect(schema);
        let room = Cost { schemas: budget.compile.schemas.min(MAX_SCHEMAS), ..budget.compile };
        let problem = |invalid| match invalid {
            Invalid::Wrong { at, what } => SchemaProblem::new(at, clip(&what)),
            Invalid::Endless { at } => SchemaProblem::new(at, "the schema refers to itself in an endless loop"),
            Invalid::TooCostly(what) => {
                SchemaProblem::new("", format!("the schema has more {what} than can be checked"))
            }
        };
        let validator = Validator::compile_reporting(&schema, room, MAX_PROBLEMS)
            .map_err(|invalid| invalid.into_iter().map(problem).collect::<Vec<_>>())?;
        budget.compile = budget.compile.minus(validator.cost()).unwrap_or_default();
        Ok(Checker { schema, validator })
    }

    /// What is wrong with a value; `None` if finding out would take too long. A member with a problem is set aside,
    /// so that the others are checked too.
    pub(crate) fn check(&self, value: &Value, budget: &mut CheckBudget) -> Option<Vec<SchemaProblem>> {
        let mut value = value.clone();
        let mut set_aside: Vec<String> = Vec::new();
        let mut found = Vec::new();
        while found.len() < MAX_PROBLEMS {
            let limit = budget.steps.min(MAX_STEPS);
            let mut meter = Meter::new(limit);
            let checked = self.validator.check(&value, &mut meter);
            budget.steps -= meter.spent();
            let failure = match checked {
                Ok(()) => break,
                Err(Rejection::Exhausted) => return None,
                Err(Rejection::Failed(failure)) => failure,
            };
            let is_missing = failure.keyword == "required" && failure.path.is_empty();
            if is_missing && failure.member.as_ref().is_some_and(|member| set_aside.contains(member)) {
                break;
            }
            found.push(explained(&failure, &self.schema));
            let member = match failure.path.first() {
                Some(Step::Member(name)) => Some((*name).to_owned()),
                None if !is_missing => failure.member.clone(),
                _ => None,
            };
            let Some(member) = member else { break };
            if value.as_object_mut().and_then(|members| members.remove(&member)).is_none() {
                break;
            }
            set_aside.push(member);
        }
        Some(found)
    }

    #[cfg(test)]
    pub(crate) fn accepts(&self, value: &Value) -> Option<bool> {
        self.check(value, &mut CheckBudget::default()).map(|problems| problems.is_empty())
    }
}

fn explained(failure: &Failure<'_>, schema: &Value) -> SchemaProblem {
    let mut pointer = String::new();
    for step in &failure.path {
        match step {
            Step::Item(index) => pointer.push_str(&format!("/{index}")),
            Step::Member(name) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
        }
    }
    let (path, issue) = failure.explain(schema, "the tool");
    let message = if path.is_empty() { format!("the value {issue}") } else { format!("`{}` {issue}", clip(&path)) };
    SchemaProblem::new(pointer, clip(&message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first_problem(schema: Value) -> String {
        Checker::new(&schema, &mut CheckBudget::default())
            .err()
            .unwrap_or_default()
            .first()
            .map(|problem| format!("{}: {}", problem.pointer, problem.message))
            .unwrap_or_default()
    }

    /// Every definition mentions the next one twice: 2^40 steps for one value.
    fn bomb() -> Value {
        let mut defs = serde_json::Map::new();
        for level in 0..40 {
            let next = format!("#/$defs/d{}", level + 1);
            defs.insert(format!("d{level}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        }
        defs.insert("d40".to_owned(), json!({"type": "string"}));
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    }

    #[test]
    fn problems_name_their_place() {
        assert_eq!(first_problem(json!({"type": "object", "properties": {"a": {"type": "integer"}}})), "");
        assert!(first_problem(json!({"properties": {"a": {"type": "strng"}}})).starts_with("/properties/a: "));
        assert!(first_problem(json!({"$ref": "https://example.com/x.json"})).contains("nothing is fetched"));
        assert!(first_problem(json!({"items": {"$ref": "#/$defs/none"}})).starts_with("/items: "));
        assert!(
            first_problem(json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})).contains("endless loop")
        );
        assert!(first_problem(json!({"pattern": "("})).contains("pattern"));
        assert_eq!(first_problem(json!({"$schema": "https://example.com/mine", "type": "object"})), "");
    }

    #[test]
    fn recursive_schemas_check_values() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": false});
        assert_eq!(first_problem(tree.clone()), "");
        let checker = Checker::new(&tree, &mut CheckBudget::default()).ok().unwrap();
        assert_eq!(checker.accepts(&json!({"child": {"child": {}}})), Some(true));
        assert_eq!(checker.accepts(&json!({"child": {"chld": {}}})), Some(false));
    }

    #[test]
    fn schemas_that_multiply_are_not_run() {
        let bomb = bomb();
        let checker = Checker::new(&bomb, &mut CheckBudget::default()).ok().unwrap();
        assert_eq!(checker.accepts(&json!("x")), None);
        let circle = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
        assert_eq!(
            Checker::new(&circle, &mut CheckBudget::default()).ok().and_then(|checker| checker.accepts(&json!(1))),
            None
        );
    }

    #[test]
    fn huge_schemas_are_refused() {
        let wide: Vec<Value> = (0..30_000).map(|index| json!({"const": index})).collect();
        assert!(first_problem(json!({"anyOf": wide})).contains("more subschemas than"));
    }

    #[test]
    fn references_are_followed_inside_the_document() {
        let root = json!({"$defs": {"a b": {"x": 1}, "named": {"$anchor": "here", "y": 2}}});
        assert_eq!(resolve(&root, "#/$defs/a%20b"), Some(&json!({"x": 1})));
        assert_eq!(resolve(&root, "#here").and_then(|schema| schema.get("y")), Some(&json!(2)));
        assert_eq!(resolve(&root, "#"), Some(&root));
        assert_eq!(resolve(&root, "other.json"), None);
    }
}
