//! Variance, against a validator: whatever the old schema accepted of a caller and the new one
//! refuses must have been called breaking, and likewise for results the other way round.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sinew_schema::{Cost, Meter, Rejection, Validator};
use sinew_spec::compare::{Impact, diff};
use sinew_tool::Tool;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn leaf() -> impl Strategy<Value = Value> {
    let bound = -2i64..6;
    prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "null"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "number"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "object"})),
        Just(json!({"$ref": "#/$defs/one"})),
        Just(json!({"$ref": "#/$defs/two"})),
        Just(json!({"$ref": "#/$defs/one", "minimum": 1})),
        (bound.clone(), prop::option::of(bound.clone()), any::<bool>()).prop_map(|(low, high, shut)| {
            let mut schema = json!({"type": "integer"});
            schema[if shut { "exclusiveMinimum" } else { "minimum" }] = json!(low);
            if let Some(high) = high {
                schema[if shut { "maximum" } else { "exclusiveMaximum" }] = json!(high);
            }
            schema
        }),
        (1u64..4).prop_map(|step| json!({"type": "integer", "multipleOf": step})),
        (0u64..3, prop::option::of(0u64..4)).prop_map(|(least, most)| {
            let mut schema = json!({"type": "string", "minLength": least});
            if let Some(most) = most {
                schema["maxLength"] = json!(most);
            }
            schema
        }),
        prop::sample::subsequence(vec![json!("a"), json!("ab"), json!(1), json!(2.5), json!(null)], 1..4)
            .prop_map(|values| json!({ "enum": values })),
        prop::sample::select(vec![json!("a"), json!(1), json!(true)]).prop_map(|value| json!({ "const": value })),
        prop::sample::select(vec!["^a", "b$", "^[ab]*$"])
            .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        prop::sample::select(vec![
            json!({"oneOf": [{"const": "a"}, {"const": 1, "title": "one"}]}),
            json!({"anyOf": [{"enum": ["a", null]}, {"const": 2.5}]}),
            json!({"enum": [true, false]}),
            json!({"allOf": [{"minLength": 1}, {"maxLength": 2, "type": "string"}]}),
            json!({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": true}, "required": ["b"]}]}),
            json!({"allOf": [{"properties": {"a": true}, "additionalProperties": false}, {"properties": {"b": true}}]}),
            json!({"not": {"not": {"type": "string"}}}),
            json!({"not": {}}),
            json!({"type": "object", "dependentRequired": {"a": ["b"]}}),
            json!({"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}),
            json!({"type": "object", "properties": {"a": true}, "unevaluatedProperties": false}),
            json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}),
            json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"properties": {"a": false}}),
            json!({"type": "array", "contains": {"type": "string"}, "minContains": 0}),
            json!({"type": "array", "contains": {"type": "string"}}),
            json!({"if": {"minLength": 2}}),
            json!({"propertyNames": {"type": "string"}}),
            json!({"type": "number", "multipleOf": 0.5}),
            json!({"oneOf": [{"minimum": 1}, {"maximum": 3}]}),
            json!({"anyOf": [{"minimum": 1}, {"maximum": 3}, {}]}),
        ]),
        prop::sample::select(vec![
            json!({"type": "integer", "minimum": 1, "maximum": 3}),
            json!({"type": "number", "minimum": 1, "maximum": 1}),
            json!({"type": "number", "exclusiveMinimum": 0.5, "maximum": 2.5, "multipleOf": 0.5}),
            json!({"enum": [1, 2, 3, "a", {"a": 1}, [], ["a"]]}),
            json!({"type": "string", "minLength": 2, "maxLength": 1}),
            json!({"propertyNames": {"enum": ["a", "b"]}}),
            json!({"type": "object", "propertyNames": {"maxLength": 1}, "maxProperties": 1}),
            json!({"type": "object", "propertyNames": false}),
            json!({"type": "object", "maxProperties": 0}),
            json!({"type": "object", "required": ["a"], "maxProperties": 1}),
            json!({"type": "object", "properties": {"a": true, "b": true}, "additionalProperties": false, "minProperties": 2}),
            json!({"type": "object", "minProperties": 1}),
            json!({"patternProperties": {"^[ab]": {"type": "integer"}}, "additionalProperties": {"type": "number"}}),
            json!({"patternProperties": {"": {"type": "integer"}}}),
            json!({"not": {"required": ["a", "b"]}}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 1}}),
            json!({"oneOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"a": {"const": "a"}}, "required": ["a"]}]}),
            json!({"properties": {"a": {"enum": [1, "a"]}}, "required": ["a"]}),
            json!({"type": "array", "not": {"contains": {"type": "string"}}}),
            json!({"type": "array", "items": {"not": {"type": "string"}}}),
            json!({"type": "array", "contains": {"minimum": 2}, "maxContains": 1}),
            json!({"type": "array", "contains": {"minimum": 2}, "minContains": 2}),
            json!({"type": "array", "maxItems": 1, "prefixItems": [{"type": "string"}], "items": false}),
        ]),
        (0u64..3).prop_map(|least| json!({"minLength": least, "minimum": least, "minItems": least})),
    ]
}

