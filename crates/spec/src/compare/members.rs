//! Objects: `properties`, `patternProperties`, `additionalProperties`, `required` and what depends on
//! them, compared together because they depend on each other.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use sinew_tool::text::clip;

use super::Impact;
use super::budget::Looks;
use super::keywords::{equal, get, is_annotation, member};
use super::plain::plain;
use super::rewrite::is_surely_something;
use super::schema::{ANYTHING, ValueEffect, Walker};
use crate::model::SchemaRole;

type Names<'a> = BTreeSet<&'a str>;

pub(super) fn compare<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, alone: bool) {
    let (before, after) = (names(old), names(new));
    let patterns = patterns(walker, old, new);
    let renamed = renamed(&walker.budget.looks, old, new);
    properties(walker, old, new, alone, patterns, &renamed);
    for name in after.difference(&before) {
        // A new required parameter has been reported with the parameter, unless no value is possible.
        let is_new = known(old, name).is_none() && known(new, name).is_some_and(|schema| !is_nothing(walker, schema));
        if !is_new {
            walker.below(&["required"], |walker| {
                walker.report("required-added", ValueEffect::Narrows, format!("`{}` is required now", clip(name)));
            });
        }
    }
    for name in before.difference(&after) {
        if renamed.contains_key(name) {
            continue;
        }
        walker.below(&["required"], |walker| {
            let message = match walker.role {
                SchemaRole::Input => format!("`{}` is optional now", clip(name)),
                SchemaRole::Output => format!("`{}` may be missing now", clip(name)),
            };
            walker.report("required-removed", ValueEffect::Widens, message);
        });
    }
    let pair = |key| (get(old, key).unwrap_or(&ANYTHING), get(new, key).unwrap_or(&ANYTHING));
    let (one, two) = pair("propertyNames");
    walker.below(&["propertyNames"], |walker| walker.walk(one, two, false));
    let (one, two) = pair("additionalProperties");
    walker.below(&["additionalProperties"], |walker| match (one, two) {
        (Value::Bool(false), Value::Bool(false)) => {}
        (_, Value::Bool(false)) => {
            walker.report("object-closed", ValueEffect::Narrows, "members that are not described are refused now")
        }
        (Value::Bool(false), _) => {
            walker.report("object-opened", ValueEffect::Widens, "members that are not described are allowed now")
        }
        _ => walker.walk(one, two, true),
    });
    dependent(walker, old, new);
}

fn names(schema: &Value) -> Names<'_> {
    crate::model::required(schema).into_iter().collect()
}

fn known<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    member(crate::model::properties(schema)?, name)
}

/// Compares `patternProperties`. Returns whether there are any.
fn patterns<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value) -> bool {
    let map = |schema: &'a Value| get(schema, "patternProperties").and_then(Value::as_object);
    let (one, two) = (map(old), map(new));
    for (pattern, before) in one.into_iter().flatten() {
        match two.and_then(|two| two.get(pattern)) {
            Some(after) => walker.below(&["patternProperties", pattern], |walker| walker.walk(before, after, false)),
            None => report_pattern(walker, pattern, "is gone"),
        }
    }
    for (pattern, _) in
        two.into_iter().flatten().filter(|(pattern, _)| one.is_none_or(|one| !one.contains_key(*pattern)))
    {
        report_pattern(walker, pattern, "is new");
    }
    one.is_some_and(|map| !map.is_empty()) || two.is_some_and(|map| !map.is_empty())
}

fn report_pattern(walker: &mut Walker<'_, '_>, pattern: &str, what: &str) {
    walker.below(&["patternProperties"], |walker| {
        let message = format!("the rule for members named like `{}` {what}", clip(pattern));
        walker.report("pattern-changed", ValueEffect::Unknown, message);
    });
}

fn properties<'a>(
    walker: &mut Walker<'a, '_>,
    old: &'a Value,
    new: &'a Value,
    alone: bool,
    patterns: bool,
    renamed: &HashMap<&'a str, &'a str>,
) {
    let none = &*EMPTY;
    let one = crate::model::properties(old).unwrap_or(none);
    let two = crate::model::properties(new).unwrap_or(none);
    let noun = if walker.role == SchemaRole::Input { "parameter" } else { "field" };
    let needed = names(new);
    for (name, before) in one {
        if let Some(after) = member(two, name) {
            walker.below(&["properties", name], |walker| walker.walk(before, after, true));
            continue;
        }
        let shown = clip(name);
        if is_nothing(walker, before) {
            if get(new, "additionalProperties") != Some(&Value::Bool(false)) {
                walker.below(&["properties", name], |walker| {
                    walker.report("object-opened", ValueEffect::Widens, format!("`{shown}` is no longer refused"));
                });
            }
        } else if let Some(to) = renamed.get(name.as_str()) {
            walker.below(&["properties", name], |walker| {
                let message = format!("the {noun} `{shown}` was renamed to `{}`", clip(to));
                walker.report_as("renamed", ValueEffect::Differs, Impact::Breaking, message);
            });
        } else {
            walker.below(&["properties", name], |walker| {
                let kind = if noun == "parameter" { "parameter-removed" } else { "field-removed" };
                // Even if such members are still accepted, nobody uses them any more.
                walker.report_as(kind, ValueEffect::Differs, Impact::Breaking, format!("the {noun} `{shown}` is gone"));
            });
        }
    }
    // If unevaluated members are refused, additional ones are too.
    let rest = get(old, "additionalProperties").or_else(|| get(old, "unevaluatedProperties"));
    // The standard calls a new optional parameter additive. That is true for callers who send only
    // described members, if nothing else describes the same object.
    let lone = alone && !walker.strict && !patterns && !has_combinators(old) && !has_combinators(new);
    for (name, after) in two.iter().filter(|(name, _)| member(one, name).is_none()) {
        if renamed.values().any(|to| to == name) {
            continue;
        }
        if is_nothing(walker, after) {
            if rest != Some(&Value::Bool(false)) {
                walker.below(&["properties", name], |walker| {
                    walker.report("object-closed", ValueEffect::Narrows, format!("`{}` is refused now", clip(name)));
                });
            }
            continue;
        }
        let is_needed = needed.contains(name.as_str());
        let (narrows, widens) = match rest {
            _ if patterns => (true, true),
            Some(Value::Bool(false)) => (false, true),
            None if lone => (false, false),
            None => (!is_anything(after), false),
            Some(rest) => walker.try_pair(rest, after, true, false),
        };
        let effect = match (narrows || is_needed, widens) {
            (true, true) => ValueEffect::Differs,
            (true, false) => ValueEffect::Narrows,
            (false, true) => ValueEffect::Widens,
            // Nothing accepted before is refused, and what is described now was accepted before.
            (false, false) if walker.role == SchemaRole::Input => ValueEffect::Widens,
            (false, false) => ValueEffect::Narrows,
        };
        let shown = clip(name);
        walker.below(&["properties", name], |walker| match (noun, is_needed) {
            ("parameter", true) => {
                walker.report("required-parameter-added", effect, format!("the new parameter `{shown}` is required"));
            }
            ("parameter", false) => {
                walker.report("parameter-added", effect, format!("the new parameter `{shown}` is optional"))
            }
            _ => walker.report("field-added", effect, format!("the field `{shown}` is new")),
        });
    }
}

