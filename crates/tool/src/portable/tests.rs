//! Each rule, and all of them together on random schemas.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod restored;
mod root_names;
mod told;

#[track_caller]
fn listed(schema: Value, expected: Value) {
    let portable = input(&schema);
    assert_eq!(portable.schema, expected);
    assert_eq!(violations(&portable.schema), Vec::<String>::new());
}

#[track_caller]
fn property(schema: Value, expected: Value) {
    listed(
        json!({"type": "object", "properties": {"a": schema}}),
        json!({"type": "object", "properties": {"a": expected}}),
    );
}

#[test]
fn every_rule_of_the_table_does_what_it_says() {
    for rule in RULES {
        let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let example = schema(rule.example);
        assert_ne!(violations(&example), Vec::<String>::new(), "{}: the checker refuses the example", rule.given);
        let portable = input(&example);
        assert_eq!(portable.schema, schema(rule.result), "{}", rule.given);
        assert_eq!(violations(&portable.schema), Vec::<String>::new(), "{}", rule.given);
        assert_eq!(violations(&output(&example).schema), Vec::<String>::new(), "{}", rule.given);
        let is_reported = portable.simplified.iter().any(|simplified| simplified.rule().given == rule.given);
        assert!(is_reported || rule.reported.is_empty(), "{}: {:?}", rule.given, portable.simplified);
        let (repository, number) = rule.source.split_once('#').unwrap();
        assert!(repository.split('/').count() == 2 && number.parse::<u32>().is_ok(), "{}", rule.source);
    }
}

#[test]
fn most_schemas_keep_their_shape_at_a_glance() {
    let of = |part: Value| json!({"type": "object", "properties": {"a": part}, "required": ["a"]});
    for part in [
        json!({"type": "string", "enum": ["x", "y"], "description": "Which.", "examples": ["x"], "default": "x"}),
        json!({"type": "array", "items": {"type": "number", "minimum": 0}, "maxItems": 3}),
        json!({"type": "object", "properties": {"b": {"type": "boolean"}}}),
    ] {
        assert!(keeps_shape(&of(part.clone())), "{part}");
    }
    for part in [
        json!({}),
        json!(true),
        json!({"type": ["string", "null"]}),
        json!({"type": "array"}),
        json!({"type": "integer", "enum": [1]}),
        json!({"type": "string", "enum": [""]}),
        json!({"type": "object", "properties": {"ä": {"type": "string"}}}),
        json!({"$ref": "#"}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["c"]}),
        json!({"type": "string", "enum": []}),
        json!({"type": "integer", "minimum": 0.2, "maximum": 0.8}),
        json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
        json!({"type": "string", "enum": (0..501).map(|value| value.to_string()).collect::<Vec<_>>()}),
    ] {
        assert!(!keeps_shape(&of(part.clone())), "{part}");
    }
}

#[test]
fn an_argument_with_an_odd_name_is_described_and_can_be_given() {
    let schema = json!({
        "type": "object",
        "properties": {"größe": {"type": "integer"}, "a[]": {}, "ok": {"type": "string"}},
        "required": ["größe", "ok"],
        "additionalProperties": false,
    });
    let portable = input(&schema);
    let expected = json!({"type": "object", "properties": {"ok": {"type": "string"}}, "required": ["ok"]});
    assert_eq!(portable.schema, expected);
    assert_eq!(portable.notes[0], "Needs a member \"größe\": {\"type\":\"integer\"}.");
    assert_eq!(portable.notes[1], "May have a member \"a[]\": {}.");
    let simplified: Vec<String> = portable.simplified.iter().map(ToString::to_string).collect();
    assert!(simplified.contains(&"/properties/größe: name, for Anthropic".to_owned()), "{simplified:?}");
}

/// Every schema in the text of `file`, whatever surrounds it.
fn schemas_in(text: &str) -> Vec<Value> {
    let keys = ["\"inputSchema\"", "\"input_schema\"", "\"outputSchema\"", "\"parameters\"", "\"schema\""];
    let starts = keys.iter().flat_map(|key| text.match_indices(key).map(|(at, _)| at + key.len()));
    starts
        .filter_map(|at| {
            let value = text[at..].trim_start().strip_prefix(':')?.trim_start();
            serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok()
        })
        .filter(Value::is_object)
        .collect()
}

fn visit_files(directory: &std::path::Path, visit: &mut impl FnMut(&std::path::Path, &str)) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => visit_files(&entry.path(), visit),
            _ => {
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    visit(&entry.path(), &text);
                }
            }
        }
    }
}

