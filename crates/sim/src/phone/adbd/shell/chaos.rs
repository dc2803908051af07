//! The shell survives any input.

use proptest::prelude::*;

use super::Shell;
use super::parse::parse;
use crate::phone::{Handset, PhoneClock, PhoneSetup};

/// Words that commands know, so that chance gets past the first check.
const WORDS: &[&str] = &[
    "input",
    "tap",
    "swipe",
    "text",
    "keyevent",
    "motionevent",
    "DOWN",
    "UP",
    "wm",
    "size",
    "density",
    "dumpsys",
    "window",
    "activity",
    "am",
    "start",
    "-n",
    "-a",
    "-d",
    "pm",
    "list",
    "packages",
    "-f",
    "logcat",
    "for f in",
    "while",
    "if",
    "then",
    "do",
    "done",
    "fi",
    "$((",
    "))",
    "sed",
    "s/a/b/",
    "awk",
    "{print $1}",
    "find",
    "-name",
    "-t",
    "-T",
    "-v",
    "settings",
    "put",
    "get",
    "system",
    "content",
    "query",
    "--uri",
    "content://settings/system",
    "grep",
    "-E",
    "-m",
    "head",
    "-c",
    "tail",
    "-n",
    "dd",
    "bs=",
    "bs=0",
    "skip=99999999999",
    "if=/sdcard/Download/readme.txt",
    "stat",
    "-c",
    "date",
    "+%Q",
    "cmd",
    "package",
    "|",
    "&&",
    ";",
    ">",
    "/sdcard/x",
    "$(",
    ")",
    "'",
    "\"",
    "-1",
    "0",
    "99999999999999999999",
    "NaN",
    "1e39",
    "(",
    "[",
    "*",
    "é",
    "user_rotation",
    "uiautomator",
    "dump",
    "/dev/tty",
    "cut",
    "tr",
    "sort",
    "monkey",
    "-p",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_line_breaks_the_parser(line in "\\PC{0,200}") {
        let _ = parse(&line);
    }

    #[test]
    fn no_row_of_words_breaks_the_shell(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..10)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let handset = Handset::new(PhoneSetup::default(), PhoneClock::Virtual);
        let mut shell = Shell::new(handset.clone());
        runtime.block_on(shell.run(&words.join(" ")));
        // The phone still works.
        let (out, ..) = runtime.block_on(shell.run("exec echo well"));
        prop_assert!(out.is_empty() || out == b"well\n");
        handset.with(|machine| machine.tree());
    }
}
