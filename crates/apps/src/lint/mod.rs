//! Advice for app authors: what keeps tools from being found or called, and what makes them better.
//!
//! [`RULES`] is the list, one row a requirement. What keeps a tool from being offered is found by
//! [`offer::offers`]; `manifest` adds what Android or other hosts stumble over, `tools` judges names,
//! descriptions and schemas, `code` what the app's code can name at all.

mod code;
mod manifest;
mod rules;
mod tools;

pub use code::code_words;
pub use rules::{RULES, Rule, rule, rules_page};

use super::offer::{self, Finding, Offer, Words};
use crate::apk::Manifest;

/// More findings than this nobody reads.
const MAX_FINDINGS: usize = 500;

/// Judges an app: what [`offer::offers`] found, and what its author could do better. `code` holds
/// those of [`code_words`] that stand in the app's code; `None` where the code is not at hand.
pub fn lint(manifest: &Manifest, offer: &Offer, words: &Words, code: Option<&[&str]>) -> Vec<Finding> {
    let mut findings = offer.findings.clone();
    manifest::check(manifest, words, &mut findings);
    tools::check(manifest, offer, &mut findings);
    code::check(manifest, words, code, &mut findings);
    findings.sort_by_key(|finding| (finding.line.unwrap_or(u32::MAX), std::cmp::Reverse(finding.severity)));
    findings.truncate(MAX_FINDINGS);
    findings
}
