//! What the manifest says around the tools: filters, authorities, exporting.

use std::collections::BTreeMap;

use sinew_tool::finding::{Finding, Findings};

use crate::apk::{AndroidManifest, Component, ComponentKind};
use crate::offer::finding::{ComponentFinding, error, warning};
use crate::offer::{OfferKind, ProtocolNames, offer_kind};
use crate::rules;

/// Since this level an exported component with a filter must say so, or the app is not installed.
const MUST_SAY_EXPORTED: u32 = 31;
/// Since this level an intent reaches a component by name only if it fits one of its filters.
const MUST_FIT: u32 = 33;
const VIEW: &str = "android.intent.action.VIEW";
const DEFAULT: &str = "android.intent.category.DEFAULT";

pub fn check(manifest: &AndroidManifest, names: &ProtocolNames, findings: &mut Findings) {
    for component in &manifest.components {
        let mut tell = |finding: Finding| findings.push(finding.in_component(component));
        let Some(kind) = offer_kind(component, names) else {
            near_miss(component, names, &mut tell);
            continue;
        };
        if component.exported.is_none() && manifest.is_exported(component) {
            said_nothing(manifest, component, &mut tell);
        }
        match kind {
            OfferKind::Activity => activity(manifest, component, names, &mut tell),
            OfferKind::Broadcast if !component.has_action(&names.invoke) => {
                let message = format!("the receiver {} hears the discovery but not {}", component.name, names.invoke);
                tell(error(&rules::CALL_ACTION, message));
            }
            OfferKind::Provider => {
                let fits = component.filters.iter().any(|filter| {
                    filter.mime_types.contains(&names.provider_type) && filter.actions.iter().any(|one| one == VIEW)
                });
                if !fits {
                    let message = format!(
                        "the filter with {} lacks the action {VIEW}, so other hosts do not find the provider",
                        names.provider_type
                    );
                    tell(error(&rules::FILTER, message));
                }
                authority(manifest, component, &mut tell);
            }
            OfferKind::ProviderMany => authority(manifest, component, &mut tell),
            OfferKind::Broadcast | OfferKind::Service | OfferKind::AppFunction => {}
        }
    }
    repeated_authorities(manifest, findings);
}

fn said_nothing(manifest: &AndroidManifest, component: &Component, tell: &mut dyn FnMut(Finding)) {
    let (kind, name) = (component.kind.word(), &component.name);
    let target = manifest.target_sdk;
    tell(if target >= MUST_SAY_EXPORTED {
        let message = format!(
            "the {kind} {name} has a filter but no android:exported; an app for API {target} is not installed like that"
        );
        error(&rules::EXPORTED_UNSAID, message)
    } else {
        let message =
            format!("the {kind} {name} is exported only because it has a filter; set android:exported=\"true\"");
        warning(&rules::EXPORTED_UNSAID, message)
    });
}

fn activity(manifest: &AndroidManifest, component: &Component, names: &ProtocolNames, tell: &mut dyn FnMut(Finding)) {
    let call = &names.call;
    if !component.has_action(call) {
        let message = format!(
            "no filter of {} has the action {call}, so calls that do not name the component do not arrive",
            component.name
        );
        tell(if manifest.target_sdk >= MUST_FIT {
            let target = manifest.target_sdk;
            error(&rules::CALL_ACTION, format!("{message}, and in an app for API {target} not even those that do"))
        } else {
            warning(&rules::CALL_ACTION, message)
        });
    }
    for filter in &component.filters {
        let ours = filter.actions.iter().any(|action| action == call || *action == names.advertise);
        if ours && !filter.categories.iter().any(|category| category == DEFAULT) {
            let message =
                format!("the filter lacks the category {DEFAULT}, without which intents do not find an activity");
            tell(warning(&rules::CATEGORY, message).on_line(filter.line));
        }
    }
}

fn authority(manifest: &AndroidManifest, component: &Component, tell: &mut dyn FnMut(Finding)) {
    for authority in &component.authorities {
        let inside =
            authority.strip_prefix(&manifest.package).is_some_and(|rest| rest.starts_with('.') || rest.is_empty());
        // `${applicationId}` is filled in by the build.
        if !inside && !authority.starts_with("${applicationId}") {
            let message = format!(
                "the authority {authority} does not begin with the package {}; another app may have it, and two apps with one authority cannot be installed together",
                manifest.package
            );
            tell(warning(&rules::AUTHORITY, message));
        }
    }
}

fn repeated_authorities(manifest: &AndroidManifest, findings: &mut Findings) {
    let mut owners: BTreeMap<&str, &Component> = BTreeMap::new();
    for component in &manifest.components {
        for authority in &component.authorities {
            if let Some(first) = owners.insert(authority, component)
                && first.name != component.name
            {
                let message = format!(
                    "the authority {authority} belongs to {} already; Android gives it to one provider",
                    first.name
                );
                findings.push(error(&rules::AUTHORITY_REPEATED, message).in_component(component));
            }
        }
    }
}

/// Components that look as if they were meant to offer tools.
fn near_miss(component: &Component, names: &ProtocolNames, tell: &mut dyn FnMut(Finding)) {
    let name = &component.name;
    if component.meta(&names.manifest).is_some() {
        let message =
            format!("{name} has meta-data `{}` but no filter with the action {}", names.manifest, names.advertise);
        return tell(error(&rules::FILTER, message));
    }
    for filter in &component.filters {
        if let Some(mime) = filter.mime_types.iter().find(|mime| mime.to_ascii_lowercase().contains("mcp")) {
            let message = match component.kind {
                ComponentKind::Provider => {
                    format!("the MIME type {mime} is not {}, by which tools are found", names.provider_type)
                }
                kind => format!(
                    "{name} has the MIME type {mime}, but it is a {}; tools of that type are found at providers",
                    kind.word()
                ),
            };
            return tell(error(&rules::FILTER, message).on_line(filter.line));
        }
        if let Some(action) = filter.actions.iter().find(|action| resembles(action)) {
            let known = [
                &names.advertise,
                &names.call,
                &names.discovery,
                &names.invoke,
                &names.provider_action,
                &names.service,
            ];
            let message = match known.into_iter().find(|known| *known == action) {
                Some(_) => format!("{name} has the action {action}, which says nothing at a {}", component.kind.word()),
                None => {
                    format!("{name} has the action {action}, which nobody asks for; see whether it is spelled right")
                }
            };
            return tell(warning(&rules::FILTER, message).on_line(filter.line));
        }
    }
    let meant = |text: &str| text.to_ascii_lowercase().contains("mcp");
    let last = name.rsplit('.').next().unwrap_or_default();
    if component.kind == ComponentKind::Provider && (meant(last) || component.authorities.iter().any(|one| meant(one)))
    {
        let message = format!(
            "the provider {name} has no filter with the MIME type {}, by which tools are found",
            names.provider_type
        );
        tell(error(&rules::FILTER, message));
    }
}

fn resembles(action: &str) -> bool {
    let action = action.to_ascii_lowercase();
    ["mmcp", "mcp_provider", "mobile.mcp", "tool_advertise", "tool_call"].iter().any(|part| action.contains(part))
}
