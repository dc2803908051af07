//! Schemas made of schemas: `allOf`, `anyOf`, `oneOf`, `not` and `if`.

use std::collections::HashSet;

use serde_json::Value;
use sinew_tool::Digest;

use super::budget::Looks;
use super::keywords::{OBJECT, allowed, get, is_annotation, kinds};
use super::plain::refers;
use super::schema::{ANYTHING, ValueEffect, Walker};

fn list<'a>(schema: &'a Value, key: &str) -> Option<&'a [Value]> {
    get(schema, key).and_then(Value::as_array).map(Vec::as_slice)
}

/// Whether this combinator is the only keyword, so that its branches stand alone.
fn is_only(schema: &Value, key: &str) -> bool {
    schema
        .as_object()
        .is_some_and(|map| map.keys().all(|other| other == key || other == "type" || is_annotation(other)))
}

/// Compares the combinators of two schemas. `alone` as for [`Walker::walk`].
pub(super) fn compare<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, alone: bool) {
    all_of(walker, old, new, alone);
    if exclusive_to_any(walker, old, new, alone) {
        return rest(walker, old, new);
    }
    for key in ["anyOf", "oneOf"] {
        match (list(old, key), list(new, key)) {
            (None, None) => {}
            (None, Some(two)) => {
                // Every value accepted before matches one of them.
                let fits = key == "anyOf" && two.iter().any(|branch| implies(walker, old, branch));
                if !fits {
                    walker.below(&[key], |walker| {
                        walker.report(
                            "alternatives-added",
                            ValueEffect::Narrows,
                            "a value must match one of several alternatives now",
                        );
                    });
                }
            }
            (Some(one), None) => {
                // Every value accepted now matched one of them.
                let fits = key == "anyOf"
                    && !refers(old)
                    && !refers(new)
                    && one.iter().any(|branch| implies(walker, new, branch));
                if !fits {
                    walker.below(&[key], |walker| {
                        walker.report(
                            "alternatives-removed",
                            ValueEffect::Widens,
                            "a value need not match one of the alternatives any more",
                        );
                    });
                }
            }
            (Some(one), Some(two)) => {
                let alone = alone && is_only(old, key) && is_only(new, key);
                walker.below(&[key], |walker| alternatives(walker, one, two, key == "oneOf", alone));
            }
        }
    }
    rest(walker, old, new);
}

fn rest<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value) {
    match (get(old, "not"), get(new, "not")) {
        (None, None) => {}
        (None, Some(_)) => walker.report("not-changed", ValueEffect::Narrows, "something is excluded now"),
        (Some(_), None) => walker.report("not-changed", ValueEffect::Widens, "nothing is excluded any more"),
        (Some(one), Some(two)) => match walker.try_pair(one, two, false, true) {
            (false, false) => {}
            (true, false) => walker.report("not-changed", ValueEffect::Widens, "less is excluded now"),
            (false, true) => walker.report("not-changed", ValueEffect::Narrows, "more is excluded now"),
            (true, true) => walker.report("not-changed", ValueEffect::Unknown, "something else is excluded now"),
        },
    }
    match (get(old, "if"), get(new, "if")) {
        (None, None) => {}
        (None, Some(_)) => walker.report("condition-changed", ValueEffect::Narrows, "a condition was added"),
        (Some(_), None) => walker.report("condition-changed", ValueEffect::Widens, "a condition was removed"),
        (Some(one), Some(two)) if walker.same(one, two) => {
            for key in ["then", "else"] {
                let pair = (get(old, key).unwrap_or(&ANYTHING), get(new, key).unwrap_or(&ANYTHING));
                walker.below(&[key], |walker| walker.walk(pair.0, pair.1, false));
            }
        }
        _ => walker.report("condition-changed", ValueEffect::Unknown, "a condition changed"),
    }
}

