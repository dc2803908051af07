//! Taking back what keywords report where a proof says that it does not matter.

use serde_json::Value;

use super::Impact;
use super::inclusion::accepts_all_of;
use super::keywords::{allowed, get, is_annotation};
use super::schema::{Delta, ValueEffect, Walker, directions};
use crate::model::{SchemaRole, properties};

/// Looks again at what has been reported of one pair of schemas, from the `first` change on.
pub(super) fn take_back(walker: &mut Walker<'_, '_>, first: usize, old: &Value, new: &Value) {
    if walker.budget.proof_steps == 0 {
        return;
    }
    let (settled, open): (Vec<&Delta>, Vec<&Delta>) = {
        let are_separate = are_parts_separate(old) && are_parts_separate(new);
        let found = walker.deltas[first..].iter();
        let is_in_part = |delta: &&Delta| {
            let pointer = &delta.pointer[walker.pointer.len()..];
            delta.depth > walker.depth && ["/properties/", "/items"].iter().any(|part| pointer.starts_with(part))
        };
        found.partition(|delta| are_separate && is_in_part(delta))
    };
    let (settled, open) = (directions(settled), directions(open));
    let (narrows, widens) = (settled.0 || open.0, settled.1 || open.1);
    let (asks_narrows, asks_widens) = (open.0 && !settled.0, open.1 && !settled.1);
    if !(asks_narrows || asks_widens) || are_limits(old, new) {
        return;
    }
    let changed = walker.roots.changed;
    let mut accepts = |wide, narrow| accepts_all_of(wide, narrow, changed, walker.budget);
    let is_breaking = |direction, role| direction && walker.role == role && !walker.is_trial;
    let keeps_all = asks_narrows && accepts(new, old);
    if is_breaking(narrows && !keeps_all, SchemaRole::Input) {
        return;
    }
    let adds_nothing = asks_widens && accepts(old, new);
    if is_breaking(widens && !adds_nothing, SchemaRole::Output) {
        return;
    }
    let later = walker.deltas.split_off(first);
    let left = later.into_iter().filter_map(|delta| {
        let effect = remaining(delta.effect, keeps_all, adds_nothing);
        match (effect, listed_impact(walker, &delta, old, new)) {
            (Some(effect), _) if effect == delta.effect => Some(delta),
            // Whoever only asks for directions would not see a member that came or went.
            (_, Some(_)) if walker.is_trial => Some(delta),
            (Some(effect), Some(impact)) => Some(Delta { effect, impact, ..delta }),
            (Some(effect), None) => Some(Delta { effect, impact: effect.impact(walker.role), ..delta }),
            (None, Some(impact)) => Some(Delta { effect: ValueEffect::Says, impact, ..delta }),
            (None, None) => None,
        }
    });
    let left: Vec<Delta> = left.collect();
    walker.deltas.extend(left);
}

/// The effect without the directions that are refuted.
fn remaining(effect: ValueEffect, keeps_all: bool, adds_nothing: bool) -> Option<ValueEffect> {
    let narrows = effect.may_narrow() && !keeps_all;
    let widens = effect.may_widen() && !adds_nothing;
    match (effect, narrows, widens) {
        (ValueEffect::Says, ..) => Some(effect),
        (_, false, false) => None,
        (ValueEffect::Unknown, true, false) => Some(ValueEffect::MayNarrow),
        (ValueEffect::Unknown, false, true) => Some(ValueEffect::MayWiden),
        (ValueEffect::Differs, true, false) => Some(ValueEffect::Narrows),
        (ValueEffect::Differs, false, true) => Some(ValueEffect::Widens),
        _ => Some(effect),
    }
}

/// A member that came or went matters to people, even if the same values are accepted, unless the other schema
/// describes it at another place.
fn listed_impact(walker: &Walker<'_, '_>, delta: &Delta, old: &Value, new: &Value) -> Option<Impact> {
    let (other, impact) = match delta.kind {
        "parameter-added" | "required-parameter-added" | "field-added" => (old, Impact::Additive),
        "parameter-removed" | "field-removed" | "renamed" => (new, Impact::Breaking),
        _ => return None,
    };
    let (place, name) = delta.pointer[walker.pointer.len()..].rsplit_once("/properties/")?;
    let is_same_object = !["properties", "items", "prefixItems", "additionalProperties", "patternProperties"]
        .iter()
        .any(|key| place.split('/').any(|segment| segment == *key));
    let is_described = is_same_object && describes(other, &name.replace("~1", "/").replace("~0", "~"));
    (!is_described).then_some(impact)
}

/// Whether a schema, or one that it is made of, names this member.
fn describes(schema: &Value, name: &str) -> bool {
    let parts = |key| get(schema, key).and_then(Value::as_array).into_iter().flatten();
    let dependent = get(schema, "dependentSchemas").and_then(Value::as_object).into_iter().flatten();
    let names = get(schema, "propertyNames").and_then(allowed).into_iter().flatten();
    let values = allowed(schema).into_iter().flatten();
    properties(schema).is_some_and(|members| members.contains_key(name))
        || names.into_iter().any(|listed| listed == name)
        || values.into_iter().any(|value| value.get(name).is_some())
        || ["allOf", "anyOf", "oneOf"].into_iter().flat_map(parts).any(|part| describes(part, name))
        || ["if", "then", "else"].iter().filter_map(|key| get(schema, key)).any(|part| describes(part, name))
        || dependent.map(|(_, part)| part).any(|part| describes(part, name))
}

/// Whether a change of one member or of the items remains one, whatever the other keywords say.
fn are_parts_separate(schema: &Value) -> bool {
    let is_separate = |key: &String| {
        matches!(key.as_str(), "type" | "properties" | "required" | "additionalProperties" | "items")
            || is_annotation(key)
    };
    schema.as_object().is_none_or(|members| members.keys().all(is_separate))
}

/// Whether both have one type and only limits, of which each keyword alone says all there is to say.
fn are_limits(old: &Value, new: &Value) -> bool {
    let is_limit = |key: &str| {
        matches!(
            key,
            "type" | "minimum" | "maximum" | "minLength" | "maxLength" | "pattern" | "format" | "minItems" | "maxItems"
        ) || is_annotation(key)
    };
    let are_limits = |schema: &Value| schema.as_object().is_some_and(|members| members.keys().all(|key| is_limit(key)));
    get(old, "type").is_some_and(Value::is_string)
        && get(old, "type") == get(new, "type")
        && are_limits(old)
        && are_limits(new)
}
