//! What AI clients get in a simpler form than the document says.

use serde_json::Value;
use sinew_tool::portable::{self, Simplification};
use sinew_tool::text::clean_line;

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification};
use crate::read::places::SchemaSource;

/// More parts of one schema than this are counted, not named.
const SHOWN: usize = 3;

pub(super) fn input(reporter: &mut Reporter<'_>, tool: &ToolSpecification, schema: &Value) {
    if !portable::keeps_shape(schema) {
        report(reporter, tool, &tool.places.input, Section::Input, portable::input(schema).simplified);
    }
}

pub(super) fn output(reporter: &mut Reporter<'_>, tool: &ToolSpecification, schema: &Value) {
    if !portable::keeps_shape(schema) {
        report(reporter, tool, &tool.places.output, Section::Output, portable::output(schema).simplified);
    }
}

/// One finding for a schema. What is written as text says the same, and what has a rule of its own is reported by it.
fn report(
    reporter: &mut Reporter<'_>,
    tool: &ToolSpecification,
    source: &SchemaSource,
    section: Section,
    simplified: Vec<Simplification>,
) {
    let has_own_rule = |part: &Simplification| matches!(part.what.as_str(), "no items" | "any value");
    let parts: Vec<Simplification> =
        simplified.into_iter().filter(|part| part.rule().changes_shape && !has_own_rule(part)).collect();
    let Some(first) = parts.first() else { return };
    let span = source.place(&first.path).unwrap_or(tool.places.section_heading(section));
    let shown: Vec<String> = parts.iter().take(SHOWN).map(|part| clean_line(&part.to_string(), 120)).collect();
    let more = if parts.len() > SHOWN { format!("; and {} more", parts.len() - SHOWN) } else { String::new() };
    let message = format!("AI clients get a simpler schema ({}{more})", shown.join("; "));
    reporter.report(&rules::SCHEMA_SIMPLIFIED, span, message);
}
