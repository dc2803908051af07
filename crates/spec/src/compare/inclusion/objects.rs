//! Objects: which members there must be and can be, and what is known of each.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::rewrite::MATCHES_ALL;
use super::numbers::counts;
use super::statements::{Counted, Statement};
use super::{NOTHING, Prover};

/// What is known of an object that fulfils none of the goals, as far as it has to do with names.
struct Members<'f, 'a> {
    facts: &'f [Statement<'a>],
    required: BTreeSet<&'a str>,
    absent: BTreeSet<&'a str>,
    /// All names that a statement mentions.
    names: BTreeSet<&'a str>,
    low: u64,
    high: Option<u64>,
}

impl<'f, 'a> Members<'f, 'a> {
    fn new(facts: &'f [Statement<'a>], goals: &[Statement<'a>]) -> Members<'f, 'a> {
        let (low, high) = counts(facts, goals, Counted::Members);
        let required = |statement: &Statement<'a>| match statement {
            Statement::Required(name) => Some(*name),
            _ => None,
        };
        let needed: BTreeSet<&'a str> = facts.iter().filter_map(required).collect();
        let absent: BTreeSet<&'a str> = goals.iter().filter_map(required).collect();
        let mut names: BTreeSet<&'a str> = needed.union(&absent).copied().collect();
        for statement in facts.iter().chain(goals) {
            match statement {
                Statement::Member { name, .. } => {
                    names.insert(name);
                }
                Statement::Rest { within, .. } => names.extend(keys(within, "properties")),
                Statement::Names(schema) => names.extend(listed_names(schema)),
                _ => {}
            }
        }
        let low = low.max(needed.len() as u64);
        Members { facts, required: needed, absent, names, low, high }
    }

    fn is_full(&self) -> bool {
        self.high.is_some_and(|high| high <= self.required.len() as u64)
    }

    /// The schemas for members that no statement names and none of these patterns matches; with `matched`, for
    /// those that this pattern matches.
    fn known_of_others(&self, unmatched: &[&str], matched: Option<&str>) -> Vec<&'a Value> {
        if self.is_full() {
            return vec![&NOTHING];
        }
        let known = self.facts.iter().filter_map(|fact| match fact {
            Statement::Rest { within, schema } => {
                keys(within, "patternProperties").all(|pattern| unmatched.contains(&pattern)).then_some(*schema)
            }
            Statement::Pattern { pattern, schema } => {
                (matched == Some(*pattern) || MATCHES_ALL.contains(pattern)).then_some(*schema)
            }
            Statement::Names(schema) => is_list(schema).then_some(&NOTHING),
            _ => None,
        });
        known.collect()
    }
}

