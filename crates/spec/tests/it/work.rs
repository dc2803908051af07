//! How much work documents and comparisons take, counted in allocations: more than these bounds makes `spec lint` and
//! `spec diff` slower than promised.

use allocation_counter::measure;
use serde_json::{Value, json};
use sinew_spec::Document;
use sinew_spec::compare::diff_lists;
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
