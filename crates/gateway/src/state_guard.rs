//! One process owns a state directory.
//!
//! The file `gateway.lock` is held with a lock of the operating system, which ends with the process
//! however it ends. Its content only says who holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::settings::OpenError;

const NAME: &str = "gateway.lock";

/// The gateway that holds a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningGateway {
    pub pid: u32,
    pub url: Option<String>,
}

/// The gateway that runs on this state directory, if one does.
pub fn running_gateway(state_dir: &Path) -> Option<RunningGateway> {
    let mut file = File::open(state_dir.join(NAME)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read(&mut file),
        _ => None,
    }
}

/// A held state directory; dropping it releases it.
pub(crate) struct StateGuard {
    file: File,
}

impl StateGuard {
    pub(crate) fn take(dir: &Path, url: Option<&str>) -> Result<StateGuard, OpenError> {
        let path = dir.join(NAME);
        let failed = |source| OpenError::Io { what: "open the lock file", path: path.clone(), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(failed)?;
        // `running_gateway` holds the lock for an instant, so one refusal is not final.
        for _ in 0..5 {
            match file.try_lock() {
                Ok(()) => {
                    let mut lock = StateGuard { file };
                    lock.write_owner(url).map_err(failed)?;
                    return Ok(lock);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        let owner = read(&mut file);
        let (pid, url) = owner.map_or((None, None), |owner| (Some(owner.pid), owner.url));
        Err(OpenError::InUse { dir: dir.to_owned(), pid, url })
    }

    /// Writes down who holds it.
    pub(crate) fn write_owner(&mut self, url: Option<&str>) -> std::io::Result<()> {
        let text = json!({"pid": std::process::id(), "url": url}).to_string();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

fn read(file: &mut File) -> Option<RunningGateway> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    // 4 KiB: a process id and an address, with much room.
    file.take(4096).read_to_string(&mut text).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let pid = value.get("pid")?.as_u64().and_then(|pid| u32::try_from(pid).ok())?;
    Some(RunningGateway { pid, url: value.get("url").and_then(Value::as_str).map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_process_learns_which_one_holds_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running_gateway(dir.path()), None);
        let mut lock = StateGuard::take(dir.path(), None).unwrap();
        lock.write_owner(Some("http://127.0.0.1:7300")).unwrap();
        let me = RunningGateway { pid: std::process::id(), url: Some("http://127.0.0.1:7300".to_owned()) };
        assert_eq!(running_gateway(dir.path()), Some(me));
        let refusal = StateGuard::take(dir.path(), None).err().unwrap().to_string();
        assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
        assert!(refusal.contains("http://127.0.0.1:7300"), "{refusal}");
        drop(lock);
        assert_eq!(running_gateway(dir.path()), None);
        assert!(StateGuard::take(dir.path(), None).is_ok());
    }

    #[test]
    fn a_lock_file_with_damaged_content_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), [0xff; 9000]).unwrap();
        assert_eq!(running_gateway(dir.path()), None);
        assert!(StateGuard::take(dir.path(), Some("x")).is_ok());
        assert_eq!(running_gateway(dir.path()), None);
    }
}
