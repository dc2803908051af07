//! A manifest as a tree, whichever form it was written in.

use std::sync::Arc;

/// Deeper than any manifest; a deeper one is refused.
pub const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    pub name: Arc<str>,
    pub attributes: Vec<Attribute>,
    pub children: Vec<Element>,
    /// In the source, counted from 1.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Without a prefix.
    pub name: Arc<str>,
    /// Whether it is one of Android's.
    pub android: bool,
    pub value: Value,
}

/// What an attribute or a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(Arc<str>),
    Number(i32),
    Bool(bool),
    /// A resource, by its id.
    Reference(u32),
    /// A resource, by its name: `string/tools`. Only a source manifest has these.
    Named(Arc<str>),
    /// A colour, a dimension, a theme's attribute: nothing a manifest says of tools.
    Other {
        kind: u8,
        data: u32,
    },
}

impl Element {
    /// An attribute in Android's namespace.
    pub fn android(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|one| one.android && &*one.name == name).map(|one| &one.value)
    }

    /// An attribute without a namespace.
    pub fn plain(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|one| !one.android && &*one.name == name).map(|one| &one.value)
    }

    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| &*child.name == name)
    }
}

impl Value {
    /// The text, also of what is not text, as Android would show it. A reference has none.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Other { kind: 0x04, data } => Some(f32::from_bits(*data).to_string()),
            Value::Reference(_) | Value::Named(_) | Value::Other { .. } => None,
        }
    }

    pub fn to_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            Value::Number(number) => Some(*number != 0),
            Value::Text(text) => match text.trim() {
                "true" | "TRUE" | "True" => Some(true),
                "false" | "FALSE" | "False" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn to_number(&self) -> Option<u32> {
        match self {
            Value::Number(number) => Some(*number as u32),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub fn is_reference(&self) -> bool {
        matches!(self, Value::Reference(_) | Value::Named(_))
    }
}
