//! Rows: one parameter or field as a table or list describes it, and the schema that rows make.

use serde_json::{Map, Value, json};

use super::places::{FieldRow, FieldTable, Required};
use super::table::{self, Cell, Column};
use super::{labels, places, prose, types};
use crate::model::Section;
use sinew_tool::finding::Span;

/// A row of a table, by its columns.
pub(crate) fn read(row: table::Row, columns: &[Column]) -> Option<FieldRow> {
    let mut cells = row.cells;
    let mut row = FieldRow::named("", row.span);
    // Where a pipe was not escaped, the last cell was cut in two.
    if cells.len() > columns.len() && !columns.is_empty() {
        let surplus = cells.split_off(columns.len());
        row.surplus = surplus.iter().find(|cell| cell.said().is_some()).map(|cell| cell.span);
        if let Some(last) = cells.last_mut().filter(|_| row.surplus.is_some()) {
            surplus.iter().for_each(|cell| last.text = format!("{} | {}", last.text, cell.text));
        }
    }
    for (cell, column) in cells.into_iter().zip(columns) {
        match column {
            Column::Name if row.name.is_empty() => {
                row.name_span = cell.span;
                row.name = field_name(&cell.text);
            }
            Column::Type => row.kind = Some(cell),
            Column::Required => row.required = Some(cell),
            Column::Optional => (row.required, row.asks_optional) = (Some(cell), true),
            Column::Default => row.default = Some(cell),
            Column::Description => row.description = Some(cell),
            Column::Example => row.example = Some(cell),
            Column::Name | Column::Other => {}
        }
    }
    if row.default.as_ref().and_then(Cell::said).is_none()
        && let Some(stated) = row.required.as_ref().and_then(default_in)
    {
        row.default = Some(stated);
    }
    // A row of dots stands for more of the same, and `none` without a type for no parameter at all.
    let is_none = matches!(row.name.to_lowercase().as_str(), "none" | "n/a" | "(none)")
        && row.kind.as_ref().and_then(Cell::said).is_none();
    (!is_none && !matches!(row.name.as_str(), "" | "..." | "…" | "—" | "-" | "--")).then_some(row)
}

