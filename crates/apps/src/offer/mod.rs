//! The tools that an app offers to models, through any of the supported protocols.
//!
//! [`read`] reads an APK and [`offers`] evaluates its manifest, without access to a phone. Tools that only the
//! running app can list are in [`AppOffer::queries`]; the answers are read by [`provider_tools`],
//! [`broadcast_tools`] and [`app_functions`]. Whatever is not offered has a [`Finding`] that says why.

mod broadcast;
mod bundle;
pub mod finding;
mod functions;
mod mmcp;
mod provider;
mod service;

use sinew_tool::Tool;

pub use broadcast::{ReceiverTools, broadcast_tools};
pub use bundle::{bundle_text, texts};
pub use functions::{PackageFunctions, app_functions};
pub use provider::{ProviderTools, provider_tools};

use sinew_tool::finding::Finding;

use crate::apk::{self, AndroidManifest, ApkError, Component, ComponentKind, ReadAt};
use crate::rules;
use finding::{ComponentFinding, error, warning};

/// No app needs more, and no model could choose among more.
pub const MAX_TOOLS: usize = 128;

/// The protocol by which an app offers tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OfferKind {
    /// mMCP: an activity whose meta-data hold the tools.
    Activity,
    /// The later version of mMCP: a receiver of ordered broadcasts that lists its tools when queried.
    Broadcast,
    /// A content provider with one tool.
    Provider,
    /// A content provider with many tools.
    ProviderMany,
    /// A service whose capabilities are in an XML file.
    Service,
    /// Android's own AppFunctions, since Android 16.
    AppFunction,
}

impl OfferKind {
    pub fn as_str(self) -> &'static str {
        match self {
            OfferKind::Activity => "activity",
            OfferKind::Broadcast => "broadcast",
            OfferKind::Provider => "provider",
            OfferKind::ProviderMany => "provider-many",
            OfferKind::Service => "service",
            OfferKind::AppFunction => "app-function",
        }
    }
}

/// The names by which apps are recognised. Settings can change them, because some of the protocols are young.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolNames {
    /// Action of activities that advertise tools.
    pub advertise: String,
    /// Action of the intent that calls such a tool.
    pub call: String,
    /// Name of the meta-data that holds the tools.
    pub manifest: String,
    /// Action of the broadcast that asks for tools.
    pub discovery: String,
    /// Action of the broadcast that calls one.
    pub invoke: String,
    /// MIME type in the filter of providers with one tool.
    pub provider_type: String,
    /// Action in the filter of providers with many tools.
    pub provider_action: String,
    /// Action of services with a capability file.
    pub service: String,
    /// Action of services with Android's app functions.
    pub functions: String,
}

impl Default for ProtocolNames {
    fn default() -> ProtocolNames {
        ProtocolNames {
            advertise: "com.example.mMCP.ACTION_TOOL_ADVERTISE".to_owned(),
            call: "com.example.mMCP.ACTION_TOOL_CALL".to_owned(),
            manifest: "mMCP_manifest".to_owned(),
            discovery: "com.example.ACTION_MMCP_DISCOVERY".to_owned(),
            invoke: "com.example.ACTION_MMCP_INVOKE".to_owned(),
            provider_type: "application/vnd.mcp.tool".to_owned(),
            provider_action: "se.premex.mcp.MCP_PROVIDER".to_owned(),
            service: "mobile.mcp.SERVICE".to_owned(),
            functions: "android.app.appfunctions.AppFunctionService".to_owned(),
        }
    }
}

/// What one app offers.
#[derive(Clone, Debug, PartialEq)]
pub struct AppOffer {
    pub package: String,
    pub version_name: String,
    pub version_code: u64,
    /// SHA-256 of the signing certificate, in hexadecimal.
    pub certificate: Option<String>,
    /// The app's description of itself, unchecked.
    pub instructions: Option<String>,
    pub tools: Vec<AppTool>,
    pub queries: Vec<ToolQuery>,
    pub findings: Vec<Finding>,
}

/// A tool and how to call it.
#[derive(Clone, Debug, PartialEq)]
pub struct AppTool {
    pub tool: Tool,
    pub kind: OfferKind,
    /// The full name of the component's class; empty for app functions, which Android finds.
    pub component: String,
    /// Of a provider.
    pub authority: Option<String>,
    /// Action of the intent that makes the call.
    pub action: Option<String>,
    /// Android's id of an app function.
    pub function: Option<String>,
}

