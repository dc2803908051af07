//! Advice: what meets the standard and could still be better.

use serde_json::Value;
use sinew_tool::text::clip;

use super::{Reporter, rules};
use crate::model::{Section, ToolSpecification};

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    split(reporter, tool);
    formats(reporter, tool);
    if reporter.is_markdown() {
        testable(reporter, tool);
    }
}

fn split(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let places = tool.places.input.members();
    for (name, property) in tool.parameters() {
        let is_switch = matches!(
            name.as_str(),
            "operation"
                | "action"
                | "command"
                | "op"
                | "verb"
                | "subcommand"
                | "mode"
                | "method"
                | "cmd"
                | "task"
                | "function"
                | "action_type"
                | "operation_type"
                | "op_type"
                | "sub_command"
                | "actionType"
                | "operationType"
        );
        let choices = choices(property);
        let verbs = choices.iter().filter(|choice| is_verb(choice)).count();
        let open = choices.is_empty() && matches!(name.as_str(), "operation" | "action" | "subcommand");
        // Whatever its name, a choice of verbs chooses what is done.
        if is_switch && (choices.len() > 1 || open) || verbs > 2 && verbs == choices.len() {
            let span = places.get(name.as_str()).copied().unwrap_or(tool.places.heading);
            let message = format!(
                "`{}` makes this several tools in one; models choose better among tools that do one thing each",
                clip(name)
            );
            reporter.report(&rules::SPLIT_TOOL, span, message);
        }
    }
    let name = tool.name.rsplit('.').next().unwrap_or_default();
    let parts = super::names::words(name);
    let is_idiom = IDIOMS.iter().any(|idiom| parts.windows(idiom.len()).any(|part| part == *idiom));
    if !is_idiom && (1..parts.len().saturating_sub(1)).any(|index| matches!(parts[index].as_str(), "and" | "or")) {
        let message = format!("the name `{}` says that the tool does two things; consider a tool for each", clip(name));
        reporter.report(&rules::SPLIT_TOOL, tool.places.name.unwrap_or(tool.places.heading), message);
        return;
    }
    let sentence = tool.purpose.split(['.', '\n']).next().unwrap_or_default().to_lowercase();
    let words = sentence.split(|c: char| !c.is_alphanumeric());
    let verbs: Vec<&str> = words.filter(|word| VERBS.contains(&word.trim_end_matches('s'))).collect();
    if verbs.len() >= 3 {
        let message =
            format!("the first sentence has {} verbs ({}); consider a tool for each", verbs.len(), verbs.join(", "));
        reporter.report(&rules::SPLIT_TOOL, tool.places.section_heading(Section::Purpose), message);
    }
}

/// One action whose name has two verbs.
const IDIOMS: &[&[&str]] = &[
    &["drag", "and", "drop"],
    &["search", "and", "replace"],
    &["find", "and", "replace"],
    &["copy", "and", "paste"],
    &["cut", "and", "paste"],
    &["wait", "and", "see"],
    &["compare", "and", "swap"],
    &["fetch", "and", "add"],
];

/// The values that a property offers.
fn choices(property: &Value) -> Vec<&str> {
    let listed = property.get("enum").and_then(Value::as_array).into_iter().flatten();
    let branches = ["oneOf", "anyOf"].iter().filter_map(|key| property.get(key)?.as_array()).flatten();
    listed.chain(branches.filter_map(|branch| branch.get("const"))).filter_map(Value::as_str).collect()
}

fn is_verb(choice: &str) -> bool {
    super::names::words(choice).first().is_some_and(|word| VERBS.contains(&word.as_str()))
}

const VERBS: &[&str] = &[
    "create",
    "read",
    "update",
    "delete",
    "list",
    "get",
    "add",
    "remove",
    "start",
    "stop",
    "install",
    "uninstall",
    "open",
    "close",
    "enable",
    "disable",
    "send",
    "fetch",
    "upload",
    "download",
    "rename",
    "move",
    "copy",
];

