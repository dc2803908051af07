//! `logcat`: the phone's log, in the forms people ask for.

use std::time::Duration;

use jiff::civil::DateTime;
use sinew_phones::LogcatLevel;

use super::super::connection::Closed;
use super::{Io, Shell};
use crate::phone::log::LogEntry;

/// How often a log that is followed is looked at.
const GLANCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct LogFilter<'a> {
    dump: bool,
    tail: Option<usize>,
    /// Milliseconds since 1970.
    since: Option<i64>,
    formats: Vec<&'a str>,
    pid: Option<u32>,
    silent: bool,
    /// `-b`: the main log, that of events, or both.
    main: bool,
    events: bool,
    /// Tags with the least level that counts; `*` for all others.
    filters: Vec<(&'a str, Option<LogcatLevel>)>,
}

impl Shell {
    pub(super) async fn logcat(&mut self, args: &[&str], io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        if args.iter().any(|arg| matches!(*arg, "-c" | "--clear")) {
            self.handset.with(|machine| machine.log.clear());
            return Ok(0);
        }
        if args.contains(&"-g") {
            io.line("main: ring buffer is 256 KiB (4 KiB consumed), max entry is 5120 B, max payload is 4068 B");
            return Ok(0);
        }
        let now = self.handset.with(|machine| machine.epoch());
        let wanted = match LogFilter::read(args, now) {
            Ok(wanted) => wanted,
            Err(trouble) => {
                io.error(trouble);
                return Ok(1);
            }
        };
        io.line("--------- beginning of main");
        let mut seen = self.handset.with(|machine| {
            let entries: Vec<&LogEntry> = machine.log.entries().collect();
            // The tail is counted before anything is filtered, as the real one does.
            let first = wanted.tail.map_or(0, |tail| entries.len().saturating_sub(tail));
            entries[first..].iter().filter(|entry| wanted.keeps(entry)).for_each(|entry| io.line(wanted.line(entry)));
            entries.len()
        });
        // Without a listener there is nobody to follow for.
        while !wanted.dump && io.live.is_some() {
            io.flush().await?;
            tokio::time::sleep(GLANCE).await;
            seen = self.handset.with(|machine| {
                let total = machine.log.entries().len();
                let fresh = machine.log.entries().skip(seen.min(total));
                fresh.filter(|entry| wanted.keeps(entry)).for_each(|entry| io.line(wanted.line(entry)));
                total
            });
        }
        Ok(0)
    }
}

impl<'a> LogFilter<'a> {
    fn read(args: &[&'a str], now: i64) -> Result<LogFilter<'a>, String> {
        let mut wanted = LogFilter { main: true, ..LogFilter::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().copied().unwrap_or_default();
            match *arg {
                "-d" => wanted.dump = true,
                "-t" | "-T" => {
                    wanted.dump |= *arg == "-t";
                    let text = value();
                    match text.parse::<usize>() {
                        Ok(lines) => wanted.tail = Some(lines),
                        Err(_) => {
                            wanted.since = Some(
                                moment(text, now)
                                    .ok_or(format!("logcat: -{} \"{text}\" not in time format", &arg[1..]))?,
                            );
                        }
                    }
                }
                "-v" => wanted.formats.extend(value().split(',')),
                "-b" => {
                    let buffers: Vec<&str> = value().split(',').collect();
                    wanted.events = buffers.iter().any(|name| matches!(*name, "events" | "all"));
                    wanted.main = buffers.iter().any(|name| *name != "events");
                }
                "-e" | "-m" => drop(value()),
                "--pid" => wanted.pid = value().parse().ok(),
                "-s" => wanted.silent = true,
                long if long.starts_with("--pid=") => wanted.pid = long[6..].parse().ok(),
                long if long.starts_with("-v") => wanted.formats.extend(long[2..].split(',')),
                option if option.starts_with('-') => {}
                filter => {
                    let (tag, level) = filter.rsplit_once(':').unwrap_or((filter, "V"));
                    let letter = level.chars().next().unwrap_or('V').to_ascii_uppercase();
                    wanted.filters.push((tag, LogcatLevel::from_letter(letter)));
                }
            }
        }
        Ok(wanted)
    }

    fn keeps(&self, entry: &LogEntry) -> bool {
        let rule =
            self.filters.iter().find(|(tag, _)| *tag == entry.tag).or(self.filters.iter().find(|(tag, _)| *tag == "*"));
        let loud = match rule {
            Some((_, level)) => level.is_some_and(|least| entry.level >= least),
            None => !self.silent || self.filters.is_empty(),
        };
        let is_kept = if entry.is_event() { self.events } else { self.main };
        is_kept
            && loud
            && self.pid.is_none_or(|pid| pid == entry.pid)
            && self.since.is_none_or(|since| entry.at >= since)
    }

    fn line(&self, entry: &LogEntry) -> String {
        let has = |name: &str| self.formats.contains(&name);
        let time = entry.time();
        let date = if has("year") { "%Y-%m-%d %H:%M:%S" } else { "%m-%d %H:%M:%S" };
        let millis = entry.at.rem_euclid(1000);
        let mut stamp = match has("epoch") {
            true => format!("{}.{millis:03}", entry.at.div_euclid(1000)),
            false => format!("{}.{millis:03}", time.strftime(date)),
        };
        if has("zone") || has("UTC") {
            stamp.push_str(" +0000");
        }
        let (level, tag, message) = (entry.level.letter(), &entry.tag, &entry.message);
        match () {
            () if has("raw") => message.clone(),
            () if has("brief") => format!("{level}/{tag:<8}({:>5}): {message}", entry.pid),
            () if has("tag") => format!("{level}/{tag:<8}: {message}"),
            () if has("process") => format!("{level}({:>5}) {message}  ({tag})", entry.pid),
            () if has("time") => format!("{stamp} {level}/{tag:<8}({:>5}): {message}", entry.pid),
            () if has("long") => format!("[ {stamp} {:>5}:{:>5} {level}/{tag} ]\n{message}\n", entry.pid, entry.tid),
            () => format!("{stamp} {:>5} {:>5} {level} {tag:<8}: {message}", entry.pid, entry.tid),
        }
    }
}

/// `MM-DD hh:mm:ss.mmm`, the same with a year, or seconds since 1970.
fn moment(text: &str, now: i64) -> Option<i64> {
    if let Some((seconds, part)) = text.split_once('.')
        && let (Ok(seconds), Ok(millis)) = (seconds.parse::<i64>(), part.get(..3)?.parse::<i64>())
    {
        return seconds.checked_mul(1000)?.checked_add(millis);
    }
    let year = crate::phone::log::wall_clock(now).year();
    let full = if text.as_bytes().get(2) == Some(&b'-') { format!("{year}-{text}") } else { text.to_owned() };
    let time: DateTime = full.replacen(' ', "T", 1).parse().ok()?;
    jiff::tz::Offset::UTC.to_timestamp(time).ok().map(|stamp| stamp.as_millisecond())
}
