//! Entries in TOML. The library keeps comments, order and white space of what is not changed.

use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value as TomlValue};

use super::edit::EditProblem;

pub(super) fn read(text: &str) -> Result<Value, EditProblem> {
    Ok(table_to_json(parse(text)?.as_table()))
}

fn parse(text: &str) -> Result<DocumentMut, EditProblem> {
    text.parse::<DocumentMut>().map_err(|error| {
        let message = format!("this is not TOML: {}", error.message().replace('\n', ", "));
        match error.span() {
            Some(span) => EditProblem::at(text, span.start, message),
            None => EditProblem::new(message),
        }
    })
}

pub(super) fn edit(text: &str, servers: &str, name: &str, wanted: Option<&Value>) -> Result<String, EditProblem> {
    let mut document = parse(text)?;
    let not_a_table = || EditProblem::new(format!("`{servers}` is not a table"));
    match wanted {
        None => {
            if let Some(entries) = document.get_mut(servers) {
                entries.as_table_like_mut().ok_or_else(not_a_table)?.remove(name);
            }
        }
        Some(wanted) => {
            let holder = document.entry(servers).or_insert_with(|| {
                let mut table = Table::new();
                // Its entries have headers of their own.
                table.set_implicit(true);
                Item::Table(table)
            });
            let is_inline = holder.is_inline_table();
            let entries = holder.as_table_like_mut().ok_or_else(not_a_table)?;
            match entries.get_mut(name) {
                Some(old) => set(old, wanted),
                None if is_inline => drop(entries.insert(name, Item::Value(to_toml(wanted)))),
                None => {
                    let mut table = Table::new();
                    for (name, value) in wanted.as_object().into_iter().flatten() {
                        table.insert(name, Item::Value(to_toml(value)));
                    }
                    entries.insert(name, Item::Table(table));
                }
            }
        }
    }
    Ok(document.to_string())
}

/// Changes what differs.
fn set(item: &mut Item, wanted: &Value) {
    if item_to_json(item).as_ref() == Some(wanted) {
        return;
    }
    if let (Some(table), Some(wanted)) = (item.as_table_like_mut(), wanted.as_object()) {
        let gone: Vec<String> =
            table.iter().map(|(name, _)| name.to_owned()).filter(|name| !wanted.contains_key(name)).collect();
        gone.iter().for_each(|name| drop(table.remove(name)));
        for (name, value) in wanted {
            match table.get_mut(name) {
                Some(old) => set(old, value),
                None => drop(table.insert(name, Item::Value(to_toml(value)))),
            }
        }
        return;
    }
    let mut new = to_toml(wanted);
    if let Some(old) = item.as_value() {
        // The comment behind a value stays there.
        *new.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(new);
}

fn to_toml(value: &Value) -> TomlValue {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Array(items) => TomlValue::Array(items.iter().map(to_toml).collect::<Array>()),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.as_str(), to_toml(value)));
            TomlValue::InlineTable(members.collect::<InlineTable>())
        }
        Value::String(text) => text.as_str().into(),
        Value::Null => "".into(),
    }
}

fn table_to_json(table: &dyn TableLike) -> Value {
    let members = table.iter().filter_map(|(name, item)| Some((name.to_owned(), item_to_json(item)?)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn item_to_json(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Value(value) => Some(value_to_json(value)),
        Item::Table(table) => Some(table_to_json(table)),
        Item::ArrayOfTables(tables) => Some(Value::Array(tables.iter().map(|table| table_to_json(table)).collect())),
    }
}

fn value_to_json(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => json!(text.value()),
        TomlValue::Integer(number) => json!(number.value()),
        // Texts, because JSON has neither infinities nor times.
        TomlValue::Float(number) => json!(number.value().to_string()),
        TomlValue::Datetime(time) => json!(time.value().to_string()),
        TomlValue::Boolean(value) => json!(value.value()),
        TomlValue::Array(items) => Value::Array(items.iter().map(value_to_json).collect()),
        TomlValue::InlineTable(table) => table_to_json(table),
    }
}
