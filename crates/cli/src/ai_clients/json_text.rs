//! Entries in JSON with comments. The parser says where things stand; the text around them stays as it is.

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};
use serde_json::{Map, Number, Value};

use super::edit::EditProblem;

/// Where nothing shows how the file is indented.
const UNIT: &str = "  ";

pub(super) fn read(text: &str) -> Result<Value, EditProblem> {
    match parse(text)?.value {
        Some(node @ Node::Object(_)) => Ok(to_value(&node)),
        Some(node) => Err(EditProblem::at(text, node.range().start, "expected `{`: the file must be an object")),
        None => Ok(Value::Object(Map::new())),
    }
}

fn parse(text: &str) -> Result<ParseResult<'_>, EditProblem> {
    // What clients read: strict JSON, with comments and a comma before a closing bracket.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions { tokens: true, ..CollectOptions::default() };
    parse_to_ast(text, &collect, &options).map_err(|error| EditProblem {
        line: Some(error.line_display()),
        message: format!("this is not JSON: {}", error.kind()),
    })
}

fn to_value(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(text) => Value::String(text.value.clone().into_owned()),
        // A number that JSON cannot hold is compared by its digits.
        Node::NumberLit(number) => {
            number.value.parse::<Number>().map_or_else(|_| Value::String(number.value.to_owned()), Value::Number)
        }
        Node::BooleanLit(value) => Value::Bool(value.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => Value::Array(array.elements.iter().map(to_value).collect()),
        Node::Object(object) => Value::Object(
            object.properties.iter().map(|prop| (prop.name.as_str().to_owned(), to_value(&prop.value))).collect(),
        ),
    }
}

pub(super) fn edit(text: &str, servers: &str, name: &str, wanted: Option<&Value>) -> Result<String, EditProblem> {
    let parsed = parse(text)?;
    let Some(Node::Object(root)) = &parsed.value else { return Ok(with_new_root(text, servers, name, wanted)) };
    let commas: Vec<Range> =
        parsed.tokens.iter().flatten().filter(|token| is_comma(token)).map(|token| token.range).collect();
    let layout = Layout { text, commas: &commas, unit: unit(text, root) };
    let holder = only(text, root, servers)?;
    let edits = match (holder.map(|holder| (holder, &holder.value)), wanted) {
        (None, Some(wanted)) => {
            let entries = Value::Object(Map::from_iter([(name.to_owned(), wanted.clone())]));
            layout.append(root, servers, &entries)
        }
        (Some((_, Node::Object(entries))), wanted) => match (only(text, entries, name)?, wanted) {
            (None, Some(wanted)) => layout.append(entries, name, wanted),
            (Some(old), Some(wanted)) => layout.change(old, wanted),
            (Some(old), None) => layout.remove(entries, old),
            (None, None) => Vec::new(),
        },
        (Some((holder, _)), Some(wanted)) => {
            let entries = Value::Object(Map::from_iter([(name.to_owned(), wanted.clone())]));
            layout.change(holder, &entries)
        }
        (_, None) => Vec::new(),
    };
    Ok(apply(text, edits))
}

fn is_comma(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::Comma)
}

fn with_new_root(text: &str, servers: &str, name: &str, wanted: Option<&Value>) -> String {
    let Some(wanted) = wanted else { return text.to_owned() };
    let entries = Value::Object(Map::from_iter([(name.to_owned(), wanted.clone())]));
    let root = Value::Object(Map::from_iter([(servers.to_owned(), entries)]));
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{gap}{}\n", pretty(&root, "", UNIT))
}

/// The member of this name. One that stands twice is refused: clients differ in which of them they read.
fn only<'a, 'b>(text: &str, object: &'b Object<'a>, name: &str) -> Result<Option<&'b ObjectProp<'a>>, EditProblem> {
    let mut found = object.properties.iter().filter(|prop| prop.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some(second) => Err(EditProblem::at(text, second.range.start, format!("`{name}` stands twice; remove one"))),
        None => Ok(first),
    }
}

