//! Who may do what: the policy in force, what each caller sees of the devices, and the approvals that calls wait for.

mod agree;
mod approvals;
mod authorize;
mod explain;
mod grants;
mod lens;
mod parts;
mod secrets;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::json;
use sinew_policy::{
    ApprovalsBy, CallerFacts, CallerKind, DeviceFacts, EffectRule, EffectSource, Limiter, LocalTime, Plan, Policy,
    PolicyProblem, PolicySettings, RedactionRule, Rights, Severity, ToolFacts, ToolOrigin, Verdict, check_effects,
    check_redactions, effect_of, hinted_effect,
};
use sinew_tool::settings::Setting;
use sinew_tool::{Admission, Args, DeviceId, Digest, Effect, TextTrust};
use tokio::time::Instant;

use crate::builtin;
use crate::principal::{Principal, Role};
use crate::redaction;
use crate::snapshot::{DeviceEntry, Holder, Snapshot};

pub use approvals::{ApprovalDecision, ApprovalRequest};
pub(crate) use approvals::{Asking, CallApprovals, CallIdentity, not_waiting};
pub(crate) use authorize::{Agreement, ProposedCall};
pub use explain::{CallExplanation, EffectFilter, ToolEffect};
pub(crate) use grants::Decider;
pub use grants::{ApprovalGrant, GrantReach};
pub(crate) use lens::{Lens, LensKey};
pub(crate) use secrets::CallSecrets;

/// Plans and callers that are remembered. Beyond this they are forgotten together and made again when needed.
const MAX_PLANS: usize = 50_000;
const MAX_CALLERS: usize = 4_096;

/// What the configuration says about access.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessSettings {
    pub policy: PolicySettings,
    pub effects: Vec<EffectRule>,
    /// Arguments that are not kept.
    pub redactions: Vec<RedactionRule>,
    /// Every device counts as approved: for a demo whose devices are all our own.
    pub approve_all: bool,
}

impl AccessSettings {
    /// Everything that stops this from being used; warnings too.
    pub fn check(&self) -> Vec<PolicyProblem> {
        let mut problems = self.policy.check();
        problems.extend(check_effects(&self.effects));
        problems.extend(check_redactions(&self.redactions));
        problems.extend(self.rules_about_built_in_tools());
        if let Some(name) = &self.policy.timezone
            && zone(Some(name)).is_none()
        {
            let message = format!("`{name}` is not a time zone of this machine; expected for example `Europe/Berlin`");
            problems.push(PolicyProblem { severity: Severity::Error, key: "policy.timezone".to_owned(), message });
        }
        problems
    }

    fn version(&self) -> Arc<str> {
        let effects: Vec<_> = self.effects.iter().map(Setting::to_value).collect();
        let redactions: Vec<_> = self.redactions.iter().map(Setting::to_value).collect();
        let all = json!([self.policy.to_value(), effects, redactions, self.approve_all]);
        Digest::of(&all).short(16).into()
    }

    /// Rules that name tools of the gateway itself, which every caller may call: each sees only its own devices in them.
    fn rules_about_built_in_tools(&self) -> impl Iterator<Item = PolicyProblem> {
        self.policy.rules.iter().enumerate().filter_map(|(index, rule)| {
            let names = rule.tools.selectors().iter().map(ToString::to_string);
            let name = names.into_iter().find(|name| builtin::NAMES.contains(&name.as_str()))?;
            let message = format!(
                "the rule `{}` does not hold for the gateway's own tool `{name}`, which shows each caller what it may see",
                rule.id
            );
            Some(PolicyProblem { severity: Severity::Warning, key: format!("policy.rules.{index}.tools"), message })
        })
    }
}

/// The part of the gateway that decides about calls.
pub(crate) struct Access {
    in_force: ArcSwap<PolicyInForce>,
    limiter: Limiter,
    pub(crate) approvals: CallApprovals,
    opened: Instant,
    decisions: [AtomicU64; Verdict::ALL.len()],
}

