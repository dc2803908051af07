//! Input and output: tables, lists and JSON that describe one object, read into one JSON Schema.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::blocks::BlockKind;
use super::parts::{Piece, prose_of};
use super::places::{FieldRow, FieldTable, Required, SchemaSource};
use super::table::{Cell, Column, Table};
use super::{html_table, prose, rows};
use crate::json::{self, JsonNode};
use crate::model::SchemaRole;
use sinew_tool::finding::Span;
use sinew_tool::text::clip;

pub(crate) struct SchemaReading {
    pub schema: Option<Value>,
    pub notes: String,
    pub place: SchemaSource,
}

/// A tool defined in JSON within the document: `{"name": …, "inputSchema": …}`.
pub(crate) struct JsonDefinition {
    pub value: Value,
    node: JsonNode,
    mistakes: Vec<json::JsonMistake>,
}

/// Printed before a schema, and for a tool without parameters; not part of the notes.
pub(crate) const SCHEMA_LABEL: &str = "**JSON Schema:**";
pub(crate) const NO_PARAMETERS: &str = "This tool takes no parameters.";

fn is_label(text: &str, lines: &[Span]) -> bool {
    matches!(lines, [only] if only.of(text).trim() == SCHEMA_LABEL)
}

/// Takes the first definition in JSON out of the pieces, the last of which are the input section: a
/// schema that is labelled there needs no other.
pub(crate) fn take_definition(text: &str, parts: [&mut Vec<Piece>; 3]) -> Option<JsonDefinition> {
    if parts[2].iter().any(|piece| is_label(text, piece.lines())) {
        return None;
    }
    for pieces in parts {
        for index in 0..pieces.len() {
            let BlockKind::Fence { language, body, .. } = &pieces[index].kind else { continue };
            if !is_json(language) || !body.of(text).contains("\"name\"") {
                continue;
            }
            let Ok(mut reading) = json::read(text, *body) else { continue };
            let whole = reading.values.swap_remove(0);
            let node = whole.get("function").cloned().unwrap_or(whole);
            let describes = described_in(&node);
            if node.get("name").is_some()
                && describes.is_some_and(|schema| matches!(schema.kind, json::JsonKind::Object(_)))
            {
                remove(pieces, index);
                return Some(JsonDefinition { value: node.to_value(), node, mistakes: reading.mistakes });
            }
        }
    }
    None
}

/// The schema of the arguments in a definition.
fn described_in(node: &JsonNode) -> Option<&JsonNode> {
    ["inputSchema", "input_schema", "parameters"].iter().find_map(|key| node.get(key))
}

/// A definition in YAML, which is not supported: it is reported, so that its parameters are not lost silently.
pub(crate) fn yaml(text: &str, parts: [&[Piece]; 3]) -> Option<json::JsonFault> {
    let defines = |body: &str| {
        body.lines()
            .any(|line| matches!(line.trim_end(), "parameters:" | "inputSchema:" | "input_schema:" | "properties:"))
    };
    parts.into_iter().flatten().find_map(|piece| match &piece.kind {
        BlockKind::Fence { language, body, .. }
            if matches!(language.to_lowercase().as_str(), "yaml" | "yml") && defines(body.of(text)) =>
        {
            let line = body.of(text).find(['\n', '\r']).unwrap_or(body.of(text).len());
            let message =
                "a definition in YAML is not read; write the parameters as a table or a JSON Schema".to_owned();
            Some(json::JsonFault { span: Span::new(body.start, body.start + line), message })
        }
        _ => None,
    })
}

