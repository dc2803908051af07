//! Something opened on a phone that the phone itself closes, however the one who opened it ends.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::timeout;

use super::command::ShellCommand;
use super::program::{ProgramEvent, ProgramInput, ProgramOutput};
use super::server::{AdbError, AdbTransport};
use crate::control::Held;
use crate::phone::{PhoneError, Work};

/// Ends what opening printed.
const MARK: &str = "sinew-held\n";

/// Opening something takes a phone a moment that has much to do.
const OPENING: Duration = Duration::from_secs(30);

/// Removing a file or giving up an installation is quick.
const CLOSING: Duration = Duration::from_secs(15);

/// What opening prints is a line or two.
const MAX_OPENED: usize = 16 << 10;

/// A shell on the phone that waits, and closes what it opened.
pub(super) struct HeldShell {
    input: ProgramInput,
    output: ProgramOutput,
    opened: String,
    serial: String,
}

impl HeldShell {
    /// The shell ignores the signal that comes when its connection ends, so it goes on: its input is at an end then, and
    /// it closes what it has opened, also what it was opening.
    pub(super) async fn open(
        transport: &AdbTransport,
        open: &ShellCommand,
        close: &ShellCommand,
    ) -> Result<HeldShell, AdbError> {
        let what = open.name();
        let opening = async {
            let (input, mut output) = transport.start(&held(open, close)).await?;
            let mut printed = Vec::new();
            loop {
                match output.read().await {
                    ProgramEvent::Stdout(piece) => printed.extend(piece),
                    ProgramEvent::Stderr(_) => {}
                    ProgramEvent::End(_) => return Err(AdbError::Gone(what.to_owned())),
                }
                if let Some(opened) = String::from_utf8_lossy(&printed).strip_suffix(MARK) {
                    let (opened, serial) = (opened.trim().to_owned(), transport.serial.clone());
                    return Ok(HeldShell { input, output, opened, serial });
                }
                if printed.len() > MAX_OPENED {
                    return Err(AdbError::TooLarge { what: what.to_owned(), limit: MAX_OPENED });
                }
            }
        };
        let late = || Err(AdbError::Timeout { what: what.to_owned(), limit: OPENING });
        timeout(OPENING, opening).await.unwrap_or_else(|_| late())
    }

    /// Waits until the shell has ended, or the connection.
    async fn ended(&mut self) {
        while !matches!(self.output.read().await, ProgramEvent::End(_)) {}
    }
}

fn held(open: &ShellCommand, close: &ShellCommand) -> ShellCommand {
    let open =
        open.within("trap '' HUP TERM PIPE; opened=$(", " 2>&1); echo \"$opened\"; echo sinew-held; read -r end");
    open.then(close.clone())
}

impl Held for HeldShell {
    fn opened(&self) -> &str {
        &self.opened
    }

    fn lost(&mut self) -> Work<'_, Infallible> {
        Box::pin(async {
            self.ended().await;
            Err(PhoneError::Gone(format!("the shell of phone {} ended early", self.serial)))
        })
    }

    fn release(mut self: Box<Self>) -> Work<'static, ()> {
        Box::pin(async move {
            let serial = self.serial.clone();
            let gone = |_| PhoneError::Gone(format!("phone {serial} left before it had cleaned up"));
            self.input.write(b"\n").await.map_err(gone)?;
            let late = |_| PhoneError::Timeout(format!("phone {serial} takes long to clean up"));
            timeout(CLOSING, self.ended()).await.map_err(late)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the line in a shell of this computer, as a phone would, and gives what it left in a folder.
    fn left_behind(input: &str) -> Option<(String, Vec<String>)> {
        let folder = tempfile::tempdir().ok()?;
        let open = ShellCommand::new("touch opened; echo number [42]");
        let close = ShellCommand::new("rm opened; echo \"closed $opened\" > closed");
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(held(&open, &close).line()).current_dir(folder.path());
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().ok()?;
        std::io::Write::write_all(shell.stdin.as_mut()?, input.as_bytes()).ok()?;
        let output = shell.wait_with_output().ok()?;
        assert_eq!(std::fs::read_to_string(folder.path().join("closed")).unwrap(), "closed number [42]\n");
        let names =
            std::fs::read_dir(folder.path()).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Some((String::from_utf8(output.stdout).ok()?, names.collect()))
    }

    #[test]
    fn a_real_shell_closes_what_it_opened_when_it_is_released_and_when_its_input_ends() {
        for input in ["\n", ""] {
            let Some((printed, left)) = left_behind(input) else { return };
            assert_eq!((printed.as_str(), left), ("number [42]\nsinew-held\n", vec!["closed".to_owned()]));
        }
    }
}
