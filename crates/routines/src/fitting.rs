//! Whether the arguments of a step are what a tool takes, as far as that shows before it is called.

use serde_json::{Map, Value};
use sinew_schema::{Meter, Rejection, Validator};
use sinew_tool::spelling::nearest;

use crate::routine::{CHECK_WORK, SCHEMA_ROOM};

/// What does not fit: names that the tool does not have, values of another form, and what is missing. Values with
/// references are known only later.
pub fn misfits(arguments: &Map<String, Value>, input_schema: &Value) -> Vec<String> {
    let no_properties = Map::new();
    let properties = input_schema["properties"].as_object().unwrap_or(&no_properties);
    let takes_others = properties.is_empty() && input_schema.get("additionalProperties") != Some(&Value::Bool(false));
    let mut misfits = Vec::new();
    for (name, value) in arguments {
        match properties.get(name) {
            None if takes_others => {}
            None => {
                let hint = nearest(name, properties.keys().map(String::as_str));
                let hint = hint.map_or_else(
                    || match properties.is_empty() {
                        true => "; it takes none".to_owned(),
                        false => format!("; it takes {}", properties.keys().cloned().collect::<Vec<_>>().join(", ")),
                    },
                    |name| format!("; did you mean `{name}`?"),
                );
                misfits.push(format!("the tool has no argument `{name}`{hint}"));
            }
            Some(_) if has_reference(value) => {}
            Some(schema) => misfits.extend(misfit(name, value, schema)),
        }
    }
    let required = input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    misfits.extend(
        required
            .filter(|name| !arguments.contains_key(*name))
            .map(|name| format!("the tool needs the argument `{name}`")),
    );
    misfits
}

fn misfit(name: &str, value: &Value, schema: &Value) -> Option<String> {
    // References within the whole schema cannot be followed from a part of it.
    if schema.to_string().contains("\"$ref\"") {
        return None;
    }
    let validator = Validator::compile_readable(schema, SCHEMA_ROOM).ok()?;
    match validator.check(value, &mut Meter::new(CHECK_WORK)) {
        Err(Rejection::Failed(failure)) => {
            let (path, issue) = failure.explain(schema, "the tool");
            let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
            Some(format!("the argument `{path}` {issue}"))
        }
        Ok(()) | Err(Rejection::Exhausted) => None,
    }
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(members) => members.values().any(has_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_values_and_what_is_missing_are_compared_with_the_tool() {
        let schema = json!({
            "type": "object",
            "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}, "room": {"type": "string"}},
            "required": ["volume"],
        });
        let found = |arguments: Value| misfits(arguments.as_object().unwrap(), &schema);
        assert_eq!(found(json!({"volume": 5, "room": "hall"})), [""; 0]);
        assert_eq!(found(json!({"volume": "${loud}"})), [""; 0]);
        assert_eq!(
            found(json!({"volum": 5})),
            ["the tool has no argument `volum`; did you mean `volume`?", "the tool needs the argument `volume`"]
        );
        assert_eq!(
            found(json!({"volume": "5"})),
            ["the argument `volume` must be an integer from 0 to 100, got the string \"5\""]
        );
        let free = json!({"type": "object"});
        assert_eq!(misfits(json!({"any": 1}).as_object().unwrap(), &free), [""; 0]);
    }
}
