//! What callers rely on: named errors, what a second call does, and hints that are true.

use std::collections::HashSet;

use super::status::field;
use super::{Reporter, rules};
use crate::model::{Idempotent, Section, ToolSpecification, error_codes};
use sinew_tool::text::clip;

pub(super) fn check(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    errors(reporter, tool);
    idempotency(reporter, tool);
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
    let is_brief = words < 8 || !mentions_code && words < 15;
    // A short text without a code or an explanation is no help; a long one may describe errors in prose.
    if codes.is_empty() && !typed && !says_why && (is_brief || !mentions_code && names_no_cause(&tool.errors)) {
        let message =
            "no error is named; list the codes that callers may get, each with its cause, or say why nothing can fail";
        reporter.report(&rules::ERRORS_UNSTATED, place.heading, message);
    }
}

/// Whether a text only says in general words that errors are possible.
fn names_no_cause(text: &str) -> bool {
    const GENERAL: &[&str] = &[
        "anything",
        "appropriate",
        "appropriately",
        "back",
        "call",
        "called",
        "caller",
        "callers",
        "case",
        "cases",
        "caught",
        "client",
        "code",
        "codes",
        "describe",
        "describes",
        "describing",
        "description",
        "descriptive",
        "detail",
        "detailed",
        "details",
        "during",
        "error",
        "errors",
        "exception",
        "exceptions",
        "execution",
        "fail",
        "failed",
        "fails",
        "failure",
        "failures",
        "following",
        "format",
        "from",
        "general",
        "given",
        "goes",
        "gracefully",
        "handle",
        "handled",
        "handles",
        "handling",
        "have",
        "include",
        "includes",
        "information",
        "into",
        "issue",
        "issues",
        "logged",
        "might",
        "message",
        "messages",
        "occur",
        "occurs",
        "occurred",
        "operation",
        "other",
        "possible",
        "problem",
        "problems",
        "properly",
        "raise",
        "raised",
        "raises",
        "report",
        "reported",
        "reports",
        "response",
        "result",
        "results",
        "return",
        "returned",
        "returns",
        "running",
        "should",
        "some",
        "something",
        "standard",
        "structured",
        "such",
        "that",
        "their",
        "then",
        "there",
        "this",
        "thrown",
        "throws",
        "tool",
        "unexpected",
        "user",
        "users",
        "usual",
        "various",
        "what",
        "when",
        "which",
        "while",
        "will",
        "with",
        "without",
        "wrong",
    ];
    let plain = text.to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3 || !word.is_ascii());
    words.filter(|word| !GENERAL.contains(word)).take(3).count() < 3
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
        "todo",
        "here",
        "probably",
        "presumably",
        "perhaps",
        "should",
        "be",
        "hopefully",
        "think",
        "believe",
        "mostly",
        "in",
        "general",
        "most",
        "cases",
        "above",
        "below",
        "unknown",
        "sure",
        "we",
        "i",
    ];
    let plain = text.replace("see the code", " ").to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| !ANSWERS.contains(word)).map(str::to_owned).collect()
}

/// Hints that contradict each other or the name.
pub(super) fn hints(reporter: &mut Reporter<'_>, tool: &ToolSpecification) {
    let place = tool.places.heading;
    let verbs = name_verbs(&tool.name);
    if tool.hints.read_only == Some(true) {
        for (hint, other) in [
            (tool.hints.destructive, "destructiveHint=true"),
            (tool.hints.idempotent.map(|on| !on), "idempotentHint=false"),
        ] {
            if hint == Some(true) {
                let message = format!("`readOnlyHint=true` and `{other}` cannot both be true");
                reporter.report(&rules::HINTS_CONFLICT, place, message);
            }
        }
        if let Some(verb) = verbs.acts {
            let message = format!("the name says `{verb}`, and `readOnlyHint=true` that the tool only reads");
            reporter.report(&rules::HINTS_CONFLICT, place, message);
        }
    }
    if let Some(verb) = verbs.destroys.filter(|_| tool.hints.destructive == Some(false)) {
        let message = format!("the name says `{verb}`, and `destructiveHint=false` that nothing can be lost");
        reporter.report(&rules::HINTS_CONFLICT, place, message);
    }
}

/// What a name says that its tool does.
struct NameVerbs {
    acts: Option<&'static str>,
    destroys: Option<&'static str>,
}

fn name_verbs(name: &str) -> NameVerbs {
    const DESTROYS: &[&str] = &["delete", "erase", "wipe", "purge", "destroy", "drop"];
    const ACTS: &[&str] = &[
        "remove",
        "write",
        "create",
        "update",
        "send",
        "set",
        "install",
        "uninstall",
        "reset",
        "insert",
        "modify",
        "rename",
        "upload",
        "reboot",
        "restart",
        "shutdown",
        "publish",
        "deploy",
        "unlock",
        "toggle",
        "press",
        "tap",
        "click",
        "kill",
        "clear",
        "disable",
        "enable",
    ];
    let words = super::names::words(name.rsplit(['.', '/']).next().unwrap_or_default());
    // `delete_file` and `file_delete`; `list_deleted` and `preview_delete_plan` only look.
    let ends = [words.first(), words.last()];
    let find = |verbs: &'static [&'static str], ends: &[Option<&String>]| {
        verbs.iter().copied().find(|verb| ends.iter().flatten().any(|word| word == verb))
    };
    let destroys = find(DESTROYS, &ends).or_else(|| {
        let is_disk =
            words.iter().any(|word| matches!(word.as_str(), "disk" | "drive" | "card" | "partition" | "storage"));
        words.first().filter(|word| *word == "format" && is_disk).map(|_| "format")
    });
    NameVerbs { acts: destroys.or_else(|| find(ACTS, &ends[..1])), destroys }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_its_tool_does() {
        for (name, acts, destroys) in [
            ("delete_file", true, true),
            ("file_delete", true, true),
            ("files.deleteAll", true, true),
            ("format_sd_card", true, true),
            ("set_volume", true, false),
            ("installApp", true, false),
            ("format_date", false, false),
            ("list_deleted", false, false),
            ("preview_delete_plan", false, false),
            ("get_dropped_frames", false, false),
            ("settings_read", false, false),
        ] {
            let verbs = name_verbs(name);
            assert_eq!((verbs.acts.is_some(), verbs.destroys.is_some()), (acts, destroys), "{name}");
        }
    }
}
