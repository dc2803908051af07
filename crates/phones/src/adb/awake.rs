//! Input to a phone whose display is off vanishes without a word. So the command that sends it looks first, on the
//! phone itself, which costs no round trip.

use super::command::ShellCommand;
use super::shell::CommandOutput;
use crate::phone::PhoneError;

/// What the phone prints in place of the input.
const SIGN: &str = "sinew-display-off";

/// Sends the input only where the display is on.
pub fn if_awake(input: &ShellCommand) -> ShellCommand {
    input.within("dumpsys power | grep -qE 'mWakefulness=(Asleep|Dozing)' && echo sinew-display-off || {", "; }")
}

/// Whether the input was not sent.
pub fn was_refused(output: &CommandOutput) -> bool {
    output.stdout.starts_with(SIGN.as_bytes())
}

pub fn asleep(serial: &str) -> PhoneError {
    PhoneError::Denied(format!(
        "the display of phone {serial} is off, so it shows and takes nothing; wake it with press_key WAKEUP"
    ))
}
