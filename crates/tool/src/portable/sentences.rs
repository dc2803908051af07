//! What a portable schema cannot say, in short sentences.

use serde_json::{Map, Value, json};

use super::branch::{Level, RestOfMembers, find, keys};
use super::kind::only_value;

/// A quoted schema or list costs no more than it did in the device's own schema, but a description must stay readable.
const LONGEST_QUOTE: usize = 500;
/// Parts of a quoted schema: references that are written out multiply.
const MOST_QUOTED: usize = 100;

pub(super) const ANYTHING: &str = "Any JSON value.";
pub(super) const NESTED: &str = "Nested in the same way as its parent.";
pub(super) const ONLY_NULL: &str = "Only null.";
pub(super) const MAY_BE_NULL: &str = "May be null.";
pub(super) const ANY_NAME: &str = "For members of any name.";
pub(super) const UNUSED: &str = "Takes no members: leave this one out.";
pub(super) const LEFT_OUT: &str = "The rest is too long to list…";
pub(super) const NEVER: &str = "No arguments are valid.";

pub(super) fn value(value: &Value) -> String {
    shortened(value.to_string())
}

pub(super) fn values(values: &[Value]) -> String {
    shortened(values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}… and more", &text[..end]),
        None => text,
    }
}

pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A schema as it was written, with its references written out.
pub(super) fn schema(root: &Value, schema: &Value) -> String {
    let mut room = MOST_QUOTED;
    value(&spelled_out(root, schema, &mut Vec::new(), &mut room))
}

fn spelled_out<'a>(root: &'a Value, schema: &'a Value, trail: &mut Vec<&'a str>, room: &mut usize) -> Value {
    let Some(left) = room.checked_sub(1) else { return json!("…") };
    *room = left;
    match schema {
        Value::Array(all) => all.iter().map(|one| spelled_out(root, one, trail, room)).collect(),
        Value::Object(members) => {
            let mut copy = Map::new();
            let mut all_of = Vec::new();
            for (keyword, member) in members {
                match (keyword.as_str(), member) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                        let found = find(root, target).filter(|_| !trail.contains(&target.as_str()));
                        let Some(found) = found else { return json!("…") };
                        trail.push(target);
                        all_of.push(spelled_out(root, found, trail, room));
                        trail.pop();
                    }
                    ("allOf", Value::Array(parts)) => {
                        all_of.extend(parts.iter().map(|part| spelled_out(root, part, trail, room)));
                    }
                    ("$schema" | "$id" | "$comment" | "$defs" | "definitions", _) => {}
                    ("enum" | "const" | "default" | "examples", _) => {
                        copy.insert(keyword.clone(), member.clone());
                    }
                    _ => {
                        copy.insert(keyword.clone(), spelled_out(root, member, trail, room));
                    }
                }
            }
            match (copy.is_empty(), all_of.len()) {
                (true, 1) => return all_of.swap_remove(0),
                (_, 0) => {}
                _ => {
                    copy.insert("allOf".to_owned(), Value::Array(all_of));
                }
            }
            Value::Object(copy)
        }
        other => other.clone(),
    }
}

/// What a keyword means that is not kept; `None` where it means nothing to a caller.
pub(super) fn keyword(root: &Value, keyword: &str, member: &Value) -> Option<String> {
    let quoted = || schema(root, member);
    Some(match keyword {
        "format" => format!("Format: {}.", member.as_str()?),
        "pattern" => format!("Pattern: `{}`.", member.as_str()?),
        "contentEncoding" => format!("Encoding: {}.", member.as_str()?),
        "contentMediaType" => format!("Media type: {}.", member.as_str()?),
        "multipleOf" => format!("A multiple of {member}."),
        "exclusiveMinimum" if member.is_number() => format!("Greater than {member}."),
        "exclusiveMaximum" if member.is_number() => format!("Less than {member}."),
        "uniqueItems" => "No item twice.".to_owned(),
        "minProperties" => format!("At least {member} members."),
        "maxProperties" => format!("At most {member} members."),
        "unevaluatedProperties" if *member == Value::Bool(false) => "No other members.".to_owned(),
        "unevaluatedProperties" if member.is_object() => format!("Further members, each: {}.", quoted()),
        "unevaluatedItems" if *member == Value::Bool(false) => "No further items.".to_owned(),
        "unevaluatedItems" if member.is_object() => format!("Further items, each: {}.", quoted()),
        "patternProperties" => format!("Members by name pattern: {}.", quoted()),
        "propertyNames" => format!("Names of members: {}.", quoted()),
        "dependentRequired" | "dependentSchemas" | "dependencies" => format!("Members that need others: {}.", quoted()),
        "not" => format!("Not: {}.", quoted()),
        "anyOf" => format!("At least one of: {}.", quoted()),
        "oneOf" => format!("Exactly one of: {}.", quoted()),
        "examples" => format!("For example {}.", values(member.as_array()?)),
        _ => return None,
    })
}

