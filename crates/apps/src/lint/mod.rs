//! Advice for app authors: what keeps tools from being found or called, and what makes them better.
//!
//! [`crate::rules`] is the list, one row a requirement. What keeps a tool from being offered is found by
//! [`crate::offer::offers`]; `manifest` adds what Android or other hosts stumble over, `tools` judges names,
//! descriptions and schemas, `code` what the app's code can name at all.

mod code;
mod manifest;
mod tools;

pub use code::code_words;

use sinew_tool::finding::Findings;

use crate::apk::AndroidManifest;
use crate::offer::{AppOffer, ProtocolNames};

/// Judges an app: what [`crate::offer::offers`] found, and what its author could do better. `code` holds
/// those of [`code_words`] that stand in the app's code; `None` where the code is not at hand.
pub fn lint(manifest: &AndroidManifest, offer: &AppOffer, names: &ProtocolNames, code: Option<&[&str]>) -> Findings {
    let mut findings: Findings = offer.findings.iter().cloned().collect();
    manifest::check(manifest, names, &mut findings);
    tools::check(manifest, offer, &mut findings);
    code::check(manifest, names, code, &mut findings);
    findings.sort();
    findings
}
