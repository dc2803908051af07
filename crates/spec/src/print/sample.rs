//! A value that matches a schema, for tools without an example.

use serde_json::{Map, Value, json};

use crate::schema::resolve;

/// Arguments that probably match an input schema, without solving it: examples and
/// defaults where the schema gives them, the required members, plain values of the right type.
pub fn sample(schema: &Value) -> Value {
    let value = sample_at(schema, schema, 0);
    if value.is_object() { value } else { json!({}) }
}

fn sample_at(root: &Value, schema: &Value, depth: usize) -> Value {
    // Only a schema that contains itself is deeper than this.
    if depth > 8 {
        return Value::Null;
    }
    if let Some(given) = super::example(schema) {
        return given.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference)) {
        return sample_at(root, target, depth + 1);
    }
    if let Some(branch) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()?.first()) {
        let value = sample_at(root, branch, depth + 1);
        if !value.is_null() {
            return value;
        }
    }
    let kind = match schema.get("type") {
        Some(Value::Array(names)) => names.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None if schema.get("properties").is_some() => Some("object"),
        None => None,
    };
    match kind {
        Some("object") => object(root, schema, depth),
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(8);
            let items = schema.get("items").map_or(json!("text"), |items| sample_at(root, items, depth + 1));
            Value::Array((0..least).map(|_| items.clone()).collect())
        }
        Some("integer") => number(schema, true),
        Some("number") => number(schema, false),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => text(schema),
    }
}

fn object(root: &Value, schema: &Value, depth: usize) -> Value {
    let mut value = Map::new();
    let properties = crate::model::properties(schema);
    for name in crate::model::required(schema) {
        let property = properties.and_then(|properties| properties.get(name));
        let member = property.map_or(json!("text"), |property| sample_at(root, property, depth + 1));
        value.insert(name.to_owned(), member);
    }
    Value::Object(value)
}

fn number(schema: &Value, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + 1.0));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - 1.0));
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let start = low.unwrap_or_else(|| high.map_or(1.0, |high| high.min(1.0)));
    let value = (start / step).ceil() * step;
    if whole || value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

fn text(schema: &Value) -> Value {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T09:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "09:00:00Z",
        Some("duration") => "PT5M",
        Some("uri" | "uri-reference" | "iri" | "url") => "https://example.com/",
        Some("email") => "someone@example.com",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("hostname") => "example.com",
        _ => "text",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(64) as usize;
    let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(64) as usize;
    let mut text: String = text.to_owned();
    while text.len() < least {
        text.push('x');
    }
    text.truncate(most.max(least));
    json!(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{CheckBudget, Checker};

    #[test]
    fn samples_match_their_schemas() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "required": ["a", "b"], "properties": {
                "a": {"type": "integer", "minimum": 3, "multipleOf": 5},
                "b": {"type": "array", "items": {"type": "string", "minLength": 6}, "minItems": 2},
                "c": {"type": "string"},
            }}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/p"}},
                   "$defs": {"p": {"type": "string", "format": "uri"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "enum": ["x", "y"]}}}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "number", "exclusiveMaximum": 0}}}),
        ] {
            let value = sample(&schema);
            assert_eq!(
                Checker::new(&schema, &mut CheckBudget::default()).ok().unwrap().accepts(&value),
                Some(true),
                "{schema} got {value}"
            );
        }
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let schema = json!({"type": "object", "required": ["child"], "properties": {"child": {"$ref": "#"}}});
        assert!(sample(&schema).is_object());
    }
}
