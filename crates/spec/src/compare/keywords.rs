//! What each keyword allows, compared on its own. Objects are in `members`.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Number, Value};
use sinew_tool::Digest;
use sinew_tool::text::clip;

use super::Impact;
use super::numbers::{divides, order};
use super::rewrite::depends_on_form;
use super::schema::{ANYTHING, ValueEffect, Walker};
use super::{combined, evaluated, members};
use crate::model::SchemaRole;

/// The kinds of values, as bits: null, boolean, integer, other number, string, array, object.
pub(super) type Kinds = u8;
pub(super) const INTEGER: Kinds = 4;
pub(super) const NUMBER: Kinds = 4 | 8;
pub(super) const STRING: Kinds = 16;
pub(super) const ARRAY: Kinds = 32;
pub(super) const OBJECT: Kinds = 64;
pub(super) const ALL: Kinds = 127;

pub(super) fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "title"
            | "description"
            | "examples"
            | "example"
            | "default"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "$comment"
            | "$schema"
            | "$id"
            | "$anchor"
            | "$dynamicAnchor"
            | "$defs"
            | "definitions"
            | "$vocabulary"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
    ) || key.starts_with("x-")
}

/// Whether a keyword decides which values are accepted. All others are text.
pub(super) fn is_assertion(key: &str) -> bool {
    matches!(
        key,
        "type"
            | "enum"
            | "const"
            | "multipleOf"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "format"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "contains"
            | "minContains"
            | "maxContains"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "propertyNames"
            | "required"
            | "minProperties"
            | "maxProperties"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "$ref"
            | "$dynamicRef"
            | "$recursiveRef"
    )
}

/// Compares two schemas that are objects or `true`; references have been followed already.
pub(super) fn compare<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, alone: bool) {
    let (before, after) = (kinds(old), kinds(new));
    types(walker, old, new, before, after);
    choices(walker, old, new, before, after);
    let shared = before & after;
    if shared & NUMBER != 0 {
        bounds(walker, old, new);
        multiple(walker, old, new);
    }
    if shared & STRING != 0 {
        count(walker, old, new, "minLength", "maxLength", "length");
        text(walker, old, new, "pattern");
    }
    text(walker, old, new, "format");
    if shared & ARRAY != 0 {
        count(walker, old, new, "minItems", "maxItems", "number of items");
        arrays(walker, old, new);
    }
    if shared & OBJECT != 0 {
        count(walker, old, new, "minProperties", "maxProperties", "number of members");
        members::compare(walker, old, new, alone);
    }
    combined::compare(walker, old, new, alone);
    for key in ["unevaluatedProperties", "unevaluatedItems"] {
        unevaluated(walker, old, new, key);
    }
    for key in ["$dynamicRef", "$recursiveRef", "dependencies"] {
        let (one, two) = (get(old, key), get(new, key));
        if one != two || one.is_some_and(|value| !walker.same(value, value)) {
            walker.report("schema-changed", ValueEffect::Unknown, format!("`{key}` or its target changed"));
        }
    }
    annotations(walker, old, new);
}

/// What is required of members or items that no other keyword describes.
fn unevaluated<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, key: &'static str) {
    let (one, two) = (get(old, key).unwrap_or(&ANYTHING), get(new, key).unwrap_or(&ANYTHING));
    walker.below(&[key], |walker| match (one, two) {
        (Value::Bool(false), Value::Bool(false)) => {}
        (_, Value::Bool(false)) => {
            walker.report("object-closed", ValueEffect::Narrows, "what is not described is refused now")
        }
        (Value::Bool(false), _) => {
            walker.report("object-opened", ValueEffect::Widens, "what is not described is allowed now")
        }
        _ => walker.walk(one, two, false),
    });
    if ![one, two].contains(&&ANYTHING) {
        evaluated::compare(walker, old, new, key);
    }
}

pub(super) fn get<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    member(schema.as_object()?, key)
}

pub(super) fn member<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    /// Up to here looking at every key is faster than hashing one, and comparing is mostly this.
    const FEW: usize = 16;
    match members.len() {
        0..=FEW => members.iter().find(|(own, _)| *own == key).map(|(_, value)| value),
        _ => members.get(key),
    }
}

/// Equality, without hashing where the keys come in the same order.
pub(super) fn equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Object(first), Value::Object(second)) => {
            let in_order = first.len() == second.len() && first.keys().eq(second.keys());
            if in_order { first.values().zip(second.values()).all(|(one, two)| equal(one, two)) } else { one == two }
        }
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len() && first.iter().zip(second).all(|(one, two)| equal(one, two))
        }
        _ => one == two,
    }
}