#[test]
fn every_schema_of_the_fixtures_is_portable_afterwards() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    if !fixtures.exists() {
        eprintln!("skipped: there are no fixtures at {}", fixtures.display());
        return;
    }
    let mut count = 0;
    visit_files(&fixtures, &mut |path, text| {
        for schema in schemas_in(text) {
            count += 1;
            for portable in [input(&schema), output(&schema)] {
                assert_eq!(violations(&portable.schema), Vec::<String>::new(), "{}: {schema}", path.display());
            }
        }
    });
    assert!(count >= 100, "only {count} schemas were found");
}

#[test]
fn the_root_is_an_object_with_properties() {
    for schema in [json!({}), json!(true), json!({"type": "object"}), json!({"type": ["object", "null"]})] {
        listed(schema, json!({"type": "object", "properties": {}}));
    }
}

#[test]
fn alternatives_at_the_root_become_properties_and_a_sentence() {
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "oneOf": [
            {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
            {"properties": {"kind": {"const": "url"}, "url": {"type": "string"}}, "required": ["kind", "url"]},
        ],
    });
    let portable = input(&schema);
    let rule = r#"Exactly one of these forms: `kind` = "file" with `path`; `kind` = "url" with `url`."#;
    assert_eq!(portable.notes, [rule]);
    let kind = json!({"type": "string", "enum": ["file", "url"]});
    assert_eq!(portable.schema["properties"]["kind"], kind);
    assert_eq!(portable.schema["required"], json!(["kind"]));
    assert_eq!(violations(&portable.schema), Vec::<String>::new());
}

#[test]
fn what_a_form_at_the_root_says_about_a_common_member_is_said() {
    let portable = input(&json!({
        "type": "object",
        "properties": {"level": {"type": "integer"}, "a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"properties": {"level": {"minimum": 5}}, "required": ["a"]}, {"required": ["b"]}],
    }));
    let rule = r#"At least one of: [{"properties":{"level":{"minimum":5}},"required":["a"]},{"required":["b"]}]."#;
    assert_eq!(portable.notes, [rule]);
    let portable = input(&json!({
        "type": "object",
        "properties": {"level": {"type": "integer"}, "a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [
            {"properties": {"level": {"minimum": 5}}, "required": ["a"]},
            {"properties": {"level": {"minimum": 5}, "a": {"type": "string"}}, "required": ["b"]},
        ],
    }));
    assert_eq!(portable.notes, ["At least one of these forms: `a`; `b`."], "every form and the base agree");
    assert_eq!(portable.schema["properties"]["level"], json!({"type": "integer", "minimum": 5}));
}

#[test]
fn many_forms_at_the_root_with_many_members_are_compared_once() {
    let members: serde_json::Map<String, Value> =
        (0..90).map(|number| (format!("{number:x}"), json!({"description": "d".repeat(500)}))).collect();
    let form = |number: usize| json!({"properties": members, "required": [format!("r{number}")]});
    let forms: Vec<Value> = (0..64).map(form).collect();
    let portable = input(&json!({"type": "object", "anyOf": forms}));
    assert!(portable.notes[0].starts_with("At least one of these forms: `r0`; `r1`;"), "{:?}", portable.notes);
    assert_eq!(portable.schema["properties"].as_object().unwrap().len(), 90 + 64);
}

#[test]
fn a_limit_that_is_exclusive_in_the_older_way_is_said() {
    property(
        json!({"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
        json!({"type": "number", "minimum": 0, "maximum": 9, "description": "Greater than 0."}),
    );
    property(
        json!({"type": "integer", "allOf": [{"maximum": 9, "exclusiveMaximum": true}, {"exclusiveMaximum": 8}]}),
        json!({"type": "integer", "maximum": 9, "description": "Less than 8."}),
    );
    property(json!({"type": "number", "exclusiveMinimum": true}), json!({"type": "number"}));
}

#[test]
fn all_of_is_merged() {
    listed(
        json!({"allOf": [
            {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 2}, "b": {"type": "string"}}, "required": ["b"]},
        ]}),
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 2}, "b": {"type": "string"}},
            "required": ["a", "b"],
        }),
    );
}

#[test]
fn references_are_written_out_and_circles_are_cut() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/p%61ir", "description": "A pair"},
            "tree": {"$ref": "#/$defs/tree"},
            "json": {"$ref": "#/$defs/json"},
        },
        "$defs": {
            "pair": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "tree": {
                "type": "object",
                "properties": {"left": {"$ref": "#/$defs/tree"}, "name": {"type": "string"}},
                "required": ["left", "name"],
            },
            "json": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/json"}}]},
        },
    });
    let portable = input(&schema);
    let pair = json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "description": "A pair"});
    assert_eq!(portable.schema["properties"]["a"], pair);
    let cut = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "description": "Repeats the form of `tree`.",
    });
    assert_eq!(portable.schema["properties"]["tree"]["properties"]["left"], cut);
    let list = &portable.schema["properties"]["json"]["anyOf"][1]["items"];
    assert_eq!(*list, json!({"type": "string", "description": "Any JSON value. Repeats the form of `json`."}));
    assert_eq!(portable.schema.get("$defs"), None);
}

