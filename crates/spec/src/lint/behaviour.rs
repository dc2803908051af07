//! What callers rely on: telling success from failure, the shape of errors, what a
//! second call does, and what could go wrong.

use std::collections::HashSet;

use serde_json::Value;

use super::{Reporter, rules};
use crate::model::{Idempotent, Section, ToolSpecification, error_codes, properties};
use sinew_tool::text::clip;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    if let Some(output) = &tool.output {
        status(reporter, tool, output);
        error_shape(reporter, tool, output);
    } else if tool.places.section(Section::Output).is_some_and(|place| place.is_filled) {
        let message = "the result is described only in prose; add a table or a JSON Schema, with `status`";
        reporter.report(&rules::OUTPUT_UNDESCRIBED, tool.places.section_heading(Section::Output), message);
    }
    errors(reporter, tool);
    idempotency(reporter, tool);
    security(reporter, tool);
}

/// Every top-level schema a result may have.
fn shapes(output: &Value) -> Vec<&Value> {
    let branches = ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| output.get(key)?.as_array()).flatten();
    std::iter::once(output).chain(branches).collect()
}

fn field<'a>(output: &'a Value, name: &str) -> Option<&'a Value> {
    shapes(output).into_iter().find_map(|shape| properties(shape)?.get(name))
}

pub(super) fn is_failure(word: &str) -> bool {
    let word = word.to_lowercase();
    ["fail", "error", "invalid", "denied", "timeout", "not_found", "unavailable", "refused", "rejected", "miss"]
        .iter()
        .any(|part| word.contains(part))
}

fn status(reporter: &mut Reporter<'_>, tool: &ToolSpecification, output: &Value) {
    let near = tool.places.section_heading(Section::Output);
    let Some(status) = field(output, "status") else {
        let flag =
            ["success", "ok", "succeeded", "is_error", "isError"].iter().any(|name| field(output, name).is_some());
        if !flag {
            let message =
                "the result does not distinguish success from failure; add `status` with \"success\" and \"failure\"";
            reporter.report(&rules::OUTPUT_STATUS, near, message);
        }
        return;
    };
    let span = tool.places.output.place("/properties/status").unwrap_or(near);
    let words = status_words(status);
    let is_free = status.get("enum").is_none()
        && status.get("const").is_none()
        && status.get("type").is_some_and(|kind| kind == "string");
    if is_free && words.len() > 1 {
        let message =
            format!("`status` is a free string whose description lists {}; make it an enum", words.join(", "));
        reporter.report(&rules::STATUS_VALUES, span, message);
    }
    if !words.is_empty() && !words.iter().any(|word| is_failure(word)) {
        let message = format!("`status` has no value for failure, only {}", words.join(", "));
        reporter.report(&rules::OUTPUT_STATUS, span, message);
    }
}

