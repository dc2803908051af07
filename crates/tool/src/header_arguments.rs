//! Arguments that a client also sends as HTTP headers, as MCP allows from 2026-07-28 on.

use serde_json::{Map, Value};

/// The annotation of such an argument. It counts only where it is reached from the root through `properties` alone.
pub const HEADER: &str = "x-mcp-header";

/// Whether an argument of the schema is also sent as a header.
pub fn has_any(schema: &Map<String, Value>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter();
    let mut arguments = properties.flat_map(|all| all.values()).filter_map(Value::as_object);
    arguments.any(|argument| argument.contains_key(HEADER) || has_any(argument))
}

/// Removes the annotations.
pub fn remove(schema: &mut Map<String, Value>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter();
    for argument in properties.flat_map(|all| all.values_mut()).filter_map(Value::as_object_mut) {
        argument.shift_remove(HEADER);
        remove(argument);
    }
}
