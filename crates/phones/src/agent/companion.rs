//! The companion app: calls an activity and receives its result, which only an activity can.
//!
//! A call is two commands with one token that was never used before: `am start` hands the call to the
//! companion, `content read` waits for its answer.

use std::time::Duration;

use serde_json::Value;
use sinew_tool::lenient;
use tokio::time::Instant;

use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::adb::{AdbError, AdbTransport};
use crate::phone::PhoneError;

const PACKAGE: &str = "sinew.companion";

/// The companion's protocol version.
const PROTOCOL: u64 = 1;

/// One word of a command line; the kernel takes 128 KB, an adb request 64.
pub const MAX_PARAMETERS: usize = 60 << 10;

/// The companion of one phone.
#[derive(Clone)]
pub struct Companion {
    transport: AdbTransport,
}

/// An activity to be called.
#[derive(Clone, Copy, Debug)]
pub struct ActivityCall<'a> {
    /// `package/class`; without it the action finds the activity.
    pub component: Option<&'a str>,
    /// Where the action looks; everywhere where `None`.
    pub package: Option<&'a str>,
    pub action: &'a str,
    pub tool_name: &'a str,
    /// JSON text.
    pub parameters: &'a str,
}

/// What an activity answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityAnswer {
    /// -1 is OK, 0 is canceled.
    pub code: i32,
    /// Its string extra `result`, where it gave one.
    pub result: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompanionError {
    #[error("the companion is not installed on phone {0}; install it with `sinew phones install-companion {0}`")]
    Absent(String),
    /// The companion's own word and message: `not_found`, `denied`, `ambiguous`, `abandoned`,
    /// `replaced`, `failed`.
    #[error("{message}")]
    Refused { kind: String, message: String },
    #[error("no answer within {} s; the app may wait for somebody at the phone", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("the parameters have {0} bytes; an activity is given at most {MAX_PARAMETERS}")]
    TooLong(usize),
    #[error("{0}")]
    Failed(String),
    /// The connection to the phone failed.
    #[error("{0}")]
    Adb(PhoneError),
}

impl From<AdbError> for CompanionError {
    fn from(error: AdbError) -> CompanionError {
        CompanionError::Adb(error.into())
    }
}

impl From<CompanionError> for PhoneError {
    fn from(error: CompanionError) -> PhoneError {
        let message = error.to_string();
        match error {
            CompanionError::Adb(error) => error,
            CompanionError::Absent(_) => PhoneError::unsupported("calling an activity for its result", message),
            CompanionError::Timeout(_) => PhoneError::Timeout(message),
            CompanionError::TooLong(_) => PhoneError::Invalid(message),
            CompanionError::Refused { kind, .. } if kind == "denied" => PhoneError::Denied(message),
            CompanionError::Refused { .. } | CompanionError::Failed(_) => PhoneError::Failed(message),
        }
    }
}

impl Companion {
    pub fn new(transport: AdbTransport) -> Companion {
        Companion { transport }
    }

    /// The version of the companion that is installed.
    pub async fn about(&self) -> Result<String, CompanionError> {
        let question = ShellCommand::new("content read --uri content://sinew.companion/about");
        let output = self.transport.run(&question, CommandLimits::seconds(20)).await?;
        let answer: Value = match lenient::read(&output.stdout) {
            Ok(answer) => answer,
            Err(_) => return Err(self.unanswered(&output.text())),
        };
        let version = answer["version"].as_str().unwrap_or("unknown").chars().take(40).collect::<String>();
        match answer["protocol"] == PROTOCOL {
            true => Ok(version),
            false => Err(CompanionError::Failed(format!(
                "companion {version} speaks protocol {}, this Sinew speaks {PROTOCOL}; install the one built with it: `sinew phones install-companion {}`",
                answer["protocol"], self.transport.serial
            ))),
        }
    }