/// The indentation of the first member.
fn unit(text: &str, root: &Object<'_>) -> String {
    let first = root.properties.first().and_then(|prop| indentation(text, prop.range.start));
    first.filter(|unit| !unit.is_empty()).unwrap_or(UNIT).to_owned()
}

/// The white space between the start of a line and a position, if nothing else is there.
fn indentation(text: &str, position: usize) -> Option<&str> {
    let start = text[..position].rfind('\n').map(|line_end| line_end + 1)?;
    Some(&text[start..position]).filter(|between| between.bytes().all(|byte| matches!(byte, b' ' | b'\t')))
}

/// The white space at the start of the line of a position.
fn line_indentation(text: &str, position: usize) -> &str {
    let start = text[..position].rfind('\n').map_or(0, |line_end| line_end + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

type Edit = (Range, String);

fn insertion(position: usize, text: impl Into<String>) -> Edit {
    (Range::new(position, position), text.into())
}

fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range.start..range.end, &new);
    }
    text
}

struct Layout<'a> {
    text: &'a str,
    commas: &'a [Range],
    unit: String,
}

impl Layout<'_> {
    /// Adds a member behind the others.
    fn append(&self, object: &Object<'_>, name: &str, value: &Value) -> Vec<Edit> {
        let Some(last) = object.properties.last() else { return self.fill(object, name, value) };
        let comma = self.comma_between(last.range.end, object.range.end);
        let first = &object.properties[0];
        let Some(indent) = indentation(self.text, first.range.start) else {
            // All on one line.
            let member = format!("{}: {value}", Value::String(name.to_owned()));
            return match comma {
                Some(comma) => vec![insertion(comma.end, format!(" {member},"))],
                None => vec![insertion(last.range.end, format!(", {member}"))],
            };
        };
        let member = format!("\n{indent}{}", self.member(name, value, indent));
        let line_end = self.line_end(comma.map_or(last.range.end, |comma| comma.end.max(last.range.end)));
        match comma {
            Some(_) => vec![insertion(line_end, format!("{member},"))],
            None => match line_end == last.range.end {
                true => vec![insertion(line_end, format!(",{member}"))],
                false => vec![insertion(last.range.end, ","), insertion(line_end, member)],
            },
        }
    }

    /// Adds the first member.
    fn fill(&self, object: &Object<'_>, name: &str, value: &Value) -> Vec<Edit> {
        let Range { start, end } = object.range;
        let (inner_start, inner_end) = (start + 1, end - 1);
        let inner = &self.text[inner_start..inner_end];
        let at = inner_start + inner.trim_end().len();
        let outer = line_indentation(self.text, start);
        let indent = format!("{outer}{}", self.unit);
        let close = if self.text[at..inner_end].contains('\n') { String::new() } else { format!("\n{outer}") };
        vec![insertion(at, format!("\n{indent}{}{close}", self.member(name, value, &indent)))]
    }

    fn member(&self, name: &str, value: &Value, indent: &str) -> String {
        format!("{}: {}", Value::String(name.to_owned()), pretty(value, indent, &self.unit))
    }

    /// Gives a member another value, and leaves those of its members alone that are as wanted.
    fn change(&self, prop: &ObjectProp<'_>, wanted: &Value) -> Vec<Edit> {
        let (Node::Object(object), Some(members)) = (&prop.value, wanted.as_object()) else {
            let range = Range::new(prop.value.range().start, prop.value.range().end);
            let new = match indentation(self.text, prop.range.start) {
                Some(indent) => pretty(wanted, indent, &self.unit),
                None => wanted.to_string(),
            };
            return vec![(range, new)];
        };
        let is_gone = |prop: &&ObjectProp<'_>| !members.contains_key(prop.name.as_str());
        let new: Vec<_> = members.iter().filter(|(name, _)| object.get(name).is_none()).collect();
        let has_one_change = new.len() + object.properties.iter().filter(is_gone).count() <= 1;
        let twice = object
            .properties
            .iter()
            .any(|prop| object.properties.iter().filter(|other| other.name.as_str() == prop.name.as_str()).count() > 1);
        if !has_one_change || twice || object.properties.is_empty() {
            // Edits that touch each other: the whole object anew.
            let indent = indentation(self.text, prop.range.start);
            let range = Range::new(object.range.start, object.range.end);
            return vec![(
                range,
                indent.map_or_else(|| wanted.to_string(), |indent| pretty(wanted, indent, &self.unit)),
            )];
        }
        let mut edits = Vec::new();
        for prop in &object.properties {
            match members.get(prop.name.as_str()) {
                Some(value) if *value == to_value(&prop.value) => {}
                Some(value) => edits.extend(self.change(prop, value)),
                None => edits.extend(self.remove(object, prop)),
            }
        }
        edits.extend(new.into_iter().flat_map(|(name, value)| self.append(object, name, value)));
        edits
    }

    /// Removes a member with its comma, and with its lines where nothing else is in them.
    fn remove(&self, object: &Object<'_>, prop: &ObjectProp<'_>) -> Vec<Edit> {
        let index =
            object.properties.iter().position(|other| other.range.start == prop.range.start).unwrap_or_default();
        let next = object.properties.get(index + 1).map_or(object.range.end, |next| next.range.start);
        let own_comma = self.comma_between(prop.range.end, next);
        let mut edits = Vec::new();
        let (mut start, mut end) = (prop.range.start, prop.range.end);
        match own_comma {
            Some(comma) if self.text[end..comma.start].trim().is_empty() => end = comma.end,
            Some(comma) => edits.push((comma, String::new())),
            None => {
                let previous = index.checked_sub(1).map(|index| object.properties[index].range.end);
                let comma = previous.and_then(|previous| self.comma_between(previous, prop.range.start));
                edits.extend(comma.map(|comma| (comma, String::new())));
            }
        }
        let rest = &self.text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let ends_line = rest[blank..].starts_with('\n');
        match indentation(self.text, start) {
            Some(indent) if ends_line => {
                start -= indent.len();
                end += blank + 1;
            }
            // On one line with others: the space that is too much.
            _ if own_comma.is_some() => end += blank,
            Some(indent) if rest[blank..].starts_with('}') => {
                start -= indent.len();
                end += blank;
            }
            _ => {
                let before = &self.text[..start];
                start = before.trim_end_matches([' ', '\t']).len();
            }
        }
        // The comma before may be inside what goes.
        edits.retain(|(comma, _)| comma.end <= start || comma.start >= end);
        edits.push((Range::new(start, end), String::new()));
        edits
    }

    fn comma_between(&self, start: usize, end: usize) -> Option<Range> {
        self.commas.iter().find(|comma| comma.start >= start && comma.end <= end).copied()
    }

    /// The end of the line of a position, behind a comment; before a bracket that closes on the same line.
    fn line_end(&self, position: usize) -> usize {
        let mut at = position;
        loop {
            let rest = &self.text[at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let rest = &rest[blank..];
            let comment = match rest.get(..2) {
                Some("//") => rest.find('\n').unwrap_or(rest.len()),
                Some("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => return at,
            };
            // A comment of several lines belongs to what follows.
            if rest[..comment].contains('\n') {
                return at;
            }
            at += blank + comment;
        }
    }
}

/// JSON as editors lay it out: lists of plain values on one line.
fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let inner = format!("{indent}{unit}");
            let members = members.iter().map(|(name, value)| {
                format!("{inner}{}: {}", Value::String(name.clone()), pretty(value, &inner, unit))
            });
            format!("{{\n{}\n{indent}}}", members.collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
