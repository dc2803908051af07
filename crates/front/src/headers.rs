//! `x-mcp-header` in the schemas of devices.
//!
//! The annotation asks clients to repeat an argument as an HTTP header. A client drops the whole tool
//! where one is malformed, so what a device wrote wrongly is taken out before anybody sees it.

use std::collections::BTreeSet;

use rmcp::model::JsonObject;
use serde_json::Value;

const KEY: &str = "x-mcp-header";

/// The schema with only those annotations that clients accept: a header token, used once, on a
/// string, integer or boolean that is reached through `properties` alone.
pub(crate) fn sanitised(schema: &Value) -> JsonObject {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    clean(&mut schema, true, &mut seen);
    schema
}

/// Whether any argument also travels as a header.
pub(crate) fn annotated(schema: &JsonObject) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties.values().filter_map(Value::as_object).any(|one| one.contains_key(KEY) || annotated(one))
    })
}

/// `reachable`: the way here led through `properties` only. Depth is bounded by the JSON reader.
fn clean(schema: &mut JsonObject, reachable: bool, seen: &mut BTreeSet<String>) {
    if let Some(name) = schema.get(KEY) {
        let name = name.as_str().filter(|name| is_token(name)).map(str::to_ascii_lowercase);
        let primitive = matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
        if !(reachable && primitive && name.is_some_and(|name| seen.insert(name))) {
            schema.shift_remove(KEY);
        }
    }
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            // Data, not schemas: what stands there is no annotation.
            ("const" | "enum" | "default" | "examples", _) => {}
            (
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(named),
            ) => {
                let reachable = reachable && key == "properties";
                named.values_mut().filter_map(Value::as_object_mut).for_each(|one| clean(one, reachable, seen));
            }
            (_, Value::Object(one)) => clean(one, false, seen),
            (_, Value::Array(several)) => {
                several.iter_mut().filter_map(Value::as_object_mut).for_each(|one| clean(one, false, seen));
            }
            _ => {}
        }
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_proper_annotation_stays() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        }});
        assert_eq!(Value::Object(sanitised(&schema)), schema);
        assert!(annotated(&sanitised(&schema)));
    }

    #[test]
    fn an_improper_one_goes_and_the_rest_stays() {
        let schema = json!({"type": "object", "x-mcp-header": "Top", "properties": {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"},
            "c": {"type": "array", "x-mcp-header": "C", "items": {"type": "string", "x-mcp-header": "Item"}},
            "d": {"type": "string", "x-mcp-header": "two words"},
            "e": {"type": "string", "x-mcp-header": 5},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "data"}},
        }, "$defs": {"f": {"type": "string", "x-mcp-header": "F"}}});
        let wanted = json!({"type": "object", "properties": {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string"},
            "c": {"type": "array", "items": {"type": "string"}},
            "d": {"type": "string"},
            "e": {"type": "string"},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "data"}},
        }, "$defs": {"f": {"type": "string"}}});
        assert_eq!(Value::Object(sanitised(&schema)), wanted);
    }
}
