//! Keywords that have no effect.

use serde_json::Value;

use super::super::keywords::is_annotation;
use super::{Keywords, is_true};

/// Removes keywords that have no effect.
pub(super) fn remove(members: &mut Keywords) {
    let conditional = members.contains_key("if");
    if !conditional {
        members.shift_remove("then");
        members.shift_remove("else");
    }
    for key in ["then", "else"] {
        if members.get(key).is_some_and(is_true) {
            members.shift_remove(key);
        }
    }
    // `if` marks members as evaluated, which matters to `unevaluated…`.
    let asks = members.keys().any(|key| key.starts_with("unevaluated"));
    if conditional && !asks && !members.contains_key("then") && !members.contains_key("else") {
        members.shift_remove("if");
    }
    let is = |members: &Keywords, key: &str, number: u64| members.get(key).and_then(Value::as_u64) == Some(number);
    if !members.contains_key("contains") {
        members.shift_remove("minContains");
        members.shift_remove("maxContains");
    } else if is(members, "minContains", 1) {
        members.shift_remove("minContains");
    } else if is(members, "minContains", 0) && !members.contains_key("maxContains") && !asks {
        members.shift_remove("contains");
        members.shift_remove("minContains");
    }
    let names = members.get("propertyNames");
    let only_strings = |schema: &Value| {
        schema.as_object().is_some_and(|inner| {
            inner.iter().all(|(key, value)| is_annotation(key) || key == "type" && value == "string")
        })
    };
    if names.is_some_and(|names| is_true(names) || only_strings(names)) {
        members.shift_remove("propertyNames");
    }
    for key in ["minLength", "minItems", "minProperties"] {
        if is(members, key, 0) {
            members.shift_remove(key);
        }
    }
    if members.get("uniqueItems") == Some(&Value::Bool(false)) {
        members.shift_remove("uniqueItems");
    }
    if members.get("pattern").and_then(Value::as_str).is_some_and(|pattern| super::MATCHES_ALL.contains(&pattern)) {
        members.shift_remove("pattern");
    }
    for key in ["required", "allOf"] {
        if members.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            members.shift_remove(key);
        }
    }
}
