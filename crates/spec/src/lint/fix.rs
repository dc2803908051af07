//! Fixing: applies the safe edits of findings until none is left.

use sinew_tool::finding::{Edit, Finding, Findings};

use super::{LintConfig, check};
use crate::read::Document;

/// A text after its safe fixes.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub text: String,
    /// How many edits were made.
    pub edits: usize,
    /// Findings that have no safe fix.
    pub findings: Findings,
}

/// Applies the edits that do not overlap; of two that do, the first wins and the other waits for the
/// next round. Returns the text and how many were applied.
pub fn apply_fixes(text: &str, findings: &[Finding]) -> (String, usize) {
    let mut edits: Vec<_> = findings.iter().filter_map(|finding| finding.fix.as_ref()).collect();
    // Small edits first: one that replaces the whole text waits until all others are done.
    edits.sort_by_key(|edit| (edit.span.end - edit.span.start, edit.span.start));
    let mut chosen: Vec<&Edit> = Vec::new();
    for edit in edits {
        let fits = edit.span.end <= text.len()
            && text.is_char_boundary(edit.span.start)
            && text.is_char_boundary(edit.span.end)
            && chosen.iter().all(|other| edit.span.end <= other.span.start || edit.span.start >= other.span.end)
            && chosen.iter().all(|other| edit.span.start != other.span.start);
        if fits {
            chosen.push(edit);
        }
    }
    chosen.sort_by_key(|edit| edit.span.start);
    let mut fixed_text = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &chosen {
        fixed_text.push_str(&text[at..edit.span.start]);
        fixed_text.push_str(&edit.replacement);
        at = edit.span.end;
    }
    fixed_text.push_str(&text[at..]);
    (fixed_text, chosen.len())
}

/// Checks and fixes a text, round after round, until no finding has a fix left.
pub fn fix(text: &str, config: &LintConfig) -> Fixed {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let mut document = Document::parse(text);
    let mut findings = check(&document, config);
    let mut edits = 0;
    // Each round fixes at least one finding; more rounds than this would mean two rules that undo
    // each other.
    for _ in 0..20 {
        let (fixed_text, count) = apply_fixes(&document.text, &findings);
        if count == 0 || fixed_text == document.text {
            break;
        }
        edits += count;
        document = Document::parse(&fixed_text);
        findings = check(&document, config);
    }
    let text = if edits == 0 { text.to_owned() } else { format!("{mark}{}", document.text) };
    Fixed { text, edits, findings }
}
