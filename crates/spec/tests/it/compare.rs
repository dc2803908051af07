//! What counts as breaking, additive or cosmetic.

use serde_json::{Value, json};
use sinew_spec::compare::{Bump, Impact, diff, diff_documents, diff_lists};
use sinew_spec::{Document, ListDetail};
use sinew_tool::{Hints, Tool, Version};

fn object(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn impact(old: Tool, new: Tool) -> Option<Impact> {
    diff(&[old], &[new]).changes.iter().map(|change| change.impact).max()
}

fn input(old: Value, new: Value) -> Option<Impact> {
    impact(Tool::new("t", "d", old), Tool::new("t", "d", new))
}

fn output(old: Value, new: Value) -> Option<Impact> {
    let tool = |schema| Tool::new("t", "d", json!({"type": "object"})).with_output_schema(schema);
    impact(tool(old), tool(new))
}

/// A change of one parameter or field: its impact on input and on output.
fn both(old: Value, new: Value) -> (Option<Impact>, Option<Impact>) {
    let wrap = |schema: Value| object(json!({"x": schema}), json!(["x"]));
    (input(wrap(old.clone()), wrap(new.clone())), output(wrap(old), wrap(new)))
}

const WIDER: (Option<Impact>, Option<Impact>) = (Some(Impact::Additive), Some(Impact::Breaking));
const NARROWER: (Option<Impact>, Option<Impact>) = (Some(Impact::Breaking), Some(Impact::Additive));
const OTHER: (Option<Impact>, Option<Impact>) = (Some(Impact::Breaking), Some(Impact::Breaking));
const WORDS: (Option<Impact>, Option<Impact>) = (Some(Impact::Cosmetic), Some(Impact::Cosmetic));

#[test]
fn the_rules_of_the_standard_for_inputs() {
    let base = || object(json!({"a": {"type": "string"}, "b": {"type": "integer"}}), json!(["a"]));
    let with = |properties, required| input(base(), object(properties, required));
    let (a, b, c) = (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    assert_eq!(with(json!({"a": a, "b": b}), json!(["a"])), None);
    // Adding required parameters, removing parameters, changing types: breaking.
    assert_eq!(with(json!({"a": a, "b": b, "c": c}), json!(["a", "c"])), Some(Impact::Breaking));
    assert_eq!(with(json!({"a": a, "b": b}), json!(["a", "b"])), Some(Impact::Breaking));
    assert_eq!(with(json!({"a": a}), json!(["a"])), Some(Impact::Breaking));
    assert_eq!(with(json!({"a": a, "b": a}), json!(["a"])), Some(Impact::Breaking));
    // Adding optional parameters: additive.
    assert_eq!(with(json!({"a": a, "b": b, "c": c}), json!(["a"])), Some(Impact::Additive));
    assert_eq!(with(json!({"a": a, "b": b}), json!([])), Some(Impact::Additive));
}

#[test]
fn the_rules_of_the_standard_for_outputs() {
    let base = || object(json!({"a": {"type": "string"}}), json!(["a"]));
    let with = |properties, required| output(base(), object(properties, required));
    let (a, b) = (json!({"type": "string"}), json!({"type": "integer"}));
    assert_eq!(with(json!({"a": a, "b": b}), json!(["a"])), Some(Impact::Additive));
    assert_eq!(with(json!({"a": a, "b": b}), json!(["a", "b"])), Some(Impact::Additive));
    assert_eq!(with(json!({}), json!([])), Some(Impact::Breaking));
    assert_eq!(with(json!({"a": a}), json!([])), Some(Impact::Breaking));
    assert_eq!(with(json!({"a": b}), json!(["a"])), Some(Impact::Breaking));
}

#[test]
fn every_keyword_has_the_right_impact_in_each_direction() {
    let cases = [
        (json!({"type": "integer"}), json!({"type": "number"}), WIDER),
        (json!({"type": "string"}), json!({"type": ["string", "null"]}), WIDER),
        (json!({"type": "string"}), json!({"type": "integer"}), OTHER),
        (json!({"type": "string"}), json!({}), WIDER),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), NARROWER),
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), WIDER),
        (json!({"enum": ["a"]}), json!({"enum": ["b"]}), OTHER),
        (json!({"enum": [1]}), json!({"const": 1.0}), (None, None)),
        (json!({"type": "string"}), json!({"type": "string", "enum": ["a"]}), NARROWER),
        (json!({"enum": ["a"]}), json!({"type": "string", "enum": ["a"]}), (None, None)),
        (json!({"type": "integer", "minimum": 0}), json!({"type": "integer", "minimum": 1}), NARROWER),
        (json!({"type": "integer", "minimum": 0}), json!({"type": "integer", "exclusiveMinimum": 0}), NARROWER),
        (json!({"type": "integer", "maximum": 5}), json!({"type": "integer", "maximum": 9}), WIDER),
        (json!({"type": "integer", "maximum": 5}), json!({"type": "integer"}), WIDER),
        (json!({"type": "integer", "multipleOf": 2}), json!({"type": "integer", "multipleOf": 6}), NARROWER),
        (json!({"type": "integer", "multipleOf": 2}), json!({"type": "integer", "multipleOf": 3}), OTHER),
        (json!({"type": "string", "minLength": 1}), json!({"type": "string", "minLength": 0}), WIDER),
        (json!({"type": "string"}), json!({"type": "string", "minLength": 0}), (None, None)),
        (json!({"type": "string", "maxLength": 5}), json!({"type": "string", "maxLength": 4}), NARROWER),
        (json!({"type": "string"}), json!({"type": "string", "pattern": "^a"}), NARROWER),
        (
            json!({"type": "string", "pattern": "^b"}),
            json!({"type": "string", "pattern": "^a"}),
            (Some(Impact::Undecided), Some(Impact::Undecided)),
        ),
        (json!({"type": "string"}), json!({"type": "string", "format": "date"}), NARROWER),
        (json!({"type": "string", "format": "date"}), json!({"type": "string", "format": "uri"}), OTHER),
        (json!({"type": "integer"}), json!({"type": "integer", "minLength": 3}), (None, None)),
        (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}), NARROWER),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}}}}),
            WIDER,
        ),
        (json!({"type": "array", "minItems": 2}), json!({"type": "array", "minItems": 1}), WIDER),
        (json!({"type": "array"}), json!({"type": "array", "uniqueItems": true}), NARROWER),
        (json!({"type": "array", "prefixItems": [{"type": "string"}]}), json!({"type": "array"}), WIDER),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": false}), NARROWER),
        (json!({"type": "object", "additionalProperties": false}), json!({"type": "object"}), WIDER),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "additionalProperties": {"type": "number"}}),
            WIDER,
        ),
        (json!({"anyOf": [{"type": "string"}]}), json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), WIDER),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            (None, None),
        ),
        (json!({"oneOf": [{"type": "string"}]}), json!({"oneOf": [{"type": "string"}, {"type": "null"}]}), WIDER),
        // Alternatives that overlap may push each other out.
        (
            json!({"oneOf": [{"type": "number"}]}),
            json!({"oneOf": [{"type": "number"}, {"type": "integer"}]}),
            (Some(Impact::Undecided), Some(Impact::Additive)),
        ),
        (json!({"allOf": [{"type": "string"}]}), json!({"allOf": [{"type": "string"}, {"minLength": 1}]}), NARROWER),
        (json!({"not": {"type": "string"}}), json!({"not": {"type": ["string", "null"]}}), NARROWER),
        (json!({"type": "string", "description": "a"}), json!({"type": "string", "description": "b"}), WORDS),
        (json!({"type": "string", "examples": [1]}), json!({"type": "string", "examples": [2]}), WORDS),
        (json!({"type": "string"}), json!({"type": "string", "contentEncoding": "base64"}), WORDS),
        (
            json!({"type": "string", "contentEncoding": "base64"}),
            json!({"type": "string", "contentEncoding": "base32"}),
            (Some(Impact::Undecided), Some(Impact::Undecided)),
        ),
        (
            json!({"type": "integer", "default": 1}),
            json!({"type": "integer", "default": 2}),
            (Some(Impact::Breaking), Some(Impact::Cosmetic)),
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "integer", "default": 2}),
            (Some(Impact::Additive), Some(Impact::Cosmetic)),
        ),
        (json!({"type": "object", "dependentRequired": {"a": ["b"]}}), json!({"type": "object"}), WIDER),
        (json!(true), json!({"type": "string"}), NARROWER),
        (json!(false), json!({"type": "string"}), WIDER),
    ];
    for (old, new, expected) in cases {
        assert_eq!(both(old.clone(), new.clone()), expected, "{old} -> {new}");
    }
}

