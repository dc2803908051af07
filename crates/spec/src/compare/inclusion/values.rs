//! Whether one value fulfils a statement.

use serde_json::{Map, Value, json};
use sinew_schema::{Cost, Meter, Rejection, Validator};
use sinew_tool::Digest;

use super::super::keywords::kind_of;
use super::super::numbers::{divides, order};
use super::super::plain::refers;
use super::super::schema::has_key;
use super::Prover;
use super::statements::{Counted, Statement};

impl Prover<'_> {
    /// `None` where that cannot be said.
    pub(super) fn is_fulfilled(&mut self, statement: &Statement<'_>, value: &Value) -> Option<bool> {
        if statement.about() & kind_of(value) == 0 {
            return Some(true);
        }
        match (statement, value) {
            (Statement::Kinds(kinds), _) => Some(kind_of(value) & kinds != 0),
            (Statement::Values(list), _) => Some(list.iter().any(|listed| same_value(listed, value))),
            (Statement::Limit { number, is_lower, is_shut }, Value::Number(value)) => {
                let order = order(value, number)?;
                Some(if order.is_eq() { !is_shut } else { order.is_gt() == *is_lower })
            }
            (Statement::Step(step), Value::Number(value)) => divides(step, value),
            (Statement::Count { of, number, is_lower }, _) => {
                let count = match (of, value) {
                    (Counted::Characters, Value::String(text)) => text.chars().count(),
                    (Counted::Items, Value::Array(items)) => items.len(),
                    (Counted::Members, Value::Object(members)) => members.len(),
                    _ => return None,
                } as u64;
                Some(if *is_lower { count >= *number } else { count <= *number })
            }
            (statement, _) => self.accepts(&schema_of(statement)?, value),
        }
    }

    /// Whether a schema accepts a value; `None` where the validator does not enforce all of the schema.
    pub(super) fn accepts(&mut self, schema: &Value, value: &Value) -> Option<bool> {
        if !self.spend(4) || refers(schema) || has_key(schema, "format") || has_key(schema, "dependencies") {
            return None;
        }
        let room =
            Cost { schemas: 1_000, patterns: 100, pattern_bytes: 10_000, pattern_states: 10_000, properties: 100 };
        let validator = Validator::compile(schema, room).ok()?;
        if !validator.unenforced().is_empty() {
            return None;
        }
        match validator.check(value, &mut Meter::new(10_000)) {
            Ok(()) => Some(true),
            Err(Rejection::Failed(_)) => Some(false),
            Err(Rejection::Exhausted) => None,
        }
    }
}

fn same_value(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::String(one), Value::String(two)) => one == two,
        _ => kind_of(one) == kind_of(two) && Digest::of(one) == Digest::of(two),
    }
}

/// The schema that says only this; `None` where a part of it would be missing.
fn schema_of(statement: &Statement<'_>) -> Option<Value> {
    Some(match statement {
        Statement::Unique => json!({"uniqueItems": true}),
        Statement::Items { first, rest } => json!({"prefixItems": first, "items": rest}),
        Statement::Contains { schema, least, most } => {
            let mut whole = json!({"contains": schema, "minContains": least});
            if let Some(most) = most {
                whole["maxContains"] = json!(most);
            }
            whole
        }
        Statement::Required(name) => json!({"required": [name]}),
        Statement::Member { name, schema } => json!({"properties": {*name: schema}}),
        Statement::Pattern { pattern, schema } => json!({"patternProperties": {*pattern: schema}}),
        Statement::Rest { within, schema } => {
            let mut whole = Map::from_iter([("additionalProperties".to_owned(), (*schema).clone())]);
            for key in ["properties", "patternProperties"] {
                let described = within.get(key).and_then(Value::as_object).into_iter().flatten();
                let described: Map<String, Value> = described.map(|(name, _)| (name.clone(), json!(true))).collect();
                whole.insert(key.to_owned(), Value::Object(described));
            }
            Value::Object(whole)
        }
        Statement::Names(schema) => json!({"propertyNames": schema}),
        Statement::Opaque { key: "pattern", value } => json!({"pattern": value}),
        _ => return None,
    })
}
