//! Whether the arguments of a step are what a tool takes, as far as that shows before it is called.

use serde_json::{Map, Value, json};
use sinew_schema::{Meter, Rejection, Validator};
use sinew_steps::{SELECTOR_MEMBERS, check_selector};
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
            Some(schema) => misfits.extend(misfit(name, value, schema, input_schema)),
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

/// What is wrong with one argument: its value as a whole, or, as far as that is not known yet, its members.
fn misfit(name: &str, value: &Value, schema: &Value, input_schema: &Value) -> Option<String> {
    if is_selector(name, schema)
        && !is_reference(value)
        && let Err(problem) = check_selector(value)
    {
        return Some(format!("the argument `{name}`: {problem}"));
    }
    let invalid = if has_reference(value) { None } else { invalid_value(name, value, input_schema) };
    invalid.or_else(|| unknown_member(name, value, schema))
}

fn invalid_value(name: &str, value: &Value, input_schema: &Value) -> Option<String> {
    // A schema of this argument alone, in which references to other parts still lead somewhere.
    let parts = ["$schema", "$id", "$defs", "definitions", "properties"];
    let schema: Map<String, Value> =
        parts.iter().filter_map(|part| Some(((*part).to_owned(), input_schema.get(*part)?.clone()))).collect();
    let schema = Value::Object(schema);
    let validator = Validator::compile_readable(&schema, SCHEMA_ROOM).ok()?;
    match validator.check(&json!({name: value}), &mut Meter::new(CHECK_WORK)) {
        Err(Rejection::Failed(failure)) => {
            let (path, issue) = failure.explain(&schema, "the tool");
            Some(format!("the argument `{path}` {issue}"))
        }
        Ok(()) | Err(Rejection::Exhausted) => None,
    }
}

/// A member that the schema does not describe, where it describes one that was most likely meant.
fn unknown_member(path: &str, value: &Value, schema: &Value) -> Option<String> {
    let (members, properties) = (value.as_object()?, schema["properties"].as_object()?);
    members.iter().find_map(|(name, value)| match properties.get(name) {
        Some(schema) => unknown_member(&format!("{path}.{name}"), value, schema),
        None => {
            let meant = nearest(name, properties.keys().map(String::as_str))?;
            Some(format!("the argument `{path}` has no member `{name}`; did you mean `{meant}`?"))
        }
    })
}

/// Whether an argument describes an element of a screen, of which a schema for models lists the usual members only.
fn is_selector(name: &str, schema: &Value) -> bool {
    let described = schema["properties"].as_object().filter(|described| !described.is_empty());
    name == "selector"
        && described.is_some_and(|described| described.keys().all(|own| SELECTOR_MEMBERS.contains(&own.as_str())))
}

/// Whether nothing of the value is known yet.
fn is_reference(value: &Value) -> bool {
    value.is_string() && has_reference(value)
}

pub(crate) fn has_reference(value: &Value) -> bool {
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

    #[test]
    fn members_of_an_argument_are_compared_too_also_beside_references() {
        let schema = json!({
            "type": "object",
            "properties": {
                "selector": {"type": "object", "properties": {"text": {"type": "string"}, "id": {"type": "string"}}},
                "colour": {"$ref": "#/$defs/colour"},
                "lamp": {"type": "object", "properties": {"state": {"properties": {"brightness": {}}}}},
                "free": {"type": "object"},
            },
            "$defs": {"colour": {"enum": ["red", "green"]}},
        });
        let found = |arguments: Value| misfits(arguments.as_object().unwrap(), &schema);
        for fine in [
            json!({"selector": {"text": "${title}", "exact": true, "near": {"id": "row"}}}),
            json!({"selector": "${found}"}),
            json!({"colour": "red", "free": {"any": 1}, "lamp": {"state": {"brightness": "${b}", "effect": 3}}}),
        ] {
            assert_eq!(found(fine), [""; 0]);
        }
        for (wrong, part) in [
            (json!({"selector": {"txt": "Save"}}), "`txt`; did you mean `text`?"),
            (json!({"selector": {"txt": "${title}"}}), "`txt`; did you mean `text`?"),
            (json!({"selector": {"text": "Save", "near": {"idd": "row"}}}), "`idd`; did you mean `id`?"),
            (json!({"selector": {"colour": "red"}}), "`colour`"),
            (json!({"lamp": {"state": {"brigthness": "${b}"}}}), "`lamp.state` has no member `brigthness`"),
            (json!({"colour": "blue"}), "the argument `colour` must be"),
        ] {
            let found = found(wrong);
            assert!(matches!(&found[..], [only] if only.contains(part)), "{found:?}");
        }
    }
}
