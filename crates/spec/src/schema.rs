//! JSON Schema as this crate needs it: local references, validity under 2020-12, and checking values
//! with bounded work.
//!
//! Nothing is ever fetched: a reference that leaves the document is a problem. Schemas that multiply
//! themselves are found before a validator runs on them.

use std::borrow::Cow;

use serde_json::Value;
use sinew_tool::text::clip;

/// A schema with more parts than this is refused: no model could read it.
const MAX_NODES: usize = 20_000;
/// Steps a validator may take on one value; a realistic schema needs some hundreds.
const MAX_STEPS: usize = 100_000;
/// Deeper than any JSON text is read, so only schemas that turn in circles reach it.
const MAX_DEPTH: usize = 256;
/// A pattern longer than this is a program.
const MAX_PATTERN: usize = 2_000;

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

/// Looks at every part once: how many there are, and whether references lead anywhere.
fn survey(root: &Value, part: &Value, pointer: &mut String, nodes: &mut usize, found: &mut Vec<SchemaProblem>) {
    *nodes += 1;
    if *nodes > MAX_NODES || found.len() >= 10 {
        return;
    }
    if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
        let at = || format!("{pointer}/$ref");
        if !reference.starts_with('#') {
            let message = format!(
                "`{}` points outside the document, and nothing is fetched; copy it into `$defs`",
                clip(reference)
            );
            found.push(SchemaProblem::new(at(), message));
        } else if resolve(root, reference).is_none() {
            found.push(SchemaProblem::new(at(), format!("`{}` has no target", clip(reference))));
        } else if is_endless(root, reference) {
            found.push(SchemaProblem::new(at(), format!("`{}` refers to itself in an endless loop", clip(reference))));
        }
    }
    if part.get("pattern").and_then(Value::as_str).is_some_and(|pattern| pattern.len() > MAX_PATTERN) {
        found.push(SchemaProblem::new(
            format!("{pointer}/pattern"),
            format!("the pattern is longer than {MAX_PATTERN} bytes"),
        ));
    }
    let length = pointer.len();
    match part {
        Value::Object(members) => {
            for (key, member) in members {
                // Data, not schemas: a `$ref` in an example is nobody's reference.
                if matches!(key.as_str(), "enum" | "const" | "default" | "examples") && !member.is_object() {
                    continue;
                }
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                survey(root, member, pointer, nodes, found);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                survey(root, item, pointer, nodes, found);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// Whether following plain references from here never arrives.
fn is_endless(root: &Value, reference: &str) -> bool {
    let mut next = resolve(root, reference);
    for _ in 0..MAX_DEPTH {
        let Some(reference) = next.and_then(|schema| schema.get("$ref")).and_then(Value::as_str) else { return false };
        next = resolve(root, reference);
    }
    true
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

/// A schema ready to check values.
pub(crate) struct Checker<'a> {
    schema: Cow<'a, Value>,
    validator: jsonschema::Validator,
}

impl<'a> Checker<'a> {
    /// The error is everything that makes the schema unusable.
    pub(crate) fn new(schema: &'a Value) -> Result<Checker<'a>, Vec<SchemaProblem>> {
        let mut nodes = 0;
        let mut found = Vec::new();
        survey(schema, schema, &mut String::new(), &mut nodes, &mut found);
        if nodes > MAX_NODES {
            let message = format!("the schema has more than {MAX_NODES} parts, which is too many to read");
            return Err(vec![SchemaProblem::new("", message)]);
        }
        let schema = without_dialect(schema);
        let built = if found.is_empty() { Checker::build(&schema).map_err(Some) } else { Err(None) };
        let first = match built {
            Ok(validator) => return Ok(Checker { schema, validator }),
            Err(first) => first,
        };
        // The builder stops at the first fault; the schema of schemas knows them all.
        for error in jsonschema::draft202012::meta::validator().iter_errors(&schema).take(5) {
            found.push(SchemaProblem::new(error.instance_path().as_str(), clip(&error.to_string())));
        }
        if found.is_empty() {
            found.extend(first);
        }
        Err(found)
    }

    fn build(schema: &Value) -> Result<jsonschema::Validator, SchemaProblem> {
        // Patterns run with limits: a small compiled size, and few steps back.
        let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(10_000).size_limit(1 << 20);
        jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| SchemaProblem::new(error.instance_path().as_str(), clip(&error.to_string())))
    }

    /// What is wrong with a value; `None` where finding out would take too long.
    pub(crate) fn check(&self, value: &Value) -> Option<Vec<SchemaProblem>> {
        let mut budget = MAX_STEPS;
        estimate(&self.schema, &self.schema, value, 0, &mut budget)?;
        let errors = self.validator.iter_errors(value).take(5);
        Some(errors.map(|error| SchemaProblem::new(error.instance_path().as_str(), clip(&error.to_string()))).collect())
    }

    #[cfg(test)]
    pub(crate) fn accepts(&self, value: &Value) -> Option<bool> {
        self.check(value).map(|problems| problems.is_empty())
    }
}

/// Walks a schema along a value as a validator would, counting the steps; `None` when they run out.
fn estimate(root: &Value, schema: &Value, value: &Value, depth: usize, budget: &mut usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    *budget = budget.checked_sub(1)?;
    let Some(members) = schema.as_object() else { return Some(()) };
    for (key, part) in members {
        match (key.as_str(), part) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                if let Some(target) = resolve(root, reference) {
                    estimate(root, target, value, depth + 1, budget)?;
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches {
                    estimate(root, branch, value, depth + 1, budget)?;
                }
            }
            ("not" | "if" | "then" | "else", part) => estimate(root, part, value, depth + 1, budget)?,
            ("dependentSchemas" | "dependencies", Value::Object(map)) => {
                for part in map.values() {
                    estimate(root, part, value, depth + 1, budget)?;
                }
            }
            ("properties", Value::Object(map)) => {
                for (name, part) in map {
                    if let Some(child) = value.get(name) {
                        estimate(root, part, child, depth + 1, budget)?;
                    }
                }
            }
            ("patternProperties", Value::Object(map)) => {
                for part in map.values() {
                    children(root, part, value, depth, budget)?;
                }
            }
            ("prefixItems", Value::Array(parts)) => {
                for (part, child) in parts.iter().zip(value.as_array().into_iter().flatten()) {
                    estimate(root, part, child, depth + 1, budget)?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" | "contains", part) => {
                children(root, part, value, depth, budget)?;
            }
            // Comparing every pair is what a validator may have to do.
            ("uniqueItems", Value::Bool(true)) => {
                let items = value.as_array().map_or(0, Vec::len);
                *budget = budget.checked_sub(items.saturating_mul(items) / 16)?;
            }
            _ => {}
        }
    }
    Some(())
}

fn children(root: &Value, part: &Value, value: &Value, depth: usize, budget: &mut usize) -> Option<()> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|child| estimate(root, part, child, depth + 1, budget)),
        Value::Object(map) => map.values().try_for_each(|child| estimate(root, part, child, depth + 1, budget)),
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first_problem(schema: Value) -> String {
        Checker::new(&schema)
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
        assert!(first_problem(json!({"properties": {"a": {"type": "strng"}}})).starts_with("/properties/a/type: "));
        assert!(first_problem(json!({"$ref": "https://example.com/x.json"})).contains("nothing is fetched"));
        assert!(first_problem(json!({"items": {"$ref": "#/$defs/none"}})).starts_with("/items/$ref: "));
        assert!(
            first_problem(json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})).contains("endless loop")
        );
        assert!(first_problem(json!({"pattern": "("})).contains("regex"));
        assert_eq!(first_problem(json!({"$schema": "https://example.com/mine", "type": "object"})), "");
    }

    #[test]
    fn recursive_schemas_check_values() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": false});
        assert_eq!(first_problem(tree.clone()), "");
        let checker = Checker::new(&tree).ok().unwrap();
        assert_eq!(checker.accepts(&json!({"child": {"child": {}}})), Some(true));
        assert_eq!(checker.accepts(&json!({"child": {"chld": {}}})), Some(false));
    }

    #[test]
    fn schemas_that_multiply_are_not_run() {
        let bomb = bomb();
        let checker = Checker::new(&bomb).ok().unwrap();
        assert_eq!(checker.accepts(&json!("x")), None);
        let circle = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
        assert_eq!(Checker::new(&circle).ok().and_then(|checker| checker.accepts(&json!(1))), None);
    }

    #[test]
    fn huge_schemas_are_refused() {
        let wide: Vec<Value> = (0..30_000).map(|index| json!({"const": index})).collect();
        assert!(first_problem(json!({"anyOf": wide})).contains("parts"));
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
