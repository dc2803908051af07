//! The archive of a backup: a tar file whose first member says what the others are. Reading trusts nothing in it.
//!
//! The members have the order and the sizes of the manifest, so the length of the file says at once whether something is
//! missing or too much.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use crate::store;

/// What this version writes, and the newest that it reads.
const FORMAT: u32 = 1;

const MANIFEST: &str = "sinew-backup.json";

/// 4 MiB: the most members, with long names.
const MAX_MANIFEST: u64 = 4 << 20;
/// Far more clients and routines than a gateway has.
const MAX_MEMBERS: usize = 10_000;
/// 64 MiB for a file; only the database is larger.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// 1 TiB: more than the audit of any gateway.
const MAX_STORE: u64 = 1 << 40;
const MAX_DEPTH: usize = 8;

/// The unit of tar files.
const BLOCK: u64 = 512;

pub(super) const STORE: &str = "gateway.db";

/// What is in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    format: u32,
    /// The version of Sinew that made it.
    pub version: String,
    /// When it was made, in milliseconds of Unix time.
    pub made: i64,
    /// The format of the database in it.
    pub database: i64,
    pub files: Vec<BackupFile>,
}

/// A file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Where it is in the state directory, with `/`.
    pub path: String,
    pub size: u64,
    pub sha256: String,
}

/// Why a backup cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a backup of Sinew: {0}")]
    Foreign(String),
    #[error("it was made by a newer Sinew ({version}); use that version to restore it")]
    Newer { version: String },
    #[error("it has {found} bytes and should have {expected}: {}", if .found < .expected { "its end is missing" } else { "something was added to it" })]
    Length { found: u64, expected: u64 },
    #[error("its contents list is wrong: {0}")]
    Manifest(String),
    #[error("`{path}` in it is damaged: {why}")]
    Damaged { path: String, why: String },
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl BackupManifest {
    pub(super) fn new(made: i64, database: i64, files: Vec<BackupFile>) -> BackupManifest {
        BackupManifest { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), made, database, files }
    }

    /// The length of the whole archive.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(length(serde_json::to_vec(self)?.len() as u64, self))
    }

    fn check(&self) -> Result<(), ArchiveError> {
        let wrong = |why: String| Err(ArchiveError::Manifest(why));
        if self.files.len() > MAX_MEMBERS {
            return wrong(format!("more than {MAX_MEMBERS} files"));
        }
        let (mut paths, mut folders) = (HashSet::new(), HashSet::new());
        for file in &self.files {
            if let Err(why) = check_path(&file.path) {
                return wrong(format!("`{}` {why}", file.path.escape_debug()));
            }
            // Some file systems do not tell capital letters from small ones.
            let path = file.path.to_lowercase();
            let parents = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
            folders.extend(parents);
            if !paths.insert(path) {
                return wrong(format!("`{}` is there twice", file.path));
            }
            let most = if file.path == STORE { MAX_STORE } else { MAX_FILE };
            if file.size > most {
                return wrong(format!("`{}` has more than {} MiB", file.path, most >> 20));
            }
        }
        if let Some(both) = paths.intersection(&folders).next() {
            return wrong(format!("`{both}` is a file and a folder"));
        }
        match paths.contains(STORE) {
            true => Ok(()),
            false => wrong(format!("`{STORE}` is missing")),
        }
    }
}

fn length(manifest: u64, about: &BackupManifest) -> u64 {
    let member = |size: u64| BLOCK.saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
    let files = about.files.iter().fold(0_u64, |sum, file| sum.saturating_add(member(file.size)));
    member(manifest).saturating_add(files).saturating_add(2 * BLOCK)
}

/// A path stays inside the state directory, on every system.
fn check_path(path: &str) -> Result<(), &'static str> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > MAX_DEPTH {
        return Err("is too deep");
    }
    for part in &parts {
        if matches!(*part, "" | "." | "..") {
            return Err("leads out of the state directory");
        }
        if part.len() > 255
            || part.ends_with(['.', ' '])
            || part.contains(|sign: char| sign.is_control() || "\\:*?\"<>|".contains(sign))
        {
            return Err("is not the name of a file");
        }
    }
    match super::is_kept(&parts[0].to_lowercase()) || path == STORE {
        true => Ok(()),
        false => Err("does not belong into a backup"),
    }
}

/// Writes an archive. `open` gives the content of each file, in the order of the manifest.
pub(super) fn write<R: Read>(
    out: impl Write,
    manifest: &BackupManifest,
    mut open: impl FnMut(&BackupFile) -> io::Result<R>,
) -> io::Result<()> {
    let mut builder = Builder::new(out);
    let text = serde_json::to_vec(manifest)?;
    builder.append(&header(MANIFEST, text.len() as u64, manifest.made)?, text.as_slice())?;
    for file in &manifest.files {
        let content = Exact { inner: open(file)?, left: file.size };
        builder.append(&header(&file.path, file.size, manifest.made)?, content)?;
    }
    builder.into_inner()?.flush()
}