#[test]
fn references_are_followed() {
    let with = |definition: Value| json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d"}}, "required": ["x"], "$defs": {"d": definition}});
    let narrow = || with(json!({"type": "integer"}));
    assert_eq!(input(narrow(), with(json!({"type": "number"}))), Some(Impact::Additive));
    assert_eq!(input(with(json!({"type": "number"})), narrow()), Some(Impact::Breaking));
    assert_eq!(input(narrow(), object(json!({"x": {"type": "integer"}}), json!(["x"]))), None);
    let tree = |leaf: &str| {
        json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}},
               "$defs": {"node": {"type": "object", "properties": {"value": {"type": leaf}, "next": {"$ref": "#/$defs/node"}}}}})
    };
    assert_eq!(input(tree("integer"), tree("number")), Some(Impact::Additive));
    assert_eq!(input(tree("number"), tree("integer")), Some(Impact::Breaking));
    assert_eq!(input(tree("number"), tree("number")), None);
}

#[test]
fn hidden_changes_are_found() {
    let text = || json!({"type": "string"});
    for (old, new, expected) in [
        (
            json!({"allOf": [{"allOf": [{"maxLength": 9}]}]}),
            json!({"allOf": [{"allOf": [{"maxLength": 5}]}]}),
            NARROWER,
        ),
        (json!({"allOf": [{"allOf": [{"maxLength": 5}]}]}), json!({"allOf": [{"allOf": [{"maxLength": 9}]}]}), WIDER),
        (json!({"const": 1}), json!({"const": 2}), OTHER),
        (json!({"const": "a"}), json!({"enum": ["a", "b"]}), WIDER),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "a"]}), (None, None)),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": true}), (None, None)),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": text()}), NARROWER),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}),
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}),
            NARROWER,
        ),
        (
            json!({"type": "string", "enum": ["aa"]}),
            json!({"type": "string", "enum": ["aa"], "maxLength": 1}),
            NARROWER,
        ),
        (
            json!({"oneOf": [text(), {"type": "integer"}]}),
            json!({"oneOf": [text(), {"type": "integer"}, {"type": "boolean"}]}),
            WIDER,
        ),
        (json!({"type": "object"}), json!({"type": "object", "if": {"required": ["a"]}, "then": false}), NARROWER),
        (json!({}), json!(true), (None, None)),
        (text(), json!({"type": "string", "x-widget": "area"}), WORDS),
    ] {
        assert_eq!(both(old.clone(), new.clone()), expected, "{old} -> {new}");
    }
    let defined = |key: &str, name: &str, kind: &str| json!({"type": "object", "properties": {"p": {"$ref": format!("#/{key}/{name}")}}, key: {name: {"type": kind}}});
    let old = defined("$defs", "one", "string");
    assert_eq!(input(old.clone(), defined("definitions", "two", "string")), None, "names of definitions are nobody's");
    assert_eq!(input(old.clone(), defined("$defs", "one", "integer")), Some(Impact::Breaking));
    assert_eq!(input(old, object(json!({"p": {"type": "string"}}), json!([]))), None, "written out in place");
}

