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
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
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

    /// Opens something on the phone that the phone itself closes again: when the answer is released or dropped, and also
    /// where the connection ends in the middle of opening. `close` finds what `open` printed in `$opened`.
    fn hold<'a>(&'a self, open: &'a ShellCommand, close: &'a ShellCommand) -> Work<'a, Box<dyn Held>>;

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

/// What is open on a phone. Dropped, it is closed soon.
pub trait Held: Send {
    /// What opening it printed.
    fn opened(&self) -> &str;

    /// Waits until the phone is gone.
    fn lost(&mut self) -> Work<'_, Infallible>;

    /// Closes it and waits until that is done.
    fn release(self: Box<Self>) -> Work<'static, ()>;
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

/// Opens something on the phone and works with what that printed. The phone cleans up behind it: where the work is done,
/// where it fails, where its caller gives up, and where the phone goes away in the middle.
pub(crate) async fn with_cleanup<T, W: Future<Output = Result<T, PhoneError>>>(
    on: &dyn PhoneShell,
    open: &ShellCommand,
    close: &ShellCommand,
    work: impl FnOnce(String) -> W,
) -> Result<T, PhoneError> {
    let mut held = on.hold(open, close).await?;
    let work = work(held.opened().to_owned());
    let done = tokio::select! {
        biased;
        done = work => done,
        gone = held.lost() => gone.map(|never| match never {}),
    };
    if !matches!(&done, Err(PhoneError::Gone(_))) {
        // Where the phone is too slow to say that it has cleaned up, the work is done all the same.
        let _ = held.release().await;
    }
    done
}

/// A name for a file on the phone that no other file has, nor one of another gateway: process ids repeat in containers.
pub(crate) fn own_name(kind: &str) -> String {
    static GATEWAY: OnceLock<u32> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let gateway = GATEWAY.get_or_init(|| RandomState::new().hash_one(std::process::id()) as u32);
    format!("sinew-{kind}-{gateway:08x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
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
