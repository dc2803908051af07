//! From rules to a decision.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};
use sinew_tool::{Audience, Effect};

use crate::hours::LocalTime;
use crate::problem::{PolicyProblem, Severity};
use crate::selection::{Selected, select};
use crate::selector::{CallerFacts, DeviceFacts, ToolFacts};
use crate::settings::{AskSettings, PolicyRule, PolicySettings, Verdict};

/// A policy that was checked and can be used.
#[derive(Clone, Debug)]
pub struct Policy {
    settings: Arc<PolicySettings>,
}

/// What a caller is to the policy: the rules that can concern it. Callers of equal rights see equal lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    rules: Arc<[u32]>,
    admin: bool,
    /// Of the rules: plans are looked up by rights for every call, and there may be a thousand rules.
    hash: u64,
}

impl Hash for Rights {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// What the policy says about a caller, a device and a tool, as far as it does not depend on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rules whose selectors match.
    rules: Box<[PlannedRule]>,
    /// Whether one of these rules depends on arguments or the time.
    conditional: bool,
    fallback: (Verdict, Reason),
    /// Denied, whatever the rules say.
    refused: bool,
}

/// A rule that is about the device and the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRule {
    pub(crate) index: u32,
    may_allow: bool,
}

impl PlannedRule {
    /// What the rule says. Where the device came into it by its own word, it allows nothing.
    pub(crate) fn verdict(self, rule: &PolicyRule, holds: bool) -> Option<Verdict> {
        let verdict = if holds { rule.r#do } else { rule.r#else };
        verdict.filter(|verdict| self.may_allow || *verdict != Verdict::Allow)
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<'a> {
    pub verdict: Verdict,
    pub reason: Reason,
    /// How to ask, where the verdict is to ask.
    pub ask: AskSettings,
    /// The rules that say to ask.
    pub asked_by: Vec<&'a PolicyRule>,
    /// The rules that limit this call.
    pub limits: Vec<&'a PolicyRule>,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The rule with this id.
    Rule(String),
    ReadOnlyMode,
    /// The default for tools with this effect.
    Default(Effect),
    /// The default for tools meant for people only.
    DefaultForUserTools,
    /// The default for tools of which nobody said what they do, on a device that is approved or not.
    DefaultUnmarked {
        approved: bool,
    },
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::of(PolicySettings::default())
    }
}

impl Policy {
    /// Fails with all errors. Warnings do not stop it; [`PolicySettings::check`] has them.
    pub fn new(settings: PolicySettings) -> Result<Policy, Vec<PolicyProblem>> {
        let mut problems = settings.check();
        problems.retain(|problem| problem.severity == Severity::Error);
        if problems.is_empty() { Ok(Policy::of(settings)) } else { Err(problems) }
    }

    fn of(settings: PolicySettings) -> Policy {
        Policy { settings: Arc::new(settings) }
    }

    pub fn settings(&self) -> &PolicySettings {
        &self.settings
    }

    /// The rules of a plan, in the order of the file.
    pub(crate) fn rules_of<'a, 'p>(
        &'a self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (PlannedRule, &'a PolicyRule)> + use<'a, 'p> {
        plan.rules.iter().filter_map(|planned| Some((*planned, self.rule(planned.index)?)))
    }

    fn rule(&self, index: u32) -> Option<&PolicyRule> {
        self.settings.rules.get(index as usize)
    }

    pub fn rights_of(&self, caller: &CallerFacts<'_>) -> Rights {
        let concerned = |(_, rule): &(u32, &PolicyRule)| rule.who.matches(|who| who.matches(caller));
        let rules: Arc<[u32]> = (0..).zip(&self.settings.rules).filter(concerned).map(|(index, _)| index).collect();
        let mut hasher = DefaultHasher::new();
        (&rules, caller.admin).hash(&mut hasher);
        Rights { rules, admin: caller.admin, hash: hasher.finish() }
    }

    pub fn plan(&self, rights: &Rights, device: &DeviceFacts<'_>, tool: &ToolFacts<'_>) -> Plan {
        let planned = |index: &u32| {
            let rule = self.rule(*index)?;
            let Selected { may_allow } = select((&rule.on, &rule.tools), device, tool)?;
            Some(PlannedRule { index: *index, may_allow })
        };
        let rules: Box<[PlannedRule]> = rights.rules.iter().filter_map(planned).collect();
        let depends = |planned: &PlannedRule| {
            self.rule(planned.index).is_some_and(|rule| !rule.is_unconditional() || rule.limits())
        };
        let conditional = rules.iter().any(depends);
        let refused = self.settings.read_only && tool.effect != Some(Effect::Read);
        Plan { rules, conditional, fallback: self.fallback(device, tool), refused }
    }

