//! Schemas: valid JSON, valid JSON Schema 2020-12, a description and an example for every parameter.

use serde_json::Value;

use super::words::is_unwritten;
use super::{Reporter, rules};
use crate::json::{JsonKind, JsonMistake, MistakeKind};
use crate::model::{Section, ToolSpecification, properties, required};
use crate::read::places::SchemaSource;
use crate::schema::Checker;
use sinew_tool::finding::Rule;
use sinew_tool::finding::{Edit, Span};
use sinew_tool::spelling;
use sinew_tool::text::clip;

/// Checks the schemas. Returns validators for input and output where the schemas are valid.
pub(super) fn check<'a>(
    reporter: &mut Reporter<'_>,
    tool: &'a ToolSpecification,
) -> (Option<Checker<'a>>, Option<Checker<'a>>) {
    let places = &tool.places;
    let input = check_schema(
        reporter,
        &places.input,
        &tool.input,
        &rules::INPUT_SCHEMA_INVALID,
        places.section_heading(Section::Input),
    );
    // Only a written schema says which fields are required; a table of fields does not.
    let output = tool.output.as_deref().filter(|_| places.output.schema.is_some());
    let near = places.section_heading(Section::Output);
    unreadable(reporter, &places.input);
    unreadable(reporter, &places.output);
    let output =
        output.and_then(|schema| check_schema(reporter, &places.output, schema, &rules::OUTPUT_SCHEMA_INVALID, near));
    if !reporter.is_markdown() {
        let is_object = tool.input.get("type").is_some_and(|kind| kind == "object")
            && places.input.schema.as_ref().is_some_and(|node| matches!(node.kind, JsonKind::Object(_)));
        if places.input.schema.is_none() {
            let message = "the tool has no `inputSchema`; give at least {\"type\": \"object\"}";
            reporter.report(&rules::INPUT_SCHEMA_INVALID, places.heading, message);
        } else if !is_object {
            let span = places.input.place("/type").unwrap_or(places.heading);
            reporter.report(
                &rules::INPUT_SCHEMA_INVALID,
                span,
                "arguments are an object: the schema's `type` must be \"object\"",
            );
        }
    }
    (input, output)
}

fn unreadable(reporter: &mut Reporter<'_>, source: &SchemaSource) {
    for fault in &source.faults {
        reporter.report(&rules::SCHEMA_NOT_JSON, fault.span, fault.message.clone());
    }
    mistakes(reporter, &rules::SCHEMA_NOT_JSON, &source.mistakes);
}

fn check_schema<'a>(
    reporter: &mut Reporter<'_>,
    source: &SchemaSource,
    schema: &'a Value,
    rule: &'static Rule,
    near: Span,
) -> Option<Checker<'a>> {
    match Checker::new(schema, &mut reporter.budget) {
        Ok(checker) => Some(checker),
        Err(problems) => {
            for problem in problems {
                let span = source.place(&problem.pointer).unwrap_or(near);
                let at = if problem.pointer.is_empty() {
                    String::new()
                } else {
                    format!(" (at `{}`)", clip(&problem.pointer))
                };
                reporter.report(rule, span, format!("{}{at}", problem.message));
            }
            None
        }
    }
}

/// Reports the mistakes of a lenient reading, with a fix where removing something is one.
pub(super) fn mistakes(reporter: &mut Reporter<'_>, rule: &'static Rule, mistakes: &[JsonMistake]) {
    for slip in mistakes.iter().filter(|slip| slip.kind != MistakeKind::SecondValue) {
        let fix = slip.kind.is_removable().then(|| {
            let text = reporter.text();
            let Span { mut start, mut end } = slip.span;
            if slip.kind == MistakeKind::Comment {
                // Spaces before a comment are removed with it, and its line if it is empty then.
                start = text[..start].trim_end_matches([' ', '\t']).len();
                let rest = &text[end..];
                let ending = ["\r\n", "\n", "\r"].into_iter().find(|ending| rest.starts_with(ending));
                if let Some(ending) = ending.filter(|_| text[..start].ends_with(['\n', '\r'])) {
                    end += ending.len();
                }
            }
            Edit { span: Span::new(start, end), replacement: String::new() }
        });
        reporter.report_fixable(rule, slip.span, slip.kind.says(), fix);
    }
}

