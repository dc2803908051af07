//! Starting and stopping apps: `am`, `monkey`.

use std::collections::BTreeMap;

use super::{Io, Shell};
use crate::phone::act::StockApp;
use crate::phone::android::Android;
use crate::phone::handset::Denial;
use crate::phone::keys::{Modifiers, code};
use crate::phone::machine::{LAUNCHER, LAUNCHER_ACTIVITY};
use crate::phone::windows::full_activity;

pub(super) const MAIN: &str = "android.intent.action.MAIN";
pub(super) const VIEW: &str = "android.intent.action.VIEW";

/// Where an app's files are. The names that Android 11 and later choose at random are fixed here.
pub(super) fn apk_folder(app: StockApp) -> String {
    let entry = app.entry();
    match entry.system {
        true => format!("/system/app/{}", entry.label),
        false => format!("/data/app/~~c2luZXc{}==/{}-dmlydHVhbA==", app as u32, entry.package),
    }
}

/// An intent as the command line gives it.
#[derive(Default)]
pub(super) struct Intent<'a> {
    pub(super) action: Option<&'a str>,
    pub(super) category: Option<&'a str>,
    pub(super) data: Option<&'a str>,
    pub(super) component: Option<&'a str>,
    pub(super) package: Option<&'a str>,
    pub(super) extras: BTreeMap<String, String>,
    wait: bool,
    stop_first: bool,
}

impl<'a> Intent<'a> {
    pub(super) fn read(args: &[&'a str]) -> Intent<'a> {
        let mut intent = Intent::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "-a" => intent.action = args.next().copied(),
                "-c" => intent.category = args.next().copied(),
                "-d" => intent.data = args.next().copied(),
                "-n" => intent.component = args.next().copied(),
                "-p" => intent.package = args.next().copied(),
                "-W" => intent.wait = true,
                "-S" => intent.stop_first = true,
                "-t" | "-f" | "-i" | "--user" | "--display" | "--windowingMode" | "-R" | "-P" => drop(args.next()),
                "-e" | "--es" | "--ez" | "--ei" | "--el" | "--ef" | "--eu" | "--ecn" | "--esa" | "--eia" | "--ela" => {
                    if let (Some(key), Some(value)) = (args.next(), args.next()) {
                        intent.extras.insert((*key).to_owned(), (*value).to_owned());
                    }
                }
                "--esn" => drop(args.next()),
                flag if flag.starts_with('-') => {}
                // A bare word is an address, a component or a package.
                word if word.contains(':') => intent.data = Some(word),
                word if word.contains('/') => intent.component = Some(word),
                word => intent.package = Some(word),
            }
        }
        intent
    }

    fn describe(&self, android: Android) -> String {
        let mut words = Vec::new();
        words.extend(self.action.map(|action| format!("act={action}")));
        words.extend(self.category.map(|category| format!("cat=[{category}]")));
        // Since Android 11 or so only the host of an address is shown.
        words.extend(self.data.map(|data| match data.split_once("://") {
            Some((scheme, rest)) if android >= Android::V11 && rest.contains('/') => {
                format!("dat={scheme}://{}/...", rest.split('/').next().unwrap_or_default())
            }
            _ => format!("dat={}", veiled(data)),
        }));
        words.extend(self.package.map(|package| format!("pkg={package}")));
        words.extend(self.component.map(|component| format!("cmp={}", short(component))));
        if !self.extras.is_empty() {
            words.push("(has extras)".to_owned());
        }
        format!("Intent {{ {} }}", words.join(" "))
    }

    /// The app that would answer.
    fn target(&self) -> Target<'a> {
        if let Some(component) = self.component {
            let (package, class) = component.split_once('/').unwrap_or((component, ""));
            if package == LAUNCHER {
                return Target::Home;
            }
            let known = StockApp::find(package)
                .filter(|app| full_activity(package, class) == full_activity(package, app.entry().activity));
            return known.map_or(Target::NoClass(component), Target::StockApp);
        }
        match (self.action, self.data) {
            (_, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => Target::Link(url),
            (Some("android.settings.SETTINGS"), _) => Target::StockApp(StockApp::Settings),
            (Some(MAIN) | None, None) if self.category == Some("android.intent.category.HOME") => Target::Home,
            (Some(MAIN) | None, None) => {
                self.package.and_then(StockApp::find).map_or(Target::Nothing, Target::StockApp)
            }
            _ => Target::Nothing,
        }
    }
}

/// An activity of the Clock that throws, for those who want to see a crash.
const CRASHING: &str = "com.android.deskclock/.CrashActivity";

/// And one that never answers.
const HANGING: &str = "com.android.deskclock/.HangActivity";

