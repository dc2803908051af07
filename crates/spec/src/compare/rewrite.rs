//! Rewrites of one schema whose parts are in plain form already. The schema accepts exactly the same
//! values afterwards.

use std::collections::HashSet;

use serde_json::{Map, Number, Value, json};
use sinew_schema::{Cost, Meter, Rejection, Validator};
use sinew_tool::Digest;

use super::keywords::{
    INTEGER, NUMBER, allowed, is_annotation, kind_of, kinds as kinds_of, names_of, order, stated_kinds,
};
use super::plain::refers;

type Keywords = Map<String, Value>;

/// Applies all rewrites until nothing changes: one may enable another.
pub(super) fn all(mut members: Keywords) -> Value {
    if members.iter().all(|(key, value)| forms(&members, key, value) == Forms::One) {
        return Value::Object(members);
    }
    let has_parts = |key: &String| {
        matches!(key.as_str(), "allOf" | "anyOf" | "oneOf" | "not" | "if" | "dependencies" | "dependentSchemas")
            || key.starts_with("unevaluated")
    };
    if !members.keys().any(has_parts) {
        return once(members);
    }
    for _ in 0..4 {
        let before = members.clone();
        members = match once(members) {
            Value::Object(members) => members,
            other => return other,
        };
        if members == before {
            break;
        }
    }
    Value::Object(members)
}

/// In how many ways the meaning of a keyword can be written.
#[derive(PartialEq, Eq)]
enum Forms {
    One,
    /// In several, all of which [`super::keywords`] compares alike.
    ComparedAlike,
    Several,
}

/// The only place that knows which keywords the rewrites below leave alone.
fn forms(members: &Keywords, key: &str, value: &Value) -> Forms {
    let has_one = match key {
        "properties" | "description" | "title" | "format" | "pattern" | "maxLength" | "maxItems" | "maxProperties"
        | "default" | "examples" => true,
        "type" => value.is_string(),
        "required" => value.as_array().is_some_and(|names| !names.is_empty()),
        "minimum" | "maximum" => value.is_i64(),
        "items" | "additionalProperties" => !value.is_array() && !value.is_boolean(),
        "minLength" | "minItems" | "minProperties" => value.as_u64().is_some_and(|least| least > 0),
        "enum" => {
            let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let are_texts = !values.is_empty() && values.iter().all(Value::is_string);
            let is_stated = members.get("type").is_some_and(|kind| kind == "string");
            return if are_texts && is_stated { Forms::ComparedAlike } else { Forms::Several };
        }
        _ => false,
    };
    if has_one { Forms::One } else { Forms::Several }
}

/// Whether rewriting a schema would not help a comparison.
pub(super) fn is_plain(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    members.iter().all(|(key, value)| {
        let are_parts_plain = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values().all(is_plain),
            ("items" | "additionalProperties", Value::Object(_)) => is_plain(value),
            _ => true,
        };
        are_parts_plain && forms(members, key, value) != Forms::Several
    })
}

fn once(mut members: Keywords) -> Value {
    tuples(&mut members);
    dependencies(&mut members);
    idle(&mut members);
    unevaluated(&mut members);
    whole_numbers(&mut members);
    integers(&mut members);
    if negation(&mut members) {
        return Value::Bool(false);
    }
    all_of(&mut members);
    alternatives(&mut members);
    choices(&mut members);
    exclusive(&mut members);
    kinds(&mut members);
    let members = alone(members);
    if is_never(&members) { Value::Bool(false) } else { Value::Object(members) }
}

fn is_true(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(members) => members.keys().all(|key| is_annotation(key)),
        _ => false,
    }
}

/// Two schemas of which both must hold.
pub(super) fn both(members: Keywords, other: Value) -> Value {
    if members.keys().all(|key| is_annotation(key))
        && let Value::Object(mut whole) = other
    {
        // Annotations beside a reference take precedence over those of its target.
        whole.extend(members);
        return Value::Object(whole);
    }
    let mut members = members;
    let list = members.entry("allOf").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(other);
    }
    Value::Object(members)
}

