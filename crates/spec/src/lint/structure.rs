//! The document and its sections: present, in order, with the right headings, and not empty.

use std::collections::HashSet;

use super::words::is_unwritten;
use super::{Reporter, hidden, placeholders, rules};
use crate::model::{Section, ToolSpecification};
use crate::read::schemas::NO_PARAMETERS;
use sinew_tool::finding::{Edit, Span};
use sinew_tool::text::clip;

pub(super) fn document(reporter: &mut Reporter<'_>) {
    let document = reporter.document;
    if reporter.is_markdown() && document.tools.is_empty() && document.says_no_tools.is_none() {
        placeholders::check_head(reporter);
        let message = "no tool was found; begin each with a heading such as `## Tool: `read_file``, \
                       or say that the module exposes no MCP tools";
        reporter.report(&rules::NO_TOOLS, Span::default(), message);
    }
    if reporter.is_markdown() && !document.tools.is_empty() && document.title.as_deref().is_none_or(str::is_empty) {
        let message = "the document has no title; begin it with `# NAME - MCP Tool Specification`";
        reporter.report(&rules::TITLE_MISSING, Span::default(), message);
    }
    line_endings(reporter);
    hidden::check(reporter);
}

fn line_endings(reporter: &mut Reporter<'_>) {
    let text = reporter.text();
    if !text.contains('\r') {
        return;
    }
    let windows = text.matches("\r\n").count();
    let plain = text.matches('\n').count() - windows;
    let lone = text.matches('\r').count() - windows;
    if [windows, plain, lone].iter().filter(|count| **count > 0).count() < 2 {
        return;
    }
    let even = text.replace("\r\n", "\n").replace('\r', "\n");
    let (even, kind) = if windows > plain + lone { (even.replace('\n', "\r\n"), "CRLF") } else { (even, "LF") };
    let first = text.find('\r').unwrap_or_default();
    let whole = Span::new(0, text.len());
    let message = format!("line endings are mixed ({plain} LF, {windows} CRLF, {lone} CR); most are {kind}");
    reporter.report_fixable(
        &rules::LINE_ENDINGS,
        Span::at(first),
        message,
        Some(Edit { span: whole, replacement: even }),
    );
}

pub(super) fn sections(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let places = &tool.places;
    let missing: Vec<String> = Section::ALL
        .iter()
        .filter(|section| places.section(**section).is_none() && !stands_in(tool, **section))
        .map(|section| format!("{}. {}", section.number(), section.title()))
        .collect();
    if !missing.is_empty() {
        let word = if missing.len() == 1 { "the section" } else { "the sections" };
        reporter.report(
            &rules::SECTION_MISSING,
            places.heading,
            format!("{word} {} missing: {}", be(missing.len()), missing.join(", ")),
        );
    }
    unread_parameters(reporter, tool);
    order(reporter, tool);
    let mut seen = HashSet::new();
    for place in &places.sections {
        let text = reporter.text();
        if !seen.insert(place.section) && place.is_heading {
            reporter.report(
                &rules::SECTION_ORDER,
                place.heading,
                format!("the section \"{}\" occurs twice; merge them", place.section.title()),
            );
        } else if place.heading.of(text) != place.section.heading() {
            let expected = place.section.heading();
            let message = format!("the heading should be `### {expected}`");
            let fix = place.is_heading.then_some(Edit { span: place.heading, replacement: expected });
            reporter.report_fixable(&rules::SECTION_HEADING, place.heading, message, fix);
        }
        let body = Span::new(place.heading.end, place.whole.end).of(reporter.text());
        if !place.is_filled || is_unwritten(body) {
            let message =
                format!("the section \"{}\" is empty; fill it in, or write N/A and the reason", place.section.title());
            reporter.report(&rules::SECTION_EMPTY, place.heading, message);
        }
    }
}

/// Parameters that are described in a form nobody can read would be missing without a word.
fn unread_parameters(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    for (message, span) in &tool.places.input.unread {
        reporter.report(&rules::TOOL_UNREAD, *span, message.clone());
    }
    for (source, what) in [(&tool.places.input, "parameters"), (&tool.places.output, "fields of the result")] {
        for span in &source.other_tables {
            let message = format!(
                "another table describes the {what}, and this one was not read; put its rows into the first table \
                 (`object.member` for the members of an object), or describe them in the JSON Schema"
            );
            reporter.report(&rules::TOOL_UNREAD, *span, message);
        }
    }
    let is_reported = !tool.places.input.faults.is_empty();
    if !tool.input_known && !tool.input_notes.is_empty() && !is_reported {
        let message = format!(
            "the parameters of `{}` were not read; write them as a table, a list or a JSON Schema, or write \
             \"{NO_PARAMETERS}\"",
            clip(&tool.name)
        );
        reporter.report(&rules::TOOL_UNREAD, tool.places.section_heading(Section::Input), message);
    }
}

fn be(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A free-form tool may describe its purpose in its first paragraph and its name in its heading;
/// that is reported as a different heading, not as a missing section.
fn stands_in(tool: &ToolSpecification, section: Section) -> bool {
    let free = tool.places.sections.iter().all(|place| !place.is_heading);
    match section {
        Section::Purpose => free && !tool.purpose.is_empty(),
        Section::Name => free && !tool.name.is_empty(),
        Section::Idempotency => !tool.idempotency.is_empty(),
        _ => false,
    }
}

fn order(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let places = &tool.places.sections;
    let Some(first) = places.windows(2).position(|pair| pair[0].section > pair[1].section) else { return };
    let wrong = &places[first + 1];
    let distinct: HashSet<Section> = places.iter().map(|place| place.section).collect();
    let movable = distinct.len() == places.len()
        && places.iter().all(|place| place.is_heading)
        && places.windows(2).all(|pair| pair[0].whole.end == pair[1].whole.start);
    let fix = movable.then(|| {
        let text = reporter.text();
        let mut sorted: Vec<_> = places.iter().collect();
        sorted.sort_by_key(|place| place.section);
        let mut parts: Vec<String> = sorted.iter().map(|place| without_rule(place.whole.of(text)).to_owned()).collect();
        let last = places[places.len() - 1].whole.of(text);
        let tail = &last[without_rule(last).len()..];
        if let Some(last) = parts.last_mut() {
            last.push_str(tail);
        }
        let span = Span::new(places[0].whole.start, places[places.len() - 1].whole.end);
        let ending = if text.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
        Edit { span, replacement: parts.join(ending) }
    });
    let message = format!(
        "\"{}\" is after \"{}\"; the order is {}",
        wrong.section.title(),
        places[first].section.title(),
        Section::ALL.map(|section| section.number().to_string()).join(", ")
    );
    reporter.report_fixable(&rules::SECTION_ORDER, wrong.heading, message, fix);
}

/// A section without the rule (`---`) that separates its tool from the next.
fn without_rule(section: &str) -> &str {
    let section = section.trim_end();
    section.strip_suffix("\n---").map_or(section, str::trim_end)
}
