//! The phone's log, as `logcat` would show it.

use std::collections::VecDeque;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use sinew_phones::{LogLine, LogcatLevel};

/// Lines kept; a real main buffer holds about as many.
const MOST: usize = 4000;

#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    pub pid: u32,
    pub tid: u32,
    pub level: LogcatLevel,
    pub tag: String,
    pub message: String,
}

#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<LogEntry>,
}

impl Log {
    pub fn push(&mut self, entry: LogEntry) {
        if self.entries.len() == MOST {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LogEntry> + ExactSizeIterator {
        self.entries.iter()
    }
}

impl LogEntry {
    /// The event of a crash.
    pub const CRASH: &'static str = "am_crash";
    /// The event of an app that does not answer.
    pub const HANG: &'static str = "am_anr";

    /// Whether it is in the log of events and not in the main one.
    pub fn is_event(&self) -> bool {
        [LogEntry::CRASH, LogEntry::HANG].contains(&self.tag.as_str())
    }

    /// The phone's time zone is UTC.
    pub fn time(&self) -> DateTime {
        wall_clock(self.at)
    }

    pub fn to_line(&self) -> LogLine {
        LogLine {
            time: self.time(),
            pid: self.pid,
            level: self.level,
            tag: self.tag.clone(),
            message: self.message.clone(),
        }
    }
}

/// The wall clock at a moment of milliseconds since 1970.
pub(super) fn wall_clock(at: i64) -> DateTime {
    Offset::UTC.to_datetime(Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH))
}