/// `items` as a list, of older drafts, is `prefixItems`; what followed it is `items`.
fn tuples(members: &mut Keywords) {
    if members.get("items").is_some_and(Value::is_array) && !members.contains_key("prefixItems") {
        let items = members.shift_remove("items").unwrap_or_default();
        members.insert("prefixItems".to_owned(), items);
        if let Some(rest) = members.shift_remove("additionalItems") {
            members.insert("items".to_owned(), rest);
        }
    } else if !members.get("items").is_some_and(Value::is_array) {
        // Beside one schema for all items it has no effect.
        members.shift_remove("additionalItems");
    }
    short_arrays(members);
    if members.get("items").is_some_and(is_true) {
        members.shift_remove("items");
    }
    if members.get("prefixItems").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        members.shift_remove("prefixItems");
    }
}

/// No further items is a largest number of items, and what would be beyond it does not matter.
fn short_arrays(members: &mut Keywords) {
    let prefix = members.get("prefixItems").map_or(Some(0), |prefix| prefix.as_array().map(Vec::len));
    let Some(prefix) = prefix.filter(|_| !members.keys().any(|key| key.starts_with("unevaluated"))) else { return };
    let stated = members.get("maxItems").map(Value::as_u64);
    let closed = (members.get("items") == Some(&Value::Bool(false))).then_some(prefix as u64);
    let most = match (stated, closed) {
        (Some(None), _) | (None, None) => return,
        (Some(Some(most)), closed) => closed.map_or(most, |closed| most.min(closed)),
        (None, Some(closed)) => closed,
    };
    if most > prefix as u64 {
        return;
    }
    members.insert("maxItems".to_owned(), json!(most));
    members.shift_remove("items");
    if let Some(Value::Array(mut parts)) = members.shift_remove("prefixItems") {
        parts.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let are_alike = parts.windows(2).all(|pair| pair[0] == pair[1]);
        match parts.first() {
            Some(first) if are_alike => members.insert("items".to_owned(), first.clone()),
            _ => members.insert("prefixItems".to_owned(), Value::Array(parts)),
        };
    }
}

/// `dependencies` by what its members are, and a dependent schema that only requires as `dependentRequired`.
fn dependencies(members: &mut Keywords) {
    let mut required = take_map(members, "dependentRequired");
    let mut schemas = take_map(members, "dependentSchemas");
    for (name, value) in take_map(members, "dependencies") {
        let into = if value.is_array() { &mut required } else { &mut schemas };
        if into.contains_key(&name) {
            // Stated twice: leave the older spelling alone.
            members.entry("dependencies").or_insert_with(|| json!({}))[&name] = value;
        } else {
            into.insert(name, value);
        }
    }
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in names {
        let only = schemas[&name].as_object().filter(|inner| inner.len() == 1).and_then(|inner| inner.get("required"));
        if let Some(list) = only.cloned().filter(|_| !required.contains_key(&name)) {
            schemas.shift_remove(&name);
            required.insert(name, list);
        } else if is_true(&schemas[&name]) {
            schemas.shift_remove(&name);
        }
    }
    required.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
    for (key, map) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
        if !map.is_empty() {
            members.insert(key.to_owned(), Value::Object(map));
        }
    }
}

fn take_map(members: &mut Keywords, key: &str) -> Keywords {
    match members.get(key) {
        Some(Value::Object(_)) => match members.shift_remove(key) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        },
        _ => Map::new(),
    }
}

/// Removes keywords that have no effect.
fn idle(members: &mut Keywords) {
    settled_condition(members);
    let conditional = members.contains_key("if");
    if !conditional {
        members.shift_remove("then");
        members.shift_remove("else");
    }
    for key in ["then", "else"] {
        if members.get(key).is_some_and(is_true) {
            members.shift_remove(key);
        }
    }
    // `if` marks members as evaluated, which matters to `unevaluated…`.
    let asks = members.keys().any(|key| key.starts_with("unevaluated"));
    if conditional && !asks && !members.contains_key("then") && !members.contains_key("else") {
        members.shift_remove("if");
    }
    let is = |members: &Keywords, key: &str, number: u64| members.get(key).and_then(Value::as_u64) == Some(number);
    if !members.contains_key("contains") {
        members.shift_remove("minContains");
        members.shift_remove("maxContains");
    } else if !asks
        && members.get("contains").is_some_and(is_true)
        && !["minContains", "maxContains"].iter().any(|key| members.contains_key(*key))
    {
        let least = members.get("minItems").and_then(Value::as_u64).unwrap_or(0).max(1);
        members.shift_remove("contains");
        members.insert("minItems".to_owned(), json!(least));
    } else if is(members, "minContains", 1) {
        members.shift_remove("minContains");
    } else if is(members, "minContains", 0) && !members.contains_key("maxContains") && !asks {
        members.shift_remove("contains");
        members.shift_remove("minContains");
    }
    let names = members.get("propertyNames");
    let only_strings = |schema: &Value| {
        schema.as_object().is_some_and(|inner| {
            inner.iter().all(|(key, value)| is_annotation(key) || key == "type" && value == "string")
        })
    };
    if names.is_some_and(|names| is_true(names) || only_strings(names)) {
        members.shift_remove("propertyNames");
    }
    for key in ["minLength", "minItems", "minProperties"] {
        if is(members, key, 0) {
            members.shift_remove(key);
        }
    }
    if members.get("uniqueItems") == Some(&Value::Bool(false)) {
        members.shift_remove("uniqueItems");
    }
    for key in ["required", "allOf"] {
        if members.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            members.shift_remove(key);
        }
    }
}

