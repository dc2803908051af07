//! Comments that suppress findings, with a reason.
//!
//! In Markdown `<!-- sinew: ignore split-tool because the protocol has one entry point -->`, in JSON
//! `"$comment": "sinew: ignore split-tool because …"`. Inside a tool it applies to that tool, elsewhere
//! to the whole document.

use super::{Reporter, rule, rules};
use crate::read::blocks::Fences;
use crate::read::{Document, Format};
use sinew_tool::finding::{Rule, Span};
use sinew_tool::text::clip;

/// Whoever is asked. Case and space around the colon do not matter, since nobody would see why they do.
const ASKED: &str = "sinew";
/// What people write from memory and other linters understand.
const OTHER_WORDS: [&str; 6] = ["disable", "allow", "suppress", "skip", "off", "noqa"];
/// More requests than this are not read.
const MAX_IGNORES: usize = 200;

pub(super) struct Ignore {
    rule: &'static Rule,
    /// Where it is, and the part of the text it applies to.
    span: Span,
    scope: Option<Span>,
    used: bool,
}

/// Reads the requests of a document, and reports those that give no reason or name no known rule.
pub(super) fn read(reporter: &mut Reporter<'_>) {
    for request in requests(reporter.document) {
        let wrong = match (request.word.as_str(), request.reason) {
            ("ignore", "") => "an ignore needs a reason: `sinew: ignore RULE because …`",
            ("ignore", _) if request.names().next().is_none() => {
                "an ignore names a rule: `sinew: ignore RULE because …`; `sinew spec rules` lists them"
            }
            ("ignore", _) => "",
            _ => "this ignores nothing; write `sinew: ignore RULE because …`",
        };
        if !wrong.is_empty() {
            reporter.report(&rules::IGNORE_INVALID, request.span, wrong);
            continue;
        }
        for name in request.names() {
            match rule(name) {
                Some(rule) => {
                    reporter.ignores.push(Ignore { rule, span: request.span, scope: request.scope, used: false });
                }
                None => {
                    let message = format!("there is no rule `{}`; `sinew spec rules` lists them", clip(name));
                    reporter.report(&rules::IGNORE_INVALID, request.span, message);
                }
            }
        }
    }
}

/// Whether a finding is suppressed.
pub(super) fn covers(ignores: &mut [Ignore], rule: &Rule, at: usize) -> bool {
    let matching = ignores.iter_mut().find(|ignore| ignore.covers(rule, at));
    matching.map(|ignore| ignore.used = true).is_some()
}

/// Reports requests that suppress nothing.
pub(super) fn report_unused(reporter: &mut Reporter<'_>) {
    // Whether another document uses a name is not known yet.
    let is_unused = |ignore: &Ignore| !ignore.used && ignore.rule != &rules::NAME_DUPLICATE;
    for ignore in std::mem::take(&mut reporter.ignores).into_iter().filter(is_unused) {
        let message = format!("`{}` has no finding here to ignore; remove this comment", ignore.rule.id);
        reporter.report(&rules::IGNORE_UNUSED, ignore.span, message);
    }
}

impl Ignore {
    fn covers(&self, rule: &Rule, at: usize) -> bool {
        rule == self.rule && self.scope.is_none_or(|scope| scope.contains(at))
    }
}

/// Where findings of this rule are suppressed; `None` is the whole document.
pub(super) fn scopes(document: &Document, wanted: &Rule) -> Vec<Option<Span>> {
    let is_wanted = |request: &Request<'_>| {
        request.word == "ignore" && !request.reason.is_empty() && request.names().any(|name| name == wanted.id)
    };
    requests(document).iter().filter(|request| is_wanted(request)).map(|request| request.scope).collect()
}

/// A comment that asks to ignore rules.
struct Request<'a> {
    span: Span,
    /// The tool it is in.
    scope: Option<Span>,
    /// `ignore`, or a word that means nothing here.
    word: String,
    names: &'a str,
    reason: &'a str,
}

impl<'a> Request<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.split(|c: char| matches!(c, ',' | ':' | '`') || c.is_whitespace()).filter(|name| !name.is_empty())
    }
}

fn requests(document: &Document) -> Vec<Request<'_>> {
    let text = document.text.as_str();
    let is_markdown = document.format == Format::Markdown;
    // A document rarely mentions it at all.
    if !["sinew", "Sinew", "SINEW"].iter().any(|asked| text.contains(asked)) {
        return Vec::new();
    }
    let plain = text.to_ascii_lowercase();
    let fences = if is_markdown { Fences::of(text) } else { Fences::default() };
    // An example of a comment asks for nothing.
    let is_code = |at: usize| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        is_markdown && (fences.contains(at) || line.matches('`').count() % 2 == 1)
    };
    let request = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end();
        let opens = if is_markdown { before.ends_with("<!--") } else { before.ends_with('"') };
        let rest = &plain[at + ASKED.len()..];
        let asks = rest.trim_start_matches([':', '-', ' ']);
        let word: String = asks.chars().take_while(char::is_ascii_alphabetic).collect();
        if asks.len() == rest.len() || !(word == "ignore" || OTHER_WORDS.contains(&word.as_str())) {
            return None;
        }
        let start = text.len() - asks.len() + word.len();
        let close = if is_markdown { plain[start..].find("-->") } else { plain[start..].find('"') };
        let end = start + close.filter(|_| opens && !is_code(at))?;
        let because = plain[start..end].find("because").map_or(end, |found| start + found);
        let reason = text[because..end].get("because".len()..).unwrap_or_default();
        let scope = document.tools.iter().map(|tool| tool.places.whole).find(|whole| whole.contains(at));
        Some(Request { span: Span::new(at, end), scope, word, names: &text[start..because], reason: reason.trim() })
    };
    plain.match_indices(ASKED).filter_map(request).take(MAX_IGNORES).collect()
}
