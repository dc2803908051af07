//! Managing installed apps with the commands that every Android has: `pm`, `dumpsys package` and `am`.

use super::{PhoneShell, reason};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// A change to an installed app. Permissions are named in full: `android.permission.CAMERA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppChange<'a> {
    Uninstall,
    ClearData,
    Grant(&'a str),
    Revoke(&'a str),
}

/// What the phone says about an installed app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppDetails {
    pub version_name: Option<String>,
    pub version_code: Option<u64>,
    /// By the phone's own clock.
    pub first_installed: Option<String>,
    pub last_updated: Option<String>,
    /// Whether it came with the phone.
    pub system: bool,
    /// The permissions that a user grants or refuses, and whether they are granted.
    pub permissions: Vec<(String, bool)>,
}

/// Who receives an intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntentReceiver {
    #[default]
    Activity,
    Broadcast,
    Service,
}

/// A typed extra of an intent.
#[derive(Clone, Debug, PartialEq)]
pub enum IntentExtra {
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
}

/// An intent to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntentRequest {
    pub receiver: IntentReceiver,
    pub action: Option<String>,
    pub data: Option<String>,
    /// `package/class`.
    pub component: Option<String>,
    pub package: Option<String>,
    pub extras: Vec<(String, IntentExtra)>,
}

/// Text of a permission list; many apps have hundreds of lines.
const DETAILS: CommandLimits = CommandLimits { time: std::time::Duration::from_secs(15), bytes: 4 << 20 };

pub async fn change(on: &dyn PhoneShell, package: &str, change: AppChange<'_>) -> Result<(), PhoneError> {
    let command = match change {
        AppChange::Uninstall => ShellCommand::new("pm uninstall").arg(package),
        AppChange::ClearData => ShellCommand::new("pm clear").arg(package),
        AppChange::Grant(permission) => ShellCommand::new("pm grant").arg(package).arg(permission),
        AppChange::Revoke(permission) => ShellCommand::new("pm revoke").arg(package).arg(permission),
    };
    // 60 s: removing a large app takes its time.
    let output = on.run_command(&command, CommandLimits::seconds(60)).await?;
    let says_success = matches!(change, AppChange::Uninstall | AppChange::ClearData);
    let text = output.text();
    match says_success {
        true if text.lines().any(|line| line.trim() == "Success") => Ok(()),
        false if output.exit == 0 && !text.contains("Exception") && !text.contains("Failure") => Ok(()),
        _ => Err(PhoneError::Failed(format!("'{package}' was not changed: {}", reason(&text)))),
    }
}

pub async fn details(on: &dyn PhoneShell, package: &str) -> Result<AppDetails, PhoneError> {
    let output = on.run_command(&ShellCommand::new("dumpsys package").arg(package), DETAILS).await?;
    parse_details(&output.text(), package)
        .ok_or_else(|| PhoneError::Invalid(format!("the phone has no app '{package}'; list_apps shows those it has")))
}

/// Gives what the phone printed about the delivery, in one line.
pub async fn send(on: &dyn PhoneShell, intent: &IntentRequest) -> Result<String, PhoneError> {
    let output = on.run_command(&intent_command(intent), CommandLimits::seconds(20)).await?;
    let text = output.text();
    let wrong = text.lines().map(str::trim).find(|line| line.starts_with("Error") || line.contains("Exception"));
    match wrong {
        None if output.exit == 0 => {
            let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
            Ok(last.chars().take(300).collect())
        }
        _ => Err(PhoneError::Failed(format!("the intent was not delivered: {}", reason(&text)))),
    }
}

fn intent_command(intent: &IntentRequest) -> ShellCommand {
    let mut command = match intent.receiver {
        IntentReceiver::Activity => ShellCommand::new("am start"),
        IntentReceiver::Broadcast => ShellCommand::new("am broadcast"),
        IntentReceiver::Service => ShellCommand::new("am start-service"),
    };
    let parts = [("-a", &intent.action), ("-d", &intent.data), ("-n", &intent.component), ("-p", &intent.package)];
    for (option, value) in parts {
        if let Some(value) = value {
            command = command.literal(option).arg(value);
        }
    }
    for (name, value) in &intent.extras {
        command = match value {
            IntentExtra::Text(text) => command.literal("--es").arg(name).arg(text),
            IntentExtra::Integer(number) if i32::try_from(*number).is_ok() => {
                command.literal("--ei").arg(name).arg(number)
            }
            IntentExtra::Integer(number) => command.literal("--el").arg(name).arg(number),
            IntentExtra::Number(number) => command.literal("--ef").arg(name).arg(number),
            IntentExtra::Boolean(truth) => command.literal("--ez").arg(name).arg(truth),
        };
    }
    command
}

