//! How much work documents and comparisons take, counted in allocations: more than these bounds makes `spec lint` and
//! `spec diff` slower than promised.

use std::collections::BTreeSet;

use allocation_counter::measure;
use serde_json::{Value, json};
use sinew_spec::Document;
use sinew_spec::compare::{CompareWork, Impact, diff_lists, diff_within};
use sinew_spec::lint::{self, LintConfig};
use sinew_tool::Tool;

/// 1,064 when this was written; the rest is for other versions of the libraries.
const MOST_FOR_A_DOCUMENT: u64 = 1_500;
/// Some 990 when this was written, of which comparing is a third.
const MOST_FOR_A_PAIR: u64 = 1_300;

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// A tool with eight nested parameters, of which the second version has other limits.
fn tool(index: usize, shift: usize) -> Tool {
    let parameter = |number: usize| {
        let schema = json!({
            "type": "object",
            "description": "A light, with its level and mode.",
            "properties": {
                "level": {"type": "integer", "minimum": shift * (number % 3), "maximum": 100, "description": "Percent."},
                "mode": {"type": "string", "enum": ["soft", "hard"], "description": "How the light changes."},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by."},
            },
            "required": ["level"],
        });
        (format!("light_{number}"), schema)
    };
    let properties: serde_json::Map<String, Value> = (0..8).map(parameter).collect();
    Tool::new(format!("set_lamp_{index}"), "Sets the lights.", json!({"type": "object", "properties": properties}))
}

/// The allocations for comparing so many pairs of tools. Few enough for one thread: those of others are not counted.
fn comparing(count: usize) -> u64 {
    let list = |shift| -> String {
        let tools: Vec<Value> = (0..count).map(|index| tool(index, shift).to_json()).collect();
        json!({ "tools": tools }).to_string()
    };
    let (old, new) = (list(0), list(1));
    allocations(|| assert!(diff_lists(&old, &new).is_some_and(|comparison| !comparison.changes.is_empty())))
}

#[test]
fn a_complete_document_is_checked_with_about_a_thousand_allocations() {
    let text = include_str!("cases/read_file.md");
    let count = allocations(|| assert!(lint::check(&Document::parse(text), &LintConfig::default()).is_empty()));
    assert!(count <= MOST_FOR_A_DOCUMENT, "{count} allocations");
}

#[test]
fn a_pair_of_tools_is_read_and_compared_with_about_a_thousand_allocations_however_many_there_are() {
    let (few, many) = (comparing(3), comparing(30));
    assert!(few <= 3 * MOST_FOR_A_PAIR, "{few} allocations for 3 pairs");
    assert!(many <= few * 11, "{many} allocations for 30 pairs, {few} for 3");
}

/// Steps for a list, as a gateway grants them to one device.
const LIST_STEPS: usize = 200_000;
/// Up to 4 million when this was written.
const MOST_FOR_A_LIST: u64 = 8_000_000;

/// Schemas whose versions take long to compare, each in another way. They are so large that a list of them has a
/// megabyte.
fn hostile(kind: &str, version: usize) -> Value {
    let many = |count: usize, part: &dyn Fn(usize) -> Value| (0..count).map(part).collect::<Vec<_>>();
    let named = |count: usize, part: &dyn Fn(usize) -> Value| -> serde_json::Map<String, Value> {
        (0..count).map(|index| (format!("p{index}"), part(index))).collect()
    };
    match kind {
        "alternatives in alternatives" => (0..5).fold(
            json!({"type": "integer", "minimum": version}),
            |inner, depth| json!({"anyOf": many(3, &|index| json!({"items": inner, "maxItems": index + depth}))}),
        ),
        "proofs" => json!({"anyOf": many(12, &|index| json!({
            "properties": named(6, &|name| json!({"minimum": index * name + version})),
            "oneOf": [{"required": ["p1"]}, {"required": [format!("p{index}")]}],
        }))}),
        "anchors" => json!({
            "properties": named(60, &|index| json!({"$ref": format!("#a{index}")})),
            "$defs": named(60, &|index| json!({"$anchor": format!("a{index}"), "minimum": index + version})),
        }),
        "choices that overlap" => json!({"anyOf": many(8, &|_| json!({
            "items": {"$ref": "#/$defs/one"}, "minItems": version,
        })), "$defs": {"one": {"oneOf": many(32, &|index| json!({
            "type": "object", "required": ["p0"],
            "properties": {"p0": {"enum": many(8, &|value| json!(format!("{index}-{value}-{version}")))}},
        }))}}}),
        "names that are repeated" => json!({"properties": {"x".repeat(3_000): {
            "properties": named(20, &|index| json!({"minimum": index + version})),
        }}}),
        "what is unevaluated" => json!({
            "allOf": many(40, &|_| json!({"$ref": "#/$defs/big"})),
            "anyOf": many(4, &|index| json!({"properties": {format!("q{index}"): {"minimum": version}}})),
            "unevaluatedProperties": {"minimum": version},
            "$defs": {"big": {"properties": named(80, &|_| json!(true))}},
        }),
        _ => json!({"properties": named(60, &|index| json!({
            "description": "The same", "allOf": [{"minimum": index + version}],
        }))}),
    }
}

#[test]
fn a_list_that_somebody_else_writes_takes_bounded_work_and_the_rest_is_undecided() {
    for kind in [
        "alternatives in alternatives",
        "proofs",
        "anchors",
        "choices that overlap",
        "names that are repeated",
        "what is unevaluated",
        "names that may be renamed",
    ] {
        let list = |version: usize| -> Vec<Tool> {
            let schema = hostile(kind, version);
            let tool = |index| Tool::new(format!("t{index}"), "", schema.clone()).with_output_schema(schema.clone());
            (0..512).map(tool).collect()
        };
        let (old, new) = (list(1), list(2));
        let mut comparison = None;
        let count = allocations(|| comparison = Some(diff_within(&old, &new, &mut CompareWork::new(LIST_STEPS))));
        assert!(count <= MOST_FOR_A_LIST, "{kind}: {count} allocations");
        let changes = comparison.unwrap().changes;
        let tools: BTreeSet<&str> = changes.iter().map(|change| change.tool.as_str()).collect();
        assert_eq!(tools.len(), old.len(), "{kind}: each tool is reported");
        assert!(changes.iter().any(|change| change.impact == Impact::Undecided), "{kind}");
        let text: usize = changes.iter().map(|change| change.path.len() + change.message.len()).sum();
        assert!(text <= LIST_STEPS * 64, "{kind}: {text} bytes are reported");
    }
}
