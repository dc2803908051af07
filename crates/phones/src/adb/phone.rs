//! A phone made of the commands that every Android has.
//!
//! Many of them exit with success when they fail, so their text is judged. What they cannot do at
//! all is refused with the remedy before anything is done. Gestures and text are in [`hands`].

mod hands;

use std::time::Duration;

use jiff::tz::Offset;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::command::Command;
use super::parse;
use super::server::{AdbError, Server, Transport};
use super::shell::{Limits, Output};
use crate::logs::{LogQuery, Logs};
use crate::phone::{About, App, Capabilities, Foreground, Image, Phone, PhoneError, Screen, Work};
use crate::touch::{Key, Stroke};
use crate::tree::{Node, Tree, xml};

/// One phone through the adb server.
pub struct AdbPhone {
    transport: Transport,
    about: About,
    /// Android allows one reader of the tree at a time.
    dumping: Mutex<()>,
    /// When the display was last seen to be on.
    awake: std::sync::Mutex<Option<Instant>>,
    /// Where dumps are written on the phone; its own for each gateway process.
    dump_path: String,
}

const AGENT: &str = "it needs Sinew's agent on the phone, which is not running";

impl AdbPhone {
    /// Asks the phone who it is. Changes nothing on it.
    pub async fn open(server: &Server, serial: &str) -> Result<AdbPhone, AdbError> {
        let features = server.features(serial).await?;
        let transport = server.transport(serial, features.iter().any(|feature| feature == "shell_v2"));
        let names = ["ro.product.manufacturer", "ro.product.model", "ro.build.version.release", "ro.build.version.sdk"];
        let questions = names.map(|name| Command::new("getprop").arg(name)).into_iter().reduce(Command::then);
        let questions = questions.unwrap_or_else(|| Command::new("getprop"));
        let output = transport.run(&questions, Limits::seconds(10)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        // One line each, empty where the phone does not know.
        let mut lines = text.lines().map(|line| line.trim().chars().take(100).collect::<String>());
        let [manufacturer, model, android, sdk] = names.map(|_| lines.next().unwrap_or_default());
        let about =
            About { serial: serial.to_owned(), manufacturer, model, android, sdk: sdk.parse().unwrap_or_default() };
        let dump_path = format!("/data/local/tmp/sinew-{}.xml", std::process::id());
        Ok(AdbPhone { transport, about, dumping: Mutex::default(), awake: std::sync::Mutex::default(), dump_path })
    }

    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    async fn run(&self, command: &Command, limits: Limits) -> Result<Output, PhoneError> {
        Ok(self.transport.run(command, limits).await?)
    }

    /// Runs a command whose text is its answer.
    async fn ask(&self, command: &Command) -> Result<String, PhoneError> {
        Ok(self.run(command, Limits::seconds(15).megabytes(4)).await?.text())
    }

    /// Runs a command that should say nothing.
    async fn act(&self, command: &Command, limits: Limits) -> Result<(), PhoneError> {
        let output = self.run(command, limits).await?;
        let text = output.text();
        match complaint(&text) {
            Some(Complaint::Forbidden) => Err(PhoneError::Denied(format!(
                "phone {} forbids input from adb: turn on \"USB debugging (Security settings)\" or \"Disable permission monitoring\" in its developer options",
                self.about.serial
            ))),
            Some(Complaint::Failed) => Err(self.failed(command, &text)),
            None if output.exit != 0 => Err(self.failed(command, &text)),
            None => Ok(()),
        }
    }

    fn failed(&self, command: &Command, text: &str) -> PhoneError {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
        let line: String = line.chars().take(300).collect();
        PhoneError::Failed(format!("`{}` failed on phone {}: {line}", command.name(), self.about.serial))
    }

    async fn read_tree(&self) -> Result<Tree, PhoneError> {
        let _one = self.dumping.lock().await;
        let path = &self.dump_path;
        // The old file goes first: a dump that fails would otherwise serve it once more.
        let command = Command::new("rm -f")
            .arg(path)
            .then(Command::new("uiautomator dump").arg(path))
            .then(Command::new("cat").arg(path))
            .then(Command::new("rm -f").arg(path));
        // 25 s: the command itself gives up after ten seconds of movement. 32 MB: larger than any dump.
        let limits = Limits::seconds(25).megabytes(32);
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
                return Err(self.asleep());
            }
            return Ok(Tree::default());
        }
        Err(self.failed(&Command::new("uiautomator"), &last))
    }

    fn asleep(&self) -> PhoneError {
        PhoneError::Denied(format!(
            "the display of phone {} is off, so it shows and takes nothing; wake it with press_key WAKEUP",
            self.about.serial
        ))
    }

    async fn take_screenshot(&self) -> Result<Image, PhoneError> {
        // 64 MB: an uncompressed 4K picture.
        let output = self.run(&Command::new("screencap -p"), Limits::seconds(15).megabytes(64)).await?;
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
            () => Err(self.failed(&Command::new("screencap"), &text)),
        }
    }

    async fn read_screen(&self) -> Result<Screen, PhoneError> {
        let command = Command::new("wm size")
            .then(Command::new("wm density"))
            .then(Command::new("dumpsys input | grep -E 'SurfaceOrientation|orientation='"))
            .then(Command::new("dumpsys power | grep mWakefulness="))
            .then(Command::new(
                "dumpsys window | grep -E 'mShowingLockscreen=|mDreamingLockscreen=|isStatusBarKeyguard=|showing='",
            ));
        let text = self.ask(&command).await?;
        let screen = parse::screen(&text).ok_or_else(|| self.failed(&Command::new("wm"), &text))?;
        if screen.awake {
            *self.awake.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Instant::now());
        }
        Ok(screen)
    }

    /// Refuses input to a display that is off, where it would vanish without a word. What was seen
    /// within five seconds is believed, so that a row of taps costs one question.
    async fn require_awake(&self) -> Result<(), PhoneError> {
        let seen = *self.awake.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.is_some_and(|seen| seen.elapsed() < Duration::from_secs(5)) {
            return Ok(());
        }
        let text = self.ask(&Command::new("dumpsys power | grep mWakefulness=")).await?;
        if text.contains("=Asleep") || text.contains("=Dozing") {
            return Err(self.asleep());
        }
        *self.awake.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }

    async fn read_logs(&self, query: &LogQuery) -> Result<Logs, PhoneError> {
        let filtered = query.level > crate::logs::LogLevel::Verbose
            || query.tag.is_some()
            || query.package.is_some()
            || query.until.is_some();
        let zone = Command::new("date +%z");
        let offset = match query.since {
            Some(_) => parse::offset(&self.ask(&zone).await?).unwrap_or(Offset::UTC),
            None => Offset::UTC,
        };
        // Logcat counts lines before it filters them, so a filtered view reads the long tail.
        let count = if filtered { 20_000 } else { query.lines + 1 };
        let logcat = Command::new("logcat -d -v threadtime -v year");
        let logcat = match query.since {
            Some(since) => logcat.arg("-T").arg(since.at(offset).strftime("%Y-%m-%d %H:%M:%S.%3f")),
            None => logcat.arg("-t").arg(count),
        };
        let logcat = logcat.arg(format!("*:{}", query.level.letter()));
        let mut command = zone.then(logcat);
        if query.package.is_some() {
            command = Command::new("ps -A -o PID,NAME").then(command);
        }
        let output = self.run(&command, Limits::seconds(20).megabytes(64)).await?;
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

    async fn start(&self, command: Command) -> Result<(), PhoneError> {
        let output = self.run(&command, Limits::seconds(20)).await?;
        let text = output.text();
        let wrong = text.lines().map(str::trim).find(|line| line.starts_with("Error") || line.contains("Exception"));
        match wrong {
            Some(line) => Err(self.failed(&command, line)),
            None if output.exit != 0 => Err(self.failed(&command, &text)),
            None => Ok(()),
        }
    }

    async fn start_app(&self, package: &str) -> Result<(), PhoneError> {
        let resolve = Command::new(
            "cmd package resolve-activity --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER",
        );
        let text = self.ask(&resolve.arg(package)).await?;
        let activity = text.lines().map(str::trim).rfind(|line| line.starts_with(package) && line.contains('/'));
        let Some(activity) = activity else {
            let serial = &self.about.serial;
            return Err(PhoneError::Invalid(format!(
                "phone {serial} has no app '{package}' that can be opened; list_apps shows those it has"
            )));
        };
        let start = Command::new("am start -a android.intent.action.MAIN -c android.intent.category.LAUNCHER -n");
        self.start(start.arg(activity)).await
    }
}

