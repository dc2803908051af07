//! Findings that a document asks to leave out, with a reason.
//!
//! In Markdown `<!-- sinew: ignore split-tool because the protocol has one entry point -->`, in JSON
//! `"$comment": "sinew: ignore split-tool because …"`. Inside a tool it holds for that tool, elsewhere
//! for the whole document.

use super::{Bench, rule, rules};
use sinew_tool::finding::{Finding, Findings, Rule, Span};
use sinew_tool::text::clip;

const MARK: &str = "sinew: ignore";
/// More than this is not a document with exceptions.
const MAX_IGNORES: usize = 200;

struct Ignore {
    rule: &'static Rule,
    /// Where it stands, and where it holds.
    span: Span,
    scope: Option<Span>,
    used: bool,
}

/// Removes the findings that the document asks to leave out, and reports requests that say no reason, name no
/// rule or remove nothing.
pub fn apply(bench: &mut Bench<'_>) {
    let text = bench.text();
    if !text.contains(MARK) {
        return;
    }
    let mut ignores = read(bench);
    let findings = std::mem::take(&mut bench.findings);
    let mut kept = Findings::default();
    for finding in findings.iter() {
        let matching = ignores.iter_mut().find(|ignore| ignore.covers(finding));
        match matching {
            Some(ignore) => ignore.used = true,
            None => kept.push(finding.clone()),
        }
    }
    kept.count_more(findings.more());
    bench.findings = kept;
    for ignore in ignores.iter().filter(|ignore| !ignore.used) {
        let message = format!("there is no finding of `{}` here to ignore; remove this", ignore.rule.id);
        bench.tell(&rules::IGNORE_UNUSED, ignore.span, message);
    }
}

impl Ignore {
    fn covers(&self, finding: &Finding) -> bool {
        let start = finding.place.span().map_or(0, |span| span.start);
        finding.rule == self.rule && self.scope.is_none_or(|scope| scope.contains(start))
    }
}

fn read(bench: &mut Bench<'_>) -> Vec<Ignore> {
    let text = bench.text();
    let markdown = bench.is_markdown();
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
            bench.tell(&rules::IGNORE_INVALID, span, message);
            continue;
        }
        let scope = bench.document.tools.iter().map(|tool| tool.places.whole).find(|whole| whole.contains(at));
        for name in names.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
            match rule(name) {
                Some(rule) => found.push(Ignore { rule, span, scope, used: false }),
                None => {
                    let message = format!("there is no rule `{}`; `sinew spec rules` lists them", clip(name));
                    bench.tell(&rules::IGNORE_INVALID, span, message);
                }
            }
        }
    }
    found
}