/// The values of a status, from its enum or from the quoted words of its description.
fn status_words(status: &Value) -> Vec<String> {
    if let Some(choices) = status.get("enum").and_then(Value::as_array) {
        return choices.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if let Some(only) = status.get("const").and_then(Value::as_str) {
        return vec![only.to_owned()];
    }
    let description = status.get("description").and_then(Value::as_str).unwrap_or_default();
    let marks: &[char] = if description.contains('"') { &['"'] } else { &['`', '“', '”', '\''] };
    let quoted = description.split(marks).skip(1).step_by(2);
    quoted.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Whether the section on errors says anything that a caller could act on.
fn errors(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let Some(place) = tool.places.section(Section::Errors).filter(|place| place.is_filled) else { return };
    let codes = error_codes(&tool.errors);
    let mut seen = HashSet::new();
    for code in codes.iter().filter(|code| !seen.insert(code.as_str())) {
        reporter.report(
            &rules::ERROR_REPEATED,
            place.heading,
            format!("the error `{}` is described twice", clip(code)),
        );
    }
    let words = tool.errors.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count();
    let typed = tool
        .output
        .as_ref()
        .and_then(|output| field(output, "error_type"))
        .is_some_and(|kind| kind.get("enum").is_some());
    let says_why = ["because", "cannot fail", "never fails", "no error", "pure"]
        .iter()
        .any(|why| tool.errors.to_lowercase().contains(why))
        && words >= 5;
    let mentions_code = tool.errors.contains('`') || tool.errors.contains('"');
    // A short text without a code or an explanation is no help; a long one may describe errors in prose.
    if codes.is_empty() && !typed && !says_why && (words < 8 || !mentions_code && words < 15) {
        let message =
            "no error is named; list the codes that callers may get, each with its cause, or say why nothing can fail";
        reporter.report(&rules::ERRORS_UNSTATED, place.heading, message);
    }
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
    let nested = field(output, "error").and_then(properties);
    let prose = [&tool.errors, &tool.output_notes];
    let has = |name: &str| {
        field(output, name).is_some()
            || reporter.intro_names.contains(&name)
            || nested.is_some_and(|nested| nested.contains_key(name))
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

fn idempotency(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    if tool.idempotency.is_empty() {
        return;
    }
    let near = tool.places.section_heading(Section::Idempotency);
    let Some(answer) = tool.idempotent() else {
        let message = "the section does not say whether the tool is idempotent; write `- **Idempotent**: Yes`, No or Partially, and the reason";
        reporter.report(&rules::IDEMPOTENCY_UNSTATED, near, message);
        return;
    };
    let explained = explanation(&tool.idempotency).len();
    if explained < 3 && answer == Idempotent::Sometimes {
        let message = "the answer is unclear; say what it depends on, and what a second call does in each case";
        reporter.report(&rules::IDEMPOTENCY_UNSTATED, near, message);
        return;
    }
    if explained < 3 && tool.hints.read_only != Some(true) {
        let message = "the answer is not explained; say what a second call with the same arguments does";
        reporter.report(&rules::IDEMPOTENCY_UNEXPLAINED, near, message);
    }
    let conflict = match (answer, tool.hints.idempotent, tool.hints.read_only) {
        (Idempotent::Yes, Some(false), _) => Some("the section says Yes, the hints say `idempotentHint=false`"),
        (Idempotent::No, Some(true), _) => Some("the section says No, the hints say `idempotentHint=true`"),
        (Idempotent::No, _, Some(true)) => Some(
            "the section says No, but a tool that only reads (`readOnlyHint=true`) changes nothing when called again",
        ),
        _ => None,
    };
    if let Some(message) = conflict {
        reporter.report(&rules::IDEMPOTENCY_CONFLICT, near, message);
    }
}

/// The words that explain the answer, without the answer itself and without "see the code".
fn explanation(text: &str) -> Vec<String> {
    const ANSWERS: &[&str] = &[
        "idempotent",
        "idempotency",
        "explanation",
        "yes",
        "no",
        "not",
        "partially",
        "partly",
        "depends",
        "conditionally",
        "sometimes",
        "it",
        "is",
        "this",
        "tool",
        "the",
        "see",
        "code",
        "and",
        "on",
        "a",
        "documentation",
        "docs",
        "of",
        "course",
        "generally",
        "usually",
        "maybe",
        "varies",
        "n",
        "tbd",
        "here",
    ];
    let plain = text.replace("see the code", " ").to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| !ANSWERS.contains(word)).map(str::to_owned).collect()
}

/// Hints that contradict each other or the name.
pub(super) fn hints(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    if tool.hints.read_only != Some(true) {
        return;
    }
    if tool.hints.destructive == Some(true) {
        reporter.report(
            &rules::HINTS_CONFLICT,
            tool.places.heading,
            "`readOnlyHint` and `destructiveHint` cannot both be true",
        );
    }
    let verbs = [
        "delete",
        "remove",
        "write",
        "create",
        "update",
        "send",
        "set",
        "install",
        "uninstall",
        "erase",
        "format",
        "reset",
    ];
    let first = tool.name.rsplit('.').next().unwrap_or_default().split(['_', '-']).next().unwrap_or_default();
    if verbs.contains(&first) {
        let message = format!("a tool whose name begins with `{first}` says that it only reads (`readOnlyHint=true`)");
        reporter.report(&rules::HINTS_CONFLICT, tool.places.heading, message);
    }
}

/// What a tool accesses, and the words that reveal it.
const TOUCHES: &[(&str, &[&str])] = &[
    ("files", &["file", "files", "path", "paths", "directory", "folder", "filesystem", "upload", "download", "disk"]),
    (
        "the network",
        &[
            "url", "urls", "uri", "http", "https", "network", "host", "endpoint", "webhook", "socket", "fetch",
            "download", "email",
        ],
    ),
    ("code", &["code", "command", "commands", "script", "shell", "execute", "exec", "eval", "sql", "build", "compile"]),
    (
        "data",
        &[
            "delete",
            "database",
            "password",
            "token",
            "secret",
            "credential",
            "credentials",
            "user",
            "contacts",
            "sms",
            "location",
            "clipboard",
            "personal",
            "overwrite",
        ],
    ),
];

/// Whether a text has only words that fit every tool and name nothing that this one protects.
fn is_empty_words(text: &str) -> bool {
    const EMPTY: &[&str] = &[
        "about",
        "access",
        "actions",
        "ahead",
        "always",
        "apply",
        "applies",
        "applicable",
        "appropriate",
        "appropriately",
        "aware",
        "best",
        "care",
        "careful",
        "carefully",
        "caution",
        "checked",
        "common",
        "concern",
        "concerns",
        "consider",
        "consideration",
        "considerations",
        "control",
        "data",
        "ensure",
        "ensured",
        "errors",
        "every",
        "follow",
        "followed",
        "following",
        "fully",
        "general",
        "good",
        "handle",
        "handled",
        "handles",
        "handling",
        "important",
        "input",
        "inputs",
        "issue",
        "issues",
        "known",
        "make",
        "measures",
        "must",
        "necessary",
        "need",
        "needed",
        "normal",
        "only",
        "permissions",
        "please",
        "practice",
        "practices",
        "proper",
        "properly",
        "required",
        "responsibly",
        "responsible",
        "risk",
        "risks",
        "safe",
        "safely",
        "safety",
        "sanitize",
        "sanitized",
        "secure",
        "secured",
        "securely",
        "security",
        "sensitive",
        "should",
        "special",
        "specific",
        "standard",
        "such",
        "suitable",
        "sure",
        "take",
        "taken",
        "that",
        "their",
        "them",
        "there",
        "these",
        "this",
        "tool",
        "tools",
        "used",
        "user",
        "users",
        "using",
        "usual",
        "valid",
        "validate",
        "validated",
        "validates",
        "validation",
        "very",
        "when",
        "where",
        "which",
        "will",
        "with",
        "within",
        "without",
        "your",
    ];
    let plain = text.to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3 || !word.is_ascii());
    words.filter(|word| !EMPTY.contains(word)).take(3).count() < 3
}

fn security(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let Some(place) = tool.places.section(Section::Security).filter(|place| place.is_filled) else { return };
    let said: Vec<&str> =
        tool.security.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
    let dismissed = {
        let plain = tool.security.replace(['*', '`', '-', '.'], "").trim().to_lowercase();
        plain.starts_with("n/a")
            || plain.starts_with("none")
            || plain.starts_with("no security")
            || plain.starts_with("not applicable")
    };
    // A useful sentence names what it protects, which takes at least eight words.
    if !dismissed && said.len() >= 8 && !is_empty_words(&tool.security) {
        return;
    }
    let names = tool.parameters().map(|(name, _)| name.as_str());
    let words: Vec<String> = std::iter::once(tool.name.as_str())
        .chain(names)
        .chain(std::iter::once(tool.purpose.as_str()))
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase)
        .collect();
    let touched: Vec<&str> = TOUCHES
        .iter()
        .filter(|(_, marks)| words.iter().any(|word| marks.contains(&word.as_str())))
        .map(|(what, _)| *what)
        .collect();
    if !touched.is_empty() {
        let message = format!(
            "the tool uses {}, and this section does not say what could go wrong and what prevents it",
            touched.join(", ")
        );
        reporter.report(&rules::SECURITY_BOILERPLATE, place.heading, message);
    }
}
