//! Printing: the canonical document, an HTML page, and a blank form.
//!
//! Table and JSON Schema are written from one schema, so they cannot disagree. What is printed is
//! read back as the same specification.

mod html;
mod lossless;
mod lossless_list;
mod sample;
mod template;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;
use sinew_tool::Audience;

use html::render_html;
pub use lossless::{Rendered, render_document, render_html_document};
pub use sample::sample;
pub use template::{TEMPLATE, new_from_template, tool_from_template};

use crate::model::{self, Section, ToolSpecification};
use crate::read::schemas::{NO_PARAMETERS, SCHEMA_LABEL};
use crate::read::{Format, meta, prose, table, types};

/// The canonical document. `intro` is markdown for the page as a whole; it may be empty.
pub fn render_markdown(title: &str, intro: &str, tools: &[ToolSpecification]) -> String {
    let mut page = format!("# {}\n", prose::one_line(title));
    if !intro.is_empty() {
        let _ = write!(page, "\n{intro}\n");
    }
    if tools.is_empty() && intro.is_empty() {
        page.push_str("\n## Current Status: No MCP Tools Defined\n");
    }
    for tool in tools {
        page.push_str("\n---\n\n");
        page.push_str(&render_tool(tool));
    }
    page
}

/// The section of one tool.
pub fn render_tool(tool: &ToolSpecification) -> String {
    let mut page = format!("## Tool: {}\n", code(&tool.name));
    let lines = meta_lines(tool);
    if !lines.is_empty() {
        let _ = write!(page, "\n{}\n", lines.join("\n"));
    }
    for section in Section::ALL {
        let _ = write!(page, "\n### {}\n\n", section.heading());
        page.push_str(&section_body(tool, section));
        page.push('\n');
    }
    for (title, text) in &tool.extra {
        let _ = write!(page, "\n### {title}\n");
        if !text.is_empty() {
            let _ = write!(page, "\n{text}\n");
        }
    }
    page
}

fn meta_lines(tool: &ToolSpecification) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(tool.version.as_ref().map(|version| format!("- **Version**: {version}")));
    lines.extend(tool.title.as_ref().map(|title| format!("- **Title**: {title}")));
    let hints = meta::hints_text(tool.hints);
    if !hints.is_empty() {
        lines.push(format!("- **Hints**: {hints}"));
    }
    if tool.audience == Audience::User {
        lines.push("- **Audience**: `user`".to_owned());
    }
    lines
}

/// Whether a schema without `properties` describes no arguments in other ways either.
fn takes_nothing(schema: &Value) -> bool {
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties", "additionalProperties", "if"]
        .iter()
        .all(|word| schema.get(*word).is_none_or(|rest| *rest == Value::Bool(false)))
}

fn section_body(tool: &ToolSpecification, section: Section) -> String {
    let body = match section {
        Section::Purpose => tool.purpose.clone(),
        Section::Name if tool.name.is_empty() => String::new(),
        Section::Name => code(&tool.name),
        Section::Input if !tool.input_known => tool.input_notes.clone(),
        Section::Input => {
            let none = || if takes_nothing(&tool.input) { NO_PARAMETERS.to_owned() } else { String::new() };
            let table = fields(&tool.input, true).unwrap_or_else(none);
            join([table, schema_block(&tool.input), tool.input_notes.clone()])
        }
        Section::Output => match &tool.output {
            Some(schema) => {
                join([fields(schema, false).unwrap_or_default(), schema_block(schema), tool.output_notes.clone()])
            }
            None => tool.output_notes.clone(),
        },
        Section::Errors => tool.errors.clone(),
        Section::Idempotency => tool.idempotency.clone(),
        Section::Examples => {
            let examples = tool
                .examples
                .iter()
                .flat_map(|example| [example.intro.clone(), fenced(&example.language, &example.body)]);
            join(examples.chain([tool.examples_notes.clone()]))
        }
        Section::Security => tool.security.clone(),
    };
    if body.is_empty() { prose::NOT_STATED.to_owned() } else { body }
}

/// The table of a schema's properties; `None` where it has none.
fn fields(schema: &Value, is_input: bool) -> Option<String> {
    let properties = model::properties(schema).filter(|properties| !properties.is_empty())?;
    let required: HashSet<&str> = model::required(schema).into_iter().collect();
    let mut rows = vec![if is_input {
        "| Parameter Name | Type | Required | Description | Example Value |\n| :--- | :--- | :--- | :--- | :--- |"
            .to_owned()
    } else {
        "| Field Name | Type | Description | Example Value |\n| :--- | :--- | :--- | :--- |".to_owned()
    }];
    for (name, property) in properties {
        let said =
            |text: Option<&str>| text.map(table::escape).filter(|text| !text.is_empty()).unwrap_or("—".to_owned());
        let kind = table::escape(&code(&types::write(property)));
        let description = said(property.get("description").and_then(Value::as_str));
        let example = example(property).map(|value| table::escape(&code(&value.to_string())));
        let example = example.unwrap_or("—".to_owned());
        let needed = if required.contains(name.as_str()) { "Yes" } else { "No" };
        let name = table::escape(&code(name));
        rows.push(if is_input {
            format!("| {name} | {kind} | {needed} | {description} | {example} |")
        } else {
            format!("| {name} | {kind} | {description} | {example} |")
        });
    }
    Some(rows.join("\n"))
}

/// Plain text as Markdown that is read back as the same text.
pub fn prose(text: &str) -> String {
    prose::from_text(text)
}

/// An example the schema itself gives.
pub(crate) fn example(property: &Value) -> Option<&Value> {
    let listed = property.get("examples").and_then(Value::as_array).and_then(|examples| examples.first());
    let chosen = || property.get("enum").and_then(Value::as_array).and_then(|choices| choices.first());
    listed
        .or_else(|| property.get("example"))
        .or_else(|| property.get("default"))
        .or_else(|| property.get("const"))
        .or_else(chosen)
}

fn schema_block(schema: &Value) -> String {
    let body = serde_json::to_string_pretty(schema).unwrap_or_default();
    format!("{SCHEMA_LABEL}\n\n{}", fenced("json", &body))
}

/// A fence longer than any in the body, so that the body cannot end it.
fn fenced(language: &str, body: &str) -> String {
    let runs = body.lines().map(|line| {
        let line = line.trim_start();
        line.len() - line.trim_start_matches('`').len()
    });
    let longest = runs.max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{body}\n{fence}")
}

/// Text as a code span, with as many backticks as it needs.
pub(crate) fn code(text: &str) -> String {
    let text = prose::one_line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    match longest {
        _ if text.is_empty() => String::new(),
        0 => format!("`{text}`"),
        _ => format!("{0} {text} {0}", "`".repeat(longest + 1)),
    }
}

fn join(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
