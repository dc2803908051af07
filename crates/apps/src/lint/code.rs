//! Checks of the app's code: whether it contains the strings of its protocol, and whether it checks its caller.

use sinew_tool::finding::{Finding, Findings};

use crate::apk::{AndroidManifest, Component};
use crate::offer::finding::{ComponentFinding, advice, error, warning};
use crate::offer::{OfferKind, ProtocolNames, offer_kind};
use crate::rules;

const PROTOCOL: &[&str] =
    &["get_tool_info", "execute_tool", "error_message", "tool_arguments", "tool_name", "parameters", "result"];
/// The Android methods by which an app learns who calls it.
const CALLER: &[&str] = &[
    "getCallingPackage",
    "getCallingUid",
    "getCallingActivity",
    "getLaunchedFromUid",
    "checkCallingPermission",
    "checkCallingOrSelfPermission",
    "enforceCallingPermission",
    "enforceCallingOrSelfPermission",
    "getSentFromUid",
];

/// The strings that are searched for in the code.
pub fn code_words() -> Vec<&'static str> {
    [PROTOCOL, CALLER].concat()
}

pub(super) fn check(manifest: &AndroidManifest, names: &ProtocolNames, code: Option<&[&str]>, findings: &mut Findings) {
    let offering = |component: &&Component| offer_kind(component, names).is_some() && manifest.is_exported(component);
    for component in manifest.components.iter().filter(offering) {
        let Some(kind) = offer_kind(component, names) else { continue };
        let mut tell = |finding: Finding| findings.push(finding.in_component(component));
        if component.permission.is_none() {
            caller(component, kind, code, &mut tell);
        }
        let Some(code) = code else { continue };
        let lacks = |word: &&&str| !code.contains(*word);
        let needed: &[&str] = match kind {
            OfferKind::Provider | OfferKind::ProviderMany => &["get_tool_info", "execute_tool", "tool_arguments"],
            OfferKind::Activity => &["tool_name", "parameters", "result"],
            OfferKind::Broadcast | OfferKind::Service | OfferKind::AppFunction => &[],
        };
        if let Some(word) = needed.iter().find(lacks) {
            let message = format!(
                "the app's code does not contain the string `{word}`, so {} cannot follow the protocol",
                component.name
            );
            tell(error(&rules::PROTOCOL_WORDS, message));
        } else if matches!(kind, OfferKind::Provider | OfferKind::ProviderMany) && !code.contains(&"error_message") {
            let message = format!(
                "the app's code does not contain the string `error_message`, so {} cannot say why a tool failed",
                component.name
            );
            tell(warning(&rules::ERROR_MESSAGE, message));
        }
    }
}

fn caller(component: &Component, kind: OfferKind, code: Option<&[&str]>, tell: &mut dyn FnMut(Finding)) {
    if kind == OfferKind::AppFunction {
        return;
    }
    let name = &component.name;
    match code {
        None => {
            let message = format!("any app on the phone can call {name}; make sure that its code checks the caller");
            tell(advice(&rules::CALLER_CHECK, message));
        }
        Some(code) if !CALLER.iter().any(|word| code.contains(word)) => {
            let message = format!("any app on the phone can call {name}, and the app's code never checks its caller");
            tell(warning(&rules::CALLER_CHECK, message));
        }
        Some(_) => {}
    }
}
