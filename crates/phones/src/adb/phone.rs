//! A phone made of the commands that every Android has.
//!
//! Many of them exit with success when they fail, so their output is checked. What they cannot do at
//! all is refused with the remedy before anything is done. Reading is in [`reading`], touching
//! and typing in [`input`].

mod input;
mod reading;

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;

use super::awake;
use super::command::ShellCommand;
use super::held::HeldShell;
use super::parse;
use super::server::{AdbError, AdbServer, AdbTransport};
use super::shell::{CommandLimits, CommandOutput};
use crate::control::{FolderEntry, Held, PhoneShell, own_name};
use crate::logs::{LogQuery, Logs};
use crate::phone::{Capabilities, Foreground, Image, InstalledApp, Phone, PhoneError, PhoneIdentity, Screen, Work};
use crate::touch::{Key, Stroke};
use crate::tree::{Tree, UiNode};

/// One phone through the adb server.
pub struct AdbPhone {
    transport: AdbTransport,
    about: PhoneIdentity,
    /// Android allows one reader of the tree at a time.
    dumping: Mutex<()>,
    /// Where dumps are written on the phone.
    dump_path: String,
}

/// The most characters that are typed by keys: more take longer than the half minute that a call has, at some 10 ms each
/// and a second for each piece on an older phone.
pub const MAX_TYPED: usize = 2_000;

/// How long the phone may take to list a folder.
const FILES: Duration = Duration::from_secs(15);

const AGENT: &str = "it needs Sinew's agent on the phone";

impl AdbPhone {
    /// Reads the phone's identity. Changes nothing on it.
    pub async fn open(server: &AdbServer, serial: &str) -> Result<AdbPhone, AdbError> {
        let features = server.features(serial).await?;
        let has = |name: &str| features.iter().any(|feature| feature == name);
        let transport = AdbTransport { large_files: has("ls_v2"), ..server.transport(serial, has("shell_v2")) };
        let names = [
            "ro.product.manufacturer",
            "ro.product.model",
            "ro.build.version.release",
            "ro.build.version.sdk",
            "ro.serialno",
        ];
        let questions = names.map(|name| ShellCommand::new("getprop").arg(name)).into_iter().reduce(ShellCommand::then);
        let questions = questions.unwrap_or_else(|| ShellCommand::new("getprop"));
        let output = transport.run(&questions, CommandLimits::seconds(10)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        // One line each, empty where the phone does not know.
        let mut lines = text.lines().map(|line| line.trim().chars().take(100).collect::<String>());
        let [manufacturer, model, android, sdk, serial_number] = names.map(|_| lines.next().unwrap_or_default());
        let about = PhoneIdentity {
            serial: serial.to_owned(),
            serial_number,
            known_as: String::new(),
            manufacturer,
            model,
            android,
            sdk: sdk.parse().unwrap_or_default(),
        };
        let dump_path = format!("/data/local/tmp/{}.xml", own_name("screen"));
        Ok(AdbPhone { transport, about, dumping: Mutex::default(), dump_path })
    }

    /// What the gateway knows it by, where that is not its address.
    pub(super) fn set_known_as(&mut self, known_as: String) {
        self.about.known_as = known_as;
    }

    pub fn transport(&self) -> &AdbTransport {
        &self.transport
    }

    async fn run(&self, command: &ShellCommand, limits: CommandLimits) -> Result<CommandOutput, PhoneError> {
        Ok(self.transport.run(command, limits).await?)
    }

    /// Runs a command whose text is its answer.
    async fn ask(&self, command: &ShellCommand) -> Result<String, PhoneError> {
        Ok(self.run(command, CommandLimits::seconds(15).megabytes(4)).await?.text())
    }

    /// Sends input where the display is on.
    async fn input(&self, command: &ShellCommand, limits: CommandLimits) -> Result<(), PhoneError> {
        let output = self.run(&awake::if_awake(command), limits).await?;
        match awake::was_refused(&output) {
            true => Err(awake::asleep(&self.about.serial)),
            false => self.require_silence(command, &output),
        }
    }

    /// Runs a command that should say nothing.
    async fn act(&self, command: &ShellCommand, limits: CommandLimits) -> Result<(), PhoneError> {
        self.require_silence(command, &self.run(command, limits).await?)
    }

    fn require_silence(&self, command: &ShellCommand, output: &CommandOutput) -> Result<(), PhoneError> {
        let text = output.text();
        let serial = &self.about.serial;
        match () {
            () if text.contains("INJECT_EVENTS") => Err(PhoneError::Denied(format!(
                "phone {serial} forbids input from adb: turn on \"USB debugging (Security settings)\" or \"Disable permission monitoring\" in its developer options"
            ))),
            () if text.contains("SecurityException") => {
                Err(PhoneError::Denied(format!("phone {serial} does not allow `{}` to adb", command.name())))
            }
            () if output.exit != 0 || COMPLAINTS.iter().any(|sign| text.contains(sign)) => {
                Err(self.failed(command, &text))
            }
            () => Ok(()),
        }
    }

    fn failed(&self, command: &ShellCommand, text: &str) -> PhoneError {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
        let line: String = line.chars().take(300).collect();
        PhoneError::Failed(format!("`{}` failed on phone {}: {line}", command.name(), self.about.serial))
    }

    async fn start(&self, command: ShellCommand) -> Result<(), PhoneError> {
        let output = self.run(&command, CommandLimits::seconds(20)).await?;
        let text = output.text();
        let wrong = text.lines().map(str::trim).find(|line| line.starts_with("Error") || line.contains("Exception"));
        match wrong {
            Some(line) => Err(self.failed(&command, line)),
            None if output.exit != 0 => Err(self.failed(&command, &text)),
            None => Ok(()),
        }
    }

    /// `am force-stop` says nothing also of an app that is not there, so the package is looked for in the same command.
    async fn stop_app(&self, package: &str) -> Result<(), PhoneError> {
        let look = ShellCommand::new("pm path").arg(package).literal("| grep -q package: || echo sinew-no-app");
        let stop = ShellCommand::new("am force-stop").arg(package);
        let output = self.run(&look.then(stop.clone()), CommandLimits::seconds(15)).await?;
        match output.stdout.starts_with(b"sinew-no-app") {
            true => Err(self.unknown_app(package)),
            false => self.require_silence(&stop, &output),
        }
    }

    fn unknown_app(&self, package: &str) -> PhoneError {
        let serial = &self.about.serial;
        PhoneError::Invalid(format!("phone {serial} has no app '{package}'; list_apps shows those it has"))
    }

    async fn start_app(&self, package: &str) -> Result<(), PhoneError> {
        let resolve = ShellCommand::new(
            "cmd package resolve-activity --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER",
        );
        let text = self.ask(&resolve.arg(package)).await?;
        let of_app = |line: &&str| line.strip_prefix(package).is_some_and(|rest| rest.starts_with('/'));
        let activity = text.lines().map(str::trim).rfind(of_app);
        let Some(activity) = activity else {
            let serial = &self.about.serial;
            return Err(PhoneError::Invalid(format!(
                "phone {serial} has no app '{package}' that can be opened; list_apps shows those it has"
            )));
        };
        let start = ShellCommand::new("am start -a android.intent.action.MAIN -c android.intent.category.LAUNCHER -n");
        self.start(start.arg(activity)).await
    }
}

/// What commands print when they fail, whatever they exit with.
const COMPLAINTS: [&str; 3] = ["Exception", "Error:", "not found"];

impl PhoneShell for AdbPhone {
    fn run_command<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput> {
        Box::pin(self.run(command, limits))
    }

