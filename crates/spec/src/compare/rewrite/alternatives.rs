//! `anyOf` and `oneOf`: alternatives that are repeated, exclude each other, or differ only by type.

use serde_json::{Map, Value, json};

use super::super::keywords::is_annotation;
use super::{Keywords, is_true};

/// Simplifies alternatives: one that accepts everything replaces all, impossible and repeated ones are removed.
pub(super) fn alternatives(members: &mut Keywords) {
    let asks = members.keys().any(|key| key.starts_with("unevaluated"));
    if let Some(Value::Array(list)) = members.get("anyOf") {
        if !list.is_empty() && list.iter().any(is_true) && !asks {
            members.shift_remove("anyOf");
        } else {
            let mut flat: Vec<Value> = Vec::new();
            for branch in list {
                let inner = branch
                    .as_object()
                    .filter(|inner| inner.len() == 1)
                    .and_then(|inner| inner.get("anyOf")?.as_array());
                match inner {
                    Some(inner) => flat.extend(inner.iter().cloned()),
                    None => flat.push(branch.clone()),
                }
            }
            if flat.iter().any(|branch| *branch != Value::Bool(false)) {
                flat.retain(|branch| *branch != Value::Bool(false));
            }
            let mut seen: Vec<Value> = Vec::new();
            flat.retain(|branch| {
                let is_new = !seen.contains(branch);
                if is_new && seen.len() < 64 {
                    seen.push(branch.clone());
                }
                is_new
            });
            members.insert("anyOf".to_owned(), Value::Array(flat));
        }
    }
    if let Some(Value::Array(list)) = members.get_mut("oneOf")
        && list.iter().any(|branch| *branch != Value::Bool(false))
    {
        list.retain(|branch| *branch != Value::Bool(false));
    }
    for key in ["anyOf", "oneOf"] {
        // One alternative is a condition.
        let only = members.get(key).and_then(Value::as_array).filter(|list| list.len() == 1).cloned();
        if let Some(only) = only.filter(|_| matches!(members.get("allOf"), None | Some(Value::Array(_)))) {
            members.shift_remove(key);
            let all = members.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.extend(only.iter().cloned()));
        }
    }
}

/// `oneOf` becomes `anyOf` if no value can match two of the alternatives.
pub(super) fn exclusive(members: &mut Keywords) {
    let Some(branches) = members.get("oneOf").and_then(Value::as_array) else { return };
    if !members.contains_key("anyOf") && distinct_types(branches).is_some() {
        let branches = members.shift_remove("oneOf").unwrap_or_default();
        members.insert("anyOf".to_owned(), branches);
    }
}

/// Alternatives that differ by their type become a list of types, with the keywords
/// that apply only to that type. Only if nothing else is beside them: `additionalProperties` of a
/// branch must not see the `properties` outside it.
pub(super) fn kinds(members: &mut Keywords) {
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

/// The type of each branch, if each names one and no two overlap.
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

/// Whether a keyword applies to values of this type only.
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
