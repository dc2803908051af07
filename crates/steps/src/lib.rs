//! Steps: calls of tools in order, with conditions, loops over lists, waits and a result.
//!
//! [`Steps::parse`] checks a list once; [`run`] carries it out through a [`StepHost`], which makes the calls and knows
//! the time. There are comparisons and no general language: every list of steps ends. What happened is a [`RunReport`].

#![warn(unreachable_pub)]

mod condition;
mod grammar;
mod plan;
mod report;
mod run;
mod template;

pub use condition::{Condition, SELECTOR_MEMBERS, check_selector};
pub use grammar::{Limits, Step, StepKind, Steps, StepsError, WrittenCall};
pub use plan::{PlannedStep, calls_of, scope_of};
pub use report::{Observation, RunReport, StepRecord, SuiteCase, to_html, to_junit};
pub use run::{StepClock, StepHost, run, too_many_steps};
