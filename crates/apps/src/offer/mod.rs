//! What an app offers to models, in whichever form it does, as one kind of tool with its origin.
//!
//! [`read`] reads an APK and [`offers`] judges its manifest; nothing is asked of a phone. Tools that
//! only the running app can name stand among the [`AppOffer::queries`]: what it answers is read by
//! [`provider_tools`], [`broadcast_tools`] and [`app_functions`]. Nothing is dropped in silence:
//! what is not offered has a [`Finding`] that says why.

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

/// More tools than this no app has use for, and no model could choose from.
pub const MAX_TOOLS: usize = 128;

/// How an app offers tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OfferKind {
    /// mMCP: an activity whose meta-data hold the tools.
    Activity,
    /// mMCP as it was shipped later: a receiver of ordered broadcasts that tells its tools when asked.
    Broadcast,
    /// A content provider with one tool.
    Provider,
    /// A content provider with many tools.
    ProviderMany,
    /// A service whose capabilities stand in an XML file.
    Service,
    /// Android's own, since Android 16.
    AppFunction,
}

impl OfferKind {
    pub fn word(self) -> &'static str {
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

/// The names by which apps are recognised. Some of the protocols are young and may still move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolNames {
    /// Action of activities that advertise tools.
    pub advertise: String,
    /// Action of the intent that calls such a tool.
    pub call: String,
    /// Name of the meta-data that holds the tools.
    pub manifest: String,
    /// Action of the broadcast that queries for tools.
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
    /// What the app says of itself, as it stands; nobody vouches for it.
    pub instructions: Option<String>,
    pub tools: Vec<AppTool>,
    pub queries: Vec<ToolQuery>,
    pub findings: Vec<Finding>,
}

/// A tool and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct AppTool {
    pub tool: Tool,
    pub kind: OfferKind,
    /// The whole name of the component's class; empty for app functions, which Android finds.
    pub component: String,
    /// Of a provider.
    pub authority: Option<String>,
    /// What the call's intent is sent with.
    pub action: Option<String>,
    /// Android's id of an app function.
    pub function: Option<String>,
}

/// A component whose tools are known only by asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolQuery {
    /// A provider may turn out to be of the other form.
    pub kind: OfferKind,
    pub component: String,
    pub authority: Option<String>,
    /// What the asking broadcast is sent with.
    pub action: Option<String>,
}

/// Reads an APK and what it offers. Of the file, only the ranges needed for that are read.
pub async fn read(source: &dyn ReadAt, names: &ProtocolNames) -> Result<(AndroidManifest, AppOffer), ApkError> {
    let wanted = |component: &Component| offer_kind(component, names).is_some();
    let manifest = apk::read_manifest(source, &wanted).await?;
    let offer = offers(&manifest, names);
    Ok((manifest, offer))
}

/// The form in which a component offers tools, by its filters.
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
            OfferKind::Provider | OfferKind::ProviderMany => provider::ask(component, kind, &mut offer),
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

/// What keeps everybody from the component.
fn obstacle(manifest: &AndroidManifest, component: &Component) -> Option<Finding> {
    if !component.enabled {
        let message = format!("{} is disabled, so its tools are not offered", component.name);
        return Some(warning(&rules::DISABLED, message).in_component(component));
    }
    if !manifest.is_exported(component) {
        let (kind, name) = (component.kind.word(), &component.name);
        let message =
            format!("the {kind} {name} is not exported, so nobody can reach its tools; set android:exported=\"true\"");
        return Some(error(&rules::NOT_EXPORTED, message).in_component(component));
    }
    None
}

impl AppOffer {
    /// Adds a tool, unless the app has one of that name or too many already.
    pub fn add(&mut self, tool: AppTool) {
        let name = &tool.tool.name;
        if self.tools.len() >= MAX_TOOLS {
            if !self.findings.iter().any(|finding| *finding.rule == rules::TOO_MANY) {
                let message = format!("the app offers more than {MAX_TOOLS} tools; the others are left out");
                self.findings.push(warning(&rules::TOO_MANY, message));
            }
        } else if self.tools.iter().any(|other| other.tool.name == *name) {
            let message =
                format!("the app has a second tool named `{name}` in {}; the first one is offered", tool.component);
            self.findings.push(warning(&rules::NAME_REPEATED, message).of_tool(name));
        } else {
            self.tools.push(tool);
        }
    }
}