/// `oneOf` that became `anyOf`, or the reverse: the same alternatives, of which several may fit now or
/// no longer. Returns whether that is what happened.
fn exclusive_to_any<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, alone: bool) -> bool {
    for (from, to, effect, message) in [
        ("oneOf", "anyOf", ValueEffect::Widens, "a value may match several of the alternatives now"),
        ("anyOf", "oneOf", ValueEffect::Narrows, "a value may match only one of the alternatives now"),
    ] {
        let (Some(one), Some(two)) = (list(old, from), list(new, to)) else { continue };
        if list(old, to).is_some() || list(new, from).is_some() {
            continue;
        }
        // Where the alternatives of `oneOf` exclude each other, it is the same as `anyOf`.
        let faces: Vec<&Value> = match from {
            "oneOf" => one.iter().map(|branch| walker.old_face(branch)).collect(),
            _ => two.iter().map(|branch| walker.new_face(branch)).collect(),
        };
        let apart = disjoint(&walker.budget.looks, &faces);
        let alone = alone && is_only(old, from) && is_only(new, to);
        walker.below(&[to], |walker| {
            if !apart {
                walker.report("alternatives-changed", effect, message);
            }
            alternatives(walker, one, two, false, alone);
        });
        return true;
    }
    false
}

/// Whether every value that a schema accepts is accepted by a branch, as far as that is obvious:
/// the schema has each keyword of the branch as well.
fn implies<'a>(walker: &mut Walker<'a, '_>, schema: &'a Value, branch: &'a Value) -> bool {
    let members = match branch {
        Value::Bool(open) => return *open,
        Value::Object(members) => members,
        _ => return false,
    };
    members.iter().all(|(key, asked)| match key.as_str() {
        key if is_annotation(key) => true,
        "type" => kinds(schema) & !kinds(branch) == 0,
        "required" => {
            let needed: HashSet<&str> = crate::model::required(schema).into_iter().collect();
            crate::model::required(branch).iter().all(|name| needed.contains(name))
        }
        "properties" => asked.as_object().is_some_and(|asked| {
            asked.iter().all(|(name, after)| {
                let before = crate::model::properties(schema).and_then(|known| known.get(name));
                before.is_some_and(|before| !walker.try_pair(before, after, true, true).0)
            })
        }),
        key => get(schema, key).is_some_and(|own| own == asked && walker.same(own, asked)),
    })
}

fn all_of<'a>(walker: &mut Walker<'a, '_>, old: &'a Value, new: &'a Value, alone: bool) {
    let (one, two) = (list(old, "allOf").unwrap_or_default(), list(new, "allOf").unwrap_or_default());
    let reordered = one.len() == two.len()
        && one.iter().all(|part| two.iter().any(|other| walker.same(part, other)))
        && two.iter().all(|part| one.iter().any(|other| walker.same(other, part)));
    if reordered {
        return;
    }
    if one.len() == two.len() {
        let alone = alone && one.len() == 1 && is_only(old, "allOf") && is_only(new, "allOf");
        for (index, (before, after)) in one.iter().zip(two).enumerate() {
            walker.below(&["allOf", &index.to_string()], |walker| walker.walk(before, after, alone));
        }
        return;
    }
    let lost = one.iter().any(|part| !two.iter().any(|other| walker.same(part, other)));
    let gained = two.iter().any(|part| !one.iter().any(|other| walker.same(other, part)));
    walker.below(&["allOf"], |walker| {
        if lost {
            walker.report("conditions-removed", ValueEffect::Widens, "fewer conditions must hold");
        }
        if gained {
            walker.report("conditions-added", ValueEffect::Narrows, "more conditions must hold");
        }
    });
}

/// More pairs of alternatives than this are not tried.
const MAX_PAIRS: usize = 400;

