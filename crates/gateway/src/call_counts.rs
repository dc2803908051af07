//! How many calls ended, in all and in each of the last minutes, and the newest that failed. In memory, since the gateway
//! started.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use sinew_tool::{ErrorKind, FamilyName};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::durations::DurationCounts;
use crate::shared::AuditRow;

/// An hour of minutes: what one picture shows.
const MAX_MINUTES: usize = 60;
/// Failures that somebody looks through before opening the audit.
const MAX_FAILURES: usize = 20;

/// The calls that ended in one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteOfCalls {
    pub calls: u64,
    pub failures: u64,
    /// What they took together, in microseconds.
    pub total_us: u64,
    pub slowest_us: u64,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// When it came, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    pub device: Option<String>,
    pub tool: String,
    /// The `error_type`.
    pub outcome: &'static str,
}

/// What calls are counted by. Each part has few values, whatever devices and clients send.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallClass {
    /// `None` where the call reached no device.
    pub family: Option<FamilyName>,
    /// `ok`, or the `error_type`.
    pub outcome: &'static str,
    /// The endpoint, as in the audit.
    pub via: &'static str,
}

/// All calls that ended since the gateway started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    pub calls: BTreeMap<CallClass, u64>,
    pub durations: DurationCounts,
}

impl CallTotals {
    fn note(&mut self, class: CallClass, duration_us: u64) {
        *self.calls.entry(class).or_default() += 1;
        self.durations.note(duration_us);
    }
}

pub(crate) struct CallCounts {
    started: Instant,
    recent: Mutex<RecentCalls>,
    /// Counts the calls that ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct RecentCalls {
    /// Oldest first; the last is minute `newest` since the start.
    minutes: VecDeque<MinuteOfCalls>,
    newest: u64,
    /// Newest first.
    failures: VecDeque<CallFailure>,
    totals: CallTotals,
}

impl CallCounts {
    pub(crate) fn new() -> CallCounts {
        CallCounts { started: Instant::now(), recent: Mutex::default(), ended: watch::Sender::new(0) }
    }

    /// Counts a call that was recorded.
    pub(crate) fn note(&self, call: EndedCall) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.advance(self.minute());
        recent.totals.note(call.class, call.duration_us);
        if let Some(minute) = recent.minutes.back_mut() {
            minute.calls += 1;
            minute.failures += u64::from(call.failure.is_some());
            minute.total_us += call.duration_us;
            minute.slowest_us = minute.slowest_us.max(call.duration_us);
        }
        if let Some(failure) = call.failure {
            recent.failures.truncate(MAX_FAILURES - 1);
            recent.failures.push_front(failure);
        }
        drop(recent);
        self.ended.send_modify(|count| *count += 1);
    }

    /// The last hour, oldest minute first.
    pub(crate) fn minutes(&self) -> Vec<MinuteOfCalls> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.advance(self.minute());
        recent.minutes.iter().copied().collect()
    }

    pub(crate) fn failures(&self) -> Vec<CallFailure> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).failures.iter().cloned().collect()
    }

    pub(crate) fn totals(&self) -> CallTotals {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).totals.clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    fn minute(&self) -> u64 {
        self.started.elapsed().as_secs() / 60
    }
}

/// What is counted of a call.
pub(crate) struct EndedCall {
    class: CallClass,
    duration_us: u64,
    failure: Option<CallFailure>,
}

impl EndedCall {
    pub(crate) fn of(row: &AuditRow, family: Option<FamilyName>) -> EndedCall {
        let class = CallClass { family, outcome: row.outcome, via: row.door };
        // A call that waits for somebody did not fail.
        let waits = [ErrorKind::ApprovalNeeded, ErrorKind::InputRequired].map(|kind| kind.row().error_type);
        let has_failed = row.outcome != "ok" && !waits.contains(&row.outcome);
        let failure = has_failed.then(|| CallFailure {
            at: row.at,
            principal: row.principal.clone(),
            device: row.device.as_ref().map(ToString::to_string),
            tool: row.tool.as_ref().unwrap_or(&row.name).clone(),
            outcome: row.outcome,
        });
        EndedCall { class, duration_us: u64::try_from(row.duration_us).unwrap_or_default(), failure }
    }
}

impl RecentCalls {
    /// Adds empty minutes up to this one.
    fn advance(&mut self, minute: u64) {
        let missing = if self.minutes.is_empty() { 1 } else { minute.saturating_sub(self.newest) };
        let missing = usize::try_from(missing).unwrap_or(MAX_MINUTES).min(MAX_MINUTES);
        let gone = (self.minutes.len() + missing).saturating_sub(MAX_MINUTES);
        self.minutes.drain(..gone);
        self.minutes.extend(std::iter::repeat_n(MinuteOfCalls::default(), missing));
        self.newest = minute;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ended(duration_us: u64, outcome: Option<&'static str>) -> EndedCall {
        let failure = outcome.map(|outcome| CallFailure {
            at: 0,
            principal: "app".to_owned(),
            device: None,
            tool: "echo".to_owned(),
            outcome,
        });
        let class = CallClass { family: None, outcome: outcome.unwrap_or("ok"), via: "mcp" };
        EndedCall { class, duration_us, failure }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_by_minute_and_only_the_last_hour_is_kept() {
        let counts = CallCounts::new();
        counts.note(ended(100, None));
        counts.note(ended(300, Some("timeout")));
        tokio::time::advance(Duration::from_secs(120)).await;
        counts.note(ended(50, None));
        let minutes = counts.minutes();
        assert_eq!(minutes.iter().map(|minute| minute.calls).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!((minutes[0].failures, minutes[0].total_us, minutes[0].slowest_us), (1, 400, 300));
        tokio::time::advance(Duration::from_secs(60 * 59)).await;
        let minutes = counts.minutes();
        assert_eq!((minutes.len(), minutes.iter().map(|minute| minute.calls).sum::<u64>()), (60, 1));
        tokio::time::advance(Duration::from_secs(60 * 500)).await;
        assert_eq!(counts.minutes(), vec![MinuteOfCalls::default(); 60]);
    }

    #[tokio::test]
    async fn the_newest_failures_are_kept() {
        let counts = CallCounts::new();
        (0..30).for_each(|_| counts.note(ended(1, Some("timeout"))));
        counts.note(ended(1, Some("busy")));
        let failures = counts.failures();
        assert_eq!((failures.len(), failures[0].outcome), (MAX_FAILURES, "busy"));
        assert_eq!(*counts.subscribe().borrow(), 31);
    }

    #[tokio::test]
    async fn all_calls_are_counted_by_outcome_and_duration() {
        let counts = CallCounts::new();
        for (duration, outcome) in [(500, None), (501, None), (70_000_000, Some("timeout")), (0, None)] {
            counts.note(ended(duration, outcome));
        }
        let totals = counts.totals();
        assert_eq!(
            totals.calls.iter().map(|(class, n)| (class.outcome, *n)).collect::<Vec<_>>(),
            [("ok", 3), ("timeout", 1)]
        );
        assert_eq!(totals.durations.total_us, 70_001_001);
    }
}
