//! How large a schema may be, and which references in it are followed.

use serde_json::Value;
use sinew_tool::schema_size::measure;

/// Deeper schemas are not checked.
const MAX_DEPTH: usize = 32;
/// Deeper schemas are not listed either: JSON parsers stop at about this depth.
const MAX_LISTED_DEPTH: usize = 127;

/// The size of a schema in bytes; what is wrong with one that is too large or too deep to be checked.
pub(crate) fn size(schema: &Value) -> Result<usize, String> {
    measure(schema, MAX_DEPTH)
}

/// The size of a schema that is listed and not checked.
pub(crate) fn listed_size(schema: &Value) -> Result<usize, String> {
    measure(schema, MAX_LISTED_DEPTH)
}

/// A reference within the same document, in the one form that is followed: `#` or `#/a/b`.
pub(crate) fn is_local(reference: &Value) -> bool {
    reference.as_str().is_some_and(|text| text == "#" || (text.starts_with("#/") && !text.contains('%')))
}
