//! Input to a phone whose display is off is lost without an error. So the command that sends it checks the display first, on the
//! phone itself, which costs no extra round trip.

use super::command::ShellCommand;
use super::shell::CommandOutput;
use crate::phone::PhoneError;

/// What the phone prints in place of the input.
const SIGN: &str = "sinew-display-off";

/// Sends the input only where the display is on.
pub(crate) fn if_awake(input: &ShellCommand) -> ShellCommand {
    input.within("dumpsys power | grep -qE 'mWakefulness=(Asleep|Dozing)' && echo sinew-display-off || {", "; }")
}

/// Whether the input was not sent.
pub(crate) fn was_refused(output: &CommandOutput) -> bool {
    output.stdout.starts_with(SIGN.as_bytes())
}

pub(crate) fn asleep(serial: &str) -> PhoneError {
    PhoneError::Denied(format!(
        "the display of phone {serial} is off, so it shows nothing and accepts no input; wake it with press_key WAKEUP"
    ))
}
