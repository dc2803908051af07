//! The tools of the remote-control reference in its own form, for the REST endpoint: descriptions and schemas as its
//! documents have them. What Sinew adds is accepted there, but not listed.

use serde_json::{Value, json};
use sinew_tool::Tool;

use super::table;

/// A tool as the reference lists it.
pub struct Reference {
    pub description: &'static str,
    pub properties: fn() -> Value,
    pub required: &'static [&'static str],
}

impl Reference {
    pub fn to_tool(&self, name: &str) -> Tool {
        let schema = json!({"type": "object", "properties": (self.properties)(), "required": self.required});
        Tool::new(name, self.description, schema)
    }
}

/// The tools of the reference, in its order.
pub fn reference_tools() -> Vec<Tool> {
    table::rows().filter_map(|row| Some(row.reference.as_ref()?.to_tool(row.name))).collect()
}

pub fn nothing() -> Value {
    json!({})
}

pub fn point() -> Value {
    json!({
        "x": {"type": "number", "description": "X coordinate (>= 0)"},
        "y": {"type": "number", "description": "Y coordinate (>= 0)"},
    })
}

pub fn element() -> Value {
    json!({"element_id": {"type": "string", "description": "Node ID from find_elements"}})
}

pub fn optional_element() -> Value {
    json!({"element_id": {"type": "string", "description": "Optional target element ID"}})
}

pub fn duration(default: u32, what: &str) -> Value {
    json!({"duration": {"type": "number", "description": format!("{what} duration in ms (1-60000)"), "default": default}})
}

pub fn timeout(default: u32) -> Value {
    json!({"timeout": {"type": "integer", "description": "Timeout in milliseconds (1-30000)", "default": default}})
}

pub fn by() -> Value {
    json!({
        "by": {
            "type": "string",
            "enum": ["text", "content_desc", "resource_id", "class_name"],
            "description": "Search criteria type",
        },
        "value": {"type": "string", "description": "Search value"},
    })
}

/// The members of both.
pub fn with(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}