    fn fallback(&self, device: &DeviceFacts<'_>, tool: &ToolFacts<'_>) -> (Verdict, Reason) {
        let settings = &self.settings;
        if tool.audience == Audience::User {
            return (settings.danger, Reason::DefaultForUserTools);
        }
        let Some(effect) = tool.effect else {
            let approved = device.approved;
            return (settings.unmarked.verdict(approved), Reason::DefaultUnmarked { approved });
        };
        let verdict = match effect {
            Effect::Read => settings.default,
            Effect::Change => settings.changes,
            Effect::Danger => settings.danger,
        };
        (verdict, Reason::Default(effect))
    }

    pub fn decide<'a>(&'a self, plan: &Plan, args: &Map<String, Value>, now: LocalTime) -> Decision<'a> {
        let mut decision = Decision {
            verdict: plan.fallback.0,
            reason: plan.fallback.1.clone(),
            ask: AskSettings::default(),
            asked_by: Vec::new(),
            limits: Vec::new(),
        };
        if plan.refused {
            return Decision { verdict: Verdict::Deny, reason: Reason::ReadOnlyMode, ..decision };
        }
        let mut strictest: Option<(Verdict, &PolicyRule)> = None;
        for (planned, rule) in self.rules_of(plan) {
            let holds = rule.holds(args, now);
            if holds && rule.limits() {
                decision.limits.push(rule);
            }
            let Some(verdict) = planned.verdict(rule, holds) else { continue };
            if verdict == Verdict::Ask {
                decision.asked_by.push(rule);
                decision.ask = stricter(strictest.is_some_and(|(v, _)| v == Verdict::Ask), &decision.ask, &rule.ask);
            }
            if strictest.is_none_or(|(other, _)| verdict > other) {
                strictest = Some((verdict, rule));
            }
        }
        if let Some((verdict, rule)) = strictest {
            decision.verdict = verdict;
            decision.reason = Reason::Rule(rule.id.clone());
        }
        decision
    }

    /// Whether every tool that the device could have is hidden.
    pub fn hides_device(&self, rights: &Rights, device: &DeviceFacts<'_>) -> bool {
        let rules = rights.rules.iter().filter_map(|index| self.rule(*index));
        let mut hiding = rules.filter(|rule| {
            rule.r#do == Some(Verdict::Deny)
                && rule.is_unconditional()
                && rule.tools.is_everything()
                && rule.on.matches(|selector| selector.match_of(device).is_some())
        });
        hiding.next().is_some()
    }

    /// Whether every call would be denied, whatever its arguments and the time. Such a tool is not listed.
    pub fn hides(&self, plan: &Plan) -> bool {
        if plan.refused {
            return true;
        }
        let always_denies = |(_, rule): (PlannedRule, &PolicyRule)| {
            rule.r#do == Some(Verdict::Deny) && (rule.is_unconditional() || rule.r#else == Some(Verdict::Deny))
        };
        if self.rules_of(plan).any(always_denies) {
            return true;
        }
        let gives_more = |(planned, rule): (PlannedRule, &PolicyRule)| {
            [true, false].iter().any(|holds| planned.verdict(rule, *holds).is_some_and(|said| said != Verdict::Deny))
        };
        plan.fallback.0 == Verdict::Deny && !self.rules_of(plan).any(gives_more)
    }
}

impl Plan {
    /// Whether every call gets the same decision, and none is limited.
    pub fn is_constant(&self) -> bool {
        !self.conditional
    }

    pub(crate) fn fallback_verdict(&self) -> (Verdict, &Reason) {
        (self.fallback.0, &self.fallback.1)
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }
}

impl Rights {
    pub fn is_admin(&self) -> bool {
        self.admin
    }
}

impl PolicyRule {
    pub(crate) fn holds(&self, args: &Map<String, Value>, now: LocalTime) -> bool {
        self.hours.as_ref().is_none_or(|hours| hours.contain(now)) && self.r#if.iter().all(|test| test.holds(args))
    }
}

/// Of two rules that ask, a person beats the client, and the shorter times hold.
fn stricter(another_asked: bool, one: &AskSettings, other: &AskSettings) -> AskSettings {
    if !another_asked {
        return other.clone();
    }
    AskSettings { by: one.by.max(other.by), wait: one.wait.min(other.wait), keep: one.keep.min(other.keep) }
}

impl Reason {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Reason::Rule(id) => format!("rule `{id}`"),
            Reason::ReadOnlyMode => "`read-only = true` in [policy]".to_owned(),
            Reason::Default(Effect::Read) => "the default for tools that read".to_owned(),
            Reason::Default(Effect::Change) => "the default for tools that change something".to_owned(),
            Reason::Default(Effect::Danger) => "the default for dangerous tools".to_owned(),
            Reason::DefaultForUserTools => "the default for tools meant for people only".to_owned(),
            Reason::DefaultUnmarked { approved: true } => {
                "the default for unmarked tools on approved devices".to_owned()
            }
            Reason::DefaultUnmarked { approved: false } => {
                "the default for unmarked tools on devices that nobody approved".to_owned()
            }
        }
    }
}
