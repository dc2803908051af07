//! What the shell commands of the system server answer to lines that they cannot read, before they do anything.
//!
//! `android/recorded` has the answers of Android's own classes; a test compares.

use super::input::{exception, missing_argument, modern_usage};
use super::{Io, Shell};
use crate::phone::android::Android;

/// Commands of `pm` that want one more word, with what they say. A name that occurs twice wants two.
const PM_NEEDS: [(&str, &str); 20] = [
    ("clear", "Error: no package specified"),
    ("dump", "Error: no package specified"),
    ("grant", "Error: no package specified"),
    ("grant", "Error: no permission specified"),
    ("revoke", "Error: no package specified"),
    ("revoke", "Error: no permission specified"),
    ("uninstall", "Error: package name not specified"),
    ("install-existing", "Error: package name not specified"),
    ("suspend", "Error: package name not specified"),
    ("unsuspend", "Error: package name not specified"),
    ("enable", "Error: no package or component specified"),
    ("disable", "Error: no package or component specified"),
    ("disable-user", "Error: no package or component specified"),
    ("default-state", "Error: no package or component specified"),
    ("hide", "Error: no package or component specified"),
    ("unhide", "Error: no package or component specified"),
    ("set-install-location", "Error: no install location specified."),
    ("trim-caches", "Error: no size specified"),
    ("create-user", "Error: no user name specified."),
    ("remove-user", "Error: no user id specified."),
];
const LISTED: [&str; 10] = [
    "features",
    "instrumentation",
    "libraries",
    "package",
    "packages",
    "permission-groups",
    "permissions",
    "sdks",
    "staged-sessions",
    "users",
];
const LIST_OPTIONS: [&str; 8] = [
    "--show-versioncode",
    "--apex-only",
    "--factory-only",
    "--user",
    "--uid",
    "--match-libraries",
    "--show-stopped",
    "--show-install-source",
];
const INSTALL_OPTIONS: [&str; 26] = [
    "--user",
    "--abi",
    "--install-location",
    "--install-reason",
    "--update-ownership",
    "--force-uuid",
    "--instant",
    "--ephemeral",
    "--full",
    "--pkg",
    "--preload",
    "--originating-uri",
    "--referrer",
    "--inherit",
    "--apex",
    "--staged",
    "--force-queryable",
    "--enable-rollback",
    "--multi-package",
    "--restrict-permissions",
    "--force-sdk",
    "--dont-kill",
    "--skip-verification",
    "--bypass-low-target-sdk-block",
    "--staged-ready-timeout",
    "--package",
];

impl Shell {
    /// Answers a line that its command cannot read; `None` for all others.
    pub(super) fn answer_mistake(&self, command: &str, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
        match command {
            "input" if self.android() >= Android::V13 => input(args, io),
            "am" => am(self.android(), args, io),
            "wm" => wm(self.android(), args, io),
            "pm" => pm(args, io),
            _ => None,
        }
    }
}

fn input(args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
    let args = match args {
        ["-d"] => return Some(missing_argument("-d", "-d", io)),
        ["-d", display, rest @ ..] if is_number(display) || *display == "INVALID_DISPLAY" => rest,
        ["-d", ..] => return Some(exception("-d", "Error: Invalid arguments for display ID.", io)),
        all => all,
    };
    let (command, rest) = match args {
        ["help" | "-h", ..] => return Some(modern_usage("", io)),
        [command, rest @ ..] => (*command, rest),
        [] => return None,
    };
    let (words, numbers) = match command {
        "tap" | "roll" => (0, 2),
        "swipe" | "draganddrop" => (0, 4),
        "motionevent" => (1, 2),
        "text" | "keyevent" => (1, 0),
        _ => return None,
    };
    if let ("motionevent", Some(action)) = (command, rest.first())
        && !["DOWN", "MOVE", "UP", "CANCEL"].contains(&action.to_ascii_uppercase().as_str())
    {
        return Some(exception(command, &format!("Unknown action: {action}"), io));
    }
    if rest.len() < words + numbers {
        return Some(missing_argument(command, rest.last().unwrap_or(&command), io));
    }
    let are_numbers = rest[words..words + numbers].iter().all(|number| is_number(number));
    (!are_numbers).then(|| exception(command, &format!("Error: Invalid arguments for command: {command}"), io))
}

fn am(android: Android, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
    match args {
        ["help" | "-h", ..] => {
            io.line(AM_HELP);
            Some(if android >= Android::V15 { 0 } else { 255 })
        }
        [] => {
            io.error(AM_HELP);
            Some(255)
        }
        [command @ ("force-stop" | "kill" | "stop-app" | "switch-user" | "set-debug-app" | "crash")] => {
            Some(missing_argument(command, command, io))
        }
        [
            command @ ("start"
            | "start-activity"
            | "startservice"
            | "start-service"
            | "start-foreground-service"
            | "broadcast"
            | "to-uri"
            | "to-intent-uri"
            | "to-app-uri"),
            rest @ ..,
        ] => intent(command, rest, io),
        _ => None,
    }
}

const AM_HELP: &str = "Activity manager (activity) commands:\n  help\n  start-activity [-D] [-N] [-W] <INTENT>\n  broadcast <INTENT>\n  force-stop <PACKAGE>";