#[test]
fn what_stands_beside_a_reference_to_a_part_above_is_said() {
    let portable = input(&json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/tree"}},
        "$defs": {"tree": {"type": "object", "properties": {
            "name": {"type": "string"},
            "left": {"$ref": "#/$defs/tree", "required": ["name"], "description": "The left one."},
            "right": {"$ref": "#/$defs/tree", "additionalProperties": false},
        }}},
    }));
    let members = &portable.schema["properties"]["tree"]["properties"];
    let text = "The left one. Repeats the form of `tree`. And: {\"required\":[\"name\"]}.";
    assert_eq!(members["left"]["description"], text);
    assert_eq!(members["right"]["description"], "Repeats the form of `tree`. Only these members: none.");
}

#[test]
fn a_part_that_is_not_written_out_says_why() {
    let text = |portable: &Portable, path: &str| {
        let part = portable.schema.pointer(path).unwrap_or_else(|| panic!("no {path} in {}", portable.schema));
        part["description"].as_str().unwrap_or_default().to_owned()
    };
    let recursive = input(&json!({
        "type": "object",
        "properties": {"whole": {"$ref": "#"}, "a": {"anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"b": {"$ref": "#/$defs/t"}}},
            {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer"}}}},
        ]}},
        "$defs": {"t": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}, "n": {"type": "integer"}}}},
    }));
    assert_eq!(text(&recursive, "/properties/whole"), "Repeats the form of all arguments.");
    // Several forms have an `a.b`.
    assert_eq!(text(&recursive, "/properties/a/anyOf/1/properties/b/properties/t"), sentences::REPEATS_ANOTHER);
    let simplified: Vec<&str> = recursive.simplified.iter().map(|part| part.what.as_str()).collect();
    assert_eq!(simplified, ["recursion", "recursion"]);

    let nested = |depth: usize| {
        let deepest = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let part = (0..depth).fold(deepest, |inner, _| json!({"type": "object", "properties": {"x": inner}}));
        input(&json!({"type": "object", "properties": {"x": part}}))
    };
    let deep = nested(11);
    assert_eq!(text(&deep, &"/properties/x".repeat(11)), sentences::DEEPER);
    assert_eq!(deep.simplified.iter().map(|part| part.what.as_str()).collect::<Vec<_>>(), ["nested too deep"]);
    assert!(!nested(9).schema.to_string().contains('…'));

    let members: serde_json::Map<String, Value> =
        (0..2_010).map(|number| (format!("p{number}"), json!({"type": "integer"}))).collect();
    let many = input(&json!({"type": "object", "properties": members}));
    assert_eq!(text(&many, "/properties/p2009"), sentences::LEFT_OUT);
    assert_eq!(many.simplified.iter().map(|part| part.what.as_str()).collect::<Vec<_>>(), ["more than 2,000 parts"]);

    let merged = (0..20).fold(json!({"type": "integer"}), |inner, _| json!({"allOf": [inner]}));
    let merged = input(&json!({"type": "object", "properties": {"a": merged}}));
    assert_eq!(text(&merged, "/properties/a"), format!("Any JSON value. {}", sentences::DEEPER));
}

#[test]
fn what_does_not_count_in_its_draft_is_not_listed() {
    let with = |draft: &str, part: Value| {
        let schema = format!("http://json-schema.org/{draft}/schema#");
        let root = json!({"$schema": schema, "type": "object", "properties": {"a": part}, "definitions": {
            "n": {"type": "integer"}}});
        input(&root).schema["properties"]["a"].clone()
    };
    let beside = json!({"$ref": "#/definitions/n", "minimum": 5, "description": "A number."});
    assert_eq!(with("draft-07", beside.clone()), json!({"type": "integer", "description": "A number."}));
    assert_eq!(with("2019-09", beside)["minimum"], 5);
    let quoted = json!({"type": "string", "not": {"$ref": "#/definitions/n", "minimum": 5}});
    assert_eq!(with("draft-04", quoted)["description"], "Not: {\"type\":\"integer\"}.");
    let constant = json!({"type": "string", "const": "on"});
    assert_eq!(with("draft-04", constant.clone()), json!({"type": "string"}));
    assert_eq!(with("draft-06", constant.clone())["enum"], json!(["on"]));
    let result = |draft: &str| {
        let schema = format!("http://json-schema.org/{draft}/schema#");
        let root = json!({"$schema": schema, "type": "object", "properties": {"a": constant}});
        output(&root).schema["properties"]["a"].clone()
    };
    assert_eq!([result("draft-04").get("enum"), result("draft-07").get("enum")], [None, Some(&json!(["on"]))]);
    let named = json!({"type": "object", "properties": {"a": {"$ref": "#point"}}, "$defs": {
        "p": {"$anchor": "point", "type": "integer"}}});
    assert_eq!(input(&named).schema["properties"]["a"], json!({"type": "integer"}));
}

