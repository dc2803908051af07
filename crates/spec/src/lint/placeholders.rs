//! Placeholders of a template that were not filled in.

use std::sync::LazyLock;

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification};
use crate::print::TEMPLATE;
use sinew_tool::finding::Span;

/// The placeholders of our own template, including the braces.
static OWN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut found: Vec<&str> = Vec::new();
    let mut rest = TEMPLATE;
    while let Some(open) = rest.find("{{") {
        let Some(length) = rest[open..].find("}}") else { break };
        found.push(&rest[open..open + length + 2]);
        rest = &rest[open + length..];
    }
    found.sort_unstable();
    found.dedup();
    found
});

/// How placeholders begin in a template that many public documents were copied from.
const OTHERS: &[&str] = &[
    "[YourToolName]",
    "[your_tool_invocation_name]",
    "[Module Name]",
    "[module_name]",
    "[tool_name]",
    "[Tool Name]",
    "[Another Tool Name]",
    "[Tool description]",
    "[Parameter1",
    "[Parameter2",
    "[ParameterName",
    "[ResultField",
    "[ExampleValue",
    "[ExampleResult",
    "[DataType]",
    "[ErrorCode",
    "[Description of ",
    "[Brief description",
    "[Explain ",
    "[Describe ",
    "[If applicable",
    "[If the tool",
    "[Note any",
    "[Commonly, ",
];

/// The brackets of a longer text are not those of a placeholder.
const LONGEST: usize = 400;

pub(super) fn is_placeholder(name: &str) -> bool {
    OWN.contains(&name) || OTHERS.iter().any(|other| name.starts_with(other))
}

/// Reports `unfilled` once per tool and returns the parts that still hold placeholders.
pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) -> Vec<Span> {
    if !reporter.is_markdown() {
        return Vec::new();
    }
    let text = reporter.text();
    // Text before the first tool is the head of the form; it is reported together with that tool.
    let is_first = reporter.document.tools.first().is_some_and(|first| std::ptr::eq(first, tool));
    let head = if is_first { find(text, Span::new(0, tool.places.whole.start)) } else { Vec::new() };
    let mut blanks = find(text, tool.places.whole);
    blanks.extend(choices(text, tool));
    blanks.sort_unstable();
    let blank = if is_placeholder(&tool.name) {
        vec![tool.places.whole]
    } else {
        let blank = |whole: Span| blanks.iter().any(|blank| whole.contains(blank.start));
        tool.places.sections.iter().map(|place| place.whole).filter(|whole| blank(*whole)).collect()
    };
    let all: Vec<Span> = head.into_iter().chain(blanks).collect();
    if let Some(first) = all.first() {
        let mut lines: Vec<usize> =
            all.iter().map(|blank| reporter.document.lines.position(text, blank.start).line).collect();
        lines.dedup();
        let shown: Vec<String> = lines.iter().take(12).map(usize::to_string).collect();
        let more = if lines.len() > shown.len() { ", …" } else { "" };
        // Without their number: a baseline knows the finding again while the form is being filled in.
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let message = format!("placeholders of the template are not filled in: {word} {}{more}", shown.join(", "));
        reporter.report(&rules::UNFILLED, *first, message);
    }
    blank
}

/// Reports the head of a template that no tool follows.
pub(super) fn check_head(reporter: &mut Reporter<'_>) {
    if let Some(first) = find(reporter.text(), Span::new(0, reporter.text().len())).first() {
        reporter.report(&rules::UNFILLED, *first, "placeholders of the template are not filled in");
    }
}

/// The placeholders in a part of the text, outside comments.
fn find(text: &str, within: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = within.start;
    let bytes = text.as_bytes().get(..within.end).unwrap_or_default();
    let last_close = text.get(at..within.end).and_then(|part| part.rfind("-->")).map_or(0, |found| at + found);
    while let Some(offset) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|byte| matches!(byte, b'[' | b'{' | b'<')))
    {
        at += offset;
        let rest = &text[at..within.end];
        let length = match bytes[at] {
            b'<' if rest.starts_with("<!--") => {
                let close = if at < last_close { rest.find("-->") } else { None };
                at += close.map_or(4, |close| close + 3);
                continue;
            }
            b'{' if rest.starts_with("{{") => OWN.iter().find(|own| rest.starts_with(**own)).map(|own| own.len()),
            b'[' if OTHERS.iter().any(|other| rest.starts_with(other)) => {
                Some(rest.bytes().take(LONGEST).position(|byte| byte == b']').map_or(1, |close| close + 1))
            }
            _ => None,
        };
        found.extend(length.map(|length| Span::new(at, at + length)));
        at += length.unwrap_or(1);
    }
    found
}

/// `Yes/No` in a required cell and `Yes/No/Partially` in the idempotency section.
fn choices(text: &str, tool: &ToolSpecification) -> Vec<Span> {
    let rows = tool.places.input.table.iter().flat_map(|table| &table.rows);
    let cells = rows.filter_map(|row| row.required.as_ref());
    let mut found: Vec<Span> = cells.filter(|cell| cell.text == "Yes/No").map(|cell| cell.span).collect();
    if let Some(place) = tool.places.section(Section::Idempotency)
        && let Some(at) = place.whole.of(text).find("Yes/No/Partially")
    {
        let start = place.whole.start + at;
        found.push(Span::new(start, start + "Yes/No/Partially".len()));
    }
    found
}