/// `if` with a constant answer: the branch that always applies is one more condition.
fn settled_condition(members: &mut Keywords) {
    let branch = match members.get("if") {
        Some(Value::Bool(false)) => "else",
        Some(condition) if is_true(condition) => "then",
        _ => return,
    };
    if !matches!(members.get("allOf"), None | Some(Value::Array(_))) {
        return;
    }
    let branch = members.shift_remove(branch);
    for key in ["if", "then", "else"] {
        members.shift_remove(key);
    }
    if let (Some(branch), Value::Array(all)) =
        (branch, members.entry("allOf").or_insert_with(|| Value::Array(Vec::new())))
    {
        all.push(branch);
    }
}

/// If no other keyword evaluates members, `unevaluatedProperties` is `additionalProperties`.
fn unevaluated(members: &mut Keywords) {
    let evaluates = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"];
    if evaluates.iter().any(|key| members.contains_key(*key)) {
        return;
    }
    if !members.contains_key("additionalProperties")
        && let Some(rest) = members.shift_remove("unevaluatedProperties")
    {
        members.insert("additionalProperties".to_owned(), rest);
    }
    if !members.contains_key("items")
        && !members.contains_key("contains")
        && let Some(rest) = members.shift_remove("unevaluatedItems")
    {
        members.insert("items".to_owned(), rest);
    }
}

/// A number that is a multiple of a whole one is an integer.
fn whole_numbers(members: &mut Keywords) {
    if members.get("multipleOf").and_then(Value::as_f64).is_none_or(|step| step < 1.0 || step.fract() != 0.0) {
        return;
    }
    let whole = |name: &mut Value| {
        if *name == "number" {
            *name = json!("integer");
        }
    };
    match members.get_mut("type") {
        Some(Value::Array(names)) => names.iter_mut().for_each(whole),
        Some(name) => whole(name),
        None => {}
    }
}

