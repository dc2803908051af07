//! A schema in parts: statements about values of one type, and what combines schemas.

use serde_json::{Map, Number, Value};

use super::super::keywords::{ALL, ARRAY, Kinds, NUMBER, OBJECT, STRING, is_annotation, is_assertion, kinds_named};
use super::super::numbers::order;
use super::super::schema::ANYTHING;
use super::Prover;

/// All parts of a schema must be fulfilled.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Schema(&'a Value),
    Statement(Statement<'a>),
    All(&'a [Value]),
    Any(&'a [Value]),
    One(&'a [Value]),
    Not(&'a Value),
    If {
        condition: &'a Value,
        then: &'a Value,
        otherwise: &'a Value,
    },
    /// An object with this member fits the schema.
    WithMember {
        name: &'a str,
        schema: &'a Value,
    },
    WithMemberRequired {
        name: &'a str,
        names: &'a [Value],
    },
}

/// What one keyword says. Values of other types than those that it is about fulfil it.
#[derive(Clone, Copy)]
pub(super) enum Statement<'a> {
    Kinds(Kinds),
    Values(&'a [Value]),
    Limit {
        number: &'a Number,
        is_lower: bool,
        is_shut: bool,
    },
    Step(&'a Number),
    Count {
        of: Counted,
        number: u64,
        is_lower: bool,
    },
    Unique,
    Items {
        first: &'a [Value],
        rest: &'a Value,
    },
    Contains {
        schema: &'a Value,
        least: u64,
        most: Option<u64>,
    },
    Required(&'a str),
    Member {
        name: &'a str,
        schema: &'a Value,
    },
    Pattern {
        pattern: &'a str,
        schema: &'a Value,
    },
    /// Members that neither the properties nor the patterns of the schema they are in describe.
    Rest {
        within: &'a Map<String, Value>,
        schema: &'a Value,
    },
    Names(&'a Value),
    /// Only fulfilled where the same is known.
    Opaque {
        key: &'a str,
        value: &'a Value,
    },
    /// Depends on its neighbours, so that not even the same one fulfils it.
    Unprovable,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Characters,
    Items,
    Members,
}

impl Statement<'_> {
    /// The types of values it says something about.
    pub(super) fn about(&self) -> Kinds {
        match self {
            Statement::Limit { .. } | Statement::Step(_) => NUMBER,
            Statement::Count { of: Counted::Characters, .. } | Statement::Opaque { key: "pattern", .. } => STRING,
            Statement::Count { of: Counted::Items, .. }
            | Statement::Unique
            | Statement::Items { .. }
            | Statement::Contains { .. } => ARRAY,
            Statement::Count { of: Counted::Members, .. }
            | Statement::Required(_)
            | Statement::Member { .. }
            | Statement::Pattern { .. }
            | Statement::Rest { .. }
            | Statement::Names(_) => OBJECT,
            Statement::Kinds(_) | Statement::Values(_) | Statement::Opaque { .. } | Statement::Unprovable => ALL,
        }
    }
}

impl Prover<'_> {
    /// Whether two statements obviously say the same.
    pub(super) fn same_statement(&self, one: &Statement<'_>, two: &Statement<'_>) -> bool {
        match (one, two) {
            (Statement::Opaque { key, value }, Statement::Opaque { key: other, value: second }) => {
                key == other && value == second && !self.refers_to_changed(key, value)
            }
            (Statement::Unique, Statement::Unique) => true,
            (Statement::Step(one), Statement::Step(two)) => order(one, two).is_some_and(|order| order.is_eq()),
            (Statement::Required(one), Statement::Required(two)) => one == two,
            (Statement::Names(one), Statement::Names(two)) => self.same(one, two),
            (
                Statement::Contains { schema, least, most },
                Statement::Contains { schema: second, least: at_least, most: at_most },
            ) => least >= at_least && most == at_most && self.same(schema, second),
            (Statement::Pattern { pattern, schema }, Statement::Pattern { pattern: other, schema: second }) => {
                pattern == other && self.same(schema, second)
            }
            (Statement::Member { name, schema }, Statement::Member { name: other, schema: second }) => {
                name == other && self.same(schema, second)
            }
            _ => false,
        }
    }
}

/// The parts of a schema, without what is only text.
pub(super) fn parts(members: &Map<String, Value>) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    for (key, value) in members {
        let before = found.len();
        let is_understood = combined(members, key, value, &mut found)
            || of_object(members, key, value, &mut found)
            || of_other(members, key, value, &mut found);
        if !is_understood && is_assertion(key) && !is_annotation(key) {
            found.truncate(before);
            let is_local = key.starts_with("unevaluated") || matches!(key.as_str(), "additionalItems" | "dependencies");
            found.push(Part::Statement(if is_local {
                Statement::Unprovable
            } else {
                Statement::Opaque { key, value }
            }));
        }
    }
    found
}

/// Keywords that combine schemas. Returns whether it is one that makes sense; so do those below.
fn combined<'a>(members: &'a Map<String, Value>, key: &'a str, value: &'a Value, found: &mut Vec<Part<'a>>) -> bool {
    match (key, value) {
        ("allOf", Value::Array(list)) => found.push(Part::All(list)),
        ("anyOf", Value::Array(list)) => found.push(Part::Any(list)),
        ("oneOf", Value::Array(list)) => found.push(Part::One(list)),
        ("not", schema) => found.push(Part::Not(schema)),
        ("if", condition) => {
            let branch = |key| members.get(key).unwrap_or(&ANYTHING);
            found.push(Part::If { condition, then: branch("then"), otherwise: branch("else") });
        }
        ("then" | "else", _) => {}
        ("dependentSchemas", Value::Object(schemas)) => {
            found.extend(schemas.iter().map(|(name, schema)| Part::WithMember { name, schema }));
        }
        ("dependentRequired", Value::Object(lists)) => {
            for (name, list) in lists {
                let Some(names) = list.as_array().filter(|names| names.iter().all(Value::is_string)) else {
                    return false;
                };
                found.push(Part::WithMemberRequired { name, names });
            }
        }
        _ => return false,
    }
    true
}

fn of_object<'a>(within: &'a Map<String, Value>, key: &'a str, value: &'a Value, found: &mut Vec<Part<'a>>) -> bool {
    let mut state = |statement| found.push(Part::Statement(statement));
    match (key, value) {
        ("properties", Value::Object(schemas)) => {
            schemas.iter().for_each(|(name, schema)| state(Statement::Member { name, schema }));
        }
        ("patternProperties", Value::Object(schemas)) => {
            schemas.iter().for_each(|(pattern, schema)| state(Statement::Pattern { pattern, schema }));
        }
        ("additionalProperties", schema) => state(Statement::Rest { within, schema }),
        ("propertyNames", schema) => state(Statement::Names(schema)),
        ("required", Value::Array(names)) if names.iter().all(Value::is_string) => {
            names.iter().filter_map(Value::as_str).for_each(|name| state(Statement::Required(name)));
        }
        _ => return false,
    }
    true
}

fn of_other<'a>(members: &'a Map<String, Value>, key: &'a str, value: &'a Value, found: &mut Vec<Part<'a>>) -> bool {
    let count = |of, is_lower| value.as_u64().map(|number| Statement::Count { of, number, is_lower });
    let limit = |is_lower, is_shut| match value {
        Value::Number(number) => Some(Statement::Limit { number, is_lower, is_shut }),
        _ => None,
    };
    let statement = match (key, value) {
        ("type", kinds) => kinds_named(kinds).map(Statement::Kinds),
        ("enum", Value::Array(values)) => Some(Statement::Values(values)),
        ("const", value) => Some(Statement::Values(std::slice::from_ref(value))),
        ("minimum", _) => limit(true, false),
        ("exclusiveMinimum", _) => limit(true, true),
        ("maximum", _) => limit(false, false),
        ("exclusiveMaximum", _) => limit(false, true),
        ("multipleOf", Value::Number(step)) => Some(Statement::Step(step)),
        ("minLength", _) => count(Counted::Characters, true),
        ("maxLength", _) => count(Counted::Characters, false),
        ("minItems", _) => count(Counted::Items, true),
        ("maxItems", _) => count(Counted::Items, false),
        ("minProperties", _) => count(Counted::Members, true),
        ("maxProperties", _) => count(Counted::Members, false),
        ("uniqueItems", Value::Bool(true)) => Some(Statement::Unique),
        ("uniqueItems", Value::Bool(false)) | ("minContains" | "maxContains", _) => return true,
        ("contains", schema) => contains(members, schema),
        // Both together are one statement, which `prefixItems` makes where there is one.
        ("items", _) if members.contains_key("prefixItems") => return !value.is_array(),
        ("items", rest) if !rest.is_array() => Some(Statement::Items { first: &[], rest }),
        ("prefixItems", Value::Array(first)) => {
            let rest = members.get("items").filter(|rest| !rest.is_array()).unwrap_or(&ANYTHING);
            Some(Statement::Items { first, rest })
        }
        _ => None,
    };
    found.extend(statement.map(Part::Statement));
    statement.is_some()
}

fn contains<'a>(members: &'a Map<String, Value>, schema: &'a Value) -> Option<Statement<'a>> {
    let stated = |key| match members.get(key) {
        None => Some(None),
        Some(number) => number.as_u64().map(Some),
    };
    let (least, most) = (stated("minContains")?.unwrap_or(1), stated("maxContains")?);
    Some(Statement::Contains { schema, least, most })
}
