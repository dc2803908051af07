//! The kind of value that a schema describes.

use serde_json::Value;

use super::Direction;
use super::branch::Level;

/// The types that fit, `null` among them; none where anything does.
pub(super) fn kinds(level: &Level, direction: Direction) -> Vec<&'static str> {
    const ALL: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
    let known = |word: &str| ALL.into_iter().find(|kind| *kind == word);
    let mut kinds: Vec<&str> = match level.members.get("type") {
        Some(Value::String(kind)) => known(kind).into_iter().collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).filter_map(known).collect(),
        _ => Vec::new(),
    };
    let of_value = |value: &Value| ALL.into_iter().find(|kind| is_of(value, kind));
    if let Some(values) = values(level) {
        let mut of_values: Vec<&str> = values.iter().filter_map(of_value).collect();
        of_values.sort_unstable();
        of_values.dedup();
        let fits =
            |kind: &&str| kinds.is_empty() || kinds.contains(kind) || (*kind == "integer" && kinds.contains(&"number"));
        let narrowed: Vec<&str> = of_values.into_iter().filter(fits).collect();
        if !narrowed.is_empty() {
            kinds = narrowed;
        }
    }
    // Without a type every keyword lets other kinds of values pass, so only an input may be narrowed to what they mean.
    if kinds.is_empty() && direction == Direction::Input {
        let implied = ["object", "array", "string", "number"]
            .into_iter()
            .find(|kind| level.members.keys().any(|keyword| belongs_to(keyword) == Some(kind)));
        kinds.extend(implied);
    }
    if kinds.contains(&"number") {
        kinds.retain(|kind| *kind != "integer");
    }
    kinds.dedup();
    kinds
}

/// The kind of value that a keyword applies to.
fn belongs_to(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies"
        | "unevaluatedProperties" => "object",
        "items" | "prefixItems" | "additionalItems" | "contains" | "minContains" | "maxContains" | "minItems"
        | "maxItems" | "uniqueItems" | "unevaluatedItems" => "array",
        "minLength" | "maxLength" | "pattern" | "format" => "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => "number",
        _ => return None,
    })
}

pub(super) fn concerns(keyword: &str, kind: &str) -> bool {
    match belongs_to(keyword) {
        Some("number") => matches!(kind, "number" | "integer"),
        // Some schemas use `format` for numbers too.
        Some("string") if keyword == "format" => matches!(kind, "string" | "number" | "integer"),
        Some(other) => other == kind,
        None => true,
    }
}

/// The values of `enum` and `const`.
pub(super) fn values(level: &Level) -> Option<Vec<Value>> {
    match (level.members.get("const"), level.members.get("enum")) {
        (Some(one), _) => Some(vec![one.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

pub(super) fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}
