//! What a portable schema cannot say, in short sentences.

use serde_json::{Map, Value, json};

use super::branch::Level;

/// Longer values would fill a description.
const LONGEST_VALUE: usize = 120;
const MOST_VALUES: usize = 24;

pub(super) fn value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

pub(super) fn values(values: &[Value]) -> String {
    let mut all: Vec<String> = values.iter().take(MOST_VALUES).map(value).collect();
    if values.len() > MOST_VALUES {
        all.push("…".to_owned());
    }
    all.join(", ")
}

pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What a keyword means that is not kept; `None` where it means nothing to a caller.
pub(super) fn keyword(keyword: &str, member: &Value) -> Option<String> {
    let text = value(member);
    Some(match keyword {
        "format" => format!("Format: {}.", member.as_str()?),
        "pattern" => format!("Pattern: {}.", member.as_str()?),
        "multipleOf" => format!("A multiple of {text}."),
        "exclusiveMinimum" => format!("Greater than {text}."),
        "exclusiveMaximum" => format!("Less than {text}."),
        "uniqueItems" if *member == Value::Bool(true) => "No item twice.".to_owned(),
        "minProperties" => format!("At least {text} members."),
        "maxProperties" => format!("At most {text} members."),
        "additionalProperties" | "unevaluatedProperties" if *member == Value::Bool(false) => {
            "No other members.".to_owned()
        }
        "additionalProperties" | "unevaluatedProperties" if member.is_object() => {
            format!("Further members, each: {text}.")
        }
        "patternProperties" => format!("Members by name pattern: {text}."),
        "propertyNames" => format!("Names of members: {text}."),
        "dependentRequired" | "dependentSchemas" | "dependencies" => format!("Members that need others: {text}."),
        "if" => format!("If {text}, more rules hold."),
        "then" => format!("Then: {text}."),
        "else" => format!("Else: {text}."),
        "not" => format!("Not: {text}."),
        "contains" => format!("Some item is: {text}."),
        "minContains" => format!("At least {text} such items."),
        "maxContains" => format!("At most {text} such items."),
        "prefixItems" => format!("The first items, in order: {text}."),
        "unevaluatedItems" | "additionalItems" if *member == Value::Bool(false) => "No further items.".to_owned(),
        "examples" => format!("For example {}.", values(member.as_array()?)),
        _ => return None,
    })
}

/// What a form at the root asks for: its required members, with their value where only one is possible.
pub(super) fn form(level: &Level) -> String {
    let required = level.members.get("required").and_then(Value::as_array);
    let properties = level.members.get("properties").and_then(Value::as_object);
    let only_value = |name: &str| properties?.get(name)?.get("const").map(value);
    let parts: Vec<String> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| match only_value(name) {
            Some(value) => format!("`{name}` = {value}"),
            None => format!("`{name}`"),
        })
        .collect();
    match (parts.is_empty(), properties) {
        (false, _) => parts.join(" with "),
        (true, Some(properties)) if !properties.is_empty() => {
            format!("any of {}", names(properties.keys().map(String::as_str)))
        }
        _ => "nothing in particular".to_owned(),
    }
}

/// Several lists of texts are one list.
pub(super) fn joined_texts(parts: &[Value]) -> Option<Value> {
    let mut texts: Vec<Value> = Vec::new();
    for part in parts {
        let is_plain =
            part.as_object()?.keys().all(|key| matches!(key.as_str(), "type" | "enum" | "description" | "title"));
        for text in part.get("enum")?.as_array().filter(|_| is_plain)? {
            if !texts.contains(text) {
                texts.push(text.clone());
            }
        }
    }
    let mut joined = Map::from_iter([("type".to_owned(), json!("string")), ("enum".to_owned(), Value::Array(texts))]);
    let mut said: Vec<&str> = Vec::new();
    for part in parts {
        let text = part.get("description").and_then(Value::as_str).filter(|text| !said.contains(text));
        said.extend(text);
    }
    if !said.is_empty() {
        joined.insert("description".to_owned(), json!(said.join(" ")));
    }
    Some(Value::Object(joined))
}

/// Adds the title, the description and the sentences.
pub(super) fn described(mut members: Map<String, Value>, level: &Level, sentences: &[String]) -> Value {
    if let Some(title @ Value::String(_)) = level.members.get("title") {
        members.insert("title".to_owned(), title.clone());
    }
    if let Some(description @ Value::String(_)) = level.members.get("description") {
        members.insert("description".to_owned(), description.clone());
    }
    let mut schema = Value::Object(members);
    sentences.iter().for_each(|sentence| say(&mut schema, sentence));
    schema
}

/// Adds a sentence to a description.
pub(super) fn say(schema: &mut Value, sentence: &str) {
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if text.contains(sentence) => return,
        Some(text) if !text.trim().is_empty() => format!("{} {sentence}", text.trim_end()),
        _ => sentence.to_owned(),
    };
    schema["description"] = json!(text);
}
