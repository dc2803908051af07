//! Checks of the manifest: filters, authorities, exported components.

use std::collections::BTreeMap;

use sinew_tool::finding::{Finding, Findings};

use crate::apk::{AndroidManifest, Component, ComponentKind};
use crate::offer::finding::{ComponentFinding, error, warning};
use crate::offer::{OfferKind, ProtocolNames, offer_kind};
use crate::rules;

/// Since this API level Android installs no app with a filter and without `android:exported`.
const EXPORTED_REQUIRED: u32 = 31;
/// Since this API level an explicit intent reaches a component only if it matches one of its filters.
const MATCH_REQUIRED: u32 = 33;
const VIEW: &str = "android.intent.action.VIEW";
const DEFAULT: &str = "android.intent.category.DEFAULT";

pub(super) fn check(manifest: &AndroidManifest, names: &ProtocolNames, findings: &mut Findings) {
    for component in &manifest.components {
        let mut tell = |finding: Finding| findings.push(finding.in_component(component));
        let Some(kind) = offer_kind(component, names) else {
            probable_mistake(component, names, &mut tell);
            continue;
        };
        if component.exported.is_none() && manifest.is_exported(component) {
            exported_missing(manifest, component, &mut tell);
        }
        match kind {
            OfferKind::Activity => activity(manifest, component, names, &mut tell),
            OfferKind::Broadcast if !component.has_action(&names.invoke) => {
                let message = format!("the receiver {} handles the discovery but not {}", component.name, names.invoke);
                tell(error(&rules::CALL_ACTION, message));
            }
            OfferKind::Provider => {
                let fits = component.filters.iter().any(|filter| {
                    filter.mime_types.contains(&names.provider_type) && filter.actions.iter().any(|one| one == VIEW)
                });
                if !fits {
                    let message = format!(
                        "the filter with {} does not have the action {VIEW}, so other hosts do not find the provider",
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

fn exported_missing(manifest: &AndroidManifest, component: &Component, tell: &mut dyn FnMut(Finding)) {
    let (kind, name) = (component.kind.as_str(), &component.name);
    let target = manifest.target_sdk;
    tell(if target >= EXPORTED_REQUIRED {
        let message = format!(
            "the {kind} {name} has a filter but no android:exported; Android does not install such an app for API {target}"
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
            "no filter of {} has the action {call}, so calls without the component's name do not reach it",
            component.name
        );
        tell(if manifest.target_sdk >= MATCH_REQUIRED {
            let target = manifest.target_sdk;
            error(&rules::CALL_ACTION, format!("{message}, nor do calls with its name in an app for API {target}"))
        } else {
            warning(&rules::CALL_ACTION, message)
        });
    }
    for filter in &component.filters {
        let ours = filter.actions.iter().any(|action| action == call || *action == names.advertise);
        if ours && !filter.categories.iter().any(|category| category == DEFAULT) {
            let message =
                format!("the filter does not have the category {DEFAULT}, so intents do not find the activity");
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
                "the authority {authority} does not start with the package {}; if another app has it, Android does not install yours",
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
                    "the authority {authority} is already used by {}; Android gives it to one provider only",
                    first.name
                );
                findings.push(error(&rules::AUTHORITY_REPEATED, message).in_component(component));
            }
        }
    }
}

/// Reports components that look as if they were meant to offer tools.
fn probable_mistake(component: &Component, names: &ProtocolNames, tell: &mut dyn FnMut(Finding)) {
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
                    format!("the MIME type {mime} is not {}, which hosts look for", names.provider_type)
                }
                kind => format!(
                    "{name} has the MIME type {mime}, but it is a {}; hosts look for that type in providers",
                    kind.as_str()
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
                Some(_) => {
                    format!("{name} has the action {action}, which has no meaning in a {}", component.kind.as_str())
                }
                None => {
                    format!("{name} has the action {action}, which no host looks for; check its spelling")
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
            "the provider {name} has no filter with the MIME type {}, which hosts look for",
            names.provider_type
        );
        tell(error(&rules::FILTER, message));
    }
}

fn resembles(action: &str) -> bool {
    let action = action.to_ascii_lowercase();
    ["mmcp", "mcp_provider", "mobile.mcp", "tool_advertise", "tool_call"].iter().any(|part| action.contains(part))
}