/// The kinds a schema's `type` names; all without one.
pub(super) fn stated_kinds(schema: &Value) -> Option<Kinds> {
    get(schema, "type").map_or(Some(ALL), kinds_named)
}

/// The kinds that the value of `type` names.
pub(super) fn kinds_named(kinds: &Value) -> Option<Kinds> {
    let bit = |name: &Value| match name.as_str() {
        Some("null") => Some(1),
        Some("boolean") => Some(2),
        Some("integer") => Some(INTEGER),
        Some("number") => Some(NUMBER),
        Some("string") => Some(STRING),
        Some("array") => Some(ARRAY),
        Some("object") => Some(OBJECT),
        _ => None,
    };
    match kinds {
        Value::Array(names) => names.iter().try_fold(0, |kinds, name| Some(kinds | bit(name)?)),
        name => bit(name),
    }
}

/// At most these kinds are accepted.
pub(super) fn kinds(schema: &Value) -> Kinds {
    let stated = stated_kinds(schema).unwrap_or(ALL);
    let chosen = allowed(schema).map_or(ALL, |values| values.iter().fold(0, |kinds, value| kinds | kind_of(value)));
    stated & chosen
}

pub(super) fn kind_of(value: &Value) -> Kinds {
    match value {
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() != 0.0) => 8,
        Value::Number(_) => INTEGER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The values that `enum` and `const` allow; `None` without either.
pub(super) fn allowed(schema: &Value) -> Option<Vec<&Value>> {
    let list = get(schema, "enum").and_then(Value::as_array).map(|values| values.iter().collect::<Vec<_>>());
    match (list, get(schema, "const")) {
        (list, None) => list,
        (None, Some(only)) => Some(vec![only]),
        (Some(list), Some(only)) => {
            let digest = Digest::of(only);
            Some(list.into_iter().filter(|value| Digest::of(value) == digest).collect())
        }
    }
}

/// The names of the types, as a schema lists them.
pub(super) fn names_of(kinds: Kinds) -> Vec<&'static str> {
    let names = [(1, "null"), (2, "boolean"), (STRING, "string"), (ARRAY, "array"), (OBJECT, "object")];
    let mut found: Vec<&str> = names.iter().filter(|(bit, _)| kinds & bit != 0).map(|(_, name)| *name).collect();
    match kinds & NUMBER {
        0 => {}
        INTEGER => found.push("integer"),
        _ => found.push("number"),
    }
    found
}

fn words(kinds: Kinds) -> String {
    if kinds == ALL { "anything".to_owned() } else { names_of(kinds).join(" or ") }
}

fn types(walker: &mut Walker<'_, '_>, old: &Value, new: &Value, before: Kinds, after: Kinds) {
    let (Some(one), Some(two)) = (stated_kinds(old), stated_kinds(new)) else {
        if get(old, "type") != get(new, "type") {
            walker.report("type-changed", ValueEffect::Differs, "`type` cannot be compared");
        }
        return;
    };
    let (kind, effect) = match (before & !two != 0, after & !one != 0) {
        (true, true) => ("type-changed", ValueEffect::Differs),
        (true, false) => ("type-narrowed", ValueEffect::Narrows),
        (false, true) => ("type-widened", ValueEffect::Widens),
        (false, false) => return,
    };
    walker.report(kind, effect, format!("the type changed from {} to {}", words(one), words(two)));
}

