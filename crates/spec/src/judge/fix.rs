//! Mending: the safe edits of findings, applied until nothing is left to mend.

use sinew_tool::finding::{Edit, Finding, Findings};

use super::{Config, lint};
use crate::read::Document;

/// A text after mending.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub text: String,
    /// How many edits were made.
    pub edits: usize,
    /// What is left for a person.
    pub findings: Findings,
}

/// Applies the edits that do not overlap; of two that do, the first wins and the other waits for the
/// next round. Answers with the text and how many were applied.
pub fn apply_fixes(text: &str, findings: &[Finding]) -> (String, usize) {
    let mut edits: Vec<_> = findings.iter().filter_map(|finding| finding.fix.as_ref()).collect();
    // Small edits first: one that replaces the whole text waits until nothing else is to do.
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
    let mut mended = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &chosen {
        mended.push_str(&text[at..edit.span.start]);
        mended.push_str(&edit.replacement);
        at = edit.span.end;
    }
    mended.push_str(&text[at..]);
    (mended, chosen.len())
}

/// Lints and mends, round after round, until no finding has a mend left.
pub fn fix(text: &str, config: &Config) -> Fixed {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let mut document = Document::parse(text);
    let mut findings = lint(&document, config);
    let mut edits = 0;
    // Each round mends at least one finding; more rounds than this would mean two rules that undo
    // each other.
    for _ in 0..20 {
        let (mended, count) = apply_fixes(&document.text, &findings);
        if count == 0 || mended == document.text {
            break;
        }
        edits += count;
        document = Document::parse(&mended);
        findings = lint(&document, config);
    }
    let text = if edits == 0 { text.to_owned() } else { format!("{mark}{}", document.text) };
    Fixed { text, edits, findings }
}
