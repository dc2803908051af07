//! Keywords of older drafts, and others that say the same as a more usual one.

use serde_json::{Map, Number, Value, json};

use super::super::keywords::is_annotation;
use super::super::numbers::{divides, whole_limit};
use super::conditions::both;
use super::{Keywords, MATCHES_ALL, asserted, is_true};

/// `items` as a list, of older drafts, is `prefixItems`; what followed it is `items`.
pub(super) fn tuples(members: &mut Keywords) {
    if members.get("items").is_some_and(Value::is_array) && !members.contains_key("prefixItems") {
        let items = members.shift_remove("items").unwrap_or_default();
        members.insert("prefixItems".to_owned(), items);
        if let Some(rest) = members.shift_remove("additionalItems") {
            members.insert("items".to_owned(), rest);
        }
    } else if !members.get("items").is_some_and(Value::is_array) {
        // Beside one schema for all items it has no effect.
        members.shift_remove("additionalItems");
    }
    if members.get("items").is_some_and(is_true) {
        members.shift_remove("items");
    }
    if members.get("prefixItems").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        members.shift_remove("prefixItems");
    }
}

/// `dependencies` by what its members are, and a dependent schema that only requires as `dependentRequired`.
pub(super) fn dependencies(members: &mut Keywords) {
    let mut required = take_map(members, "dependentRequired");
    let mut schemas = take_map(members, "dependentSchemas");
    for (name, value) in take_map(members, "dependencies") {
        let into = if value.is_array() { &mut required } else { &mut schemas };
        if into.contains_key(&name) {
            // Stated twice: leave the older spelling alone.
            members.entry("dependencies").or_insert_with(|| json!({}))[&name] = value;
        } else {
            into.insert(name, value);
        }
    }
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in names {
        let only = schemas[&name].as_object().filter(|inner| inner.len() == 1).and_then(|inner| inner.get("required"));
        if let Some(list) = only.cloned().filter(|_| !required.contains_key(&name)) {
            schemas.shift_remove(&name);
            required.insert(name, list);
        } else if is_true(&schemas[&name]) {
            schemas.shift_remove(&name);
        }
    }
    required.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
    for (key, map) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
        if !map.is_empty() {
            members.insert(key.to_owned(), Value::Object(map));
        }
    }
}

/// A pattern for all names, where no member is described by its name, says which members there may be.
pub(super) fn pattern_of_names(members: &mut Keywords) {
    let describes_some = ["properties", "patternProperties"]
        .iter()
        .any(|key| members.get(*key).and_then(Value::as_object).is_some_and(|named| !named.is_empty()));
    let asks = members.keys().any(|key| key.starts_with("unevaluated"));
    let rest = members.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    if describes_some || asks || rest == Value::Bool(false) {
        return;
    }
    let Some(names) = members.get("propertyNames").and_then(Value::as_object) else { return };
    let is_alone = names.iter().all(|(key, value)| match key.as_str() {
        "pattern" => value.is_string(),
        "type" => value == "string",
        other => is_annotation(other),
    });
    let Some(pattern) = names.get("pattern").and_then(Value::as_str).filter(|_| is_alone).map(str::to_owned) else {
        return;
    };
    members.shift_remove("propertyNames");
    members.insert("patternProperties".to_owned(), Value::Object([(pattern, rest)].into_iter().collect()));
    members.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// A pattern that every name matches, where no member is described by its name, is `additionalProperties`.
pub(super) fn names(members: &mut Keywords) {
    let has_names = members.get("properties").and_then(Value::as_object).is_some_and(|names| !names.is_empty());
    let Some(Value::Object(patterns)) = members.get("patternProperties").filter(|_| !has_names) else { return };
    let only =
        patterns.iter().next().filter(|(pattern, _)| patterns.len() == 1 && MATCHES_ALL.contains(&pattern.as_str()));
    if let Some(schema) = only.map(|(_, schema)| schema.clone()) {
        members.shift_remove("patternProperties");
        members.insert("additionalProperties".to_owned(), schema);
    }
}

fn take_map(members: &mut Keywords, key: &str) -> Keywords {
    match members.get(key) {
        Some(Value::Object(_)) => match members.shift_remove(key) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        },
        _ => Map::new(),
    }
}

/// Whether what `unevaluated…` refuses depends on how other schemas about the same value are written, not only on what
/// they accept.
pub(in crate::compare) fn depends_on_form(members: &Keywords) -> bool {
    let has = |key: &str| members.contains_key(key);
    let about_the_same = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "dependencies",
    ];
    (has("unevaluatedProperties") || has("unevaluatedItems")) && about_the_same.into_iter().any(has)
}

/// If no other schema is about the same value, `unevaluatedProperties` is `additionalProperties`, and beside it nothing
/// is left for it.
pub(super) fn unevaluated(members: &mut Keywords) {
    if depends_on_form(members) {
        return;
    }
    if let Some(rest) = members.shift_remove("unevaluatedProperties") {
        members.entry("additionalProperties").or_insert(rest);
    }
    if !members.contains_key("contains")
        && let Some(rest) = members.shift_remove("unevaluatedItems")
    {
        let key = if members.get("items").is_some_and(Value::is_array) { "additionalItems" } else { "items" };
        members.entry(key).or_insert(rest);
    }
}

/// Limits and steps of integers.
pub(super) fn integers(members: &mut Keywords) {
    let types = members.get("type");
    let whole = types.is_some_and(|kind| kind == "integer")
        || types.and_then(Value::as_array).is_some_and(|names| {
            names.iter().any(|name| name == "integer") && !names.iter().any(|name| name == "number")
        });
    if !whole {
        return;
    }
    if let Some(Value::Number(step)) = members.get("multipleOf")
        && divides(step, &Number::from(1)) == Some(true)
    {
        members.shift_remove("multipleOf");
    }
    for (plain, exclusive, is_lower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
    {
        // The outer `None` is a limit that is not a number, or too large.
        let numbers = [(plain, false), (exclusive, true)].map(|(key, is_shut)| match members.get(key) {
            None => Some(None),
            Some(Value::Number(limit)) => whole_limit(limit, is_shut, is_lower).map(Some),
            Some(_) => None,
        });
        let [Some(one), Some(two)] = numbers else { continue };
        let tightest = match (one, two) {
            (None, other) | (other, None) => other,
            (Some(one), Some(two)) => Some(if is_lower { one.max(two) } else { one.min(two) }),
        };
        members.shift_remove(exclusive);
        if let Some(tightest) = tightest {
            members.insert(plain.to_owned(), json!(tightest));
        }
    }
}

/// What is not excluded is accepted.
pub(super) fn doubly_negated(members: &mut Keywords) {
    let Some(not) = members.get("not") else { return };
    let positive = match asserted(not).as_slice() {
        _ if *not == Value::Bool(false) => Value::Bool(true),
        [("not", inner)] => (*inner).clone(),
        _ => return,
    };
    members.shift_remove("not");
    if let Value::Object(whole) = both(std::mem::take(members), positive) {
        *members = whole;
    }
}
