//! Tables: known types, clear requirements, and agreement with the schema beside them.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::{Reporter, rules};
use crate::model::{self, Section, ToolSpecification};
use crate::print::code;
use crate::read::places::{FieldTable, Required, SchemaSource};
use crate::read::table::Column;
use crate::read::{rows, table, types};
use crate::schema::resolve;
use sinew_tool::finding::Edit;
use sinew_tool::text::clip;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    for (source, section) in [(&tool.places.input, Section::Input), (&tool.places.output, Section::Output)] {
        let Some(table) = &source.table else { continue };
        shape(reporter, table, section);
        each_row(reporter, table, section);
        if source.schema.is_some() {
            let schema = if section == Section::Input { Some(&*tool.input) } else { tool.output.as_deref() };
            if let Some(schema) = schema {
                agreement(reporter, source, table, schema, section);
            }
        }
    }
}

fn shape(reporter: &mut Reporter<'_>, table: &FieldTable, section: Section) {
    use Column::{Description, Example, Name, Required as Needed, Type};
    let wanted: &[Column] = if section == Section::Input {
        &[Name, Type, Needed, Description, Example]
    } else {
        &[Name, Type, Description, Example]
    };
    if table.columns.is_empty() {
        let message = "this is a list; the standard describes parameters in a table";
        reporter.report(&rules::TABLE_SHAPE, table.header, message);
        return;
    }
    if table.columns != wanted {
        let words = if section == Section::Input {
            "Parameter Name, Type, Required, Description, Example Value"
        } else {
            "Field Name, Type, Description, Example Value"
        };
        reporter.report(&rules::TABLE_SHAPE, table.header, format!("the columns should be: {words}"));
    }
}

fn each_row(reporter: &mut Reporter<'_>, table: &FieldTable, section: Section) {
    let mut seen = HashSet::new();
    for row in &table.rows {
        let name = clip(&row.name);
        if !seen.insert(row.name.as_str()) {
            reporter.report(&rules::PARAMETER_REPEATED, row.name_span, format!("`{name}` is described twice"));
        }
        if let Some(span) = row.surplus {
            let message =
                format!("the row of `{name}` has more cells than the header; write `\\|` for a `|` in a cell");
            reporter.report(&rules::TABLE_SHAPE, span, message);
        }
        let is_one = !row.name.contains(['`', ',', '(', ' ']) || super::placeholders::is_placeholder(&row.name);
        if section == Section::Input && !is_one {
            let message = format!(
                "`{name}` was read as the name of one parameter; write only the name here, and a row for each parameter"
            );
            reporter.report(&rules::TOOL_UNREAD, row.name_span, message);
        }
        if let Some(cell) = &row.kind {
            match types::read(&cell.text) {
                None => {
                    let shown = clip(&cell.text.replace('`', ""));
                    let meant = types::nearest(&shown).map(|name| format!("did you mean `{name}`? Otherwise "));
                    let message = format!(
                        "`{shown}` is not a known type; {}use string, integer, number, boolean, null, object, \
                         array[TYPE] or enum[\"a\", \"b\"]",
                        meant.unwrap_or_default()
                    );
                    reporter.report(&rules::TYPE_UNKNOWN, cell.span, message);
                }
                Some(reading) if !reading.standard => {
                    let shown = clip(&cell.text.replace('`', ""));
                    let (message, fix) = match types::standard_words(&cell.text, &reading) {
                        Some(standard) => {
                            let replacement = table::escape(&code(&standard));
                            (
                                format!("`{shown}` should be written `{standard}`"),
                                Some(Edit { span: cell.span, replacement }),
                            )
                        }
                        None => {
                            let nearest = types::write(&reading.schema);
                            let rest = match reading.schema.get("format").and_then(Value::as_str) {
                                Some(format) => format!("`\"format\": \"{format}\"` in a JSON Schema"),
                                None => "the rest in the description or a JSON Schema".to_owned(),
                            };
                            let message =
                                format!("`{shown}` is not one of the standard's types; write `{nearest}`, and {rest}");
                            (message, None)
                        }
                    };
                    reporter.report_fixable(&rules::TYPE_ALIAS, cell.span, message, fix);
                }
                Some(_) => {}
            }
        }
        if section == Section::Input {
            let problem = match (row.required(), &row.required) {
                (Required::Sometimes, Some(cell)) => Some((
                    cell.span,
                    format!(
                        "`{name}` is required under a condition; say Yes or No here and the condition in the description"
                    ),
                )),
                (Required::Unclear, Some(cell)) => Some((cell.span, format!("say Yes or No: is `{name}` required?"))),
                (Required::Unclear, None) if !table.columns.contains(&Column::Default) => {
                    Some((row.name_span, format!("the table does not say whether `{name}` is required")))
                }
                _ => None,
            };
            if let Some((span, message)) = problem {
                reporter.report(&rules::REQUIRED_UNCLEAR, span, message);
            }
        }
    }
}

