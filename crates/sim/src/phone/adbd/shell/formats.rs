//! Where the form of each answer comes from.
//!
//! A virtual phone is only as accurate as its sources. Every command has a row here that names
//! its source: a recorded output, a document or source that describes it, or nothing but an assumption.

use std::fmt::Write;

/// What an answer was modelled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// Lines printed by real phones, collected from public tests and issues.
    Recorded(&'static str),
    /// Described by Android's source, or expected by a program that drives real phones with it.
    Described(&'static str),
    /// Platform knowledge that nobody has checked on a phone.
    Assumed,
}

/// One command of the shell and the origin of its answer.
pub struct CommandFormat {
    /// A line that can be run.
    pub line: &'static str,
    /// What every version's answer contains.
    pub holds: &'static str,
    pub source: AnswerSource,
}

use AnswerSource::{Assumed, Described, Recorded};

const fn row(line: &'static str, holds: &'static str, source: AnswerSource) -> CommandFormat {
    CommandFormat { line, holds, source }
}

const FOCUS: AnswerSource = Recorded(
    "lines in python-androidtv (tests/test_constants.py), appium-adb (test/unit/apk-utils.spec.ts), openatx/uiautomator2#952 and kaeawc/auto-mobile#6078",
);
/// Answers of Android's own classes, in `android/recorded`.
const CLASSES: AnswerSource = Recorded("Android's own shell commands, 12 to 16 (android/recorded)");

/// Every command, most used first.
pub const FORMATS: &[CommandFormat] = &[
    row(
        "uiautomator dump /dev/tty",
        "UI hierchary dumped to: /dev/tty",
        Described("AOSP DumpCommand; dumps in dtmilano/AndroidViewClient (tests/comm/dtmilano/android/mocks.py)"),
    ),
    row("uiautomator dump", "UI hierchary dumped to: /sdcard/window_dump.xml", Described("AOSP DumpCommand")),
    row("uiautomator help", "Usage: uiautomator", Assumed),
    row("screencap | head -c 4", "8", Assumed),
    row("screencap -p | head -c 4", "PNG", Described("mobile-mcp and adbutils take it as it is")),
    row("wm size", "Physical size: 1080x2400", Described("patterns of adbutils")),
    row("wm density", "Physical density: 420", Described("patterns of mobile-mcp")),
    row("wm dismiss-keyguard; echo done", "done", Assumed),
    row("wm user-rotation", "free", Assumed),
    row("dumpsys window | grep mCurrentFocus", "mCurrentFocus=Window{", FOCUS),
    row("dumpsys window | grep mFocusedApp", "u0 com.android.launcher3/", FOCUS),
    row("dumpsys window policy", "showing=false", Described("appium-adb lock helpers")),
    row("dumpsys window displays", "cur=1080x2400", Assumed),
    row("dumpsys activity activities | grep ResumedActivity", "ResumedActivity", FOCUS),
    row("dumpsys activity top", "ACTIVITY ", Assumed),
    row("dumpsys activity recents", "RECENT TASKS", Recorded("ashishb/adb-enhanced#4, Android 8; later ones assumed")),
    row("dumpsys input", "orientation=0", Recorded("dumpsys_input.txt in Jseca666/scrcpy; Android 9 assumed")),
    row("dumpsys display", "orientation=0", Described("patterns of mobile-mcp and adbutils")),
    row("dumpsys power", "mWakefulness=Awake", Assumed),
    row("svc power stayon true; dumpsys power | grep mStayOn", "mStayOn=true", Assumed),
    row(
        "dumpsys notification --noredact",
        "android.title=String (Reminder)",
        Described("AOSP NotificationRecord.dumpNotification"),
    ),
    row("cmd media_session volume --get --stream 3", "volume is 6 in range [0..15]", Described("AOSP VolumeCtrl")),
    row("logcat -b events -d -s am_crash; echo done", "done", Described("AOSP EventLogTags of the activity manager")),
    row(
        "screenrecord --time-limit 1 /sdcard/v.mp4; head -c 8 /sdcard/v.mp4 | tail -c 4",
        "ftyp",
        Described("AOSP screenrecord; its pictures are H.264, here JPEG"),
    ),
    row(
        "cmd package install-create",
        "Success: created install session [",
        Described("AOSP PackageManagerShellCommand"),
    ),
    row("readlink -f /sdcard/Download", "/storage/emulated/0/Download", Assumed),
    row("ip -o addr show", "inet 10.0.2.16/24", Assumed),
    row("dumpsys input_method", "mInputShown=false", Assumed),
    row("dumpsys package dev.sinew.notes", "versionName=1.0", Described("patterns of adbutils")),
    row("dumpsys battery", "level: 87", Assumed),
    row("dumpsys SurfaceFlinger --display-id", "Display 4619827259835644672 (HWC display 0)", Described("mobile-mcp")),
    row("dumpsys nonsense", "Can't find service: nonsense", Assumed),
    row("input tap 5 5; echo $?", "0", Described("AOSP InputShellCommand")),
    row("input swipe 5 5 5 5 600; echo $?", "0", Described("AOSP InputShellCommand")),
    row("input text 'gr\u{fc}n'", "Attempt to get length of null array", Described("AOSP sendText")),
    row("input keyevent KEYCODE_BACK; echo $?", "0", Described("AOSP InputShellCommand")),
    row("input nonsense", "Unknown command: nonsense", CLASSES),
    row("wm nonsense", "Unknown command: nonsense", CLASSES),
    row("am force-stop", "Argument expected after", CLASSES),
    row("pm path", "Argument expected after", CLASSES),
    row("logcat -d -t 1", "--------- beginning of main", Assumed),
    row("logcat -d -v brief", "I/SystemServer( 1203): ", Described("patterns of adbutils")),
    row("am start -W -n com.android.settings/.Settings", "Complete", Assumed),
    row("am start -n no.such/.App", "does not exist.", Assumed),
    row("am start -a android.intent.action.VIEW -d tel:5", "unable to resolve Intent", Assumed),
    row("am broadcast -a a.b.C", "Broadcast completed: result=0", Described("AOSP ActivityManagerShellCommand")),
    row("am force-stop com.android.settings; echo $?", "0", Assumed),
    row("am get-current-user", "0", Assumed),
    row("pm list packages -3", "package:dev.sinew.notes", Described("patterns of mobile-mcp and adbutils")),
    row("pm path dev.sinew.notes", "package:/data/app/", Described("patterns of adbutils")),
    row("pm list features", "feature:", Described("patterns of mobile-mcp")),
    row(
        "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER",
        "activities found:",
        Described("AOSP PackageManagerShellCommand"),
    ),
    row(
        "cmd package resolve-activity --brief dev.sinew.notes",
        "dev.sinew.notes/.NotesActivity",
        Described("AOSP PackageManagerShellCommand"),
    ),
    row("cmd statusbar expand-notifications; echo $?", "0", Assumed),
    row(
        "cmd clipboard get-primary-clip",
        "No shell command implementation.",
        Described("AOSP ClipboardService has no shell command"),
    ),
    row("cmd nonsense", "cmd: Can't find service: nonsense", Assumed),
    row("cmd uimode night no", "Night mode: no", Assumed),
    row("monkey -p dev.sinew.notes -c android.intent.category.LAUNCHER 1", "Events injected: 1", Assumed),
    row("monkey -p no.such.app 1", "No activities found to run, monkey aborted.", Assumed),
    row("getprop ro.product.manufacturer", "Sinew", Assumed),
    row("settings get global wifi_on", "1", Assumed),
    row("settings get global nonsense", "null", Assumed),
    row("content query --uri content://settings/system", "Row: 0 ", Assumed),
    row(
        "content call --uri content://no.such --method x",
        "Could not find provider: no.such",
        Described("AOSP Content"),
    ),
    row("ime list -s", "com.android.inputmethod.latin/.LatinIME", Assumed),
    row("svc wifi enable; echo $?", "0", Assumed),
    row("ps -A -o PID,NAME", "com.android.systemui", Assumed),
    row("ps -e", "u0_a60", Described("patterns of mobile-mcp")),
    row("pkill -INT -f '^no-such '; echo $?", "1", Described("toybox pkill")),
    row("pidof com.android.systemui", "1711", Assumed),
    row("ls /sdcard", "Download", Assumed),
    row("cat /sdcard/Download/readme.txt | grep -c .", "1", Assumed),
    row("stat -c %s /sdcard/Download/readme.txt", "63", Assumed),
    row("date +%z", "+0000", Assumed),
    row("id", "uid=2000(shell)", Assumed),
    row("nonsense", "not found", Assumed),
];

/// The table for a document.
pub fn to_markdown() -> String {
    let mut out = "| command | modelled on |\n|---|---|\n".to_owned();
    for format in FORMATS {
        let source = match format.source {
            Recorded(what) => format!("recorded: {what}"),
            Described(what) => format!("described: {what}"),
            Assumed => "assumed".to_owned(),
        };
        let _ = writeln!(out, "| `{}` | {source} |", format.line.replace('|', "\\|"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Shell;
    use super::*;
    use crate::phone::{Android, Handset, PhoneClock, PhoneSetup};

    #[tokio::test]
    async fn every_row_holds_on_every_version() {
        for android in Android::ALL {
            for format in FORMATS {
                let handset = Handset::new(PhoneSetup { android, ..PhoneSetup::default() }, PhoneClock::Virtual);
                let mut shell = Shell::new(handset);
                let (out, err, _) = shell.run(format.line).await;
                let text = String::from_utf8_lossy(&out) + String::from_utf8_lossy(&err);
                assert!(text.contains(format.holds), "Android {android}: {}: {text}", format.line);
            }
        }
    }

    #[test]
    fn every_command_that_answers_in_a_form_of_its_own_has_a_row() {
        let commands = [
            "uiautomator",
            "screencap",
            "wm",
            "dumpsys",
            "input",
            "logcat",
            "am",
            "pm",
            "cmd",
            "monkey",
            "getprop",
            "settings",
            "content",
            "ime",
            "svc",
            "ps",
            "pidof",
            "ls",
            "cat",
            "stat",
            "date",
            "id",
        ];
        for command in commands {
            let named = |format: &CommandFormat| format.line.split([' ', ';']).next() == Some(command);
            assert!(FORMATS.iter().any(named), "{command}");
        }
    }

    #[test]
    fn the_table_says_of_each_row_where_it_comes_from() {
        let table = to_markdown();
        assert_eq!(table.lines().count(), FORMATS.len() + 2);
        assert!(table.contains("| `dumpsys power` | assumed |"));
    }
}