#[test]
fn names_in_a_quote_may_be_words_of_schemas() {
    let names = json!({"definitions": {"type": "integer"}, "$id": {"const": 1}, "allOf": true, "$ref": {"minimum": 2}});
    let portable = input(&json!({"type": "object", "not": {"$id": "urn:x", "properties": names}}));
    assert_eq!(portable.notes, [format!("Not: {}.", json!({"properties": names}))]);
}

#[test]
fn a_long_rule_is_quoted_as_a_whole() {
    let choices: Vec<u32> = (1_000..1_400).collect();
    let part = json!({"type": "integer", "enum": choices});
    let listed = input(&json!({"type": "object", "properties": {"a": part}})).schema;
    let text = listed["properties"]["a"]["description"].as_str().unwrap();
    assert!(text.ends_with("1398, 1399.") && !text.contains('…'), "{text}");
}

#[test]
fn references_that_multiply_stay_bounded() {
    let mut defs = serde_json::Map::new();
    for level in 0..9 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        let properties: serde_json::Map<String, Value> =
            (0..10).map(|index| (format!("p{index}"), next.clone())).collect();
        defs.insert(format!("l{level}"), json!({"type": "object", "properties": properties}));
    }
    defs.insert("l9".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs});
    assert!(input(&schema).schema.to_string().len() <= 20 << 10);
}