#[test]
fn another_form_of_the_same_schema_is_no_change() {
    let defs = json!({"x": {"type": "object", "properties": {"y": {"type": "string"}}}});
    for (old, new) in [
        (json!({"allOf": [{"type": "string"}]}), json!({"type": "string"})),
        (json!({"allOf": [{"$ref": "#/$defs/x"}], "default": {}}), json!({"$ref": "#/$defs/x", "default": {}})),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({"type": ["null", "string"]})),
        (
            json!({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}], "title": "t"}),
            json!({"type": ["string", "null"], "maxLength": 5, "title": "t"}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
    ] {
        let whole = |schema: &Value| json!({"type": "object", "properties": {"p": schema}, "$defs": defs});
        for (one, two) in [(&old, &new), (&new, &old)] {
            assert_eq!((input(whole(one), whole(two)), output(whole(one), whole(two))), (None, None), "{one} -> {two}");
        }
    }
}

#[test]
fn forms_that_look_the_same_and_are_not_are_reported() {
    // A number may be an integer, so exactly one and any of them differ.
    let either = json!([{"type": "integer"}, {"type": "number"}]);
    assert_eq!(both(json!({"anyOf": either}), json!({"oneOf": either})).0, Some(Impact::Breaking));
    // What a branch closes is not described outside it.
    let closed = json!([{"type": "object", "additionalProperties": false}, {"type": "null"}]);
    let old = json!({"type": ["object", "null"], "properties": {"a": {}}, "additionalProperties": false});
    assert_eq!(both(old, json!({"properties": {"a": {}}, "anyOf": closed})).0, Some(Impact::Breaking));
    // A reference into the middle of a schema is not lost when its surroundings are made plain.
    let whole = |kind: &str| {
        json!({"type": "object", "properties": {
            "a": {"allOf": [{"type": kind}]}, "b": {"$ref": "#/properties/a/allOf/0"}}})
    };
    assert_eq!(input(whole("string"), whole("string")), None);
    assert_eq!(input(whole("string"), whole("integer")), Some(Impact::Breaking));
}

