//! Scripts as programs for phones send them: loops, conditions, sums, names of files, and the tools around them.

use super::Shell;
use crate::phone::{Android, Handset, PhoneClock, PhoneSetup};

async fn run_on(android: Android, line: &str) -> (String, String, u8) {
    let setup = PhoneSetup { android, ..PhoneSetup::default() };
    let (out, err, code) = Shell::new(Handset::new(setup, PhoneClock::Virtual)).run(line).await;
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned(), code)
}

async fn out(line: &str) -> String {
    let (out, err, _) = run_on(Android::V15, line).await;
    assert_eq!(err, "", "{line}");
    out
}

#[tokio::test]
async fn loops_conditions_and_sums_are_carried_out() {
    for (line, expect) in [
        ("for f in a 'b c' $(echo d e); do echo \"<$f>\"; done", "<a>\n<b c>\n<d>\n<e>\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); echo $i; done", "1\n2\n3\n"),
        ("until false; do echo once; exit; done", "once\n"),
        ("if [ -f /none ]; then echo yes; elif true; then echo other; else echo no; fi", "other\n"),
        ("if false; then echo yes; else echo no; fi | tr n m", "mo\n"),
        ("echo $((2 * (3 + 4) % 5)) \"$((1 == 1))\"", "4 1\n"),
        ("x='a  b'; echo $x \"$x\"", "a b a  b\n"),
        ("for n in 1 2; do for m in 3 4; do echo $n$m; done; done | wc -l", "4\n"),
    ] {
        assert_eq!(out(line).await, expect, "{line}");
    }
}

#[tokio::test]
async fn files_are_found_by_patterns() {
    let make = "cd /sdcard; mkdir -p t; for n in a.txt b.txt c.log; do echo $n > t/$n; done; ";
    for (line, expect) in [
        ("echo t/*.txt 't/*.txt' t/*.none", "t/a.txt t/b.txt t/*.txt t/*.none\n"),
        ("cd t; cat ?.log", "c.log\n"),
        ("find t -name '*.log'", "t/c.log\n"),
        ("find /sdcard/t -type f | sed -n '$p'", "/sdcard/t/c.log\n"),
        ("cat t/*.txt | sed 's/txt/md/' | awk -F. '{print $2, NR}'", "md 1\nmd 2\n"),
        ("cat /dev/null; cp /dev/null t/d; wc -c t/d", "0\n"),
    ] {
        assert_eq!(out(&format!("{make}{line}")).await, expect, "{line}");
    }
}

#[tokio::test]
async fn a_loop_without_end_ends() {
    let (_, err, code) = run_on(Android::V15, "while true; do :; done").await;
    assert_eq!((err.contains("does not end"), code), (true, 1), "{err}");
}

#[tokio::test]
async fn wrong_commands_are_answered_as_android_does() {
    let said = async |line: &str| {
        let (out, err, code) = run_on(Android::V15, line).await;
        (format!("{out}{err}"), code)
    };
    for (line, part, exit) in [
        ("input nonsense", "Unknown command: nonsense", 0),
        ("input tap 5", "IllegalArgumentException: Argument expected after \"5\"", 255),
        ("input", "The sources are:", 0),
        ("am start", "No intent supplied", 255),
        ("am start -a android.intent.action.VIEW -d tel:5", "dat=tel:x", 1),
        ("am force-stop", "Argument expected after \"force-stop\"", 255),
        ("wm nonsense", "Unknown command: nonsense", 255),
    ] {
        let (text, code) = said(line).await;
        assert!(text.contains(part) && code == exit, "{line}: {text} {code}");
    }
}
