//! A run's steps as calls of its caller.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sinew_steps::{RunReport, StepClock, StepHost, StepRecord, too_many_steps};
use sinew_tool::{Args, BoxFuture, Caller, ErrorKind, LogLevel, NestedCalls, Outcome, PlannedCall, ToolError};

use crate::clock::RunClock;
use crate::routine::{LIMITS, Routine};
use crate::runs::{KeptAnswers, Run, RunState};

/// Between two questions whether a person has decided. Each waits for the person too.
const APPROVAL_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct RunHost {
    pub(crate) run: Arc<Run>,
    pub(crate) calls: Arc<dyn NestedCalls>,
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) clock: RunClock,
    /// Steps that this run, and those that it is a part of, may still carry out.
    pub(crate) steps_left: Arc<AtomicUsize>,
    pub(crate) kept: KeptAnswers,
    pub(crate) done: AtomicU32,
}

impl RunHost {
    /// Carries the routine out; the answer is in the run.
    pub(crate) async fn carry_out(self, routine: Arc<Routine>, args: Args) {
        let scope = routine.scope(&args);
        let planned = routine.steps.known_calls(&scope, &LIMITS);
        let report = match self.agree(&routine.tool.name, &planned).await {
            Ok(()) => sinew_steps::run(&routine.steps, &self, scope, &LIMITS).await,
            Err(failure) => RunReport { failure: Some(failure), ..RunReport::default() },
        };
        self.run.set(RunState::Ended(Arc::new(report)));
    }

    /// Waits until a person has decided about these calls, where one must. Nothing is sent meanwhile.
    async fn agree(&self, tool: &str, planned: &[PlannedCall]) -> Result<(), ToolError> {
        loop {
            let mut agreeing = pin!(self.calls.agree(planned));
            let at_once = tokio::select! {
                biased;
                agreed = &mut agreeing => Some(agreed),
                () = std::future::ready(()) => None,
            };
            let agreed = match at_once {
                Some(agreed) => agreed,
                None => {
                    // Whoever repeats the call from now on joins this run.
                    self.wait(tool, String::new());
                    tokio::select! {
                        agreed = agreeing => agreed,
                        () = self.run.cancel.cancelled() => return Err(cancelled("before")),
                    }
                }
            };
            match agreed {
                Err(error) if error.kind == ErrorKind::ApprovalNeeded && self.clock.elapsed() < LIMITS.time => {
                    let approval = error.details["approval"].as_str().unwrap_or_default();
                    let how = format!(" (`sinew approvals approve {approval}`)");
                    self.wait(tool, if approval.is_empty() { String::new() } else { how });
                    tokio::select! {
                        () = tokio::time::sleep(APPROVAL_PAUSE) => {}
                        () = self.run.cancel.cancelled() => return Err(cancelled("before")),
                    }
                }
                // An approval that comes with a cancellation approves nothing any more.
                decided => return self.check().and(decided),
            }
        }
    }
}

impl RunHost {
    fn wait(&self, tool: &str, how: String) {
        self.run.set(RunState::Waiting { tool: tool.to_owned(), why: how });
    }
}

fn cancelled(when: &str) -> ToolError {
    ToolError::new(ErrorKind::Cancelled, format!("the run was cancelled {when} this step"))
}

impl StepHost for RunHost {
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            if self.run.cancel.is_cancelled() {
                return Err(cancelled("before"));
            }
            let planned =
                PlannedCall { device: device.map(str::to_owned), tool: tool.to_owned(), args: arguments.clone() };
            self.agree(tool, std::slice::from_ref(&planned)).await?;
            self.run.set(RunState::Running { tool: tool.to_owned() });
            let done = self.done.fetch_add(1, Ordering::Relaxed);
            self.caller.progress(f64::from(done) + 1.0, None, Some(tool));
            // A step that is given up is cancelled like any call, and so are the steps of a routine within this one.
            tokio::select! {
                outcome = self.calls.call(device, tool, planned.args) => outcome,
                () = self.run.cancel.cancelled() => Err(cancelled("during")),
            }
        })
    }

    fn clock(&self) -> &dyn StepClock {
        &self.clock
    }

    fn check(&self) -> Result<(), ToolError> {
        if self.run.cancel.is_cancelled() { Err(cancelled("before")) } else { Ok(()) }
    }

    fn take_step(&self) -> Result<(), ToolError> {
        let taken = self.steps_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| too_many_steps(LIMITS.executed))
    }

    fn hold(&self, bytes: usize) -> Result<(), ToolError> {
        self.kept.set(bytes)
    }

    /// What is remembered of a run is its answer, and which steps were done.
    fn keeps_answers(&self) -> bool {
        false
    }

    fn stepped(&self, step: &StepRecord) {
        let page = self.run.note(step);
        // Of a routine within another, the caller sees the one step that it is.
        if !self.calls.is_part() {
            self.caller.log(LogLevel::Debug, json!({"run": self.run.id, "step": page}));
        }
    }
}
