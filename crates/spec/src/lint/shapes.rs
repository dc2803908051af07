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
}

fn look(schema: &Value, pointer: &mut String, depth: usize, missing: &mut MissingShapes) {
    let Value::Object(members) = schema else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let has = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
    let elsewhere = || has(&["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "if"]);
    let is = |kind: &str| members.get("type").is_some_and(|own| own == kind);
    if is("array") && !has(&["items", "prefixItems", "contains"]) && !elsewhere() {
        missing.items.push(pointer.clone());
    }
    let shaped = ["properties", "patternProperties", "additionalProperties", "propertyNames", "maxProperties"];
    if is("object") && depth > 0 && !has(&shaped) && !elsewhere() {
        missing.members.push(pointer.clone());
    }
    let length = pointer.len();
    for (name, member) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        pointer.push_str("/properties/");
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        // The first level has rules of its own.
        if depth > 0 && !is_described(member) {
            missing.descriptions.push(pointer.clone());
        }
        look(member, pointer, depth + 1, missing);
        pointer.truncate(length);
    }
    if let Some(items) = members.get("items").filter(|items| items.is_object()) {
        pointer.push_str("/items");
        look(items, pointer, depth + 1, missing);
        pointer.truncate(length);
    }
}

fn is_described(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    members.contains_key("description") || members.contains_key("$ref") || members.contains_key("const")
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
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    // Only a cell with a single value is checked: in code, or JSON by itself; "`a` or `b`" is a sentence.
    let code = prose::uncode(said);
    let raw = code.unwrap_or(said).trim();
    let is_word = |raw: &str| raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let value: Value = match (serde_json::from_str(raw), raw) {
        (Ok(value), _) => value,
        (Err(_), "True" | "False") => Value::Bool(true),
        (Err(_), "None") => Value::Null,
        (Err(_), _) if code.is_some() || is_word(raw) => Value::String(raw.to_owned()),
        (Err(_), _) => return None,
    };
    // A bare word in code is a string, and so is a number where the type is string.
    let fits = types.iter().any(|name| match (*name, &value) {
        ("string", Value::String(_) | Value::Number(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("null", Value::Null) => true,
        ("array", Value::Array(_)) | ("object", Value::Object(_)) => true,
        // `[...]` and `{…}` are abbreviations.
        ("array" | "object", Value::String(text)) => text.contains("...") || text.contains('…'),
        _ => false,
    });
    (!fits).then(|| (cell, types.join(" or ")))
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