fn header(path: &str, size: u64, made: i64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path).map_err(|_| io::Error::other(format!("the name of `{path}` is too long for a backup")))?;
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(made / 1000).unwrap_or_default());
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// As many bytes as were promised, or an error.
struct Exact<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        if read == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was copied"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// Reads an archive of `found` bytes. Each file is given to `take` while its sum is checked, so what was taken counts
/// only when this has returned without an error.
pub fn read_backup(
    archive: impl Read,
    found: u64,
    mut take: impl FnMut(&BackupFile, &mut dyn Read) -> io::Result<()>,
) -> Result<BackupManifest, ArchiveError> {
    let foreign = |why: &str| ArchiveError::Foreign(why.to_owned());
    let mut archive = Archive::new(archive);
    // Raw: no member may say something about the next one, such as a longer name.
    let mut entries = archive.entries()?.raw(true);
    let mut first = match entries.next() {
        Some(Ok(first)) => first,
        Some(Err(error)) => return Err(ArchiveError::Foreign(error.to_string())),
        None => return Err(foreign("it is empty")),
    };
    let size = first.header().size().map_err(|error| ArchiveError::Foreign(error.to_string()))?;
    if first.header().path_bytes().as_ref() != MANIFEST.as_bytes() || first.header().entry_type() != EntryType::Regular
    {
        return Err(foreign("it does not begin with a list of its contents"));
    }
    if size > MAX_MANIFEST {
        return Err(ArchiveError::Manifest(format!("it has more than {} MiB", MAX_MANIFEST >> 20)));
    }
    let mut text = Vec::new();
    first.by_ref().take(MAX_MANIFEST).read_to_end(&mut text)?;
    let manifest = parse(&text)?;
    manifest.check()?;
    let expected = length(size, &manifest);
    if found != expected {
        return Err(ArchiveError::Length { found, expected });
    }
    for file in &manifest.files {
        let damaged = |why: &str| ArchiveError::Damaged { path: file.path.clone(), why: why.to_owned() };
        let mut entry = match entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => return Err(damaged(&error.to_string())),
            None => return Err(damaged("it is missing")),
        };
        let header = entry.header();
        if header.entry_type() != EntryType::Regular || header.path_bytes().as_ref() != file.path.as_bytes() {
            return Err(damaged("something else is in its place"));
        }
        if header.size().ok() != Some(file.size) {
            return Err(damaged("it has another size"));
        }
        let mut summed = Summed { inner: &mut entry, sum: Sha256::new(), read: 0 };
        take(file, &mut summed)?;
        io::copy(&mut summed, &mut io::sink())?;
        if summed.read != file.size || hex(&summed.sum.finalize()) != file.sha256 {
            return Err(damaged("its content is not the one that was written"));
        }
    }
    match entries.next() {
        None => Ok(manifest),
        Some(_) => Err(ArchiveError::Manifest("there is more in it than the list says".to_owned())),
    }
}

fn parse(text: &[u8]) -> Result<BackupManifest, ArchiveError> {
    /// What every version can read of a manifest.
    #[derive(Deserialize)]
    struct AnyManifest {
        format: u32,
        version: String,
    }
    let wrong = |error: serde_json::Error| ArchiveError::Manifest(error.to_string());
    let AnyManifest { format, version } = serde_json::from_slice(text).map_err(wrong)?;
    if format > FORMAT {
        return Err(ArchiveError::Newer {
            version: version.chars().filter(|sign| !sign.is_control()).take(64).collect(),
        });
    }
    let manifest: BackupManifest = serde_json::from_slice(text).map_err(wrong)?;
    match manifest.database > store::CURRENT {
        true => Err(ArchiveError::Newer {
            version: manifest.version.chars().filter(|sign| !sign.is_control()).take(64).collect(),
        }),
        false => Ok(manifest),
    }
}

struct Summed<R> {
    inner: R,
    sum: Sha256,
    read: u64,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        self.read += read as u64;
        Ok(read)
    }
}