/// The words of an intent, read as strictly as Android does.
fn intent(command: &str, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
    let (mut args, mut is_given) = (args.iter().copied(), false);
    while let Some(arg) = args.next() {
        let wanted = match arg {
            "-a" | "-c" | "-d" | "-t" | "-n" | "-p" => 1,
            "-i"
            | "-f"
            | "-P"
            | "-R"
            | "--user"
            | "--display"
            | "--windowingMode"
            | "--activityType"
            | "--task"
            | "--start-profiler"
            | "--query-flags"
            | "--sampling"
            | "--attach-agent"
            | "--attach-agent-bind"
            | "--receiver-permission"
            | "--esn" => 1,
            "-e" | "--es" | "--ez" | "--ei" | "--el" | "--ef" | "--ed" | "--eu" | "--ecn" | "--esa" | "--esal"
            | "--eia" | "--eial" | "--ela" | "--elal" | "--efa" | "--efal" => 2,
            "-D" | "-N" | "-W" | "-S" => 0,
            option if KNOWN_FLAGS.iter().any(|known| option.starts_with(known)) => 0,
            option if option.starts_with('-') => {
                return Some(exception(command, &format!("Unknown option: {option}"), io));
            }
            _ => {
                is_given = true;
                0
            }
        };
        is_given |= matches!(arg, "-a" | "-c" | "-d" | "-t" | "-n" | "-p");
        let mut before = arg;
        for _ in 0..wanted {
            let Some(word) = args.next() else { return Some(missing_argument(command, before, io)) };
            before = word;
        }
        if arg == "-n" && !before.contains('/') {
            return Some(exception(command, &format!("Bad component name: {before}"), io));
        }
        let is_whole = before.parse::<i64>().is_ok() || before.starts_with("0x");
        if matches!(arg, "--ei" | "--el") && !is_whole || arg == "--ef" && !is_number(before) {
            return Some(thrown(
                command,
                &format!("java.lang.NumberFormatException: For input string: \"{before}\""),
                io,
            ));
        }
    }
    (!is_given).then(|| exception(command, "No intent supplied", io))
}

/// How the flags of intents and of starting activities begin that take no word of their own.
const KNOWN_FLAGS: [&str; 14] = [
    "--activity-",
    "--grant-",
    "--include-",
    "--exclude-",
    "--debug-",
    "--receiver-",
    "--selector",
    "--allow-background-activity-starts",
    "--async",
    "--streaming",
    "--track-allocation",
    "--task-overlay",
    "--lock-task",
    "--splashscreen-show-icon",
];

fn wm(android: Android, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
    let message = match args {
        [] | ["help" | "-h", ..] => "Window manager (window) commands:\n  size [reset|WxH|WdpxHdp] [-d DISPLAY_ID]\n  density [reset|DENSITY] [-d DISPLAY_ID]\n  dismiss-keyguard\n  user-rotation [-d DISPLAY_ID] [free|lock] [rotation]".to_owned(),
        ["size", size, ..] if !matches!(*size, "reset" | "-d") => {
            let (width, height) = match size.split_once('x') {
                Some(sides) => sides,
                None => return Some(said(&format!("Error: bad size {size}"), io)),
            };
            let side = [width, height].into_iter().find(|side| side.trim_end_matches("dp").parse::<u32>().is_err())?;
            bad_number(side)
        }
        ["density", value, ..] if !matches!(*value, "reset" | "-d" | "-u") => match value.parse::<i32>() {
            Err(_) => bad_number(value),
            Ok(density) if density < 72 => "Error: density must be >= 72".to_owned(),
            Ok(_) => return None,
        },
        ["user-rotation", word, ..] if !matches!(*word, "-d" | "free" | "lock") => {
            "Error: argument needs to be either -d, free or lock.".to_owned()
        }
        ["set-user-rotation", ..] if android >= Android::V13 => "Unknown command: set-user-rotation".to_owned(),
        _ => return None,
    };
    Some(said(&message, io))
}

fn bad_number(text: &str) -> String {
    format!("Error: bad number java.lang.NumberFormatException: For input string: \"{text}\"")
}

fn pm(args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
    let (command, rest) = args.split_first()?;
    let unknown = |known: &[&str]| rest.iter().copied().find(|arg| arg.starts_with("--") && !known.contains(arg));
    match (*command, rest) {
        ("path", []) => return Some(missing_argument(command, command, io)),
        ("list", []) => return Some(said("Error: didn't specify type of data to list", io)),
        ("list", [kind, ..]) if !LISTED.contains(kind) => {
            return Some(said(&format!("Error: unknown list type '{kind}'"), io));
        }
        ("list", ["package" | "packages", ..]) => {
            return unknown(&LIST_OPTIONS).map(|option| said(&format!("Error: Unknown option: {option}"), io));
        }
        ("install" | "install-create", _) => {
            return unknown(&INSTALL_OPTIONS).map(|option| exception(command, &format!("Unknown option {option}"), io));
        }
        ("resolve-activity" | "query-activities" | "query-services" | "query-receivers", rest) => {
            let intent_words: Vec<&str> =
                rest.iter().copied().filter(|arg| !matches!(*arg, "--brief" | "--components")).collect();
            return intent(command, &intent_words, io);
        }
        _ => {}
    }
    let mut words = 0;
    let mut given = rest.iter();
    while let Some(arg) = given.next() {
        match *arg {
            "--user" => drop(given.next()),
            arg => words += usize::from(!arg.starts_with('-')),
        }
    }
    let (_, message) = PM_NEEDS.iter().filter(|(name, _)| name == command).nth(words)?;
    io.error(message);
    Some(1)
}

fn said(message: &str, io: &mut Io<'_, '_>) -> u8 {
    io.error(message);
    255
}

fn thrown(command: &str, exception: &str, io: &mut Io<'_, '_>) -> u8 {
    io.error(format!("\nException occurred while executing '{command}':\n{exception}"));
    255
}

fn is_number(text: &str) -> bool {
    text.parse::<f32>().is_ok_and(f32::is_finite)
}
