//! Entries in YAML: whole lines are added or replaced where the file is written in the usual way. What such an edit
//! does is checked afterwards; a file that is written otherwise is left alone.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value, json};

use super::edit::EditProblem;

/// Lists and maps in each other.
const MAX_DEPTH: usize = 64;

/// Where nothing shows how the file is indented.
const UNIT: usize = 2;

enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

pub(super) fn read(text: &str) -> Result<Value, EditProblem> {
    let (mut open, mut whole): (Vec<Open>, Option<Value>) = (Vec::new(), None);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| EditProblem {
            line: Some(error.marker().line()),
            message: format!("this is not YAML: {}", error.info()),
        })?;
        let wrong = |message: &str| EditProblem { line: Some(span.start.line()), message: message.to_owned() };
        let value = match event {
            Event::Scalar(text, style, _, tag) => {
                if let Some(Open::Map(members, name @ None)) = open.last_mut() {
                    if members.contains_key(&*text) {
                        return Err(wrong(&format!("`{text}` stands twice; remove one")));
                    }
                    *name = Some(text.into_owned());
                    continue;
                }
                match tag {
                    // Only compared, never written.
                    Some(tag) => json!([tag.to_string(), text]),
                    None => scalar(&text, style),
                }
            }
            Event::Alias(anchor) => json!({"*": anchor}),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= MAX_DEPTH {
                    return Err(wrong(&format!("lists and maps may be nested {MAX_DEPTH} deep")));
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                open.push(if is_list { Open::List(Vec::new()) } else { Open::Map(Map::new(), None) });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Map(members, _)) => Value::Object(members),
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map(_, None)) => return Err(wrong("a list or a map is used as a name")),
            Some(Open::Map(members, name)) => drop(members.insert(name.take().unwrap_or_default(), value)),
            None if whole.is_some() => return Err(wrong("there is a second document; one is expected")),
            None => whole = Some(value),
        }
    }
    match whole {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(whole @ Value::Object(_)) => Ok(whole),
        Some(_) => Err(EditProblem::new("expected names with values at the start of the lines")),
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.parse::<Number>().map_or_else(|_| Value::String(text.to_owned()), Value::Number),
    }
}

pub(super) fn edit(text: &str, servers: &str, name: &str, wanted: Option<&Value>) -> Result<String, EditProblem> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(head) = lines.iter().position(|line| rest_of(line, servers).is_some()) else {
        let Some(wanted) = wanted else { return Ok(text.to_owned()) };
        lines.push(format!("{servers}:"));
        lines.extend(render(name, wanted, UNIT));
        return Ok(join(&lines));
    };
    let head_rest = rest_of(&lines[head], servers).unwrap_or_default();
    let (value, comment) = match head_rest.find('#') {
        Some(at) => head_rest.split_at(at),
        None => (head_rest, ""),
    };
    match value.trim() {
        "" => {}
        "{}" => lines[head] = format!("{servers}:{}{comment}", if comment.is_empty() { "" } else { " " }),
        _ => {
            let message = format!("the entries of `{servers}` are written on one line, in braces");
            return Err(EditProblem { line: Some(head + 1), message });
        }
    }
    let end = (head + 1..lines.len()).find(|at| depth(&lines[*at]) == Some(0)).unwrap_or(lines.len());
    let depths: Vec<usize> = lines[head + 1..end].iter().filter_map(|line| depth(line)).collect();
    let indent = depths.first().copied().unwrap_or(UNIT);
    let is_own = |line: &String| depth(line) == Some(indent) && rest_of(line.trim_start(), name).is_some();
    let new = wanted.map(|wanted| render(name, wanted, indent)).unwrap_or_default();
    let has_new = !new.is_empty();
    match (head + 1..end).find(|at| is_own(&lines[*at])) {
        Some(start) => {
            let next = (start + 1..end).find(|at| depth(&lines[*at]).is_some_and(|depth| depth <= indent));
            // Comments before the next entry are about that.
            let is_apart = |line: &String| depth(line).is_none() && line.len() - line.trim_start().len() <= indent;
            let behind = lines[start..next.unwrap_or(end)].iter().rposition(|line| !is_apart(line)).unwrap_or_default();
            lines.splice(start..=start + behind, new);
        }
        None => {
            let last = (head..end).rev().find(|at| depth(&lines[*at]).is_some()).unwrap_or(head);
            lines.splice(last + 1..last + 1, new);
        }
    }
    if !has_new && depths.iter().filter(|depth| **depth == indent).count() <= 1 {
        lines[head] = lines[head].replacen(':', ": {}", 1);
    }
    let edited = join(&lines);
    Ok(match has_new || text.ends_with('\n') {
        true => edited,
        false => edited.trim_end_matches('\n').to_owned(),
    })
}

fn join(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// What follows `name:`.
fn rest_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = [name.to_owned(), format!("\"{name}\""), format!("'{name}'")]
        .iter()
        .find_map(|form| line.strip_prefix(form.as_str()))?
        .trim_start()
        .strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

/// How far a line with content is indented; `None` for empty lines and comments.
fn depth(line: &str) -> Option<usize> {
    let content = line.trim_start_matches(' ');
    (!content.trim().is_empty() && !content.starts_with('#')).then(|| line.len() - content.len())
}

/// The lines of an entry.
fn render(name: &str, entry: &Value, indent: usize) -> Vec<String> {
    let members = entry.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| format!("{:1$}{name}: {2}", "", indent + UNIT, written(value)));
    std::iter::once(format!("{:indent$}{name}:", "")).chain(members).collect()
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {value}", Value::String(name.clone())));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        // YAML reads what JSON writes.
        other => other.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !matches!(text, "true" | "false" | "null")
}