#[test]
fn references_that_double_are_cut_with_words() {
    let mut defs = serde_json::Map::from_iter([("l12".to_owned(), json!({"type": "string"}))]);
    for level in 0..12 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1), "description": "Left or right of what is above."});
        defs.insert(format!("l{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs});
    let listed = input(&schema).schema.to_string();
    assert!((4 << 10..=20 << 10).contains(&listed.len()), "{}", listed.len());
    assert!(listed.contains(sentences::LEFT_OUT));
    assert!(output(&schema).schema.to_string().len() <= 20 << 10);
}

#[test]
fn a_long_schema_without_references_is_listed_as_a_whole() {
    let members: serde_json::Map<String, Value> = (0..300)
        .map(|number| (format!("p{number}"), json!({"type": "string", "description": "d".repeat(150)})))
        .collect();
    listed(json!({"type": "object", "properties": members}), json!({"type": "object", "properties": members}));
}

/// What a schema costs in the list.
#[track_caller]
fn stays_small(schema: &Value) -> Portable {
    let portable = input(schema);
    let text = portable.schema.to_string() + &portable.notes.concat();
    let most = (64 << 10).min(schema.to_string().len() + (16 << 10));
    let listed = portable.schema.to_string().len();
    assert!(listed <= most, "{listed} bytes of {}", schema.to_string().len());
    assert!(text.contains(sentences::LEFT_OUT), "it says that something is left out");
    assert!(portable.simplified.iter().any(|part| part.what == "more text than is listed"));
    assert_eq!(violations(&portable.schema), Vec::<String>::new());
    let output = output(schema).schema;
    assert!(output.to_string().len() <= most, "{} bytes of output", output.to_string().len());
    assert_eq!(violations(&output), Vec::<String>::new());
    portable
}

/// A schema whose members are all the same.
fn repeated(times: usize, part: Value) -> Value {
    let members: serde_json::Map<String, Value> =
        (0..times).map(|number| (format!("p{number}"), json!({"$ref": "#/$defs/a"}))).collect();
    json!({"type": "object", "properties": members, "$defs": {"a": part, "b": {
        "type": "object", "properties": {"x": {"type": "string", "pattern": "y".repeat(400)}}}}})
}

#[test]
fn the_text_that_references_and_alternatives_copy_is_bounded() {
    let long = "d".repeat(30_000);
    let forms: Vec<Value> = (0..16)
        .map(|number| json!({"type": "object", "properties": {format!("k{number}"): {"type": "string"}}}))
        .collect();
    let conditions: Vec<Value> = (0..400)
        .map(|number| json!({"if": {"minProperties": number, "$ref": "#/$defs/b"}, "then": {"required": ["z"]}}))
        .collect();
    let odd: serde_json::Map<String, Value> =
        (0..400).map(|number| (format!("ä{number}"), json!({"$ref": "#/$defs/b"}))).collect();
    let listed = stays_small(&repeated(600, json!({"type": "string", "description": long})));
    let members = listed.schema["properties"].as_object().unwrap();
    assert_eq!(members["p0"]["description"], long);
    assert_eq!(members["p9"], json!({"type": "string", "description": sentences::LEFT_OUT}));
    stays_small(&repeated(100, json!({"description": long, "anyOf": forms})));
    stays_small(&repeated(600, json!({"type": ["string", "integer", "boolean"], "title": long})));
    stays_small(&repeated(600, json!({"enum": ["on", long]})));
    stays_small(&repeated(600, json!({"type": "string", "default": long})));
    stays_small(&repeated(600, json!({"type": "object", "allOf": conditions})));
    stays_small(&repeated(600, json!({"type": "object", "properties": odd})));
    stays_small(&json!({"type": "object", "properties": odd, "allOf": conditions, "$defs": {
        "b": {"type": "string", "pattern": "y".repeat(400)}}}));
}

#[test]
fn an_array_says_what_is_in_it() {
    let anything = json!({"type": "string", "description": "Any JSON value."});
    property(json!({"type": "array"}), json!({"type": "array", "items": anything}));
}

#[test]
fn null_is_left_out_of_what_may_be_given() {
    property(json!({"type": ["string", "null"], "default": null}), json!({"type": "string"}));
    property(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!({"type": "integer"}));
    property(json!({"enum": ["x", null]}), json!({"type": "string", "enum": ["x"]}));
}

#[test]
fn a_union_stands_alone_with_its_texts_inside() {
    property(
        json!({"description": "Which", "oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
        json!({"anyOf": [
            {"type": "string", "description": "Which"},
            {"type": "integer", "minimum": 1, "description": "Which"},
        ]}),
    );
    property(
        json!({"oneOf": [{"const": "a", "description": "First."}, {"const": "b", "description": "Second."}]}),
        json!({"type": "string", "enum": ["a", "b"], "description": "\"a\": First. \"b\": Second."}),
    );
    property(
        json!({"default": "b", "pattern": "^.$", "oneOf": [{"const": "a"}, {"const": "b"}]}),
        json!({"type": "string", "enum": ["a", "b"], "default": "b", "description": "Pattern: `^.$`."}),
    );
}

#[test]
fn alternatives_that_overlap_are_quoted() {
    let text = r#"Exactly one of: [{"type":"number"},{"type":"integer"}]."#;
    property(
        json!({"oneOf": [{"type": "number"}, {"type": "integer"}]}),
        json!({"anyOf": [{"type": "number", "description": text}, {"type": "integer", "description": text}]}),
    );
}

#[test]
fn no_alternative_is_lost_without_words() {
    let numbers: Vec<Value> = (0..30).map(|number| json!({"const": number})).collect();
    let listed = input(&json!({"properties": {"a": {"oneOf": numbers}}})).schema;
    let text = listed["properties"]["a"]["description"].as_str().unwrap();
    assert!(text.starts_with("One of: 0, 1,") && text.ends_with("28, 29."), "{text}");

    let texts = (0..30).map(|number| json!({"const": format!("t{number}")}));
    let texts: Vec<Value> = texts.chain([json!({"type": "integer"})]).collect();
    let listed = input(&json!({"properties": {"a": {"anyOf": texts}}})).schema;
    let forms = listed["properties"]["a"]["anyOf"].as_array().unwrap();
    assert_eq!((forms.len(), forms[0]["enum"].as_array().unwrap().len()), (2, 30));

    let objects: Vec<Value> = (0..20)
        .map(|number| {
            let name = format!("m{number}");
            json!({"type": "object", "properties": {name.clone(): {"type": "string"}}, "required": [name]})
        })
        .collect();
    let portable = input(&json!({"properties": {"a": {"anyOf": objects}}}));
    let forms = portable.schema["properties"]["a"]["anyOf"].as_array().unwrap();
    assert_eq!(forms.len(), 16);
    let text = forms[0]["description"].as_str().unwrap();
    assert!(text.starts_with("Or one of these forms: ") && ["m16", "m19"].iter().all(|name| text.contains(name)));
    assert_eq!(portable.simplified[0].what, "more than 16 alternatives");
}

#[test]
fn alternatives_of_a_large_schema_are_copied_within_bounds_and_the_rest_is_said() {
    let members: serde_json::Map<String, Value> =
        (0..800).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
    let forms: Vec<Value> = (0..1_000).map(|number| json!({"required": [format!("p{}", number % 800)]})).collect();
    let large = json!({"type": "object", "properties": members, "oneOf": forms});
    let portable = input(&json!({"type": "object", "properties": {"a": large.clone()}}));
    let text = portable.schema["properties"]["a"]["anyOf"][0]["description"].as_str().unwrap().to_owned();
    assert!(text.contains("Or one of these forms: [{\"required\":[\"p31\"]}"), "{text}");
    assert!(text.contains("Exactly one of: [{\"required\":[\"p0\"]}"), "{text}");
    let portable = input(&large);
    assert_eq!(portable.schema["properties"].as_object().unwrap().len(), 800);
    let rule = portable.schema["description"].as_str().unwrap();
    assert!(rule.starts_with("Exactly one of: [{") && rule.ends_with("\"…\"]."), "{rule}");
    assert_eq!(output(&large).schema["properties"].as_object().unwrap().len(), 800);
}

#[test]
fn what_stands_beside_any_value_is_said() {
    let anything = |text: &str| json!({"type": "string", "description": format!("Any JSON value. {text}")});
    property(json!({"not": {"type": "string"}}), anything(r#"Not: {"type":"string"}."#));
    let condition = json!({"if": {"type": "string"}, "then": {"maxLength": 3}});
    property(condition, anything(r#"If {"type":"string"} then {"maxLength":3}."#));
}

#[test]
fn what_must_be_null_or_empty_is_said() {
    let portable = input(&json!({
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"const": null}, "c": {"type": ["string", "null"]}},
        "required": ["b", "c"],
    }));
    let c = json!({"type": "string", "description": "May be null."});
    assert_eq!(portable.schema, json!({"type": "object", "properties": {"c": c}, "required": ["c"]}));
    assert_eq!(portable.notes, ["`a` is null or left out.", "`b` must be null."]);
    let anything = json!({"type": "string", "description": "Any JSON value."});
    property(json!({"type": "array", "items": false}), json!({"type": "array", "items": anything, "maxItems": 0}));
    let only_null = json!({"type": "string", "description": "Only null."});
    property(json!({"type": "array", "items": {"type": "null"}}), json!({"type": "array", "items": only_null}));
    let impossible = json!({"type": "object", "properties": {"a": false}, "required": ["a"]});
    assert_eq!(input(&impossible).notes, ["No arguments are valid."]);
}

#[test]
fn an_object_without_members_has_one_that_stands_for_all() {
    let any_name = |kind: &str| json!({"any_name": {"type": kind, "description": "A placeholder: give members by their own names instead."}});
    property(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({
            "type": "object", "properties": any_name("integer"),
            "description": "Further members, each: {\"type\":\"integer\"}.",
        }),
    );
    property(json!({"type": "object"}), json!({"type": "object", "properties": any_name("string")}));
    let unused = json!({"unused": {"type": "string", "description": "A placeholder: leave it out."}});
    property(
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "properties": unused, "description": "No other members."}),
    );
    property(
        json!({"type": "object", "properties": {"größe": {"type": "integer"}}, "additionalProperties": false}),
        json!({
            "type": "object", "properties": unused,
            "description": "May have a member \"größe\": {\"type\":\"integer\"}. No other members.",
        }),
    );
    let result = output(&json!({"type": "object", "properties": {"a": {"type": "object"}}}));
    assert_eq!(result.schema, json!({"type": "object", "properties": {"a": {}}}));
}

#[test]
fn a_closed_part_names_the_members_it_knows() {
    let portable = input(&json!({"allOf": [
        {"properties": {"a": {"type": "string"}}, "additionalProperties": false},
        {"properties": {"b": {"type": "string"}}},
    ]}));
    assert_eq!(portable.notes, ["Only these members: `a`."]);
}

#[test]
fn the_first_items_of_a_list_are_listed_as_forms_and_ordered_by_words() {
    let text = r#"The first items, in order: [{"type":"string"},{"type":"number"}]. No further items."#;
    property(
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
        json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "description": text}),
    );
}

#[test]
fn a_quoted_schema_has_its_references_written_out() {
    let portable = input(&json!({
        "type": "object", "not": {"required": ["a"], "$ref": "#/$defs/x"}, "$defs": {"x": {"minProperties": 2}},
    }));
    assert_eq!(portable.notes, [r#"Not: {"required":["a"],"allOf":[{"minProperties":2}]}."#]);
}

#[test]
fn an_enum_has_texts_only() {
    property(json!({"enum": [1, 2]}), json!({"type": "integer", "description": "One of: 1, 2."}));
    property(json!({"type": "string", "enum": ["x", "x"]}), json!({"type": "string", "enum": ["x"]}));
    let mixed = json!({"anyOf": [
        {"type": "integer", "description": "One of: 1."},
        {"type": "string", "enum": ["x"]},
    ]});
    property(json!({"enum": ["x", 1]}), mixed);
}

#[test]
fn boolean_schemas_are_said_otherwise() {
    property(json!(true), json!({"type": "string", "description": "Any JSON value."}));
    listed(
        json!({"type": "object", "properties": {"never": false, "b": {"type": "boolean"}}, "required": ["b"]}),
        json!({"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]}),
    );
}

#[test]
fn keywords_that_some_refuse_become_words() {
    property(
        json!({"type": "string", "format": "email", "pattern": "^.+@", "$comment": "x", "description": "Where to."}),
        json!({"type": "string", "description": "Where to. Format: email. Pattern: `^.+@`."}),
    );
    let portable = input(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:x",
        "type": "object",
        "additionalProperties": false,
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
    }));
    assert_eq!(portable.schema, json!({"type": "object", "properties": {}}));
    assert_eq!(portable.notes, [r#"If {"required":["a"]} then {"required":["b"]}."#, "No other members."]);
}

#[test]
fn what_is_required_can_be_given() {
    let anything = json!({"type": "string", "description": "Any JSON value."});
    listed(
        json!({"type": "object", "required": ["a"]}),
        json!({"type": "object", "properties": {"a": anything}, "required": ["a"]}),
    );
}

#[test]
fn a_result_may_always_hold_more_than_its_schema_says() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"]}, "e": {"enum": ["", "x"]}, "x": {}},
        "required": ["n", "z"],
    });
    let expected =
        json!({"type": "object", "properties": {"n": {}, "e": {"type": "string"}, "x": {}}, "required": ["n"]});
    let portable = output(&schema);
    assert_eq!(portable.schema, expected);
    assert_eq!((portable.notes, violations(&expected)), (vec![], vec![]));
}

#[test]
fn bounds_that_leave_nothing_are_never_valid() {
    for part in [
        json!({"type": "integer", "minimum": 2, "maximum": 0}),
        json!({"allOf": [{"type": "number", "minimum": 2}, {"maximum": 0}]}),
        json!({"type": "number", "exclusiveMinimum": 2, "maximum": 2}),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "array", "minItems": 1, "allOf": [{"maxItems": 0}]}),
    ] {
        let root = json!({"type": "object", "properties": {"a": part, "b": {"type": "string"}}});
        let portable = input(&root);
        assert_eq!(portable.schema["properties"], json!({"b": {"type": "string"}}), "{part}");
        assert_eq!(portable.notes, ["Never with `a`."]);
        assert!(!keeps_shape(&root));
    }
    let portable = input(&json!({"type": "object", "minProperties": 2, "maxProperties": 1}));
    assert_eq!(portable.notes, [sentences::NEVER]);
    property(
        json!({"type": "integer", "minimum": 2, "maximum": 2}),
        json!({"type": "integer", "minimum": 2, "maximum": 2}),
    );
}

