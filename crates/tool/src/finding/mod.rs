//! Rules, severities and findings: one framework for everything that checks documents and apps.
//!
//! A crate that checks something declares its rules with [`rules!`](crate::rules), one row each. A
//! row becomes a constant, and a [`Finding`] holds a reference to it: a rule that does not exist
//! cannot be named. [`report`] prints findings as text, JSON, SARIF, GitHub commands or JUnit XML.

mod place;
pub mod report;
mod rule;

use std::ops::Deref;

pub use place::{Lines, Place, Position, Span};
pub use rule::{Linter, Rule, kebab};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Could be better.
    Advice,
    /// A caller may go wrong.
    Warning,
    /// The requirement is not met, or something cannot work.
    Error,
}

impl Severity {
    pub const ALL: [Severity; 3] = [Severity::Advice, Severity::Warning, Severity::Error];

    pub fn word(self) -> &'static str {
        match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    pub fn from_word(word: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| severity.word() == word)
    }
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static Rule,
    pub severity: Severity,
    pub message: String,
    pub place: Place,
    /// The tool it is about.
    pub tool: Option<String>,
    /// The component of an app it is about.
    pub component: Option<String>,
    /// An edit that fixes it without changing what the document says.
    pub fix: Option<Edit>,
}

/// A replacement for a range of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub replacement: String,
}

impl Finding {
    /// A finding with the rule's own severity, about the document as a whole.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Finding {
        Finding {
            rule,
            severity: rule.severity,
            message: message.into(),
            place: Place::Whole,
            tool: None,
            component: None,
            fix: None,
        }
    }

    pub fn with_severity(mut self, severity: Severity) -> Finding {
        self.severity = severity;
        self
    }

    pub fn at(mut self, place: Place) -> Finding {
        self.place = place;
        self
    }

    pub fn of_tool(mut self, name: impl Into<String>) -> Finding {
        self.tool = Some(name.into());
        self
    }

    pub fn of_component(mut self, name: impl Into<String>) -> Finding {
        self.component = Some(name.into());
        self
    }

    pub fn with_fix(mut self, fix: Option<Edit>) -> Finding {
        self.fix = fix;
        self
    }
}

/// The findings of one document. Findings beyond the limit are counted, not kept: a hostile document
/// would otherwise have millions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    more: usize,
}

impl Findings {
    /// More findings of one document would not be read.
    pub const LIMIT: usize = 1000;

    pub fn push(&mut self, finding: Finding) {
        if self.list.len() < Findings::LIMIT {
            self.list.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// How many findings were not kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Counts further findings that were not kept.
    pub fn count_more(&mut self, more: usize) {
        self.more += more;
    }

    /// Sorts by place; at one place the most severe come first.
    pub fn sort(&mut self) {
        self.list.sort_by(|one, two| one.order().cmp(&two.order()));
    }

    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.list.retain(keep);
    }
}

impl Finding {
    fn order(&self) -> (usize, usize, std::cmp::Reverse<Severity>, &'static str) {
        let start = self.place.span().map_or(0, |span| span.start);
        (self.place.line().unwrap_or(usize::MAX), start, std::cmp::Reverse(self.severity), self.rule.id)
    }
}

impl Deref for Findings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

impl FromIterator<Finding> for Findings {
    fn from_iter<T: IntoIterator<Item = Finding>>(findings: T) -> Findings {
        let mut kept = Findings::default();
        kept.extend(findings);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::rules! {
        static RULES = [
            NAME_MISSING {
                severity: Error, fixable: false,
                title: "A tool has a name",
                why: "It cannot be called without one.",
                bad: "{}",
                good: "{\"name\": \"a\"}",
            }
        ];
    }

    #[test]
    fn the_id_of_a_rule_is_its_constant_in_kebab_case() {
        assert_eq!(NAME_MISSING.id, "name-missing");
        assert_eq!(RULES, [&NAME_MISSING]);
    }

    #[test]
    fn findings_beyond_the_limit_are_counted() {
        let findings: Findings =
            (0..Findings::LIMIT + 7).map(|number| Finding::new(&NAME_MISSING, number.to_string())).collect();
        assert_eq!((findings.len(), findings.more()), (Findings::LIMIT, 7));
    }

    #[test]
    fn findings_are_sorted_by_place_then_severity() {
        let at = |line| Finding::new(&NAME_MISSING, "").at(Place::Line(line));
        let mut findings: Findings = [at(3), at(1).with_severity(Severity::Advice), at(1)].into_iter().collect();
        findings.push(Finding::new(&NAME_MISSING, "whole"));
        findings.sort();
        let order: Vec<_> = findings.iter().map(|finding| (finding.place.line(), finding.severity)).collect();
        assert_eq!(
            order,
            [
                (Some(1), Severity::Error),
                (Some(1), Severity::Advice),
                (Some(3), Severity::Error),
                (None, Severity::Error)
            ]
        );
    }
}