/// A component that must be queried for its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolQuery {
    /// A provider may turn out to be of the other provider kind.
    pub kind: OfferKind,
    pub component: String,
    pub authority: Option<String>,
    /// Action of the broadcast that makes the query.
    pub action: Option<String>,
}

/// Reads an APK's manifest and what it offers, fetching only the ranges of the file that are needed.
pub async fn read(source: &dyn ReadAt, names: &ProtocolNames) -> Result<(AndroidManifest, AppOffer), ApkError> {
    let wanted = |component: &Component| offer_kind(component, names).is_some();
    let manifest = apk::read_manifest(source, &wanted).await?;
    let offer = offers(&manifest, names);
    Ok((manifest, offer))
}

/// The protocol by which a component offers tools, according to its filters.
pub fn offer_kind(component: &Component, names: &ProtocolNames) -> Option<OfferKind> {
    let is_typed = || component.filters.iter().any(|filter| filter.mime_types.contains(&names.provider_type));
    match component.kind {
        ComponentKind::Activity if component.has_action(&names.advertise) => Some(OfferKind::Activity),
        ComponentKind::Receiver if component.has_action(&names.discovery) => Some(OfferKind::Broadcast),
        ComponentKind::Provider if is_typed() => Some(OfferKind::Provider),
        ComponentKind::Provider if component.has_action(&names.provider_action) => Some(OfferKind::ProviderMany),
        ComponentKind::Service if component.has_action(&names.service) => Some(OfferKind::Service),
        ComponentKind::Service if component.has_action(&names.functions) => Some(OfferKind::AppFunction),
        _ => None,
    }
}

/// What the manifest offers.
pub fn offers(manifest: &AndroidManifest, names: &ProtocolNames) -> AppOffer {
    let mut offer = AppOffer {
        package: manifest.package.clone(),
        version_name: manifest.version_name.clone(),
        version_code: manifest.version_code,
        certificate: manifest.certificate_sha256.clone(),
        instructions: None,
        tools: Vec::new(),
        queries: Vec::new(),
        findings: Vec::new(),
    };
    for component in &manifest.components {
        let Some(kind) = offer_kind(component, names) else { continue };
        if let Some(obstacle) = obstacle(manifest, component) {
            offer.findings.push(obstacle);
            continue;
        }
        if let Some(permission) = &component.permission
            && kind != OfferKind::AppFunction
        {
            let message = format!(
                "callers of {} need {permission}, which the gateway does not hold; calls will be refused",
                component.name
            );
            offer.findings.push(warning(&rules::PERMISSION, message).in_component(component));
        }
        match kind {
            OfferKind::Activity => mmcp::activity(component, names, &mut offer),
            OfferKind::Service => service::capabilities(component, names, &mut offer),
            OfferKind::Provider | OfferKind::ProviderMany => provider::query(component, kind, &mut offer),
            OfferKind::Broadcast => {
                let action = Some(names.discovery.clone());
                offer.queries.push(ToolQuery { kind, component: component.name.clone(), authority: None, action });
            }
            OfferKind::AppFunction => {
                offer.queries.push(ToolQuery {
                    kind,
                    component: component.name.clone(),
                    authority: None,
                    action: None,
                });
            }
        }
    }
    offer
}

/// Why nobody can reach the component.
fn obstacle(manifest: &AndroidManifest, component: &Component) -> Option<Finding> {
    if !component.enabled {
        let message = format!("{} is disabled, so its tools are not offered", component.name);
        return Some(warning(&rules::DISABLED, message).in_component(component));
    }
    if !manifest.is_exported(component) {
        let (kind, name) = (component.kind.as_str(), &component.name);
        let message =
            format!("the {kind} {name} is not exported, so nobody can reach its tools; set android:exported=\"true\"");
        return Some(error(&rules::NOT_EXPORTED, message).in_component(component));
    }
    None
}

impl AppOffer {
    /// Adds a tool, unless the app already has one of that name or too many.
    pub fn add(&mut self, tool: AppTool) {
        let name = &tool.tool.name;
        if self.tools.len() >= MAX_TOOLS {
            if !self.findings.iter().any(|finding| *finding.rule == rules::TOO_MANY) {
                let message = format!("the app offers more than {MAX_TOOLS} tools; the rest are not offered");
                self.findings.push(warning(&rules::TOO_MANY, message));
            }
        } else if self.tools.iter().any(|other| other.tool.name == *name) {
            let message =
                format!("the app has a second tool named `{name}` in {}; only the first is offered", tool.component);
            self.findings.push(warning(&rules::NAME_REPEATED, message).of_tool(name));
        } else {
            self.tools.push(tool);
        }
    }
}
