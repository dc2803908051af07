//! Files in the shared storage of a phone, and in the shell's scratch folder.
//!
//! A path is resolved on the phone before it is used, so that neither `..` nor a link leads out of these two places.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{FolderEntry, PhoneShell, own_name, with_cleanup};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// What people call the shared storage.
const SHARED: &str = "/sdcard";
/// The shell's own folder.
const SCRATCH: &str = "/data/local/tmp";

/// adbd refuses paths of more than 1,024 bytes; the rest is for what a path leads to, and for a name beside it.
const MAX_PATH: usize = 900;

/// Names in the scratch folder that start so are Sinew's own: the agent is run from there.
const OWN: &str = "sinew-";

/// A file or folder whose place was checked on the phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhonePath(String);

impl PhonePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Resolves a path: absolute, or from the shared storage on.
pub async fn resolve(on: &dyn PhoneShell, given: &str) -> Result<PhonePath, PhoneError> {
    let path = absolute(given)?;
    let command = ShellCommand::new("readlink -f").arg(SHARED);
    let command = command.then(ShellCommand::new("readlink -f").arg(SCRATCH));
    let command = command.then(ShellCommand::new("readlink -f").arg(&path));
    let output = on.run_command(&command, CommandLimits::seconds(15)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (shared, scratch) = (lines.next().unwrap_or(SHARED), lines.next().unwrap_or(SCRATCH));
    let resolved = lines.next().ok_or_else(|| missing(given))?;
    match place(resolved, shared, scratch) {
        Some(Place::Allowed) => Ok(PhonePath(resolved.to_owned())),
        Some(Place::Own) => Err(PhoneError::Denied(format!(
            "'{given}' is a file of Sinew's own on the phone; use another name that does not start with `{OWN}`"
        ))),
        None => Err(outside(given)),
    }
}

pub async fn list(on: &dyn PhoneShell, path: &PhonePath) -> Result<Vec<FolderEntry>, PhoneError> {
    let is_folder = ShellCommand::new("test -d").arg(path.as_str()).and(ShellCommand::new("echo yes"));
    let output = on.run_command(&is_folder, CommandLimits::seconds(15)).await?;
    if !output.stdout.starts_with(b"yes") {
        return Err(missing(path.as_str()));
    }
    let mut entries = on.list_folder(path.as_str()).await?;
    let is_scratch = path.as_str() == SCRATCH;
    let is_left_out = |name: &str| matches!(name, "." | "..") || (is_scratch && name.starts_with(OWN));
    entries.retain(|entry| !is_left_out(&entry.name));
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// A file as a whole, where it has at most `most` bytes.
pub async fn read(on: &dyn PhoneShell, path: &PhonePath, most: usize) -> Result<Vec<u8>, PhoneError> {
    let mut bytes = Vec::new();
    pull(on, path.as_str(), &mut bytes, most as u64, TRANSFER).await?;
    Ok(bytes)
}

/// Streams a file of at most `most` bytes from the phone and gives its size. A larger one is refused before it is sent.
pub(super) async fn pull(
    on: &dyn PhoneShell,
    path: &str,
    into: &mut (dyn AsyncWrite + Send + Unpin),
    most: u64,
    limit: Duration,
) -> Result<u64, PhoneError> {
    let look = ShellCommand::new("stat -c %s").arg(path);
    let size = on.run_command(&look, CommandLimits::seconds(15)).await?.text().trim().parse::<u64>();
    match size {
        Ok(size) if size > most => {
            Err(PhoneError::TooLarge(format!("'{}' has {size} bytes; at most {most} are read", shown(path))))
        }
        // What grows meanwhile, or has no size, as on phones without `stat`, ends at the limit.
        _ => on.pull(path, into, most, limit).await,
    }
}

pub async fn write(on: &dyn PhoneShell, path: &PhonePath, bytes: &[u8]) -> Result<(), PhoneError> {
    let mut source = bytes;
    push(on, &mut source, path, TRANSFER).await.map(drop)
}

/// Streams a file to the phone and gives its size. It is written beside its place first, so that neither half of it nor
/// a damaged older one is ever there.
pub async fn push(
    on: &dyn PhoneShell,
    source: &mut (dyn AsyncRead + Send + Unpin),
    path: &PhonePath,
    limit: Duration,
) -> Result<u64, PhoneError> {
    // A name of its own rather than a longer one: a name of 255 bytes is the longest that there is.
    let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
    let part = format!("{folder}/.{}", own_name("part"));
    let look = ShellCommand::new("test -d").arg(path.as_str()).and(ShellCommand::new("echo folder"));
    let cleanup = ShellCommand::new("rm -f").arg(&part);
    with_cleanup(on, &look, &cleanup, |found| push_by_way_of(on, source, &part, path, limit, found == "folder")).await
}

async fn push_by_way_of(
    on: &dyn PhoneShell,
    source: &mut (dyn AsyncRead + Send + Unpin),
    part: &str,
    path: &PhonePath,
    limit: Duration,
    is_folder: bool,
) -> Result<u64, PhoneError> {
    let wrong = |why: &str| PhoneError::Failed(format!("'{}' was not written: {why}", shown(path.as_str())));
    let folder = || wrong("it is a folder; name a file in it");
    // Before gigabytes are sent in vain.
    if is_folder {
        return Err(folder());
    }
    let size = on.push(source, part, limit).await?;
    // A folder of this name would take the file in.
    let replace = ShellCommand::new("! test -d").arg(path.as_str());
    let replace = replace.and(ShellCommand::new("mv -f").arg(part).arg(path.as_str()));
    let output = on.run_command(&replace, CommandLimits::seconds(15)).await?;
    match output.exit {
        0 => Ok(size),
        _ if output.text().trim().is_empty() => Err(folder()),
        _ => Err(wrong(&super::reason(&output.text()))),
    }
}

/// Less than a call takes, so that a slow transfer ends with its own error.
const TRANSFER: Duration = Duration::from_secs(25);

fn absolute(given: &str) -> Result<String, PhoneError> {
    let wrong = |why: &str| Err(PhoneError::Invalid(format!("the path '{}' {why}", shown(given))));
    match () {
        () if given.is_empty() => wrong("is empty; use for example 'Download/notes.txt'"),
        () if given.len() > MAX_PATH => wrong(&format!("has {} bytes; at most {MAX_PATH} are possible", given.len())),
        () if given.chars().any(char::is_control) => wrong("has control characters"),
        () if given.split('/').any(|part| part == "..") => wrong("has '..'; name the place itself"),
        () if given.starts_with('/') => Ok(given.to_owned()),
        () => Ok(format!("{SHARED}/{given}")),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Allowed,
    Own,
}

/// Where a resolved path lies; `None` outside both places.
fn place(resolved: &str, shared: &str, scratch: &str) -> Option<Place> {
    let inside = |root: &str| {
        let rest = resolved.strip_prefix(root)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    if let Some(rest) = inside(scratch) {
        return Some(if rest[rest.len().min(1)..].starts_with(OWN) { Place::Own } else { Place::Allowed });
    }
    // A link that resolves to nothing would make every path one of the shared storage.
    inside(shared).filter(|_| shared.len() > 1).map(|_| Place::Allowed)
}

fn outside(given: &str) -> PhoneError {
    PhoneError::Denied(format!(
        "'{}' is outside the phone's shared storage ({SHARED}) and {SCRATCH}; files elsewhere belong to the system and to apps",
        shown(given)
    ))
}

fn missing(given: &str) -> PhoneError {
    PhoneError::Invalid(format!("the phone has no '{}'; list_files shows what is there", shown(given)))
}

fn shown(path: &str) -> String {
    path.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shared_storage_and_the_scratch_folder_are_reachable() {
        let at = |path: &str| place(path, "/storage/emulated/0", "/data/local/tmp");
        assert_eq!(at("/storage/emulated/0"), Some(Place::Allowed));
        assert_eq!(at("/storage/emulated/0/Download/a b"), Some(Place::Allowed));
        assert_eq!(at("/data/local/tmp/x"), Some(Place::Allowed));
        assert_eq!(at("/data/local/tmp"), Some(Place::Allowed));
        assert_eq!(at("/data/local/tmp/sinew-agent.jar"), Some(Place::Own));
        for elsewhere in ["/", "/data", "/data/local/tmpx", "/storage/emulated/01", "/data/data/a.b", "", "x"] {
            assert_eq!(at(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(place("/etc/hosts", "/", "/data/local/tmp"), None);
    }

    #[test]
    fn a_path_is_checked_before_the_phone_sees_it() {
        assert_eq!(absolute("Download/a").unwrap(), "/sdcard/Download/a");
        assert_eq!(absolute("/data/local/tmp/a").unwrap(), "/data/local/tmp/a");
        for wrong in ["", "a/../b", "..", "/sdcard/..", "a\nb", "a\0b", &"x".repeat(1001)] {
            assert!(matches!(absolute(wrong), Err(PhoneError::Invalid(_))), "{wrong:?}");
        }
    }
}