/// The default that an answer states: `No (default: 5)`, `No, defaults to 5`.
pub(crate) fn default_in(answer: &Cell) -> Option<Cell> {
    let said = answer.text.as_str();
    let label = said.to_ascii_lowercase().find("default")?;
    let rest = said[label + "default".len()..].trim_start_matches('s').trim_start();
    let rest = ["value ", "is ", "to "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let rest = rest.trim_start_matches([':', '=', ' ']);
    let end = unquoted(rest).find(|(_, character)| matches!(character, ')' | ',' | ';'));
    let value = rest[..end.map_or(rest.len(), |(end, _)| end)].trim();
    let is_word = said[..label].ends_with(char::is_alphanumeric);
    (!value.is_empty() && !is_word).then(|| Cell { span: answer.span, text: value.to_owned() })
}

/// The name in a cell, without the mark of a footnote: `` `path`* ``.
fn field_name(cell: &str) -> String {
    let code = cell.trim().strip_prefix('`').and_then(|code| code.split_once('`'));
    let is_mark = |c: char| matches!(c, '*' | '\\' | '†' | '‡' | '¹' | '²' | '³') || c.is_whitespace();
    match code {
        Some((name, mark)) if !name.is_empty() && !mark.is_empty() && mark.chars().all(is_mark) => {
            name.trim().to_owned()
        }
        _ => prose::unmark(cell),
    }
}

/// A bullet that describes a parameter: ``- `target` (string, required): Path to analyze``,
/// `- **target** — string: Path`, ``- `target`: string, the path``.
pub(crate) fn read_bullet(text: &str, line: Span) -> Option<FieldRow> {
    let words = line.of(text);
    let item = bulleted(words.trim_start())?;
    let (name, rest) = bullet_name(item)?;
    // `- Type: string` describes the parameter above it; `- `type`: string` is one.
    let is_attribute =
        matches!(name, "Type" | "Required" | "Optional" | "Default" | "Description" | "Example" | "Format");
    if is_attribute && !item.starts_with('`') {
        return None;
    }
    described(text, line, name, rest)
}

/// The name in code of a bullet that looks like a parameter, with what explains it: `` - `mode` (fast or slow): Which. ``
pub(crate) fn bullet_in_code(line: &str) -> Option<&str> {
    let item = bulleted(line.trim_start())?;
    let (name, rest) = bullet_name(item).filter(|_| item.starts_with(['`', '*']) && item.contains('`'))?;
    let explains = [":", " (", " -", " –", " —"].iter().any(|mark| rest.starts_with(mark));
    explains.then_some(name)
}

/// What stands after a bullet or the number of an item.
pub(crate) fn bulleted(item: &str) -> Option<&str> {
    let digits = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked =
        if digits.len() < item.len() { digits.strip_prefix(['.', ')']) } else { item.strip_prefix(['-', '*', '+']) };
    Some(marked?.strip_prefix([' ', '\t'])?.trim_start())
}

/// The term and the explanation of a definition list: a name, and below it `: string, required. Path`.
pub(crate) fn read_definition(text: &str, term: Span, explanation: Span) -> Option<FieldRow> {
    let rest = explanation.of(text).trim_start().strip_prefix(':')?;
    let name = prose::unmark(term.of(text));
    if !is_parameter(&name) || labels::section(&name).is_some() {
        return None;
    }
    let at = term.start + term.of(text).find(name.as_str())?;
    let mut row = described(text, explanation, &name, rest).unwrap_or(FieldRow {
        span: term,
        description: Some(cell_of(text, explanation, rest.trim())),
        ..FieldRow::named(&name, term)
    });
    row.name_span = Span::new(at, at + name.len());
    Some(row)
}

/// The same in HTML: `<dt>` with a name, or with a name and its type, and `<dd>`.
pub(crate) fn read_html_definition(text: &str, row: table::Row) -> Option<FieldRow> {
    let (term, explanations) = row.cells.split_first().filter(|(_, explanations)| !explanations.is_empty())?;
    let explained = explanations.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" ");
    let whole = prose::unmark(&term.text);
    let (name, rest) = match bullet_name(&term.text) {
        Some((name, about)) if !about.trim().is_empty() => (name, format!("{about}: {explained}")),
        _ if is_parameter(&whole) => (whole.as_str(), explained.clone()),
        _ => return None,
    };
    let mut found = described(text, row.span, name, &rest).unwrap_or_else(|| FieldRow {
        description: Some(Cell { span: explanations[0].span, text: rest.clone() }),
        ..FieldRow::named(name, row.span)
    });
    found.name_span = term.span;
    Some(found)
}

/// An item of a list in HTML that describes a parameter as a bullet would.
pub(crate) fn read_html_item(text: &str, row: &table::Row) -> Option<FieldRow> {
    let cell = row.cells.first()?;
    let (name, rest) = bullet_name(&cell.text)?;
    let mut found = described(text, row.span, name, rest)?;
    found.name_span = cell.span;
    Some(found)
}

/// Parameters on one line: `path (string), depth (number, optional)`.
pub(crate) fn read_inline(text: &str, line: Span) -> Option<Vec<FieldRow>> {
    let words = line.of(text);
    let listed = inline_label(words).map_or(words, |(_, listed)| listed).trim().trim_end_matches('.');
    let row = |part: &str| {
        let part = part.trim();
        let (name, rest) = bullet_name(part.strip_prefix("and ").unwrap_or(part))?;
        described(text, line, name, rest).filter(|row| row.kind.is_some() && rest.trim_start().starts_with('('))
    };
    split_parts(listed).into_iter().map(row).collect()
}

/// A label in front of parameters on one line: `Inputs: path (string)`.
pub(crate) fn inline_label(line: &str) -> Option<(&str, &str)> {
    let (label, listed) = line.split_once(':')?;
    let is_input = labels::section(label) == Some(Section::Input) && labels::announces_parameters(label);
    is_input.then_some((label, listed))
}

/// The name at the beginning of a bullet, in code or bold type or bare before a remark, and the rest.
fn bullet_name(body: &str) -> Option<(&str, &str)> {
    let marked = ["**`", "`", "**", "*"].iter().find_map(|open| {
        let close: String = open.chars().rev().collect();
        let (name, rest) = body.strip_prefix(open)?.split_once(close.as_str())?;
        let name = name.trim_end_matches(':');
        Some((name.trim_matches('`'), rest))
    });
    let (name, rest) = marked.or_else(|| {
        let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
        let rest = body[end..].trim_start();
        rest.starts_with(['(', ':']).then_some((&body[..end], rest))
    })?;
    is_parameter(name).then_some((name, rest))
}

