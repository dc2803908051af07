//! An XML tree, read from either form of a manifest.

use std::sync::Arc;

/// Deeper than any real manifest.
pub(super) const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct XmlElement {
    pub name: Arc<str>,
    pub attributes: Vec<XmlAttribute>,
    pub children: Vec<XmlElement>,
    /// Line in the source, counted from 1.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct XmlAttribute {
    /// Without a prefix.
    pub name: Arc<str>,
    /// Whether it is one of Android's.
    pub android: bool,
    pub value: XmlValue,
}

/// What an attribute or a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub enum XmlValue {
    Text(Arc<str>),
    Number(i32),
    Bool(bool),
    /// A resource, by its id.
    Reference(u32),
    /// A resource, by its name: `string/tools`. Only a source manifest has these.
    Named(Arc<str>),
    /// A colour, a dimension, a theme's attribute: not relevant to tools.
    Other {
        kind: u8,
        data: u32,
    },
}

impl XmlElement {
    /// An attribute in Android's namespace.
    pub fn android(&self, name: &str) -> Option<&XmlValue> {
        self.attributes.iter().find(|one| one.android && &*one.name == name).map(|one| &one.value)
    }

    /// An attribute without a namespace.
    pub fn plain(&self, name: &str) -> Option<&XmlValue> {
        self.attributes.iter().find(|one| !one.android && &*one.name == name).map(|one| &one.value)
    }

    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a XmlElement> {
        self.children.iter().filter(move |child| &*child.name == name)
    }
}

impl XmlValue {
    /// The value as text, as Android would show it. A reference has none.
    pub fn to_text(&self) -> Option<String> {
        match self {
            XmlValue::Text(text) => Some(text.to_string()),
            XmlValue::Number(number) => Some(number.to_string()),
            XmlValue::Bool(truth) => Some(truth.to_string()),
            XmlValue::Other { kind: 0x04, data } => Some(f32::from_bits(*data).to_string()),
            XmlValue::Reference(_) | XmlValue::Named(_) | XmlValue::Other { .. } => None,
        }
    }

    pub fn to_bool(&self) -> Option<bool> {
        match self {
            XmlValue::Bool(truth) => Some(*truth),
            XmlValue::Number(number) => Some(*number != 0),
            XmlValue::Text(text) => match text.trim() {
                "true" | "TRUE" | "True" => Some(true),
                "false" | "FALSE" | "False" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn to_number(&self) -> Option<u32> {
        match self {
            XmlValue::Number(number) => Some(*number as u32),
            XmlValue::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub fn is_reference(&self) -> bool {
        matches!(self, XmlValue::Reference(_) | XmlValue::Named(_))
    }
}
