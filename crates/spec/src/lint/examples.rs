//! Usage examples: at least one, valid JSON, a call of this tool with valid arguments.

use serde_json::Value;

use super::{Reporter, rules, schemas};
use crate::json::{self, JsonKind, JsonNode, MistakeKind};
use crate::model::{Section, ToolSpecification};
use crate::schema::Checker;
use sinew_tool::finding::{Edit, Span};
use sinew_tool::text::clip;

pub(super) fn check(
    reporter: &mut Reporter<'_>,
    tool: &ToolSpecification,
    input: Option<&Checker<'_>>,
    output: Option<&Checker<'_>>,
) {
    let near = tool.places.section_heading(Section::Examples);
    let mut calls = 0;
    let mut broken = false;
    for (example, body) in tool.examples.iter().zip(&tool.places.examples) {
        if !is_json(&example.language, body.of(reporter.text())) {
            continue;
        }
        let reading = match json::read(reporter.text(), *body) {
            Ok(reading) => reading,
            Err(fault) => {
                broken = true;
                reporter.report(&rules::EXAMPLE_NOT_JSON, fault.span, fault.message);
                continue;
            }
        };
        schemas::mistakes(reporter, &rules::EXAMPLE_NOT_JSON, &reading.mistakes);
        broken |= reading.mistakes.iter().any(|slip| slip.kind == MistakeKind::Ellipsis);
        for node in reading.values.iter().flat_map(each) {
            match call_in(node) {
                Some(call) => {
                    calls += 1;
                    check_call(reporter, tool, &call, input);
                }
                None => check_answer(reporter, node, output),
            }
        }
    }
    // A missing section has been reported already.
    if calls == 0 && !broken && tool.places.section(Section::Examples).is_some_and(|place| place.is_filled) {
        let message = "no example calls the tool; give one with `tool_name` and `arguments` in a ```json block";
        reporter.report(&rules::EXAMPLE_MISSING, near, message);
    }
}

fn is_json(language: &str, body: &str) -> bool {
    let word = language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    matches!(word.as_str(), "json" | "jsonc" | "json5") || word.is_empty() && body.trim_start().starts_with('{')
}

