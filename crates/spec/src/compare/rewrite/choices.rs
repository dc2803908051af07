//! Listed values: every form of a list becomes `enum`, and an `enum` of all values of a type becomes that type.

use std::collections::HashSet;

use serde_json::{Value, json};
use sinew_tool::Digest;

use super::super::keywords::{ALL, allowed, is_annotation, kind_of, kinds_named};
use super::{Keywords, asserted};

/// Every form of a list of values becomes `enum`; null alone, or both booleans, become the type.
pub(super) fn choices(members: &mut Keywords) {
    for key in ["oneOf", "anyOf"] {
        let Some(Value::Array(list)) = members.get(key) else { continue };
        let branches: Option<Vec<Vec<&Value>>> = list.iter().map(listed).collect();
        let Some(branches) = branches.filter(|branches| !branches.is_empty()) else { continue };
        let values: Vec<Value> = branches.into_iter().flatten().cloned().collect();
        let distinct: HashSet<Digest> = values.iter().map(Digest::of).collect();
        let repeats = distinct.len() < values.len();
        if members.contains_key("enum") || members.contains_key("const") || repeats && key == "oneOf" {
            continue;
        }
        members.shift_remove(key);
        members.insert("enum".to_owned(), Value::Array(values));
    }
    if !members.contains_key("enum")
        && let Some(only) = members.shift_remove("const")
    {
        members.insert("enum".to_owned(), json!([only]));
    }
    let Some(values) = listed_here(members) else { return };
    let has = |wanted: bool| values.iter().any(|value| value.as_bool() == Some(wanted));
    let is_finite = values.iter().all(|value| value.is_boolean() || value.is_null());
    let kind = match (has(true), has(false), values.iter().any(|value| value.is_null())) {
        (true, true, true) if is_finite => Some(json!(["boolean", "null"])),
        (true, true, false) if is_finite => Some(json!("boolean")),
        (false, false, true) if is_finite => Some(json!("null")),
        _ => None,
    };
    match kind {
        Some(kind) => {
            members.shift_remove("enum");
            members.insert("type".to_owned(), kind);
        }
        None => {
            members.shift_remove("type");
        }
    }
}

/// The values of a schema that is only an enum; a type that all values have does not matter.
fn listed(schema: &Value) -> Option<Vec<&Value>> {
    let members = schema.as_object()?;
    if let [("type", Value::String(kind))] = asserted(schema).as_slice()
        && let Some(values) = values_of(kind)
    {
        return Some(values.iter().collect());
    }
    let plain = members.iter().all(|(key, _)| matches!(key.as_str(), "const" | "enum" | "type") || is_annotation(key));
    let values = allowed(schema).filter(|_| plain)?;
    let kinds = members.get("type").map_or(ALL, |kind| kinds_named(kind).unwrap_or(ALL));
    values.iter().all(|value| kind_of(value) & kinds != 0).then_some(values)
}

/// The values of a type that has only a few.
fn values_of(kind: &str) -> Option<&'static [Value]> {
    match kind {
        "null" => Some(&[Value::Null]),
        "boolean" => Some(&[Value::Bool(true), Value::Bool(false)]),
        _ => None,
    }
}

/// The values of `enum`, if each of them has the stated type.
fn listed_here(members: &Keywords) -> Option<Vec<&Value>> {
    let values = members.get("enum")?.as_array()?;
    let kinds = members.get("type").map_or(ALL, |kind| kinds_named(kind).unwrap_or(ALL));
    values.iter().all(|value| kind_of(value) & kinds != 0).then(|| values.iter().collect())
}
