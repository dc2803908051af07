//! Runs of routines: those under way, those that wait for a person, and the last that ended.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use sinew_steps::{RunReport, StepRecord};
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::questions::RunQuestions;
use crate::routine::LIMITS;

/// Runs that may be under way at once, of all callers together.
const MAX_ACTIVE: usize = 4_000;
/// Runs of one caller, so that nobody takes all.
const MAX_OF_CALLER: usize = 1_000;
/// Runs that ended and can still be asked about.
const MAX_ENDED: usize = 100;
/// Bytes of answers that all runs keep together: one run may keep 16 MiB, and a thousand must not keep a thousand times
/// as much.
const MAX_KEPT: usize = 256 << 20;

#[derive(Default)]
pub(crate) struct Runs {
    /// The oldest first.
    table: Mutex<VecDeque<Arc<Run>>>,
    kept: Arc<AtomicUsize>,
}

/// What a caller wants to run.
#[derive(Clone, Copy)]
pub(crate) struct WantedRun<'a> {
    pub(crate) principal: &'a str,
    pub(crate) routine: &'a str,
    pub(crate) args: &'a Args,
    /// It is a step of another run.
    pub(crate) is_part: bool,
}

/// One run. Its id is the right to ask about it, together with the caller it belongs to.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) routine: String,
    pub(crate) cancel: CancellationToken,
    principal: String,
    args: Args,
    /// Nobody else joins a run that another run waits for.
    is_part: bool,
    /// Steps that it may still carry out, with those of the runs that it waits for.
    pub(crate) steps_left: Arc<AtomicUsize>,
    state: watch::Sender<RunState>,
    /// Calls that wait for its answer.
    waiting: AtomicUsize,
    /// What was done so far, as it is told.
    done: Mutex<Vec<Value>>,
}

#[derive(Clone, Debug)]
pub(crate) enum RunState {
    /// The tool that is called now; empty before the first.
    Running {
        tool: String,
    },
    /// A person must approve the next step.
    Waiting {
        tool: String,
        why: String,
    },
    /// The device of a step asks the caller.
    Asking {
        tool: String,
        questions: Arc<RunQuestions>,
    },
    Ended(Arc<RunReport>),
}

pub(crate) enum RunNews {
    Ended(Arc<RunReport>),
    Asks(Arc<RunQuestions>),
}

impl Runs {
    /// A new run, or the one that waits for a person with the same call: repeating a call must not repeat its steps. A
    /// step of another run always begins a run of its own.
    pub(crate) fn begin(&self, wanted: WantedRun<'_>) -> Result<(Arc<Run>, bool), ToolError> {
        let WantedRun { principal, routine, args, is_part } = wanted;
        let mut table = self.table();
        if let Some(run) = table.iter().find(|run| !is_part && run.is_waiting() && run.is_of(wanted)) {
            return Ok((run.clone(), false));
        }
        let is_active = |run: &&Arc<Run>| run.ended().is_none();
        let (active, own) = table
            .iter()
            .filter(is_active)
            .fold((0, 0), |(all, own), run| (all + 1, own + usize::from(run.principal == principal)));
        if active >= MAX_ACTIVE || own >= MAX_OF_CALLER {
            let message = format!("{own} routines of yours run already; try again when some have ended");
            return Err(ToolError::new(ErrorKind::Busy, message));
        }
        let run = Arc::new(Run {
            id: random_id()?,
            routine: routine.to_owned(),
            cancel: CancellationToken::new(),
            principal: principal.to_owned(),
            args: args.clone(),
            is_part,
            steps_left: Arc::new(AtomicUsize::new(LIMITS.executed)),
            state: watch::Sender::new(RunState::Running { tool: String::new() }),
            waiting: AtomicUsize::new(0),
            done: Mutex::default(),
        });
        table.push_back(run.clone());
        let ended = table.iter().filter(|run| run.ended().is_some()).count();
        let mut surplus = ended.saturating_sub(MAX_ENDED);
        table.retain(|run| {
            let is_old = surplus > 0 && run.ended().is_some();
            surplus -= usize::from(is_old);
            !is_old
        });
        Ok((run, true))
    }

    /// The run that an earlier round of the same call left, in whatever state it is. What was answered there is not asked
    /// again, and no step is carried out twice.
    pub(crate) fn resume(&self, wanted: WantedRun<'_>, id: &str) -> Result<Arc<Run>, ToolError> {
        let found = self.table().iter().find(|run| run.id == id && run.is_of(wanted)).cloned();
        found.ok_or_else(|| {
            let message = "the run that this answer is for is gone: it ended some time ago, or the gateway was \
                           restarted. Nothing was repeated; to begin a new run, call the routine without `requestState`";
            ToolError::new(ErrorKind::InvalidArguments, message)
        })
    }

