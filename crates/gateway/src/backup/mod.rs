//! Backups: everything that a gateway remembers, in one file, and back.
//!
//! `archive.rs` is the file, `restore.rs` puts it in the place of a state directory.

mod archive;
mod restore;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use sinew_tool::{ErrorKind, ToolError};

use crate::directory;
use crate::gateway::Gateway;
use crate::private_files::{create_private_folder, private_options};
use crate::settings::OpenError;
use crate::state_guard::StateGuard;
use crate::store;

pub use archive::{ArchiveError, BackupFile, BackupManifest, read_backup};
pub use restore::{RestoreError, Restored, restore};

use archive::{MAX_FILE, STORE};

/// The copy of the store while a backup is made.
const COPYING: &str = "backup.new";
const SEALS: &str = "audit.seals";

/// What a state directory has besides what must be kept: files of the running gateway, and what it makes again.
const NOT_KEPT: &[&str] = &[
    "gateway.lock",
    "takeover.lock",
    "doors.json",
    "last-start.json",
    "demo",
    "android",
    "apps",
    COPYING,
    restore::UNPACKING,
    restore::SWAPPING,
];

/// Looks for what interrupted backups and restores left, before a gateway opens the directory.
pub(crate) fn tidy(dir: &Path) -> Result<(), OpenError> {
    restore::check_interrupted(dir)?;
    for leftover in [COPYING, restore::UNPACKING] {
        let _ = fs::remove_dir_all(dir.join(leftover));
    }
    Ok(())
}

/// Whether a file or folder of a state directory belongs into a backup, by its name. The store is copied by itself.
fn is_kept(name: &str) -> bool {
    let is_temporary = name.ends_with(".new") || name.starts_with(restore::ASIDE) || name.starts_with('.');
    !NOT_KEPT.contains(&name) && !name.starts_with(STORE) && !is_temporary
}

/// A backup that is ready to be written.
pub struct Backup {
    manifest: BackupManifest,
    contents: HashMap<String, Vec<u8>>,
    /// Has the copy of the store.
    copying: CopyFolder,
}

impl Backup {
    /// A backup of a state directory that no gateway uses.
    pub fn of_directory(dir: &Path) -> Result<Backup, OpenError> {
        directory::make_private(dir)?;
        let _lock = StateGuard::take(dir, None)?;
        // Nobody makes one now, so it is from one that was interrupted.
        let _ = fs::remove_dir_all(dir.join(COPYING));
        Backup::make(dir).map_err(|source| OpenError::Io { what: "make a backup of", path: dir.to_owned(), source })
    }

    fn make(dir: &Path) -> io::Result<Backup> {
        let copying = CopyFolder::create(dir)?;
        let copy = copying.0.join(STORE);
        let (database, last_seal) = store::copy(dir, &copy)?;
        let mut contents = HashMap::new();
        collect(dir, "", &mut contents)?;
        if let Some(seals) = contents.get_mut(SEALS) {
            // Made after the copy: its records are not in it.
            *seals = seals_until(seals, last_seal);
        }
        let (sha256, size) = archive::sum(File::open(&copy)?)?;
        let mut files = vec![BackupFile { path: STORE.to_owned(), size, sha256 }];
        let mut paths: Vec<&String> = contents.keys().collect();
        paths.sort();
        for path in paths {
            let (sha256, size) = archive::sum(contents[path].as_slice())?;
            files.push(BackupFile { path: path.clone(), size, sha256 });
        }
        let manifest = BackupManifest::new(jiff::Timestamp::now().as_millisecond(), database, files);
        Ok(Backup { manifest, contents, copying })
    }

    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// How many bytes it will have.
    pub fn length(&self) -> io::Result<u64> {
        self.manifest.length()
    }