/// A policy, and what was worked out from it so far.
pub(crate) struct PolicyInForce {
    /// Changes with everything that the configuration says about access.
    version: Arc<str>,
    policy: Policy,
    effects: Vec<EffectRule>,
    redactions: Vec<RedactionRule>,
    approve_all: bool,
    zone: jiff::tz::TimeZone,
    /// Whether any tool can be hidden from anybody.
    can_hide: bool,
    has_hours: bool,
    rights: Mutex<HashMap<(CallerKind, String, bool), Arc<Rights>>>,
    plans: Mutex<PlanCache>,
}

/// Plans, and the devices as they were when the plans were made.
type PlanCache = HashMap<PlanKey, (Weak<DeviceEntry>, Arc<Plan>)>;

#[derive(PartialEq, Eq, Hash)]
struct PlanKey {
    rights: Arc<Rights>,
    device: DeviceId,
    tool: Arc<str>,
}

impl Access {
    pub(crate) fn new(settings: AccessSettings, approvals: CallApprovals) -> Result<Access, Vec<PolicyProblem>> {
        let in_force = PolicyInForce::new(settings)?;
        if in_force.needs_passphrase() {
            approvals.keep_those_of_people();
        }
        Ok(Access {
            in_force: ArcSwap::from_pointee(in_force),
            limiter: Limiter::default(),
            approvals,
            opened: Instant::now(),
            decisions: Default::default(),
        })
    }

    /// How often the policy decided how, since the gateway started.
    pub(crate) fn decisions(&self) -> [(Verdict, u64); Verdict::ALL.len()] {
        Verdict::ALL.map(|verdict| (verdict, self.decisions[verdict as usize].load(Ordering::Relaxed)))
    }

    /// Replaces the policy; the old one stays where the new one has errors.
    pub(crate) fn replace(&self, settings: AccessSettings) -> Result<(), Vec<PolicyProblem>> {
        let in_force = Arc::new(PolicyInForce::new(settings)?);
        self.in_force.store(in_force.clone());
        self.approvals.forget_other_policies(in_force.version());
        if in_force.needs_passphrase() {
            self.approvals.keep_those_of_people();
        }
        Ok(())
    }

    pub(crate) fn in_force(&self) -> Arc<PolicyInForce> {
        self.in_force.load_full()
    }

    /// What the caller sees. `sees_user_tools`: also tools that are meant for people only.
    pub(crate) fn lens(&self, snapshot: Arc<Snapshot>, who: &Principal, sees_user_tools: bool) -> Lens {
        let in_force = self.in_force();
        let rights = in_force.rights_of(who);
        Lens::new(snapshot, in_force, rights, sees_user_tools)
    }

    /// The time since this gateway opened; it never goes back.
    fn running_time(&self) -> Duration {
        self.opened.elapsed()
    }
}

