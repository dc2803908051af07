//! What a portable schema cannot say, in short sentences.

use serde_json::{Map, Value, json};

use super::branch::{Level, RestOfMembers, find, keys};
use super::kind::only_value;
use crate::references::{Holds, REFERENCES, place_of};

/// Characters of a quoted schema or list. Most fit: what is cut is a rule that nobody can read any more.
const LONGEST_QUOTE: usize = 4_000;
/// Bytes of a description inside a quoted schema; longer ones are left out.
const LONGEST_QUOTED_TEXT: usize = 200;

pub(super) const ANYTHING: &str = "Any JSON value.";
/// A form that is listed above, but where one of several is.
pub(super) const REPEATS_ANOTHER: &str = "Repeats a form above…";
pub(super) const DEEPER: &str = "What is nested deeper is not listed…";
pub(super) const ONLY_NULL: &str = "Only null.";
pub(super) const MAY_BE_NULL: &str = "May be null.";
pub(super) const ANY_NAME: &str = "A placeholder: give members by their own names instead.";
pub(super) const UNUSED: &str = "A placeholder: leave it out.";
pub(super) const LEFT_OUT: &str = "The rest is too long to list…";
/// A reference that leads out of the schema, or to nothing in it.
pub const ELSEWHERE: &str = "Refers to a schema elsewhere, whose rules are neither listed nor checked.";
pub(super) const EMPTY_TEXT: &str = "An empty string is valid too.";
pub(super) const NEVER: &str = "No arguments are valid.";

pub(super) fn value(value: &Value) -> String {
    shortened(value.to_string())
}

pub(super) fn values(values: &[Value]) -> String {
    shortened(values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
}

/// The values that are valid; where they are too many, how many there are and the first of them.
pub(super) fn one_of(values: &[Value]) -> String {
    let mut room = LONGEST_QUOTE;
    let takes = |text: &String| {
        let left = room.checked_sub(text.chars().count() + 2);
        room = left.unwrap_or_default();
        left.is_some()
    };
    let first: Vec<String> = values.iter().map(Value::to_string).take_while(takes).collect();
    match first.len() {
        all if all == values.len() => format!("One of: {}.", first.join(", ")),
        0 => format!("One of {} values, which are too long to list.", values.len()),
        some => {
            format!(
                "One of {} values, of which the first {some} are: {}. The others are valid too…",
                values.len(),
                first.join(", ")
            )
        }
    }
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_QUOTE) {
        text.truncate(end);
        text.push_str("… and more");
    }
    text
}

/// Cuts a sentence that is longer than `most`, with a mark.
pub(super) fn shorten(sentence: &mut String, most: usize) {
    if let Some((end, _)) = sentence.char_indices().nth(most) {
        sentence.truncate(end);
        sentence.push_str("… and more.");
    }
}

pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A schema as it was written, with its references written out.
pub(super) fn schema(root: &Value, schema: &Value) -> String {
    value(&Quote { root, trail: Vec::new(), room: LONGEST_QUOTE }.schema(schema))
}

/// Schemas by name.
fn named_schemas(root: &Value, all: &Value) -> String {
    value(&Quote { root, trail: Vec::new(), room: LONGEST_QUOTE }.names(all))
}

/// What stands beside a reference that leads back to a part above.
pub(super) fn beside(root: &Value, level: &Level) -> Vec<String> {
    let is_rule = |keyword: &String| !is_annotation(keyword) && !keyword.starts_with("x-");
    let rules = level.members.iter().filter(|(keyword, _)| is_rule(keyword));
    let rules: Map<String, Value> = rules.map(|(keyword, member)| (keyword.clone(), member.clone())).collect();
    let mut sentences = Vec::new();
    if !rules.is_empty() {
        sentences.push(format!("And: {}.", schema(root, &Value::Object(rules))));
    }
    sentences.extend(level.told.iter().map(|told| told.sentence.clone()));
    sentences.extend(level.rests.iter().map(|rest| rest_with_names(root, rest)));
    sentences
}

/// `Repeats the form of `tree.left[]`.`
pub(super) fn repeats(path: &str) -> String {
    let mut steps = path.split('/').skip(1);
    let mut shown = String::new();
    while let Some(keyword) = steps.next() {
        match keyword {
            "items" => shown.push_str("[]"),
            "properties" if shown.is_empty() => shown.push_str(steps.next().unwrap_or_default()),
            "properties" => shown.push_str(&format!(".{}", steps.next().unwrap_or_default())),
            other => shown.push_str(&format!(".{other}")),
        }
    }
    match shown.is_empty() {
        true => "Repeats the form of all arguments.".to_owned(),
        false => format!("Repeats the form of `{shown}`."),
    }
}

/// Keywords that are no rules.
fn is_annotation(keyword: &str) -> bool {
    let names = ["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions"];
    let texts = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];
    names.contains(&keyword) || texts.contains(&keyword)
}

