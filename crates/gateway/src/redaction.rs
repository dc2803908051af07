//! Secrets in arguments: what the schema marks as `writeOnly` or `format: password`, and what the configuration names.

use serde_json::Value;
use sinew_policy::RedactionRule;
use sinew_tool::{Args, json};

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Steps through schema and arguments together. A schema that needs more loses all its arguments.
const MAX_STEPS: u32 = 10_000;

/// References that lead to each other deeper than this count as too many steps.
const MAX_DEPTH: u32 = 200;

/// Keywords whose value is a schema, or a list of schemas, for the same value.
const SAME_VALUE: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "then", "else"];
/// Keywords whose value is a schema, or a list of schemas, for items.
const ITEMS: [&str; 5] = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords whose value is a schema for members that `properties` does not name.
const OTHER_MEMBERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];

/// Whether a schema marks anything as secret, anywhere.
pub(crate) fn has_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => is_secret(schema) || members.values().any(has_secrets),
        Value::Array(items) => items.iter().any(has_secrets),
        _ => false,
    }
}

/// The arguments without their secrets.
pub(crate) fn redact(schema: Option<&Value>, rules: &[&RedactionRule], args: &Args) -> Args {
    let mut value = Value::Object(args.clone());
    if let Some(schema) = schema {
        let mut walk = Walk { root: schema, steps: MAX_STEPS, depth: 0 };
        if walk.hide(schema, &mut value).is_none() {
            hide_all(&mut value);
        }
    }
    for rule in rules {
        if rule.args.is_empty() {
            hide_all(&mut value);
        }
        for pointer in &rule.args {
            if let Some(found) = value.pointer_mut(pointer) {
                hide(found);
            }
        }
    }
    match value {
        Value::Object(args) => args,
        _ => Args::new(),
    }
}

/// The names of the arguments without their values: of a call that reached no tool, nobody knows what is secret.
pub(crate) fn names_only(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
    hide_all(&mut value);
    value.to_string()
}

fn hide_all(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.values_mut().for_each(hide);
    }
}

fn hide(value: &mut Value) {
    *value = json!(REDACTED);
}

fn is_secret(schema: &Value) -> bool {
    schema["writeOnly"] == json!(true) || schema["format"] == json!("password")
}

struct Walk<'s> {
    root: &'s Value,
    steps: u32,
    depth: u32,
}

impl<'s> Walk<'s> {
    /// `None` where it takes too many steps.
    fn hide(&mut self, schema: &'s Value, value: &mut Value) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        self.depth += 1;
        let hidden = if self.depth <= MAX_DEPTH { self.hide_here(schema, value) } else { None };
        self.depth -= 1;
        hidden
    }

    fn hide_here(&mut self, schema: &'s Value, value: &mut Value) -> Option<()> {
        if is_secret(schema) {
            hide(value);
            return Some(());
        }
        let Value::Object(keywords) = schema else { return Some(()) };
        for key in ["$ref", "$dynamicRef"] {
            let target = keywords.get(key).and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            if let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) {
                self.hide(target, value)?;
            }
        }
        for schema in SAME_VALUE.iter().filter_map(|key| keywords.get(*key)) {
            self.hide_each(schema, value)?;
        }
        for dependent in keywords.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            self.hide(dependent.1, value)?;
        }
        match value {
            Value::Object(members) => {
                let properties = keywords.get("properties").and_then(Value::as_object);
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                for (name, member) in members {
                    // A pattern counts for every member: more may be hidden than must be, and nothing less.
                    let patterns = patterns.into_iter().flatten().map(|(_, schema)| schema);
                    let others = OTHER_MEMBERS.iter().filter_map(|key| keywords.get(*key));
                    let named = properties.and_then(|properties| properties.get(name));
                    let others = others.filter(|_| named.is_none());
                    for schema in named.into_iter().chain(patterns).chain(others) {
                        self.hide(schema, member)?;
                    }
                }
            }
            Value::Array(items) => {
                for schema in ITEMS.iter().filter_map(|key| keywords.get(*key)) {
                    items.iter_mut().try_for_each(|item| self.hide_each(schema, item))?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// One schema, or each of a list.
    fn hide_each(&mut self, schemas: &'s Value, value: &mut Value) -> Option<()> {
        match schemas {
            Value::Array(schemas) => schemas.iter().try_for_each(|schema| self.hide(schema, value)),
            schema => self.hide(schema, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: Value, args: Value) -> String {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        assert!(has_secrets(&schema));
        Value::Object(redact(Some(&schema), &[], &args)).to_string()
    }

    #[test]
    fn whatever_way_a_schema_marks_a_secret_it_is_hidden() {
        let secret = json!({"type": "string", "writeOnly": true});
        let places = [
            json!({"properties": {"pin": secret}}),
            json!({"properties": {"pin": {"type": "string", "format": "password"}}}),
            json!({"properties": {"pin": {"$ref": "#/$defs/pin"}}, "$defs": {"pin": secret}}),
            json!({"allOf": [{"properties": {"pin": secret}}]}),
            json!({"if": {}, "then": {"properties": {"pin": secret}}}),
            json!({"additionalProperties": secret}),
            json!({"patternProperties": {"^p": secret}}),
            json!({"dependentSchemas": {"pin": {"properties": {"pin": secret}}}}),
            json!({"properties": {"pin": {"anyOf": [{"type": "null"}, secret]}}}),
        ];
        for schema in places {
            assert_eq!(shown(schema.clone(), json!({"pin": "1234"})), r#"{"pin":"[redacted]"}"#, "{schema}");
        }
        let list = json!({"properties": {"users": {"items": {"properties": {"pin": secret}}}, "name": {}}});
        let args = json!({"users": [{"pin": 1, "id": 7}, {"pin": 2}], "name": "x"});
        let expected = r#"{"users":[{"pin":"[redacted]","id":7},{"pin":"[redacted]"}],"name":"x"}"#;
        assert_eq!(shown(list, args), expected);
    }

    #[test]
    fn a_schema_that_is_too_much_work_hides_everything() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/s"}, "pin": {"writeOnly": true}},
            "$defs": {"s": {"anyOf": [{"$ref": "#/$defs/s"}, {"$ref": "#/$defs/s"}]}}
        });
        assert_eq!(shown(schema, json!({"a": 1, "pin": 2})), r#"{"a":"[redacted]","pin":"[redacted]"}"#);
    }

    #[test]
    fn a_rule_hides_what_it_points_at_or_everything() {
        let args = json!({"code": 1, "window": {"pin": 2}});
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let rule = |args: &[&str]| RedactionRule {
            args: args.iter().map(|&pointer| pointer.to_owned()).collect(),
            ..RedactionRule::default()
        };
        let shown = |rule: RedactionRule| Value::Object(redact(None, &[&rule], &args)).to_string();
        assert_eq!(shown(rule(&["/window/pin", "/nothing"])), r#"{"code":1,"window":{"pin":"[redacted]"}}"#);
        assert_eq!(shown(rule(&[])), r#"{"code":"[redacted]","window":"[redacted]"}"#);
    }
}