impl Prover<'_> {
    pub(super) fn is_evident_for_objects<'a>(&mut self, facts: &[Statement<'a>], goals: &[Statement<'a>]) -> bool {
        let members = Members::new(facts, goals);
        if members.high == Some(0) && members.low == 0 {
            return self.is_settled(facts, goals, &Value::Object(Map::new()));
        }
        if !self.spend(members.names.len() / 4) {
            return false;
        }
        if self.is_impossible(&members) {
            return true;
        }
        goals.iter().any(|goal| match goal {
            Statement::Member { name, .. } => {
                let wanted = goals.iter().filter_map(|goal| match goal {
                    Statement::Member { name: other, schema } if other == name => Some(*schema),
                    _ => None,
                });
                let known = self.known_of(&members, name);
                self.follows(known, wanted.collect::<Vec<_>>())
            }
            Statement::Rest { within, schema } => {
                let described: BTreeSet<&str> = keys(within, "properties").collect();
                let names: Vec<&str> = members.names.difference(&described).copied().collect();
                let patterns: Vec<&str> = keys(within, "patternProperties").collect();
                names.into_iter().all(|name| self.fits(&members, name, schema))
                    && self.others_fit(&members, &patterns, None, schema)
            }
            Statement::Pattern { pattern, schema } => {
                let names: Vec<&str> = members.names.iter().copied().collect();
                names
                    .into_iter()
                    .all(|name| self.matches(pattern, name) == Some(false) || self.fits(&members, name, schema))
                    && self.others_fit(&members, &[], Some(pattern), schema)
            }
            Statement::Names(schema) => {
                let names: Vec<&str> = members.names.iter().copied().collect();
                names.into_iter().all(|name| {
                    self.accepts(schema, &Value::from(name)) == Some(true) || self.fits(&members, name, &NOTHING)
                }) && (self.others_fit(&members, &[], None, &NOTHING) || self.follows(known_names(facts), [*schema]))
            }
            _ => false,
        })
    }

    /// Whether there is no such object.
    fn is_impossible(&mut self, members: &Members<'_, '_>) -> bool {
        if members.required.intersection(&members.absent).next().is_some()
            || members.high.is_some_and(|high| members.low > high)
        {
            return true;
        }
        let required: Vec<&str> = members.required.iter().copied().collect();
        if required.into_iter().any(|name| {
            let known = self.known_of(members, name);
            // A single schema that accepts nothing says so.
            if known.len() > 1 { self.follows(known, [&NOTHING]) } else { known.contains(&&NOTHING) }
        }) {
            return true;
        }
        if members.low == members.required.len() as u64 {
            return false;
        }
        let names: Vec<&str> = members.names.iter().copied().collect();
        let possible = names.into_iter().filter(|name| !self.known_of(members, name).contains(&&NOTHING)).count();
        (possible as u64) < members.low && members.known_of_others(&[], None).contains(&&NOTHING)
    }

    fn fits<'a>(&mut self, members: &Members<'_, 'a>, name: &str, schema: &'a Value) -> bool {
        let known = self.known_of(members, name);
        self.follows(known, [schema])
    }

    /// Whether members that no statement names fit a schema.
    fn others_fit<'a>(
        &mut self,
        members: &Members<'_, 'a>,
        unmatched: &[&str],
        matched: Option<&str>,
        wanted: &'a Value,
    ) -> bool {
        let known = members.known_of_others(unmatched, matched);
        let mut fits = |more: Option<&'a Value>| self.follows(known.iter().copied().chain(more), [wanted]);
        if fits(None) {
            return true;
        }
        // A name matches one of the patterns of a schema, or falls under its rest.
        let patterns_of = |within: &'a Map<String, Value>| within.get("patternProperties").and_then(Value::as_object);
        members.facts.iter().any(|fact| match fact {
            Statement::Rest { within, schema } => patterns_of(within)
                .is_some_and(|patterns| fits(Some(schema)) && patterns.values().all(|schema| fits(Some(schema)))),
            _ => false,
        })
    }

    /// The schemas for the member of this name.
    fn known_of<'a>(&mut self, members: &Members<'_, 'a>, name: &str) -> Vec<&'a Value> {
        if members.absent.contains(name) || members.is_full() && !members.required.contains(name) {
            return vec![&NOTHING];
        }
        let known = members.facts.iter().filter_map(|fact| match fact {
            Statement::Member { name: other, schema } => (*other == name).then_some(*schema),
            Statement::Pattern { pattern, schema } => (self.matches(pattern, name) == Some(true)).then_some(*schema),
            Statement::Rest { within, schema } => {
                let is_described = keys(within, "properties").any(|other| other == name)
                    || keys(within, "patternProperties").any(|pattern| self.matches(pattern, name) != Some(false));
                (!is_described).then_some(*schema)
            }
            Statement::Names(schema) => (self.accepts(schema, &Value::from(name)) == Some(false)).then_some(&NOTHING),
            _ => None,
        });
        known.collect()
    }

    fn matches(&mut self, pattern: &str, name: &str) -> Option<bool> {
        self.accepts(&serde_json::json!({ "pattern": pattern }), &Value::from(name))
    }
}

fn keys<'a>(within: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    within.get(key).and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str())
}

/// Whether `propertyNames` lists all names there can be.
fn is_list(schema: &Value) -> bool {
    *schema == NOTHING || schema.get("enum").is_some_and(Value::is_array) || schema.get("const").is_some()
}

fn listed_names(schema: &Value) -> impl Iterator<Item = &str> {
    let list = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    list.chain(schema.get("const")).filter_map(Value::as_str)
}

/// The schemas for all names.
fn known_names<'a>(facts: &[Statement<'a>]) -> Vec<&'a Value> {
    static TEXT: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| serde_json::json!({"type": "string"}));
    let names = facts.iter().filter_map(|fact| match fact {
        Statement::Names(schema) => Some(*schema),
        _ => None,
    });
    names.chain([&*TEXT]).collect()
}