fn choices(walker: &mut Walker<'_, '_>, old: &Value, new: &Value, before: Kinds, after: Kinds) {
    let quote = |values: &[&Value]| {
        let shown: Vec<String> = values.iter().take(5).map(|value| clip(&value.to_string())).collect();
        let more = if values.len() > 5 { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    match (allowed(old), allowed(new)) {
        (None, None) => {}
        (None, Some(_)) => walker.report("enum-added", ValueEffect::Narrows, "only some values are allowed now"),
        (Some(_), None) => {
            walker.report("enum-removed", ValueEffect::Widens, "any value is allowed now, not only some")
        }
        (Some(one), Some(two)) => {
            let digests = |values: &[&Value]| values.iter().map(|value| Digest::of(value)).collect::<HashSet<_>>();
            let (first, second) = (digests(&one), digests(&two));
            let lost: Vec<&Value> = one
                .into_iter()
                .filter(|value| kind_of(value) & before != 0 && !second.contains(&Digest::of(value)))
                .collect();
            let gained: Vec<&Value> = two
                .into_iter()
                .filter(|value| kind_of(value) & after != 0 && !first.contains(&Digest::of(value)))
                .collect();
            if !lost.is_empty() {
                walker.report("enum-narrowed", ValueEffect::Narrows, format!("no longer allowed: {}", quote(&lost)));
            }
            if !gained.is_empty() {
                walker.report("enum-widened", ValueEffect::Widens, format!("newly allowed: {}", quote(&gained)));
            }
        }
    }
}

/// Reports how a limit moved. `tighter` means that the new one allows less.
fn moved(walker: &mut Walker<'_, '_>, kinds: (&'static str, &'static str), ordering: Option<Ordering>, what: &str) {
    match ordering {
        Some(Ordering::Equal) => {}
        Some(Ordering::Greater) => walker.report(kinds.0, ValueEffect::Narrows, format!("{what} is tighter")),
        Some(Ordering::Less) => walker.report(kinds.1, ValueEffect::Widens, format!("{what} is looser")),
        None => walker.report("range-changed", ValueEffect::Differs, format!("{what} cannot be compared")),
    }
}

fn bounds(walker: &mut Walker<'_, '_>, old: &Value, new: &Value) {
    for (plain, exclusive, is_lower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
    {
        if get(old, plain) == get(new, plain) && get(old, exclusive) == get(new, exclusive) {
            continue;
        }
        let what = if is_lower { "the smallest number allowed" } else { "the largest number allowed" };
        let bounds = (bound(old, plain, exclusive, is_lower), bound(new, plain, exclusive, is_lower));
        let ordering = match bounds {
            (Some(None), Some(None)) => Some(Ordering::Equal),
            (Some(None), Some(Some(_))) => Some(Ordering::Greater),
            (Some(Some(_)), Some(None)) => Some(Ordering::Less),
            (Some(Some((one, shut_one))), Some(Some((two, shut_two)))) => {
                let inward = order(two, one).map(|ordering| if is_lower { ordering } else { ordering.reverse() });
                inward.map(|ordering| ordering.then(shut_two.cmp(&shut_one)))
            }
            _ => None,
        };
        moved(walker, ("range-narrowed", "range-widened"), ordering, what);
    }
}

/// The effective bound on one side and whether it is itself excluded; the outer `None` for a value that is
/// not a number.
fn bound<'a>(schema: &'a Value, plain: &str, exclusive: &str, is_lower: bool) -> Option<Option<(&'a Number, bool)>> {
    let read = |key: &str| match get(schema, key) {
        None => Some(None),
        Some(Value::Number(number)) => Some(Some(number)),
        Some(_) => None,
    };
    Some(match (read(plain)?, read(exclusive)?) {
        (None, None) => None,
        (Some(one), None) => Some((one, false)),
        (None, Some(two)) => Some((two, true)),
        (Some(one), Some(two)) => {
            let ordering = order(one, two)?;
            let inner = if is_lower { Ordering::Greater } else { Ordering::Less };
            if ordering == inner { Some((one, false)) } else { Some((two, true)) }
        }
    })
}

fn multiple(walker: &mut Walker<'_, '_>, old: &Value, new: &Value) {
    let (one, two) = (get(old, "multipleOf"), get(new, "multipleOf"));
    if one == two {
        return;
    }
    let effect = match (one, two) {
        (None, _) => ValueEffect::Narrows,
        (_, None) => ValueEffect::Widens,
        (Some(Value::Number(one)), Some(Value::Number(two))) => match (divides(one, two), divides(two, one)) {
            (Some(true), Some(true)) => return,
            (Some(true), _) => ValueEffect::Narrows,
            (_, Some(true)) => ValueEffect::Widens,
            _ => ValueEffect::Differs,
        },
        _ => ValueEffect::Unknown,
    };
    walker.report("step-changed", effect, "`multipleOf` changed");
}

/// A pair of keywords that bound a count.
fn count(walker: &mut Walker<'_, '_>, old: &Value, new: &Value, least: &str, most: &str, noun: &str) {
    for (key, is_lower) in [(least, true), (most, false)] {
        if get(old, key) == get(new, key) {
            continue;
        }
        let what = format!("the {} {noun}", if is_lower { "smallest" } else { "largest" });
        let zero = Number::from(0);
        let read = |schema| match get(schema, key) {
            Some(Value::Number(number)) => Some(Some(number.clone())),
            Some(_) => None,
            // A minimum of 0 has no effect.
            None if is_lower => Some(Some(zero.clone())),
            None => Some(None),
        };
        let ordering = match (read(old), read(new)) {
            (Some(None), Some(None)) => Some(Ordering::Equal),
            (Some(None), Some(Some(_))) => Some(Ordering::Greater),
            (Some(Some(_)), Some(None)) => Some(Ordering::Less),
            (Some(Some(one)), Some(Some(two))) => {
                order(&two, &one).map(|ordering| if is_lower { ordering } else { ordering.reverse() })
            }
            _ => None,
        };
        moved(walker, ("range-narrowed", "range-widened"), ordering, &what);
    }
}

fn text(walker: &mut Walker<'_, '_>, old: &Value, new: &Value, key: &str) {
    let (one, two) = (get(old, key), get(new, key));
    let kind = if key == "format" { "format-changed" } else { "pattern-changed" };
    match (one, two) {
        _ if one == two => {}
        (None, Some(two)) => {
            walker.report(kind, ValueEffect::Narrows, format!("`{key}` {} is required now", clip(&two.to_string())))
        }
        (Some(one), None) => walker.report(
            kind,
            ValueEffect::Widens,
            format!("`{key}` {} is no longer required", clip(&one.to_string())),
        ),
        // Whether one pattern accepts all that another does would need a proof.
        _ if key == "pattern" => walker.report(kind, ValueEffect::Unknown, "`pattern` changed"),
        _ => walker.report(kind, ValueEffect::Differs, format!("`{key}` changed")),
    }
}

fn arrays<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value) {
    let unique = |schema: &Value| get(schema, "uniqueItems") == Some(&Value::Bool(true));
    match (unique(old), unique(new)) {
        (false, true) => walker.report("items-unique", ValueEffect::Narrows, "items must be unique now"),
        (true, false) => walker.report("items-unique", ValueEffect::Widens, "items may repeat now"),
        _ => {}
    }
    let (one, two) = (get(old, "items").unwrap_or(&ANYTHING), get(new, "items").unwrap_or(&ANYTHING));
    if one.is_array() || two.is_array() || get(old, "additionalItems") != get(new, "additionalItems") {
        if one != two || get(old, "additionalItems") != get(new, "additionalItems") {
            walker.report(
                "items-changed",
                ValueEffect::Unknown,
                "`items` as a list cannot be compared; use `prefixItems`",
            );
        }
        return;
    }
    walker.below(&["items"], |walker| walker.walk(one, two, true));
    let list =
        |schema: &'a Value| get(schema, "prefixItems").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    let (first, second) = (list(old), list(new));
    // Where nothing else describes items, `unevaluatedItems` is about all that have no schema of their own.
    let unevaluated = |schema: &'a Value| get(schema, "unevaluatedItems").filter(|_| get(schema, "items").is_none());
    let is_alone = |schema: &Value| {
        get(schema, "contains").is_none() && schema.as_object().is_none_or(|members| !depends_on_form(members))
    };
    let is_open = [old, new].map(|schema| unevaluated(schema).is_some() && !is_alone(schema));
    let rest = |schema, items| unevaluated(schema).filter(|_| is_alone(schema)).unwrap_or(items);
    let (one, two) = (rest(old, one), rest(new, two));
    for index in 0..first.len().max(second.len()) {
        // An item without its own schema has the one for all others.
        let (before, after) = (first.get(index).unwrap_or(one), second.get(index).unwrap_or(two));
        // Whether it was refused before depends on what else describes it.
        let is_unclear = index >= first.len() && is_open[0] || index >= second.len() && is_open[1];
        walker.below(&["prefixItems", &index.to_string()], |walker| {
            if is_unclear && !walker.same(before, after) {
                let message = "the item has a schema of its own in one version and `unevaluatedItems` in the other";
                walker.report("items-changed", ValueEffect::Unknown, message);
            } else {
                walker.walk(before, after, true);
            }
        });
    }
    contains(walker, old, new);
}

fn contains<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value) {
    match (get(old, "contains"), get(new, "contains")) {
        (None, None) => {}
        (None, Some(_)) => {
            walker.report("items-changed", ValueEffect::Narrows, "an item that matches `contains` is required now")
        }
        (Some(_), None) => {
            walker.report("items-changed", ValueEffect::Widens, "no item has to match `contains` any more")
        }
        (Some(one), Some(two)) if walker.same(one, two) => {
            let number = |schema, key, absent: Option<u64>| match get(schema, key) {
                None => Some(absent),
                Some(value) => value.as_u64().map(Some),
            };
            let least = (number(old, "minContains", Some(1)), number(new, "minContains", Some(1)));
            let most = (number(old, "maxContains", None), number(new, "maxContains", None));
            let (Some(least_old), Some(least_new), Some(most_old), Some(most_new)) = (least.0, least.1, most.0, most.1)
            else {
                return walker.report(
                    "items-changed",
                    ValueEffect::Differs,
                    "`minContains` or `maxContains` cannot be compared",
                );
            };
            let inward =
                |one: Option<u64>, two: Option<u64>| two.unwrap_or(u64::MAX).cmp(&one.unwrap_or(u64::MAX)).reverse();
            moved(walker, ("items-changed", "items-changed"), Some(least_new.cmp(&least_old)), "`minContains`");
            moved(walker, ("items-changed", "items-changed"), Some(inward(most_old, most_new)), "`maxContains`");
        }
        (Some(one), Some(two)) => contained(walker, old, new, one, two),
    }
}

