//! Comments that suppress findings, with a reason.
//!
//! In Markdown `<!-- sinew: ignore split-tool because the protocol has one entry point -->`, in JSON
//! `"$comment": "sinew: ignore split-tool because …"`. Inside a tool it applies to that tool, elsewhere
//! to the whole document.

use super::{Reporter, rule, rules};
use crate::read::{Document, Format};
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
    // Whether another document uses a name is not known yet.
    let is_unused = |ignore: &&Ignore| !ignore.used && ignore.rule != &rules::NAME_DUPLICATE;
    for ignore in ignores.iter().filter(is_unused) {
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

/// Whether a finding of this rule at this place would be suppressed.
pub(super) fn is_ignored(document: &Document, wanted: &Rule, at: usize) -> bool {
    let is_wanted = |request: &Request<'_>| {
        let is_here = request.scope.is_none_or(|scope| scope.contains(at));
        is_here && !request.reason.is_empty() && request.names().any(|name| name == wanted.id)
    };
    document.text.contains(MARK) && requests(document).iter().any(is_wanted)
}

/// A comment that asks to ignore rules.
struct Request<'a> {
    span: Span,
    /// The tool it is in.
    scope: Option<Span>,
    names: &'a str,
    reason: &'a str,
}

impl<'a> Request<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty())
    }
}

fn requests(document: &Document) -> Vec<Request<'_>> {
    let text = document.text.as_str();
    let is_markdown = document.format == Format::Markdown;
    let request = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end();
        let opens = if is_markdown { before.ends_with("<!--") } else { before.ends_with('"') };
        let body = &text[at + MARK.len()..];
        let end = if is_markdown { body.find("-->") } else { body.find('"') }.filter(|_| opens)?;
        let (names, reason) = body[..end].split_once("because").unwrap_or((&body[..end], ""));
        let scope = document.tools.iter().map(|tool| tool.places.whole).find(|whole| whole.contains(at));
        Some(Request { span: Span::new(at, at + MARK.len() + end), scope, names, reason: reason.trim() })
    };
    text.match_indices(MARK).take(MAX_IGNORES).filter_map(request).collect()
}

fn read(reporter: &mut Reporter<'_>) -> Vec<Ignore> {
    let mut found = Vec::new();
    for request in requests(reporter.document) {
        if request.reason.is_empty() {
            let message = "an ignore needs a reason: `sinew: ignore RULE because …`";
            reporter.report(&rules::IGNORE_INVALID, request.span, message);
            continue;
        }
        for name in request.names() {
            match rule(name) {
                Some(rule) => found.push(Ignore { rule, span: request.span, scope: request.scope, used: false }),
                None => {
                    let message = format!("there is no rule `{}`; `sinew spec rules` lists them", clip(name));
                    reporter.report(&rules::IGNORE_INVALID, request.span, message);
                }
            }
        }
    }
    found
}