/// Table and schema describe one object; where they differ, one of them is wrong.
fn agreement(reporter: &mut Reporter<'_>, source: &SchemaSource, table: &FieldTable, schema: &Value, section: Section) {
    let noun = if section == Section::Input { "parameter" } else { "field" };
    let tabled = rows::from_table(table);
    let by_name: HashMap<&str, _> = table.rows.iter().map(|row| (row.name.as_str(), row)).collect();
    let none = serde_json::Map::new();
    let in_table = model::properties(&tabled).unwrap_or(&none);
    let in_schema = model::properties(schema).unwrap_or(&none);
    let places = source.members();
    let table_required: HashSet<&str> = model::required(&tabled).into_iter().collect();
    let schema_required: HashSet<&str> = model::required(schema).into_iter().collect();
    for (name, property) in in_table {
        let Some(row) = by_name.get(name.as_str()) else { continue };
        let shown = clip(name);
        let Some(other) = in_schema.get(name).filter(|_| places.contains_key(name.as_str())) else {
            reporter.report(
                &rules::TABLE_SCHEMA,
                row.name_span,
                format!("the {noun} `{shown}` is in the table, not in the JSON Schema"),
            );
            continue;
        };
        let (one, two) = (kinds(&tabled, property, 0), kinds(schema, other, 0));
        if let (Some(one), Some(two), Some(cell)) = (&one, &two, &row.kind)
            && one != two
        {
            let words = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(" or ");
            let message = format!("`{shown}` is {} in the table and {} in the JSON Schema", words(one), words(two));
            reporter.report(&rules::TABLE_SCHEMA, cell.span, message);
        }
        if let (Some(cell), Some(message)) = (&row.kind, other_values(property, other, schema)) {
            reporter.report(&rules::TABLE_SCHEMA, cell.span, format!("`{shown}` {message}"));
        }
        let written =
            source.schema.as_ref().and_then(|node| node.get("properties")?.get(name)?.get("description")?.as_str());
        if let (Some(words), Some(cell)) = (written, &row.description)
            && cell.said().is_some_and(|said| super::shapes::contradict(said, words))
        {
            let message = format!("table and JSON Schema describe `{shown}` differently");
            reporter.report(&rules::TABLE_SCHEMA, cell.span, message);
        }
        let clear = matches!(row.required(), Required::Yes | Required::No);
        let differs = table_required.contains(name.as_str()) != schema_required.contains(name.as_str());
        if section == Section::Input && clear && differs {
            let span = row.required.as_ref().map_or(row.name_span, |cell| cell.span);
            let message = format!("table and JSON Schema disagree on whether `{shown}` is required");
            reporter.report(&rules::TABLE_SCHEMA, span, message);
        }
    }
    for name in in_schema.keys().filter(|name| !in_table.contains_key(*name)) {
        let span = places.get(name.as_str()).copied().unwrap_or(table.header);
        let message = format!("the {noun} `{}` is in the JSON Schema, not in the table", clip(name));
        reporter.report(&rules::TABLE_SCHEMA, span, message);
    }
}

/// How the choices or the items that a table states differ from those of the schema.
fn other_values(tabled: &Value, written: &Value, root: &Value) -> Option<String> {
    let choices = |schema: &Value| {
        let listed = schema.get("enum")?.as_array()?.iter();
        Some(listed.map(Value::to_string).collect::<BTreeSet<_>>())
    };
    if let (Some(one), Some(two)) = (choices(tabled), choices(written)) {
        let other: Vec<String> = one.symmetric_difference(&two).map(|value| clip(value)).collect();
        return (!other.is_empty()).then(|| format!("has other values in the JSON Schema: {}", other.join(", ")));
    }
    let (one, two) = (tabled.get("items")?, written.get("items")?);
    let (one, two) = (kinds(root, one, 0)?, kinds(root, two, 0)?);
    (one != two).then(|| "has items of another type in the JSON Schema".to_owned())
}

/// The types a schema allows; `None` if that is not obvious.
fn kinds<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Option<BTreeSet<&'a str>> {
    if depth > 8 {
        return None;
    }
    if let Some(kind) = schema.get("type") {
        return match kind {
            Value::String(name) => Some(BTreeSet::from([name.as_str()])),
            Value::Array(names) => names.iter().map(Value::as_str).collect(),
            _ => None,
        };
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference)) {
        return kinds(root, target, depth + 1);
    }
    if let Some(branches) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        let branches: Option<Vec<_>> = branches.iter().take(16).map(|branch| kinds(root, branch, depth + 1)).collect();
        return Some(branches?.into_iter().flatten().collect());
    }
    let choices = schema.get("enum").and_then(Value::as_array)?;
    choices.iter().all(Value::is_string).then(|| BTreeSet::from(["string"]))
}