#[test]
fn alternatives_that_become_exclusive_are_checked_for_overlaps_in_the_new_schema() {
    let old = json!({"type": "object", "properties": {"x": {"oneOf": [{"type": "string"}, {"type": "null"}]}}});
    let new = json!({"type": "object", "properties": {"x": {
        "oneOf": [{"type": "string"}, {"type": "null"}, {"type": ["integer", "null"]}]}}});
    // Null fitted one alternative and fits two now.
    assert!(input(old.clone(), new) >= Some(Impact::Undecided));
    let apart = json!({"type": "object", "properties": {"x": {
        "oneOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}]}}});
    assert_eq!(input(old, apart), Some(Impact::Additive));
}

#[test]
fn an_alternative_that_is_listed_twice_excludes_what_it_matches() {
    let of = |parts: [&str; 3]| {
        let parts: Vec<Value> = parts.iter().map(|kind| json!({ "type": kind })).collect();
        json!({"type": "object", "properties": {"x": {"oneOf": parts}}})
    };
    let (old, new) = (of(["string", "number", "string"]), of(["string", "number", "number"]));
    // Texts are accepted now, numbers no longer.
    assert!(input(old.clone(), new.clone()) >= Some(Impact::Undecided));
    assert!(output(old.clone(), new) >= Some(Impact::Undecided));
    assert_eq!(input(old.clone(), of(["number", "string", "string"])), None);
}

#[test]
fn a_required_parameter_without_a_possible_value_is_breaking() {
    let old = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for never in [json!(false), json!({"not": {}})] {
        let new = json!({"type": "object", "properties": {"a": never}, "required": ["a"]});
        assert_eq!(input(old.clone(), new), Some(Impact::Breaking));
    }
}

#[test]
fn hints_are_promises() {
    let tool = |hints: Hints| Tool::new("t", "d", json!({"type": "object"})).with_hints(hints);
    let reading = || tool(Hints::reading());
    let destroying = || tool(Hints { destructive: Some(true), ..Hints::default() });
    let gentle = || tool(Hints { destructive: Some(false), ..Hints::default() });
    assert_eq!(impact(reading(), destroying()), Some(Impact::Breaking));
    assert_eq!(impact(destroying(), reading()), Some(Impact::Additive));
    assert_eq!(impact(gentle(), destroying()), Some(Impact::Breaking));
    assert_eq!(impact(destroying(), tool(Hints::default())), Some(Impact::Cosmetic));
    let idempotent = || tool(Hints { idempotent: Some(true), ..Hints::default() });
    assert_eq!(impact(idempotent(), tool(Hints::default())), Some(Impact::Breaking));
    assert_eq!(impact(tool(Hints::default()), idempotent()), Some(Impact::Additive));
}

#[test]
fn renames_are_one_change() {
    let old = Tool::new("read", "Reads.", object(json!({"path": {"type": "string"}}), json!(["path"])));
    let mut new = old.clone();
    new.name = "read_file".to_owned();
    let comparison = diff(std::slice::from_ref(&old), &[new]);
    assert_eq!(comparison.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), ["tool-renamed"]);
    assert_eq!(comparison.bump, Bump::Major);
    let other = Tool::new("read", "Reads.", object(json!({"file": {"type": "string"}}), json!(["file"])));
    let comparison = diff(&[old], &[other]);
    assert_eq!(comparison.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), ["renamed"]);
    assert_eq!(comparison.changes[0].path, "/inputSchema/properties/path");
}

#[test]
fn the_next_version_is_stated_and_the_declared_one_checked() {
    let version = |text: &str| Version::parse(text).unwrap();
    let old = |at: &str| Tool::new("t", "d", object(json!({}), json!([]))).with_version(version(at));
    let added =
        |at: &str| Tool::new("t", "d", object(json!({"x": {"type": "string"}}), json!([]))).with_version(version(at));
    let broken = |at: &str| {
        Tool::new("t", "d", object(json!({"x": {"type": "string"}}), json!(["x"]))).with_version(version(at))
    };
    for (one, two, required, enough) in [
        (old("1.2.3"), added("1.3.0"), "1.3.0", true),
        (old("1.2.3"), added("1.2.4"), "1.3.0", false),
        (old("1.2.3"), broken("2.0.0"), "2.0.0", true),
        (old("1.2.3"), broken("2.0.0-rc.1"), "2.0.0", true),
        (old("1.2.3"), broken("1.3.0"), "2.0.0", false),
        (old("0.2.3"), broken("0.3.0"), "0.3.0", true),
        (old("0.2.3"), broken("0.2.4"), "0.3.0", false),
    ] {
        let comparison = diff(&[one], &[two]);
        let check = &comparison.versions[0];
        assert_eq!((check.required.to_string().as_str(), check.enough), (required, enough), "{check:?}");
        assert_eq!(comparison.too_small().count(), usize::from(!enough));
    }
    let comparison = diff(&[old("1.0.0")], &[broken("1.0.0")]);
    assert_eq!(comparison.check_declared(&version("3.1.0"), &version("3.2.0")), Err(version("4.0.0")));
    assert_eq!(comparison.check_declared(&version("3.1.0"), &version("4.0.0")), Ok(()));
    assert_eq!(diff(&[old("1.0.0")], &[old("1.0.0")]).bump, Bump::None);
}

#[test]
fn a_comparison_is_shown_as_json_and_markdown() {
    let old = [
        Tool::new(
            "read",
            "Reads a file.",
            object(json!({"path": {"type": "string"}, "n": {"type": "integer", "maximum": 9}}), json!(["path"])),
        ),
        Tool::new("gone", "Was here.", json!({"type": "object"})),
    ];
    let new = [
        Tool::new(
            "read",
            "Reads one file.",
            object(json!({"path": {"type": "string", "pattern": "a|b"}, "n": {"type": "integer"}}), json!(["path"])),
        ),
        Tool::new("fresh", "Is here.", json!({"type": "object"})),
    ];
    let comparison = diff(&old, &new);
    insta::assert_json_snapshot!("diff_json", comparison.to_json());
    insta::assert_snapshot!("diff_markdown", comparison.to_markdown());
    assert_eq!(diff(&old, &old).to_markdown(), "No changes.\n");
}

#[test]
fn schemas_too_complex_to_compare_are_undecided_at_once() {
    let mut defs = serde_json::Map::new();
    for level in 0..60 {
        let next = format!("#/$defs/d{}", level + 1);
        defs.insert(
            format!("d{level}"),
            json!({"anyOf": [{"$ref": next}, {"$ref": next, "minLength": 1}, {"$ref": next, "maxLength": 2}]}),
        );
    }
    let bomb = |leaf: &str| {
        let mut defs = defs.clone();
        defs.insert("d60".to_owned(), json!({"type": leaf}));
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    };
    assert!(input(bomb("string"), bomb("integer")) >= Some(Impact::Undecided));
    let wide: serde_json::Map<String, Value> =
        (0..30_000).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
    assert_eq!(
        input(json!({"type": "object", "properties": wide}), json!({"type": "object"})),
        Some(Impact::Undecided)
    );
}

#[test]
fn two_lists_are_compared_alike_with_and_without_their_documents() {
    let tool = |name: &str, most: usize, more: Value| {
        let level = json!({"type": "integer", "maximum": most});
        let mut tool = json!({"name": name, "description": "Sets \"it\".", "inputSchema":
            {"type": "object", "properties": {"level": level, "half": {"default": 0.1}}}});
        tool.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        tool
    };
    let old = json!({"tools": [
        tool("same", 1, json!({})),
        tool("narrowed", 5, json!({"title": "Dimmer", "version": "1.2.0"})),
        tool("gone", 7, json!({"description": "Rings the bell."})),
        tool("task", 1, json!({"execution": {"taskSupport": "optional"}})),
    ]});
    let new = json!({"tools": [
        tool("narrowed", 4, json!({"title": "Dimmer", "version": "1.1.0"})),
        tool("same", 1, json!({})),
        tool("rung", 7, json!({"description": "Rings the bell."})),
        tool("task", 1, json!({"execution": {"taskSupport": "required"}})),
        tool("more", 9, json!({})),
    ], "nextCursor": null});
    for (old, new) in [(&old, &new), (&new, &old), (&old["tools"], &new["tools"]), (&old, &old)] {
        for (old, new) in [(old.to_string(), new.to_string()), (format!("{old:#}\n"), format!("\n {new:#}"))] {
            let compared = diff_documents(&Document::parse(&old), &Document::parse(&new));
            assert_eq!(diff_lists(&old, &new), Some(compared));
        }
    }
}

#[test]
fn a_list_with_something_to_report_is_not_compared_by_its_text() {
    let good = r#"[{"name": "a"}]"#;
    for broken in [
        r#"[{"name": "a", "inputSchema": {"type": "object", "type": "object"}}]"#,
        r#"[{"name": "a", "inputSchema": {"type": "object",}}]"#,
        r#"[{"name": "a", "inputSchema": {"type": object}}]"#,
        r#"[{"name": ""}]"#,
        r#"[{"name": "a" "b"}]"#,
    ] {
        assert_eq!(diff_lists(good, broken), None, "{broken}");
        assert_eq!(diff_lists(broken, good), None, "{broken}");
    }
}

#[test]
fn the_instructions_of_a_manifest_are_compared() {
    let manifest = |instructions: &str| {
        Document::parse(
            &json!({"instructions": instructions, "tools": [{"name": "a", "parameters": {"type": "object"}}]})
                .to_string(),
        )
    };
    assert_eq!(diff_documents(&manifest("Turn  it on."), &manifest("Turn it\non.")).changes, []);
    let found = diff_documents(&manifest("Turn it on."), &manifest("Pay first."));
    let [change] = found.changes.as_slice() else { panic!("{found:?}") };
    assert_eq!((change.path.as_str(), change.impact, found.bump), ("/instructions", Impact::Cosmetic, Bump::Patch));
    assert!(found.to_markdown().contains("### All tools"), "{}", found.to_markdown());
    assert_eq!(found.unannounced().count(), 0);
}

#[test]
fn what_unevaluated_keywords_refuse_depends_on_their_neighbours() {
    let closed = |mut schema: Value| {
        schema["type"] = json!("object");
        schema["unevaluatedProperties"] = json!(false);
        schema
    };
    let items = |mut schema: Value| {
        schema["type"] = json!("array");
        schema["unevaluatedItems"] = json!(false);
        json!({"type": "object", "properties": {"list": schema}})
    };
    let a = json!({"a": {"type": "string"}});
    // Whatever is gone here described what is refused now.
    for (old, new) in [
        (closed(json!({"properties": a, "additionalProperties": true})), closed(json!({"properties": a}))),
        (
            closed(json!({"$ref": "#/$defs/d", "$defs": {"d": {"additionalProperties": true}}})),
            closed(json!({"$ref": "#/$defs/d", "$defs": {"d": {}}})),
        ),
        (
            closed(json!({"allOf": [{"properties": a, "additionalProperties": {}}]})),
            closed(json!({"allOf": [{"properties": a}]})),
        ),
        (
            closed(json!({"allOf": [{"properties": a}, {"properties": {"b": {}}}]})),
            closed(json!({"allOf": [{"properties": a}]})),
        ),
        (
            closed(json!({"anyOf": [{"properties": a}, {"properties": {"b": {}}}]})),
            closed(json!({"anyOf": [{"properties": a}]})),
        ),
        (closed(json!({"anyOf": [{"properties": a}, true]})), closed(json!({}))),
        (closed(json!({"if": {"properties": a}})), closed(json!({}))),
        (
            closed(json!({"if": {"required": ["a"]}, "then": {"properties": a}})),
            closed(json!({"if": {"required": ["a"]}, "then": {}})),
        ),
        (closed(json!({"dependentSchemas": {"a": {"additionalProperties": true}}})), closed(json!({}))),
        (items(json!({"items": true})), items(json!({}))),
        (items(json!({"prefixItems": [true]})), items(json!({}))),
        (items(json!({"contains": true, "minContains": 0})), items(json!({}))),
        (items(json!({"allOf": [{"items": {}}]})), items(json!({"allOf": [{}]}))),
    ] {
        assert!(input(old.clone(), new.clone()) >= Some(Impact::Undecided), "{old} -> {new}");
        assert!(output(new.clone(), old.clone()) >= Some(Impact::Undecided), "{new} -> {old}");
    }
    // What still describes the same is no reason for doubt.
    for (old, new) in [
        (
            closed(json!({"properties": a, "anyOf": [{"required": ["a"]}, {"minProperties": 2}]})),
            closed(json!({"properties": a, "anyOf": [{"required": ["a"]}, {"minProperties": 1}]})),
        ),
        (
            closed(json!({"anyOf": [{"properties": {"n": {"maximum": 5}}}, {"properties": a}]})),
            closed(json!({"anyOf": [{"properties": {"n": {"maximum": 9}}}, {"properties": a}]})),
        ),
        (
            closed(json!({"allOf": [{"properties": a}, {"properties": {"b": true}}]})),
            closed(json!({"allOf": [{"properties": {"b": true}}, {"properties": a}]})),
        ),
        (closed(json!({"properties": a})), closed(json!({"properties": a, "additionalProperties": true}))),
    ] {
        assert!(input(old.clone(), new.clone()) <= Some(Impact::Additive), "{old} -> {new}");
    }
}

#[test]
fn a_new_member_that_no_value_fits_is_refused_in_whatever_words() {
    let old = object(json!({"a": {"type": "string"}}), json!([]));
    for nothing in
        [json!(false), json!({"not": {}}), json!({"enum": []}), json!({"not": true}), json!({"allOf": [false]})]
    {
        let new = object(json!({"a": {"type": "string"}, "b": nothing}), json!([]));
        assert_eq!(input(old.clone(), new.clone()), Some(Impact::Breaking), "{new}");
    }
}

#[test]
fn one_parameter_more_is_one_change_however_many_there_are() {
    let list = |count: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        json!([{"name": "a", "description": "Does it.", "inputSchema": schema}]).to_string()
    };
    for count in 198..203 {
        for (old, new, expected) in [(count, count + 1, "parameter-added"), (count + 1, count, "parameter-removed")] {
            let found = diff_lists(&list(old), &list(new)).unwrap();
            let kinds: Vec<&str> = found.changes.iter().map(|change| change.kind).collect();
            assert_eq!(kinds, [expected], "{old} -> {new}");
        }
    }
}

#[test]
fn what_could_not_be_read_is_told_where_its_text_differs() {
    let page = |unread: &str, parameters: &str| {
        Document::parse(&format!(
            "# T\n\n## Tool: `lamp`\n\n### Parameters\n\n{parameters}\n\n## `blink_it`\n\n{unread}\n"
        ))
    };
    let compared = |old: &Document, new: &Document| {
        let changes = diff_documents(old, new).changes;
        changes.into_iter().map(|change| (change.tool, change.kind, change.impact)).collect::<Vec<_>>()
    };
    let told = |tool: &str| vec![(tool.to_owned(), "not-compared", Impact::Undecided)];
    let old = page("Blinks.", "See the wiki, page 4.");
    assert_eq!(compared(&old, &old), []);
    assert_eq!(compared(&old, &page("Blinks twice.", "See the wiki, page 4.")), told("`blink_it`"));
    assert_eq!(compared(&old, &page("Blinks.", "See the wiki, page 5.")), told("lamp"));
    let known = page("Blinks.", "None.");
    assert!(compared(&old, &known).contains(&told("lamp")[0]), "{:?}", compared(&old, &known));
}

#[test]
fn a_change_of_the_second_tool_of_a_name_is_told() {
    let list = |second: &str| {
        let tool = |words: &str| json!({"name": "a", "description": words, "inputSchema": {"type": "object"}});
        Document::parse(&json!({"tools": [tool("First."), tool(second)]}).to_string())
    };
    assert_eq!(diff_documents(&list("Second."), &list("Second.")).changes, []);
    let changes = diff_documents(&list("Second."), &list("Other.")).changes;
    assert_eq!(changes.iter().map(|change| change.impact).collect::<Vec<_>>(), [Impact::Undecided]);
}

/// Documents in Markdown and a list of the same tool, without its result.
fn described_and_listed() -> (Document, Document) {
    let tool = json!({
        "name": "dim_it", "description": "Dims.", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"level": {"type": "integer"}}},
    });
    let mut listed = tool.clone();
    listed.as_object_mut().unwrap().shift_remove("outputSchema");
    let full = Document::parse(&json!([tool]).to_string());
    let page = sinew_spec::print::render_document("Lamps", &full).text;
    (Document::parse(&page), Document::parse(&json!([listed]).to_string()))
}

