//! How fast: `cargo run --release -p sinew-spec --example speed [FOLDER]`.
//!
//! Lints every markdown file below FOLDER, a document of one megabyte, and compares two lists of a
//! thousand tools, each several times over, and prints the best time of each.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sinew_spec::lint::{LintConfig, check};
use sinew_spec::{Document, compare};
use sinew_tool::Tool;

fn main() {
    let mut texts = Vec::new();
    if let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) {
        collect(&folder, &mut texts);
    }
    let config = LintConfig::default();
    let findings = texts.iter().map(|text| check(&Document::parse(text), &config).len()).sum::<usize>();
    let took = best(|| texts.iter().map(|text| check(&Document::parse(text), &config).len()).sum());
    println!("{} files, {findings} findings: {took:.1?}", texts.len());

    let tool = include_str!("../tests/it/cases/read_file.md").split_once("---\n").map_or("", |(_, tool)| tool);
    let mut large = String::from("# Large - MCP Tool Specification\n\n");
    let mut number = 0;
    while large.len() < 1 << 20 {
        large.push_str(&tool.replace("read_text", &format!("read_text_{number}")));
        number += 1;
    }
    let took = best(|| check(&Document::parse(&large), &config).len());
    println!("a document of 1 MiB with {number} tools: {took:.1?}");
    let took = best(|| Document::parse(&large).tools.len());
    println!("reading it alone: {took:.1?}");

    let list = |shift: usize| -> Vec<Tool> { (0..1000).map(|index| sample(index, shift)).collect() };
    let (old, new) = (list(0), list(1));
    let changes = compare::diff(&old, &new).changes.len();
    let took = best(|| compare::diff(&old, &new).changes.len());
    println!("two lists of 1000 tools, {changes} changes: {took:.1?}");
}

fn sample(index: usize, shift: usize) -> Tool {
    let properties: serde_json::Map<String, serde_json::Value> = (0..8)
        .map(|property| {
            let schema = json!({
                "type": "object",
                "description": format!("Parameter {property} of tool {index}."),
                "properties": {
                    "level": {"type": "integer", "minimum": shift * (property % 3), "maximum": 100},
                    "mode": {"type": "string", "enum": ["soft", "hard"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["level"],
            });
            (format!("p{}", property + shift * usize::from(property == 7)), schema)
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["p0", "p1"]});
    Tool::new(format!("tool_{index}"), format!("Does the thing number {index}."), schema)
}

fn best(mut run: impl FnMut() -> usize) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed()
    };
    std::iter::repeat_with(once).take(7).min().unwrap_or_default()
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            texts.extend(std::fs::read_to_string(path));
        }
    }
}