/// Limits and steps of integers.
fn integers(members: &mut Keywords) {
    let types = members.get("type");
    let whole = types.is_some_and(|kind| kind == "integer")
        || types.and_then(Value::as_array).is_some_and(|names| {
            names.iter().any(|name| name == "integer") && !names.iter().any(|name| name == "number")
        });
    if !whole {
        return;
    }
    if let Some(Value::Number(step)) = members.get("multipleOf")
        && divides(step, &Number::from(1)) == Some(true)
    {
        members.shift_remove("multipleOf");
    }
    for (plain, exclusive, is_lower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
    {
        let numbers = [(plain, false), (exclusive, true)].map(|(key, shut)| limit(members.get(key), shut, is_lower));
        let [Some(one), Some(two)] = numbers else { continue };
        let tightest = match (one, two) {
            (None, other) | (other, None) => other,
            (Some(one), Some(two)) => Some(if is_lower { one.max(two) } else { one.min(two) }),
        };
        members.shift_remove(exclusive);
        if let Some(tightest) = tightest {
            members.insert(plain.to_owned(), json!(tightest));
        }
    }
}

/// A limit as the outermost integer inside it; the outer `None` if it is not a number that fits.
fn limit(value: Option<&Value>, shut: bool, is_lower: bool) -> Option<Option<i64>> {
    let Some(value) = value else { return Some(None) };
    if let Some(number) = value.as_i64() {
        let step = if is_lower { 1 } else { -1 };
        return Some(Some(if shut { number.checked_add(step)? } else { number }));
    }
    // Beyond this, floats skip integers.
    let number = value.as_f64().filter(|number| number.abs() < 9e15)?;
    let inner = if is_lower { number.ceil() } else { number.floor() };
    let on_it = inner == number && shut;
    let step = if is_lower { 1.0 } else { -1.0 };
    Some(Some((inner + if on_it { step } else { 0.0 }) as i64))
}

/// Simplifies negations. Returns whether nothing is accepted at all.
fn negation(members: &mut Keywords) -> bool {
    let Some(not) = members.get("not") else { return false };
    if is_true(not) {
        return true;
    }
    if *not == Value::Bool(false) {
        members.shift_remove("not");
        return false;
    }
    let inner = asserted(not);
    let Some((key, value)) = inner.as_slice().first().filter(|_| inner.len() == 1) else { return false };
    let positive = match (*key, *value) {
        ("not", inner) => Some(inner.clone()),
        // None of several is each of them not, and the reverse.
        ("anyOf", Value::Array(parts)) => Some(json!({"allOf": parts.iter().map(negated).collect::<Vec<_>>()})),
        ("allOf", Value::Array(parts)) => Some(json!({"anyOf": parts.iter().map(negated).collect::<Vec<_>>()})),
        ("type", kind) => other_types(kind),
        ("required", Value::Array(names)) if members.get("type").is_some_and(|kind| kind == "object") => names
            .first()
            .and_then(Value::as_str)
            .filter(|_| names.len() == 1)
            .map(|name| json!({"properties": {name: false}})),
        ("enum" | "const", _) => without_values(members, not),
        (key, Value::Number(limit)) => beyond(members, key, limit),
        _ => None,
    };
    if let Some(positive) = positive {
        members.shift_remove("not");
        if let Value::Object(whole) = both(std::mem::take(members), positive) {
            *members = whole;
        }
    }
    false
}

fn negated(schema: &Value) -> Value {
    all(Map::from_iter([("not".to_owned(), schema.clone())]))
}

/// The keywords of a schema that are not only text.
fn asserted(schema: &Value) -> Vec<(&str, &Value)> {
    let members = schema.as_object().into_iter().flatten();
    members.filter(|(key, _)| !is_annotation(key)).map(|(key, value)| (key.as_str(), value)).collect()
}

/// The types that are left if these are excluded. Numbers that are not integers have no name.
fn other_types(excluded: &Value) -> Option<Value> {
    let left = !stated_kinds(&json!({ "type": excluded }))?;
    (left & NUMBER != NUMBER & !INTEGER).then(|| json!({"type": names_of(left)}))
}

/// The limit that begins where another one ends, for values of the only type it applies to.
fn beyond(members: &Keywords, key: &str, limit: &Number) -> Option<Value> {
    let kind = members.get("type")?.as_str()?;
    let is_number = matches!(kind, "integer" | "number");
    let opposite = match (key, kind) {
        ("minimum", _) if is_number => "exclusiveMaximum",
        ("exclusiveMinimum", _) if is_number => "maximum",
        ("maximum", _) if is_number => "exclusiveMinimum",
        ("exclusiveMaximum", _) if is_number => "minimum",
        ("minLength", "string") => "maxLength",
        ("maxLength", "string") => "minLength",
        ("minItems", "array") => "maxItems",
        ("maxItems", "array") => "minItems",
        ("minProperties", "object") => "maxProperties",
        ("maxProperties", "object") => "minProperties",
        _ => return None,
    };
    let step = match key {
        _ if is_number => return Some(json!({ opposite: limit })),
        key if key.starts_with("min") => limit.as_u64()?.checked_sub(1)?,
        _ => limit.as_u64()?.checked_add(1)?,
    };
    Some(json!({ opposite: step }))
}

/// The listed values without those that are excluded.
fn without_values(members: &Keywords, excluded: &Value) -> Option<Value> {
    let values = match (members.get("enum"), members.get("type")) {
        (Some(values), _) => values.as_array()?.as_slice(),
        (None, Some(Value::String(kind))) => values_of(kind)?,
        _ => return None,
    };
    let excluded: HashSet<Digest> = allowed(excluded)?.into_iter().map(Digest::of).collect();
    let left: Vec<&Value> = values.iter().filter(|value| !excluded.contains(&Digest::of(value))).collect();
    Some(json!({ "enum": left }))
}

/// Simplifies `allOf`: nested lists are flattened, what can move outside moves there, the
/// rest is sorted.
fn all_of(members: &mut Keywords) {
    let Some(Value::Array(list)) = members.shift_remove("allOf") else { return };
    let mut parts: Vec<Value> = Vec::new();
    for part in list {
        match part {
            Value::Object(inner) if inner.len() == 1 && inner.get("allOf").is_some_and(Value::is_array) => {
                parts.extend(inner["allOf"].as_array().into_iter().flatten().cloned());
            }
            other => parts.push(other),
        }
    }
    let mut rest: Vec<Value> = Vec::new();
    for part in parts {
        if is_true(&part) {
            continue;
        }
        match part {
            Value::Object(inner) if mergeable(members, &inner) => merge(members, inner),
            other => rest.push(other),
        }
    }
    rest.sort_by_cached_key(Value::to_string);
    rest.dedup();
    if !rest.is_empty() {
        members.insert("allOf".to_owned(), Value::Array(rest));
    }
}

/// Keywords whose meaning depends on their neighbours: they move only where there are none.
const NEIGHBOURLY: &[&str] = &[
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$id",
    "not",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
];

fn mergeable(outer: &Keywords, inner: &Keywords) -> bool {
    let has = |members: &Keywords, key: &str| members.contains_key(key);
    let closed = |members: &Keywords| {
        ["additionalProperties", "patternProperties", "unevaluatedProperties"].iter().any(|key| has(members, key))
    };
    // Properties must not move beside a keyword that refuses undescribed ones.
    let objects = ["properties", "additionalProperties", "patternProperties", "unevaluatedProperties"];
    let moves_objects = objects.iter().any(|key| has(inner, key));
    let object_conflict = moves_objects
        && (closed(outer) || closed(inner) && objects.iter().any(|key| has(outer, key)))
        || has(outer, "unevaluatedProperties")
        || has(outer, "unevaluatedItems");
    let arrays = ["items", "prefixItems", "unevaluatedItems", "contains", "minContains", "maxContains"];
    let array_conflict = arrays.iter().any(|key| has(inner, key)) && arrays.iter().any(|key| has(outer, key));
    let conditions = ["if", "then", "else"];
    let condition_conflict =
        conditions.iter().any(|key| has(inner, key)) && conditions.iter().any(|key| has(outer, key));
    !object_conflict
        && !array_conflict
        && !condition_conflict
        && !has(inner, "$id")
        && inner.iter().all(|(key, value)| match outer.get(key) {
            None => true,
            Some(other) if other == value => true,
            Some(other) => {
                joined(key, other, value).is_some() || is_annotation(key) && !NEIGHBOURLY.contains(&key.as_str())
            }
        })
}

fn merge(outer: &mut Keywords, inner: Keywords) {
    for (key, value) in inner {
        let merged = match outer.get(&key) {
            None => value,
            // Annotations outside take precedence.
            Some(_) if is_annotation(&key) => continue,
            Some(other) if *other == value => continue,
            Some(other) => match joined(&key, other, &value) {
                Some(joined) => joined,
                None => continue,
            },
        };
        outer.insert(key, merged);
    }
}

/// The value of a keyword that is equivalent to two values together.
fn joined(key: &str, one: &Value, two: &Value) -> Option<Value> {
    let number = |inner: std::cmp::Ordering| -> Option<Value> {
        let (Value::Number(first), Value::Number(second)) = (one, two) else { return None };
        Some(if order(first, second)? == inner { one.clone() } else { two.clone() })
    };
    match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            number(std::cmp::Ordering::Greater)
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => number(std::cmp::Ordering::Less),
        "required" => {
            let mut names: Vec<Value> = one.as_array()?.clone();
            names.extend(
                two.as_array()?.iter().filter(|name| !one.as_array().is_some_and(|list| list.contains(name))).cloned(),
            );
            Some(Value::Array(names))
        }
        "properties" => {
            let mut whole = one.as_object()?.clone();
            for (name, schema) in two.as_object()? {
                let joined = match whole.shift_remove(name) {
                    None => schema.clone(),
                    Some(other) if other == *schema => other,
                    Some(Value::Object(members)) => match both(members, schema.clone()) {
                        Value::Object(members) => all(members),
                        other => other,
                    },
                    Some(Value::Bool(true)) => schema.clone(),
                    Some(other) => other,
                };
                whole.insert(name.clone(), joined);
            }
            Some(Value::Object(whole))
        }
        "enum" => {
            let known: HashSet<Digest> = two.as_array()?.iter().map(Digest::of).collect();
            Some(one.as_array()?.iter().filter(|value| known.contains(&Digest::of(value))).cloned().collect())
        }
        "uniqueItems" => Some(json!(one == true || two == true)),
        "type" => {
            let [first, second] = [one, two].map(|kind| stated_kinds(&json!({ "type": kind })));
            let (first, second) = (first?, second?);
            Some(match first & second {
                both if both == first => one.clone(),
                both if both == second => two.clone(),
                both => json!(names_of(both)),
            })
        }
        "dependentRequired" => {
            let mut whole = one.as_object()?.clone();
            for (name, list) in two.as_object()? {
                let joined = match whole.get(name) {
                    Some(other) => self::joined("required", other, list)?,
                    None => list.clone(),
                };
                whole.insert(name.clone(), joined);
            }
            Some(Value::Object(whole))
        }
        _ => None,
    }
}

