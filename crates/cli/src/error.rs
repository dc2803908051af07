//! How a command fails: a message for the person, a word and particulars for a script, an exit code.
//!
//! Failures of calls are rows of the one error table; the few that only the command line can have are
//! named here, with the exit codes of sysexits.h like the table's.

use std::fmt;

use serde_json::{Value, json};
use sinew_compose::ComposeErrorKind;
use sinew_tool::ToolError;

#[derive(Clone, Debug, PartialEq)]
pub struct CliError {
    pub exit: u8,
    pub error_type: &'static str,
    pub message: String,
    pub details: Value,
}

/// The failures of the command line itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliErrorKind {
    /// No gateway runs, or it cannot be reached.
    NoGateway,
    /// The gateway does not accept the token, or its role is too small.
    TokenRefused,
    /// Another process owns the state directory.
    StateTaken,
    /// An address cannot be listened on.
    AddressTaken,
    /// A setting, file or flag combination that cannot work.
    Config,
    /// Reading or writing failed.
    Io,
    /// An argument of the command is wrong.
    Usage,
    /// `doctor` found something that keeps Sinew from working, `bench` could not measure, or `spec` or `app`
    /// found a problem.
    ChecksFailed,
}

/// Word, exit code and meaning of each kind, for `docs/errors.md` too.
pub const KINDS: &[(CliErrorKind, &str, u8, &str)] = &[
    (CliErrorKind::NoGateway, "NoGateway", 69, "No gateway runs, or it cannot be reached."),
    (
        CliErrorKind::TokenRefused,
        "TokenRefused",
        77,
        "The gateway does not accept the token, or its role is too small.",
    ),
    (CliErrorKind::StateTaken, "StateTaken", 75, "Another process owns the state directory."),
    (CliErrorKind::AddressTaken, "DoorTaken", 69, "An address cannot be listened on."),
    (CliErrorKind::Config, "ConfigError", 78, "A setting, file or combination of flags that cannot work."),
    (CliErrorKind::Io, "IoError", 74, "Reading or writing failed."),
    (CliErrorKind::Usage, "UsageError", 2, "An argument of the command is wrong."),
    (
        CliErrorKind::ChecksFailed,
        "ChecksFailed",
        1,
        "`doctor` found a fault, `bench` could not measure, or `spec` or `app` found a problem.",
    ),
];

impl CliError {
    pub fn new(kind: CliErrorKind, message: impl Into<String>) -> CliError {
        let (_, error_type, exit, _) = KINDS[kind as usize];
        CliError { exit, error_type, message: message.into(), details: Value::Null }
    }

    /// A failure that was already printed; only the exit code remains.
    pub fn already_reported(kind: CliErrorKind) -> CliError {
        CliError::new(kind, "")
    }

    pub fn is(&self, kind: CliErrorKind) -> bool {
        CliError::new(kind, "").error_type == self.error_type
    }

    /// Whether the gateway knew the token, whose time is over.
    pub fn is_expired(&self) -> bool {
        self.details["token"] == "expired"
    }

    /// What `--output json` prints, in the shape of the standard failure object.
    pub fn to_object(&self) -> Value {
        let mut object = json!({"status": "failure", "error_type": self.error_type, "error_message": self.message});
        if !self.details.is_null() {
            object["error_details"] = self.details.clone();
        }
        object
    }
}

/// The gateway's messages name its own tools, which are for models; people have commands.
fn for_people(message: &str) -> String {
    let commands = [("list_devices", "`sinew devices`"), ("get_device_events", "`sinew events`")];
    commands.into_iter().fold(message.to_owned(), |message, (tool, command)| {
        message.replace(&format!("`{tool}`"), command).replace(tool, command)
    })
}

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> CliError {
        let row = error.kind.row();
        let message = for_people(&error.message);
        CliError { exit: row.exit, error_type: row.error_type, message, details: error.details }
    }
}

impl From<sinew_compose::Error> for CliError {
    fn from(error: sinew_compose::Error) -> CliError {
        let kind = match error.kind {
            ComposeErrorKind::StateTaken => CliErrorKind::StateTaken,
            ComposeErrorKind::AddressTaken => CliErrorKind::AddressTaken,
            ComposeErrorKind::Config => CliErrorKind::Config,
            ComposeErrorKind::Io => CliErrorKind::Io,
        };
        CliError::new(kind, error.message)
    }
}

impl From<sinew_bench::Error> for CliError {
    fn from(error: sinew_bench::Error) -> CliError {
        CliError::new(CliErrorKind::ChecksFailed, error.to_string())
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_pointed_to_commands_and_not_to_tools() {
        let said = for_people("lamp is away; try again when list_devices shows it as ready");
        assert_eq!(said, "lamp is away; try again when `sinew devices` shows it as ready");
        assert_eq!(for_people("see `get_device_events`"), "see `sinew events`");
    }

    #[test]
    fn kinds_stand_in_the_order_of_the_enum_and_never_exit_with_success() {
        for (index, (kind, word, exit, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, index, "{word} stands in the wrong place");
            assert_ne!(*exit, 0);
        }
        assert_eq!(KINDS.len(), CliErrorKind::ChecksFailed as usize + 1);
    }
}
