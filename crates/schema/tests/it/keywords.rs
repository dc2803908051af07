//! What each keyword means, where the other validator is no witness.

use serde_json::{Value, json};
use sinew_schema::{Meter, Rejection};

use crate::{compile, fits};

fn check(schema: Value, yes: &[Value], no: &[Value]) {
    for value in yes {
        assert!(fits(&schema, value), "{schema} accepts {value}");
    }
    for value in no {
        assert!(!fits(&schema, value), "{schema} refuses {value}");
    }
}

#[test]
fn a_member_that_is_not_known_is_answered_with_those_that_are() {
    let says = |schema: Value, expected: &str| {
        let validator = compile(&schema).unwrap();
        let value = json!({"other": 1});
        let Err(Rejection::Failed(failure)) = validator.check(&value, &mut Meter::new(1_000)) else {
            panic!("{schema} accepts {value}")
        };
        assert_eq!(failure.explain(&schema, "it").1, format!("is not known; it takes {expected}"), "{schema}");
    };
    says(json!({"additionalProperties": false}), "none");
    says(json!({"patternProperties": {"^x": true}, "additionalProperties": false}), "names that match `^x`");
    says(
        json!({"properties": {"a": true}, "patternProperties": {"^x": true}, "additionalProperties": false}),
        "`a` and names that match `^x`",
    );
    says(
        json!({
            "properties": {"a": true},
            "anyOf": [{"properties": {"b": true}}, {"patternProperties": {"^x": true}}],
            "$ref": "#/$defs/c", "unevaluatedProperties": false,
            "$defs": {"c": {"properties": {"c": true}}},
        }),
        "`a`, `c`, `b` and names that match `^x`",
    );
}

#[test]
fn unevaluated_members_and_items_are_those_no_fitting_schema_looked_at() {
    let schema = json!({
        "properties": {"a": true},
        "anyOf": [{"required": ["b"], "properties": {"b": true}}, {"properties": {"c": true}}],
        "$ref": "#/$defs/d",
        "unevaluatedProperties": false,
        "$defs": {"d": {"properties": {"d": true}}},
    });
    check(
        schema,
        &[json!({"a": 1, "c": 1, "d": 1}), json!({"a": 1, "b": 1, "c": 1})],
        &[json!({"e": 1}), json!({"a": 1, "b": 1, "e": 1})],
    );
    check(
        json!({"properties": {"b": true}, "not": {"properties": {"x": true}, "required": ["x"]}, "unevaluatedProperties": false}),
        &[json!({"b": 1})],
        &[json!({"x": 1}), json!({"y": 1})],
    );
    check(
        json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}}),
        &[json!([null, "a", 1]), json!(["a"])],
        &[json!([null, "a", 1.5]), json!([1, 2])],
    );
}

#[test]
fn older_drafts_are_read_as_they_were_meant() {
    let draft = |number: &str, mut schema: Value| {
        schema["$schema"] = json!(format!("http://json-schema.org/draft-{number}/schema#"));
        schema
    };
    check(draft("04", json!({"type": "integer"})), &[json!(5)], &[json!(5.0)]);
    check(draft("04", json!({"minimum": 1, "exclusiveMinimum": true})), &[json!(2)], &[json!(1)]);
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": false});
    check(draft("07", tuple), &[json!(["a"])], &[json!([1]), json!(["a", 1])]);
    check(
        draft("07", json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}})),
        &[json!({})],
        &[json!({"a": 1}), json!({"c": 1})],
    );
    let beside = json!({"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"type": "integer"}}});
    check(draft("07", beside.clone()), &[json!(1)], &[json!("x")]);
    check(beside, &[], &[json!(1), json!("x")]);
}

#[test]
fn a_schema_that_is_none_is_refused_and_the_place_named() {
    for (schema, place) in [
        (json!({"properties": {"a": {"type": "loud"}}}), "/properties/a"),
        (json!({"$defs": {"unused": {"minimum": "1"}}}), "/$defs/unused"),
        (json!({"items": {"$ref": "#/$defs/none"}}), "/items"),
        (json!({"items": {"$ref": "http://127.0.0.1:1/x"}}), "/items"),
        (json!({"anyOf": [true, {"pattern": "("}]}), "/anyOf/1"),
        (json!({"allOf": [{"allOf": []}]}), "/allOf/0"),
        (json!({"$defs": {"a/b": {"required": 1}}}), "/$defs/a~1b"),
    ] {
        let error = compile(&schema).unwrap_err().to_string();
        assert!(error.starts_with(&format!("at `{place}`: ")), "{error}");
    }
    assert!(compile(&json!(5)).is_err());
}

#[test]
fn a_schema_that_comes_back_to_itself_on_the_same_value_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}),
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"dependentSchemas": {"a": {"if": {"$ref": "#"}}}}),
    ] {
        assert!(compile(&schema).unwrap_err().to_string().contains("refers to itself"), "{schema}");
    }
    let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "additionalProperties": false});
    check(tree, &[json!({"left": {"right": {}}})], &[json!({"left": {"middle": {}}})]);
}

#[test]
fn a_pattern_that_cannot_be_run_is_not_enforced_and_said_so() {
    let schema = json!({"properties": {"a": {"pattern": r"^(.)\1$"}}, "patternProperties": {r"(b)\1": {"type": "string"}}, "additionalProperties": false});
    let validator = compile(&schema).unwrap();
    assert_eq!(validator.unenforced().len(), 2);
    assert!(validator.unenforced().iter().any(|text| text.contains("`/properties/a`") && text.contains("refers back")));
    check(schema, &[json!({"a": "xy", "bb": 1})], &[]);
}
