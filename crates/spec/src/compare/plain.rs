//! A normal form: schemas that mean the same get the same form. Generators change
//! the form between versions (`allOf` around a reference, a list of types instead of alternatives),
//! which changes nothing for callers. The rewrites of one schema are in `rewrite`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::budget::Looks;
use super::rewrite;
use super::schema::has_key;

/// Parts that a schema may have after its references are replaced.
const MAX_PARTS: usize = 50_000;
/// Parts of schemas that rewriting one may copy.
const MAX_COPIES: usize = 1_000_000;
/// How deep references are followed.
const MAX_CHAIN: usize = 32;

/// The schema in its plain form: references that do not lead back to themselves are replaced by what
/// they lead to, and every part is rewritten. `None` if that would take too much work.
pub(super) fn plain(schema: &Value, looks: &Looks) -> Option<Value> {
    if !refers(schema) {
        return affordable_tidy(schema, looks);
    }
    let room = Looks::new(MAX_PARTS);
    let inlined = inlined(schema, schema, &mut Vec::new(), &room);
    if !looks.spend(MAX_PARTS - room.left()) {
        return None;
    }
    match inlined {
        // A reference that is left may lead to something whose form matters.
        Some(whole) if refers(&whole) && has_unevaluated(&whole) => Some(whole),
        Some(whole) => affordable_tidy(&whole, looks),
        // Too large without references: only parts that no reference points into may be rewritten.
        None if points_inside(schema) || has_unevaluated(schema) => Some(schema.clone()),
        None => affordable_tidy(schema, looks),
    }
}

fn affordable_tidy(schema: &Value, looks: &Looks) -> Option<Value> {
    let room = Looks::new(MAX_COPIES);
    (weigh(schema, 1, &room) && looks.spend(MAX_COPIES - room.left())).then(|| tidy(schema))
}

/// Each part is copied once for each part that it is in.
fn weigh(part: &Value, depth: usize, room: &Looks) -> bool {
    room.spend(depth)
        && match part {
            Value::Object(members) => members.values().all(|member| weigh(member, depth + 1, room)),
            Value::Array(items) => items.iter().all(|item| weigh(item, depth + 1, room)),
            _ => true,
        }
}

pub(super) fn has_unevaluated(schema: &Value) -> bool {
    ["unevaluatedProperties", "unevaluatedItems"].iter().any(|key| has_key(schema, key))
}

pub(super) fn refers(part: &Value) -> bool {
    let is_reference = |key: &str| matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef");
    match part {
        Value::Object(members) => members.iter().any(|(key, member)| is_reference(key) || refers(member)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// Keywords that hold data, in which `$ref` is not a reference.
fn is_data(key: &str) -> bool {
    matches!(key, "enum" | "const" | "default" | "examples" | "example")
}

/// The schema without references; `None` if that would be too large. A reference that leads back
/// to itself stays as it is.
fn inlined<'a>(root: &'a Value, part: &'a Value, chain: &mut Vec<&'a str>, room: &Looks) -> Option<Value> {
    if !room.spend(1) {
        return None;
    }
    match part {
        Value::Array(items) => {
            items.iter().map(|item| inlined(root, item, chain, room)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        Value::Object(members) => {
            let mut whole = Map::new();
            for (key, member) in members {
                let member = if is_data(key) { member.clone() } else { inlined(root, member, chain, room)? };
                whole.insert(key.clone(), member);
            }
            let Some(reference) = members.get("$ref").and_then(Value::as_str) else {
                return Some(Value::Object(whole));
            };
            let target =
                room.resolve(root, reference).filter(|_| !chain.contains(&reference) && chain.len() < MAX_CHAIN);
            let Some(target) = target else { return Some(Value::Object(whole)) };
            if is_recursive(root, target, reference, &mut HashSet::new(), room) {
                return Some(Value::Object(whole));
            }
            chain.push(reference);
            let target = inlined(root, target, chain, room);
            chain.pop();
            whole.shift_remove("$ref");
            Some(rewrite::both(whole, target?))
        }
        other => Some(other.clone()),
    }
}

/// Whether a reference can be reached from what it leads to.
fn is_recursive<'a>(
    root: &'a Value,
    part: &'a Value,
    reference: &str,
    seen: &mut HashSet<&'a str>,
    room: &Looks,
) -> bool {
    // If that cannot be determined, it stays a reference.
    if !room.spend(1) {
        return true;
    }
    match part {
        Value::Array(items) => items.iter().any(|item| is_recursive(root, item, reference, seen, room)),
        Value::Object(members) => members.iter().any(|(key, member)| match (key.as_str(), member) {
            ("$dynamicRef" | "$recursiveRef", _) => true,
            ("$ref", Value::String(next)) if next == reference || next == "#" => true,
            ("$ref", Value::String(next)) => {
                seen.insert(next)
                    && room.resolve(root, next).is_some_and(|target| is_recursive(root, target, reference, seen, room))
            }
            (key, _) if is_data(key) => false,
            _ => is_recursive(root, member, reference, seen, room),
        }),
        _ => false,
    }
}

/// Whether a reference points into the middle of the schema.
fn points_inside(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                let whole = to.strip_prefix("#/$defs/").or_else(|| to.strip_prefix("#/definitions/"));
                to.starts_with("#/") && whole.is_none_or(|name| name.contains('/'))
            }
            _ => points_inside(value),
        }),
        Value::Array(items) => items.iter().any(points_inside),
        _ => false,
    }
}

fn tidy(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let depends_on_form = rewrite::depends_on_form(members);
    let tidied = members.iter().map(|(key, value)| {
        let value = match value {
            value if depends_on_form && is_about_the_same_value(key) => value.clone(),
            Value::Object(inner) if holds_schemas_by_name(key) => {
                inner.iter().map(|(name, schema)| (name.clone(), tidy(schema))).collect()
            }
            Value::Array(items) if matches!(key.as_str(), "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items") => {
                items.iter().map(tidy).collect()
            }
            Value::Object(_) if holds_a_schema(key) => tidy(value),
            other => other.clone(),
        };
        (key.clone(), value)
    });
    let tidied = tidied.collect();
    if depends_on_form { Value::Object(tidied) } else { rewrite::all(tidied) }
}

fn is_about_the_same_value(key: &str) -> bool {
    let is_one = matches!(key, "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else");
    is_one || matches!(key, "dependentSchemas" | "dependencies")
}

pub(super) fn holds_schemas_by_name(key: &str) -> bool {
    matches!(key, "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies")
}

pub(super) fn holds_a_schema(key: &str) -> bool {
    matches!(
        key,
        "items"
            | "additionalItems"
            | "additionalProperties"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems"
    )
}
