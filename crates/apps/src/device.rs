//! An app on a phone as a device of the gateway.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{
    Admission, Attributes, BoxFuture, Call, Caller, Device, DeviceId, DeviceInfo, DeviceKey, ErrorKind, Family,
    FamilyName, Outcome, Reach, Status, TextTrust, ToolError, Toolset,
};

use crate::app_function::AppFunctionSupport;
use crate::invoke::{NO_SERVICE, invoke};
use crate::offer::finding::error;
use crate::offer::{AppOffer, AppTool, OfferKind};
use crate::packages::InstalledPackage;
use crate::rules;
use sinew_phones::PhoneAccess;
use sinew_tool::finding::{Finding, Severity};

/// A call ends this much before the gateway's own timeout, so that the reason arrives.
const MARGIN: Duration = Duration::from_millis(300);

/// An app on a connected phone.
pub struct AppDevice {
    access: Arc<dyn PhoneAccess>,
    package: String,
    /// Activities take the phone's screen one after the other.
    screen: Arc<tokio::sync::Mutex<()>>,
    state: RwLock<OfferState>,
}

struct OfferState {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
    by_name: BTreeMap<String, Arc<AppTool>>,
    support: AppFunctionSupport,
}

impl AppDevice {
    pub fn new(
        access: Arc<dyn PhoneAccess>,
        screen: Arc<tokio::sync::Mutex<()>>,
        installed: &InstalledPackage,
        offer: AppOffer,
        support: AppFunctionSupport,
    ) -> AppDevice {
        let state = OfferState::new(access.about().stable_id(), installed, offer, support);
        AppDevice { access, package: installed.package.clone(), screen, state: RwLock::new(state) }
    }

    /// Replaces what the app offers; returns whether it changed.
    pub fn update(&self, installed: &InstalledPackage, offer: AppOffer, support: AppFunctionSupport) -> bool {
        let next = OfferState::new(self.access.about().stable_id(), installed, offer, support);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let has_changed = state.info != next.info || state.tools.digest() != next.tools.digest();
        *state = next;
        has_changed
    }

    /// Removes all tools, because the app was removed from the phone.
    pub fn clear(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let status = Status::Limited {
            state: "removed".to_owned(),
            remedy: format!("install {} on the phone again", self.package),
        };
        state.info = Arc::new(DeviceInfo { status, instructions: None, ..(*state.info).clone() });
        state.tools = Arc::default();
        state.by_name.clear();
    }

    fn find(&self, name: &str) -> Option<(Arc<AppTool>, AppFunctionSupport)> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Some((state.by_name.get(name)?.clone(), state.support))
    }
}

impl OfferState {
    fn new(serial: &str, installed: &InstalledPackage, mut offer: AppOffer, support: AppFunctionSupport) -> OfferState {
        withhold(installed, &mut offer);
        let by_name: BTreeMap<String, Arc<AppTool>> =
            offer.tools.iter().map(|tool| (tool.tool.name.clone(), Arc::new(tool.clone()))).collect();
        let tools = Toolset::new(offer.tools.iter().map(|tool| tool.tool.clone()));
        let info = info(serial, installed, &offer);
        OfferState { info: Arc::new(info), tools: Arc::new(tools), by_name, support }
    }
}

/// Removes what must not or cannot be offered, with a finding that says why.
fn withhold(installed: &InstalledPackage, offer: &mut AppOffer) {
    if offer.package != installed.package {
        let named: String = offer.package.chars().take(80).collect();
        let message = format!(
            "the package name in the APK is `{named}`, but the phone lists it as `{}`; none of its tools are offered",
            installed.package
        );
        offer.tools.clear();
        offer.instructions = None;
        offer.findings.insert(0, error(&rules::PACKAGE_DIFFERS, message));
    }
    let services = offer.tools.iter().filter(|tool| tool.kind == OfferKind::Service).count();
    if services > 0 {
        offer.tools.retain(|tool| tool.kind != OfferKind::Service);
        offer.findings.push(error(&rules::NOT_CALLABLE, format!("{services} tools are not offered: {NO_SERVICE}")));
    }
}

/// Anybody can write an app, so its text is quoted. Several gateways may reach it, as they may reach its phone.
const FAMILY: Family = Family::new(FamilyName::of("app"), TextTrust::Quoted, Reach::SeveralGateways);

