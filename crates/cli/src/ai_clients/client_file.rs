//! The file of a client on the disk: read whole, replaced whole, with a copy of what was there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sinew_gateway::private_files::{self, private_options};

use crate::error::{CliError, CliErrorKind};

/// 64 MiB: some clients keep the history of all conversations in the same file.
const MAX_FILE: u64 = 64 << 20;

/// Copies of one file; the oldest is never replaced.
const MAX_COPIES: usize = 99;

/// A configuration as it was read.
#[derive(Debug)]
pub struct ClientFile {
    /// Behind links.
    path: PathBuf,
    /// `None` where there is no file yet.
    old: Option<String>,
}

impl ClientFile {
    pub fn read(path: &Path) -> Result<ClientFile, CliError> {
        let failed = |why: String| CliError::new(CliErrorKind::Io, format!("cannot read {}: {why}", path.display()));
        let path = match fs::symlink_metadata(path) {
            Ok(_) => {
                fs::canonicalize(path).map_err(|error| failed(format!("it is a link that leads nowhere ({error})")))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
                return Ok(ClientFile { path, old: None });
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let about = fs::metadata(&path).map_err(|error| failed(error.to_string()))?;
        if !about.is_file() {
            return Err(failed("it is not a file".to_owned()));
        }
        if about.len() > MAX_FILE {
            return Err(failed(format!("it has more than {} MiB", MAX_FILE >> 20)));
        }
        let bytes = fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let old = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
        Ok(ClientFile { path, old: Some(old) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Empty where there is no file.
    pub fn text(&self) -> &str {
        self.old.as_deref().unwrap_or_default()
    }

    /// Replaces the file in one step and keeps what was there beside it; says where.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>, CliError> {
        let failed = |error: io::Error| {
            CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}; it is as it was", self.path.display()))
        };
        if self.old.is_none()
            && let Some(folder) = self.path.parent()
        {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let copy = self.old.as_deref().map(|old| self.keep_copy(old)).transpose().map_err(failed)?;
        let new = self.beside(".sinew-new");
        let written = self.write_new(&new, text).and_then(|()| {
            // The client may have written meanwhile; its changes are not overwritten.
            let now = match fs::read(&self.path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            match now.as_deref() == self.old.as_deref().map(str::as_bytes) {
                true => fs::rename(&new, &self.path),
                false => Err(io::Error::other("another program changed it just now; close the client and try again")),
            }
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&new);
            if let Some(copy) = &copy {
                let _ = fs::remove_file(copy);
            }
            return Err(failed(error));
        }
        Ok(copy)
    }

    fn write_new(&self, new: &Path, text: &str) -> io::Result<()> {
        let _ = fs::remove_file(new);
        let mut file = private_options().write(true).create_new(true).open(new)?;
        file.write_all(text.as_bytes())?;
        self.take_mode(new)?;
        file.sync_all()
    }

    /// A file like the one that is replaced: as readable, and of the same owner where that is allowed.
    fn take_mode(&self, new: &Path) -> io::Result<()> {
        match self.old {
            Some(_) => private_files::copy_access(&self.path, new),
            None => Ok(()),
        }
    }

    fn keep_copy(&self, old: &str) -> io::Result<PathBuf> {
        let (path, mut file) = self.free_copy()?;
        let written =
            file.write_all(old.as_bytes()).and_then(|()| self.take_mode(&path)).and_then(|()| file.sync_all());
        if let Err(error) = written {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }

    /// A new file for a copy; the last one is used again when there are too many.
    fn free_copy(&self) -> io::Result<(PathBuf, File)> {
        for number in 1..=MAX_COPIES {
            let path = self.beside(&match number {
                1 => ".sinew-backup".to_owned(),
                number => format!(".sinew-backup-{number}"),
            });
            match private_options().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if number == MAX_COPIES => {
                    return Ok((path.clone(), OpenOptions::new().write(true).truncate(true).open(&path)?));
                }
                Err(_) => {}
            }
        }
        Err(io::Error::other("there are too many copies"))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        self.path.with_file_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_each_older_text_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/mcp.json");
        let file = ClientFile::read(&path).expect("no file is fine");
        assert_eq!(file.text(), "");
        assert_eq!(file.replace("one").expect("written"), None);
        let second = ClientFile::read(&path).expect("readable").replace("two").expect("written").expect("a copy");
        let third = ClientFile::read(&path).expect("readable").replace("three").expect("written").expect("a copy");
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        assert_eq!(
            (read(&path), read(&second), read(&third)),
            ("three".to_owned(), "one".to_owned(), "two".to_owned())
        );
        assert_eq!(
            copies(path.parent().expect("a folder")),
            ["mcp.json", "mcp.json.sinew-backup", "mcp.json.sinew-backup-2"]
        );
    }

    #[test]
    fn what_another_program_wrote_meanwhile_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{}").expect("written");
        let file = ClientFile::read(&path).expect("readable");
        fs::write(&path, "{\"a\": 1}").expect("written");
        let refused = file.replace("{\"b\": 2}").expect_err("it changed");
        assert!(refused.message.contains("another program"), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "{\"a\": 1}");
        assert_eq!(copies(folder.path()), ["mcp.json"]);
    }

    #[test]
    fn what_is_not_a_text_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("latin"), [0xfc, 0x62]).expect("written");
        for (name, why) in [("latin", "not UTF-8"), ("", "not a file")] {
            let refused = ClientFile::read(&folder.path().join(name)).expect_err("not a configuration");
            assert!(refused.message.contains(why), "{refused}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_modes_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().join("dotfiles.json");
        fs::write(&real, "{}").expect("written");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("a mode");
        let link = folder.path().join("mcp.json");
        symlink(&real, &link).expect("a link");
        let copy = ClientFile::read(&link).expect("readable").replace("{\"a\":1}").expect("written").expect("a copy");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("a file"), "{\"a\":1}");
        for path in [&real, &copy] {
            assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o640);
        }
        symlink(folder.path().join("nowhere"), folder.path().join("lost.json")).expect("a link");
        let refused = ClientFile::read(&folder.path().join("lost.json")).expect_err("it leads nowhere");
        assert!(refused.message.contains("leads nowhere"), "{refused}");
    }
}