/// The sum of a whole content, and its size.
pub(super) fn sum(mut content: impl Read) -> io::Result<(String, u64)> {
    let mut summed = Summed { inner: &mut content, sum: Sha256::new(), read: 0 };
    io::copy(&mut summed, &mut io::sink())?;
    Ok((hex(&summed.sum.finalize()), summed.read))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &[u8]) -> BackupFile {
        BackupFile { path: path.to_owned(), size: content.len() as u64, sha256: sum(content).unwrap().0 }
    }

    /// An archive of these files, with a manifest that may have been changed.
    fn archive(files: &[(&str, &[u8])], change: impl FnOnce(&mut BackupManifest)) -> Vec<u8> {
        let mut manifest =
            BackupManifest::new(1_000, 1, files.iter().map(|(path, content)| file(path, content)).collect());
        change(&mut manifest);
        let mut out = Vec::new();
        let mut contents = files.iter().map(|(_, content)| *content);
        write(&mut out, &manifest, |_| Ok(contents.next().unwrap_or_default())).unwrap();
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files = Vec::new();
        let manifest = read_backup(bytes, bytes.len() as u64, |file, content| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            files.push((file.path.clone(), bytes));
            Ok(())
        });
        manifest.map(|_| files).map_err(|error| error.to_string())
    }

    const FILES: &[(&str, &[u8])] = &[(STORE, b"a database"), ("token", b""), ("clients/a-1", &[7; 1_500])];

    #[test]
    fn what_was_written_is_read() {
        let bytes = archive(FILES, |_| {});
        let files = read(&bytes).unwrap();
        assert_eq!(files.len(), 3);
        assert!(files.iter().zip(FILES).all(|((path, content), (name, wanted))| path == name && content == wanted));
        let manifest = BackupManifest::new(1_000, 1, FILES.iter().map(|(path, content)| file(path, content)).collect());
        assert_eq!(bytes.len() as u64, manifest.length().unwrap());
    }

    #[test]
    fn an_archive_that_was_cut_or_changed_anywhere_is_refused() {
        let whole = archive(FILES, |_| {});
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "cut at {end}");
        }
        assert!(read(&[whole.as_slice(), &[0]].concat()).unwrap_err().contains("something was added"));
        assert!(read(&whole[..whole.len() - 1]).unwrap_err().contains("its end is missing"));
        // Every byte that says something: headers, the list, and contents.
        let (mut changed, mut accepted) = (0, 0);
        for at in 0..whole.len() - 2 * BLOCK as usize {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            changed += 1;
            accepted +=
                usize::from(read(&bytes).is_ok_and(|files| files.iter().zip(FILES).any(|(is, was)| is.1 != was.1)));
        }
        assert!(changed > 3_000 && accepted == 0);
    }

    #[test]
    fn lists_that_lie_are_refused() {
        let with = |change: fn(&mut BackupManifest)| read(&archive(FILES, change)).unwrap_err();
        assert!(with(|list| list.format = 2).contains("newer Sinew"));
        assert!(with(|list| list.database = 1_000).contains("newer Sinew"));
        assert!(with(|list| list.files[1].sha256 = "0".repeat(64)).contains("not the one that was written"));
        for (path, why) in [
            ("../token", "leads out"),
            ("/etc/passwd", "leads out"),
            ("clients/../../x", "leads out"),
            ("clients//x", "leads out"),
            ("C:\\x", "not the name"),
            ("a\u{0}b", "not the name"),
            ("gateway.lock", "does not belong"),
            ("gateway.db-wal", "does not belong"),
            ("doors.json", "does not belong"),
            ("demo/token", "does not belong"),
            ("GATEWAY.DB", "does not belong"),
            ("gateway.db/x", "does not belong"),
            ("a/b/c/d/e/f/g/h/i", "too deep"),
        ] {
            let mut list = BackupManifest::new(0, 1, vec![file(STORE, b""), file("token", b"")]);
            list.files[1].path = path.to_owned();
            let refused = list.check().unwrap_err().to_string();
            assert!(refused.contains(why), "{path:?}: {refused}");
        }
        for (one, other, why) in [("token", "Token", "twice"), ("clients", "clients/a", "a file and a folder")] {
            let list = BackupManifest::new(0, 1, vec![file(STORE, b""), file(one, b""), file(other, b"")]);
            let refused = list.check().unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        let mut list = BackupManifest::new(0, 1, vec![file("token", b"")]);
        assert!(list.check().unwrap_err().to_string().contains("`gateway.db` is missing"));
        list.files[0].size = u64::MAX;
        assert!(list.check().unwrap_err().to_string().contains("more than 64 MiB"));
    }

    #[test]
    fn other_files_are_not_taken_for_backups() {
        let mut other = Vec::new();
        let mut builder = Builder::new(&mut other);
        builder.append(&header("notes.txt", 2, 0).unwrap(), b"hi".as_slice()).unwrap();
        builder.into_inner().unwrap();
        let mut link = Header::new_ustar();
        link.set_path(MANIFEST).unwrap();
        link.set_entry_type(EntryType::Symlink);
        link.set_link_name("/etc/passwd").unwrap();
        link.set_size(0);
        link.set_cksum();
        let link = [link.as_bytes().as_slice(), &[0; 1024]].concat();
        for bytes in [b"".as_slice(), b"PK\x03\x04", &[0; 2048], &[0xff; 5_000], &other, &link] {
            let refused = read(bytes).unwrap_err();
            assert!(refused.contains("not a backup of Sinew"), "{refused}");
        }
    }
}