fn info(serial: &str, installed: &InstalledPackage, offer: &AppOffer) -> DeviceInfo {
    let worst = offer.findings.iter().max_by_key(|finding| finding.severity);
    let status = match (offer.tools.is_empty(), worst) {
        (false, _) => Status::Ready,
        (true, finding) => Status::Limited {
            state: finding.map_or("no tools", state_of).to_owned(),
            remedy: finding.map_or_else(|| "the app lists no tools".to_owned(), |finding| finding.message.clone()),
        },
    };
    let mut components: Vec<String> = offer.tools.iter().map(|tool| tool.component.clone()).collect();
    components.extend(offer.queries.iter().map(|ask| ask.component.clone()));
    components.retain(|name| !name.is_empty());
    components.sort();
    components.dedup();
    let mut forms: Vec<&str> = offer.tools.iter().map(|tool| tool.kind.as_str()).collect();
    forms.sort_unstable();
    forms.dedup();
    let findings: Vec<String> =
        offer.findings.iter().map(|finding| format!("{}: {}", finding.severity.word(), finding.message)).collect();
    let mut attributes = Attributes::new();
    attributes.insert("phone", json!(serial));
    attributes.insert("when_away", json!("connect its phone, and look whether the app is installed"));
    attributes.insert("package", json!(installed.package));
    attributes.insert("version_code", json!(installed.version_code));
    let lists = [("components", json!(components)), ("forms", json!(forms)), ("findings", json!(findings))];
    let is_filled = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
    attributes
        .extend(lists.into_iter().filter(|(_, value)| is_filled(value)).map(|(key, value)| (key.to_owned(), value)));
    if let Some(certificate) = &offer.certificate {
        attributes.insert("certificate", json!(certificate));
    }
    DeviceInfo {
        key: DeviceKey(format!("app:{serial}:{}", installed.package)),
        suggested_id: suggested_id(&installed.package),
        family: FAMILY,
        admission: Admission::Local,
        name: installed.package.clone(),
        version: offer.version_name.clone(),
        status,
        instructions: offer.instructions.clone(),
        labels: Vec::new(),
        attributes,
    }
}

/// The state of an app without tools, for tables.
fn state_of(finding: &Finding) -> &'static str {
    match finding.rule {
        rule if *rule == rules::PROTOCOL_VERSION => "incompatible",
        rule if *rule == rules::PACKAGE_DIFFERS => "refused",
        rule if rules::QUERY_FAILED.contains(&rule) => "failing",
        _ if finding.severity == Severity::Error => "unusable",
        _ => "no tools",
    }
}

/// `com.example.pdf` becomes `example-pdf`: without the first part, and as many of the last parts as fit.
fn suggested_id(package: &str) -> String {
    let parts: Vec<&str> = package.split('.').collect();
    let fitting = (1..parts.len()).map(|from| parts[from..].join("-")).find(|name| name.len() <= DeviceId::MAX_LENGTH);
    let slug = DeviceId::slug(&fitting.unwrap_or_else(|| parts.last().copied().unwrap_or_default().to_owned()));
    if slug.is_empty() { "app".to_owned() } else { slug }
}

impl AppDevice {
    async fn turn_of(&self, caller: &dyn Caller) -> tokio::sync::MutexGuard<'_, ()> {
        if let Ok(free) = self.screen.try_lock() {
            return free;
        }
        caller.turn_awaited();
        let turn = self.screen.lock().await;
        caller.turn_came();
        turn
    }
}

impl Device for AppDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let Some((tool, support)) = self.find(&call.tool) else {
                let message = format!("{} no longer has the tool `{}`; list the tools again", self.package, call.tool);
                return Err(ToolError::new(ErrorKind::UnknownTool, message));
            };
            let _screen = match tool.kind {
                OfferKind::Activity => Some(self.turn_of(&*call.caller).await),
                _ => None,
            };
            let limit = call.budget.saturating_sub(MARGIN);
            invoke(&*self.access, &self.package, &tool, support, &call.args, limit).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_the_end_of_a_package_name() {
        for (package, id) in [
            ("com.example.pdf", "example-pdf"),
            ("se.premex.mcp.weather.provider.sample", "weather-provider-sample"),
            ("single", "single"),
            ("a.averyveryverylongnameindeedwithnoend", "averyveryverylongnameind"),
            ("a._", "app"),
        ] {
            assert_eq!(suggested_id(package), id, "{package}");
        }
    }
}