pub(super) fn parameters(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let near = tool.places.section_heading(Section::Input);
    let input =
        MemberList { source: &tool.places.input, near, noun: "parameter", members: tool.parameters().collect() };
    input.report(
        reporter,
        &rules::PARAMETER_DESCRIPTION,
        described,
        "description; say what it means, its unit and what is allowed",
    );
    undescribed_names(reporter, &rules::PARAMETER_DESCRIPTION, &tool.places.input, &tool.input, near);
    if !reporter.is_markdown() {
        return;
    }
    input.report(reporter, &rules::PARAMETER_EXAMPLE, has_example, "example value");
    let near = tool.places.section_heading(Section::Output);
    let output = MemberList { source: &tool.places.output, near, noun: "field", members: tool.fields().collect() };
    output.report(reporter, &rules::FIELD_DESCRIPTION, described, "description");
    output.report(reporter, &rules::FIELD_EXAMPLE, has_example, "example value");
    let places = &tool.places;
    let tabled = places.input.table.is_some() || places.output.table.is_some();
    if tabled && places.input.schema.is_none() && places.output.schema.is_none() {
        let message = "neither the input nor the output has a JSON Schema beside its table";
        reporter.report(&rules::SCHEMA_MISSING, places.section_heading(Section::Input), message);
    }
}

/// Names that a schema requires and describes nowhere, misspelt ones most often.
fn undescribed_names(
    reporter: &mut Reporter<'_>,
    rule: &'static Rule,
    source: &SchemaSource,
    schema: &Value,
    near: Span,
) {
    let describes_elsewhere = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"]
        .iter()
        .any(|key| schema.get(key).is_some());
    if describes_elsewhere {
        return;
    }
    let known = properties(schema);
    let mut missing = required(schema);
    missing.retain(|name| known.is_none_or(|known| !known.contains_key(*name)));
    for (index, name) in missing.iter().take(MOST_NAMES).enumerate() {
        let meant = known.and_then(|known| spelling::nearest(name, known.keys().map(String::as_str)));
        let meant = meant.map(|name| format!("; did you mean `{}`?", clip(name))).unwrap_or_default();
        let is_last = index + 1 == MOST_NAMES && missing.len() > MOST_NAMES;
        let more = if is_last { format!(", nor are {} more", missing.len() - MOST_NAMES) } else { String::new() };
        let message = format!("`{}` is required and not described{meant}{more}", clip(name));
        reporter.report(rule, source.place("/required").unwrap_or(near), message);
    }
}

/// Further names would say nothing new.
const MOST_NAMES: usize = 5;

/// The parameters of a tool or the fields of its result.
struct MemberList<'a> {
    source: &'a SchemaSource,
    near: Span,
    noun: &'static str,
    members: Vec<(&'a String, &'a Value)>,
}

impl MemberList<'_> {
    /// One finding for one cause: if more than a few members lack the same thing, one finding names them all.
    fn report(&self, reporter: &mut Reporter<'_>, rule: &'static Rule, has: fn(&Value) -> bool, what: &str) {
        const APART: usize = 3;
        let places = self.source.members();
        let without: Vec<&str> =
            self.members.iter().filter(|(_, schema)| !has(schema)).map(|(name, _)| name.as_str()).collect();
        let span = |name: &str| places.get(name).copied().unwrap_or(self.near);
        let noun = self.noun;
        if without.len() <= APART {
            for name in without {
                reporter.report(rule, span(name), format!("the {noun} `{}` has no {what}", clip(name)));
            }
            return;
        }
        let shown: Vec<String> = without.iter().take(5).map(|name| format!("`{}`", clip(name))).collect();
        let more = if without.len() > 5 { format!(" and {} more", without.len() - 5) } else { String::new() };
        let message = format!("{} {noun}s have no {what}: {}{more}", without.len(), shown.join(", "));
        reporter.report(rule, span(without[0]), message);
    }
}

fn has_example(property: &Value) -> bool {
    crate::print::example(property).is_some()
}

pub(super) fn described(property: &Value) -> bool {
    let words = |key: &str| property.get(key).and_then(Value::as_str).is_some_and(|words| !is_unwritten(words));
    words("description") || words("title") && property.get("enum").is_some() || property.get("$ref").is_some()
}