fn alternatives<'a>(walker: &mut Walker<'a, '_>, one: &'a [Value], two: &'a [Value], exclusive: bool, alone: bool) {
    if one.len() * two.len() > MAX_PAIRS {
        if one.len() != two.len() || !one.iter().zip(two).all(|(before, after)| walker.same(before, after)) {
            walker.report("alternatives-changed", ValueEffect::Unknown, "too many alternatives to compare");
        }
        return;
    }
    let left: Vec<usize> = (0..one.len()).filter(|i| !two.iter().any(|after| walker.same(&one[*i], after))).collect();
    let right: Vec<usize> =
        (0..two.len()).filter(|i| !one.iter().any(|before| walker.same(before, &two[*i]))).collect();
    let moved = !left.is_empty() || !right.is_empty() || one.len() != two.len();
    // A value that matches an alternative listed twice matches two.
    let repeats = |list: &[Value], part: &Value| list.iter().filter(|other| walker.same(part, other)).count();
    let repeats_changed = || one.iter().any(|part| repeats(one, part) != repeats(two, part));
    if !(moved || exclusive && repeats_changed()) {
        return;
    }
    if let ([before], [after]) = (left.as_slice(), right.as_slice()) {
        walker.below(&[&after.to_string()], |walker| walker.walk(&one[*before], &two[*after], alone));
    } else {
        for index in left {
            let kept = two.iter().any(|after| !walker.try_pair(&one[index], after, alone, false).0);
            if !kept {
                walker.report(
                    "alternative-removed",
                    ValueEffect::Narrows,
                    format!("alternative {index} was removed or is narrower"),
                );
            }
        }
        for index in right {
            let known = one.iter().any(|before| !walker.try_pair(before, &two[index], alone, false).1);
            if !known {
                let message = format!("alternative {index} is new or wider");
                walker.below(&[&index.to_string()], |walker| {
                    walker.report("alternative-added", ValueEffect::Widens, message)
                });
            }
        }
    }
    if exclusive {
        // If alternatives may overlap, a wider one can exclude values that another one accepted.
        let faces: Vec<&Value> = two.iter().map(|branch| walker.new_face(branch)).collect();
        if !disjoint(&walker.budget.looks, &faces) {
            walker.report("alternatives-changed", ValueEffect::MayNarrow, "alternatives that may overlap changed");
        }
        let faces: Vec<&Value> = one.iter().map(|branch| walker.old_face(branch)).collect();
        if !disjoint(&walker.budget.looks, &faces) {
            walker.report("alternatives-changed", ValueEffect::MayWiden, "alternatives that may overlap changed");
        }
    }
}

/// Whether no value can match two of the schemas: different types, different values, or a required member
/// with different values.
fn disjoint(looks: &Looks, branches: &[&Value]) -> bool {
    let apart = |one: &Value, two: &Value| {
        let choices = |one: &Value, two: &Value| match (allowed(one), allowed(two)) {
            (Some(one), Some(two)) => {
                let two: HashSet<Digest> = two.iter().map(|value| Digest::of(value)).collect();
                one.iter().all(|value| !two.contains(&Digest::of(value)))
            }
            _ => false,
        };
        let both_objects = kinds(one) == OBJECT && kinds(two) == OBJECT;
        let told_apart = || {
            let needed: HashSet<&str> = crate::model::required(two).into_iter().collect();
            let member = |schema, name: &str| crate::model::properties(schema)?.get(name);
            crate::model::required(one)
                .iter()
                .filter(|name| needed.contains(**name))
                .any(|name| member(one, name).zip(member(two, name)).is_some_and(|(one, two)| choices(one, two)))
        };
        kinds(one) & kinds(two) == 0 || choices(one, two) || both_objects && told_apart()
    };
    let is_affordable = |part: &&Value| looks.spend_whole(part);
    branches.len() <= 32
        && (0..branches.len()).all(|i| branches[..=i].iter().all(is_affordable))
        && (0..branches.len()).all(|i| (0..i).all(|j| apart(branches[i], branches[j])))
}
