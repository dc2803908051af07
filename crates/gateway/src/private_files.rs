//! Files that only their owner may read: tokens, keys, the audit. What depends on Unix permissions in the crates above
//! the families is here; elsewhere the permissions of the folder decide.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Options under which a new file is its owner's alone.
pub fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates the folder and those above it; new ones are their owner's alone.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes an existing file its owner's alone.
pub(crate) fn protect(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Gives a file the mode of another one, and its owner where this process may do that.
pub fn copy_access(from: &Path, to: &Path) -> io::Result<()> {
    let about = std::fs::metadata(from)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let now = std::fs::metadata(to)?;
        if (now.uid(), now.gid()) != (about.uid(), about.gid()) {
            // Only root may give files away; for everybody else the file is their own.
            let _ = chown(to, Some(about.uid()), Some(about.gid()));
        }
    }
    std::fs::set_permissions(to, about.permissions())
}

/// Gives everything in a folder to the owner of another one, where they differ.
pub(crate) fn give_to_owner_of(owner: &Path, folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let (wanted, now) = (std::fs::metadata(owner)?, std::fs::metadata(folder)?);
        if (wanted.uid(), wanted.gid()) == (now.uid(), now.gid()) {
            return Ok(());
        }
        let mut waiting = vec![folder.to_owned()];
        while let Some(path) = waiting.pop() {
            chown(&path, Some(wanted.uid()), Some(wanted.gid()))?;
            if path.is_dir() {
                for entry in std::fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
        }
    }
    #[cfg(not(unix))]
    let _ = (owner, folder);
    Ok(())
}

/// Replaces the file in one step: it is never incomplete and never readable by others.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, bytes, |_| Ok(()))
}

/// The same, and the file survives a loss of power.
pub fn write_private_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, bytes, |file| file.sync_all())
}

fn write_beside(path: &Path, bytes: &[u8], finish: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".new");
    let beside = path.with_file_name(name);
    let mut file = private_options().write(true).create(true).truncate(true).open(&beside)?;
    file.write_all(bytes)?;
    finish(&file)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.pem");
        write_private(&path, b"one").expect("written");
        write_private_synced(&path, b"2").expect("written");
        assert_eq!(std::fs::read(&path).expect("a file"), b"2");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_what_is_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, path) = (folder.path().join("a/b"), folder.path().join("a/b/token"));
        create_private_folder(&inner).expect("created");
        write_private(&path, b"secret").expect("written");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
    }
}