pub(crate) fn read(text: &str, pieces: &[Piece], entry: Option<&JsonDefinition>, which: SchemaRole) -> SchemaReading {
    let mut rest: Vec<Piece> = Vec::new();
    let mut place = SchemaSource::default();
    let mut removed = false;
    let mut labelled = false;
    // In the canonical form the schema comes last; a table after it is a note.
    let mut complete = false;
    // Tables after the first.
    let mut others: Vec<(Vec<String>, Span)> = Vec::new();
    // "Required:", in front of a table.
    let mut asked: Option<Cell> = None;
    for piece in pieces {
        let was_labelled = std::mem::take(&mut labelled);
        let was_asked = std::mem::take(&mut asked);
        if let BlockKind::Heading { text: line, .. } = piece.kind {
            asked = requirement_label(text, line);
        } else if let [only] = piece.lines() {
            asked = requirement_label(text, *only);
        }
        let taken = match &piece.kind {
            BlockKind::Table(_) | BlockKind::Html => {
                let taken = !complete && take_table(text, piece, was_asked.as_ref(), &mut place);
                if !taken {
                    others.extend(other_table(text, piece));
                }
                // The label is part of the table now.
                if taken && was_asked.is_some() {
                    rest.pop();
                }
                taken
            }
            BlockKind::Fence { language, body, .. } if is_json(language) => {
                let taken = take_schema(text, *body, was_labelled, which, &mut place);
                complete |= taken && was_labelled;
                taken
            }
            BlockKind::Prose(lines) if lines.len() == 1 => {
                labelled = is_label(text, lines);
                let line = lines[0].of(text);
                place.says_none |= says_none(line) && line.trim() != prose::NOT_STATED;
                labelled || says_only_none(line)
            }
            _ => false,
        };
        if !taken {
            rest.push(Piece { gap: piece.gap || removed, ..piece.clone() });
        }
        removed = taken;
    }
    let defined = entry.and_then(|entry| match which {
        SchemaRole::Input => described_in(&entry.node),
        SchemaRole::Output => entry.node.get("outputSchema"),
    });
    if place.table.is_none() && place.schema.is_none() && defined.is_none() {
        take_lists(text, &mut rest, &mut place);
        // A line beside a list may be one of our own labels, which are not notes.
        let is_ours = |piece: &Piece| match piece.lines() {
            [only] => is_label(text, &[*only]) || says_only_none(only.of(text)),
            _ => false,
        };
        while let Some(index) = rest.iter().position(is_ours) {
            remove(&mut rest, index);
        }
    }
    if let (None, Some(schema), Some(entry)) = (&place.schema, defined, entry) {
        place.schema = Some(schema.clone());
        place.mistakes.extend(entry.mistakes.iter().copied());
    }
    let notes = prose_of(text, &rest);
    let schema = merge(&place);
    let known = schema.as_ref().map(member_names).unwrap_or_default();
    others.retain(|(names, _)| names.iter().any(|name| !known.contains(last_part(name))));
    place.other_tables = others.into_iter().map(|(_, span)| span).collect();
    SchemaReading { schema, notes, place }
}

/// The names in a table that was not read, and its place.
fn other_table(text: &str, piece: &Piece) -> Option<(Vec<String>, Span)> {
    let table = Table::of(text, &piece.kind, piece.span)?;
    let columns = table.columns().filter(|columns| columns.contains(&Column::Type))?;
    let rows = table.rows.into_iter().filter_map(|row| rows::read(row, &columns));
    Some((rows.map(|row| row.name).collect(), table.header.span))
}

/// `size` of `items[].size`.
fn last_part(name: &str) -> &str {
    name.trim_end_matches("[]").rsplit('.').next().unwrap_or(name)
}

/// The names of all members that a schema describes, at any depth.
fn member_names(schema: &Value) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let described = members.get("properties").and_then(Value::as_object);
                names.extend(described.into_iter().flat_map(|described| described.keys().cloned()));
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names
}

/// Takes a table of parameters out of the prose, for tools that have no section for it.
pub(crate) fn take_lone_table(text: &str, pieces: &mut Vec<Piece>) -> Option<Piece> {
    let index = pieces.iter().position(|piece| {
        Table::of(text, &piece.kind, piece.span).is_some_and(|table| {
            let columns = table.columns().unwrap_or_default();
            let decides = |column: &Column| matches!(column, Column::Type | Column::Required | Column::Optional);
            columns.iter().any(decides) || !columns.is_empty() && table.names_parameters()
        })
    })?;
    let piece = pieces[index].clone();
    remove(pieces, index);
    Some(piece)
}

