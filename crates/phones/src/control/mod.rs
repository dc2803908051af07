//! What a phone's shell and file transfer offer beyond the screen: apps, files, notifications, state, video.
//!
//! Each is written once on [`PhoneShell`], so it works through adb and on the virtual phone alike.

pub mod apps;
pub mod files;
pub mod install;
pub mod notifications;
pub mod status;
pub mod video;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::adb::command::ShellCommand;
use crate::adb::shell::{CommandLimits, CommandOutput};
use crate::phone::{PhoneError, Work};

/// Runs commands on a phone and moves its files.
pub trait PhoneShell: Send + Sync {
    fn run_command<'a>(&'a self, command: &'a ShellCommand, limits: CommandLimits) -> Work<'a, CommandOutput>;

    /// Runs a command that reads `input`, which is streamed to it.
    fn feed<'a>(
        &'a self,
        command: &'a ShellCommand,
        input: &'a mut (dyn AsyncRead + Send + Unpin),
        limits: CommandLimits,
    ) -> Work<'a, CommandOutput>;

    /// Waits for ever, or until the phone is gone. When the wait ends, however it does, the phone itself runs `cleanup`.
    fn hold<'a>(&'a self, cleanup: &'a ShellCommand) -> Work<'a, Infallible>;

    /// What is in a folder; empty where there is no such folder.
    fn list_folder<'a>(&'a self, path: &'a str) -> Work<'a, Vec<FolderEntry>>;

    /// Streams a file of at most `most` bytes from the phone and gives its size.
    fn pull<'a>(
        &'a self,
        path: &'a str,
        into: &'a mut (dyn AsyncWrite + Send + Unpin),
        most: u64,
        limit: Duration,
    ) -> Work<'a, u64>;

    /// Streams a file to the phone and gives its size.
    fn push<'a>(
        &'a self,
        from: &'a mut (dyn AsyncRead + Send + Unpin),
        path: &'a str,
        limit: Duration,
    ) -> Work<'a, u64>;
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: String,
    /// Type and permissions, as Unix has them.
    pub mode: u32,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: u64,
}

impl FolderEntry {
    pub fn kind(&self) -> &'static str {
        match self.mode & 0o170_000 {
            0o040_000 => "folder",
            0o120_000 => "link",
            0o100_000 => "file",
            _ => "other",
        }
    }
}

/// Does some work and lets the phone clean up behind it: where it fails, where its caller gives up, and also where the
/// phone goes away in the middle.
async fn with_cleanup<T>(
    on: &dyn PhoneShell,
    cleanup: &ShellCommand,
    work: impl Future<Output = Result<T, PhoneError>>,
) -> Result<T, PhoneError> {
    let done = tokio::select! {
        biased;
        done = work => done,
        gone = on.hold(cleanup) => gone.map(|never| match never {}),
    };
    if matches!(&done, Err(error) if !matches!(error, PhoneError::Gone(_))) {
        // Now rather than soon: the caller may look at what it left. Whatever this says, the phone does it once more.
        let _ = on.run_command(cleanup, CommandLimits::seconds(15)).await;
    }
    done
}

/// Another number each time, for names of files that must not meet.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The line that says what went wrong: the message of an exception, a `Failure [...]`, or the first line.
fn reason(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines.clone().find(|line| line.contains("Exception: ") || line.starts_with("Failure"));
    let line = telling.or_else(|| lines.next()).unwrap_or("the phone gave no reason");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failure_is_the_line_that_tells_it() {
        let thrown = "\nException occurred while executing 'grant':\njava.lang.SecurityException: Package a.b has not requested permission x\n\tat com";
        assert_eq!(reason(thrown), "java.lang.SecurityException: Package a.b has not requested permission x");
        assert_eq!(reason("Failure [DELETE_FAILED_INTERNAL_ERROR]\n"), "Failure [DELETE_FAILED_INTERNAL_ERROR]");
        assert_eq!(reason(""), "the phone gave no reason");
    }
}