/// `if` with its `then` and `else`.
pub(super) fn condition(root: &Value, part: &Map<String, Value>) -> Option<String> {
    let quoted = |keyword: &str| part.get(keyword).map(|member| schema(root, member));
    let condition = quoted("if")?;
    match (quoted("then"), quoted("else")) {
        (None, None) => None,
        (Some(then), None) => Some(format!("If {condition} then {then}.")),
        (then, Some(other)) => {
            Some(format!("If {condition} then {} else {other}.", then.unwrap_or_else(|| "true".to_owned())))
        }
    }
}

/// `contains` with its counts.
pub(super) fn contained(root: &Value, part: &Map<String, Value>) -> Option<String> {
    let contained = schema(root, part.get("contains")?);
    let least = part.get("minContains").and_then(Value::as_f64).unwrap_or(1.0);
    let most = part.get("maxContains").and_then(Value::as_f64);
    match (least > 0.0, most) {
        (false, None) => None,
        (_, Some(most)) => Some(format!("Between {least} and {most} items are: {contained}.")),
        (true, None) => Some(format!("At least {least} items are: {contained}.")),
    }
}

/// What holds for the first items of an array, and for those after them.
pub(super) fn tuple(root: &Value, part: &Map<String, Value>) -> Option<String> {
    let (first, further) = match part.get("items") {
        Some(first @ Value::Array(_)) => (first, part.get("additionalItems")),
        further => (part.get("prefixItems")?, further),
    };
    let first = format!("The first items, in order: {}.", schema(root, first));
    Some(match further {
        None | Some(Value::Bool(true)) => first,
        Some(Value::Bool(false)) => format!("{first} No further items."),
        Some(further) => format!("{first} Further items, each: {}.", schema(root, further)),
    })
}

/// What holds for members that a part of the level does not name.
pub(super) fn rest(root: &Value, rest: &RestOfMembers, level: &Level) -> String {
    let has_all = |own: &[String], of_level: Vec<String>| of_level.iter().all(|one| own.contains(one));
    let patterns = keys(level.members.get("patternProperties"));
    // A member that is listed because it is required is not one that the part names.
    let required = level.required().into_iter().filter(|_| rest.is_closed()).map(str::to_owned);
    let listed = level.property_names().into_iter().chain(required).collect();
    let is_about_all = has_all(&rest.names, listed) && has_all(&rest.patterns, patterns);
    match (is_about_all, rest.is_closed()) {
        (true, true) => "No other members.".to_owned(),
        (true, false) => format!("Further members, each: {}.", schema(root, &rest.rule)),
        (false, true) => format!("Only these members: {}.", known_names(rest)),
        (false, false) => format!("Members other than {}, each: {}.", known_names(rest), schema(root, &rest.rule)),
    }
}

fn known_names(rest: &RestOfMembers) -> String {
    let known = names(rest.names.iter().map(String::as_str));
    let patterns = names(rest.patterns.iter().map(String::as_str));
    match (known.is_empty(), patterns.is_empty()) {
        (true, true) => "none".to_owned(),
        (false, true) => known,
        (true, false) => format!("names like {patterns}"),
        (false, false) => format!("{known} and names like {patterns}"),
    }
}

/// What a form at the root needs: its required members, with their value where only one is possible, and the only
/// members it takes.
pub(super) fn form(root: &Value, level: &Level) -> String {
    let only = |name: &str| only_value(&Level::read(root, level.property_map()?.get(name)?, &[]));
    let parts: Vec<String> = level
        .required()
        .into_iter()
        .map(|name| match only(name) {
            Some(only) => format!("`{name}` = {}", value(&only)),
            None => format!("`{name}`"),
        })
        .collect();
    let needed = if parts.is_empty() { "nothing needed".to_owned() } else { parts.join(" with ") };
    match level.rests.iter().find(|rest| rest.is_closed()) {
        Some(rest) => format!("{needed}, only {}", names(rest.names.iter().map(String::as_str))),
        None => needed,
    }
}

/// Adds the title, the description and the sentences.
pub(super) fn described(mut members: Map<String, Value>, level: &Level, sentences: &[String]) -> Value {
    for text in ["title", "description"] {
        if let Some(text_member @ Value::String(_)) = level.members.get(text) {
            members.insert(text.to_owned(), text_member.clone());
        }
    }
    let mut schema = Value::Object(members);
    sentences.iter().for_each(|sentence| say(&mut schema, sentence));
    schema
}

/// Adds a sentence to a description, unless it is there.
pub(super) fn say(schema: &mut Value, sentence: &str) {
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if format!("{text} ").contains(&format!("{sentence} ")) => return,
        Some(text) if !text.trim().is_empty() => format!("{} {sentence}", text.trim_end()),
        _ => sentence.to_owned(),
    };
    schema["description"] = json!(text);
}