/// Whether a block lists parameters: as bullets, as a definition list, or on one line after a label.
pub(crate) fn is_list(text: &str, kind: &BlockKind, span: Span) -> bool {
    match kind {
        BlockKind::Prose(lines) => {
            lines.iter().any(|line| rows::read_bullet(text, *line).is_some() || is_labelled_list(text, *line))
                || lines.windows(2).any(|pair| rows::read_definition(text, pair[0], pair[1]).is_some())
        }
        BlockKind::Html => read_html_list(text, span).is_some(),
        _ => false,
    }
}

fn is_labelled_list(text: &str, line: Span) -> bool {
    rows::inline_label(line.of(text)).is_some() && rows::read_inline(text, line).is_some()
}

/// The parameters of a definition list in HTML; `None` if one of its terms is not a parameter.
fn read_html_list(text: &str, block: Span) -> Option<Vec<FieldRow>> {
    let terms = html_table::definitions(text, block);
    let rows = if terms.is_empty() {
        html_table::items(text, block).into_iter().map(|item| rows::read_html_item(text, &item)).collect()
    } else {
        terms.into_iter().map(|term| rows::read_html_definition(text, term)).collect::<Option<Vec<_>>>()
    }?;
    (!rows.is_empty()).then_some(rows)
}

/// Takes a list of parameters out of the prose, for tools that have no section for it.
pub(crate) fn take_lone_list(text: &str, pieces: &mut Vec<Piece>) -> Vec<Piece> {
    let mut lists = Vec::new();
    let mut rest = Vec::new();
    for piece in std::mem::take(pieces) {
        let (labelled, others): (Vec<Span>, Vec<Span>) =
            piece.lines().iter().partition(|line| is_labelled_list(text, **line));
        if labelled.is_empty() || others.is_empty() {
            if is_list(text, &piece.kind, piece.span) { &mut lists } else { &mut rest }.push(piece);
            continue;
        }
        // What stands around the line is not about the parameters.
        lists.push(Piece { kind: BlockKind::Prose(labelled), ..piece.clone() });
        rest.push(Piece { kind: BlockKind::Prose(others), ..piece });
    }
    *pieces = rest;
    lists
}

fn remove(pieces: &mut Vec<Piece>, index: usize) {
    pieces.remove(index);
    if let Some(next) = pieces.get_mut(index) {
        next.gap = true;
    }
}

fn is_json(language: &str) -> bool {
    let word = language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    matches!(word.as_str(), "" | "json" | "jsonc" | "json5" | "jsonschema" | "javascript" | "js")
}

/// Whether a line says that there is nothing to describe: "None", "It does not take any arguments."
pub(crate) fn says_none(line: &str) -> bool {
    let line = plain_denial(line);
    if is_nothing(&line) {
        return true;
    }
    // A sentence that goes on so describes something.
    let goes_on = ["but", "except", "unless", "if", "when", "other", "than", "only", "optional", "mandatory"];
    let clauses = line.split(['.', ',', ';', ':', '(', ')', '—', '–']).map(words_of);
    line.split_whitespace().count() <= 12
        && !words_of(&line).iter().any(|word| goes_on.contains(word))
        && clauses.into_iter().any(|words| denies_parameters(&words))
}

/// Whether it says nothing else, so that the printed sentence can stand for it. "Currently" would be lost.
pub(crate) fn says_only_none(line: &str) -> bool {
    let plain = plain_denial(line);
    let is_usual = |word: &&str| {
        let verb = word.strip_suffix('s').unwrap_or(word);
        [&SUBJECTS[..], &DENIALS, &TAKING, &PARAMETERS, &ENDINGS].iter().any(|list| list.contains(word))
            || TAKING.contains(&verb)
    };
    is_nothing(&plain) || says_none(line) && words_of(&plain).iter().all(is_usual)
}

