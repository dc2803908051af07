//! Schemas of which not every part can be read.

use proptest::prelude::*;
use serde_json::{Value, json};
use sinew_schema::{Meter, Validator};

use crate::ROOM;

fn readable(schema: &Value) -> Validator {
    Validator::compile_readable(schema, ROOM).unwrap()
}

fn accepts(schema: &Value, value: &Value) -> bool {
    readable(schema).check(value, &mut Meter::new(100_000)).is_ok()
}

#[test]
fn only_the_part_that_cannot_be_read_is_left_out() {
    for (broken, what) in [
        (json!({"type": "str"}), "`type` is not the name of a type"),
        (json!({"type": ["string", "str"]}), "`type` has a word that is not a type"),
        (json!({"pattern": "["}), "a pattern is not valid"),
        (json!({"pattern": 5}), "`pattern` is not a string"),
        (json!({"minLength": -1}), "`minLength` is not a count"),
        (json!({"maximum": "9"}), "`maximum` is not a number"),
        (json!({"multipleOf": 0}), "`multipleOf` is not above 0"),
        (json!({"enum": "on"}), "`enum` is not an array"),
        (json!({"required": true}), "`required` is not a list of names"),
        (json!({"properties": [], "additionalProperties": false}), "`properties` is not an object"),
        (json!({"patternProperties": {"[": true}, "additionalProperties": false}), "a pattern is not valid"),
        (json!({"prefixItems": {}, "items": false}), "`prefixItems` is not an array"),
        (json!({"contains": {"const": 1}, "minContains": "2"}), "`minContains` is not a count"),
        (json!({"$ref": "#/$defs/none"}), "has no target"),
        (json!({"anyOf": {}}), "`anyOf` is not an array"),
        (json!({"items": 5}), "a schema is an object, `true` or `false`"),
        (json!({"not": {"type": "str"}}), "`type` is not the name of a type"),
        (json!({"not": {"not": {"type": "str"}}}), "`type` is not the name of a type"),
        (json!({"oneOf": [{"type": "str"}, true]}), "`type` is not the name of a type"),
        (json!({"if": {"minimum": ""}, "then": false}), "`minimum` is not a number"),
        (json!({"contains": {"type": "str"}, "minContains": 0, "maxContains": 0}), "`type` is not the name of a type"),
        (json!({"allOf": [{"properties": 1}], "unevaluatedProperties": false}), "`properties` is not an object"),
        (json!({"not": {"properties": {"b": {"items": {"type": "str"}}}}}), "`type` is not the name of a type"),
    ] {
        let schema = json!({"properties": {"a": broken, "n": {"maximum": 3}}, "required": ["n"]});
        let validator = readable(&schema);
        assert!(validator.unread().len() == 1 && validator.unread()[0].contains(what), "{:?}", validator.unread());
        for value in [json!(null), json!(5), json!("x"), json!([1, "x"]), json!({"b": [1]})] {
            assert!(accepts(&schema, &json!({"a": value, "n": 3})), "{schema} {value}");
        }
        assert!(!accepts(&schema, &json!({"n": 4})) && !accepts(&schema, &json!({})), "{schema}");
    }
}

#[test]
fn keywords_of_older_drafts_are_read_as_they_were_meant() {
    let schema =
        json!({"properties": {"a": {"maximum": 3, "exclusiveMaximum": true}, "b": {"items": [{"type": "string"}]}}});
    let validator = readable(&schema);
    assert!(validator.unread().is_empty() && validator.is_of_older_draft());
    assert!(accepts(&schema, &json!({"a": 2, "b": ["x", 1]})));
    assert!(!accepts(&schema, &json!({"a": 3})) && !accepts(&schema, &json!({"b": [1]})));
}

#[test]
fn no_alternatives_refuse_everything() {
    for word in ["anyOf", "oneOf"] {
        let schema = json!({"properties": {"a": {word: []}}});
        assert!(readable(&schema).unread().is_empty());
        assert!(accepts(&schema, &json!({})) && !accepts(&schema, &json!({"a": 1})));
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"minimum": 2})),
        Just(json!({"required": ["a"]})),
        Just(json!(true)),
        Just(json!(false)),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|one| json!({"not": one})),
            two.clone().prop_map(|(one, two)| json!({"oneOf": [one, two]})),
            two.clone().prop_map(|(one, two)| json!({"anyOf": [one, two]})),
            two.clone().prop_map(|(one, two)| json!({"allOf": [one, two]})),
            two.clone().prop_map(|(one, two)| json!({"if": one, "then": two})),
            two.clone().prop_map(
                |(one, two)| json!({"allOf": [one, {"properties": {"a": two}}], "unevaluatedProperties": false})
            ),
            inner.clone().prop_map(|one| json!({"contains": one, "maxContains": 1})),
            inner.prop_map(|one| json!({"properties": {"a": one}, "additionalProperties": false})),
        ]
    })
}

/// Makes the `nth` keyword with a plain value one that cannot be read.
fn damage(schema: &mut Value, nth: &mut usize) {
    for (word, member) in schema.as_object_mut().into_iter().flatten() {
        if ["type", "minimum", "required", "properties"].contains(&word.as_str()) {
            if *nth == 0 {
                *member = json!("?");
            }
            *nth = nth.wrapping_sub(1);
        }
        match member {
            Value::Array(all) => all.iter_mut().for_each(|one| damage(one, nth)),
            Value::Object(all) if word == "properties" => all.values_mut().for_each(|one| damage(one, nth)),
            other => damage(other, nth),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_fits_the_schema_that_was_meant_fits_what_can_be_read_of_it(schema in schemas(), nth in 0usize..6) {
        let mut damaged = schema.clone();
        damage(&mut damaged, &mut nth.clone());
        let values = [json!(1), json!(2.5), json!("x"), json!([1, 3]), json!({}), json!({"a": 1}), json!({"a": 3, "b": 1})];
        for value in values.iter().filter(|value| accepts(&schema, value)) {
            prop_assert!(accepts(&damaged, value), "{schema} accepts {value}, {damaged} does not");
        }
    }
}
