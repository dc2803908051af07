//! Puts a backup in the place of a state directory. The new files are complete and checked before the first old one is
//! moved, and the old ones are kept aside.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::archive::{ArchiveError, BackupManifest, STORE, read_backup};
use crate::directory;
use crate::gateway::verify_key_and_audit;
use crate::private_files::{create_private_folder, give_to_owner_of, private_options};
use crate::settings::OpenError;
use crate::state_guard::StateGuard;
use crate::store;
use crate::view::AuditReport;

/// Files that are not checked yet.
pub(super) const UNPACKING: &str = "restore.new";
/// Checked files while they are moved to their places; a gateway does not start beside it.
pub(super) const SWAPPING: &str = "restore.swap";
/// Before the number of a folder with the files that a restore replaced.
pub(super) const ASIDE: &str = "before-restore-";

/// What stays where it is: locks that are held, and what does not belong to the gateway's memory.
const STAYS: &[&str] = &["gateway.lock", "takeover.lock", "demo", "android", "apps", "last-start.json", SWAPPING];

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    pub manifest: BackupManifest,
    /// Where the files that were there are now.
    pub aside: Option<PathBuf>,
    pub audit: AuditReport,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    State(#[from] OpenError),
    #[error("{}: {error}; nothing was restored", .path.display())]
    Archive { path: PathBuf, error: ArchiveError },
    #[error("the database in the backup is damaged ({0}); nothing was restored")]
    Database(String),
    #[error(
        "the audit in the backup is not as it was written ({count} problems, the first: {first}); nothing was restored"
    )]
    Audit { count: u64, first: String },
    #[error("the files could not be put in place: {why}; {left}")]
    Move { why: io::Error, left: String },
}

/// Restores a backup. With `any_audit` also one whose audit is not whole, if it was so when the backup was made.
pub fn restore(archive: &Path, dir: &Path, any_audit: bool) -> Result<Restored, RestoreError> {
    directory::make_private(dir)?;
    let _lock = StateGuard::take(dir, None)?;
    let dir = &fs::canonicalize(dir).map_err(|source| io_failure("find", dir, source))?;
    let new = dir.join(UNPACKING);
    remove_folder(&new).map_err(|source| io_failure("remove", &new, source))?;
    let restored = unpack(archive, dir, &new, any_audit).and_then(|(manifest, audit)| {
        let aside = swap(dir, &new)?;
        Ok(Restored { manifest, aside, audit })
    });
    let _ = remove_folder(&new);
    restored
}

fn io_failure(what: &'static str, path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { what, path: path.to_owned(), source }
}

fn unpack(
    archive: &Path,
    dir: &Path,
    new: &Path,
    any_audit: bool,
) -> Result<(BackupManifest, AuditReport), RestoreError> {
    let unread = |error: ArchiveError| RestoreError::Archive { path: archive.to_owned(), error };
    let file = File::open(archive).map_err(|error| unread(error.into()))?;
    let about = file.metadata().map_err(|error| unread(error.into()))?;
    if !about.is_file() {
        return Err(unread(ArchiveError::Foreign("it is not a file".to_owned())));
    }
    create_private_folder(new).map_err(|source| io_failure("create", new, source))?;
    let manifest = read_backup(BufReader::new(file), about.len(), |file, content| {
        let path = new.join(&file.path);
        if let Some(folder) = path.parent() {
            create_private_folder(folder)?;
        }
        let mut out = private_options().write(true).create_new(true).open(&path)?;
        io::copy(content, &mut out)?;
        out.sync_all()
    });
    let manifest = manifest.map_err(unread)?;
    store::check_integrity(&new.join(STORE)).map_err(RestoreError::Database)?;
    let audit = verify_key_and_audit(new)?;
    if let Some(first) = audit.problems.first().filter(|_| !any_audit) {
        return Err(RestoreError::Audit { count: audit.problems_in_all, first: first.message.clone() });
    }
    // The directory may be that of a service, and this command root's.
    give_to_owner_of(dir, new).map_err(|source| io_failure("hand over", new, source))?;
    Ok((manifest, audit))
}

/// Moves the old files aside and the new ones in. If a step fails, the steps before are taken back.
fn swap(dir: &Path, new: &Path) -> Result<Option<PathBuf>, RestoreError> {
    let swapping = dir.join(SWAPPING);
    let aside = free_aside(dir);
    let mut moved = Vec::new();
    let done = move_all(dir, new, &swapping, &aside, &mut moved);
    if let Err(why) = done {
        let back = moved.iter().rev().try_for_each(|(from, to)| fs::rename(to, from));
        let left = match back {
            Ok(()) => {
                let _ = fs::remove_dir(&aside);
                "everything is as it was".to_owned()
            }
            Err(error) => format!(
                "taking that back failed too ({error}): the files that were there are in {} and {}, the new ones in {}; \
                 run `sinew restore` again",
                dir.display(),
                aside.display(),
                swapping.display()
            ),
        };
        return Err(RestoreError::Move { why, left });
    }
    let _ = fs::remove_dir(&swapping);
    // Empty where there was nothing before.
    match fs::remove_dir(&aside) {
        Ok(()) => Ok(None),
        Err(_) => Ok(Some(aside)),
    }
}

fn move_all(
    dir: &Path,
    new: &Path,
    swapping: &Path,
    aside: &Path,
    moved: &mut Vec<(PathBuf, PathBuf)>,
) -> io::Result<()> {
    let mut rename = |from: PathBuf, to: PathBuf| {
        fs::rename(&from, &to)?;
        moved.push((from, to));
        Ok::<(), io::Error>(())
    };
    create_private_folder(aside)?;
    if swapping.exists() {
        // What an interrupted restore left belongs to the old files.
        rename(swapping.to_owned(), aside.join(SWAPPING))?;
    }
    rename(new.to_owned(), swapping.to_owned())?;
    for name in names(dir)? {
        let text = name.to_string_lossy();
        if !STAYS.contains(&&*text) && !text.starts_with(ASIDE) {
            rename(dir.join(&name), aside.join(&name))?;
        }
    }
    for name in names(swapping)? {
        rename(swapping.join(&name), dir.join(&name))?;
    }
    Ok(())
}

fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

fn free_aside(dir: &Path) -> PathBuf {
    let path = |number: u32| dir.join(format!("{ASIDE}{number}"));
    (1..u32::MAX).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(0))
}

fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A gateway beside files that are being moved would begin with an empty store.
pub(super) fn check_interrupted(dir: &Path) -> Result<(), OpenError> {
    match dir.join(SWAPPING).exists() {
        true => Err(OpenError::Interrupted { dir: dir.to_owned() }),
        false => Ok(()),
    }
}
