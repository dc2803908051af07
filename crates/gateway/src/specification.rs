//! Two more built-in tools, for models that write tools: one checks a specification, one compares two.
//! They are listed only where the settings say so, because every client would list them.

use serde_json::{Value, json};
use sinew_spec::lint;
use sinew_spec::{Document, compare};
use sinew_tool::finding::{Finding, Severity};
use sinew_tool::{ErrorKind, Outcome, Tool, ToolError};

/// The longest text that is read; a specification of a hundred tools is shorter.
const MAX_TEXT: usize = 512 << 10;
/// Findings and changes of one answer; the rest are counted.
const MAX_SHOWN: usize = 200;

pub(crate) const VALIDATE: &str = "validate_tool_specification";
pub(crate) const COMPARE: &str = "compare_tool_specifications";

const FORMS: &str = "MCP_TOOL_SPECIFICATION.md, tools/list JSON or manifest";

pub(crate) fn tools() -> [Tool; 2] {
    let text = json!({"type": "string", "maxLength": MAX_TEXT, "description": FORMS});
    let validate = Tool::new(
        VALIDATE,
        "Check a tool specification: findings by rule, with line and column.",
        json!({"type": "object", "properties": {"text": text}, "required": ["text"]}),
    )
    .with_output_schema(json!({"type": "object", "properties": {
        "ok": {"type": "boolean", "description": "Whether there is no error; advice and warnings may remain."},
        "tools": {"type": "array", "items": {"type": "string"}},
        "findings": {"type": "array", "items": {"type": "object"}},
    }}));
    let compare = Tool::new(
        COMPARE,
        "Compare two tool specifications: each change as breaking, undecided, additive or cosmetic, and the version it needs.",
        json!({"type": "object", "properties": {"old": text, "new": text}, "required": ["old", "new"]}),
    )
    .with_output_schema(json!({"type": "object", "properties": {
        "ok": {"type": "boolean", "description": "Whether the declared versions announce all changes."},
        "bump": {"enum": ["none", "patch", "minor", "major"]},
        "changes": {"type": "array", "items": {"type": "object"}},
        "versions": {"type": "array", "items": {"type": "object"}},
    }}));
    [validate, compare]
}

/// Reads and checks; pure work that takes up to some tens of milliseconds.
pub(crate) fn validate(args: &Value) -> Result<Outcome, ToolError> {
    let document = Document::parse(text(args, "text")?);
    let findings = lint::check(&document, &lint::LintConfig::default());
    let shown = |finding: &Finding| {
        json!({
            "rule": finding.rule.id,
            "severity": finding.severity.word(),
            "line": finding.place.line(),
            "column": finding.place.column(),
            "message": finding.message,
        })
    };
    let mut answer = json!({
        "ok": findings.count(Severity::Error) == 0,
        "tools": document.tools.iter().take(MAX_SHOWN).map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        "findings": findings.iter().take(MAX_SHOWN).map(shown).collect::<Vec<_>>(),
    });
    count_rest(&mut answer, findings.len() + findings.more());
    Ok(Outcome::json(answer))
}

pub(crate) fn compare(args: &Value) -> Result<Outcome, ToolError> {
    let (old, new) = (readable(args, "old")?, readable(args, "new")?);
    let comparison = compare::diff_documents(&old, &new);
    let total = comparison.changes.len();
    let mut answer = comparison.to_json();
    for key in ["changes", "versions"] {
        if let Some(list) = answer.get_mut(key).and_then(Value::as_array_mut) {
            list.truncate(MAX_SHOWN);
        }
    }
    answer["ok"] = json!(comparison.too_small().next().is_none() && comparison.unannounced().next().is_none());
    count_rest(&mut answer, total);
    Ok(Outcome::json(answer))
}

fn count_rest(answer: &mut Value, total: usize) {
    if total > MAX_SHOWN {
        answer["more"] = json!(total - MAX_SHOWN);
    }
}

/// A text of which something could be read: what it lacks would look like a change.
fn readable(args: &Value, key: &str) -> Result<Document, ToolError> {
    let document = Document::parse(text(args, key)?);
    match document.unreadable() {
        Some(problem) => Err(wrong(key, &format!("cannot be read: {}", problem.message))),
        None => Ok(document),
    }
}

fn text<'a>(args: &'a Value, key: &str) -> Result<&'a str, ToolError> {
    let text = args.get(key).and_then(Value::as_str).unwrap_or_default();
    match text.len() {
        0..=MAX_TEXT => Ok(text),
        length => Err(wrong(key, &format!("has {length} bytes; at most {MAX_TEXT} are read"))),
    }
}

fn wrong(key: &str, issue: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, format!("argument `{key}` {issue}"))
        .with_details(json!({"parameter_name": key, "issue": issue}))
}