fn is_parameter(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$'))
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Type, requirement and words of what follows a parameter's name; `None` where no type stands there.
fn described(text: &str, line: Span, name: &str, rest: &str) -> Option<FieldRow> {
    let rest = rest.trim_start().trim_start_matches([':', '–', '—']).trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest).trim_start();
    let (about, after) = match rest.trim_start_matches(['*', '_']).strip_prefix(['(', '[', '<']) {
        Some(inside) => {
            let (about, after) = split_brackets(inside)?;
            // `*(string, required)*`
            (about, if rest.starts_with(['*', '_']) { after.trim_start_matches(['*', '_']) } else { after })
        }
        None if rest.starts_with('`') => typed(rest)?,
        // `string, required: words` or `string - words`; a sentence has no type in front.
        None => {
            let end = rest.find([':', '–', '—', '.']).or_else(|| rest.find(" - ")).unwrap_or(rest.len());
            (&rest[..end], &rest[end..])
        }
    };
    // `string (required)` says both.
    let parts: Vec<&str> = about_parts(about)
        .into_iter()
        .flat_map(|part| {
            let inner = part.trim_end().strip_suffix(')').and_then(|part| part.rsplit_once('('));
            match inner.filter(|(_, inside)| split_parts(inside).iter().any(|word| requirement(word).is_some())) {
                Some((kind, inside)) => std::iter::once(kind).chain(split_parts(inside)).collect(),
                None => vec![part],
            }
        })
        .collect();
    let says = |part: &str| requirement(part).is_some();
    let kind = parts.iter().copied().find(|part| !says(part) && types::read(part).is_some());
    let needed = parts.iter().copied().find(|part| says(part));
    if kind.is_none() && needed.is_none() {
        return None;
    }
    let others = parts.iter().filter(|part| Some(**part) != kind && Some(**part) != needed);
    let default = others.clone().find_map(|part| {
        let part = part.trim();
        let value = part.get(..7).filter(|word| word.eq_ignore_ascii_case("default")).map(|_| &part[7..])?;
        Some(value.trim_start_matches([':', '=', ' ']))
    });
    let (stated, after) = stated_default(after);
    let default = default.or(stated);
    let mut description = after.trim_start_matches([':', '-', '–', '—', '.', ' ', ')']).trim().to_owned();
    let remarks: Vec<&str> =
        others.map(|part| part.trim()).filter(|part| !part.to_lowercase().starts_with("default")).collect();
    if !remarks.is_empty() {
        description = format!("{description} ({})", remarks.join(", ")).trim().to_owned();
    }
    Some(FieldRow {
        span: line,
        name: name.to_owned(),
        name_span: cell_of(text, line, name).span,
        kind: kind.map(|kind| cell_of(text, line, kind.trim())),
        required: needed.map(|needed| cell_of(text, line, needed.trim())),
        asks_optional: false,
        default: default.filter(|default| !default.is_empty()).map(|default| cell_of(text, line, default)),
        description: Some(Cell { text: description, span: cell_of(text, line, after.trim()).span }),
        example: None,
        surplus: None,
    })
}

/// What stands in brackets, by commas; listed values stay together: "one of `a`, `b`, optional".
fn about_parts(about: &str) -> Vec<&str> {
    let parts = split_parts(about);
    if !parts.first().is_some_and(|first| types::lists_choices(first)) {
        return parts;
    }
    let is_value =
        |part: &&&str| requirement(part).is_none() && !part.trim_start().to_lowercase().starts_with("default");
    let count = parts.iter().take_while(is_value).count().max(1);
    let end = parts[count - 1].as_ptr() as usize + parts[count - 1].len() - about.as_ptr() as usize;
    std::iter::once(&about[..end]).chain(parts[count..].iter().copied()).collect()
}

/// A type in code, with the remark in brackets after it: `` `string` (required) ``.
fn typed(rest: &str) -> Option<(&str, &str)> {
    let kind = 1 + rest[1..].find('`')? + 1;
    let remark = rest[kind..].trim_start().strip_prefix('(').and_then(split_brackets);
    let end = remark.map_or(kind, |(_, after)| rest.len() - after.len());
    Some((&rest[..end], &rest[end..]))
}