/// Copies a schema for a quote, within bounds: references that are written out multiply.
struct Quote<'a> {
    root: &'a Value,
    /// The references that were followed to get here.
    trail: Vec<&'a str>,
    /// Characters that are left.
    room: usize,
}

impl<'a> Quote<'a> {
    fn takes(&mut self, characters: usize) -> bool {
        let left = self.room.checked_sub(characters);
        self.room = left.unwrap_or_default();
        left.is_some()
    }

    fn schema(&mut self, schema: &'a Value) -> Value {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(all) => return Value::Array(self.list(all)),
            other => return self.data(other),
        };
        if !self.takes(3) {
            return json!("…");
        }
        let mut copy = Map::new();
        let mut all_of = Vec::new();
        for (keyword, member) in members {
            match (keyword.as_str(), member) {
                (word, Value::String(target)) if REFERENCES.contains(&word) => {
                    let found = find(self.root, target).filter(|_| !self.trail.contains(&target.as_str()));
                    let Some(found) = found else { return json!("…") };
                    self.trail.push(target);
                    all_of.push(self.schema(found));
                    self.trail.pop();
                }
                ("allOf", Value::Array(parts)) => all_of.extend(self.list(parts)),
                // A long text must not take the room of a rule.
                ("description", Value::String(text)) if text.len() <= LONGEST_QUOTED_TEXT => {
                    copy.insert(keyword.clone(), self.data(member));
                }
                (word, _) if is_annotation(word) => {}
                _ if !self.takes(keyword.len() + 4) => return json!("…"),
                (word, _) => {
                    let quoted = match place_of(word) {
                        Holds::Data => self.data(member),
                        Holds::Names => self.names(member),
                        Holds::Schemas => self.schema(member),
                    };
                    copy.insert(keyword.clone(), quoted);
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

    fn list(&mut self, all: &'a [Value]) -> Vec<Value> {
        let mut copy = Vec::new();
        for one in all {
            if !self.takes(1) {
                copy.push(json!("…"));
                break;
            }
            copy.push(self.schema(one));
        }
        copy
    }

    fn names(&mut self, all: &'a Value) -> Value {
        let Value::Object(all) = all else { return self.schema(all) };
        let mut copy = Map::new();
        for (name, schema) in all {
            if !self.takes(name.len() + 4) {
                return json!("…");
            }
            copy.insert(name.clone(), self.schema(schema));
        }
        Value::Object(copy)
    }

    /// A value that is no schema.
    fn data(&mut self, value: &Value) -> Value {
        if self.takes_all(value) { value.clone() } else { json!("…") }
    }

    fn takes_all(&mut self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.takes(text.len() + 3),
            Value::Array(all) => self.takes(2) && all.iter().all(|one| self.takes_all(one)),
            Value::Object(all) => {
                self.takes(2) && all.iter().all(|(name, one)| self.takes(name.len() + 4) && self.takes_all(one))
            }
            _ => self.takes(3),
        }
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
        "minProperties" => format!("At least {}.", counted_members(member)),
        "maxProperties" => format!("At most {}.", counted_members(member)),
        "unevaluatedProperties" if *member == Value::Bool(false) => "No other members.".to_owned(),
        "unevaluatedProperties" if member.is_object() => format!("Further members, each: {}.", quoted()),
        "unevaluatedItems" if *member == Value::Bool(false) => "No further items.".to_owned(),
        "unevaluatedItems" if member.is_object() => format!("Further items, each: {}.", quoted()),
        "patternProperties" => format!("Members by name pattern: {}.", named_schemas(root, member)),
        "propertyNames" => format!("Names of members: {}.", quoted()),
        "dependentRequired" | "dependentSchemas" | "dependencies" => {
            format!("Members that need others: {}.", named_schemas(root, member))
        }
        "not" => format!("Not: {}.", quoted()),
        "anyOf" => format!("At least one of: {}.", quoted()),
        "oneOf" => format!("Exactly one of: {}.", quoted()),
        "examples" => format!("For example {}.", values(member.as_array()?)),
        _ => return None,
    })
}

/// `unevaluatedProperties` beside parts that may describe members too.
pub(super) fn undescribed(root: &Value, rule: &Value) -> Option<String> {
    match rule {
        Value::Bool(false) => Some("No members but those that a rule describes.".to_owned()),
        Value::Object(_) => Some(format!("Members that no other rule describes, each: {}.", schema(root, rule))),
        _ => None,
    }
}

fn counted_members(count: &Value) -> String {
    if *count == 1 { "1 member".to_owned() } else { format!("{count} members") }
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
        (false, _) => rest_with_names(root, rest),
    }
}

fn rest_with_names(root: &Value, rest: &RestOfMembers) -> String {
    match rest.is_closed() {
        true => format!("Only these members: {}.", known_names(rest)),
        false => format!("Members other than {}, each: {}.", known_names(rest), schema(root, &rest.rule)),
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