/// Strings whose name or description implies a format that the schema does not state.
fn formats(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let places = tool.places.input.members();
    for (name, property) in tool.parameters() {
        let is_text = property.get("type").is_some_and(|kind| kind == "string");
        let bounded = ["format", "enum", "const", "pattern"].iter().any(|key| property.get(key).is_some());
        if !is_text || bounded {
            continue;
        }
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        if let Some(format) = promised(name, description) {
            let span = places.get(name.as_str()).copied().unwrap_or(tool.places.heading);
            let message = format!("`{}` looks like a {format}; say so with \"format\": \"{format}\"", clip(name));
            reporter.report(&rules::FORMAT_MISSING, span, message);
        }
    }
}

fn promised(name: &str, description: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let last = name.rsplit(['_', '-']).next().unwrap_or_default();
    let words = description.to_lowercase();
    match last {
        "date" => Some("date"),
        "datetime" | "timestamp" => Some("date-time"),
        "at" if is_done_at(&name) => Some("date-time"),
        "url" | "uri" => Some("uri"),
        "email" => Some("email"),
        "uuid" | "guid" => Some("uuid"),
        "duration" if words.contains("iso") => Some("duration"),
        _ if words.contains("rfc 3339") || words.contains("rfc3339") => Some("date-time"),
        _ if words.contains("iso 8601 duration") => Some("duration"),
        _ if words.contains("iso 8601") || words.contains("iso8601") => Some("date-time"),
        _ => None,
    }
}

/// `created_at` and `expires_at`, not `look_at`.
fn is_done_at(name: &str) -> bool {
    const TIMES: &[&str] = &[
        "expires", "starts", "start", "ends", "end", "begins", "sent", "run", "runs", "due", "seen", "built", "valid",
    ];
    let done = name.strip_suffix("_at").and_then(|before| before.rsplit(['_', '-']).next()).unwrap_or_default();
    done.ends_with("ed") || TIMES.contains(&done)
}

/// A result that says only "any" or "an object" gives a test nothing to check.
fn testable(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let Some(output) = &tool.output else { return };
    let is_nothing = |part: Option<&Value>| {
        part.is_none_or(|part| part.is_boolean() || part.as_object().is_some_and(serde_json::Map::is_empty))
    };
    let kind = |schema: &Value| match schema.get("type") {
        // A result that may be missing is tested by what it is otherwise.
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none()).map(str::to_owned)
        }
        kind => kind.and_then(Value::as_str).map(str::to_owned),
    };
    let shapeless = |schema: &Value| match kind(schema).as_deref() {
        Some("object") => is_nothing(schema.get("properties")) && is_nothing(schema.get("additionalProperties")),
        Some("array") => is_nothing(schema.get("items")) && is_nothing(schema.get("prefixItems")),
        Some(_) => false,
        None => schema
            .as_object()
            .is_none_or(|map| map.keys().all(|key| matches!(key.as_str(), "description" | "examples" | "title"))),
    };
    let telling = |name: &str| {
        !matches!(
            name,
            "status" | "message" | "error" | "error_type" | "error_message" | "error_details" | "explanation"
        )
    };
    let mut fields = tool.fields().filter(|(name, _)| telling(name)).peekable();
    let none = fields.peek().is_none() && (tool.fields().next().is_some() || shapeless(output));
    // A tool that acts and returns nothing but a status is fine.
    let only_status = none && tool.fields().any(|(name, _)| name == "status");
    // Alternatives (`anyOf`) have no fields here and may have shapes of their own.
    let has_fields = fields.peek().is_some();
    if !only_status && (none || has_fields && fields.all(|(_, schema)| shapeless(schema))) {
        let message = "no field of the result has a type that a test could check; describe its content";
        reporter.report(&rules::UNTESTABLE_RESULT, tool.places.section_heading(Section::Output), message);
    }
}
