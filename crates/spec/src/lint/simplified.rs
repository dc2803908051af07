//! What AI clients get in a simpler form than the document says.

use serde_json::Value;
use sinew_tool::portable::{self, Simplification};
use sinew_tool::schema_size::measure;
use sinew_tool::text::clean_line;

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification};
use crate::read::places::SchemaSource;

/// More parts of one schema than this are counted, not named.
const SHOWN: usize = 3;

/// Bytes of a document in which no schema is too large.
const SHORT: usize = 32 << 10;
/// JSON parsers stop at about this depth.
const DEEPEST: usize = 127;

pub(super) fn input(reporter: &mut Reporter<'_>, tool: &ToolSpecification, schema: &Value) {
    if is_unlisted(reporter, tool, schema, Section::Input, "without its arguments, which are not checked either") {
        return;
    }
    if !portable::keeps_shape(schema) {
        report(reporter, tool, &tool.places.input, Section::Input, portable::input(schema).simplified);
    }
}

pub(super) fn output(reporter: &mut Reporter<'_>, tool: &ToolSpecification, schema: &Value) {
    if is_unlisted(reporter, tool, schema, Section::Output, "without its output schema") {
        return;
    }
    if !portable::keeps_shape(schema) {
        report(reporter, tool, &tool.places.output, Section::Output, portable::output(schema).simplified);
    }
}

/// Reports a schema that a gateway does not list at all.
fn is_unlisted(
    reporter: &mut Reporter<'_>,
    tool: &ToolSpecification,
    schema: &Value,
    section: Section,
    how: &str,
) -> bool {
    // A short document has no large schema.
    let reason = if reporter.text().len() < SHORT { None } else { measure(schema, DEEPEST).err() };
    let Some(reason) = reason else { return false };
    let message =
        format!("AI clients get this tool {how}, because the schema {reason}; shorten the schema, or split the tool");
    reporter.report(&rules::SCHEMA_SIMPLIFIED, tool.places.section_heading(section), message);
    true
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
