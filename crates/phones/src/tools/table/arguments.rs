//! The arguments that phone tools take, each once.

use serde_json::{Value, json};

use crate::tools::row::ToolArgument;

pub fn string() -> Value {
    json!({"type": "string"})
}

/// A list of texts.
pub fn strings() -> Value {
    json!({"type": "array", "items": string()})
}

/// A list of things with names for their parts.
pub fn objects() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

pub fn number() -> Value {
    json!({"type": "number"})
}

pub fn integer() -> Value {
    json!({"type": "integer"})
}

pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// An object that names the members most used; it takes the others too.
pub fn members(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

pub const SETTLE: ToolArgument = ToolArgument::new(
    "settle",
    boolean,
    "Whether to wait until the screen has stopped changing, for 3 seconds at most. Implied by `return`.",
    "true",
)
.only_tester();
pub const RETURN: ToolArgument = ToolArgument::new(
    "return",
    || json!({"enum": ["none", "diff", "screen"]}),
    "What to show afterwards: nothing, what changed since you last looked, or the screen.",
    "\"diff\"",
);
pub const MAX_BYTES: ToolArgument = ToolArgument::new(
    "max_bytes",
    integer,
    "The most bytes of text to answer with, at least 200; what does not fit is left out with a note.",
    "2000",
);

pub const QUALITY: ToolArgument = ToolArgument::new(
    "quality",
    || json!({"type": "integer", "default": 80, "minimum": 1, "maximum": 100}),
    "Quality of the JPEG, 1 to 100.",
    "80",
)
.not_compact();
pub const MAX_SIDE: ToolArgument = ToolArgument::new(
    "max_side",
    integer,
    "Scale the picture down until no side is longer than this many pixels.",
    "768",
)
.hint("pixels");
pub const GRAYSCALE: ToolArgument =
    ToolArgument::new("grayscale", boolean, "Whether to leave out the colours, which saves bytes.", "false")
        .not_compact();

pub const X: ToolArgument = ToolArgument::new("x", number, "Pixels from the left edge, from 0.", "540").required();
pub const Y: ToolArgument = ToolArgument::new("y", number, "Pixels from the top edge, from 0.", "1200").required();
pub const LONG_DURATION: ToolArgument = ToolArgument::new(
    "duration",
    || json!({"type": "number", "default": 1000}),
    "How long the finger stays on the screen, in milliseconds, 1 to 60000.",
    "800",
)
.hint("ms");
pub const DURATION: ToolArgument = ToolArgument::new(
    "duration",
    || json!({"type": "number", "default": 300}),
    "How long the gesture takes, in milliseconds, 1 to 60000.",
    "300",
)
.hint("ms");

pub const ELEMENT: ToolArgument = ToolArgument::new(
    "element_id",
    string,
    "The element, as a ref of `get_screen` or a node id of `find_elements`. Left out, `selector`, or `by` and `value` describe it.",
    "\"e7\"",
)
.hint("ref or id");
pub const BY: ToolArgument = ToolArgument::new(
    "by",
    || json!({"enum": ["text", "content_desc", "resource_id", "class_name"]}),
    "The property to search by.",
    "\"text\"",
)
.not_compact();
pub const VALUE: ToolArgument = ToolArgument::new(
    "value",
    string,
    "What the property says; part of it in any case, unless `exact_match` is set.",
    "\"New note\"",
)
.not_compact();
pub const TEXT: ToolArgument =
    ToolArgument::new("text", string, "The text the field holds afterwards, in any script.", "\"Grüße\"").required();
pub const SELECTOR: ToolArgument = ToolArgument::new(
    "selector",
    || members(json!({"text": string(), "description": string(), "id": string()})),
    "What the element is: `text`, `description`, `id`, `class` (all that are given hold; `exact` for whole texts), and `near`, `below` or `inside` another selector. Where something is done to it, it must fit one element only.",
    r#"{"class": "Switch", "near": {"text": "Wi-Fi"}}"#,
)
.compact(|| members(json!({"text": string(), "description": string()})));
