//! Usage examples: there is one, it is JSON, it calls this tool, and the call is valid.

use serde_json::Value;

use super::{Bench, rules, schemas};
use crate::json::{self, Kind, Node, SlipKind};
use crate::model::{Section, ToolSpec};
use crate::schema::Checker;
use sinew_tool::finding::{Edit, Span};
use sinew_tool::text::clip;

pub fn check(bench: &mut Bench<'_>, tool: &ToolSpec, input: Option<&Checker<'_>>, output: Option<&Checker<'_>>) {
    let near = tool.places.near(Section::Examples);
    let mut calls = 0;
    let mut broken = false;
    for (example, body) in tool.examples.iter().zip(&tool.places.examples) {
        if !is_json(&example.language, body.of(bench.text())) {
            continue;
        }
        let reading = match json::read(bench.text(), *body) {
            Ok(reading) => reading,
            Err(fault) => {
                broken = true;
                bench.tell(&rules::EXAMPLE_NOT_JSON, fault.span, fault.message);
                continue;
            }
        };
        schemas::slips(bench, &rules::EXAMPLE_NOT_JSON, &reading.slips);
        broken |= reading.slips.iter().any(|slip| slip.kind == SlipKind::Ellipsis);
        for node in &reading.values {
            match call_in(node) {
                Some(call) => {
                    calls += 1;
                    check_call(bench, tool, &call, input);
                }
                None => check_answer(bench, node, output),
            }
        }
    }
    // A missing section has been told already.
    if calls == 0 && !broken && tool.places.section(Section::Examples).is_some_and(|place| place.is_filled) {
        let message = "no example calls the tool; give one with `tool_name` and `arguments` in a ```json block";
        bench.tell(&rules::EXAMPLE_MISSING, near, message);
    }
}

fn is_json(language: &str, body: &str) -> bool {
    let word = language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    matches!(word.as_str(), "json" | "jsonc" | "json5") || word.is_empty() && body.trim_start().starts_with('{')
}

struct Call<'a> {
    name: Option<&'a json::Member>,
    arguments: Option<&'a Node>,
    node: &'a Node,
    /// The keys that are not those of the standard, with the standard's word.
    other_keys: Vec<(Span, &'static str)>,
}

/// The call an example makes, in the standard's words or in others.
fn call_in(node: &Node) -> Option<Call<'_>> {
    let Kind::Object(_) = &node.kind else { return None };
    // The protocol's own request is as good as the standard's short form.
    if node.get("method").and_then(Node::as_str) == Some("tools/call") {
        let params = node.get("params")?;
        return Some(Call {
            name: params.member("name"),
            arguments: params.get("arguments"),
            node,
            other_keys: Vec::new(),
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
        .filter(|arguments| matches!(arguments.value.kind, Kind::Object(_)));
    let sure = node.get("tool_name").is_some() || node.get("arguments").is_some();
    if !(sure || name.is_some_and(|name| name.key != "name") || name.is_some() && arguments.is_some()) {
        return None;
    }
    Some(Call { name, arguments: arguments.map(|arguments| &arguments.value), node, other_keys })
}

fn check_call(bench: &mut Bench<'_>, tool: &ToolSpec, call: &Call<'_>, input: Option<&Checker<'_>>) {
    for (span, standard) in &call.other_keys {
        let fix = Edit { span: *span, replacement: format!("\"{standard}\"") };
        bench.tell_fixable(&rules::EXAMPLE_SHAPE, *span, format!("the standard's word is `{standard}`"), Some(fix));
    }
    match call.name.map(|name| (name.value.as_str().unwrap_or_default(), name.value.span)) {
        None => bench.tell(
            &rules::EXAMPLE_SHAPE,
            first_line(call.node.span, bench.text()),
            "the call does not say which tool; give `tool_name`",
        ),
        Some((name, _)) if name == tool.name => {}
        Some((name, span)) => {
            let replacement = serde_json::to_string(&tool.name).ok().filter(|_| super::names::is_legal(&tool.name));
            let fix = replacement.map(|replacement| Edit { span, replacement });
            let message = format!("this calls `{}`, the tool is `{}`", clip(name), clip(&tool.name));
            bench.tell_fixable(&rules::EXAMPLE_WRONG_TOOL, span, message, fix);
        }
    }
    let Some(arguments) = call.arguments else {
        let message = "the call has no `arguments`; give an object, empty if the tool takes none";
        bench.tell(&rules::EXAMPLE_SHAPE, first_line(call.node.span, bench.text()), message);
        return;
    };
    let Some(checker) = input else { return };
    let value = arguments.to_value();
    match checker.check(&value) {
        None => bench.tell(
            &rules::EXAMPLE_INVALID,
            first_line(arguments.span, bench.text()),
            "the schema is too complex to check this call",
        ),
        Some(flaws) => {
            for flaw in flaws {
                bench.tell(
                    &rules::EXAMPLE_INVALID,
                    first_line(arguments.place(&flaw.pointer), bench.text()),
                    flaw.message,
                );
            }
        }
    }
    let described = |name: &str| crate::model::properties(&tool.input).is_some_and(|known| known.contains_key(name));
    let open = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|key| tool.input.get(key).is_some());
    if let (Kind::Object(members), false) = (&arguments.kind, open) {
        for member in members.iter().filter(|member| !described(&member.key)) {
            let message = format!("the argument `{}` is not described among the parameters", clip(&member.key));
            bench.tell(&rules::EXAMPLE_INVALID, member.key_span, message);
        }
    }
}

/// An answer shown beside a call fits the output schema, unless it shows a failure.
fn check_answer(bench: &mut Bench<'_>, node: &Node, output: Option<&Checker<'_>>) {
    let Some(checker) = output else { return };
    let value = node.to_value();
    let failed = value.get("status").and_then(Value::as_str).is_some_and(super::behaviour::is_failure)
        || value.get("error").is_some();
    if failed || !value.is_object() {
        return;
    }
    for flaw in checker.check(&value).unwrap_or_default() {
        let message = format!("the answer shown does not fit the output schema: {}", flaw.message);
        bench.tell(&rules::EXAMPLE_INVALID, first_line(node.place(&flaw.pointer), bench.text()), message);
    }
}

/// The part of a span on its first line, which is what an excerpt can underline.
fn first_line(span: Span, text: &str) -> Span {
    let length = span.of(text).find(['\n', '\r']).unwrap_or(span.of(text).len());
    Span::new(span.start, span.start + length)
}