enum Target<'a> {
    StockApp(StockApp),
    Home,
    Link(&'a str),
    NoClass(&'a str),
    Nothing,
}

/// Numbers and addresses of people are not shown.
fn veiled(data: &str) -> String {
    match data.split_once(':') {
        Some((scheme @ ("tel" | "sip" | "sms" | "smsto" | "mailto"), rest)) => {
            let veil = |ch: char| if "-@.".contains(ch) { ch } else { 'x' };
            format!("{scheme}:{}", rest.chars().map(veil).collect::<String>())
        }
        _ => data.to_owned(),
    }
}

/// `pkg/pkg.Cls` as `pkg/.Cls`, which is how Android prints it.
fn short(component: &str) -> String {
    match component.split_once('/') {
        Some((package, class)) => match class.strip_prefix(package).filter(|rest| rest.starts_with('.')) {
            Some(rest) => format!("{package}/{rest}"),
            None => component.to_owned(),
        },
        None => component.to_owned(),
    }
}

impl Shell {
    pub(super) async fn am(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        match args {
            ["start" | "start-activity", rest @ ..] if self.companion_start(&Intent::read(rest), io) => 0,
            ["start" | "start-activity", rest @ ..] => self.start(&Intent::read(rest), io),
            ["force-stop" | "kill" | "stop-app", .., package] => {
                if let Some(app) = StockApp::find(package) {
                    self.handset.with(|machine| machine.stop(app));
                }
                0
            }
            ["broadcast", rest @ ..] => {
                let intent = Intent::read(rest);
                let flag = if self.android() < Android::V11 { "" } else { " flg=0x400000" };
                let described = intent.describe(self.android());
                let head = described.trim_end_matches(" }");
                io.line(format!("Broadcasting: {head}{flag} }}"));
                self.deliver(&intent, io).await
            }
            ["crash", .., package] => {
                if let Some(app) = StockApp::find(package) {
                    let exception = "android.app.RemoteServiceException$CrashedByAdbException";
                    self.handset.with(|machine| machine.crash(app, exception, "shell-induced crash"));
                }
                0
            }
            ["get-current-user"] => {
                io.line("0");
                0
            }
            ["instrument", ..] => {
                io.error("android.util.AndroidException: INSTRUMENTATION_FAILED: unable to find instrumentation info");
                1
            }
            ["startservice" | "start-service" | "start-foreground-service", rest @ ..] => {
                io.line(format!("Starting service: {}", Intent::read(rest).describe(self.android())));
                io.error("Error: Not found; no service started.");
                if self.android() < Android::V11 { 0 } else { 255 }
            }
            [
                "set-debug-app" | "clear-debug-app" | "compact" | "freeze" | "unfreeze" | "wait-for-broadcast-idle",
                ..,
            ] => 0,
            [command, ..] => {
                io.error(format!("Unknown command: {command}"));
                255
            }
            [] => 255,
        }
    }

    fn start(&self, intent: &Intent<'_>, io: &mut Io<'_, '_>) -> u8 {
        let android = self.android();
        io.line(format!("Starting: {}", intent.describe(android)));
        let wrong = if android < Android::V11 { 0 } else { 1 };
        if self.handset.is_denied(Denial::Input) {
            io.error(format!(
                "java.lang.SecurityException: Permission Denial: starting {} from null (pid=4711, uid=2000)",
                intent.describe(android)
            ));
            return 255;
        }
        let was_running = self.handset.with(|machine| match intent.target() {
            Target::NoClass(CRASHING) => {
                let running = machine.launch(StockApp::Clock);
                machine.crash(StockApp::Clock, "java.lang.IllegalStateException", "no alarm, no sound");
                Ok((running, StockApp::Clock))
            }
            Target::NoClass(HANGING) => {
                let running = machine.launch(StockApp::Clock);
                machine.hang(StockApp::Clock, "Input dispatching timed out (Waited 5000ms for MotionEvent)");
                Ok((running, StockApp::Clock))
            }
            Target::StockApp(app) => {
                if intent.stop_first {
                    machine.stop(app);
                }
                Ok((machine.launch(app), app))
            }
            Target::Home => {
                machine.key(code::HOME, Modifiers::default());
                Ok((true, StockApp::Settings))
            }
            Target::Link(url) => {
                let running = machine.pid(StockApp::Browser).is_some();
                machine.open_url(url);
                Ok((running, StockApp::Browser))
            }
            Target::NoClass(component) => {
                let (package, class) = component.split_once('/').unwrap_or((component, ""));
                let full = full_activity(package, class);
                Err(format!("Error type 3\nError: Activity class {{{package}/{full}}} does not exist."))
            }
            Target::Nothing => Err(format!(
                "Error: Activity not started, unable to resolve {}",
                intent.describe(android).replace(" }", " flg=0x10000000 }")
            )),
        });
        let (running, app) = match was_running {
            Ok(found) => found,
            Err(trouble) => {
                io.error(trouble);
                return wrong;
            }
        };
        if running {
            let link = if intent.data.is_some() {
                "intent has been delivered to currently running top-most instance."
            } else {
                "its current task has been brought to the front"
            };
            io.error(format!("Warning: Activity not started, {link}"));
        }
        if intent.wait {
            io.line("Status: ok");
            if android > Android::V9 {
                io.line(format!("LaunchState: {}", if running { "HOT" } else { "COLD" }));
            }
            let entry = app.entry();
            let (package, activity) = match intent.target() {
                Target::Home => (LAUNCHER, LAUNCHER_ACTIVITY),
                _ => (entry.package, entry.activity),
            };
            io.line(format!("Activity: {package}/{activity}"));
            if android == Android::V9 {
                io.line("ThisTime: 142");
            }
            io.line("TotalTime: 142\nWaitTime: 150\nComplete");
        }
        0
    }

    pub(super) fn monkey(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let package = args.iter().position(|arg| *arg == "-p").and_then(|at| args.get(at + 1)).copied();
        args.iter().for_each(|arg| io.error(format!("  bash arg: {arg}")));
        match package.and_then(StockApp::find) {
            Some(app) => {
                self.handset.with(|machine| machine.launch(app));
                io.line("Events injected: 1\n## Network stats: elapsed time=14ms (0ms mobile, 0ms wifi, 14ms not connected)");
                0
            }
            None => {
                io.line("** No activities found to run, monkey aborted.");
                252
            }
        }
    }
}