#[test]
fn a_server_that_lost_its_results_breaks_its_callers_and_a_board_cannot_state_any() {
    let (page, mut list) = described_and_listed();
    let unknown = diff_documents(&page, &list);
    assert!(unknown.changes.is_empty() && unknown.not_compared.contains(&"output schemas"), "{unknown:?}");
    list.detail = ListDetail::Complete;
    let server = diff_documents(&page, &list);
    assert_eq!(server.changes.iter().map(|change| change.impact).max(), Some(Impact::Breaking), "{server:?}");
    list.detail = ListDetail::Short;
    let mut full = Document::parse(
        r#"[{"name": "dim_it", "description": "Dims.", "title": "Dim", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}]"#,
    );
    full.detail = ListDetail::Complete;
    let board = diff_documents(&full, &list);
    assert!(board.changes.is_empty() && board.not_compared.contains(&"titles"), "{board:?}");
    full.detail = ListDetail::Unknown;
    let earlier = diff_documents(&full, &list);
    assert!(earlier.changes.iter().any(|change| change.kind == "output-removed"), "{earlier:?}");
    assert_eq!(earlier.not_compared, [""; 0]);
}

/// A document with one tool whose parameters or result a table describes, alone or beside a JSON Schema.
fn tabled(section: &str, header: &str, row: &str, schema: &str) -> Document {
    let rule = header.replace(|c| c != '|', "-");
    let text = format!("# T\n\n## Tool: `read_it`\n\n### {section}\n\n{header}\n{rule}\n{row}\n\n{schema}");
    Document::parse(&text)
}