fn rest() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(json!(false))), 1 => Just(Some(json!(true))), 1 => leaf().prop_map(Some)]
}

fn object(properties: Map<String, Value>, required: Vec<&str>, rest: Option<Value>) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    if let Some(rest) = rest {
        schema["additionalProperties"] = rest;
    }
    schema
}

type Pair = (Value, Value);

/// Two schemas that have much in common.
fn pair() -> impl Strategy<Value = Pair> {
    let flat = prop_oneof![
        2 => leaf().prop_map(|schema| (schema.clone(), schema)),
        3 => (leaf(), leaf()),
    ];
    flat.prop_recursive(3, 24, 4, |inner| {
        let member = (prop::sample::select(NAMES.to_vec()), inner.clone(), 0..6u8, any::<bool>(), any::<bool>());
        let objects = (prop::collection::vec(member, 0..4), rest(), rest(), any::<bool>()).prop_map(
            |(members, rest_old, rest_new, same_rest)| {
                let (mut old, mut new) = (Map::new(), Map::new());
                let (mut needs_old, mut needs_new) = (Vec::new(), Vec::new());
                for (name, (before, after), keep, need_old, need_new) in members {
                    if old.contains_key(name) || new.contains_key(name) {
                        continue;
                    }
                    if keep != 0 {
                        old.insert(name.to_owned(), before);
                    }
                    if keep != 1 {
                        new.insert(name.to_owned(), after);
                    }
                    if need_old {
                        needs_old.push(name);
                    }
                    if need_new {
                        needs_new.push(name);
                    }
                }
                let rest_new = if same_rest { rest_old.clone() } else { rest_new };
                (object(old, needs_old, rest_old), object(new, needs_new, rest_new))
            },
        );
        let arrays = (inner.clone(), inner.clone(), 0..3u8, 0..3u8, any::<(bool, bool)>()).prop_map(
            |((before, after), (first_old, first_new), least_old, least_new, (unique_old, unique_new))| {
                let build = |items: Value, first: Value, least: u8, unique: bool| {
                    let mut schema = json!({"type": "array", "items": items, "minItems": least});
                    if least == 2 {
                        schema["prefixItems"] = json!([first]);
                    }
                    if unique {
                        schema["uniqueItems"] = json!(true);
                    }
                    schema
                };
                (build(before, first_old, least_old, unique_old), build(after, first_new, least_new, unique_new))
            },
        );
        let combined = (
            prop::collection::vec(inner.clone(), 1..4),
            prop::sample::select(vec!["anyOf", "oneOf", "allOf"]),
            0..6u8,
            prop::option::of(inner.clone()),
        )
            .prop_map(|(branches, key, drop, beside)| {
                let (mut old, mut new): (Vec<Value>, Vec<Value>) = branches.into_iter().unzip();
                if drop == 0 && old.len() > 1 {
                    old.pop();
                } else if drop == 1 && new.len() > 1 {
                    new.remove(0);
                }
                let (mut one, mut two) = (json!({ key: old }), json!({ key: new }));
                if let Some((Value::Object(left), Value::Object(right))) = beside {
                    one.as_object_mut().expect("an object").extend(left);
                    two.as_object_mut().expect("an object").extend(right);
                }
                (one, two)
            });
        let negated = inner.clone().prop_map(|(before, after)| (json!({ "not": before }), json!({ "not": after })));
        let conditional =
            (inner.clone(), inner.clone(), inner.clone(), any::<bool>()).prop_map(|(cond, then, other, same)| {
                let second = if same { cond.0.clone() } else { cond.1 };
                (
                    json!({"if": cond.0, "then": then.0, "else": other.0}),
                    json!({"if": second, "then": then.1, "else": other.1}),
                )
            });
        prop_oneof![4 => objects, 2 => arrays, 3 => combined, 1 => negated, 1 => conditional, 1 => inner]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3i64..8).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.5, 2.5, 3.0]).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "ab", "abc", "bbb"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::vec((prop::sample::select(vec!["a", "b", "c", "d", "z"]), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

/// Whether a caller sends only what is described: by these schemas, all of which accept the value, or by
/// the parts of them that accept it. An alternative that refuses a value says nothing about its members.
fn is_honest(root: &Value, schemas: &[&Value], value: &Value) -> bool {
    let holds = |part: &Value| accepts(&json!({"allOf": [part], "$defs": root["$defs"]}), value);
    let mut all: Vec<&Value> = Vec::new();
    let mut open: Vec<&Value> = schemas.to_vec();
    while let Some(schema) = open.pop() {
        if all.iter().any(|seen| std::ptr::eq(*seen, schema)) {
            continue;
        }
        all.push(schema);
        let listed = ["anyOf", "oneOf", "allOf"]
            .iter()
            .filter_map(|key| schema.get(key)?.as_array())
            .flatten()
            .collect::<Vec<_>>();
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten();
        let triggered = dependent.filter(|(name, _)| value.get(name).is_some()).map(|(_, part)| part);
        let condition = schema.get("if");
        let branch = condition.and_then(|condition| schema.get(if holds(condition) { "then" } else { "else" }));
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| root.pointer(&reference[1..]));
        let parts = listed.into_iter().chain(triggered).chain(condition).chain(branch).chain(target);
        open.extend(parts.filter(|part| holds(part)));
    }
    match value {
        Value::Object(members) => members.iter().all(|(name, member)| {
            let described: Vec<&Value> = all
                .iter()
                .filter_map(|schema| {
                    let own = schema.get("properties").and_then(|map| map.get(name));
                    own.or_else(|| schema.get("additionalProperties"))
                })
                .collect();
            !described.is_empty() && is_honest(root, &described, member)
        }),
        Value::Array(items) => items.iter().enumerate().all(|(index, item)| {
            let at = |schema: &&Value| -> Option<Value> {
                schema.get("prefixItems").and_then(|list| list.get(index)).or_else(|| schema.get("items")).cloned()
            };
            let described: Vec<Value> = all.iter().filter_map(at).collect();
            is_honest(root, &described.iter().collect::<Vec<_>>(), item)
        }),
        _ => true,
    }
}

fn whole(schema: Value, leaf: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"one": leaf, "two": {"type": "object", "properties": {"a": {"$ref": "#/$defs/one"}, "b": {"$ref": "#/$defs/two"}}}},
    })
}