/// `contains` with another schema: a wider one requires less.
fn contained<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, one: &'a Value, two: &'a Value) {
    let counts = ["minContains", "maxContains"].iter().any(|key| get(old, key).is_some() || get(new, key).is_some());
    let effect = match walker.try_pair(one, two, true, true) {
        (false, false) => return,
        _ if counts => ValueEffect::Unknown,
        (false, true) => ValueEffect::Widens,
        (true, false) => ValueEffect::Narrows,
        (true, true) => ValueEffect::Unknown,
    };
    walker.report("items-changed", effect, "`contains` changed");
}

/// How a text holds something else.
const CONTENT: [&str; 2] = ["contentEncoding", "contentMediaType"];

fn annotations(walker: &mut Walker<'_, '_>, old: &Value, new: &Value) {
    let input = walker.role == SchemaRole::Input;
    // Generators write `null` for "no default".
    let default = |schema| get(schema, "default").filter(|value| !value.is_null());
    match (default(old), default(new)) {
        (one, two) if one == two => {}
        (Some(one), Some(two)) => {
            let message = format!("the default changed from {} to {}", clip(&one.to_string()), clip(&two.to_string()));
            let impact = if input { Impact::Breaking } else { Impact::Cosmetic };
            walker.report_as("default-changed", ValueEffect::Says, impact, message);
        }
        (Some(one), None) => {
            let impact = if input { Impact::Breaking } else { Impact::Cosmetic };
            walker.report_as(
                "default-removed",
                ValueEffect::Says,
                impact,
                format!("the default {} is gone", clip(&one.to_string())),
            );
        }
        (None, Some(two)) => {
            let impact = if input { Impact::Additive } else { Impact::Cosmetic };
            walker.report_as(
                "default-added",
                ValueEffect::Says,
                impact,
                format!("the default is {} now", clip(&two.to_string())),
            );
        }
        (None, None) => {}
    }
    // Whoever writes one encoding is not understood by a reader of another one, although no validator looks.
    for key in CONTENT {
        if let (Some(one), Some(two)) = (get(old, key), get(new, key))
            && one != two
        {
            let message = format!("`{key}` changed from {} to {}", clip(&one.to_string()), clip(&two.to_string()));
            walker.report_as("content-changed", ValueEffect::Says, Impact::Undecided, message);
        }
    }
    for key in ["description", "title"] {
        if get(old, key) != get(new, key) {
            walker.report("words-changed", ValueEffect::Says, format!("the {key} changed"));
        }
    }
    let quiet = |key: &str| {
        !is_assertion(key) && !matches!(key, "description" | "title" | "default" | "$defs" | "definitions" | "$ref")
    };
    let changed = old.as_object().into_iter().flatten();
    let is_told = |key: &str| CONTENT.contains(&key) && get(new, key).is_some();
    let changed = changed.filter(|(key, value)| quiet(key) && !is_told(key) && get(new, key) != Some(value));
    let added = new.as_object().into_iter().flatten().filter(|(key, _)| quiet(key) && get(old, key).is_none());
    let (known, unknown): (Vec<&String>, Vec<&String>) =
        changed.chain(added).map(|(key, _)| key).partition(|key| is_annotation(key));
    // Models also read unknown keywords: they count as text, like a description.
    for (kind, keys) in [("annotation-changed", known), ("words-changed", unknown)] {
        let shown: Vec<String> = keys.iter().take(5).map(|key| format!("`{}`", clip(key))).collect();
        if !shown.is_empty() {
            walker.report(kind, ValueEffect::Says, format!("{} changed", shown.join(", ")));
        }
    }
}
