//! Whether the store can be written. While it cannot, no call is made, because none could be recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::ErrorCode;
use sinew_tool::{ErrorKind, ToolError};

use crate::durations::DurationCounts;

#[derive(Default)]
pub(crate) struct StoreHealth {
    has_failed: AtomicBool,
    problem: Mutex<String>,
    commits: Mutex<CommitCounts>,
    changed: OnceLock<Listener>,
}

/// Commits since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// Of those that succeeded.
    pub durations: DurationCounts,
    pub failed: u64,
}

/// Called with a problem, or with `None` when it is over.
type Listener = Box<dyn Fn(Option<&str>) + Send + Sync>;

impl StoreHealth {
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Why the store cannot be written, while it cannot.
    pub(crate) fn problem(&self) -> Option<String> {
        self.has_failed().then(|| self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Refuses what would have to be recorded.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        self.problem().map_or(Ok(()), |problem| Err(not_recorded(&problem)))
    }

    /// Calls `listener` with every change, on the thread of the store: it must not wait for the store.
    pub(crate) fn listen(&self, listener: impl Fn(Option<&str>) + Send + Sync + 'static) {
        let _ = self.changed.set(Box::new(listener));
    }

    pub(crate) fn commits(&self) -> CommitCounts {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_commit(&self, duration: Duration, is_done: bool) {
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        match is_done {
            true => commits.durations.note(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
            false => commits.failed += 1,
        }
    }

    pub(super) fn fail(&self, problem: &str) {
        problem.clone_into(&mut self.problem.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.has_failed.swap(true, Ordering::AcqRel) {
            tracing::error!("the store cannot be written ({problem}); calls are refused until it can be");
            self.notify(Some(problem));
        }
    }

    pub(super) fn recover(&self) {
        if self.has_failed.swap(false, Ordering::AcqRel) {
            self.notify(None);
        }
    }

    fn notify(&self, problem: Option<&str>) {
        if let Some(listener) = self.changed.get() {
            listener(problem);
        }
    }
}

fn not_recorded(problem: &str) -> ToolError {
    let message = format!(
        "nothing was sent, because the call could not be recorded: the store cannot be written ({problem}); \
         check that the disk of the state directory has space and is not damaged; the gateway tries again each second"
    );
    ToolError::new(ErrorKind::NotRecorded, message)
}

/// Whether an error is about what was to be written, and not about the store.
pub(super) fn is_about_content(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig),
        None => true,
    }
}