    pub fn write(mut self, out: impl Write) -> io::Result<()> {
        let copy = self.copying.0.join(STORE);
        archive::write(out, &self.manifest, |file| -> io::Result<Box<dyn Read>> {
            match self.contents.remove(&file.path) {
                Some(content) => Ok(Box::new(Cursor::new(content))),
                None => Ok(Box::new(File::open(&copy)?)),
            }
        })
    }
}

impl Gateway {
    /// A backup of everything that this gateway remembers. Calls go on meanwhile.
    pub async fn backup(&self) -> Result<Backup, ToolError> {
        let failed = |why: String| ToolError::new(ErrorKind::Internal, format!("the backup could not be made: {why}"));
        let Some(dir) = self.state_dir() else {
            return Err(ToolError::new(
                ErrorKind::InvalidArguments,
                "this gateway keeps nothing, so there is nothing to back up",
            ));
        };
        self.settled().await?;
        let made = tokio::task::spawn_blocking(move || Backup::make(&dir)).await;
        made.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

/// Everything in a folder that belongs into a backup.
fn collect(dir: &Path, inside: &str, contents: &mut HashMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let named = |why: &str| io::Error::other(format!("{} {why}", entry.path().display()));
        let Some(name) = name.to_str() else { return Err(named("has a name that is not UTF-8; rename it")) };
        if inside.is_empty() && !is_kept(name) {
            continue;
        }
        let path = format!("{inside}{name}");
        let about = entry.metadata()?;
        if about.is_dir() {
            collect(&entry.path(), &format!("{path}/"), contents)?;
        } else if !about.is_file() {
            tracing::warn!(path = %entry.path().display(), "not in the backup: it is a link or no file");
        } else if about.len() > MAX_FILE {
            return Err(named(&format!("has more than {} MiB; move it out of the state directory", MAX_FILE >> 20)));
        } else {
            match fs::read(entry.path()) {
                Ok(content) => drop(contents.insert(path, content)),
                // A token that was revoked just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(named(&format!("cannot be read: {error}"))),
            }
        }
    }
    Ok(())
}

/// The lines of the seals that the copy of the store has too.
fn seals_until(seals: &[u8], last: i64) -> Vec<u8> {
    let is_before = |line: &&[u8]| {
        let seal: Option<serde_json::Value> = serde_json::from_slice(line).ok();
        line.ends_with(b"\n") && seal.is_some_and(|seal| seal["last"].as_i64().is_some_and(|at| at <= last))
    };
    seals.split_inclusive(|byte| *byte == b'\n').take_while(is_before).flatten().copied().collect()
}

/// A folder for the copy of the store; it goes with the backup.
struct CopyFolder(PathBuf);

impl CopyFolder {
    fn create(dir: &Path) -> io::Result<CopyFolder> {
        let path = dir.join(COPYING);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(io::Error::other(format!(
                    "another backup is being made; if not, remove {}, which an interrupted one left",
                    path.display()
                )));
            }
            Err(error) => return Err(error),
        }
        let folder = CopyFolder(path);
        create_private_folder(&folder.0)?;
        // Before anything is in it: SQLite writes with the mode that is there.
        private_options().write(true).create_new(true).open(folder.0.join(STORE))?;
        Ok(folder)
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a backup to a new file that only its owner can read, reads it again, and gives it its name when it is whole.
pub fn write_backup_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<BackupManifest, ArchiveError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let _ = fs::remove_file(&new);
    let written = || {
        let mut file = private_options().write(true).create_new(true).open(&new)?;
        write(&mut file)?;
        file.sync_all()?;
        let file = OpenOptions::new().read(true).open(&new)?;
        let length = file.metadata()?.len();
        let manifest = read_backup(io::BufReader::new(file), length, |_, _| Ok(()))?;
        // Never in place of another file.
        fs::hard_link(&new, path).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            // A file system without links.
            _ => fs::rename(&new, path),
        })?;
        Ok(manifest)
    };
    let written = written();
    let _ = fs::remove_file(&new);
    written
}
