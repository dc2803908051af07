//! Text for models in two schemas that accept the same values: descriptions and unknown keywords, also where no
//! comparison of values leads, such as inside a `not` or in alternatives that are written in another form now.

use serde_json::Value;

use super::keywords::is_assertion;
use super::plain::{holds_a_schema, holds_schemas_by_name};

/// Whether two schemas say different things. With references, a text may stand at several places or at one.
pub(super) fn differs(old: &Value, new: &Value, refers: bool) -> bool {
    let texts = |schema| {
        let mut found = Vec::new();
        collect(schema, &mut found);
        found.sort_unstable();
        if refers {
            found.dedup();
        }
        found
    };
    texts(old) != texts(new)
}

fn collect<'a>(schema: &'a Value, found: &mut Vec<(&'a str, String)>) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        match value {
            Value::Object(named) if holds_schemas_by_name(key) => {
                named.values().for_each(|schema| collect(schema, found));
            }
            Value::Array(items) if is_assertion(key) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(_) if holds_a_schema(key) => collect(value, found),
            // Generators write `null` for "no default".
            Value::Null if key == "default" => {}
            _ if is_assertion(key) || is_address(key) => {}
            _ => found.push((key, value.to_string())),
        }
    }
}

/// Keywords by which schemas are found.
fn is_address(key: &str) -> bool {
    matches!(key, "$schema" | "$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary")
}
