//! One way of saying it: schemas that mean the same are brought to the same form. Generators change
//! their minds about the form (`allOf` around a reference, a list of types instead of alternatives),
//! and nobody's call changes with it.

use serde_json::{Map, Value, json};

use super::keywords::is_annotation;

/// The schema in its plain form. Left as it is where a reference points into the middle of it, which
/// would lead elsewhere afterwards.
pub fn plain(schema: &Value) -> Value {
    if points_inside(schema) { schema.clone() } else { tidy(schema) }
}

/// Whether there may be anything to bring to another form.
pub fn has_forms(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(key, value)| matches!(key.as_str(), "allOf" | "anyOf" | "oneOf") || has_forms(value))
        }
        Value::Array(items) => items.iter().any(has_forms),
        _ => false,
    }
}

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
    let map_of_schemas =
        |key: &str| matches!(key, "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas");
    let tidied = members.iter().map(|(key, value)| {
        let value = match value {
            Value::Object(inner) if map_of_schemas(key) => {
                inner.iter().map(|(name, schema)| (name.clone(), tidy(schema))).collect()
            }
            Value::Array(items) if matches!(key.as_str(), "allOf" | "anyOf" | "oneOf" | "prefixItems") => {
                items.iter().map(tidy).collect()
            }
            Value::Object(_) if holds_a_schema(key) => tidy(value),
            other => other.clone(),
        };
        (key.clone(), value)
    });
    let mut members: Map<String, Value> = tidied.collect();
    exclusive(&mut members);
    kinds(&mut members);
    Value::Object(alone(members))
}

fn holds_a_schema(key: &str) -> bool {
    matches!(
        key,
        "items"
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

/// A combinator of one schema with nothing but remarks beside it is that schema; the remarks outside
/// are the nearer ones.
fn alone(mut members: Map<String, Value>) -> Map<String, Value> {
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

/// Where no value can be of two kinds at once, exactly one of the alternatives is any of them.
fn exclusive(members: &mut Map<String, Value>) {
    let Some(branches) = members.get("oneOf").and_then(Value::as_array) else { return };
    if !members.contains_key("anyOf") && distinct_types(branches).is_some() {
        let branches = members.shift_remove("oneOf").unwrap_or_default();
        members.insert("anyOf".to_owned(), branches);
    }
}

/// Alternatives that are told apart by their type alone are a list of types, each with the keywords
/// that only that type heeds. Only where nothing else stands beside them: `additionalProperties` of a
/// branch must not meet the `properties` outside it.
fn kinds(members: &mut Map<String, Value>) {
    if members.keys().any(|key| key != "anyOf" && !is_annotation(key)) {
        return;
    }
    let Some(branches) = members.get("anyOf").and_then(Value::as_array) else { return };
    let Some(types) = distinct_types(branches).filter(|types| types.len() > 1) else { return };
    let own = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|branch| branch.keys().all(|key| key == "type" || is_heeded_by(key, kind)))
    };
    let mut merged = Map::new();
    for (branch, kind) in branches.iter().zip(&types) {
        if !own(branch, kind) {
            return;
        }
        merged.extend(branch.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    }
    merged.insert("type".to_owned(), json!(types));
    members.shift_remove("anyOf");
    members.extend(merged);
}

/// The type of each branch, where each names one and no two overlap.
fn distinct_types(branches: &[Value]) -> Option<Vec<String>> {
    let types: Vec<String> =
        branches.iter().map(|branch| branch.get("type")?.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let same = |one: &str, two: &str| {
        let number = |word: &str| if word == "integer" { "number" } else { word }.to_owned();
        number(one) == number(two)
    };
    let apart = (0..types.len()).all(|i| (0..i).all(|j| !same(&types[i], &types[j])));
    (apart && types.len() <= 7).then_some(types)
}

/// Whether a keyword says something of values of this type and of no others.
fn is_heeded_by(key: &str, kind: &str) -> bool {
    match kind {
        "string" => matches!(key, "minLength" | "maxLength" | "pattern" | "format"),
        "integer" | "number" => {
            matches!(key, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
        }
        "array" => matches!(key, "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems"),
        "object" => matches!(
            key,
            "properties" | "required" | "additionalProperties" | "propertyNames" | "minProperties" | "maxProperties"
        ),
        _ => false,
    }
}
