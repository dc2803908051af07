//! Comments that suppress findings, with a reason.
//!
//! In Markdown `<!-- sinew: ignore split-tool because the protocol has one entry point -->`, in JSON
//! `"$comment": "sinew: ignore split-tool because …"`. Inside a tool it applies to that tool, elsewhere
//! to the whole document.

use super::{Reporter, rule, rules};
use sinew_tool::finding::{Finding, Findings, Rule, Span};
use sinew_tool::text::clip;

const MARK: &str = "sinew: ignore";
/// More requests than this are not read.
const MAX_IGNORES: usize = 200;

struct Ignore {
    rule: &'static Rule,
    /// Where it is, and the part of the text it applies to.
    span: Span,
    scope: Option<Span>,
    used: bool,
}

/// Removes suppressed findings, and reports requests that give no reason, name no
/// known rule or suppress nothing.
pub(super) fn apply(reporter: &mut Reporter<'_>) {
    let text = reporter.text();
    if !text.contains(MARK) {
        return;
    }
    let mut ignores = read(reporter);
    let findings = std::mem::take(&mut reporter.findings);
    let mut kept = Findings::default();
    for finding in findings.iter() {
        let matching = ignores.iter_mut().find(|ignore| ignore.covers(finding));
        match matching {
            Some(ignore) => ignore.used = true,
            None => kept.push(finding.clone()),
        }
    }
    kept.count_more(findings.more());
    reporter.findings = kept;
    for ignore in ignores.iter().filter(|ignore| !ignore.used) {
        let message = format!("`{}` has no finding here to ignore; remove this comment", ignore.rule.id);
        reporter.report(&rules::IGNORE_UNUSED, ignore.span, message);
    }
}

impl Ignore {
    fn covers(&self, finding: &Finding) -> bool {
        let start = finding.place.span().map_or(0, |span| span.start);
        finding.rule == self.rule && self.scope.is_none_or(|scope| scope.contains(start))
    }
}

fn read(reporter: &mut Reporter<'_>) -> Vec<Ignore> {
    let text = reporter.text();
    let markdown = reporter.is_markdown();
    let mut found = Vec::new();
    for (at, _) in text.match_indices(MARK).take(MAX_IGNORES) {
        let before = text[..at].trim_end();
        let opens = if markdown { before.ends_with("<!--") } else { before.ends_with('"') };
        let body = &text[at + MARK.len()..];
        let end = if markdown { body.find("-->") } else { body.find('"') };
        let (true, Some(end)) = (opens, end) else { continue };
        let body = body[..end].trim();
        let span = Span::new(at, at + MARK.len() + end);
        let (names, reason) = body.split_once("because").unwrap_or((body, ""));
        if reason.trim().is_empty() {
            let message = "an ignore needs a reason: `sinew: ignore RULE because …`";
            reporter.report(&rules::IGNORE_INVALID, span, message);
            continue;
        }
        let scope = reporter.document.tools.iter().map(|tool| tool.places.whole).find(|whole| whole.contains(at));
        for name in names.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
            match rule(name) {
                Some(rule) => found.push(Ignore { rule, span, scope, used: false }),
                None => {
                    let message = format!("there is no rule `{}`; `sinew spec rules` lists them", clip(name));
                    reporter.report(&rules::IGNORE_INVALID, span, message);
                }
            }
        }
    }
    found
}
