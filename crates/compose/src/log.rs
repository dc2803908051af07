//! The log on standard error: its settings, and how it is written.
//!
//! Lines wait in a bounded queue for a thread of their own, so that a slow reader of standard error delays no call.
//! Of one kind of line, so many are written in a second; the others are counted.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Lines of one kind in a second. A person can follow no more, and a disk is not filled.
const LINES_A_SECOND: u64 = 20;
/// Lines that wait for standard error; more are counted and left out. Some seconds of a busy log.
const WAITING_LINES: usize = 1024;
/// How long the end of the program waits for a reader of standard error that has stopped reading.
const LAST_LINES: Duration = Duration::from_secs(1);
/// What lines are counted in.
const SECOND: Duration = Duration::from_secs(1);

sinew_tool::settings! {
    /// The log on standard error.
    pub struct LogConfig {
        /// How much is logged: `error`, `warn`, `info`, `debug`, `trace` or `off`, also for a part as in
        /// `info,sinew_boards=trace`. By default `info` for `sinew serve`, and `warn` for the other commands.
        /// `SINEW_LOG` overrides it.
        pub level: Option<String> = None, check check_level;
        /// `text` for people, `json` for programs: one object in each line.
        pub format: LogFormat = LogFormat::Text;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

sinew_tool::choices! { LogFormat { "text" => LogFormat::Text, "json" => LogFormat::Json } }

fn check_level(level: &Option<String>) -> Result<(), String> {
    match level {
        Some(level) if parse_levels(level).is_none() => {
            Err(format!("is `{level}`, which is not understood; expected {LEVELS}"))
        }
        _ => Ok(()),
    }
}

/// What a level may be, for messages.
pub const LEVELS: &str = "error, warn, info, debug, trace or off, also for a part as in info,sinew_boards=trace";

/// The levels that a text names. A word alone is a level: the reader of targets would take a misspelt one for the name
/// of a part, and silence the rest.
pub fn parse_levels(text: &str) -> Option<Targets> {
    let is_level = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    text.split(',').all(is_level).then(|| text.parse().ok()).flatten()
}

/// The running log. Dropping it writes the lines that wait.
pub struct RunningLog {
    queue: LineQueue,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

/// Starts the log of this process; only the first call has an effect.
pub fn start(levels: Targets, format: LogFormat, color: bool) -> io::Result<RunningLog> {
    let (lines, waiting) = sync_channel(WAITING_LINES);
    let queue = LineQueue { lines: lines.clone(), lost: Arc::default() };
    let limit = LineLimit { kinds: Arc::default(), lines };
    let (end, ended) = sync_channel(1);
    let (for_thread, lost) = (limit.clone(), queue.lost.clone());
    let thread = std::thread::Builder::new().name("sinew-log".to_owned()).spawn(move || {
        write_lines(&waiting, &for_thread, &lost);
        let _ = end.send(());
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(queue.clone()).with_ansi(color).with_target(false);
    let registry = tracing_subscriber::registry().with(levels);
    let _ = match format {
        LogFormat::Text => registry.with(lines.with_filter(limit)).try_init(),
        LogFormat::Json => {
            registry.with(lines.json().flatten_event(true).with_span_list(false).with_filter(limit)).try_init()
        }
    };
    Ok(RunningLog { queue, thread: Some(thread), ended })
}

impl Drop for RunningLog {
    fn drop(&mut self) {
        let _ = self.queue.lines.try_send(LogLine::End);
        if self.ended.recv_timeout(LAST_LINES).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

enum LogLine {
    Text(Vec<u8>),
    /// A line was left out, which is to be reported when its second is over.
    LeftOut,
    End,
}

fn write_lines(waiting: &Receiver<LogLine>, limit: &LineLimit, lost: &AtomicU64) {
    let write = |line| {
        if let LogLine::Text(text) = line {
            // Where standard error is closed there is nobody to tell.
            let _ = io::stderr().lock().write_all(&text);
        }
    };
    loop {
        let line = match limit.left_out_any() {
            true => waiting.recv_timeout(SECOND),
            false => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let is_last = matches!(line, Ok(LogLine::End) | Err(RecvTimeoutError::Disconnected));
        line.into_iter().for_each(write);
        for (line, more) in limit.take_left_out(is_last) {
            tracing::info!(more, "{line} ({more} more of these lines within a second)");
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lines = lost, "lines are missing in the log: standard error is read too slowly");
        }
        if is_last {
            waiting.try_iter().for_each(write);
            return;
        }
    }
}

/// Hands each line to the thread that writes it.
#[derive(Clone)]
struct LineQueue {
    lines: SyncSender<LogLine>,
    lost: Arc<AtomicU64>,
}

struct LineWriter<'a> {
    queue: &'a LineQueue,
    /// Errors are never left out: while the store cannot be written, they are the record of calls.
    may_wait: bool,
}

impl<'a> MakeWriter<'a> for LineQueue {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { queue: self, may_wait: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> LineWriter<'a> {
        LineWriter { queue: self, may_wait: *about.level() == Level::ERROR }
    }
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let queued = match self.may_wait {
            true => self.queue.lines.send(LogLine::Text(line.to_vec())).is_ok(),
            false => self.queue.lines.try_send(LogLine::Text(line.to_vec())).is_ok(),
        };
        if !queued {
            self.queue.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets so many lines of each kind pass in a second. A kind is a place in the source.
#[derive(Clone)]
struct LineLimit {
    kinds: Arc<Mutex<HashMap<Identifier, LineCount>>>,
    lines: SyncSender<LogLine>,
}

struct LineCount {
    began: Instant,
    passed: u64,
    left_out: u64,
    /// The text of the first line that was left out.
    text: String,
}

impl LineLimit {
    /// Whether one more line may pass; `text` gives what it says.
    fn pass(&self, kind: Identifier, now: Instant, text: impl FnOnce() -> String) -> bool {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || LineCount { began: now, passed: 0, left_out: 0, text: String::new() };
        let count = kinds.entry(kind).or_insert_with(new);
        if count.left_out == 0 && now.duration_since(count.began) >= SECOND {
            (count.began, count.passed) = (now, 0);
        }
        if count.left_out == 0 && count.passed < LINES_A_SECOND {
            count.passed += 1;
            return true;
        }
        count.left_out += 1;
        if count.left_out == 1 {
            count.text = text();
            // A full queue wakes the thread too.
            let _ = self.lines.try_send(LogLine::LeftOut);
        }
        false
    }

    fn left_out_any(&self) -> bool {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).values().any(|count| count.left_out > 0)
    }

    /// The lines that were left out in a second that is over, or in any, and how many they were.
    fn take_left_out(&self, any: bool) -> Vec<(String, u64)> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |count: &&mut LineCount| count.left_out > 0 && (any || count.began.elapsed() >= SECOND);
        let take = |count: &mut LineCount| (std::mem::take(&mut count.text), std::mem::take(&mut count.left_out));
        kinds.values_mut().filter(is_over).map(take).collect()
    }
}

impl<S: Subscriber> Filter<S> for LineLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        // Whoever asks for more than `info` wants all of it, and errors are never left out.
        let is_limited = matches!(*event.metadata().level(), Level::INFO | Level::WARN);
        !is_limited || self.pass(event.metadata().callsite(), Instant::now(), || message(event))
    }
}

/// What an event says, without its fields.
fn message(event: &Event<'_>) -> String {
    struct Message(String);
    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> (LineLimit, Receiver<LogLine>, Identifier) {
        let (lines, waiting) = sync_channel(8);
        let kind = tracing::callsite!(name: "line", kind: tracing::metadata::Kind::EVENT, fields: message);
        let kind = tracing::callsite::Callsite::metadata(kind).callsite();
        (LineLimit { kinds: Arc::default(), lines }, waiting, kind)
    }

    #[test]
    fn so_many_lines_of_a_kind_pass_in_a_second_and_the_others_are_counted() {
        let (limit, waiting, kind) = limit();
        let start = Instant::now();
        let passed = (0..100).filter(|_| limit.pass(kind.clone(), start, || "tool called".to_owned())).count();
        assert_eq!(passed as u64, LINES_A_SECOND);
        assert_eq!(waiting.try_iter().count(), 1, "the writer is told once");
        assert!(limit.left_out_any());
        assert_eq!(limit.take_left_out(true), [("tool called".to_owned(), 80)]);
        assert!(!limit.left_out_any());
        assert!(limit.pass(kind, start + SECOND, String::new), "a new second");
    }

    #[test]
    fn a_slow_reader_loses_lines_and_no_errors() {
        let (lines, waiting) = sync_channel(1);
        let queue = LineQueue { lines, lost: Arc::default() };
        for _ in 0..3 {
            queue.make_writer().write_all(b"line").expect("never fails");
        }
        assert_eq!(queue.lost.load(Ordering::Relaxed), 2);
        let writer = std::thread::spawn(move || LineWriter { queue: &queue, may_wait: true }.write_all(b"error"));
        let texts: Vec<Vec<u8>> = (0..2)
            .map(|_| match waiting.recv().expect("a line") {
                LogLine::Text(text) => text,
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(texts, [b"line".to_vec(), b"error".to_vec()]);
        writer.join().expect("ended").expect("never fails");
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        assert!(parse_levels("debug").is_some() && parse_levels("info,sinew_boards=trace").is_some());
        assert!(parse_levels("debgu").is_none() && parse_levels("info,boards").is_none());
    }
}
