//! Rewrites of one schema whose parts are in plain form already, so that schemas that say the same are compared
//! keyword by keyword and a change is reported where it is. The schema accepts exactly the same values afterwards.
//!
//! Only forms that generators really switch between are rewritten; whatever else means the same is left to a proof.

mod alternatives;
mod choices;
mod conditions;
mod idle;
mod spellings;

use serde_json::{Map, Value};

use super::keywords::is_annotation;
pub(super) use conditions::both;
pub(super) use spellings::depends_on_form;

type Keywords = Map<String, Value>;

/// Patterns that every text matches.
pub(super) const MATCHES_ALL: [&str; 6] = ["", "^", "$", ".*", "^.*", "^.*$"];

/// Applies all rewrites until nothing changes: one may enable another.
pub(super) fn all(mut members: Keywords) -> Value {
    if members.iter().all(|(key, value)| forms(&members, key, value) == Forms::One) {
        return Value::Object(members);
    }
    let has_parts = |key: &String| {
        matches!(key.as_str(), "allOf" | "anyOf" | "oneOf" | "not" | "if" | "dependencies" | "dependentSchemas")
            || key.starts_with("unevaluated")
    };
    if !members.keys().any(has_parts) {
        return once(members);
    }
    for _ in 0..4 {
        let before = members.clone();
        members = match once(members) {
            Value::Object(members) => members,
            other => return other,
        };
        if members == before {
            break;
        }
    }
    Value::Object(members)
}

fn once(mut members: Keywords) -> Value {
    // First, while what describes members or items is there even if it accepts everything.
    spellings::unevaluated(&mut members);
    spellings::tuples(&mut members);
    spellings::dependencies(&mut members);
    spellings::pattern_of_names(&mut members);
    spellings::names(&mut members);
    idle::remove(&mut members);
    spellings::integers(&mut members);
    if members.get("not").is_some_and(is_true) {
        return Value::Bool(false);
    }
    spellings::doubly_negated(&mut members);
    conditions::all_of(&mut members);
    alternatives::alternatives(&mut members);
    choices::choices(&mut members);
    alternatives::exclusive(&mut members);
    alternatives::kinds(&mut members);
    let members = conditions::alone(members);
    if is_never(&members) { Value::Bool(false) } else { Value::Object(members) }
}

/// In how many ways the meaning of a keyword can be written.
#[derive(PartialEq, Eq)]
enum Forms {
    One,
    /// In several, all of which [`super::keywords`] compares alike.
    ComparedAlike,
    Several,
}

/// The only place that knows which keywords the rewrites below leave alone.
fn forms(members: &Keywords, key: &str, value: &Value) -> Forms {
    let has_one = match key {
        "properties" | "description" | "title" | "format" | "pattern" | "maxLength" | "maxItems" | "maxProperties"
        | "default" | "examples" => true,
        "type" => value.is_string(),
        "required" => value.as_array().is_some_and(|names| !names.is_empty()),
        "minimum" | "maximum" => value.is_i64(),
        "items" | "additionalProperties" => !value.is_array() && !value.is_boolean(),
        "minLength" | "minItems" | "minProperties" => value.as_u64().is_some_and(|least| least > 0),
        "enum" => {
            let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let are_texts = !values.is_empty() && values.iter().all(Value::is_string);
            let is_stated = members.get("type").is_some_and(|kind| kind == "string");
            return if are_texts && is_stated { Forms::ComparedAlike } else { Forms::Several };
        }
        _ => false,
    };
    if has_one { Forms::One } else { Forms::Several }
}

/// Whether rewriting a schema would not help a comparison.
pub(super) fn is_plain(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    members.iter().all(|(key, value)| {
        let are_parts_plain = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values().all(is_plain),
            ("items" | "additionalProperties", Value::Object(_)) => is_plain(value),
            _ => true,
        };
        are_parts_plain && forms(members, key, value) != Forms::Several
    })
}

/// Whether a schema accepts something, as can be seen without rewriting it.
pub(super) fn is_surely_something(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return *schema == Value::Bool(true) };
    // What becomes of a part may make another form of these two.
    let is_settled = |key: &str| !matches!(key, "items" | "additionalProperties");
    members.iter().all(|(key, value)| is_settled(key) && forms(members, key, value) == Forms::One)
}

fn is_true(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(members) => members.keys().all(|key| is_annotation(key)),
        _ => false,
    }
}

/// The keywords of a schema that are not only text.
fn asserted(schema: &Value) -> Vec<(&str, &Value)> {
    let members = schema.as_object().into_iter().flatten();
    members.filter(|(key, _)| !is_annotation(key)).map(|(key, value)| (key.as_str(), value)).collect()
}

/// Whether a list of alternatives or choices is empty, or all of it impossible.
fn is_never(members: &Keywords) -> bool {
    let impossible = |key: &str| {
        members
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().all(|part| *part == Value::Bool(false)))
    };
    impossible("anyOf")
        || impossible("oneOf")
        || members.get("allOf").and_then(Value::as_array).is_some_and(|list| list.contains(&Value::Bool(false)))
        || ["enum", "type"].iter().any(|key| members.get(*key).and_then(Value::as_array).is_some_and(Vec::is_empty))
}