const SUBJECTS: [&str; 7] = ["this", "the", "tool", "it", "there", "do", "does"];
const DENIALS: [&str; 4] = ["no", "not", "without", "none"];
const TAKING: [&str; 12] =
    ["any", "take", "need", "require", "accept", "have", "has", "expect", "use", "receive", "further", "additional"];
const PARAMETERS: [&str; 8] = ["parameter", "parameters", "argument", "arguments", "input", "inputs", "params", "args"];
const ENDINGS: [&str; 9] = ["is", "are", "required", "needed", "necessary", "expected", "accepted", "at", "all"];

/// A denial, only verbs of taking and the parameters, and nothing behind them that makes them something else: "no input
/// file".
fn denies_parameters(words: &[&str]) -> bool {
    let denials = words.iter().enumerate().filter(|(_, word)| DENIALS.contains(word));
    denials.into_iter().any(|(at, _)| {
        let behind = &words[at + 1..];
        let taking = behind.iter().take_while(|word| TAKING.contains(word)).count();
        let named = behind[taking..].iter().take_while(|word| PARAMETERS.contains(word)).count();
        named > 0 && behind[taking + named..].iter().all(|word| ENDINGS.contains(word))
    })
}

fn words_of(line: &str) -> Vec<&str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn plain_denial(line: &str) -> String {
    let line = line.trim_start_matches(['-', '+', '>', ' ']).replace("n't ", " not ").replace("n’t ", " not ");
    line.trim().trim_matches(['*', '_', '.', '(', ')', '`', '。']).to_lowercase()
}

fn is_nothing(line: &str) -> bool {
    matches!(
        line,
        "none"
            | "none required"
            | "n/a"
            | "not stated"
            | "nothing"
            | "empty"
            | "empty object"
            | "an empty object"
            | "{}"
            | "keine"
            | "aucun"
            | "aucune"
            | "ninguno"
            | "无"
            | "なし"
    )
}

/// Takes the first table, and a later one if a label says whether its parameters are required: any other may describe
/// the members of one of them.
fn take_table(text: &str, piece: &Piece, asked: Option<&Cell>, place: &mut SchemaSource) -> bool {
    if place.table.is_some() && asked.is_none() {
        return false;
    }
    let Some(table) = Table::of(text, &piece.kind, piece.span) else { return false };
    let Some(columns) = table.columns() else { return false };
    let rows = table.rows.into_iter().filter_map(|row| rows::read(row, &columns));
    let rows: Vec<FieldRow> =
        rows.map(|row| FieldRow { required: row.required.clone().or_else(|| asked.cloned()), ..row }).collect();
    match &mut place.table {
        Some(first) => first.rows.extend(rows),
        None => place.table = Some(FieldTable { header: table.header.span, columns, rows }),
    }
    true
}

/// A line that says whether the parameters below it are required: `**Optional parameters:**`.
pub(crate) fn requirement_label(text: &str, line: Span) -> Option<Cell> {
    let words = line.of(text).trim_matches(['*', '_', ':', '#', '-', ' ', '：']);
    let lower = words.to_lowercase();
    let mut parts = lower.split_whitespace();
    let is_answer = matches!(parts.next(), Some("required" | "optional" | "mandatory"));
    let names_parameters = |word: &str| {
        matches!(
            word,
            "parameters" | "arguments" | "inputs" | "params" | "args" | "fields" | "options" | "input" | "properties"
        )
    };
    let answer = words.split_whitespace().next().unwrap_or_default();
    (is_answer && parts.all(names_parameters)).then(|| Cell { span: line, text: answer.to_owned() })
}