struct ExampleCall<'a> {
    name: Option<&'a json::JsonMember>,
    arguments: Option<&'a JsonNode>,
    node: &'a JsonNode,
    /// Keys that differ from the standard's, each with the standard's key.
    other_keys: Vec<(Span, &'static str)>,
    /// The key of an object around the call.
    wrapper: Option<(Span, &'static str)>,
}

/// The examples that one value holds: several in an array.
fn each(node: &JsonNode) -> &[JsonNode] {
    match &node.kind {
        JsonKind::Array(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Keys around a call in the forms of some clients.
const WRAPPERS: &[&str] = &["tool_call", "function_call", "function", "request", "call"];

/// The call in an example, with the standard's keys or other common ones.
fn call_in(node: &JsonNode) -> Option<ExampleCall<'_>> {
    let JsonKind::Object(_) = &node.kind else { return None };
    let has_no_name = ["tool_name", "tool", "toolName", "name", "method"].iter().all(|key| node.get(key).is_none());
    if let Some((key, inner)) = WRAPPERS.iter().find_map(|key| Some((*key, node.member(key)?))).filter(|_| has_no_name)
        && let Some(mut call) = call_in(&inner.value)
    {
        call.wrapper = Some((inner.key_span, key));
        return Some(call);
    }
    // The protocol's own request is as good as the standard's short form.
    if node.get("method").and_then(JsonNode::as_str) == Some("tools/call") {
        let params = node.get("params")?;
        return Some(ExampleCall {
            name: params.member("name"),
            arguments: params.get("arguments"),
            node,
            other_keys: Vec::new(),
            wrapper: None,
        });
    }
    let mut other_keys = Vec::new();
    let mut find = |names: &[&str], standard: &'static str| {
        let member = names.iter().find_map(|name| node.member(name))?;
        if member.key != standard {
            other_keys.push((member.key_span, standard));
        }
        Some(member)
    };
    let name =
        find(&["tool_name", "tool", "toolName", "name"], "tool_name").filter(|name| name.value.as_str().is_some());
    let arguments = find(&["arguments", "args", "params", "parameters", "input"], "arguments")
        .filter(|arguments| matches!(arguments.value.kind, JsonKind::Object(_)));
    let sure = node.get("tool_name").is_some() || node.get("arguments").is_some();
    if !(sure || name.is_some_and(|name| name.key != "name") || name.is_some() && arguments.is_some()) {
        return None;
    }
    Some(ExampleCall { name, arguments: arguments.map(|arguments| &arguments.value), node, other_keys, wrapper: None })
}

fn check_call(
    reporter: &mut Reporter<'_>,
    tool: &ToolSpecification,
    call: &ExampleCall<'_>,
    input: Option<&Checker<'_>>,
) {
    if let Some((span, key)) = call.wrapper {
        let message = format!("the standard's call has `tool_name` and `arguments` at its top, not inside `{key}`");
        reporter.report(&rules::EXAMPLE_SHAPE, span, message);
    }
    for (span, standard) in &call.other_keys {
        let fix = Edit { span: *span, replacement: format!("\"{standard}\"") };
        reporter.report_fixable(&rules::EXAMPLE_SHAPE, *span, format!("the standard's key is `{standard}`"), Some(fix));
    }
    match call.name.map(|name| (name.value.as_str().unwrap_or_default(), name.value.span)) {
        None => reporter.report(
            &rules::EXAMPLE_SHAPE,
            first_line(call.node.span, reporter.text()),
            "the call does not name the tool; add `tool_name`",
        ),
        Some((name, _)) if name == tool.name => {}
        Some((name, span)) => {
            let replacement = serde_json::to_string(&tool.name).ok().filter(|_| super::names::is_legal(&tool.name));
            let fix = replacement.map(|replacement| Edit { span, replacement });
            let message = format!("this calls `{}`, the tool is `{}`", clip(name), clip(&tool.name));
            reporter.report_fixable(&rules::EXAMPLE_WRONG_TOOL, span, message, fix);
        }
    }
    let Some(arguments) = call.arguments else {
        let message = "the call has no `arguments`; add an object, empty if the tool takes none";
        reporter.report(&rules::EXAMPLE_SHAPE, first_line(call.node.span, reporter.text()), message);
        return;
    };
    let Some(checker) = input else { return };
    let value = arguments.to_value();
    match checker.check(&value, &mut reporter.budget) {
        None => reporter.report(
            &rules::EXAMPLE_INVALID,
            first_line(arguments.span, reporter.text()),
            "the schema is too complex to check this call",
        ),
        Some(problems) => {
            for problem in problems {
                reporter.report(
                    &rules::EXAMPLE_INVALID,
                    first_line(arguments.place(&problem.pointer), reporter.text()),
                    problem.message,
                );
            }
        }
    }
    let described = |name: &str| crate::model::properties(&tool.input).is_some_and(|known| known.contains_key(name));
    let open = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|key| tool.input.get(key).is_some());
    if let (JsonKind::Object(members), false) = (&arguments.kind, open) {
        for member in members.iter().filter(|member| !described(&member.key)) {
            let message = format!("the argument `{}` is not one of the described parameters", clip(&member.key));
            reporter.report(&rules::EXAMPLE_INVALID, member.key_span, message);
        }
    }
}

/// A result in an example must match the output schema, unless it shows a failure.
fn check_answer(reporter: &mut Reporter<'_>, node: &JsonNode, output: Option<&Checker<'_>>) {
    let Some(checker) = output else { return };
    let value = node.to_value();
    let failed = value.get("status").and_then(Value::as_str).is_some_and(super::status::is_failure)
        || value.get("error").is_some();
    if failed || !value.is_object() {
        return;
    }
    for problem in checker.check(&value, &mut reporter.budget).unwrap_or_default() {
        let message = format!("the result shown does not match the output schema: {}", problem.message);
        reporter.report(&rules::EXAMPLE_INVALID, first_line(node.place(&problem.pointer), reporter.text()), message);
    }
}

/// The part of a span on its first line, which is what an excerpt can underline.
fn first_line(span: Span, text: &str) -> Span {
    let length = span.of(text).find(['\n', '\r']).unwrap_or(span.of(text).len());
    Span::new(span.start, span.start + length)
}
