//! Why the policy decides as it does, rule by rule.

use serde_json::{Map, Value};

use crate::decide::{Plan, PlannedRule, Policy, Reason};
use crate::hours::LocalTime;
use crate::settings::{PolicyRule, Verdict};

/// A decision with everything that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub verdict: Verdict,
    pub reason: Reason,
    /// Every rule whose selectors match, in the order of the file.
    pub rules: Vec<RuleReport>,
    /// What holds where no rule decides.
    pub fallback: (Verdict, Reason),
}

/// What one rule says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    pub id: String,
    pub result: RuleResult,
    /// `None`: the rule says nothing about this call.
    pub verdict: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleResult {
    Holds,
    OutsideHours,
    /// The condition on this argument fails.
    ConditionFails {
        arg: String,
    },
    /// It would allow, but only by what the device says of itself, and nobody approved the device.
    NotApproved,
}

impl RuleResult {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            RuleResult::Holds => "holds".to_owned(),
            RuleResult::OutsideHours => "is outside its hours".to_owned(),
            RuleResult::ConditionFails { arg } => format!("its condition on `{arg}` fails"),
            RuleResult::NotApproved => {
                "allows nothing here: nobody approved the device, and the rule does not name it".to_owned()
            }
        }
    }
}

impl Policy {
    pub fn explain(&self, plan: &Plan, args: &Map<String, Value>, now: LocalTime) -> Explanation {
        let decision = self.decide(plan, args, now);
        let report = |(planned, rule): (PlannedRule, &PolicyRule)| {
            let result = result_of(rule, args, now);
            let holds = result == RuleResult::Holds;
            let verdict = planned.verdict(rule, holds);
            let said = if holds { rule.r#do } else { rule.r#else };
            let result = if verdict == said { result } else { RuleResult::NotApproved };
            RuleReport { id: rule.id.clone(), result, verdict }
        };
        let rules = self.rules_of(plan).map(report).collect();
        let (verdict, reason) = plan.fallback_verdict();
        let fallback =
            if plan.is_refused() { (Verdict::Deny, Reason::ReadOnlyMode) } else { (verdict, reason.clone()) };
        Explanation { verdict: decision.verdict, reason: decision.reason, rules, fallback }
    }
}

fn result_of(rule: &PolicyRule, args: &Map<String, Value>, now: LocalTime) -> RuleResult {
    if rule.hours.as_ref().is_some_and(|hours| !hours.contain(now)) {
        return RuleResult::OutsideHours;
    }
    match rule.r#if.iter().find(|condition| !condition.holds(args)) {
        Some(condition) => RuleResult::ConditionFails { arg: condition.arg.clone() },
        None => RuleResult::Holds,
    }
}
