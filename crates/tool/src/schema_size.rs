//! How large a schema is.

use serde_json::Value;

/// A schema larger than this is not listed; the largest seen on real devices has 6 KiB.
const MAX_SIZE: usize = 64 << 10;

/// The size of a schema in bytes; what is wrong with one that is too large, or deeper than `deepest` levels.
pub fn measure(schema: &Value, deepest: usize) -> Result<usize, String> {
    let mut room = MAX_SIZE;
    take(schema, 0, deepest, &mut room)?;
    Ok(MAX_SIZE - room)
}

fn take(value: &Value, depth: usize, deepest: usize, room: &mut usize) -> Result<(), String> {
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
        Value::Array(items) => items.iter().try_for_each(|item| take(item, depth + 1, deepest, room)),
        Value::Object(members) => members.values().try_for_each(|member| take(member, depth + 1, deepest, room)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn size_and_depth_have_bounds() {
        let deep = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
        assert_eq!(measure(&deep, 32), Err("nests deeper than 32 levels".to_owned()));
        assert!(measure(&deep, 127).is_ok());
        let wide: Map<String, Value> = (0..10_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert_eq!(measure(&json!({"properties": wide}), 127), Err("is larger than 64 KiB".to_owned()));
    }
}