fn gravest(old: &Tool, new: &Tool) -> Option<Impact> {
    diff(std::slice::from_ref(old), std::slice::from_ref(new)).changes.iter().map(|change| change.impact).max()
}

/// The schemas are small: no limit is reached.
pub(crate) fn accepts(schema: &Value, value: &Value) -> bool {
    let room = Cost { schemas: 1000, patterns: 100, pattern_bytes: 10_000, pattern_states: 10_000, properties: 100 };
    let validator = Validator::compile(schema, room).expect("the generated schema is valid");
    match validator.check(value, &mut Meter::new(10_000_000)) {
        Ok(()) => true,
        Err(Rejection::Failed(_)) => false,
        Err(Rejection::Exhausted) => panic!("{value} is too much for {schema}"),
    }
}

/// Circles of references that never reach a value would keep the validator busy for ever.
fn is_sound(one: &Value, two: &Value) -> bool {
    let refers = |schema: &Value| schema.to_string().contains("$ref");
    !refers(one) && !refers(two)
}

/// Enough to find what was once wrong; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(800);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_new_input_refuses_was_called_breaking(
        (old, new) in pair(),
        (one, two) in (leaf(), leaf()).prop_filter("no circles", |(one, two)| is_sound(one, two)),
        values in prop::collection::vec(value(), 24),
    ) {
        let (old, new) = (whole(old, &one), whole(new, &two));
        let impact = gravest(&Tool::new("t", "d", old.clone()), &Tool::new("t", "d", new.clone()));
        if impact >= Some(Impact::Undecided) {
            return Ok(());
        }
        for value in values.iter().map(|value| json!({"x": value})) {
            let lost = accepts(&old, &value) && !accepts(&new, &value);
            prop_assert!(!lost || !is_honest(&old, &[&old], &value), "{value}\nold {old}\nnew {new}\ncalled {impact:?}");
        }
    }

    #[test]
    fn what_an_old_reader_would_refuse_was_called_breaking(
        (old, new) in pair(),
        (one, two) in (leaf(), leaf()).prop_filter("no circles", |(one, two)| is_sound(one, two)),
        values in prop::collection::vec(value(), 24),
    ) {
        let (old, new) = (whole(old, &one), whole(new, &two));
        let tool = |schema: &Value| Tool::new("t", "d", json!({"type": "object"})).with_output_schema(schema.clone());
        let impact = gravest(&tool(&old), &tool(&new));
        if impact >= Some(Impact::Undecided) {
            return Ok(());
        }
        for value in values.iter().map(|value| json!({"x": value})) {
            let gained = accepts(&new, &value) && !accepts(&old, &value);
            prop_assert!(!gained, "{value}\nold {old}\nnew {new}\ncalled {impact:?}");
        }
    }

    #[test]
    fn a_schema_compared_with_itself_has_no_changes((old, _) in pair(), one in leaf()) {
        let tool = Tool::new("t", "d", whole(old, &one));
        prop_assert_eq!(gravest(&tool, &tool), None);
    }
}
