//! Shapes inside schemas: arrays with items, objects with members, a description for every member, and
//! examples of the right type.

use serde_json::{Map, Value};

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification};
use crate::read::places::{FieldRow, SchemaSource};
use crate::read::table::Cell;
use crate::read::{prose, types};
use sinew_tool::finding::{Rule, Span};
use sinew_tool::text::clip;

/// Deeper than any schema that people write.
const MAX_DEPTH: usize = 12;
/// A finding names this many places and counts the rest.
const SHOWN: usize = 5;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let places = &tool.places;
    check_schema(reporter, &places.input, Some(&tool.input), places.section_heading(Section::Input));
    check_schema(reporter, &places.output, tool.output.as_deref(), places.section_heading(Section::Output));
    if reporter.is_markdown() {
        cells(reporter, &places.input);
        cells(reporter, &places.output);
    }
}

/// What is missing inside a schema, by JSON pointer.
#[derive(Default)]
struct MissingShapes {
    items: Vec<String>,
    members: Vec<String>,
    descriptions: Vec<String>,
    /// Schemas with an example or a default that they refuse.
    misfits: Vec<(String, Value)>,
}

fn check_schema(reporter: &mut Reporter<'_>, source: &SchemaSource, schema: Option<&Value>, near: Span) {
    // Only for written schemas: a cell of a table has no room for more.
    let Some(schema) = schema.filter(|_| source.schema.is_some()) else { return };
    let mut missing = MissingShapes::default();
    look(schema, &mut String::new(), 0, &mut missing);
    let tables: [(&'static Rule, &[String], &str); 3] = [
        (&rules::ARRAY_ITEMS, &missing.items, "has no `items`; describe the items of the array"),
        (&rules::OBJECT_MEMBERS, &missing.members, "has no `properties`; describe the members of the object"),
        (&rules::NESTED_DESCRIPTION, &missing.descriptions, "has no description"),
    ];
    for (rule, pointers, what) in tables {
        let Some(first) = pointers.first() else { continue };
        let shown: Vec<String> = pointers.iter().take(SHOWN).map(|pointer| format!("`{}`", clip(pointer))).collect();
        let more = if pointers.len() > SHOWN { format!(" and {} more", pointers.len() - SHOWN) } else { String::new() };
        let span = source.place(first).unwrap_or(near);
        reporter.report(rule, span, format!("{}{more} {what}", shown.join(", ")));
    }
    for (index, (pointer, value)) in missing.misfits.iter().take(SHOWN).enumerate() {
        let more = missing.misfits.len() - index - 1;
        let rest = if index + 1 == SHOWN && more > 0 { format!(", and so are {more} more") } else { String::new() };
        let message = format!(
            "the example or default {} of `{}` is refused by its own schema{rest}",
            clip(&value.to_string()),
            clip(pointer)
        );
        reporter.report(&rules::EXAMPLE_TYPE, source.place(pointer).unwrap_or(near), message);
    }
}

fn look(schema: &Value, pointer: &mut String, depth: usize, missing: &mut MissingShapes) {
    let Value::Object(members) = schema else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let has = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
    // What accepts everything describes nothing.
    let says = |key: &str| members.get(key).is_some_and(|part| !is_anything(part));
    let elsewhere = || has(&["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "if"]);
    let is = |kind: &str| match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        own => own.is_some_and(|own| own == kind),
    };
    if is("array") && !["items", "prefixItems", "contains"].into_iter().any(says) && !elsewhere() {
        missing.items.push(pointer.clone());
    }
    let is_shaped = has(&["patternProperties", "propertyNames", "maxProperties"])
        || says("additionalProperties")
        || members.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty());
    if is("object") && depth > 0 && !is_shaped && !elsewhere() {
        missing.members.push(pointer.clone());
    }
    if let Some(wrong) = given_values(members).find(|value| !fits(schema, value)) {
        missing.misfits.push((pointer.clone(), wrong.clone()));
    }
    let below = |steps: [&str; 2], part: &Value, pointer: &mut String, missing: &mut MissingShapes| {
        let length = pointer.len();
        for step in steps.into_iter().filter(|step| !step.is_empty()) {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        look(part, pointer, depth + 1, missing);
        pointer.truncate(length);
    };
    for key in ["properties", "$defs", "definitions"] {
        for (name, member) in members.get(key).and_then(Value::as_object).into_iter().flatten() {
            // The first level has rules of its own, and a definition is described where it is used.
            if depth > 0 && key == "properties" && !is_described(member) {
                missing.descriptions.push(format!("{pointer}/{key}/{}", name.replace('~', "~0").replace('/', "~1")));
            }
            below([key, name], member, pointer, missing);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = members.get(key) {
            below([key, ""], part, pointer, missing);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for (index, part) in members.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            below([key, &index.to_string()], part, pointer, missing);
        }
    }
}

fn is_anything(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(serde_json::Map::is_empty)
}

fn is_described(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    super::schemas::described(schema) || members.contains_key("const")
}

/// The values that a schema gives as examples of itself.
fn given_values(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let listed = members.get("examples").and_then(Value::as_array).into_iter().flatten();
    // Generators write `null` for "no default".
    let default = members.get("default").filter(|value| !value.is_null());
    listed.chain(members.get("example")).chain(default)
}

/// Whether a value has the type that a schema states, and is one of its choices, as far as can be seen at once.
fn fits(schema: &Value, value: &Value) -> bool {
    if schema.get("enum").and_then(Value::as_array).is_some_and(|choices| !choices.contains(value)) {
        return false;
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return branches.iter().any(|branch| fits(branch, value));
    }
    let has_type = match schema.get("type") {
        Some(Value::String(kind)) => has_kind(kind, value),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(|kind| has_kind(kind, value)),
        _ => true,
    };
    let items = schema.get("items").filter(|items| items.is_object());
    let are_items_fit = match (items, value) {
        (Some(items), Value::Array(values)) => values.iter().all(|value| fits(items, value)),
        _ => true,
    };
    has_type && are_items_fit
}

fn has_kind(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        ("string", Value::String(_)) | ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => true,
        ("null", Value::Null) | ("array", Value::Array(_)) | ("object", Value::Object(_)) => true,
        // What is no type has a rule of its own.
        ("string" | "integer" | "number" | "boolean" | "null" | "array" | "object", _) => false,
        _ => true,
    }
}

/// Example cells that are not values of the type beside them.
fn cells(reporter: &mut Reporter<'_>, source: &SchemaSource) {
    for row in source.table.iter().flat_map(|table| &table.rows) {
        if let Some((cell, expected)) = wrong_example(row) {
            let message =
                format!("the example {} of `{}` does not have the type {expected}", clip(&cell.text), clip(&row.name));
            reporter.report(&rules::EXAMPLE_TYPE, cell.span, message);
        }
    }
}

fn wrong_example(row: &FieldRow) -> Option<(&Cell, String)> {
    let kind = row.kind.as_ref()?;
    let cell = row.example.as_ref()?;
    let said = cell.said()?;
    let schema = types::read(&kind.text)?.schema;
    schema.get("type").or_else(|| schema.get("enum")).or_else(|| schema.get("anyOf"))?;
    // Only a cell with a single value is checked: in code, or JSON by itself; "`a` or `b`" is a sentence.
    let code = prose::uncode(said);
    let raw = code.unwrap_or(said).trim();
    let is_word = |raw: &str| raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let word = Value::String(raw.to_owned());
    let value: Value = match (serde_json::from_str(raw), raw) {
        // A number in a cell for text is text.
        (Ok(Value::Number(_)), _) if fits(&schema, &word) => word,
        (Ok(value), _) => value,
        (Err(_), "True" | "False") => Value::Bool(true),
        (Err(_), "None") => Value::Null,
        // `[...]` and `{…}` are abbreviations.
        (Err(_), _) if raw.starts_with(['[', '{']) && (raw.contains("...") || raw.contains('…')) => return None,
        (Err(_), _) if code.is_some() || is_word(raw) => word,
        (Err(_), _) => return None,
    };
    (!fits(&schema, &value)).then(|| (cell, types::write(&schema)))
}

const NEGATIONS: &[&str] = &["not", "never", "without", "no"];

/// Whether two descriptions of one thing contradict each other: different numbers, one of them negated, or
/// hardly a word in common.
pub(super) fn contradict(one: &str, two: &str) -> bool {
    if one == two {
        return false;
    }
    let words = |text: &str| -> Map<String, Value> {
        let plain = text.replace(['`', '*', '_'], " ").to_lowercase();
        plain
            .split(|c: char| !c.is_alphanumeric() && c != '.')
            .map(|word| word.trim_matches('.').trim_end_matches('s').to_owned())
            .filter(|word| {
                word.len() > 3 || NEGATIONS.contains(&word.as_str()) || word.bytes().any(|byte| byte.is_ascii_digit())
            })
            .map(|word| (word, Value::Null))
            .collect()
    };
    let (first, second) = (words(one), words(two));
    if first.len() < 3 || second.len() < 3 {
        return false;
    }
    let numbers = |words: &Map<String, Value>| -> Vec<String> {
        words.keys().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')).cloned().collect()
    };
    let (left, right) = (numbers(&first), numbers(&second));
    let other_numbers = !left.is_empty() && !right.is_empty() && left.iter().all(|number| !right.contains(number));
    let negated = |words: &Map<String, Value>| NEGATIONS.iter().any(|word| words.contains_key(*word));
    let shared = first.keys().filter(|word| second.contains_key(*word)).count();
    let fewer = first.len().min(second.len());
    other_numbers || shared * 5 < fewer || shared * 2 >= fewer && negated(&first) != negated(&second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_contradict_by_numbers_negation_or_subject() {
        for (one, two) in [
            ("How many lines to return, 1 to 100.", "How many lines to return, 5 to 500."),
            ("Whether hidden files are listed.", "Whether hidden files are not listed."),
            ("The path of the file to read.", "Colour that lamps should show."),
        ] {
            assert!(contradict(one, two), "{one} / {two}");
        }
        for (one, two) in [
            ("The path of the file to read.", "Path to the file which is read."),
            ("Optional maximum number of lines to process.", "Maximum number of lines."),
            ("The user.", "Who it is."),
        ] {
            assert!(!contradict(one, two), "{one} / {two}");
        }
    }
}