/// Reads what `dumpsys package` printed; `None` where the phone has no such package.
pub fn parse_details(text: &str, package: &str) -> Option<AppDetails> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with(&format!("Package [{package}]")));
    lines.next()?;
    let mut details = AppDetails::default();
    let first = |slot: &mut Option<String>, value: &str| {
        slot.get_or_insert_with(|| value.chars().take(100).collect());
    };
    for line in lines.take_while(|line| !line.starts_with("Package [")).take(20_000) {
        if let Some(value) = line.strip_prefix("versionName=") {
            first(&mut details.version_name, value);
        } else if let Some(value) = line.strip_prefix("versionCode=") {
            details.version_code = details.version_code.or_else(|| value.split(' ').next()?.parse().ok());
        } else if let Some(value) = line.strip_prefix("firstInstallTime=") {
            first(&mut details.first_installed, value);
        } else if let Some(value) = line.strip_prefix("lastUpdateTime=") {
            first(&mut details.last_updated, value);
        } else if let Some(flags) = line.strip_prefix("flags=") {
            details.system |= flags.split_whitespace().any(|flag| flag == "SYSTEM");
        } else if let Some((name, state)) = line.split_once(": granted=")
            && details.permissions.len() < 500
            && state.contains("flags=[")
        {
            details.permissions.push((name.chars().take(200).collect(), state.starts_with("true")));
        }
    }
    details.permissions.sort();
    details.permissions.dedup();
    Some(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_an_intent_becomes_syntax() {
        let intent = IntentRequest {
            receiver: IntentReceiver::Broadcast,
            action: Some("a.GO; reboot".to_owned()),
            extras: vec![
                ("name".to_owned(), IntentExtra::Text("$(id) '; x".to_owned())),
                ("count".to_owned(), IntentExtra::Integer(5)),
                ("large".to_owned(), IntentExtra::Integer(1 << 40)),
                ("on".to_owned(), IntentExtra::Boolean(true)),
            ],
            ..IntentRequest::default()
        };
        assert_eq!(
            intent_command(&intent).line(),
            "am broadcast -a 'a.GO; reboot' --es 'name' '$(id) '\\''; x' --ei 'count' '5' --el 'large' '1099511627776' --ez 'on' 'true'"
        );
    }

    #[test]
    fn details_are_those_of_the_package_that_is_meant() {
        let text = "Packages:\n  Package [a.b] (1):\n    versionCode=7 minSdk=26 targetSdk=34\n    versionName=1.2\n    flags=[ HAS_CODE ]\n    firstInstallTime=2024-01-01 10:00:00\n    User 0:\n      runtime permissions:\n        android.permission.CAMERA: granted=true, flags=[ USER_SET]\n        android.permission.RECORD_AUDIO: granted=false, flags=[ ]\n    install permissions:\n      android.permission.INTERNET: granted=true\n  Package [c.d] (2):\n    versionName=9\n";
        let details = parse_details(text, "a.b").unwrap();
        assert_eq!((details.version_name.as_deref(), details.version_code), (Some("1.2"), Some(7)));
        let granted = |name: &str, is: bool| (format!("android.permission.{name}"), is);
        assert_eq!(details.permissions, [granted("CAMERA", true), granted("RECORD_AUDIO", false)]);
        assert!(!details.system && parse_details(text, "x.y").is_none());
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_phone_prints_of_an_app_is_read_within_bounds(value in ".{0,300}", count in 0usize..600) {
            let one = format!("  versionName={value}\n  versionCode={value}\n  {value}{count}: granted={value} flags=[ ]\n");
            let text = format!("Package [a.b] (1):\n{}", one.repeat(count));
            if let Some(details) = parse_details(&text, "a.b") {
                proptest::prop_assert!(details.version_name.is_none_or(|name| name.chars().count() <= 100));
                proptest::prop_assert!(details.permissions.len() <= 500);
            }
        }
    }
}
