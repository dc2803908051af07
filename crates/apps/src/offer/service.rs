//! Services that describe their capabilities in an XML file of the app.

use serde_json::{Map, Value, json};
use sinew_tool::{ProtocolVersion, Tool};

use super::finding::{ComponentFinding, advice, error, warning};
use super::provider::json_type;
use super::{AppOffer, AppTool, OfferKind, ProtocolNames};
use crate::apk::{self, Component, XmlElement};
use crate::rules;
use sinew_tool::finding::Finding;

const CAPABILITIES: &str = "mobile.mcp.tool.capabilities";
const DESCRIPTION: &str = "mobile.mcp.tool.description";

pub(super) fn capabilities(component: &Component, names: &ProtocolNames, offer: &mut AppOffer) {
    let at = |finding: Finding| finding.in_component(component);
    let Some(meta) = component.meta(CAPABILITIES) else {
        let message = format!("{} offers {} but has no meta-data `{CAPABILITIES}`", component.name, names.service);
        return offer.findings.push(at(error(&rules::MANIFEST_MISSING, message)));
    };
    let Some(file) = &meta.file else {
        let finding = match &meta.resource {
            Some(apk::XmlValue::Named(name)) => {
                let message = format!("`{CAPABILITIES}` refers to @{name}; inspect the built APK to see the tools");
                advice(&rules::MANIFEST_ELSEWHERE, message)
            }
            _ => error(
                &rules::MANIFEST_MISSING,
                format!("`{CAPABILITIES}` names no XML file of the app in android:resource"),
            ),
        };
        return offer.findings.push(at(finding.on_line(meta.line)));
    };
    match attribute(file, "version").map(|version| version.parse::<ProtocolVersion>()) {
        None => {
            let message = "the capability file has no `version`; 1.0 is assumed";
            offer.findings.push(at(warning(&rules::PROTOCOL_VERSION, message)));
        }
        Some(Ok(version)) if version.is_compatible() => {}
        Some(Ok(version)) => {
            let message = format!(
                "the capability file has version {version}; this gateway supports 1.x, so its tools are not offered"
            );
            return offer.findings.push(at(error(&rules::PROTOCOL_VERSION, message)));
        }
        Some(Err(what)) => return offer.findings.push(at(error(&rules::PROTOCOL_VERSION, what))),
    }
    if offer.instructions.is_none() {
        offer.instructions = component.meta(DESCRIPTION).and_then(|meta| meta.value.as_ref()?.to_text());
    }
    for capability in file.children_named("capability") {
        let Some(id) = attribute(capability, "id").filter(|id| !id.is_empty()) else {
            offer.findings.push(at(error(&rules::TOOL_SHAPE, "a capability without `id` is not offered")));
            continue;
        };
        let schema = |part: &str| capability.children_named(part).next().map(parameters);
        let description = attribute(capability, "description").unwrap_or_default();
        let mut tool = Tool::new(id, description, schema("input").unwrap_or_else(|| json!({"type": "object"})));
        if let Some(output) = schema("output") {
            tool = tool.with_output_schema(output);
        }
        offer.add(AppTool {
            tool,
            kind: OfferKind::Service,
            component: component.name.clone(),
            authority: None,
            action: Some(names.service.clone()),
            function: None,
        });
    }
}

fn attribute(element: &XmlElement, name: &str) -> Option<String> {
    element.plain(name).or_else(|| element.android(name)).and_then(apk::XmlValue::to_text)
}

fn parameters(part: &XmlElement) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in part.children_named("param") {
        let Some(name) = attribute(parameter, "name") else { continue };
        let mut property = json!({"type": json_type(&attribute(parameter, "type").unwrap_or_default())});
        if let Some(description) = attribute(parameter, "description") {
            property["description"] = json!(description);
        }
        if attribute(parameter, "required").as_deref() == Some("true") {
            required.push(name.clone());
        }
        properties.insert(name, property);
    }
    match required.is_empty() {
        true => json!({"type": "object", "properties": properties}),
        false => json!({"type": "object", "properties": properties, "required": required}),
    }
}