/// A default as programmers write it, `= 10`, and what follows it.
fn stated_default(after: &str) -> (Option<&str>, &str) {
    let Some(value) = after.trim_start().strip_prefix('=') else { return (None, after) };
    let end = [" – ", " — ", " - ", ": ", ". "].iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len());
    (Some(value[..end].trim()), &value[end..])
}

/// What stands up to the bracket that closes, and what follows it.
fn split_brackets(inside: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, character) in unquoted(inside) {
        match character {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '>' | '}' if depth == 0 => return Some((&inside[..at], &inside[at + 1..])),
            ')' | ']' | '>' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parts between commas and semicolons that stand outside brackets, quotes and code.
fn split_parts(about: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    for (at, character) in unquoted(about) {
        match character {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '>' | '}' => depth = depth.saturating_sub(1),
            ',' | ';' if depth == 0 => {
                parts.push(&about[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&about[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// The characters outside quotes and code. A mark that is never closed is one like any other.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut until = 0;
    text.char_indices().filter(move |(at, character)| {
        if *at < until {
            return false;
        }
        let closes = matches!(character, '`' | '"').then(|| text[at + 1..].find(*character)).flatten();
        if let Some(length) = closes {
            until = at + 1 + length + 1;
        }
        closes.is_none()
    })
}

fn requirement(part: &str) -> Option<bool> {
    match part.trim().trim_matches(['*', '`', '_']).to_lowercase().as_str() {
        "required" | "mandatory" => Some(true),
        "optional" | "not required" => Some(false),
        _ => None,
    }
}

/// A part of a line as a cell.
fn cell_of(text: &str, line: Span, part: &str) -> Cell {
    let at = line.start + line.of(text).find(part).unwrap_or_default();
    Cell { span: Span::new(at, (at + part.len()).min(line.end)), text: part.to_owned() }
}

/// A property that is described in words, and whether it is required: `"string (required) - Path"`.
pub(crate) fn from_words(words: &str) -> Option<(Value, bool)> {
    let row = described(words, Span::new(0, words.len()), "", words).or_else(|| {
        types::read(words).map(|_| FieldRow {
            kind: Some(cell_of(words, Span::new(0, words.len()), words)),
            ..FieldRow::named("", Span::default())
        })
    })?;
    Some((property_of(&row), row.required() == Required::Yes))
}

/// The schema that a table alone describes.
pub(crate) fn from_table(table: &FieldTable) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    let has_required = table.columns.is_empty()
        || [Column::Required, Column::Optional].iter().any(|column| table.columns.contains(column));
    let has_default = table.columns.contains(&Column::Default);
    for row in &table.rows {
        let (object, name) = home_of(&mut schema, &row.name);
        let Some(members) = object.get_mut("properties").and_then(Value::as_object_mut) else { continue };
        // `tags[]` describes the items of `tags`.
        let items = name.strip_suffix("[]").filter(|list| !list.is_empty());
        let name = items.unwrap_or(name);
        let property = match (members.get_mut(name), items) {
            (None, None) => property_of(row),
            (None, Some(_)) => json!({"type": "array", "items": property_of(row)}),
            (Some(Value::Object(list)), Some(_)) => {
                list.entry("items").or_insert_with(|| property_of(row));
                continue;
            }
            (Some(_), _) => continue,
        };
        members.insert(name.to_owned(), property);
        let is_required = match row.required() {
            Required::Yes => true,
            Required::Unclear if !has_required && has_default => {
                row.default.as_ref().and_then(Cell::said).is_none_or(|said| prose::unmark(said) == "required")
            }
            _ => false,
        };
        if is_required {
            match object.get_mut("required").and_then(Value::as_array_mut) {
                Some(names) => names.push(json!(name)),
                None => object["required"] = json!([name]),
            }
        }
    }
    schema
}

/// The object a dotted name belongs to: `runtimes.docker` is `docker` in the object `runtimes`,
/// if a row before it described that.
fn home_of<'a, 'b>(schema: &'a mut Value, name: &'b str) -> (&'a mut Value, &'b str) {
    let mut node = schema;
    let mut rest = name;
    while let Some((head, tail)) = rest.split_once('.') {
        let head = head.trim_end_matches("[]");
        let known = node.get("properties").and_then(|properties| properties.get(head)).is_some_and(Value::is_object);
        if !known || tail.is_empty() {
            break;
        }
        let mut next = &mut node["properties"][head];
        if next.get("items").is_some_and(Value::is_object) {
            next = &mut next["items"];
        }
        if next.get("properties").is_none() {
            next["properties"] = json!({});
        }
        (node, rest) = (next, tail);
    }
    (node, rest)
}

pub(crate) fn property_of(row: &FieldRow) -> Value {
    let reading = row.kind.as_ref().and_then(|cell| types::read(&cell.text));
    let mut property = match reading.map(|reading| reading.schema) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let default = default(row, &property);
    let words = row.description.as_ref().and_then(Cell::said).unwrap_or_default();
    let words = with_remarks(words, row, default.is_some());
    if !words.is_empty() {
        property.insert("description".to_owned(), json!(words));
    }
    if let Some(default) = default {
        property.insert("default".to_owned(), default);
    }
    if let Some(example) = example(row, &property) {
        property.insert("examples".to_owned(), json!([example]));
    }
    Value::Object(property)
}

/// A description with what the other cells say beside their values, so that it is printed and compared.
pub(crate) fn with_remarks(words: &str, row: &FieldRow, has_default: bool) -> String {
    let reading = row.kind.as_ref().and_then(|cell| types::read(&cell.text));
    let mut remarks = reading.map(|reading| reading.remarks).unwrap_or_default();
    remarks.extend(row.required.as_ref().filter(|cell| says_more(cell)).map(|cell| format!("Required: {}", cell.text)));
    let default = row.default.as_ref().and_then(Cell::said).filter(|_| !has_default);
    let is_none =
        |said: &str| matches!(prose::unmark(said).to_lowercase().as_str(), "none" | "required" | "no default");
    remarks.extend(default.filter(|said| !is_none(said)).map(|said| format!("Default: {said}")));
    let mut words = words.to_owned();
    for remark in remarks {
        if !words.contains(&remark) {
            words = format!("{words} ({remark})").trim().to_owned();
        }
    }
    words
}

/// Whether a cell that answers yes or no says more than that and a default.
pub(crate) fn says_more(answer: &Cell) -> bool {
    let said = prose::unmark(&answer.text);
    let default = default_in(answer).map(|default| default.text).unwrap_or_default();
    let known = ["yes", "no", "not", "true", "false", "required", "optional", "mandatory", "default", "defaults", "to"];
    let rest = said.replacen(&default, " ", usize::from(!default.is_empty()));
    let words = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    places::answer(&said).0 != Required::Unclear
        && words.skip(1).any(|word| !known.contains(&word.to_lowercase().as_str()))
}

/// The default a row states, as a value of its type.
pub(crate) fn default(row: &FieldRow, property: &Map<String, Value>) -> Option<Value> {
    value_of(row.default.as_ref()?, property)
}

pub(crate) fn example(row: &FieldRow, property: &Map<String, Value>) -> Option<Value> {
    value_of(row.example.as_ref()?, property)
}

/// The value a cell gives: JSON in code, or plain text for a string.
fn value_of(cell: &Cell, property: &Map<String, Value>) -> Option<Value> {
    let said = cell.said()?;
    // Of "`a` or `b`" the first serves.
    let code = prose::uncode(said).or_else(|| said.starts_with('`').then(|| prose::first_code(said)).flatten());
    let raw = code.unwrap_or(said).trim();
    let is_text = match property.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        _ => property.contains_key("enum"),
    };
    match serde_json::from_str::<Value>(raw) {
        Ok(Value::Number(_)) if is_text && !property.contains_key("enum") && !accepts_numbers(property) => {
            Some(json!(raw))
        }
        Ok(value) => Some(value),
        Err(_) => match raw {
            "True" => Some(json!(true)),
            "False" => Some(json!(false)),
            "None" | "required" => None,
            _ if is_text => Some(json!(raw)),
            _ => None,
        },
    }
}

fn accepts_numbers(property: &Map<String, Value>) -> bool {
    let names = property.get("type").and_then(Value::as_array);
    names.into_iter().flatten().any(|name| name == "number" || name == "integer")
}
