//! Who may call which tool on which device.
//!
//! A [`Policy`] is made of the rules in the configuration. For a caller, a device and a tool it makes a [`Plan`], which
//! does not depend on the arguments and can be kept; a plan and the arguments of a call give a [`Decision`]: allow, ask
//! or deny. [`effect_of`] says what calling a tool can do.
//!
//! Nothing here knows the gateway, the clock or the network: the time is an argument, and callers, devices and tools
//! are described by the facts that rules can select by.

#![warn(unreachable_pub)]

mod condition;
mod decide;
mod effect;
mod expectation;
mod explain;
mod firmware;
mod hours;
mod limit;
mod pointer;
mod problem;
mod redaction;
mod selection;
mod selector;
mod settings;

pub use condition::{Condition, Literal};
pub use decide::{Decision, Plan, Policy, Reason, Rights};
pub use effect::{
    EffectRule, EffectSource, MarkedEffect, ToolOrigin, effect_of, hinted_effect, propose_effect, suspected_effect,
};
pub use expectation::{Arguments, At, Expectation, ExpectationFile, Mismatch, Who};
pub use explain::{Explanation, RuleReport, RuleResult};
pub use hours::{Hours, LocalTime};
pub use limit::{CallLimit, Limiter, OverLimit, Rate, RunningCall};
pub use problem::{PolicyProblem, Severity, check_effects, check_redactions};
pub use redaction::RedactionRule;
pub use selector::{
    AnyOf, CallerFacts, CallerKind, DeviceFacts, DeviceSelector, Glob, ToolFacts, ToolHint, ToolSelector, WhoSelector,
};
pub use settings::{ApprovalsBy, AskBy, AskSettings, PolicyRule, PolicySettings, UnmarkedDefault, Verdict};

#[cfg(test)]
mod tests;
