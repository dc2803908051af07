//! Schemas: JSON at all, JSON Schema 2020-12, and a word and an example for every parameter.

use serde_json::Value;

use super::{Bench, rules};
use crate::json::{Slip, SlipKind};
use crate::model::{Section, ToolSpec};
use crate::read::places::Side;
use crate::schema::Checker;
use sinew_tool::finding::Rule;
use sinew_tool::finding::{Edit, Span};
use sinew_tool::text::clip;

/// Judges the schemas; answers with what checks values against input and output, where they can.
pub fn check<'a>(bench: &mut Bench<'_>, tool: &'a ToolSpec) -> (Option<Checker<'a>>, Option<Checker<'a>>) {
    let places = &tool.places;
    let input = side(bench, &places.input, &tool.input, &rules::INPUT_SCHEMA_INVALID, places.near(Section::Input));
    // A table of fields says nothing about answers that leave some out; only a schema does.
    let output = tool.output.as_ref().filter(|_| places.output.schema.is_some());
    let near = places.near(Section::Output);
    unreadable(bench, &places.input);
    unreadable(bench, &places.output);
    let output = output.and_then(|schema| side(bench, &places.output, schema, &rules::OUTPUT_SCHEMA_INVALID, near));
    if !bench.is_markdown() {
        let is_object = tool.input.get("type").is_some_and(|kind| kind == "object");
        if places.input.schema.is_none() {
            let message = "the tool has no `inputSchema`; give at least {\"type\": \"object\"}";
            bench.tell(&rules::INPUT_SCHEMA_INVALID, places.heading, message);
        } else if !is_object {
            let span = places.input.place("/type").unwrap_or(places.heading);
            bench.tell(
                &rules::INPUT_SCHEMA_INVALID,
                span,
                "arguments are an object: the schema's `type` must be \"object\"",
            );
        }
    }
    (input, output)
}

fn unreadable(bench: &mut Bench<'_>, side: &Side) {
    for fault in &side.faults {
        bench.tell(&rules::SCHEMA_NOT_JSON, fault.span, fault.message.clone());
    }
    slips(bench, &rules::SCHEMA_NOT_JSON, &side.slips);
}

fn side<'a>(
    bench: &mut Bench<'_>,
    side: &Side,
    schema: &'a Value,
    rule: &'static Rule,
    near: Span,
) -> Option<Checker<'a>> {
    match Checker::new(schema) {
        Ok(checker) => Some(checker),
        Err(flaws) => {
            for flaw in flaws {
                let span = side.place(&flaw.pointer).unwrap_or(near);
                let at =
                    if flaw.pointer.is_empty() { String::new() } else { format!(" (at `{}`)", clip(&flaw.pointer)) };
                bench.tell(rule, span, format!("{}{at}", flaw.message));
            }
            None
        }
    }
}

/// Tells the slips of a lenient reading, with a mend where leaving something out is one.
pub fn slips(bench: &mut Bench<'_>, rule: &'static Rule, slips: &[Slip]) {
    for slip in slips.iter().filter(|slip| slip.kind != SlipKind::SecondValue).take(20) {
        let fix = slip.kind.is_removable().then(|| {
            let text = bench.text();
            let Span { mut start, mut end } = slip.span;
            if slip.kind == SlipKind::Comment {
                // The blanks before a comment go with it, and its line if nothing else stands there.
                start = text[..start].trim_end_matches([' ', '\t']).len();
                let rest = &text[end..];
                let ending = ["\r\n", "\n", "\r"].into_iter().find(|ending| rest.starts_with(ending));
                if let Some(ending) = ending.filter(|_| text[..start].ends_with(['\n', '\r'])) {
                    end += ending.len();
                }
            }
            Edit { span: Span::new(start, end), replacement: String::new() }
        });
        bench.tell_fixable(rule, slip.span, slip.kind.says(), fix);
    }
}

pub fn parameters(bench: &mut Bench<'_>, tool: &ToolSpec) {
    let markdown = bench.is_markdown();
    let places = tool.places.input.members();
    let near = tool.places.near(Section::Input);
    for (name, property) in tool.parameters() {
        let span = places.get(name.as_str()).copied().unwrap_or(near);
        let shown = clip(name);
        if !described(property) {
            let message =
                format!("the parameter `{shown}` has no description; say what it means, its unit and what is allowed");
            bench.tell(&rules::PARAMETER_DESCRIPTION, span, message);
        }
        if markdown && crate::print::example(property).is_none() {
            bench.tell(&rules::PARAMETER_EXAMPLE, span, format!("the parameter `{shown}` has no example value"));
        }
    }
    if !markdown {
        return;
    }
    let places = tool.places.output.members();
    let near = tool.places.near(Section::Output);
    for (name, property) in tool.fields() {
        if !described(property) {
            let span = places.get(name.as_str()).copied().unwrap_or(near);
            bench.tell(&rules::FIELD_DESCRIPTION, span, format!("the field `{}` has no description", clip(name)));
        }
    }
}

fn described(property: &Value) -> bool {
    let words = |key: &str| property.get(key).and_then(Value::as_str).is_some_and(|words| !words.trim().is_empty());
    words("description") || words("title") && property.get("enum").is_some() || property.get("$ref").is_some()
}
