//! The result: whether it tells success from failure, and whether failures have the standard's fields.

use std::collections::HashSet;

use serde_json::Value;

use super::{Reporter, rules, words};
use crate::model::{Section, ToolSpecification, properties};
use crate::schema::resolve;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    if let Some(output) = &tool.output {
        status(reporter, tool, output);
        error_shape(reporter, tool, output);
    } else if tool.places.section(Section::Output).is_some_and(|place| place.is_filled) {
        let message = "the result is described only in prose; add a table or a JSON Schema, with `status`";
        reporter.report(&rules::OUTPUT_UNDESCRIBED, tool.places.section_heading(Section::Output), message);
    }
}

/// More shapes of one result than anybody describes.
const MAX_SHAPES: usize = 64;

/// Every schema that a result, or a part of it, may have: alternatives, parts, and what they refer to.
fn shapes<'a>(output: &'a Value, part: &'a Value) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    let mut open = vec![part];
    while let Some(shape) = open.pop().filter(|_| found.len() < MAX_SHAPES) {
        if found.iter().any(|known| std::ptr::eq(*known, shape)) {
            continue;
        }
        found.push(shape);
        let branches = ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| shape.get(key)?.as_array()).flatten();
        let conditions = ["then", "else"].iter().filter_map(|key| shape.get(key));
        let target = shape.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(output, reference));
        open.extend(branches.chain(conditions).chain(target));
    }
    found
}

fn fields<'a>(output: &'a Value, name: &str) -> Vec<&'a Value> {
    shapes(output, output).into_iter().filter_map(|shape| properties(shape)?.get(name)).collect()
}

pub(super) fn field<'a>(output: &'a Value, name: &str) -> Option<&'a Value> {
    fields(output, name).into_iter().next()
}

/// Parts of words for what did not work.
const FAILURES: &[&str] = &[
    "fail",
    "error",
    "invalid",
    "denied",
    "timeout",
    "timed",
    "not_found",
    "notfound",
    "unavailable",
    "refused",
    "reject",
    "miss",
    "abort",
    "cancel",
    "forbid",
    "unauthor",
    "exceed",
    "exhaust",
    "crash",
    "broken",
    "bad_",
    "wrong",
    "unreachable",
    "offline",
    "unsupported",
    "blocked",
    "expired",
    "nok",
    "fehl",
    "échec",
    "echec",
    "erreur",
    "fallo",
    "falha",
    "erro",
    "ошибка",
    "失败",
    "失敗",
    "错误",
    "錯誤",
    "エラー",
    "실패",
];

pub(super) fn is_failure(word: &str) -> bool {
    let word = word.to_lowercase();
    word == "ko" || FAILURES.iter().any(|part| word.contains(part))
}

fn status(reporter: &mut Reporter<'_>, tool: &ToolSpecification, output: &Value) {
    let near = tool.places.section_heading(Section::Output);
    let stated = fields(output, "status");
    if stated.is_empty() {
        let flag =
            ["success", "ok", "succeeded", "is_error", "isError"].iter().any(|name| field(output, name).is_some());
        if !flag {
            let message =
                "the result does not distinguish success from failure; add `status` with \"success\" and \"failure\"";
            reporter.report(&rules::OUTPUT_STATUS, near, message);
        }
        return;
    }
    let span = tool.places.output.place("/properties/status").unwrap_or(near);
    let words: Vec<String> = stated.iter().flat_map(|status| status_words(output, status)).collect();
    let is_free = |status: &&Value| {
        let is_closed = ["enum", "const", "oneOf", "anyOf", "$ref"].iter().any(|key| status.get(key).is_some());
        !is_closed && status.get("type").is_some_and(|kind| kind == "string")
    };
    if words.len() > 1 && stated.iter().any(is_free) {
        let message =
            format!("`status` is a free string whose description lists {}; make it an enum", words.join(", "));
        reporter.report(&rules::STATUS_VALUES, span, message);
    }
    // "`ok`, or an error code" names no value for failure and describes it all the same.
    let describes_failure = stated.iter().filter_map(|status| status.get("description")?.as_str()).any(is_failure);
    if !words.is_empty() && !words.iter().any(|word| is_failure(word)) && !describes_failure {
        let message = format!("`status` has no value for failure, only {}", words.join(", "));
        reporter.report(&rules::OUTPUT_STATUS, span, message);
    }
}

/// Words that are values of a status wherever they stand in its description.
const STATUSES: &[&str] = &[
    "success",
    "successful",
    "succeeded",
    "ok",
    "done",
    "completed",
    "failure",
    "failed",
    "fail",
    "error",
    "partial",
    "pending",
    "running",
    "timeout",
    "cancelled",
    "canceled",
    "skipped",
];

/// The values of a status, from its schema or from the words of its description.
fn status_words(output: &Value, status: &Value) -> Vec<String> {
    let status = status.get("$ref").and_then(Value::as_str).and_then(|to| resolve(output, to)).unwrap_or(status);
    let texts = |key: &str| {
        let values = status.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    if status.get("enum").is_some() {
        return texts("enum");
    }
    if let Some(only) = status.get("const").and_then(Value::as_str) {
        return vec![only.to_owned()];
    }
    let choices = ["oneOf", "anyOf"].iter().filter_map(|key| status.get(key)?.as_array()).flatten();
    let named: Vec<String> = choices.filter_map(|choice| choice.get("const")?.as_str()).map(str::to_owned).collect();
    if !named.is_empty() {
        return named;
    }
    let description = status.get("description").and_then(Value::as_str).unwrap_or_default();
    let quoted = words::quoted(description);
    if !quoted.is_empty() {
        return quoted;
    }
    let mut seen = HashSet::new();
    let lower = description.to_lowercase();
    let plain: Vec<String> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| STATUSES.contains(word) && seen.insert(*word))
        .map(str::to_owned)
        .collect();
    // A single one is a word of a sentence.
    if plain.len() > 1 { plain } else { Vec::new() }
}

const ERROR_NAMES: [&str; 2] = ["error_type", "error_message"];

/// The fields of an error that a text mentions.
pub(super) fn error_names_in(text: &str) -> Vec<&'static str> {
    ERROR_NAMES.into_iter().filter(|name| text.contains(name)).collect()
}

fn error_shape(reporter: &mut Reporter<'_>, tool: &ToolSpecification, output: &Value) {
    // A missing section is reported once.
    if tool.places.section(Section::Errors).is_none() {
        return;
    }
    let nested: Vec<_> = fields(output, "error").into_iter().flat_map(|error| shapes(output, error)).collect();
    let prose = [&tool.errors, &tool.output_notes];
    let has = |name: &str| {
        field(output, name).is_some()
            || reporter.intro_names.contains(&name)
            || nested.iter().any(|error| properties(error).is_some_and(|members| members.contains_key(name)))
            || prose.iter().any(|text| text.contains(name))
            || tool.examples.iter().any(|example| example.body.contains(name))
    };
    let missing: Vec<&str> = ERROR_NAMES.into_iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        let message = format!(
            "a failure is not described with {}; the standard's shape is \
             {{\"status\": \"failure\", \"error_type\": …, \"error_message\": …}}, flat or under `error`",
            missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
        );
        reporter.report(&rules::ERROR_SHAPE, tool.places.section_heading(Section::Errors), message);
    }
}
