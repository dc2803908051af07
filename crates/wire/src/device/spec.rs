//! What a tool takes: its name, its description, its properties.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::{Bound, RangeBounds};

use serde_json::{Map, Value, json};

/// A tool as the gateway sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) properties: Vec<Property>,
    pub(super) users_only: bool,
}

/// One argument of a tool. Without a default it is required.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Boolean { default: Option<bool> },
    Integer { minimum: Option<i64>, maximum: Option<i64>, default: Option<i64> },
    Text { default: Option<String> },
}

impl ToolSpec {
    /// Names of boards are dotted paths by custom: `self.lamp.switch`.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> ToolSpec {
        ToolSpec { name: name.into(), description: description.into(), properties: Vec::new(), users_only: false }
    }

    pub fn with(mut self, property: Property) -> ToolSpec {
        self.properties.push(property);
        self
    }

    /// For people only: listed where the gateway asks for user tools, so that no model finds it.
    pub fn for_users(mut self) -> ToolSpec {
        self.users_only = true;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tool as a `tools/list` entry.
    pub fn to_json(&self) -> Value {
        let properties: Map<String, Value> =
            self.properties.iter().map(|property| (property.name.clone(), property.to_json())).collect();
        let required: Vec<&str> = self
            .properties
            .iter()
            .filter(|property| property.is_required())
            .map(|property| property.name.as_str())
            .collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        let mut entry = json!({"name": self.name, "description": self.description, "inputSchema": schema});
        if self.users_only {
            entry["annotations"] = json!({"audience": ["user"]});
        }
        entry
    }
}

impl Property {
    pub fn boolean(name: impl Into<String>) -> Property {
        Property::new(name, Kind::Boolean { default: None })
    }

    pub fn boolean_or(name: impl Into<String>, default: bool) -> Property {
        Property::new(name, Kind::Boolean { default: Some(default) })
    }

    /// A whole number in a range: `0..=100`, `1..`, or `..` for any.
    pub fn integer(name: impl Into<String>, range: impl RangeBounds<i64>) -> Property {
        let (minimum, maximum) = bounds(range);
        Property::new(name, Kind::Integer { minimum, maximum, default: None })
    }

    /// A default outside the range is moved to its edge.
    pub fn integer_or(name: impl Into<String>, range: impl RangeBounds<i64>, default: i64) -> Property {
        let (minimum, maximum) = bounds(range);
        let default = default.max(minimum.unwrap_or(i64::MIN)).min(maximum.unwrap_or(i64::MAX));
        Property::new(name, Kind::Integer { minimum, maximum, default: Some(default) })
    }

    pub fn text(name: impl Into<String>) -> Property {
        Property::new(name, Kind::Text { default: None })
    }

    pub fn text_or(name: impl Into<String>, default: impl Into<String>) -> Property {
        Property::new(name, Kind::Text { default: Some(default.into()) })
    }

    /// What the argument means, for whoever calls the tool.
    pub fn describe(mut self, description: impl Into<String>) -> Property {
        self.description = Some(description.into());
        self
    }

    fn new(name: impl Into<String>, kind: Kind) -> Property {
        Property { name: name.into(), description: None, kind }
    }

    fn is_required(&self) -> bool {
        match &self.kind {
            Kind::Boolean { default } => default.is_none(),
            Kind::Integer { default, .. } => default.is_none(),
            Kind::Text { default } => default.is_none(),
        }
    }

    fn to_json(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(key.to_string(), value);
            }
        };
        match &self.kind {
            Kind::Boolean { default } => {
                put("type", Some(json!("boolean")));
                put("default", default.map(Value::from));
            }
            Kind::Integer { minimum, maximum, default } => {
                put("type", Some(json!("integer")));
                put("default", default.map(Value::from));
                put("minimum", minimum.map(Value::from));
                put("maximum", maximum.map(Value::from));
            }
            Kind::Text { default } => {
                put("type", Some(json!("string")));
                put("default", default.clone().map(Value::from));
            }
        }
        put("description", self.description.clone().map(Value::from));
        Value::Object(entry)
    }
}

fn bounds(range: impl RangeBounds<i64>) -> (Option<i64>, Option<i64>) {
    let minimum = match range.start_bound() {
        Bound::Included(edge) => Some(*edge),
        Bound::Excluded(edge) => Some(edge.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let maximum = match range.end_bound() {
        Bound::Included(edge) => Some(*edge),
        Bound::Excluded(edge) => Some(edge.saturating_sub(1)),
        Bound::Unbounded => None,
    };
    (minimum, maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_listed_with_its_schema() {
        let spec = ToolSpec::new("self.screen.snapshot", "Take a picture of the screen")
            .with(Property::text("url").describe("Where to send it"))
            .with(Property::integer_or("quality", 1..=100, 800))
            .with(Property::integer("frame", 0..))
            .with(Property::boolean_or("flash", false))
            .for_users();
        assert_eq!(
            spec.to_json(),
            json!({
                "name": "self.screen.snapshot",
                "description": "Take a picture of the screen",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "url": {"type": "string", "description": "Where to send it"},
                        "quality": {"type": "integer", "default": 100, "minimum": 1, "maximum": 100},
                        "frame": {"type": "integer", "minimum": 0},
                        "flash": {"type": "boolean", "default": false},
                    },
                    "required": ["url", "frame"],
                },
                "annotations": {"audience": ["user"]},
            })
        );
    }

    #[test]
    fn a_tool_without_required_arguments_lists_none() {
        let bare = ToolSpec::new("x", "").to_json();
        assert_eq!(bare["inputSchema"], json!({"type": "object", "properties": {}}));
        assert_eq!(bare.get("annotations"), None);
    }
}
