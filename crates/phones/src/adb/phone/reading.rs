//! Reads the screen and the log with `uiautomator`, `screencap`, `dumpsys` and `logcat`.

use std::time::Duration;

use jiff::tz::Offset;

use super::{AGENT, AdbPhone};
use crate::adb::awake;
use crate::adb::command::ShellCommand;
use crate::adb::parse;
use crate::adb::shell::CommandLimits;
use crate::logs::{LogQuery, LogcatLevel, Logs};
use crate::phone::{Image, PhoneError, Screen};
use crate::tree::{Tree, xml};

impl AdbPhone {
    pub(super) async fn read_tree(&self) -> Result<Tree, PhoneError> {
        let _one = self.dumping.lock().await;
        let path = &self.dump_path;
        // The old file goes first: a dump that fails would otherwise serve it once more. A dump whose caller has left
        // still ends, so the shell waits for it and removes the file.
        let remove = ShellCommand::new("rm -f").arg(path);
        let command = ShellCommand::new("uiautomator dump")
            .arg(path)
            .after(remove.clone())
            .after(ShellCommand::new("trap").arg(remove.line()).literal("HUP TERM"))
            .then(ShellCommand::new("cat").arg(path))
            .then(remove);
        // 25 s: the command itself gives up after ten seconds of movement. 32 MB: larger than any dump.
        let limits = CommandLimits::seconds(25).megabytes(32);
        let mut last = String::new();
        for attempt in 0..3 {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            let output = self.run(&command, limits).await?;
            let text = String::from_utf8_lossy(&output.stdout);
            if let Ok(tree) = xml::parse(&text) {
                return Ok(tree);
            }
            last = output.text();
            if last.contains("could not get idle state") {
                let what = "reading a screen that keeps moving";
                return Err(PhoneError::unsupported(
                    what,
                    format!("wait for the movement to end, take a screenshot, or know that {AGENT}"),
                ));
            }
        }
        let serial = &self.about.serial;
        if last.contains("already registered") || last.contains("Killed") {
            let message = format!(
                "another program reads the screen of phone {serial} (Appium, uiautomator2 …); stop it and try again"
            );
            return Err(PhoneError::Failed(message));
        }
        if last.contains("null root node") {
            if let Ok(Screen { awake: false, .. }) = self.read_screen().await {
                return Err(awake::asleep(&self.about.serial));
            }
            return Ok(Tree::default());
        }
        Err(self.failed(&ShellCommand::new("uiautomator"), &last))
    }

    pub(super) async fn take_screenshot(&self) -> Result<Image, PhoneError> {
        // 64 MB: an uncompressed 4K picture.
        let output = self.run(&ShellCommand::new("screencap -p"), CommandLimits::seconds(15).megabytes(64)).await?;
        // Some versions print a warning about several displays before the picture.
        const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
        let start = output.stdout.windows(SIGNATURE.len()).take(4096).position(|part| part == SIGNATURE);
        if let Some(start) = start {
            return Ok(Image::Png(output.stdout[start..].to_vec()));
        }
        let text = output.text();
        let serial = &self.about.serial;
        match () {
            () if ["apturing failed", "ermission", "ecure"].iter().any(|sign| text.contains(sign)) => {
                Err(PhoneError::Denied(format!(
                    "phone {serial} refuses to be captured: a secure window is on its screen, or its vendor forbids it; the tree may still be readable"
                )))
            }
            () if text.trim().is_empty() => Err(PhoneError::Failed(format!("phone {serial} gave an empty screenshot"))),
            () => Err(self.failed(&ShellCommand::new("screencap"), &text)),
        }
    }

    pub(super) async fn read_screen(&self) -> Result<Screen, PhoneError> {
        let command = ShellCommand::new("wm size")
            .then(ShellCommand::new("wm density"))
            .then(ShellCommand::new("dumpsys input | grep -E 'SurfaceOrientation|orientation='"))
            .then(ShellCommand::new("dumpsys power | grep mWakefulness="))
            .then(ShellCommand::new(
                "dumpsys window | grep -E 'mShowingLockscreen=|mDreamingLockscreen=|isStatusBarKeyguard=|showing='",
            ));
        let text = self.ask(&command).await?;
        parse::screen(&text).ok_or_else(|| self.failed(&ShellCommand::new("wm"), &text))
    }

    pub(super) async fn read_logs(&self, query: &LogQuery) -> Result<Logs, PhoneError> {
        let filtered = query.level > LogcatLevel::Verbose
            || query.tag.is_some()
            || query.package.is_some()
            || query.until.is_some();
        let zone = ShellCommand::new("date +%z");
        let offset = match query.since {
            Some(_) => parse::offset(&self.ask(&zone).await?).unwrap_or(Offset::UTC),
            None => Offset::UTC,
        };
        // Logcat counts lines before it filters them, so a filtered view reads the long tail.
        let count = if filtered { 20_000 } else { query.lines + 1 };
        let logcat = ShellCommand::new("logcat -d -v threadtime -v year");
        let logcat = match query.since {
            Some(since) => logcat.arg("-T").arg(since.at(offset).strftime("%Y-%m-%d %H:%M:%S.%3f")),
            None => logcat.arg("-t").arg(count),
        };
        let logcat = logcat.arg(format!("*:{}", query.level.letter()));
        let mut command = zone.then(logcat);
        if query.package.is_some() {
            command = ShellCommand::new("ps -A -o PID,NAME").then(command);
        }
        let output = self.run(&command, CommandLimits::seconds(20).megabytes(64)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let offset = text.lines().find_map(parse::offset).unwrap_or(offset);
        let pids = query.package.as_deref().map(|package| parse::pids(&text, package));
        let lines = text.lines().filter_map(parse::log_line);
        let lines: Vec<_> = lines.filter(|line| pids.as_ref().is_none_or(|pids| pids.contains(&line.pid))).collect();
        if lines.is_empty() && output.exit != 0 {
            let message = String::from_utf8_lossy(&output.stderr).trim().chars().take(300).collect::<String>();
            return Err(PhoneError::Failed(format!("logcat command failed (exit {}): {message}", output.exit)));
        }
        Ok(query.pick(lines, offset))
    }
}