/// Simplifies alternatives: one that accepts everything replaces all, impossible and repeated ones are removed.
fn alternatives(members: &mut Keywords) {
    let asks = members.keys().any(|key| key.starts_with("unevaluated"));
    if let Some(Value::Array(list)) = members.get("anyOf") {
        if !list.is_empty() && list.iter().any(is_true) && !asks {
            members.shift_remove("anyOf");
        } else {
            let mut flat: Vec<Value> = Vec::new();
            for branch in list {
                let inner = branch
                    .as_object()
                    .filter(|inner| inner.len() == 1)
                    .and_then(|inner| inner.get("anyOf")?.as_array());
                match inner {
                    Some(inner) => flat.extend(inner.iter().cloned()),
                    None => flat.push(branch.clone()),
                }
            }
            if flat.iter().any(|branch| *branch != Value::Bool(false)) {
                flat.retain(|branch| *branch != Value::Bool(false));
            }
            let mut seen: Vec<Value> = Vec::new();
            flat.retain(|branch| {
                let is_new = !seen.contains(branch);
                if is_new && seen.len() < 64 {
                    seen.push(branch.clone());
                }
                is_new
            });
            if !asks {
                remove_covered(&mut flat);
            }
            members.insert("anyOf".to_owned(), Value::Array(flat));
        }
    }
    if let Some(Value::Array(list)) = members.get_mut("oneOf")
        && list.iter().any(|branch| *branch != Value::Bool(false))
    {
        list.retain(|branch| *branch != Value::Bool(false));
    }
    for key in ["anyOf", "oneOf"] {
        // One alternative is a condition.
        let only = members.get(key).and_then(Value::as_array).filter(|list| list.len() == 1).cloned();
        if let Some(only) = only.filter(|_| matches!(members.get("allOf"), None | Some(Value::Array(_)))) {
            members.shift_remove(key);
            let all = members.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.extend(only.iter().cloned()));
        }
    }
}

