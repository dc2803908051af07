//! Recent calls with their arguments and answers, in memory: for people who look at what a model did, and for whoever
//! makes a routine of it. The audit keeps no answers.
//!
//! It is off unless the configuration or a recording switches it on, and it forgets by age and by size.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sinew_tool::{Args, Content, DeviceId, Outcome, ShownScreen, ToolError};
use tokio::time::Instant;

use crate::record::{weigh, weigh_value};
use crate::redaction::REDACTED;

sinew_tool::settings! {
    /// Recent calls with their answers, in memory.
    pub struct JournalSettings {
        /// Keep recent calls with their answers, for `sinew journal`.
        pub on: bool = false;
        /// Bytes of arguments and answers that are kept.
        pub bytes: usize = 64 << 20, within 65_536..=4_294_967_296;
        /// Seconds for which they are kept.
        pub time: Duration = Duration::from_secs(3_600), within 1..=604_800;
    }
}

/// A call with its answer. Secrets are redacted as in the audit.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Counts up from 1.
    pub id: u64,
    /// When the call started, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    pub door: &'static str,
    pub device: DeviceId,
    /// The name the device knows the tool by.
    pub tool: String,
    /// Whether another call made it: a step of a routine, a member of a label.
    pub is_nested: bool,
    pub args: Args,
    pub result: Result<Outcome, ToolError>,
    pub duration: Duration,
    /// What the device showed before and after a call that acted on it.
    pub screens: Screens,
}

/// What a device shows, in words. Nothing where the call only read, or had secrets that may be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Screens {
    pub before: Option<String>,
    pub after: Option<String>,
    /// A selector for something that was not there before.
    pub landmark: Option<Value>,
    /// The arguments in a form that holds on another day too.
    pub lasting_args: Option<Args>,
}

impl Screens {
    pub(crate) fn between(before: Option<ShownScreen>, after: Option<ShownScreen>) -> Screens {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let is_new = |landmark: &Value| !before.landmarks.contains(landmark);
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Screens {
            landmark: after.landmarks.into_iter().find(is_new),
            before: some(before.text),
            after: some(after.text),
            lasting_args: before.lasting_args,
        }
    }

    fn weight(&self) -> usize {
        let texts = [&self.before, &self.after].into_iter().flatten().map(String::len).sum::<usize>();
        let args = self.lasting_args.iter().flatten().map(|(name, value)| name.len() + weigh_value(value));
        texts + args.sum::<usize>() + self.landmark.as_ref().map_or(0, weigh_value)
    }
}

/// What is kept of a call for the journal until it ends.
pub(crate) struct JournalDraft {
    /// Without secrets.
    pub(crate) args: Args,
    /// The tool's output schema marks parts of the answer as secret.
    pub(crate) has_secret_answer: bool,
    /// Some arguments are secret, so that an answer or an error may quote one.
    pub(crate) has_secret_args: bool,
    pub(crate) is_nested: bool,
    pub(crate) screens: Screens,
}

impl JournalEntry {
    fn weight(&self) -> usize {
        let answer = match &self.result {
            Ok(outcome) => weigh(outcome),
            Err(error) => error.message.len() + weigh_value(&error.details),
        };
        let args: usize = self.args.iter().map(|(name, value)| name.len() + weigh_value(value)).sum();
        256 + self.principal.len() + self.tool.len() + args + answer + self.screens.weight()
    }
}

pub(crate) struct Journal {
    settings: JournalSettings,
    recordings: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: VecDeque<(Instant, usize, Arc<JournalEntry>)>,
    bytes: usize,
    last_id: u64,
}

/// Keeps the journal on until it is dropped.
pub struct Recording {
    journal: Arc<Journal>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.journal.recordings.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Journal {
    pub(crate) fn new(settings: JournalSettings) -> Arc<Journal> {
        Arc::new(Journal { settings, recordings: AtomicUsize::new(0), kept: Mutex::default() })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.settings.on || self.recordings.load(Ordering::Acquire) > 0
    }

    pub(crate) fn record(self: &Arc<Journal>) -> Recording {
        self.recordings.fetch_add(1, Ordering::AcqRel);
        Recording { journal: self.clone() }
    }

    /// `has_secret_answer`: the tool's output schema marks parts of the answer as secret.
    pub(crate) fn add(&self, mut entry: JournalEntry, has_secret_answer: bool) {
        if let (Ok(outcome), true) = (&mut entry.result, has_secret_answer) {
            *outcome = Outcome { content: vec![Content::Text(REDACTED.to_owned())], ..Outcome::default() };
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last_id += 1;
        entry.id = kept.last_id;
        let weight = entry.weight();
        kept.bytes += weight;
        kept.entries.push_back((Instant::now(), weight, Arc::new(entry)));
        self.forget(&mut kept);
    }

    /// The id of the newest entry, or 0.
    pub(crate) fn last_id(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).last_id
    }

    /// The newest entries that fit, oldest first.
    pub(crate) fn find(&self, after: u64, device: Option<&DeviceId>, limit: usize) -> Vec<Arc<JournalEntry>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget(&mut kept);
        let newest = kept.entries.iter().rev().map(|(.., entry)| entry);
        let newest = newest.take_while(|entry| entry.id > after);
        let fitting = newest.filter(|entry| device.is_none_or(|device| entry.device == *device));
        let mut found: Vec<_> = fitting.take(limit).cloned().collect();
        found.reverse();
        found
    }

    fn forget(&self, kept: &mut Kept) {
        while let Some((since, weight, _)) = kept.entries.front() {
            if kept.bytes <= self.settings.bytes && since.elapsed() < self.settings.time {
                return;
            }
            kept.bytes -= weight;
            kept.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> JournalEntry {
        JournalEntry {
            id: 0,
            at: 0,
            principal: "tester".to_owned(),
            door: "test",
            device: DeviceId::parse("board-1").unwrap(),
            tool: "x".to_owned(),
            is_nested: false,
            args: Args::new(),
            result: Ok(Outcome::text(text)),
            duration: Duration::ZERO,
            screens: Screens::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_forgets_by_size_and_by_age() {
        let journal = Journal::new(JournalSettings { bytes: 65_536, ..JournalSettings::default() });
        for _ in 0..100 {
            journal.add(entry(&"x".repeat(10_000)), false);
        }
        let kept = journal.find(0, None, 1_000);
        assert!((4..7).contains(&kept.len()) && kept.last().is_some_and(|entry| entry.id == 100), "{}", kept.len());
        // One entry that is larger than everything is not kept.
        journal.add(entry(&"x".repeat(100_000)), false);
        assert!(journal.find(0, None, 1_000).is_empty());
        journal.add(entry("x"), false);
        tokio::time::advance(Duration::from_secs(3_599)).await;
        assert_eq!(journal.find(0, None, 1_000).len(), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(journal.find(0, None, 1_000).is_empty());
    }

    #[tokio::test]
    async fn a_recording_switches_it_on_until_it_ends() {
        let journal = Journal::new(JournalSettings::default());
        assert!(!journal.is_on());
        let (one, two) = (journal.record(), journal.record());
        drop(one);
        assert!(journal.is_on());
        drop(two);
        assert!(!journal.is_on());
    }
}