/// Lists that describe parameters, where there is neither table nor schema.
fn take_lists(text: &str, pieces: &mut Vec<Piece>, place: &mut SchemaSource) {
    let mut rows = Vec::new();
    let mut asked = None;
    pieces.retain_mut(|piece| match &mut piece.kind {
        BlockKind::Prose(lines) => {
            *lines = take_listed(text, std::mem::take(lines), &mut asked, &mut rows);
            !lines.is_empty()
        }
        BlockKind::Heading { text: line, .. } => {
            asked = requirement_label(text, *line);
            asked.is_none()
        }
        BlockKind::Html => match read_html_list(text, piece.span) {
            Some(found) => {
                rows.extend(found);
                false
            }
            None => true,
        },
        _ => true,
    });
    let Some(first) = rows.first() else { return };
    let names: HashSet<&str> = rows.iter().flat_map(|row| row.name.split('.')).collect();
    let lines = pieces.iter().flat_map(|piece| piece.lines()).filter(|line| {
        // What is further inside explains the bullet around it.
        indent_of(text, **line) <= indent_of(text, first.span)
    });
    let named = lines.filter_map(|line| Some((rows::bullet_in_code(line.of(text))?, *line)));
    let unread = named.filter(|(name, _)| !names.contains(name)).map(|(name, line)| {
        let name = clip(name);
        let message = format!(
            "`{name}` looks like a parameter and was not read, because its type is missing; write it as \
             `- `{name}` (string, required): …`, or say in other words what the line is about"
        );
        (message, line)
    });
    place.unread.extend(unread);
    place.table = Some(FieldTable { header: first.span, columns: Vec::new(), rows });
}

fn indent_of(text: &str, line: Span) -> usize {
    let words = line.of(text);
    words.len() - words.trim_start().len()
}

/// Reads the lines that describe parameters and returns the others.
fn take_listed(text: &str, lines: Vec<Span>, asked: &mut Option<Cell>, rows: &mut Vec<FieldRow>) -> Vec<Span> {
    let mut rest: Vec<Span> = Vec::new();
    // The bullets around a line that describe objects, and how far each is indented.
    let mut around: Vec<(usize, String)> = Vec::new();
    for line in lines {
        let indent = indent_of(text, line);
        if let Some(label) = requirement_label(text, line) {
            *asked = Some(label);
        } else if let Some(mut row) = rows::read_bullet(text, line) {
            while around.last().is_some_and(|(outer, _)| indent <= *outer) {
                around.pop();
            }
            match around.last() {
                Some((_, object)) => row.name = format!("{object}.{}", row.name),
                None => row.required = row.required.or_else(|| asked.clone()),
            }
            if row.has_members() {
                around.push((indent, row.name.clone()));
            }
            rows.push(row);
        } else if let Some(found) = rows::read_inline(text, line) {
            rows.extend(found);
        } else if let Some(row) = rest.last().and_then(|term| rows::read_definition(text, *term, line)) {
            rest.pop();
            rows.push(row);
        } else {
            // Another label begins another group.
            if line.of(text).trim_end_matches(['*', '_', ' ']).ends_with([':', '：']) {
                *asked = None;
            }
            rest.push(line);
        }
    }
    rest
}

