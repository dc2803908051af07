//! Arbitrary text as what Android's commands print: the focus, the screen, the log, processes, apps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_phones::adb::parse;
use sinew_phones::{LogQuery, LogTime};

fuzz_target!(|text: &str| {
    let front = parse::foreground(text);
    assert_eq!(front.package.is_some(), front.activity.is_some());
    if let Some(screen) = parse::screen(text) {
        assert!(screen.rotation < 4);
    }
    let offset = text.lines().find_map(parse::offset).unwrap_or(jiff::tz::Offset::UTC);
    let since = text.lines().find_map(LogTime::parse);
    let query = LogQuery { lines: 3, since, ..LogQuery::default() };
    let logs = query.pick(text.lines().filter_map(parse::log_line), offset);
    assert!(logs.lines.len() <= 3);
    for line in &logs.lines {
        let _ = line.to_string();
    }
    let _ = parse::pids(text, "a.b");
    for app in parse::apps(text) {
        assert!(!app.package.is_empty());
    }
});