/// Removes alternatives that accept only what another one accepts as well.
fn remove_covered(branches: &mut Vec<Value>) {
    if branches.len() > 32 {
        return;
    }
    let is_covered = |index: usize| {
        let others = branches.iter().enumerate().filter(|(other, _)| *other != index);
        others
            .into_iter()
            .any(|(other, wide)| covers(wide, &branches[index]) && (other < index || !covers(&branches[index], wide)))
    };
    let left: Vec<bool> = (0..branches.len()).map(|index| !is_covered(index)).collect();
    let mut left = left.into_iter();
    branches.retain(|_| left.next().unwrap_or(true));
}

/// Whether a schema obviously accepts all that another does: the other has each of its keywords, too.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let Value::Object(_) = narrow else { return false };
    let is_apart = |key: &str| {
        !NEIGHBOURLY.contains(&key) || matches!(key, "not" | "anyOf" | "oneOf" | "allOf" | "enum" | "const" | "$ref")
    };
    asserted(wide).into_iter().all(|(key, value)| match key {
        "type" => stated_kinds(wide).is_some_and(|kinds| kinds_of(narrow) & !kinds == 0),
        key => is_apart(key) && narrow.get(key) == Some(value),
    })
}

/// The values of a schema that is only an enum; a type that all values have does not matter.
fn listed(schema: &Value) -> Option<Vec<&Value>> {
    let members = schema.as_object()?;
    if let [("type", Value::String(kind))] = asserted(schema).as_slice()
        && let Some(values) = values_of(kind)
    {
        return Some(values.iter().collect());
    }
    let plain = members.iter().all(|(key, _)| matches!(key.as_str(), "const" | "enum" | "type") || is_annotation(key));
    let values = allowed(schema).filter(|_| plain)?;
    let kinds = kinds_of(&json!({"type": members.get("type").cloned().unwrap_or_else(|| {
        json!(["null", "boolean", "number", "string", "array", "object"])
    })}));
    values.iter().all(|value| kind_of(value) & kinds != 0).then_some(values)
}