enum Complaint {
    Forbidden,
    Failed,
}

/// What commands print when they fail, whatever they exit with.
fn complaint(text: &str) -> Option<Complaint> {
    match () {
        () if text.contains("INJECT_EVENTS") || text.contains("SecurityException") => Some(Complaint::Forbidden),
        () if text.contains("Exception") || text.contains("Error:") || text.contains("not found") => {
            Some(Complaint::Failed)
        }
        () => None,
    }
}

impl Phone for AdbPhone {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tiers: vec!["shell".into()], ..Capabilities::default() }
    }

    fn tree(&self) -> Work<'_, Tree> {
        Box::pin(self.read_tree())
    }

    fn screenshot(&self) -> Work<'_, Image> {
        Box::pin(self.take_screenshot())
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        Box::pin(self.play(strokes))
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        Box::pin(self.press(key))
    }

    fn set_text<'a>(&'a self, node: &'a Node, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.fill(node, text))
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.write(text))
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        Box::pin(std::future::ready(Err(PhoneError::unsupported("reading the clipboard", AGENT))))
    }

    fn set_clipboard<'a>(&'a self, _: &'a str) -> Work<'a, ()> {
        Box::pin(std::future::ready(Err(PhoneError::unsupported("setting the clipboard", AGENT))))
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        Box::pin(async {
            let window = Command::new("dumpsys window | grep -E 'mCurrentFocus=|mFocusedApp='");
            let resumed = Command::new("dumpsys activity activities | grep -E 'ResumedActivity|mFocusedActivity'");
            Ok(parse::foreground(&self.ask(&window.then(resumed)).await?))
        })
    }

    fn screen(&self) -> Work<'_, Screen> {
        Box::pin(self.read_screen())
    }

    fn logs<'a>(&'a self, query: &'a LogQuery) -> Work<'a, Logs> {
        Box::pin(self.read_logs(query))
    }

    fn apps(&self) -> Work<'_, Vec<App>> {
        Box::pin(async {
            let launchers = Command::new(
                "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER",
            );
            Ok(parse::apps(&self.ask(&launchers.then(Command::new("pm list packages -3"))).await?))
        })
    }

    fn open_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        Box::pin(self.start_app(package))
    }

    fn close_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        Box::pin(async move { self.act(&Command::new("am force-stop").arg(package), Limits::seconds(15)).await })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> Work<'a, ()> {
        Box::pin(self.start(Command::new("am start -a android.intent.action.VIEW -d").arg(url)))
    }
}