/// A JSON object whose members are the parameters: `{"path": "string", "depth": {"type": "integer"}}`,
/// as a schema.
fn from_map(node: &JsonNode) -> Option<Value> {
    let json::JsonKind::Object(members) = &node.kind else { return None };
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for member in members {
        let value = member.value.to_value();
        let property = match &value {
            Value::String(words) => rows::from_words(words)?,
            Value::Object(about) if about.get("type").is_some_and(|kind| kind.is_string() || kind.is_array()) => {
                (value.clone(), about.get("required").and_then(Value::as_bool).unwrap_or(false))
            }
            _ => return None,
        };
        let (mut property, is_required) = property;
        if let Some(about) =
            property.as_object_mut().filter(|about| about.get("required").is_some_and(Value::is_boolean))
        {
            about.shift_remove("required");
        }
        if is_required {
            required.push(json!(member.key));
        }
        properties.insert(member.key.clone(), property);
    }
    if properties.is_empty() {
        return None;
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    Some(schema)
}

fn take_schema(text: &str, body: Span, labelled: bool, which: SchemaRole, place: &mut SchemaSource) -> bool {
    match json::read(text, body) {
        Ok(mut reading) => {
            let node = reading.values.swap_remove(0);
            let is_object = matches!(node.kind, json::JsonKind::Object(_));
            let takes = place.schema.is_none() && is_object && (labelled || looks_like_a_schema(&node));
            if takes {
                place.schema = Some(node);
                place.mistakes.extend(reading.mistakes);
                return true;
            }
            // A result may have a schema for failures too.
            if let Some(first) =
                place.schema.as_ref().filter(|_| which == SchemaRole::Input && looks_like_a_schema(&node))
                && first.to_value() != node.to_value()
            {
                let message = "another JSON Schema describes the parameters, and this one was not read; merge them";
                place.unread.push((message.to_owned(), body));
            }
            if place.schema.is_none() && place.map.is_none() {
                place.map = from_map(&node);
                return place.map.is_some();
            }
            false
        }
        Err(fault) => {
            place.faults.push(fault);
            false
        }
    }
}

fn looks_like_a_schema(node: &JsonNode) -> bool {
    const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    let is_type = |node: &JsonNode| node.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_object = |node: &JsonNode| matches!(node.kind, json::JsonKind::Object(_));
    node.get("$schema").is_some()
        || node.get("$ref").is_some_and(|reference| reference.as_str().is_some())
        || node.get("properties").is_some_and(is_object)
        || ["oneOf", "anyOf", "allOf"].iter().any(|key| node.get(key).is_some_and(|branch| !branch.items().is_empty()))
        || node
            .get("type")
            .is_some_and(|kind| is_type(kind) || (!kind.items().is_empty() && kind.items().iter().all(is_type)))
}

/// Adds what only the table describes, unless the schema describes other members in a way of its own. A schema that
/// refuses all others was written before the row.
fn add_rows(schema: &mut Value, table: &FieldTable) {
    let is_own = |key: &str| schema.get(key).is_some_and(|rest| !rest.is_boolean());
    if ["additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"].into_iter().any(is_own) {
        return;
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let is_own = |row: &&FieldRow| !row.name.contains(['.', '[']);
    let mut required = Vec::new();
    for row in table.rows.iter().filter(is_own) {
        if !properties.contains_key(&row.name) {
            properties.insert(row.name.clone(), rows::property_of(row));
            required.extend((row.required() == Required::Yes).then(|| json!(row.name)));
        }
    }
    if !required.is_empty() {
        match schema.get_mut("required").and_then(Value::as_array_mut) {
            Some(names) => names.extend(required),
            None => schema["required"] = Value::Array(required),
        }
    }
}

/// One schema from both descriptions: the schema if there is one, with the members, descriptions and examples
/// that only the table gives; otherwise the table.
fn merge(place: &SchemaSource) -> Option<Value> {
    let Some(node) = &place.schema else {
        return place.table.as_ref().map(rows::from_table).or_else(|| place.map.clone());
    };
    let mut schema = node.to_value();
    if let Some(table) = &place.table {
        add_rows(&mut schema, table);
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(properties), Some(table)) = (properties, &place.table) {
        for row in &table.rows {
            let Some(property) = properties.get_mut(&row.name).and_then(Value::as_object_mut) else { continue };
            let has_example =
                ["examples", "example", "default", "const", "enum"].iter().any(|key| property.contains_key(*key));
            if !has_example && let Some(example) = rows::example(row, property) {
                property.insert("examples".to_owned(), json!([example]));
            }
            if !property.contains_key("default")
                && let Some(default) = rows::default(row, property)
            {
                property.insert("default".to_owned(), default);
            }
            let tabled = row.description.as_ref().and_then(Cell::said).unwrap_or_default();
            let words = property.get("description").map_or(Some(tabled), Value::as_str);
            let has_default = property.contains_key("default");
            let words =
                words.map(|words| rows::with_remarks(words, row, has_default)).filter(|words| !words.is_empty());
            if let Some(words) = words {
                property.insert("description".to_owned(), json!(words));
            }
        }
    }
    Some(schema)
}