/// The values of a type that has only a few.
fn values_of(kind: &str) -> Option<&'static [Value]> {
    match kind {
        "null" => Some(&[Value::Null]),
        "boolean" => Some(&[Value::Bool(true), Value::Bool(false)]),
        _ => None,
    }
}

/// Every form of a list of values becomes `enum`; null alone, or both booleans, become the type.
fn choices(members: &mut Keywords) {
    for key in ["oneOf", "anyOf"] {
        let Some(Value::Array(list)) = members.get(key) else { continue };
        let branches: Option<Vec<Vec<&Value>>> = list.iter().map(listed).collect();
        let Some(branches) = branches.filter(|branches| !branches.is_empty()) else { continue };
        let values: Vec<Value> = branches.into_iter().flatten().cloned().collect();
        let distinct: HashSet<Digest> = values.iter().map(Digest::of).collect();
        let repeats = distinct.len() < values.len();
        if members.contains_key("enum") || members.contains_key("const") || repeats && key == "oneOf" {
            continue;
        }
        members.shift_remove(key);
        members.insert("enum".to_owned(), Value::Array(values));
    }
    if !members.contains_key("enum")
        && let Some(only) = members.shift_remove("const")
    {
        members.insert("enum".to_owned(), json!([only]));
    }
    accepted_choices(members);
    let Some(values) = listed_here(members) else { return };
    let has = |wanted: bool| values.iter().any(|value| value.as_bool() == Some(wanted));
    let is_finite = values.iter().all(|value| value.is_boolean() || value.is_null());
    let kind = match (has(true), has(false), values.iter().any(|value| value.is_null())) {
        (true, true, true) if is_finite => Some(json!(["boolean", "null"])),
        (true, true, false) if is_finite => Some(json!("boolean")),
        (false, false, true) if is_finite => Some(json!("null")),
        _ => None,
    };
    match kind {
        Some(kind) => {
            members.shift_remove("enum");
            members.insert("type".to_owned(), kind);
        }
        None => {
            members.shift_remove("type");
        }
    }
}

/// Beside a list of values, other keywords only decide which of them count.
fn accepted_choices(members: &mut Keywords) {
    /// Each value is checked one by one; longer lists of values are rare beside other keywords.
    const MOST: usize = 64;
    let is_more = |key: &String| !matches!(key.as_str(), "enum" | "type") && !is_annotation(key);
    let is_elsewhere = |(key, part): (&String, &Value)| {
        key.starts_with('$') || key.starts_with("unevaluated") || key == "format" || refers(part)
    };
    let Some(Value::Array(values)) = members.get("enum").filter(|_| members.keys().any(is_more)) else { return };
    if values.len() > MOST || members.iter().any(is_elsewhere) {
        return;
    }
    let room = Cost { schemas: 1_000, ..Cost::default() };
    let Ok(validator) = Validator::compile(&Value::Object(members.clone()), room) else { return };
    if !validator.unenforced().is_empty() {
        return;
    }
    let mut meter = Meter::new(10_000);
    let mut left = Vec::new();
    for value in values {
        match validator.check(value, &mut meter) {
            Ok(()) => left.push(value.clone()),
            Err(Rejection::Failed(_)) => {}
            Err(Rejection::Exhausted) => return,
        }
    }
    members.retain(|key, _| !is_more(key));
    members.insert("enum".to_owned(), Value::Array(left));
}

/// The values of `enum`, if each of them has the stated type.
fn listed_here(members: &Keywords) -> Option<Vec<&Value>> {
    let values = members.get("enum")?.as_array()?;
    let kinds = members.get("type").map_or(u8::MAX, |kind| kinds_of(&json!({ "type": kind })));
    values.iter().all(|value| kind_of(value) & kinds != 0).then(|| values.iter().collect())
}

