//! `allOf`, and references with keywords beside them: conditions that must all hold.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Value, json};
use sinew_tool::Digest;

use super::super::keywords::{is_annotation, kinds_named, names_of};
use super::super::numbers::order;
use super::{Keywords, all, is_true};

/// Two schemas of which both must hold.
pub(in crate::compare) fn both(members: Keywords, other: Value) -> Value {
    if members.keys().all(|key| is_annotation(key))
        && let Value::Object(mut whole) = other
    {
        // Annotations beside a reference take precedence over those of its target.
        whole.extend(members);
        return Value::Object(whole);
    }
    let mut members = members;
    let list = members.entry("allOf").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(other);
    }
    Value::Object(members)
}

/// Simplifies `allOf`: nested lists are flattened, what can move outside moves there, the
/// rest is sorted.
pub(super) fn all_of(members: &mut Keywords) {
    let Some(Value::Array(list)) = members.shift_remove("allOf") else { return };
    let mut parts: Vec<Value> = Vec::new();
    for part in list {
        match part {
            Value::Object(inner) if inner.len() == 1 && inner.get("allOf").is_some_and(Value::is_array) => {
                parts.extend(inner["allOf"].as_array().into_iter().flatten().cloned());
            }
            other => parts.push(other),
        }
    }
    let mut rest: Vec<Value> = Vec::new();
    for part in parts {
        if is_true(&part) {
            continue;
        }
        match part {
            Value::Object(inner) if mergeable(members, &inner) => merge(members, inner),
            other => rest.push(other),
        }
    }
    rest.sort_by_cached_key(Value::to_string);
    rest.dedup();
    if !rest.is_empty() {
        members.insert("allOf".to_owned(), Value::Array(rest));
    }
}

/// Keywords whose meaning depends on their neighbours: they move only where there are none.
const NEIGHBOURLY: &[&str] = &[
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$id",
    "not",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
];

fn mergeable(outer: &Keywords, inner: &Keywords) -> bool {
    let has = |members: &Keywords, key: &str| members.contains_key(key);
    let closed = |members: &Keywords| {
        ["additionalProperties", "patternProperties", "unevaluatedProperties"].iter().any(|key| has(members, key))
    };
    // Properties must not move beside a keyword that refuses undescribed ones.
    let objects = ["properties", "additionalProperties", "patternProperties", "unevaluatedProperties"];
    let moves_objects = objects.iter().any(|key| has(inner, key));
    let object_conflict = moves_objects
        && (closed(outer) || closed(inner) && objects.iter().any(|key| has(outer, key)))
        || has(outer, "unevaluatedProperties")
        || has(outer, "unevaluatedItems");
    let arrays = ["items", "prefixItems", "unevaluatedItems", "contains", "minContains", "maxContains"];
    let array_conflict = arrays.iter().any(|key| has(inner, key)) && arrays.iter().any(|key| has(outer, key));
    let conditions = ["if", "then", "else"];
    let condition_conflict =
        conditions.iter().any(|key| has(inner, key)) && conditions.iter().any(|key| has(outer, key));
    !object_conflict
        && !array_conflict
        && !condition_conflict
        && !has(inner, "$id")
        && inner.iter().all(|(key, value)| match outer.get(key) {
            None => true,
            Some(other) if other == value => true,
            Some(other) => {
                joined(key, other, value).is_some() || is_annotation(key) && !NEIGHBOURLY.contains(&key.as_str())
            }
        })
}

fn merge(outer: &mut Keywords, inner: Keywords) {
    for (key, value) in inner {
        let merged = match outer.get(&key) {
            None => value,
            // Annotations outside take precedence.
            Some(_) if is_annotation(&key) => continue,
            Some(other) if *other == value => continue,
            Some(other) => match joined(&key, other, &value) {
                Some(joined) => joined,
                None => continue,
            },
        };
        outer.insert(key, merged);
    }
}

/// The value of a keyword that is equivalent to two values together.
fn joined(key: &str, one: &Value, two: &Value) -> Option<Value> {
    let number = |inner: Ordering| -> Option<Value> {
        let (Value::Number(first), Value::Number(second)) = (one, two) else { return None };
        Some(if order(first, second)? == inner { one.clone() } else { two.clone() })
    };
    match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => number(Ordering::Greater),
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => number(Ordering::Less),
        "required" => {
            let mut names: Vec<Value> = one.as_array()?.clone();
            names.extend(
                two.as_array()?.iter().filter(|name| !one.as_array().is_some_and(|list| list.contains(name))).cloned(),
            );
            Some(Value::Array(names))
        }
        "properties" => {
            let mut whole = one.as_object()?.clone();
            for (name, schema) in two.as_object()? {
                let joined = match whole.shift_remove(name) {
                    None => schema.clone(),
                    Some(other) if other == *schema => other,
                    Some(Value::Object(members)) => match both(members, schema.clone()) {
                        Value::Object(members) => all(members),
                        other => other,
                    },
                    Some(Value::Bool(true)) => schema.clone(),
                    Some(other) => other,
                };
                whole.insert(name.clone(), joined);
            }
            Some(Value::Object(whole))
        }
        "enum" => {
            let known: HashSet<Digest> = two.as_array()?.iter().map(Digest::of).collect();
            Some(one.as_array()?.iter().filter(|value| known.contains(&Digest::of(value))).cloned().collect())
        }
        "uniqueItems" => Some(json!(one == true || two == true)),
        "type" => {
            let [first, second] = [one, two].map(kinds_named);
            let (first, second) = (first?, second?);
            Some(match first & second {
                both if both == first => one.clone(),
                both if both == second => two.clone(),
                both => json!(names_of(both)),
            })
        }
        "dependentRequired" => {
            let mut whole = one.as_object()?.clone();
            for (name, list) in two.as_object()? {
                let joined = match whole.get(name) {
                    Some(other) => self::joined("required", other, list)?,
                    None => list.clone(),
                };
                whole.insert(name.clone(), joined);
            }
            Some(Value::Object(whole))
        }
        _ => None,
    }
}

/// A combinator of one schema with only annotations beside it becomes that schema; annotations outside
/// take precedence.
pub(super) fn alone(mut members: Keywords) -> Keywords {
    let mut asserting = members.keys().filter(|key| !is_annotation(key));
    let (Some(key), None) = (asserting.next().cloned(), asserting.next()) else { return members };
    if !matches!(key.as_str(), "allOf" | "anyOf" | "oneOf") {
        return members;
    }
    match members.get(&key).and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) if !only.contains_key("$id") => {
            let mut whole = only.clone();
            members.shift_remove(&key);
            whole.extend(members);
            whole
        }
        _ => members,
    }
}
