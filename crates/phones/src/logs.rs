//! The phone's log: what to look for, and what was found.

use std::fmt;

use jiff::civil::DateTime;
use jiff::{Timestamp, tz::Offset};

/// Which lines are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct LogQuery {
    /// At most so many, the most recent ones.
    pub lines: usize,
    pub since: Option<LogTime>,
    pub until: Option<LogTime>,
    /// The whole tag, letter by letter.
    pub tag: Option<String>,
    /// The least level that counts.
    pub level: LogcatLevel,
    pub package: Option<String>,
}

impl Default for LogQuery {
    fn default() -> LogQuery {
        LogQuery { lines: 100, since: None, until: None, tag: None, level: LogcatLevel::Debug, package: None }
    }
}

impl LogQuery {
    /// Whether a line fits, but for the package, which a line does not tell. `offset` is the phone's.
    pub fn keeps(&self, line: &LogLine, offset: Offset) -> bool {
        line.level >= self.level
            && self.tag.as_ref().is_none_or(|tag| *tag == line.tag)
            && self.since.is_none_or(|since| line.time >= since.at(offset))
            && self.until.is_none_or(|until| line.time <= until.at(offset))
    }

    /// The most recent fitting lines of many, oldest first.
    pub fn pick(&self, lines: impl IntoIterator<Item = LogLine>, offset: Offset) -> Logs {
        let mut lines: Vec<LogLine> = lines.into_iter().filter(|line| self.keeps(line, offset)).collect();
        let truncated = lines.len() > self.lines;
        lines.drain(..lines.len().saturating_sub(self.lines));
        Logs { lines, truncated }
    }
}

/// A moment in a query: by the phone's own clock on the wall, or absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogTime {
    Local(DateTime),
    Absolute(Timestamp),
}

impl LogTime {
    /// ISO 8601 with or without a zone; `None` where it is neither.
    pub fn parse(text: &str) -> Option<LogTime> {
        let absolute = text.parse::<Timestamp>().ok().map(LogTime::Absolute);
        absolute.or_else(|| text.parse::<DateTime>().ok().map(LogTime::Local))
    }

    /// The phone's wall clock at that moment.
    pub fn at(self, offset: Offset) -> DateTime {
        match self {
            LogTime::Local(time) => time,
            LogTime::Absolute(moment) => offset.to_datetime(moment),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// Oldest first.
    pub lines: Vec<LogLine>,
    /// Whether more lines fitted than were wanted.
    pub truncated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// By the phone's own clock on the wall.
    pub time: DateTime,
    pub pid: u32,
    pub level: LogcatLevel,
    pub tag: String,
    pub message: String,
}

/// `02-11 16:30:00.123 D/Tag: message`, the form the remote-control reference shows.
impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.time;
        write!(
            f,
            "{:02}-{:02} {:02}:{:02}:{:02}.{:03} {}/{}: {}",
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.millisecond(),
            self.level.letter(),
            self.tag,
            self.message
        )
    }
}

/// Logcat's levels, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogcatLevel {
    Verbose,
    Debug,
    Info,
    Warning,
    Error,
    Fatal,
}

impl LogcatLevel {
    pub const ALL: [LogcatLevel; 6] = [
        LogcatLevel::Verbose,
        LogcatLevel::Debug,
        LogcatLevel::Info,
        LogcatLevel::Warning,
        LogcatLevel::Error,
        LogcatLevel::Fatal,
    ];

    pub fn letter(self) -> char {
        match self {
            LogcatLevel::Verbose => 'V',
            LogcatLevel::Debug => 'D',
            LogcatLevel::Info => 'I',
            LogcatLevel::Warning => 'W',
            LogcatLevel::Error => 'E',
            LogcatLevel::Fatal => 'F',
        }
    }

    pub fn from_letter(letter: char) -> Option<LogcatLevel> {
        LogcatLevel::ALL.into_iter().find(|level| level.letter() == letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: i8, level: LogcatLevel, tag: &str) -> LogLine {
        LogLine {
            time: jiff::civil::date(2024, 2, 11).at(16, 30, second, 123_000_000),
            pid: 1,
            level,
            tag: tag.to_owned(),
            message: "Server started on port 8080".to_owned(),
        }
    }

    #[test]
    fn a_line_reads_as_in_the_reference() {
        let text = line(0, LogcatLevel::Debug, "MCP:ServerService").to_string();
        assert_eq!(text, "02-11 16:30:00.123 D/MCP:ServerService: Server started on port 8080");
    }

    #[test]
    fn the_most_recent_fitting_lines_are_picked() {
        let lines = || (0..10).map(|second| line(second, LogcatLevel::Info, "a"));
        let query = LogQuery { lines: 3, ..LogQuery::default() };
        let logs = query.pick(lines(), Offset::UTC);
        assert!(logs.truncated);
        assert_eq!(logs.lines.first().map(|line| line.time.second()), Some(7));

        let nothing = LogQuery { tag: Some("b".to_owned()), ..LogQuery::default() };
        assert_eq!(nothing.pick(lines(), Offset::UTC), Logs::default());
        let nothing = LogQuery { level: LogcatLevel::Warning, ..LogQuery::default() };
        assert_eq!(nothing.pick(lines(), Offset::UTC), Logs::default());
    }

    #[test]
    fn times_with_and_without_a_zone_are_understood() {
        let offset = Offset::constant(2);
        let query = |since: &str| LogQuery { since: LogTime::parse(since), ..LogQuery::default() };
        let line = line(5, LogcatLevel::Info, "a");
        assert!(query("2024-02-11T16:30:05").keeps(&line, offset));
        assert!(!query("2024-02-11T16:30:06").keeps(&line, offset));
        assert!(query("2024-02-11T14:30:05Z").keeps(&line, offset));
        assert!(!query("2024-02-11T14:30:06Z").keeps(&line, offset));
        assert!(!query("2024-02-11T16:30:05-02:00").keeps(&line, offset));
        assert_eq!(LogTime::parse("yesterday"), None);
    }
}
