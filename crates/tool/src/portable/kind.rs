//! The kind of value that a schema describes.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Direction;
use super::branch::Level;

/// The types that fit, `null` among them; none where anything does.
#[derive(Debug, PartialEq)]
pub(super) enum Kinds {
    Any,
    Of(Vec<&'static str>),
    /// The types and values of the schema have nothing in common.
    Never,
}

impl Kinds {
    pub(super) fn has_objects(&self) -> bool {
        match self {
            Kinds::Any => true,
            Kinds::Of(kinds) => kinds.contains(&"object"),
            Kinds::Never => false,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Kinds::Of(kinds) if kinds == &["null"])
    }
}

const ALL: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

pub(super) fn kinds(level: &Level, direction: Direction) -> Kinds {
    let known = |word: &str| ALL.into_iter().find(|kind| *kind == word);
    let mut kinds: Vec<&str> = match level.members.get("type") {
        Some(Value::String(kind)) => known(kind).into_iter().collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).filter_map(known).collect(),
        _ => Vec::new(),
    };
    let of_value = |value: &Value| ALL.into_iter().find(|kind| is_of(value, kind));
    if let Some(values) = values(level) {
        let mut of_values: Vec<&str> = values.iter().filter_map(of_value).collect();
        of_values.sort_unstable();
        of_values.dedup();
        let fits =
            |kind: &&str| kinds.is_empty() || kinds.contains(kind) || (*kind == "integer" && kinds.contains(&"number"));
        kinds = of_values.into_iter().filter(fits).collect();
        if kinds.is_empty() {
            return Kinds::Never;
        }
    }
    // Without a type every keyword lets other kinds of values pass, so only an input may be narrowed to what they mean.
    if kinds.is_empty() && direction == Direction::Input {
        let told = level.told.iter().map(|told| told.keyword.as_str());
        let rest = level.rests.first().map(|_| "additionalProperties");
        let keywords: Vec<&str> = level.members.keys().map(String::as_str).chain(told).chain(rest).collect();
        let implied = ["object", "array", "string", "number"]
            .into_iter()
            .find(|kind| keywords.iter().any(|keyword| belongs_to(keyword) == Some(kind)));
        kinds.extend(implied);
    }
    if kinds.contains(&"number") {
        kinds.retain(|kind| *kind != "integer");
    }
    kinds.dedup();
    if kinds.is_empty() {
        return Kinds::Any;
    }
    kinds.retain(|kind| !have_bounds_without_values(&level.members, kind));
    if kinds.is_empty() { Kinds::Never } else { Kinds::Of(kinds) }
}

/// Whether the bounds for a kind of value leave none: `"minimum": 2, "maximum": 0`, or for integers 0.2 and 0.8.
pub(super) fn have_bounds_without_values(members: &Map<String, Value>, kind: &str) -> bool {
    let bound = |keyword: &str| members.get(keyword).and_then(Value::as_f64);
    let pairs: &[(&str, &str)] = match kind {
        "integer" | "number" => &[
            ("minimum", "maximum"),
            ("minimum", "exclusiveMaximum"),
            ("exclusiveMinimum", "maximum"),
            ("exclusiveMinimum", "exclusiveMaximum"),
        ],
        "string" => &[("minLength", "maxLength")],
        "array" => &[("minItems", "maxItems")],
        "object" => &[("minProperties", "maxProperties")],
        _ => &[],
    };
    let is_without = |(least, most): &(&str, &str)| {
        let (Some(lower), Some(upper)) = (bound(least), bound(most)) else { return false };
        let (is_above, is_below) = (least.starts_with('e'), most.starts_with('e'));
        if kind != "integer" {
            return if is_above || is_below { lower >= upper } else { lower > upper };
        }
        let lowest = if is_above { lower.floor() + 1.0 } else { lower.ceil() };
        let highest = if is_below { upper.ceil() - 1.0 } else { upper.floor() };
        lowest > highest
    };
    pairs.iter().any(is_without)
}

/// Pairs of values of two lists that are compared.
const MOST_COMPARED_VALUES: usize = 10_000;

/// Whether no value fits both, as far as the two say it plainly.
pub(super) fn are_disjoint(root: &Value, one: &Level, two: &Level) -> bool {
    let (Kinds::Of(kinds_of_one), Kinds::Of(kinds_of_two)) =
        (kinds(one, Direction::Output), kinds(two, Direction::Output))
    else {
        return false;
    };
    let is_in = |kind: &&str, kinds: &[&str]| {
        kinds.contains(kind)
            || (*kind == "integer" && kinds.contains(&"number"))
            || (*kind == "number" && kinds.contains(&"integer"))
    };
    if !kinds_of_one.iter().any(|kind| is_in(kind, &kinds_of_two)) {
        return true;
    }
    let differ = |one: &Level, two: &Level| match (values(one), values(two)) {
        (Some(one), Some(two)) if one.len() * two.len() > MOST_COMPARED_VALUES => false,
        (Some(one), Some(two)) => !one.iter().any(|value| two.iter().any(|other| are_equal(value, other))),
        _ => false,
    };
    let member = |level: &Level, name: &str| {
        let schema = level.members.get("properties").and_then(|properties| properties.get(name))?;
        Some(Level::read(root, schema, &[]))
    };
    let tells_apart = |name: &&str| match (member(one, name), member(two, name)) {
        (Some(one), Some(two)) => differ(&one, &two),
        _ => false,
    };
    let are_objects = kinds_of_one == ["object"] && kinds_of_two == ["object"];
    let needed_by_two: HashSet<&str> = two.required().into_iter().collect();
    let both_need = |name: &&str| needed_by_two.contains(name);
    differ(one, two) || (are_objects && one.required().into_iter().filter(both_need).any(|name| tells_apart(&name)))
}

/// `1` and `1.0` are the same value.
fn are_equal(one: &Value, two: &Value) -> bool {
    one == two || (one.is_number() && one.as_f64() == two.as_f64())
}

/// The kind of value that a keyword applies to.
fn belongs_to(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies"
        | "unevaluatedProperties" => "object",
        "items" | "prefixItems" | "contains" | "minItems" | "maxItems" | "uniqueItems" | "unevaluatedItems" => "array",
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => "number",
        _ => return None,
    })
}

pub(super) fn concerns(keyword: &str, kind: &str) -> bool {
    match belongs_to(keyword) {
        Some("number") => matches!(kind, "number" | "integer"),
        // Some schemas use `format` for numbers too.
        Some("string") if keyword == "format" => matches!(kind, "string" | "number" | "integer"),
        Some(other) => other == kind,
        None => true,
    }
}

/// The values of `enum`, of the types that the schema allows.
pub(super) fn values(level: &Level) -> Option<Vec<Value>> {
    let Some(Value::Array(values)) = level.members.get("enum") else { return None };
    let is_allowed = |value: &Value| match level.members.get("type") {
        Some(Value::String(kind)) => is_of(value, kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind)),
        _ => true,
    };
    Some(values.iter().filter(|value| is_allowed(value)).cloned().collect())
}

/// The value, where only one is possible.
pub(super) fn only_value(level: &Level) -> Option<Value> {
    let [only] = <[Value; 1]>::try_from(values(level)?).ok()?;
    Some(only)
}

pub(super) fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}