#[test]
fn a_default_is_one_of_the_listed_values() {
    let values = json!(["on", "off"]);
    property(json!({"enum": values, "default": "on"}), json!({"type": "string", "enum": values, "default": "on"}));
    property(json!({"enum": values, "default": "dim"}), json!({"type": "string", "enum": values}));
    property(
        json!({"type": "string", "enum": ["", "on"], "default": ""}),
        json!({"type": "string", "enum": ["on"], "description": "An empty string is valid too. Default: \"\"."}),
    );
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"type": "string"})),
        Just(json!({"type": ["string", "null"], "minLength": 1})),
        Just(json!({"type": "integer", "minimum": 0, "exclusiveMaximum": 9})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!({"enum": ["a", "b", ""]})),
        Just(json!({"enum": [1, "a", null, true]})),
        Just(json!({"const": 3})),
        Just(json!({"const": {"a": 1}})),
        Just(json!({"$ref": "#/$defs/x"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/$defs/tree"})),
        Just(json!({"$ref": "#/$defs/tree", "maxProperties": 1})),
        Just(json!({"$ref": "#/$defs/any"})),
        Just(json!({"minimum": 3})),
        Just(json!({"type": "object"})),
        Just(json!({"type": "array", "items": false, "minItems": 1.0})),
        Just(json!({"type": "array", "uniqueItems": true})),
        Just(json!({"type": "string", "pattern": "^a"})),
        Just(json!({"type": ["object", "null"], "maxProperties": 1})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("c")];
        let named = prop::collection::btree_map(name.clone(), inner.clone(), 0..3);
        let required = prop::collection::btree_set(name, 0..2);
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (named.clone(), required.clone(), any::<bool>()).prop_map(|(properties, required, is_closed)| {
                let mut schema = json!({"type": "object", "properties": properties, "required": required});
                if is_closed {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
            list.clone().prop_map(|items| json!({"prefixItems": items})),
            (list.clone(), inner.clone()).prop_map(|(first, rest)| json!({"prefixItems": first, "items": rest})),
            inner.clone().prop_map(|item| json!({"contains": item, "minContains": 2})),
            (named.clone(), inner.clone())
                .prop_map(|(properties, rest)| json!({"properties": properties, "additionalProperties": rest})),
            inner.clone().prop_map(|rest| json!({"patternProperties": {"^a": rest}, "additionalProperties": false})),
            inner.clone().prop_map(|name| json!({"type": "object", "dependentSchemas": {"a": name}})),
            list.clone().prop_map(|all| json!({"anyOf": all})),
            list.clone().prop_map(|all| json!({"oneOf": all, "description": "x"})),
            list.prop_map(|all| json!({"allOf": all})),
            inner.clone().prop_map(|schema| json!({"not": schema})),
            (named, required)
                .prop_map(|(properties, required)| json!({"properties": properties, "required": required})),
            inner.clone().prop_map(|schema| json!({"if": schema, "then": {"type": "object"}})),
            (inner.clone(), inner).prop_map(|(one, two)| json!({"if": one, "else": two})),
        ]
    })
}

/// What the references of [`schemas`] lead to.
fn definitions() -> Value {
    json!({
        "x": {"type": "integer"},
        "tree": {"type": "object", "properties": {
            "a": {"$ref": "#/$defs/tree"}, "b": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "additionalProperties": false},
        "any": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"$ref": "#/$defs/any"}},
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/any"}}, "required": ["a"]}]},
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2i64..10).prop_map(Value::from),
        Just(json!(0.5)),
        prop_oneof![Just("a"), Just("b"), Just("")].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_comes_the_result_is_portable(root in schemas(), other in schemas()) {
        let mut root = root;
        if let Value::Object(members) = &mut root {
            let mut all = definitions();
            all["x"] = other;
            members.insert("$defs".to_owned(), all);
        }
        for portable in [input(&root), output(&root)] {
            prop_assert_eq!(violations(&portable.schema), Vec::<String>::new(), "{}", portable.schema);
        }
    }

    #[test]
    fn what_keeps_its_shape_at_a_glance_keeps_it_when_listed(a in schemas(), b in schemas()) {
        let root = json!({"type": "object", "properties": {"a": a, "b": {"type": "array", "items": b}}});
        for portable in [input(&root), output(&root)] {
            let reshaped = portable.simplified.iter().any(|part| part.rule().changes_shape);
            prop_assert!(!(keeps_shape(&root) && reshaped), "{root}: {:?}", portable.simplified);
        }
    }

    #[test]
    fn what_fits_the_listed_input_and_its_text_fits_the_original(
        a in schemas(), b in schemas(), is_needed in any::<bool>(), given in prop::collection::vec((values(), values()), 6),
    ) {
        let required = if is_needed { json!(["a"]) } else { json!([]) };
        let root = json!({
            "type": "object", "properties": {"a": a, "b": b}, "required": required, "$defs": definitions(),
        });
        let given = given.into_iter().flat_map(|(a, b)| [json!({"a": a, "b": b}), json!({"a": a}), json!({"b": b})]);
        restored::check_refusals(&root, given)?;
    }

    #[test]
    fn what_fits_a_listed_root_and_its_text_fits_the_original(
        schema in schemas(), given in prop::collection::vec(values(), 12),
    ) {
        let Value::Object(mut root) = schema else { return Ok(()) };
        root.insert("type".to_owned(), json!("object"));
        root.insert("$defs".to_owned(), definitions());
        restored::check_refusals(&Value::Object(root), given.into_iter().filter(Value::is_object))?;
    }

    #[test]
    fn what_a_tool_answers_fits_the_listed_output(schema in schemas(), value in values()) {
        let root = json!({"type": "object", "properties": {"a": schema}, "$defs": definitions()});
        let Ok(original) = jsonschema::validator_for(&root) else { return Ok(()) };
        let given = json!({"a": value});
        if original.is_valid(&given) {
            let portable = output(&root);
            let listed = jsonschema::validator_for(&portable.schema).unwrap();
            prop_assert!(listed.is_valid(&given), "{} of {root} became {}", given, portable.schema);
        }
    }

    #[test]
    fn what_a_tool_answers_fits_alternatives_at_the_root(one in schemas(), two in schemas(), value in values()) {
        let root = json!({"type": "object", "anyOf": [one, two], "$defs": definitions()});
        let Ok(original) = jsonschema::validator_for(&root) else { return Ok(()) };
        if value.is_object() && original.is_valid(&value) {
            let portable = output(&root);
            let listed = jsonschema::validator_for(&portable.schema).unwrap();
            prop_assert!(listed.is_valid(&value), "{} of {root} became {}", value, portable.schema);
        }
    }
}
