//! Checks for app authors: what keeps tools from being found or called, and what makes them better.
//!
//! [`crate::rules`] lists the rules. [`crate::offer::offers`] finds what keeps a tool from being offered;
//! `manifest` adds what Android or other hosts refuse, `tools` checks names, descriptions and schemas, and `code`
//! the strings in the app's code.

mod code;
mod manifest;
mod tools;

pub use code::code_words;

use sinew_tool::finding::Findings;

use crate::apk::AndroidManifest;
use crate::offer::{AppOffer, ProtocolNames};

/// Checks an app: the findings of [`crate::offer::offers`], and what its author could improve. `code` has those of
/// [`code_words`] that the app's code contains; `None` if the code is not available.
pub fn lint(manifest: &AndroidManifest, offer: &AppOffer, names: &ProtocolNames, code: Option<&[&str]>) -> Findings {
    let mut findings: Findings = offer.findings.iter().cloned().collect();
    manifest::check(manifest, names, &mut findings);
    tools::check(manifest, offer, &mut findings);
    code::check(manifest, names, code, &mut findings);
    findings.sort();
    findings
}
