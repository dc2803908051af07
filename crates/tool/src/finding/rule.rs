//! Rules as data, and the pages that explain them.

use std::fmt::Write as _;

use super::Severity;

/// One requirement. Declared by [`rules!`](crate::rules).
#[derive(Debug)]
pub struct Rule {
    pub id: &'static str,
    /// The default; configuration or a finding may change it.
    pub severity: Severity,
    /// Whether some of its findings come with an edit.
    pub fixable: bool,
    /// The requirement, as a sentence that is true of a good document.
    pub title: &'static str,
    pub why: &'static str,
    pub bad: &'static str,
    pub good: &'static str,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

impl Rule {
    /// The section of the reference page that explains the rule, as Markdown.
    pub fn explain(&self) -> String {
        let fixed = if self.fixable { ", fixed by `--fix` where that is safe" } else { "" };
        format!(
            "## `{}`\n\n**{}.** ({}{fixed})\n\n{}\n\nBad:\n\n{}\n\nGood:\n\n{}\n",
            self.id,
            self.title,
            self.severity.word(),
            self.why,
            quoted(self.bad),
            quoted(self.good)
        )
    }

    /// The same without marks.
    pub fn explain_plainly(&self) -> String {
        format!("{}. {}\n\nBad:\n\n{}\n\nGood:\n\n{}\n", self.title, self.why, self.bad, self.good)
    }
}

/// A block that no fence inside it can end.
fn quoted(text: &str) -> String {
    format!("````text\n{text}\n````")
}

/// A set of rules and its name in reports.
#[derive(Clone, Copy, Debug)]
pub struct Linter {
    /// The command, as reports name it: `sinew spec`.
    pub name: &'static str,
    /// The reference page of its rules, relative to the project: `docs/spec-rules.md`.
    pub page: &'static str,
    pub rules: &'static [&'static Rule],
}

impl Linter {
    pub fn rule(&self, id: &str) -> Option<&'static Rule> {
        self.rules.iter().copied().find(|rule| rule.id == id)
    }

    /// The table of all rules and their explanations, for a reference page.
    pub fn reference(&self) -> String {
        let fixes = self.rules.iter().any(|rule| rule.fixable);
        let (head, line) = if fixes { (" Fixed by `--fix` |", " :--- |") } else { ("", "") };
        let mut page = format!("| Rule | Severity |{head} Requirement |\n| :--- | :--- |{line} :--- |\n");
        for rule in self.rules {
            let fixed = match (fixes, rule.fixable) {
                (true, true) => " yes |",
                (true, false) => " |",
                (false, _) => "",
            };
            let _ = writeln!(page, "| [`{0}`](#{0}) | {1} |{fixed} {2} |", rule.id, rule.severity.word(), rule.title);
        }
        for rule in self.rules {
            page.push('\n');
            page.push_str(&rule.explain());
        }
        page
    }
}

/// Declares rules, one row each. A row `NAME_MISSING { … }` becomes a constant of that name whose id
/// is `name-missing`, and all of them become a list in their order.
///
/// ```
/// sinew_tool::rules! {
///     /// Every rule for greetings.
///     pub static RULES = [
///         NAME_MISSING {
///             severity: Error, fixable: false,
///             title: "A greeting has a name",
///             why: "Nobody knows who is meant.",
///             bad: "Hello!",
///             good: "Hello, Ada!",
///         }
///     ];
/// }
/// let finding = sinew_tool::finding::Finding::new(&NAME_MISSING, "nobody is greeted");
/// assert_eq!(finding.rule.id, "name-missing");
/// ```
///
/// A rule that was not declared does not compile:
///
/// ```compile_fail
/// sinew_tool::rules! { static RULES = []; }
/// let finding = sinew_tool::finding::Finding::new(&NAME_MISSPELT, "nobody is greeted");
/// ```
#[macro_export]
macro_rules! rules {
    (
        $(#[$about:meta])*
        $visibility:vis static $list:ident = [$($rule:ident {
            severity: $severity:ident, fixable: $fixable:literal,
            title: $title:expr,
            why: $why:expr,
            bad: $bad:expr,
            good: $good:expr $(,)?
        })*];
    ) => {
        $(
            $visibility static $rule: $crate::finding::Rule = $crate::finding::Rule {
                id: {
                    const ID: [u8; stringify!($rule).len()] = $crate::finding::kebab(stringify!($rule));
                    match ::core::str::from_utf8(&ID) {
                        Ok(id) => id,
                        Err(_) => stringify!($rule),
                    }
                },
                severity: $crate::finding::Severity::$severity,
                fixable: $fixable,
                title: $title,
                why: $why,
                bad: $bad,
                good: $good,
            };
        )*
        $(#[$about])*
        $visibility static $list: &[&$crate::finding::Rule] = &[$(&$rule),*];
    };
}

/// `NAME_MISSING` as `name-missing`, at compile time. For [`rules!`](crate::rules).
pub const fn kebab<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let bytes = name.as_bytes();
    let mut id = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        id[at] = if bytes[at] == b'_' { b'-' } else { bytes[at].to_ascii_lowercase() };
        at += 1;
    }
    id
}