    /// The steps that are left to a run and to all that it is a part of.
    pub(crate) fn steps_of(&self, outermost: &str, run: &Arc<Run>) -> Arc<AtomicUsize> {
        let outermost = self.table().iter().find(|run| run.id == outermost).cloned();
        outermost.unwrap_or_else(|| run.clone()).steps_left.clone()
    }

    /// Room for what a run keeps.
    pub(crate) fn room(&self) -> KeptAnswers {
        KeptAnswers { all: self.kept.clone(), own: AtomicUsize::new(0) }
    }

    pub(crate) fn find(&self, principal: &str, id: &str) -> Result<Arc<Run>, ToolError> {
        let table = self.table();
        let found = table.iter().find(|run| run.id == id && run.principal == principal).cloned();
        found.ok_or_else(|| {
            let message = "no run of yours has this id. A run is forgotten some time after it ended, and when the \
                           gateway stops, which ends it where it stands; the audit has the steps that were made";
            ToolError::new(ErrorKind::InvalidArguments, message)
        })
    }

    fn table(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one run keeps of the room that all have.
pub(crate) struct KeptAnswers {
    all: Arc<AtomicUsize>,
    own: AtomicUsize,
}

impl KeptAnswers {
    /// The run keeps so many bytes from here on.
    pub(crate) fn set(&self, bytes: usize) -> Result<(), ToolError> {
        let before = self.own.swap(bytes, Ordering::AcqRel);
        let all = self.all.fetch_add(bytes, Ordering::AcqRel) + bytes;
        self.all.fetch_sub(before, Ordering::AcqRel);
        match all.saturating_sub(before) > MAX_KEPT {
            true => {
                let message = format!(
                    "the answers that all runs keep with `as` have more than {} MiB; try again when some have ended",
                    MAX_KEPT >> 20
                );
                Err(ToolError::new(ErrorKind::Busy, message))
            }
            false => Ok(()),
        }
    }
}

impl Drop for KeptAnswers {
    fn drop(&mut self) {
        self.all.fetch_sub(*self.own.get_mut(), Ordering::AcqRel);
    }
}

impl Run {
    fn is_of(&self, wanted: WantedRun<'_>) -> bool {
        let WantedRun { principal, routine, args, .. } = wanted;
        !self.is_part && (&*self.principal, &*self.routine, &self.args) == (principal, routine, args)
    }

    pub(crate) fn set(&self, state: RunState) {
        self.state.send_replace(state);
    }

    pub(crate) fn ended(&self) -> Option<Arc<RunReport>> {
        match &*self.state.borrow() {
            RunState::Ended(report) => Some(report.clone()),
            RunState::Running { .. } | RunState::Waiting { .. } | RunState::Asking { .. } => None,
        }
    }

    /// Somebody waits for its answer.
    pub(crate) fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// Somebody waits no more; says whether anybody else does.
    pub(crate) fn is_wanted_after_leaving(&self) -> bool {
        self.waiting.fetch_sub(1, Ordering::AcqRel) > 1
    }

    /// Notes a step that was carried out; returns what is noted.
    pub(crate) fn note(&self, step: &StepRecord) -> Value {
        let page = step_page(step);
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(page.clone());
        page
    }

    fn steps_so_far(&self) -> Vec<Value> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_waiting(&self) -> bool {
        matches!(&*self.state.borrow(), RunState::Waiting { .. } | RunState::Asking { .. })
    }

    /// Waits with questions; returns the state before.
    pub(crate) fn ask(&self, questions: RunQuestions) -> RunState {
        let tool = match &*self.state.borrow() {
            RunState::Running { tool } | RunState::Waiting { tool, .. } | RunState::Asking { tool, .. } => tool.clone(),
            RunState::Ended(_) => String::new(),
        };
        self.state.send_replace(RunState::Asking { tool, questions: Arc::new(questions) })
    }

    /// Waits until there is something for those who wait for the run.
    pub(crate) async fn news(&self) -> RunNews {
        let mut states = self.state.subscribe();
        loop {
            match &*self.state.borrow() {
                RunState::Ended(report) => return RunNews::Ended(report.clone()),
                RunState::Asking { questions, .. } if questions.is_open() => return RunNews::Asks(questions.clone()),
                RunState::Running { .. } | RunState::Waiting { .. } | RunState::Asking { .. } => {}
            }
            // The sender is part of this run, so it is never gone.
            let _ = states.changed().await;
        }
    }

    /// The answer to the call of the routine.
    pub(crate) fn answer(&self, report: &RunReport) -> Result<Outcome, ToolError> {
        if let Some(failure) = &report.failure {
            return Err(self.failed(report, failure));
        }
        let mut outcome = match &report.returned {
            Some(value) => Outcome::json(value.clone()),
            None => Outcome::text(format!("done: {}", listed(report))),
        };
        outcome.meta.insert("sinew/run".to_owned(), json!({"id": self.id, "steps": steps(report)}));
        Ok(outcome)
    }

    fn failed(&self, report: &RunReport, failure: &ToolError) -> ToolError {
        let mut message = match report.failed_step() {
            Some(step) => format!("{}: step {} (`{}`) failed: {}", self.routine, step.at, step.what, failure.message),
            None => format!("{}: {}", self.routine, failure.message),
        };
        let done = report.steps.iter().filter(|step| step.outcome.is_ok()).count();
        let _ = match done {
            0 => write!(message, "; no step was done before it"),
            _ => write!(message, "; done before it: {}", listed(report)),
        };
        let details = json!({"run": self.id, "steps": steps(report), "cause": failure.details});
        ToolError::new(failure.kind, message).with_details(details)
    }

    /// The error that ends a round of the call whose run waits for an answer.
    pub(crate) fn parked(&self, asked: ToolError) -> ToolError {
        let details = json!({"run": self.id, "steps": self.steps_so_far(), "cause": asked.details});
        asked.with_details(details)
    }

    /// What there is to say before the run has ended.
    pub(crate) fn still_runs(&self) -> ToolError {
        let (what, tool) = match &*self.state.borrow() {
            RunState::Waiting { why, tool } => {
                (format!("waits for a person's approval of `{tool}`{why}"), tool.clone())
            }
            RunState::Asking { tool, .. } => {
                (format!("waits for an answer to a question of `{tool}`; repeat the call to give it"), tool.clone())
            }
            RunState::Running { tool } => ("still runs".to_owned(), tool.clone()),
            RunState::Ended(_) => ("has ended".to_owned(), String::new()),
        };
        let message = format!(
            "{} {what}. It goes on as run {}: get its answer with get_run, or stop it with cancel_run",
            self.routine, self.id
        );
        let details = json!({"run": self.id, "tool": tool, "steps": self.steps_so_far()});
        ToolError::new(ErrorKind::Timeout, message).with_details(details)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut page = json!({"run": self.id, "routine": self.routine, "steps": self.steps_so_far()});
        match &*self.state.borrow() {
            RunState::Running { tool } => {
                page["state"] = json!("running");
                page["tool"] = json!(tool);
            }
            RunState::Waiting { tool, why } => {
                page["state"] = json!("waiting");
                page["tool"] = json!(tool);
                page["why"] = json!(why);
            }
            RunState::Asking { tool, .. } => {
                page["state"] = json!("waiting");
                page["tool"] = json!(tool);
                page["why"] = json!("it has a question; repeat the call of the routine to answer it");
            }
            RunState::Ended(report) => {
                let state = match &report.failure {
                    None => "done",
                    Some(error) if error.kind == ErrorKind::Cancelled => "cancelled",
                    Some(_) => "failed",
                };
                page["state"] = json!(state);
                match self.answer(report) {
                    Ok(outcome) => {
                        page["result"] = outcome.structured.clone().unwrap_or_else(|| json!(outcome.joined_text()));
                    }
                    Err(error) => page["error"] = json!(error.message),
                }
            }
        }
        page
    }
}

fn steps(report: &RunReport) -> Value {
    report.steps.iter().map(step_page).collect()
}

fn step_page(step: &StepRecord) -> Value {
    json!({"at": step.at, "what": step.what, "ok": step.outcome.is_ok(), "ms": step.took.as_millis() as u64})
}

/// The steps that were done, shortly.
fn listed(report: &RunReport) -> String {
    let done: Vec<&str> =
        report.steps.iter().filter(|step| step.outcome.is_ok()).map(|step| step.what.as_str()).collect();
    match done.len() {
        0..=8 => done.join(", "),
        count => format!("{} and {} more", done[..8].join(", "), count - 8),
    }
}

fn random_id() -> Result<String, ToolError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| ToolError::new(ErrorKind::Internal, format!("the system gives no random numbers: {error}")))?;
    Ok(bytes.iter().fold("run-".to_owned(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}
