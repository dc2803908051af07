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

/// The findings of one document. Findings beyond the limit are counted, not kept, the least severe first: a hostile
/// document would otherwise have millions, or hide its errors behind a thousand pieces of advice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// By severity, like the next.
    kept: [usize; Severity::ALL.len()],
    unkept: [usize; Severity::ALL.len()],
}

impl Findings {
    /// More findings of one document would not be read.
    pub const LIMIT: usize = 1000;

    pub fn push(&mut self, finding: Finding) {
        if self.list.len() >= Findings::LIMIT {
            let lesser = Severity::ALL.into_iter().find(|severity| self.kept[*severity as usize] > 0);
            let Some(lesser) = lesser.filter(|lesser| *lesser < finding.severity) else {
                self.unkept[finding.severity as usize] += 1;
                return;
            };
            if let Some(index) = self.list.iter().rposition(|kept| kept.severity == lesser) {
                self.list.remove(index);
                self.kept[lesser as usize] -= 1;
                self.unkept[lesser as usize] += 1;
            }
        }
        self.kept[finding.severity as usize] += 1;
        self.list.push(finding);
    }

    /// How many findings of a severity there are, kept or not.
    pub fn count(&self, severity: Severity) -> usize {
        self.kept[severity as usize] + self.unkept[severity as usize]
    }

    /// How many findings were not kept.
    pub fn more(&self) -> usize {
        self.unkept.iter().sum()
    }

    /// Sorts by place; at one place the most severe come first.
    pub fn sort(&mut self) {
        self.list.sort_by(|one, two| one.order().cmp(&two.order()));
    }

    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.list.retain(keep);
        self.kept = Severity::ALL.map(|severity| self.list.iter().filter(|kept| kept.severity == severity).count());
    }

    /// Forgets all findings that are less severe.
    pub fn drop_below(&mut self, least: Severity) {
        self.retain(|finding| finding.severity >= least);
        self.unkept[..least as usize].fill(0);
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
    fn no_number_of_lesser_findings_hides_an_error() {
        let of = |severity| Finding::new(&NAME_MISSING, "").with_severity(severity);
        let advice = std::iter::repeat_n(of(Severity::Advice), Findings::LIMIT + 1);
        let mut findings: Findings = advice.chain([of(Severity::Warning), of(Severity::Error)]).collect();
        findings.extend(std::iter::repeat_n(of(Severity::Warning), Findings::LIMIT));
        assert_eq!(Severity::ALL.map(|severity| findings.count(severity)), [1001, 1001, 1]);
        assert_eq!((findings.len(), findings.more()), (Findings::LIMIT, 1003));
        assert_eq!(findings.iter().filter(|finding| finding.severity == Severity::Error).count(), 1);
        findings.drop_below(Severity::Warning);
        assert_eq!((findings.len(), findings.more()), (Findings::LIMIT, 2));
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
