//! Rows: one parameter or field as a table or list describes it, and the schema that rows make.

use serde_json::{Map, Value, json};

use super::places::{Required, Row, Table};
use super::table::{self, Cell, Column};
use super::{prose, types};
use sinew_tool::finding::Span;

/// A row of a table, by its columns.
pub fn read(text: &str, line: Span, columns: &[Column]) -> Option<Row> {
    let mut row = Row {
        span: line,
        name: String::new(),
        name_span: line,
        kind: None,
        required: None,
        default: None,
        description: None,
        example: None,
    };
    for (cell, column) in table::cells(text, line).into_iter().zip(columns) {
        match column {
            Column::Name if row.name.is_empty() => {
                row.name_span = cell.span;
                row.name = prose::unmark(&cell.text);
            }
            Column::Type => row.kind = Some(cell),
            Column::Required => row.required = Some(cell),
            Column::Default => row.default = Some(cell),
            Column::Description => row.description = Some(cell),
            Column::Example => row.example = Some(cell),
            Column::Name | Column::Other => {}
        }
    }
    // A row of dots stands for more of the same, and `none` without a type for no parameter at all.
    let is_none = matches!(row.name.to_lowercase().as_str(), "none" | "n/a" | "(none)")
        && row.kind.as_ref().and_then(Cell::said).is_none();
    (!is_none && !matches!(row.name.as_str(), "" | "..." | "…" | "—" | "-" | "--")).then_some(row)
}

/// A bullet such as ``- `target` (string, required): Path to analyze``.
pub fn read_bullet(text: &str, line: Span) -> Option<Row> {
    let words = line.of(text);
    let body = words.strip_prefix("- ").or_else(|| words.strip_prefix("* "))?;
    let name = body.strip_prefix('`')?.split('`').next()?;
    let rest = body.get(name.len() + 2..)?.trim_start().strip_prefix('(')?;
    let (inside, after) = rest.split_once(')')?;
    let description = after.trim_start().strip_prefix([':', '-', '–', '—'])?.trim();
    let (kind, required) = inside.rsplit_once(',').unwrap_or((inside, ""));
    let cell = |part: &str| {
        let at = line.start + (part.as_ptr() as usize - words.as_ptr() as usize);
        let lead = part.len() - part.trim_start().len();
        Cell { span: Span::new(at + lead, at + lead + part.trim().len()), text: part.trim().to_owned() }
    };
    let name_cell = cell(name);
    Some(Row {
        span: line,
        name: name.to_owned(),
        name_span: name_cell.span,
        kind: Some(cell(kind)),
        required: Some(cell(required)).filter(|cell| !cell.text.is_empty()),
        default: None,
        description: Some(cell(description)),
        example: None,
    })
}

/// The schema that a table alone describes.
pub fn from_table(table: &Table) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    let mut required = Vec::new();
    let has_required = table.columns.is_empty() || table.columns.contains(&Column::Required);
    let has_default = table.columns.contains(&Column::Default);
    for row in &table.rows {
        let property = property_of(row);
        let Some((parent, name)) = home_of(&mut schema, &row.name) else { continue };
        if parent.contains_key(name) {
            continue;
        }
        let nested = name != row.name;
        parent.insert(name.to_owned(), property);
        let is_required = match row.required() {
            Required::Yes => true,
            Required::Unclear if !has_required && has_default => {
                row.default.as_ref().and_then(Cell::said).is_none_or(|said| prose::unmark(said) == "required")
            }
            _ => false,
        };
        if is_required && !nested {
            required.push(json!(row.name));
        }
    }
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

/// The properties a dotted name belongs to: `runtimes.docker` is `docker` in the object `runtimes`,
/// if a row before it described that.
fn home_of<'a, 'b>(schema: &'a mut Value, name: &'b str) -> Option<(&'a mut Map<String, Value>, &'b str)> {
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
    Some((node.get_mut("properties")?.as_object_mut()?, rest))
}

fn property_of(row: &Row) -> Value {
    let reading = row.kind.as_ref().and_then(|cell| types::read(&cell.text));
    let mut property = match reading.map(|reading| reading.schema) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let mut words = row.description.as_ref().and_then(Cell::said).unwrap_or_default().to_owned();
    if row.required() == Required::Sometimes
        && let Some(cell) = &row.required
        && cell.text.contains(' ')
    {
        words = format!("{words} (Required: {})", cell.text).trim().to_owned();
    }
    if !words.is_empty() {
        property.insert("description".to_owned(), json!(words));
    }
    if let Some(default) = row.default.as_ref().and_then(|cell| value_of(cell, &property)) {
        property.insert("default".to_owned(), default);
    }
    if let Some(example) = example(row, &property) {
        property.insert("examples".to_owned(), json!([example]));
    }
    Value::Object(property)
}

pub fn example(row: &Row, property: &Map<String, Value>) -> Option<Value> {
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
