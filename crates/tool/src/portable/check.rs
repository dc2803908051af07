//! The subset of JSON Schema that all clients take.

use serde_json::{Map, Value};

use super::kind::have_bounds_without_values;
use crate::header_arguments::HEADER;

/// Keywords that are left in a portable schema. The last is part of MCP itself.
pub(super) const KEPT: [&str; 14] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    HEADER,
];
/// Bounds on arrays; apart from the others because they are the only ones for a kind of its own.
pub(super) const ARRAY_BOUNDS: [&str; 2] = ["minItems", "maxItems"];

/// Values in all lists of values of a schema; OpenAI refuses more.
pub(super) const MOST_VALUES: usize = 500;
/// A longer list of values may only have so many characters; OpenAI again.
const LONG_LIST: usize = 250;
const MOST_CHARACTERS: usize = 15_000;

/// Whether a list of values is refused by itself.
pub(super) fn is_too_long(texts: &[Value]) -> bool {
    let characters = || texts.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum::<usize>();
    texts.len() > LONG_LIST && characters() > MOST_CHARACTERS
}

/// Anthropic refuses other names of arguments.
pub(super) fn is_portable_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Whether nothing of a schema has another shape when it is listed, as far as a glance shows: most schemas are so, and
/// need not be rewritten to find out.
pub fn keeps_shape(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && keeps_shape_within(schema, MOST_NESTED, &mut { MOST_PARTS })
}

/// Well below what the rewriter cuts off.
const MOST_NESTED: usize = 8;
const MOST_PARTS: usize = MOST_VALUES;

fn keeps_shape_within(schema: &Value, depth: usize, parts: &mut usize) -> bool {
    let Value::Object(members) = schema else { return false };
    if depth == 0 || *parts == 0 {
        return false;
    }
    *parts -= 1;
    let mut kind = "";
    let (mut has_items, mut has_texts) = (false, false);
    let keeps = members.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("type", Value::String(name)) => {
            kind = name;
            TYPES.contains(&kind)
        }
        ("enum", Value::Array(texts)) => {
            has_texts = true;
            // Each value counts as a part, so that a schema with too many values is looked at closely.
            let has_room = *parts > texts.len();
            *parts = parts.saturating_sub(texts.len());
            has_room
                && !texts.is_empty()
                && !is_too_long(texts)
                && texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()))
        }
        ("properties", Value::Object(all)) => {
            all.iter().all(|(name, part)| is_portable_name(name) && keeps_shape_within(part, depth - 1, parts))
        }
        ("items", items) => {
            has_items = true;
            keeps_shape_within(items, depth - 1, parts)
        }
        ("required", Value::Array(names)) => {
            let declared = members.get("properties");
            names
                .iter()
                .all(|name| name.as_str().is_some_and(|name| declared.is_some_and(|all| all.get(name).is_some())))
        }
        ("title" | "description" | "default" | "examples", _) => true,
        ("minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems", _) => true,
        _ => false,
    });
    let has_members = || members.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    let is_empty = kind == "object" && depth < MOST_NESTED && !has_members();
    let can_be_given = !have_bounds_without_values(members, kind);
    keeps
        && can_be_given
        && !is_empty
        && !kind.is_empty()
        && has_items == (kind == "array")
        && (!has_texts || kind == "string")
}

const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// What some client refuses, each with its place. An empty list is a portable schema.
pub fn violations(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match schema.get("type").and_then(Value::as_str) {
        Some("object") if schema.get("properties").is_some_and(Value::is_object) => {}
        _ => found.push("the root is not an object with `properties`".to_owned()),
    }
    if schema.get("anyOf").is_some() {
        found.push("there are alternatives at the root".to_owned());
    }
    visit(schema, "", &mut found);
    let values = count_values(schema);
    if values > MOST_VALUES {
        found.push(format!("there are {values} values in `enum`, more than {MOST_VALUES}"));
    }
    found
}

fn count_values(schema: &Value) -> usize {
    let members = |keyword: &str| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
    let parts = members("properties").map(|(_, part)| part).chain(schema.get("items"));
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let own = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    own + parts.chain(branches).map(count_values).sum::<usize>()
}

fn visit(schema: &Value, place: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        found.push(format!("{place}: not an object"));
        return;
    };
    let mut wrong = |what: &str| found.push(format!("{place}: {what}"));
    for keyword in members.keys().filter(|key| !KEPT.contains(&key.as_str()) && !ARRAY_BOUNDS.contains(&key.as_str())) {
        wrong(&format!("keyword `{keyword}`"));
    }
    match (members.get("type"), members.get("anyOf")) {
        (Some(Value::String(kind)), None) if TYPES.contains(&kind.as_str()) => {}
        (None, Some(Value::Array(branches))) if !branches.is_empty() => {
            if members.len() > 1 {
                wrong("`anyOf` beside other keywords");
            }
        }
        // An output schema may leave open what a value is.
        (None, None) if !members.keys().any(|key| key != "description" && key != "title") => {}
        _ => wrong("no single type"),
    }
    if let Some(values) = members.get("enum") {
        let texts: Vec<&str> = values.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let all = values.as_array().map_or(0, Vec::len);
        let mut distinct = texts.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if texts.is_empty() || texts.len() != all || distinct.len() != all || texts.contains(&"") {
            wrong("`enum` of other things than distinct, non-empty strings");
        }
        if members.get("type").and_then(Value::as_str) != Some("string") {
            wrong("`enum` of something that is not a string");
        }
        if values.as_array().is_some_and(|texts| is_too_long(texts)) {
            wrong("`enum` with too much text");
        }
    }
    if members.get("type").and_then(Value::as_str) == Some("array") && !members.contains_key("items") {
        wrong("an array without `items`");
    }
    let has_members = members.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    if members.get("type").and_then(Value::as_str) == Some("object") && !has_members && !place.is_empty() {
        wrong("an object without members");
    }
    required(members, &mut wrong);
    let names = members.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
    names.filter(|name| !is_portable_name(name)).for_each(|name| wrong(&format!("the name `{name}`")));
    for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        visit(schema, &format!("{place}/properties/{name}"), found);
    }
    if let Some(items) = members.get("items") {
        visit(items, &format!("{place}/items"), found);
    }
    for (index, branch) in members.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate() {
        visit(branch, &format!("{place}/anyOf/{index}"), found);
    }
}

fn required(members: &Map<String, Value>, wrong: &mut impl FnMut(&str)) {
    let Some(required) = members.get("required") else { return };
    let properties = members.get("properties").and_then(Value::as_object);
    let is_known = |name: &Value| {
        name.as_str().is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
    };
    if !required.as_array().is_some_and(|names| !names.is_empty() && names.iter().all(is_known)) {
        wrong("`required` names what is no property");
    }
}
