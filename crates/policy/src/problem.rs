//! What is wrong with a policy, found before it is used.

use std::collections::HashSet;

use sinew_tool::Effect;

use crate::effect::EffectRule;
use crate::pointer::check_pointer;
use crate::redaction::RedactionRule;
use crate::selector::{CallerKind, DeviceFacts, DeviceSelector, Glob, ToolFacts, ToolSelector, WhoSelector};
use crate::settings::{PolicyRule, PolicySettings, Verdict};

/// More rules than anybody reads.
pub(crate) const MAX_RULES: usize = 10_000;
const MAX_ID: usize = 64;

/// Something wrong with a rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    pub severity: Severity,
    /// The key in the configuration, for example `policy.rules.3.if.0`.
    pub key: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The policy cannot be used.
    Error,
    /// It can, but probably does not do what was meant.
    Warning,
}

impl PolicySettings {
    /// Everything that can be said without knowing the devices.
    pub fn check(&self) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        if self.rules.len() > MAX_RULES {
            problems.push(error("policy.rules".to_owned(), format!("has more than {MAX_RULES} rules")));
            return problems;
        }
        let mut ids = HashSet::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let key = format!("policy.rules.{index}");
            check_rule(rule, &key, &mut problems);
            if !rule.id.is_empty() && !ids.insert(&rule.id) {
                problems.push(error(key, format!("two rules have the id `{}`; give each its own", rule.id)));
            }
        }
        self.find_useless(&mut problems);
        self.find_future_callers(&mut problems);
        problems
    }

    /// Callers of a kind that nobody can be yet.
    fn find_future_callers(&self, problems: &mut Vec<PolicyProblem>) {
        for (index, rule) in self.rules.iter().enumerate() {
            let is_future = |who: &&WhoSelector| match who {
                WhoSelector::Caller(kind, _) => {
                    !matches!(kind, CallerKind::Token | CallerKind::Person | CallerKind::Relay | CallerKind::Hook)
                }
                WhoSelector::Admin | WhoSelector::Client => false,
            };
            if let Some(who) = rule.who.selectors().iter().find(is_future) {
                let message = format!(
                    "`{who}` is no caller: this version knows only `token:`, `person:`, `relay:`, `hook:` and `role:`"
                );
                problems.push(warning(format!("policy.rules.{index}.who"), message));
            }
        }
    }

    /// Rules that another rule always overrules.
    fn find_useless(&self, problems: &mut Vec<PolicyProblem>) {
        let always = |rule: &&PolicyRule, verdict: Verdict| {
            rule.r#do == Some(verdict) && (rule.is_unconditional() || rule.r#else == Some(verdict))
        };
        let denials: Vec<&PolicyRule> = self.rules.iter().filter(|rule| always(rule, Verdict::Deny)).collect();
        let questions: Vec<&PolicyRule> = self.rules.iter().filter(|rule| always(rule, Verdict::Ask)).collect();
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.r#do.is_some()) {
            let id = &rule.id;
            let stronger = |rules: &[&PolicyRule]| {
                rules.iter().find(|other| other.id != *id && covers(other, rule)).map(|other| other.id.clone())
            };
            let only_allows = [rule.r#do, rule.r#else].iter().flatten().all(|verdict| *verdict == Verdict::Allow);
            let message = if let Some(denial) = stronger(&denials) {
                format!("the rule `{id}` can never decide: `{denial}` denies everything that it is about")
            } else if let Some(question) = stronger(&questions).filter(|_| only_allows) {
                format!("the rule `{id}` can never allow: `{question}` asks about everything that it is about")
            } else if self.read_only && only_allows && !only_reads(rule) {
                format!("the rule `{id}` allows reading tools at most, because of `read-only = true`")
            } else {
                continue;
            };
            problems.push(warning(format!("policy.rules.{index}"), message));
        }
    }

    /// Selectors of callers with a token that no caller has.
    pub fn check_callers(&self, is_caller: impl Fn(&Glob) -> bool) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            for selector in rule.who.selectors() {
                let WhoSelector::Caller(CallerKind::Token, name) = selector else { continue };
                if !is_caller(name) {
                    let message =
                        format!("`{selector}` is no caller: no token has this label; `sinew token list` shows them");
                    problems.push(warning(format!("policy.rules.{index}.who"), message));
                }
            }
        }
        problems
    }

    /// Selectors that match none of these devices and tools.
    pub fn check_against<'a>(
        &self,
        devices: impl IntoIterator<Item = (DeviceFacts<'a>, Vec<ToolFacts<'a>>)>,
    ) -> Vec<PolicyProblem> {
        let devices: Vec<_> = devices.into_iter().collect();
        let device_matches =
            |selector: &DeviceSelector| devices.iter().any(|(facts, _)| selector.match_of(facts).is_some());
        let tool_matches = |selector: &ToolSelector| {
            devices.iter().any(|(_, tools)| tools.iter().any(|tool| selector.match_of(tool).is_some()))
        };
        let mut problems = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            for selector in rule.on.selectors().iter().filter(|selector| !device_matches(selector)) {
                let message = format!("`{selector}` matches no device that is known now");
                problems.push(warning(format!("policy.rules.{index}.on"), message));
            }
            for selector in rule.tools.selectors().iter().filter(|selector| !tool_matches(selector)) {
                let message = format!("`{selector}` matches no tool that is known now");
                problems.push(warning(format!("policy.rules.{index}.tools"), message));
            }
        }
        problems
    }
}

