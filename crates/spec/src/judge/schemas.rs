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
    let near = tool.places.near(Section::Input);
    let input = Listed { side: &tool.places.input, near, noun: "parameter", members: tool.parameters().collect() };
    input.tell(
        bench,
        &rules::PARAMETER_DESCRIPTION,
        described,
        "description; say what it means, its unit and what is allowed",
    );
    if !bench.is_markdown() {
        return;
    }
    input.tell(bench, &rules::PARAMETER_EXAMPLE, has_example, "example value");
    let near = tool.places.near(Section::Output);
    let output = Listed { side: &tool.places.output, near, noun: "field", members: tool.fields().collect() };
    output.tell(bench, &rules::FIELD_DESCRIPTION, described, "description");
    output.tell(bench, &rules::FIELD_EXAMPLE, has_example, "example value");
    let places = &tool.places;
    let tabled = places.input.table.is_some() || places.output.table.is_some();
    if tabled && places.input.schema.is_none() && places.output.schema.is_none() {
        let message = "neither the input nor the output has a JSON Schema beside its table";
        bench.tell(&rules::SCHEMA_MISSING, places.near(Section::Input), message);
    }
}

/// The parameters of a tool or the fields of its result.
struct Listed<'a> {
    side: &'a Side,
    near: Span,
    noun: &'static str,
    members: Vec<(&'a String, &'a Value)>,
}

impl Listed<'_> {
    /// One finding for one cause: where more than a few members lack the same, they are named together.
    fn tell(&self, bench: &mut Bench<'_>, rule: &'static Rule, has: fn(&Value) -> bool, what: &str) {
        const APART: usize = 3;
        let places = self.side.members();
        let without: Vec<&str> =
            self.members.iter().filter(|(_, schema)| !has(schema)).map(|(name, _)| name.as_str()).collect();
        let span = |name: &str| places.get(name).copied().unwrap_or(self.near);
        let noun = self.noun;
        if without.len() <= APART {
            for name in without {
                bench.tell(rule, span(name), format!("the {noun} `{}` has no {what}", clip(name)));
            }
            return;
        }
        let shown: Vec<String> = without.iter().take(5).map(|name| format!("`{}`", clip(name))).collect();
        let more = if without.len() > 5 { format!(" and {} more", without.len() - 5) } else { String::new() };
        let message = format!("{} {noun}s have no {what}: {}{more}", without.len(), shown.join(", "));
        bench.tell(rule, span(without[0]), message);
    }
}

fn has_example(property: &Value) -> bool {
    crate::print::example(property).is_some()
}

fn described(property: &Value) -> bool {
    let words = |key: &str| property.get(key).and_then(Value::as_str).is_some_and(|words| !words.trim().is_empty());
    words("description") || words("title") && property.get("enum").is_some() || property.get("$ref").is_some()
}