#[test]
fn what_a_cell_says_beside_its_value_is_compared_and_printed() {
    const SCHEMA: &str = "**JSON Schema:**\n\n```json\n{\"type\": \"object\", \"properties\": {\"p\": {\"description\": \
        \"How many.\"}}}\n```\n";
    const INPUT: &str = "| Parameter | Type | Required | Description |";
    let changes = [
        ("| `p` | integer (1-10) | No | How many. |", "| `p` | integer (1-5) | No | How many. |"),
        ("| `p` | string (max 10) | No | How many. |", "| `p` | string (max 5) | No | How many. |"),
        ("| `p` | array[integer (ms)] | No | How many. |", "| `p` | array[integer (s)] | No | How many. |"),
        ("| `p` | list of rooms | No | How many. |", "| `p` | list of lamps | No | How many. |"),
        ("| `p` | integer | No (default: 5) | How many. |", "| `p` | integer | No (default: 60) | How many. |"),
        ("| `p` | integer | No, defaults to 5 | How many. |", "| `p` | integer | No, defaults to 60 | How many. |"),
        ("| `p` | integer | No (only by day) | How many. |", "| `p` | integer | No (only by night) | How many. |"),
    ];
    for schema in ["", SCHEMA] {
        for (old, new) in changes {
            let [old, new] = [old, new].map(|row| tabled("3. Input Schema", INPUT, row, schema));
            assert_ne!(diff_documents(&old, &new).changes, [], "{}", new.text);
            let printed = Document::parse(&sinew_spec::print::render_document("T", &new).text);
            assert_eq!(diff_documents(&new, &printed).changes, [], "{}", printed.text);
        }
        let header = "| Field | Type | Description |";
        let [old, new] = ["ms", "s"]
            .map(|unit| tabled("4. Output Schema", header, &format!("| `p` | integer ({unit}) | How long. |"), schema));
        assert_ne!(diff_documents(&old, &new).changes, [], "{}", new.text);
    }
    let read = tabled("3. Input Schema", INPUT, "| `p` | integer (1-10) | No (default: 5) | How many. |", "");
    let property = &read.tools[0].input["properties"]["p"];
    assert_eq!(*property, json!({"type": "integer", "default": 5, "description": "How many. (1-10)"}));
}

