//! Nothing that is valid, and no rule, is left out without words.

use serde_json::{Value, json};

use super::super::{ELSEWHERE, Portable, input, output, violations};
use super::property;

/// The listed form of a member, as text.
fn told(schema: Value) -> String {
    let Portable { schema, .. } = input(&json!({"type": "object", "properties": {"a": schema}}));
    assert_eq!(violations(&schema), Vec::<String>::new());
    schema["properties"]["a"].to_string()
}

#[test]
fn a_reference_to_another_document_is_mentioned() {
    let anything = format!("Any JSON value. {ELSEWHERE}");
    property(json!({"$ref": "https://example.org/a"}), json!({"type": "string", "description": anything}));
    property(json!({"type": "integer", "$ref": "#/$defs/none"}), json!({"type": "integer", "description": ELSEWHERE}));
    let reported = input(&json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/a"}}})).simplified;
    let reported: Vec<String> = reported.iter().map(ToString::to_string).collect();
    assert!(reported.contains(&"/properties/a: $ref, for Claude Code, Cursor, Kiro".to_owned()), "{reported:?}");
}

#[test]
fn a_list_of_values_that_is_too_long_says_how_many_there_are() {
    let values: Vec<Value> = (0..600).map(|number| json!(format!("value-{number}"))).collect();
    let text = told(json!({"enum": values}));
    assert!(text.contains("One of 600 values, of which the first ") && !text.contains("\"enum\""), "{text}");
    assert!(text.contains("The others are valid too…"), "{text}");
    let shown = text.matches("value-").count();
    assert!(text.contains(&format!("the first {shown} are: ")), "{shown} of {text}");
    let numbers: Vec<Value> = (0..3_000).map(|number| json!(number)).collect();
    assert!(told(json!({"enum": numbers})).contains("One of 3000 values, of which the first "));
    let long: Vec<Value> = (0..2).map(|number| json!([number, "x".repeat(5_000)])).collect();
    assert!(told(json!({"enum": long})).contains("One of 2 values, which are too long to list."));
}

#[test]
fn an_empty_text_among_values_is_mentioned() {
    let text = "An empty string is valid too.";
    let expected = json!({"type": "string", "enum": ["on"], "description": text});
    property(json!({"enum": ["", "on"]}), expected.clone());
    property(json!({"anyOf": [{"const": "on"}, {"const": ""}]}), expected);
    property(json!({"enum": [""]}), json!({"type": "string", "description": "One of: \"\"."}));
    let many: Vec<Value> = (0..600).map(|number| json!(format!("v{number}"))).chain([json!("")]).collect();
    assert!(told(json!({"enum": many})).contains(text));
}

#[test]
fn the_rules_for_other_members_do_not_contradict_each_other() {
    let closed = |more: Value| {
        let mut schema =
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "unevaluatedProperties": false});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        told(schema)
    };
    let number = json!({"type": "number"});
    assert!(closed(json!({})).contains("No other members."));
    // Whatever `additionalProperties` accepts is evaluated.
    let open = closed(json!({"additionalProperties": number}));
    assert!(open.contains("Further members, each:") && !open.contains("No other"), "{open}");
    assert!(!closed(json!({"additionalProperties": true})).contains("description"));
    assert!(!closed(json!({"allOf": [{"additionalProperties": true}]})).contains("description"));
    let either = closed(json!({"anyOf": [{"additionalProperties": number}, {"required": ["b"]}]}));
    assert!(either.contains("No members but those that a rule describes.") && !either.contains("No other"), "{either}");
    let named = closed(json!({"patternProperties": {"^x": number}, "additionalProperties": false}));
    assert_eq!(named.matches("No other members.").count(), 1, "{named}");
    assert!(named.contains("Members by name pattern: {"), "{named}");
}

#[test]
fn an_object_that_takes_members_by_pattern_does_not_say_that_it_takes_none() {
    for closed in ["additionalProperties", "unevaluatedProperties"] {
        let text = told(json!({"type": "object", "patternProperties": {"^x": {"type": "number"}}, (closed): false}));
        assert!(text.contains("any_name") && !text.contains("unused"), "{text}");
        assert!(told(json!({"type": "object", (closed): false})).contains("unused"));
    }
    let both = json!({"type": "object", "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": {"type": "boolean"}});
    assert!(told(both).contains(r#""any_name":{"type":"string""#));
}

#[test]
fn the_forms_of_a_result_are_told() {
    let form = |name: &str| json!({"properties": {name: {"type": "string"}}, "required": [name]});
    let schema = json!({"type": "object", "description": "What it did.", "oneOf": [form("done"), form("failed")]});
    let listed = output(&schema).schema;
    assert_eq!(listed["description"], "What it did. Exactly one of these forms: `done`; `failed`.");
    assert_eq!(violations(&listed), Vec::<String>::new());
}
