//! Secrets in arguments: what the schema marks as `writeOnly` or `format: password`, and what the configuration names.

use serde_json::Value;
use sinew_policy::RedactionRule;
pub(crate) use sinew_tool::REDACTED;
use sinew_tool::{Args, json};

/// Steps through schema and arguments together. A schema that needs more loses all its arguments.
const MAX_STEPS: u32 = 10_000;

/// Keywords whose value is a schema, or a list of schemas, for the same value.
const SAME_VALUE: [&str; 7] = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not"];
/// Keywords whose value has schemas for the same value as members.
const SAME_VALUE_MEMBERS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that lead to another schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose value is a schema, or a list of schemas, for items.
const ITEMS: [&str; 5] = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords whose schemas are about the names of members, or about the content of a text: what they mark hides the value.
const WITHIN: [&str; 2] = ["propertyNames", "contentSchema"];

/// Whether a schema marks anything as secret, anywhere.
pub(crate) fn has_secrets(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => is_secret(schema) || members.values().any(has_secrets),
        Value::Array(items) => items.iter().any(has_secrets),
        _ => false,
    }
}

/// The arguments without their secrets: what `marking`, the device's own schema, marks, and what rules name. `known` is
/// the schema that the arguments should fit. Where a rule names an argument and something has another name or another
/// form than that schema knows, it may be the secret, and everything is hidden.
pub(crate) fn redact(marking: Option<&Value>, rules: &[&RedactionRule], known: &Value, args: &Args) -> Args {
    let mut value = Value::Object(args.clone());
    if let Some(schema) = marking {
        let mut walk = Walk { root: schema, has_inner_ids: has_inner_ids(schema), steps: MAX_STEPS };
        let hidden = walk.hide(vec![schema], &mut value);
        if hidden.is_none() || !value.is_object() {
            value = Value::Object(args.clone());
            hide_all(&mut value);
        }
    }
    for rule in rules {
        if rule.args.is_empty() {
            hide_all(&mut value);
        }
        for pointer in &rule.args {
            let steps: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
            match leads_through_known(&steps, known, &value) {
                true => hide_at(&mut value, &steps),
                false => hide_all(&mut value),
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

/// The same arguments without any value.
pub(crate) fn hide_values(args: &Args) -> Args {
    args.keys().map(|name| (name.clone(), json!(REDACTED))).collect()
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

/// Hides what a pointer leads to; `*` leads to every member and item.
fn hide_at(value: &mut Value, steps: &[String]) {
    let Some((step, rest)) = steps.split_first() else { return hide(value) };
    match value {
        Value::Object(members) if step == "*" => members.values_mut().for_each(|member| hide_at(member, rest)),
        Value::Array(items) if step == "*" => items.iter_mut().for_each(|item| hide_at(item, rest)),
        Value::Object(members) => members.get_mut(step).into_iter().for_each(|member| hide_at(member, rest)),
        Value::Array(items) => {
            let item = step.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            item.into_iter().for_each(|item| hide_at(item, rest));
        }
        _ => {}
    }
}

/// Whether a pointer leads only past members that the schema knows.
fn leads_through_known(steps: &[String], schema: &Value, value: &Value) -> bool {
    let Some((step, rest)) = steps.split_first() else { return true };
    let is_meant = |name: &str| step == "*" || step == name;
    match (value, &schema["properties"], schema.get("items")) {
        (Value::Object(members), Value::Object(known), _) => members.iter().all(|(name, member)| {
            known.get(name).is_some_and(|schema| !is_meant(name) || leads_through_known(rest, schema, member))
        }),
        (Value::Array(items), _, Some(schema)) => {
            step == "*" && items.iter().all(|item| leads_through_known(rest, schema, item))
                || step
                    .parse::<usize>()
                    .is_ok_and(|at| items.get(at).is_none_or(|item| leads_through_known(rest, schema, item)))
        }
        // Hidden already.
        (Value::String(text), ..) => text == REDACTED,
        _ => false,
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Whether a part of the schema is a document of its own, so that references in it may mean something else.
fn has_inner_ids(schema: &Value) -> bool {
    fn has_id(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                ["$id", "id"].iter().any(|key| members.get(*key).is_some_and(Value::is_string))
                    || members.values().any(has_id)
            }
            Value::Array(items) => items.iter().any(has_id),
            _ => false,
        }
    }
    schema.as_object().is_some_and(|members| members.values().any(has_id))
}

/// Goes through a schema that marks secrets. What nobody can say for certain is hidden.
struct Walk<'s> {
    root: &'s Value,
    has_inner_ids: bool,
    steps: u32,
}

impl<'s> Walk<'s> {
    /// Hides the secrets in a value that all these schemas are about. `None` where it takes too many steps.
    fn hide(&mut self, schemas: Vec<&'s Value>, value: &mut Value) -> Option<()> {
        let Some(schemas) = self.applying(schemas)? else {
            hide(value);
            return Some(());
        };
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match self.schemas_of(&schemas, name)? {
                        Some(inner) => self.hide(inner, member)?,
                        // Perhaps the name of a secret, misspelt.
                        None => hide(member),
                    }
                }
            }
            Value::Array(items) => {
                let inner: Vec<&Value> =
                    schemas.iter().flat_map(|schema| ITEMS.iter().filter_map(|key| schema.get(*key))).collect();
                let inner: Vec<&Value> = inner.into_iter().flat_map(one_or_many).collect();
                items.iter_mut().try_for_each(|item| self.hide(inner.clone(), item))?;
            }
            _ => {}
        }
        Some(())
    }

    /// All schemas that are about the same value as these; `Some(None)` where they mark it as secret, or lead somewhere
    /// unknown.
    fn applying(&mut self, mut waiting: Vec<&'s Value>) -> Option<Option<Vec<&'s Value>>> {
        let mut found: Vec<&'s Value> = Vec::new();
        while let Some(schema) = waiting.pop() {
            self.steps = self.steps.checked_sub(1)?;
            if found.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            let Value::Object(keywords) = schema else { continue };
            let hides_within = |key: &&str| keywords.get(*key).is_some_and(has_secrets);
            if is_secret(schema) || WITHIN.iter().any(hides_within) {
                return Some(None);
            }
            for reference in REFERENCES.iter().filter_map(|key| keywords.get(*key)) {
                match self.resolve(reference) {
                    Some(target) => waiting.push(target),
                    None => return Some(None),
                }
            }
            waiting.extend(SAME_VALUE.iter().filter_map(|key| keywords.get(*key)).flat_map(one_or_many));
            let members = SAME_VALUE_MEMBERS.iter().filter_map(|key| keywords.get(*key)?.as_object());
            waiting.extend(members.flat_map(|members| members.values()));
            found.push(schema);
        }
        Some(Some(found))
    }

    /// The schemas of a member; `None` where none of them knows its name.
    fn schemas_of(&mut self, schemas: &[&'s Value], name: &str) -> Option<Option<Vec<&'s Value>>> {
        self.steps = self.steps.checked_sub(u32::try_from(schemas.len()).ok()?)?;
        let named: Vec<&Value> =
            schemas.iter().filter_map(|schema| schema.get("properties")?.as_object()?.get(name)).collect();
        // A pattern counts for every member: more may be hidden than must be, and nothing less.
        let patterns = schemas.iter().filter_map(|schema| schema.get("patternProperties")?.as_object());
        let all = || named.iter().copied().chain(patterns.flat_map(|patterns| patterns.values())).collect();
        Some((!named.is_empty()).then(all))
    }

    /// What a reference leads to, where that is certain: into this document, by a pointer or an anchor.
    fn resolve(&self, reference: &Value) -> Option<&'s Value> {
        let fragment = reference.as_str()?.strip_prefix('#').filter(|_| !self.has_inner_ids)?;
        let fragment = percent_decoded(fragment)?;
        match fragment.is_empty() || fragment.starts_with('/') {
            true => self.root.pointer(&fragment),
            false => find_anchor(self.root, &fragment),
        }
    }
}

fn one_or_many(schemas: &Value) -> impl Iterator<Item = &Value> {
    let (one, many) = match schemas {
        Value::Array(schemas) => (None, schemas.as_slice()),
        schema => (Some(schema), [].as_slice()),
    };
    one.into_iter().chain(many)
}

fn find_anchor<'s>(schema: &'s Value, anchor: &str) -> Option<&'s Value> {
    match schema {
        Value::Object(members) => {
            let is_named = ["$anchor", "$dynamicAnchor"].iter().any(|key| members.get(*key) == Some(&json!(anchor)));
            if is_named { Some(schema) } else { members.values().find_map(|member| find_anchor(member, anchor)) }
        }
        Value::Array(items) => items.iter().find_map(|item| find_anchor(item, anchor)),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: Value, args: Value) -> String {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        assert!(has_secrets(&schema));
        Value::Object(redact(Some(&schema), &[], &schema, &args)).to_string()
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
            json!({"properties": {"pin": {"$ref": "#pin"}}, "$defs": {"p": {"$anchor": "pin", "writeOnly": true}}}),
            json!({"properties": {"pin": {"$ref": "#/%24defs/p"}}, "$defs": {"p": secret}}),
            json!({"$id": "https://a.example/s", "properties": {"pin": {"$ref": "p"}}, "$defs": {"p": {"$id": "p", "writeOnly": true}}}),
            json!({"properties": {"pin": {"$ref": "https://a.example/s"}}, "$defs": {"p": secret}}),
            json!({"dependencies": {"pin": {"properties": {"pin": secret}}}}),
            json!({"properties": {"pin": {"not": secret}}}),
            json!({"properties": {"pin": {"contentMediaType": "application/json", "contentSchema": {"properties": {"a": secret}}}}}),
            json!({"properties": {"code": secret}}),
        ];
        for schema in places {
            assert_eq!(shown(schema.clone(), json!({"pin": "1234"})), r#"{"pin":"[redacted]"}"#, "{schema}");
        }
        let list = json!({"properties": {"users": {"items": {"properties": {"pin": secret}}}, "name": {}}});
        let args = json!({"users": [{"pin": 1, "id": 7}, {"pin": 2}], "name": "x"});
        let expected = r#"{"users":[{"pin":"[redacted]","id":"[redacted]"},{"pin":"[redacted]"}],"name":"x"}"#;
        assert_eq!(shown(list, args), expected);
        let tree = json!({"properties": {"next": {"$recursiveRef": "#"}, "pin": secret, "name": {}}});
        let args = json!({"next": {"pin": 1, "name": "y"}, "name": "x"});
        assert_eq!(shown(tree, args), r#"{"next":{"pin":"[redacted]","name":"y"},"name":"x"}"#);
        let names = json!({"properties": {"box": {"propertyNames": secret}, "name": {}}});
        assert_eq!(shown(names, json!({"box": {"4711": 1}, "name": "x"})), r#"{"box":"[redacted]","name":"x"}"#);
    }

    #[test]
    fn a_schema_that_is_too_much_work_hides_everything() {
        let many: Vec<Value> = (0..200).map(|number| json!({"properties": {"a": {"const": number}}})).collect();
        let schema = json!({"properties": {"a": {"items": {"allOf": many}}, "pin": {"writeOnly": true}}});
        let args = json!({"a": vec![1; 100], "pin": 2});
        assert_eq!(shown(schema, args), r#"{"a":"[redacted]","pin":"[redacted]"}"#);
    }

    #[test]
    fn a_rule_hides_what_it_points_at_or_everything() {
        let args = json!({"code": 1, "window": {"pin": 2}});
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let rule = |args: &[&str]| RedactionRule {
            args: args.iter().map(|&pointer| pointer.to_owned()).collect(),
            ..RedactionRule::default()
        };
        let known = json!({"properties": {"code": {}, "window": {"properties": {"pin": {}}}}});
        let shown = |rule: RedactionRule| Value::Object(redact(None, &[&rule], &known, &args)).to_string();
        assert_eq!(shown(rule(&["/window/pin", "/nothing"])), r#"{"code":1,"window":{"pin":"[redacted]"}}"#);
        assert_eq!(shown(rule(&[])), r#"{"code":"[redacted]","window":"[redacted]"}"#);
    }

    #[test]
    fn what_a_rule_could_mean_under_another_name_or_in_another_form_is_hidden() {
        let rule = RedactionRule { args: vec!["/users/*/pin".to_owned()], ..RedactionRule::default() };
        let user = json!({"type": "object", "properties": {"pin": {}, "name": {}}});
        let known = json!({"properties": {"users": {"type": "array", "items": user}, "door": {}}});
        let shown = |args: Value| {
            let Value::Object(args) = args else { panic!("arguments are an object") };
            Value::Object(redact(None, &[&rule], &known, &args)).to_string()
        };
        let fitting = json!({"users": [{"pin": 1, "name": "x"}], "door": "front"});
        assert_eq!(shown(fitting), r#"{"users":[{"pin":"[redacted]","name":"x"}],"door":"front"}"#);
        assert_eq!(shown(json!({"door": "front"})), r#"{"door":"front"}"#);
        for other in [
            json!({"users": [{"Pin": 1}]}),
            json!({"users": "[{\"pin\": 1}]"}),
            json!({"users": {"pin": 1}}),
            json!({"users": ["1"]}),
        ] {
            assert_eq!(shown(other.clone()), r#"{"users":"[redacted]"}"#, "{other}");
        }
        assert_eq!(shown(json!({"Users": [{"pin": 1}]})), r#"{"Users":"[redacted]"}"#);
    }
}
