//! Arguments that only a part of the root names, such as one of its forms or a condition.
//!
//! Clients give no arguments but those that are listed, so each must be, wherever it is named.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::branch::{Level, RestOfMembers, find};
use super::values::undeclared_member;
use crate::references::REFERENCES;

/// Schemas of one argument that are listed as its alternatives.
const MOST_VARIANTS: usize = 16;

/// Adds to the properties of a level those that only parts of the root declare or require, unless it refuses them;
/// whether there are any.
pub(super) fn add(root: &Value, level: &mut Level) -> bool {
    let mut found = FoundArguments::default();
    found.read(root);
    let required: HashSet<&str> = level.required().into_iter().collect();
    let is_listed = |name: &str| {
        required.contains(name) || level.property_map().is_some_and(|properties| properties.contains_key(name))
    };
    let is_refused = |name: &str| {
        let refuses = |rest: &RestOfMembers| rest.is_closed() && rest.patterns.is_empty();
        level.rests.iter().any(|rest| refuses(rest) && !rest.names.iter().any(|known| known == name))
    };
    // What holds for members that no part describes.
    let undeclared = undeclared_member(level).unwrap_or_else(|| json!({}));
    let mut added = Map::new();
    for (name, mut variants) in found.variants.into_iter().filter(|(name, _)| !is_listed(name) && !is_refused(name)) {
        let schema = match variants.len() {
            0 => undeclared.clone(),
            1 => variants.swap_remove(0).clone(),
            _ => json!({"anyOf": variants}),
        };
        added.insert(name.to_owned(), schema);
    }
    let has_some = !added.is_empty();
    if has_some && let Value::Object(properties) = level.members.entry("properties").or_insert_with(|| json!({})) {
        properties.extend(added);
    }
    has_some
}

#[derive(Default)]
struct FoundArguments<'a> {
    /// The schemas of each argument, in the order in which they were found.
    variants: Vec<(&'a str, Vec<&'a Value>)>,
    places: HashMap<&'a str, usize>,
}

impl<'a> FoundArguments<'a> {
    /// Reads every part that applies to the arguments themselves, once. A condition says when a rule holds and not what
    /// may be given, so only names are read from it.
    fn read(&mut self, root: &'a Value) {
        let mut seen: HashSet<(*const Value, bool)> = HashSet::new();
        let mut open = vec![(root, false)];
        while let Some((part, is_condition)) = open.pop() {
            let Value::Object(members) = part else { continue };
            if !seen.insert((std::ptr::from_ref(part), is_condition)) {
                continue;
            }
            for (keyword, member) in members {
                match (keyword.as_str(), member) {
                    ("properties", Value::Object(all)) => {
                        all.iter().for_each(|(name, schema)| self.found(name, Some(schema).filter(|_| !is_condition)));
                    }
                    ("required", Value::Array(names)) => self.found_all(names),
                    ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                        open.extend(parts.iter().rev().map(|part| (part, is_condition)));
                    }
                    ("if", condition) => open.push((condition, true)),
                    ("then" | "else", part) => open.push((part, is_condition)),
                    ("dependentSchemas" | "dependentRequired" | "dependencies", Value::Object(all)) => {
                        for (name, needed) in all {
                            self.found(name, None);
                            match needed {
                                Value::Array(names) => self.found_all(names),
                                part => open.push((part, is_condition)),
                            }
                        }
                    }
                    (word, Value::String(target)) if REFERENCES.contains(&word) => {
                        open.extend(find(root, target).map(|part| (part, is_condition)));
                    }
                    _ => {}
                }
            }
        }
    }

    fn found_all(&mut self, names: &'a [Value]) {
        names.iter().filter_map(Value::as_str).for_each(|name| self.found(name, None));
    }

    fn found(&mut self, name: &'a str, schema: Option<&'a Value>) {
        let place = *self.places.entry(name).or_insert(self.variants.len());
        if place == self.variants.len() {
            self.variants.push((name, Vec::new()));
        }
        let variants = &mut self.variants[place].1;
        let is_new = |schema: &&Value| variants.len() < MOST_VARIANTS && !variants.contains(schema);
        let new = schema.filter(is_new);
        variants.extend(new);
    }
}