impl PolicyInForce {
    fn new(settings: AccessSettings) -> Result<PolicyInForce, Vec<PolicyProblem>> {
        let mut problems = settings.check();
        problems.retain(|problem| problem.severity == Severity::Error);
        if !problems.is_empty() {
            return Err(problems);
        }
        let zone = zone(settings.policy.timezone.as_deref()).unwrap_or(jiff::tz::TimeZone::UTC);
        let version = settings.version();
        let policy = Policy::new(settings.policy)?;
        let rules = &policy.settings().rules;
        let denies = [Some(Verdict::Deny)];
        let defaults = [policy.settings().default, policy.settings().changes, policy.settings().danger];
        let can_hide = policy.settings().read_only
            || defaults.contains(&Verdict::Deny)
            || policy.settings().unmarked.verdict(false) == Verdict::Deny
            || rules.iter().any(|rule| denies.contains(&rule.r#do) || denies.contains(&rule.r#else));
        let has_hours = rules.iter().any(|rule| rule.hours.is_some());
        Ok(PolicyInForce {
            version,
            effects: settings.effects,
            redactions: settings.redactions,
            approve_all: settings.approve_all,
            zone,
            can_hide,
            has_hours,
            policy,
            rights: Mutex::default(),
            plans: Mutex::default(),
        })
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether this administrator may agree to calls: by default each, with `approvals = "passphrase"` only people who
    /// showed theirs. A program that runs under somebody's user has the tokens in the state directory, but no passphrase.
    pub(crate) fn takes_decision_of(&self, who: &Principal) -> bool {
        let has_shown = !self.needs_passphrase() || who.kind == CallerKind::Person;
        has_shown && who.role == Role::Admin
    }

    pub(crate) fn needs_passphrase(&self) -> bool {
        self.policy.settings().approvals == ApprovalsBy::Passphrase
    }

    /// Approvals are bound to it.
    pub(crate) fn version(&self) -> &Arc<str> {
        &self.version
    }

    pub(crate) fn rights_of(&self, who: &Principal) -> Arc<Rights> {
        let admin = who.role == Role::Admin;
        let mut known = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (who.kind, who.name.clone(), admin);
        if let Some(rights) = known.get(&key) {
            return rights.clone();
        }
        let rights = Arc::new(self.policy.rights_of(&CallerFacts { kind: who.kind, name: who.policy_name(), admin }));
        if known.len() >= MAX_CALLERS {
            known.clear();
        }
        known.insert(key, rights.clone());
        rights
    }

    pub(crate) fn plan(&self, rights: &Arc<Rights>, holder: Holder<'_>) -> Arc<Plan> {
        let (entry, offered) = (holder.entry, holder.offered);
        let key = PlanKey { rights: rights.clone(), device: entry.id.clone(), tool: offered.public.clone() };
        let is_current = |of: &Weak<DeviceEntry>| std::ptr::eq(of.as_ptr(), Arc::as_ptr(entry));
        let known = |plans: &PlanCache| plans.get(&key).filter(|(of, _)| is_current(of)).map(|(_, plan)| plan.clone());
        if let Some(plan) = known(&self.plans.lock().unwrap_or_else(PoisonError::into_inner)) {
            return plan;
        }
        let plan = Arc::new(self.make_plan(rights, holder));
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        // The weak pointer keeps the address from being used again, so that equal addresses are equal entries.
        plans.insert(key, (Arc::downgrade(entry), plan.clone()));
        plan
    }

    /// Whether every tool that the device could have is hidden.
    pub(crate) fn hides_device(&self, rights: &Rights, entry: &DeviceEntry) -> bool {
        let labels: Vec<&str> = entry.labels.iter().map(|label| label.as_str()).collect();
        let kind = entry.kind();
        self.policy.hides_device(rights, &self.device_facts(entry, &kind, &labels))
    }

    fn make_plan(&self, rights: &Rights, holder: Holder<'_>) -> Plan {
        self.with_facts(holder, |device, tool| self.policy.plan(rights, device, tool))
    }

    /// What the rules select by.
    fn with_facts<T>(&self, holder: Holder<'_>, use_facts: impl FnOnce(&DeviceFacts<'_>, &ToolFacts<'_>) -> T) -> T {
        let labels: Vec<&str> = holder.entry.labels.iter().map(|label| label.as_str()).collect();
        let kind = holder.entry.kind();
        let device = self.device_facts(holder.entry, &kind, &labels);
        use_facts(&device, &self.tool_facts(holder))
    }

    fn tool_facts<'a>(&self, holder: Holder<'a>) -> ToolFacts<'a> {
        let tool = &holder.offered.tool;
        ToolFacts {
            name: &tool.name,
            public_name: &holder.offered.public,
            effect: self.effect_of(holder).map(|(effect, _)| effect),
            hints: tool.hints,
            audience: tool.audience,
        }
    }

    /// The arguments of a call without what schema and rules mark in them; `None` where they mark nothing.
    fn redact_marked(&self, holder: Holder<'_>, args: &Args) -> Option<Args> {
        let schema = holder.offered.secrets.as_deref();
        let rules: Vec<&RedactionRule> = match self.redactions.is_empty() {
            true => Vec::new(),
            false => self.with_facts(holder, |device, tool| {
                self.redactions.iter().filter(|rule| rule.matches(device, tool)).collect()
            }),
        };
        let known = &holder.offered.tool.input_schema;
        (schema.is_some() || !rules.is_empty()).then(|| {
            let mut args = args.clone();
            // In the folded form, it may still be among the arguments of a step.
            let selector = args.shift_remove(&holder.offered.selector);
            let mut shown = redaction::redact(schema, &rules, known, &args);
            shown.extend(selector.map(|device| (holder.offered.selector.clone(), device)));
            shown
        })
    }

    /// Whether some arguments of the tool are secret.
    fn has_secrets(&self, holder: Holder<'_>) -> bool {
        let is_named =
            || self.with_facts(holder, |device, tool| self.redactions.iter().any(|rule| rule.matches(device, tool)));
        holder.offered.secrets.is_some() || (!self.redactions.is_empty() && is_named())
    }

    fn device_facts<'a>(&self, entry: &'a DeviceEntry, kind: &'a str, labels: &'a [&'a str]) -> DeviceFacts<'a> {
        DeviceFacts {
            id: entry.id.as_str(),
            name: entry.name.as_deref(),
            kind,
            family: entry.info.family.name.as_str(),
            labels,
            approved: self.is_approved(entry),
        }
    }

    /// Whether a person approved the device: by a token, a code, a pin, the configuration, or by attaching it. Text that
    /// anybody may have written comes from devices that nobody chose, such as the apps on a phone.
    pub(crate) fn is_approved(&self, entry: &DeviceEntry) -> bool {
        let is_chosen = match entry.info.admission {
            Admission::OwnToken | Admission::DeviceToken(_) | Admission::Person(_) | Admission::Configured => true,
            Admission::Local | Admission::Broker(_) => entry.info.family.text_trust == TextTrust::Attributed,
        };
        self.approve_all || entry.pinned || is_chosen
    }

    /// What calling the tool can do, and who says so.
    pub(crate) fn effect_of(&self, holder: Holder<'_>) -> Option<(Effect, EffectSource)> {
        let labels: Vec<&str> = holder.entry.labels.iter().map(|label| label.as_str()).collect();
        let kind = holder.entry.kind();
        let origin = ToolOrigin {
            device: self.device_facts(holder.entry, &kind, &labels),
            public_name: &holder.offered.public,
            pinned: holder.entry.pinned,
            // A pinned tool is offered as it was agreed, or stricter.
            agreed: holder.entry.pinned.then(|| hinted_effect(&holder.offered.tool.hints)).flatten(),
        };
        effect_of(&self.effects, &holder.offered.tool, &origin)
    }

    /// The time of the week where the policy's hours are meant. Only asked for where a rule has hours.
    pub(crate) fn local_time(&self) -> LocalTime {
        if !self.has_hours {
            return LocalTime { weekday: 0, minute: 0 };
        }
        let now = jiff::Timestamp::now().to_zoned(self.zone.clone());
        let minute = u16::try_from(now.hour()).unwrap_or(0) * 60 + u16::try_from(now.minute()).unwrap_or(0);
        LocalTime { weekday: u8::try_from(now.weekday().to_monday_zero_offset()).unwrap_or(0), minute }
    }
}

fn zone(name: Option<&str>) -> Option<jiff::tz::TimeZone> {
    match name {
        Some(name) => jiff::tz::TimeZone::get(name).ok(),
        None => Some(jiff::tz::TimeZone::system()),
    }
}