/// Entries of `[[redact]]` that would hide nothing.
pub fn check_redactions(rules: &[RedactionRule]) -> Vec<PolicyProblem> {
    let wrong = |(index, rule): (usize, &RedactionRule)| {
        let wrong = rule.args.iter().find_map(|pointer| check_pointer("args", pointer).err())?;
        Some(error(format!("redact.{index}.args"), wrong))
    };
    rules.iter().enumerate().filter_map(wrong).collect()
}

/// Entries of `[[effects]]` that would match nothing.
pub fn check_effects(rules: &[EffectRule]) -> Vec<PolicyProblem> {
    let wrong = |(index, rule): (usize, &EffectRule)| {
        if rule.effect.is_none() {
            let message = "an entry needs an `effect`: `read`, `change` or `danger`".to_owned();
            return Some(error(format!("effects.{index}"), message));
        }
        let by_effect = |selector: &&ToolSelector| matches!(selector, ToolSelector::Effect(_));
        let selector = rule.tools.selectors().iter().find(by_effect)?;
        let message = format!(
            "`{selector}` selects tools by what this entry is to say about them; select them by name, for example `*unlock*`"
        );
        Some(error(format!("effects.{index}.tools"), message))
    };
    rules.iter().enumerate().filter_map(wrong).collect()
}

fn check_rule(rule: &PolicyRule, key: &str, problems: &mut Vec<PolicyProblem>) {
    let mut refuse = |message: String| problems.push(error(key.to_owned(), message));
    let id = &rule.id;
    if id.is_empty() {
        refuse("a rule needs an `id`, which explanations and the audit name".to_owned());
    } else if id.len() > MAX_ID || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        refuse(format!("`id = \"{id}\"` must be 1 to {MAX_ID} letters, digits, hyphens, underscores or dots"));
    }
    if rule.r#do.is_none() && !rule.limits() {
        refuse(format!("the rule `{id}` does nothing; add `do`, `rate` or `concurrent`"));
    }
    if rule.r#else.is_some() && (rule.is_unconditional() || rule.r#do.is_none()) {
        refuse(format!("`else` of the rule `{id}` can never hold; it needs `do`, and `if` or `hours`"));
    }
    if rule.concurrent == Some(0) {
        refuse(format!("`concurrent = 0` of the rule `{id}` allows no call; use `do = \"deny\"`"));
    }
    if rule.r#do == Some(Verdict::Deny) && rule.limits() && rule.r#else.is_none() {
        refuse(format!("the rule `{id}` denies, so its `rate` or `concurrent` can never hold"));
    }
    for (index, condition) in rule.r#if.iter().enumerate() {
        if let Err(message) = condition.check() {
            problems.push(error(format!("{key}.if.{index}"), message));
        }
    }
}

/// Whether it is about reading tools alone.
fn only_reads(rule: &PolicyRule) -> bool {
    let reads = |selector: &ToolSelector| *selector == ToolSelector::Effect(Some(Effect::Read));
    !rule.tools.is_everything() && rule.tools.selectors().iter().all(reads)
}

/// Whether the first rule matches whenever the second does.
fn covers(all: &PolicyRule, part: &PolicyRule) -> bool {
    all.who.covers(&part.who, WhoSelector::covers)
        && all.on.covers(&part.on, DeviceSelector::covers)
        && all.tools.covers(&part.tools, ToolSelector::covers)
}

fn error(key: String, message: String) -> PolicyProblem {
    PolicyProblem { severity: Severity::Error, key, message }
}

fn warning(key: String, message: String) -> PolicyProblem {
    PolicyProblem { severity: Severity::Warning, key, message }
}
