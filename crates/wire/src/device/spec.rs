//! A tool: its name, its description, its properties.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::ops::{Bound, RangeBounds};

use super::write::Quoted;

/// Text of a tool: a literal stays where the program is stored and takes no memory.
pub(super) type Text = Cow<'static, str>;

/// A tool as the gateway sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub(super) name: Text,
    pub(super) description: Text,
    pub(super) properties: Vec<Property>,
    pub(super) users_only: bool,
}

/// One argument of a tool. Without a default it is required.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    pub(super) name: Text,
    pub(super) description: Option<Text>,
    pub(super) kind: PropertyKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum PropertyKind {
    Boolean { default: Option<bool> },
    Integer { minimum: Option<i64>, maximum: Option<i64>, default: Option<i64> },
    Text { default: Option<Text> },
}

impl ToolSpec {
    /// Names of boards are dotted paths by custom: `self.lamp.switch`.
    pub fn new(name: impl Into<Text>, description: impl Into<Text>) -> ToolSpec {
        ToolSpec { name: name.into(), description: description.into(), properties: Vec::new(), users_only: false }
    }

    pub fn with(mut self, property: Property) -> ToolSpec {
        // A vector that doubles would waste memory.
        self.properties.reserve_exact(1);
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
}

/// The tool as a `tools/list` entry.
impl Display for ToolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"name\":{},\"description\":{},", Quoted(&self.name), Quoted(&self.description))?;
        f.write_str("\"inputSchema\":{\"type\":\"object\",\"properties\":{")?;
        list(f, self.properties.iter(), |f, property| write!(f, "{}:{property}", Quoted(&property.name)))?;
        f.write_str("}")?;
        if self.properties.iter().any(Property::is_required) {
            f.write_str(",\"required\":[")?;
            let required = self.properties.iter().filter(|property| property.is_required());
            list(f, required, |f, property| Quoted(&property.name).fmt(f))?;
            f.write_str("]")?;
        }
        f.write_str(if self.users_only { "},\"annotations\":{\"audience\":[\"user\"]}}" } else { "}}" })
    }
}

/// Writes items with commas between them.
pub(super) fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write(f, item)?;
    }
    Ok(())
}

impl Property {
    pub fn boolean(name: impl Into<Text>) -> Property {
        Property::new(name, PropertyKind::Boolean { default: None })
    }

    pub fn boolean_or(name: impl Into<Text>, default: bool) -> Property {
        Property::new(name, PropertyKind::Boolean { default: Some(default) })
    }

    /// A whole number in a range: `0..=100`, `1..`, or `..` for any.
    pub fn integer(name: impl Into<Text>, range: impl RangeBounds<i64>) -> Property {
        let (minimum, maximum) = bounds(range);
        Property::new(name, PropertyKind::Integer { minimum, maximum, default: None })
    }

    /// A default outside the range is moved to its edge.
    pub fn integer_or(name: impl Into<Text>, range: impl RangeBounds<i64>, default: i64) -> Property {
        let (minimum, maximum) = bounds(range);
        let default = default.max(minimum.unwrap_or(i64::MIN)).min(maximum.unwrap_or(i64::MAX));
        Property::new(name, PropertyKind::Integer { minimum, maximum, default: Some(default) })
    }

    pub fn text(name: impl Into<Text>) -> Property {
        Property::new(name, PropertyKind::Text { default: None })
    }

    pub fn text_or(name: impl Into<Text>, default: impl Into<Text>) -> Property {
        Property::new(name, PropertyKind::Text { default: Some(default.into()) })
    }

    /// What the argument means, for whoever calls the tool.
    pub fn describe(mut self, description: impl Into<Text>) -> Property {
        self.description = Some(description.into());
        self
    }

    fn new(name: impl Into<Text>, kind: PropertyKind) -> Property {
        Property { name: name.into(), description: None, kind }
    }

    fn is_required(&self) -> bool {
        match &self.kind {
            PropertyKind::Boolean { default } => default.is_none(),
            PropertyKind::Integer { default, .. } => default.is_none(),
            PropertyKind::Text { default } => default.is_none(),
        }
    }
}

/// The property as a JSON Schema.
impl Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn member(f: &mut fmt::Formatter<'_>, key: &str, value: Option<impl Display>) -> fmt::Result {
            value.map_or(Ok(()), |value| write!(f, ",\"{key}\":{value}"))
        }
        match &self.kind {
            PropertyKind::Boolean { default } => {
                f.write_str("{\"type\":\"boolean\"")?;
                member(f, "default", *default)?;
            }
            PropertyKind::Integer { minimum, maximum, default } => {
                f.write_str("{\"type\":\"integer\"")?;
                member(f, "default", *default)?;
                member(f, "minimum", *minimum)?;
                member(f, "maximum", *maximum)?;
            }
            PropertyKind::Text { default } => {
                f.write_str("{\"type\":\"string\"")?;
                member(f, "default", default.as_deref().map(Quoted))?;
            }
        }
        member(f, "description", self.description.as_deref().map(Quoted))?;
        f.write_str("}")
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
    use alloc::string::ToString;
    use serde_json::{Value, json};

    fn listed(spec: &ToolSpec) -> Value {
        serde_json::from_str(&spec.to_string()).unwrap()
    }

    #[test]
    fn a_tool_is_listed_with_its_schema() {
        let spec = ToolSpec::new("self.screen.snapshot", "Take a picture of the screen")
            .with(Property::text("url").describe("Where to send it"))
            .with(Property::integer_or("quality", 1..=100, 800))
            .with(Property::integer("frame", 0..))
            .with(Property::boolean_or("flash", false))
            .for_users();
        assert_eq!(
            listed(&spec),
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
        let bare = listed(&ToolSpec::new("x", ""));
        assert_eq!(bare["inputSchema"], json!({"type": "object", "properties": {}}));
        assert_eq!(bare.get("annotations"), None);
    }
}
