//! How large a schema is.

use serde_json::Value;

/// A schema larger than this is not passed on; the largest seen on real devices has 6 KiB.
const MAX_SIZE: usize = 64 << 10;
/// Deeper schemas are not checked.
const MAX_DEPTH: usize = 32;
/// Deeper schemas are not listed either: JSON parsers stop at about this depth.
const MAX_LISTED_DEPTH: usize = 127;

/// The size of a schema in bytes; what is wrong with one that is too large or too deep to be checked.
pub(crate) fn size(schema: &Value) -> Result<usize, String> {
    size_within(schema, MAX_DEPTH)
}

/// The size of a schema that is listed and not checked.
pub(crate) fn listed_size(schema: &Value) -> Result<usize, String> {
    size_within(schema, MAX_LISTED_DEPTH)
}

fn size_within(schema: &Value, deepest: usize) -> Result<usize, String> {
    let mut room = MAX_SIZE;
    measure(schema, 0, deepest, &mut room)?;
    Ok(MAX_SIZE - room)
}

/// A reference within the same document, in the one form that is followed: `#` or `#/a/b`.
pub(crate) fn is_local(reference: &Value) -> bool {
    reference.as_str().is_some_and(|text| text == "#" || (text.starts_with("#/") && !text.contains('%')))
}

fn measure(value: &Value, depth: usize, deepest: usize, room: &mut usize) -> Result<(), String> {
    if depth > deepest {
        return Err(format!("nests deeper than {deepest} levels"));
    }
    let size = match value {
        Value::String(text) => text.len() + 3,
        Value::Object(members) => 2 + members.keys().map(|key| key.len() + 4).sum::<usize>(),
        _ => 3,
    };
    *room = room.checked_sub(size).ok_or_else(|| format!("is larger than {} KiB", MAX_SIZE >> 10))?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, deepest, room)),
        Value::Object(members) => members.values().try_for_each(|member| measure(member, depth + 1, deepest, room)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn size_and_depth_have_bounds() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        assert!(size(&deep).is_err());
        let wide: Map<String, Value> = (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert!(size(&json!({"properties": wide})).is_err());
    }
}