/// A combinator of one schema with only annotations beside it becomes that schema; annotations outside
/// take precedence.
fn alone(mut members: Keywords) -> Keywords {
    let mut asserting = members.keys().filter(|key| !is_annotation(key));
    let (Some(key), None) = (asserting.next().cloned(), asserting.next()) else { return members };
    if !matches!(key.as_str(), "allOf" | "anyOf" | "oneOf") {
        return members;
    }
    match members.get(&key).and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) if !only.contains_key("$id") => {
            let mut whole = only.clone();
            members.shift_remove(&key);
            whole.extend(members);
            whole
        }
        _ => members,
    }
}

/// Whether a list of alternatives or choices is empty, or all of it impossible.
fn is_never(members: &Keywords) -> bool {
    let impossible = |key: &str| {
        members
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().all(|part| *part == Value::Bool(false)))
    };
    impossible("anyOf")
        || impossible("oneOf")
        || members.get("allOf").and_then(Value::as_array).is_some_and(|list| list.contains(&Value::Bool(false)))
        || ["enum", "type"].iter().any(|key| members.get(*key).and_then(Value::as_array).is_some_and(Vec::is_empty))
}

/// `oneOf` becomes `anyOf` if no value can match two of the alternatives.
fn exclusive(members: &mut Keywords) {
    let Some(branches) = members.get("oneOf").and_then(Value::as_array) else { return };
    if !members.contains_key("anyOf") && distinct_types(branches).is_some() {
        let branches = members.shift_remove("oneOf").unwrap_or_default();
        members.insert("anyOf".to_owned(), branches);
    }
}

/// Alternatives that differ by their type become a list of types, with the keywords
/// that apply only to that type. Only if nothing else is beside them: `additionalProperties` of a
/// branch must not see the `properties` outside it.
fn kinds(members: &mut Keywords) {
    if members.keys().any(|key| key != "anyOf" && !is_annotation(key)) {
        return;
    }
    let Some(branches) = members.get("anyOf").and_then(Value::as_array) else { return };
    let Some(types) = distinct_types(branches).filter(|types| types.len() > 1) else { return };
    let own = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|branch| branch.keys().all(|key| key == "type" || is_heeded_by(key, kind)))
    };
    let mut merged = Map::new();
    for (branch, kind) in branches.iter().zip(&types) {
        if !own(branch, kind) {
            return;
        }
        merged.extend(branch.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    }
    merged.insert("type".to_owned(), json!(types));
    members.shift_remove("anyOf");
    members.extend(merged);
}

/// The type of each branch, if each names one and no two overlap.
fn distinct_types(branches: &[Value]) -> Option<Vec<String>> {
    let types: Vec<String> =
        branches.iter().map(|branch| branch.get("type")?.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let same = |one: &str, two: &str| {
        let number = |word: &str| if word == "integer" { "number" } else { word }.to_owned();
        number(one) == number(two)
    };
    let apart = (0..types.len()).all(|i| (0..i).all(|j| !same(&types[i], &types[j])));
    (apart && types.len() <= 7).then_some(types)
}

/// Whether a keyword applies to values of this type only.
fn is_heeded_by(key: &str, kind: &str) -> bool {
    match kind {
        "string" => matches!(key, "minLength" | "maxLength" | "pattern" | "format"),
        "integer" | "number" => {
            matches!(key, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
        }
        "array" => matches!(key, "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems"),
        "object" => matches!(
            key,
            "properties" | "required" | "additionalProperties" | "propertyNames" | "minProperties" | "maxProperties"
        ),
        _ => false,
    }
}

/// Whether one step divides another exactly, also for decimals: `0.5` divides `1.5`.
pub(super) fn divides(step: &Number, other: &Number) -> Option<bool> {
    let scaled = |number: &Number| -> Option<(i128, u32)> {
        let text = number.to_string();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits.to_owned(), exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let value = format!("{whole}{fraction}").parse::<i128>().ok()?;
        let places = i32::try_from(fraction.len()).ok()? - exponent;
        match u32::try_from(places) {
            Ok(places) => Some((value, places)),
            Err(_) => Some((value.checked_mul(10i128.checked_pow(places.unsigned_abs())?)?, 0)),
        }
    };
    let ((one, places), (two, others)) = (scaled(step)?, scaled(other)?);
    let most = places.max(others);
    let one = one.checked_mul(10i128.checked_pow(most - places)?)?;
    let two = two.checked_mul(10i128.checked_pow(most - others)?)?;
    (one > 0).then(|| two % one == 0)
}