    /// Installs the app from the bytes of its APK, over an older one where there is one. Gives its version.
    pub async fn install(&self, apk: &[u8]) -> Result<String, CompanionError> {
        const PLACE: &str = "/data/local/tmp/sinew-companion.apk";
        self.transport.push(apk, PLACE, 0o644, Duration::from_secs(60)).await?;
        let install = ShellCommand::new("pm install -r").arg(PLACE);
        let output = self.transport.run(&install, CommandLimits::seconds(120)).await;
        let removed = self.transport.run(&ShellCommand::new("rm -f").arg(PLACE), CommandLimits::seconds(10)).await;
        let text = output?.text();
        removed?;
        if !text.contains("Success") {
            let line: String = text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty())
                .unwrap_or("it said nothing")
                .chars()
                .take(300)
                .collect();
            let remedy = match line.contains("UPDATE_INCOMPATIBLE") {
                true => {
                    "; the one on the phone was signed with another key: remove it with `adb uninstall sinew.companion`"
                }
                false => "",
            };
            return Err(CompanionError::Failed(format!(
                "phone {} did not install the companion: {line}{remedy}",
                self.transport.serial
            )));
        }
        self.about().await
    }

    /// Calls an activity and waits for its answer.
    pub async fn call(&self, call: &ActivityCall<'_>, limit: Duration) -> Result<ActivityAnswer, CompanionError> {
        if call.parameters.len() > MAX_PARAMETERS {
            return Err(CompanionError::TooLong(call.parameters.len()));
        }
        let deadline = Instant::now() + limit;
        let rest = || CommandLimits { time: deadline.saturating_duration_since(Instant::now()), bytes: 16 << 20 };
        let token = token();
        // New task, multiple tasks: an earlier call is not brought to the front in place of this one.
        let mut start =
            ShellCommand::new("am start -f 0x18000000 -n sinew.companion/.CallActivity --es token").arg(&token);
        for (name, value) in [("component", call.component), ("package", call.package)] {
            if let Some(value) = value {
                start = start.arg("--es").arg(name).arg(value);
            }
        }
        for (name, value) in [("action", call.action), ("tool_name", call.tool_name), ("parameters", call.parameters)] {
            start = start.arg("--es").arg(name).arg(value);
        }
        let late = |error: AdbError| match error {
            AdbError::Timeout { .. } => CompanionError::Timeout(limit),
            error => error.into(),
        };
        let text = self.transport.run(&start, rest()).await.map_err(late)?.text();
        if text.contains("Error") || text.contains("Exception") {
            return Err(self.unanswered(&text));
        }
        let read = ShellCommand::new("content read --uri").arg(format!("content://{PACKAGE}/call/{token}"));
        // Twice: Android may end the companion while it waits; its answer is kept for the next reader.
        for _ in 0..2 {
            let output = self.transport.run(&read, rest()).await.map_err(late)?;
            let text = String::from_utf8_lossy(&output.stdout);
            if !text.trim().is_empty() {
                return parse(&text).ok_or_else(|| self.unanswered(&text))?;
            }
            if !output.stderr.is_empty() {
                return Err(self.unanswered(&output.text()));
            }
        }
        Err(CompanionError::Failed(format!(
            "Android ended the companion on phone {} before the tool answered",
            self.transport.serial
        )))
    }

    /// What a command means that did not give the companion's answer.
    fn unanswered(&self, text: &str) -> CompanionError {
        let signs = ["does not exist", "Could not find provider", "Error while accessing provider", "Unknown URL"];
        if signs.iter().any(|sign| text.contains(sign)) {
            return CompanionError::Absent(self.transport.serial.clone());
        }
        let line: String =
            text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing").chars().take(300).collect();
        CompanionError::Failed(format!(
            "the companion on phone {} gave an unexpected answer: {line}",
            self.transport.serial
        ))
    }
}

/// `None` for what is not an answer of the companion.
fn parse(text: &str) -> Option<Result<ActivityAnswer, CompanionError>> {
    let answer: Value = lenient::read(text.as_bytes()).ok()?;
    if let Some(error) = answer.get("error") {
        let word = |name: &str| error[name].as_str().unwrap_or_default().chars().take(2000).collect::<String>();
        return Some(Err(CompanionError::Refused { kind: word("type"), message: word("message") }));
    }
    let code = i32::try_from(answer["code"].as_i64()?).ok()?;
    Some(Ok(ActivityAnswer { code, result: answer["result"].as_str().map(str::to_owned) }))
}

/// 32 hexadecimal digits that were never used before.
fn token() -> String {
    let mut bytes = [0; 16];
    // Without randomness the time still makes it new; only the shell user can read the answer anyway.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_refusals_are_told_apart() {
        let ok = |code, result: Option<&str>| Some(Ok(ActivityAnswer { code, result: result.map(str::to_owned) }));
        assert_eq!(parse(r#"{"code":-1,"result":"done"}"#), ok(-1, Some("done")));
        assert_eq!(parse(r#"{"code":0,"result":null}"#), ok(0, None));
        let refused = CompanionError::Refused { kind: "denied".to_owned(), message: "not exported".to_owned() };
        assert_eq!(parse(r#"{"error":{"type":"denied","message":"not exported"}}"#), Some(Err(refused.clone())));
        assert!(matches!(PhoneError::from(refused), PhoneError::Denied(_)));
        for odd in ["", "[]", "{}", "{\"code\":\"x\"}", "Error while", "{\"code\":99999999999}"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_token_is_new_each_time() {
        let (one, other) = (token(), token());
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()) && one != other, "{one} {other}");
    }
}