static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

fn is_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(map) => map.keys().all(|key| is_annotation(key)),
        _ => false,
    }
}

/// Whether a schema accepts no value, however it says so.
fn is_nothing(walker: &Walker<'_, '_>, schema: &Value) -> bool {
    !is_surely_something(schema) && plain(schema, &walker.budget.looks) == Some(Value::Bool(false))
}

fn has_combinators(schema: &Value) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"]
        .iter()
        .any(|key| get(schema, key).is_some())
}

/// A removed and an added member with the same schema: with the same description, or as the only
/// ones of their kind.
fn renamed<'a>(looks: &Looks, old: &'a Value, new: &'a Value) -> HashMap<&'a str, &'a str> {
    let (Some(one), Some(two)) = (crate::model::properties(old), crate::model::properties(new)) else {
        return HashMap::new();
    };
    let went: Vec<(&str, &Value)> = one
        .iter()
        .filter(|(name, _)| member(two, name).is_none())
        .map(|(name, schema)| (name.as_str(), schema))
        .collect();
    let came: Vec<(&str, &Value)> = two
        .iter()
        .filter(|(name, _)| member(one, name).is_none())
        .map(|(name, schema)| (name.as_str(), schema))
        .collect();
    if let ([(from, before)], [(to, after)]) = (went.as_slice(), came.as_slice())
        && names(old).contains(from) == names(new).contains(to)
        && is_same_but_for_words(before, after)
    {
        return HashMap::from([(*from, *to)]);
    }
    // Beyond this many, members were replaced, not renamed.
    if went.len() * came.len() > 10_000 {
        return HashMap::new();
    }
    let mut found = HashMap::new();
    for (from, schema) in went.into_iter().filter(|(_, schema)| schema.get("description").is_some()) {
        let mut alike = came.iter().filter(|(_, other)| looks.equal(schema, other));
        if let (Some((to, _)), None) = (alike.next(), alike.next())
            && !found.values().any(|other| other == to)
        {
            found.insert(from, *to);
        }
    }
    found
}

fn is_same_but_for_words(one: &Value, two: &Value) -> bool {
    let (Some(first), Some(second)) = (one.as_object(), two.as_object()) else { return one == two };
    let count = |members: &Map<String, Value>| members.keys().filter(|key| !is_annotation(key)).count();
    let mut asserted = first.iter().filter(|(key, _)| !is_annotation(key));
    count(first) == count(second) && asserted.all(|(key, value)| get(two, key).is_some_and(|other| equal(value, other)))
}

fn dependent<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value) {
    let map = |schema: &'a Value, key: &str| get(schema, key).and_then(Value::as_object).unwrap_or(&EMPTY);
    let (one, two) = (map(old, "dependentSchemas"), map(new, "dependentSchemas"));
    let keys: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    for key in keys {
        let (before, after) = (one.get(key).unwrap_or(&ANYTHING), two.get(key).unwrap_or(&ANYTHING));
        walker.below(&["dependentSchemas", key], |walker| walker.walk(before, after, false));
    }
    let (one, two) = (map(old, "dependentRequired"), map(new, "dependentRequired"));
    let list = |value: Option<&'a Value>| -> BTreeSet<&'a str> {
        value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let keys: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    for key in keys {
        let (before, after) = (list(one.get(key)), list(two.get(key)));
        walker.below(&["dependentRequired", key], |walker| {
            if after.difference(&before).next().is_some() {
                walker.report(
                    "required-added",
                    ValueEffect::Narrows,
                    format!("with `{}` more members are required", clip(key)),
                );
            }
            if before.difference(&after).next().is_some() {
                walker.report(
                    "required-removed",
                    ValueEffect::Widens,
                    format!("with `{}` fewer members are required", clip(key)),
                );
            }
        });
    }
}