#[test]
fn a_second_table_that_is_not_read_is_reported_and_undecided() {
    for section in ["3. Input Schema", "4. Output Schema"] {
        let second = "Failure:\n\n| Field | Type | Description |\n|---|---|---|\n| `code` | string | Why. |\n";
        let header = "| Field | Type | Description |";
        let old = tabled(section, header, "| `size` | integer | How big. |", second);
        let findings = sinew_spec::lint::check(&old, &sinew_spec::lint::LintConfig::default());
        assert!(findings.iter().any(|finding| finding.message.starts_with("another table")), "{section}");
        for new in ["| `code` | integer | Why. |\n", ""] {
            let new = Document::parse(&old.text.replace("| `code` | string | Why. |\n", new));
            let impact = diff_documents(&old, &new).changes.iter().map(|change| change.impact).max();
            assert_eq!(impact, Some(Impact::Undecided), "{section}: {}", new.text);
        }
        assert_eq!(diff_documents(&old, &old).changes, []);
        // What the first table describes with the object around it is read.
        let nested = old
            .text
            .replace("| `size` | integer | How big. |", "| `e` | object | Why. |\n| `e.code` | string | Why. |");
        let findings = sinew_spec::lint::check(&Document::parse(&nested), &sinew_spec::lint::LintConfig::default());
        assert!(!findings.iter().any(|finding| finding.message.starts_with("another table")), "{section}");
    }
}
