//! Every argument that a part of the root names is listed.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{input, violations};
use super::restored;

fn listed_names(root: &Value) -> BTreeSet<String> {
    let portable = input(root);
    assert_eq!(violations(&portable.schema), Vec::<String>::new(), "{root}");
    portable.schema["properties"].as_object().unwrap().keys().cloned().collect()
}

/// All names, found by a walk that knows nothing of the rewriter.
fn named(root: &Value, part: &Value, depth: usize, names: &mut BTreeSet<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for (keyword, member) in part.as_object().filter(|_| depth > 0).into_iter().flatten() {
        match keyword.as_str() {
            "properties" => names.extend(member.as_object().unwrap().keys().cloned()),
            "required" => names.extend(member.as_array().unwrap().iter().map(text)),
            "allOf" | "anyOf" | "oneOf" => {
                member.as_array().unwrap().iter().for_each(|part| named(root, part, depth - 1, names));
            }
            "if" | "then" | "else" => named(root, member, depth - 1, names),
            "dependentSchemas" => {
                member.as_object().unwrap().values().for_each(|part| named(root, part, depth - 1, names));
            }
            "dependentRequired" => {
                let all = member.as_object().unwrap().values();
                names.extend(all.flat_map(|all| all.as_array().unwrap()).map(text));
            }
            "$ref" => named(root, root.pointer(&text(member)[1..]).unwrap(), depth - 1, names),
            _ => {}
        }
    }
}

#[test]
fn arguments_of_nested_forms_and_conditions_are_listed_with_their_types() {
    let has = |name: &str, kind: &str| json!({"properties": {name: {"type": kind}}, "required": [name]});
    let (a, b, c, d) = (has("a", "string"), has("b", "integer"), has("c", "boolean"), has("d", "number"));
    let condition = json!({"if": {"required": ["a"]}, "then": b, "else": {"allOf": [c, d]}});
    for root in [
        json!({"allOf": [{"oneOf": [a, b]}, {"oneOf": [c, d]}]}),
        json!({"anyOf": [{"anyOf": [a, b]}, {"oneOf": [c, d]}]}),
        json!({"oneOf": [{"$ref": "#/$defs/union"}, {"allOf": [c, d]}], "$defs": {"union": {"anyOf": [a, b]}}}),
        json!({"properties": {"a": {"type": "string"}}, "allOf": [condition]}),
        json!({"properties": {"a": {"type": "string"}}, "anyOf": [{"allOf": [condition]}, {"title": "free"}]}),
        json!({"anyOf": [a], "dependentSchemas": {"a": {"anyOf": [b, {"oneOf": [c, {"$ref": "#/$defs/d"}]}]}}, "$defs": {"d": d}}),
    ] {
        let portable = input(&root);
        for (name, kind) in [("a", "string"), ("b", "integer"), ("c", "boolean"), ("d", "number")] {
            assert_eq!(portable.schema["properties"][name]["type"], kind, "{root} became {}", portable.schema);
        }
    }
}

#[test]
fn an_argument_that_is_only_named_may_be_anything_that_the_rest_allows() {
    let root = json!({"anyOf": [{"required": ["c"]}, {"required": ["d"]}]});
    assert_eq!(listed_names(&root), BTreeSet::from(["c".to_owned(), "d".to_owned()]));
    let root =
        json!({"anyOf": [{"required": ["c"]}, {"required": ["d"]}], "additionalProperties": {"type": "integer"}});
    assert_eq!(input(&root).schema["properties"]["d"]["type"], "integer");
    // The value in a condition is not the only one.
    let root = json!({"if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["y"]}});
    assert_eq!(input(&root).schema["properties"]["kind"]["enum"], Value::Null);
}

#[test]
fn parts_that_lead_back_to_the_root_end() {
    let root = json!({"if": {"$ref": "#"}, "then": {"$ref": "#/allOf/0"}, "allOf": [{"if": {"$ref": "#/allOf/0"}, "else": {"required": ["z"]}}]});
    assert_eq!(listed_names(&root), BTreeSet::from(["z".to_owned()]));
}

fn parts() -> impl Strategy<Value = Value> {
    let name = || (0..12u8).prop_map(|number| format!("n{number}"));
    let properties = prop::collection::btree_map(
        name(),
        (0..3u8).prop_map(|least| json!({"type": "string", "minLength": least})),
        0..3,
    );
    let required = prop::collection::btree_set(name(), 0..2);
    let leaf = prop_oneof![
        (properties, required)
            .prop_map(|(properties, required)| json!({"properties": properties, "required": required})),
        (name(), name()).prop_map(|(one, two)| json!({"dependentRequired": {one: [two]}})),
        (0..2u8).prop_map(|number| json!({"$ref": format!("#/$defs/{number}")})),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            some().prop_map(|all| json!({"allOf": all})),
            some().prop_map(|all| json!({"anyOf": all})),
            some().prop_map(|all| json!({"oneOf": all})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(one, two, three)| json!({"if": one, "then": two, "else": three})),
            (name(), inner.clone()).prop_map(|(name, part)| json!({"dependentSchemas": {name: part}})),
            (some(), some()).prop_map(|(one, two)| json!({"anyOf": one, "oneOf": two})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_argument_that_a_part_of_the_root_names_is_listed(
        root in parts(), one in parts(), two in parts(),
        given in prop::collection::vec(prop::collection::btree_map((0..12u8).prop_map(|number| format!("n{number}")), "[a-b]{0,3}", 0..6), 6),
    ) {
        let mut root = root;
        root["type"] = json!("object");
        root["$defs"] = json!({"0": one, "1": two});
        let mut names = BTreeSet::new();
        named(&root, &root, 8, &mut names);
        let listed = listed_names(&root);
        prop_assert!(names.is_subset(&listed), "{root} names {names:?}, listed are {listed:?}");
        restored::check_refusals(&root, given.into_iter().map(|members| json!(members)))?;
    }
}