    fn feed<'a>(
        &'a self,
        command: &'a ShellCommand,
        input: &'a mut (dyn AsyncRead + Send + Unpin),
        limits: CommandLimits,
    ) -> Work<'a, CommandOutput> {
        Box::pin(async move { Ok(self.transport.feed(command, input, limits).await?) })
    }

    fn hold<'a>(&'a self, open: &'a ShellCommand, close: &'a ShellCommand) -> Work<'a, Box<dyn Held>> {
        Box::pin(async move {
            let held: Box<dyn Held> = Box::new(HeldShell::open(&self.transport, open, close).await?);
            Ok(held)
        })
    }

    fn list_folder<'a>(&'a self, path: &'a str) -> Work<'a, Vec<FolderEntry>> {
        Box::pin(async move { Ok(self.transport.list(path, FILES).await?) })
    }

    fn pull<'a>(
        &'a self,
        path: &'a str,
        into: &'a mut (dyn AsyncWrite + Send + Unpin),
        most: u64,
        limit: Duration,
    ) -> Work<'a, u64> {
        Box::pin(async move { Ok(self.transport.pull_to(path, into, most, limit).await?) })
    }

    fn push<'a>(
        &'a self,
        from: &'a mut (dyn AsyncRead + Send + Unpin),
        path: &'a str,
        limit: Duration,
    ) -> Work<'a, u64> {
        Box::pin(async move { Ok(self.transport.push_from(from, path, 0o644, limit).await?) })
    }
}

impl Phone for AdbPhone {
    fn about(&self) -> PhoneIdentity {
        self.about.clone()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tiers: vec!["shell".into()], ..Capabilities::default() }
    }

    fn shell(&self) -> Option<&dyn PhoneShell> {
        Some(self)
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

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.fill(node, text))
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.write(text))
    }

    fn select<'a>(&'a self, _: &'a UiNode, _: usize, _: usize) -> Work<'a, ()> {
        Box::pin(std::future::ready(Err(PhoneError::unsupported("selecting text", AGENT))))
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        Box::pin(std::future::ready(Err(PhoneError::unsupported("reading the clipboard", AGENT))))
    }

    fn set_clipboard<'a>(&'a self, _: &'a str) -> Work<'a, ()> {
        Box::pin(std::future::ready(Err(PhoneError::unsupported("setting the clipboard", AGENT))))
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        Box::pin(async {
            let window = ShellCommand::new("dumpsys window | grep -E 'mCurrentFocus=|mFocusedApp='");
            let resumed = ShellCommand::new("dumpsys activity activities | grep -E 'ResumedActivity|mFocusedActivity'");
            Ok(parse::foreground(&self.ask(&window.then(resumed)).await?))
        })
    }

    fn screen(&self) -> Work<'_, Screen> {
        Box::pin(self.read_screen())
    }

    fn logs<'a>(&'a self, query: &'a LogQuery) -> Work<'a, Logs> {
        Box::pin(self.read_logs(query))
    }

    fn apps(&self) -> Work<'_, Vec<InstalledApp>> {
        Box::pin(async {
            let launchers = ShellCommand::new(
                "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER",
            );
            Ok(parse::apps(&self.ask(&launchers.then(ShellCommand::new("pm list packages -3"))).await?))
        })
    }

    fn open_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        Box::pin(self.start_app(package))
    }

    fn close_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        Box::pin(self.stop_app(package))
    }

    fn open_url<'a>(&'a self, url: &'a str) -> Work<'a, ()> {
        Box::pin(self.start(ShellCommand::new("am start -a android.intent.action.VIEW -d").arg(url)))
    }
}
