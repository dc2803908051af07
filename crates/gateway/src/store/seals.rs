//! Where seals go besides the database: a file beside it, and whoever listens.
//!
//! A seal leaves only when the records it covers are on the disk. So a record that a seal in the file covers and that is
//! not in the database was removed; a loss of power cannot explain it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::broadcast;

use super::chain::{AuditKey, AuditSeal, first_record, seals_after};
use crate::private_files::private_options;

/// One seal a line, as JSON, oldest first.
pub(super) const FILE: &str = "audit.seals";

/// Seals that can be in the database and not in the file yet: one that is being written, and two of the transaction
/// that waits for it.
const MAX_ON_THEIR_WAY: usize = 3;

/// Whether a gateway that was killed can have left so many of the newest seals out of the file. The first seal of a file
/// is waited for, so without it there is no second.
pub(super) fn may_be_on_their_way(missing: usize, is_file_empty: bool) -> bool {
    missing <= if is_file_empty { 1 } else { MAX_ON_THEIR_WAY }
}

/// A line of the file is shorter.
const MAX_LINE: u64 = 1 << 10;

/// Takes seals and waits for the disk only where the one before is not written yet.
pub(super) struct SealOutput {
    listeners: broadcast::Sender<AuditSeal>,
    /// `None` where the store is in memory, and once it is closed.
    thread: Option<(SyncSender<AuditSeal>, JoinHandle<()>)>,
    /// Says that the first seal of the file is written; `None` once it is.
    first_written: Option<Receiver<()>>,
}

impl SealOutput {
    /// `store` is the database file. Adds the seals that the file lacks to it. Also says how many it lost, if they are more
    /// than a gateway that was killed leaves out.
    pub(super) fn open(
        db: &Connection,
        store: Option<&Path>,
        key: &AuditKey,
        listeners: broadcast::Sender<AuditSeal>,
    ) -> io::Result<(SealOutput, Option<usize>)> {
        let Some(store) = store else { return Ok((SealOutput { listeners, thread: None, first_written: None }, None)) };
        let is_gone = !store.with_file_name(FILE).exists() && first_record(db).map_err(io::Error::other)?.is_some();
        let mut file = SealFile::open(store)?;
        let last = last_in_file(&file.path, key)?;
        let missing = seals_after(db, key, last, usize::MAX).map_err(io::Error::other)?;
        let lost = (is_gone || !may_be_on_their_way(missing.len(), last == 0)).then_some(missing.len());
        if let Some(lost) = lost {
            tracing::error!(path = %file.path.display(), lost, "the file with the seals of the audit was removed or shortened");
        }
        file.append(&missing)?;
        let is_empty = file.file.metadata()?.len() == 0;
        let (written, first_written) = sync_channel(1);
        let (seals, inbox) = sync_channel::<AuditSeal>(0);
        let for_thread = listeners.clone();
        let thread = std::thread::Builder::new().name("sinew-seals".to_owned()).spawn(move || {
            // What cannot be written is tried again with the next seal, so that the file has no gap.
            let mut unwritten: Vec<AuditSeal> = Vec::new();
            while let Ok(seal) = inbox.recv() {
                unwritten.push(seal);
                match file.append(&unwritten) {
                    Ok(()) => unwritten.drain(..).for_each(|seal| drop(for_thread.send(seal))),
                    Err(error) => {
                        tracing::error!(path = %file.path.display(), %error, "a seal of the audit could not be written");
                    }
                }
                let _ = written.try_send(());
            }
        })?;
        let first_written = is_empty.then_some(first_written);
        Ok((SealOutput { listeners, thread: Some((seals, thread)), first_written }, lost))
    }

    pub(super) fn send(&mut self, seal: AuditSeal) {
        match &self.thread {
            Some((seals, _)) => drop(seals.send(seal)),
            None => drop(self.listeners.send(seal)),
        }
        if let Some(written) = self.first_written.take() {
            let _ = written.recv();
        }
    }

    /// Waits until everything is in the file.
    pub(super) fn close(&mut self) {
        if let Some((seals, thread)) = self.thread.take() {
            drop(seals);
            let _ = thread.join();
        }
    }
}

struct SealFile {
    path: PathBuf,
    file: File,
    /// The log of the database, which holds what is not in its file yet.
    log: PathBuf,
}

impl SealFile {
    fn open(store: &Path) -> io::Result<SealFile> {
        let path = store.with_file_name(FILE);
        drop_torn_line(&path)?;
        let file = private_options().append(true).create(true).open(&path)?;
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        Ok(SealFile { file, path, log: log.into() })
    }

    fn append(&mut self, seals: &[AuditSeal]) -> io::Result<()> {
        if seals.is_empty() {
            return Ok(());
        }
        match OpenOptions::new().write(true).open(&self.log) {
            Ok(log) => log.sync_data()?,
            // Without a log everything is in the database, which was synced when the log was moved.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut lines = Vec::new();
        for seal in seals {
            serde_json::to_writer(&mut lines, seal)?;
            lines.push(b'\n');
        }
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        if written.is_err() {
            let _ = self.file.set_len(length);
        }
        written
    }
}

/// Removes the beginning of a line that was never finished, as a loss of power leaves it.
fn drop_torn_line(path: &Path) -> io::Result<()> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    match whole == bytes.len() {
        true => Ok(()),
        false => OpenOptions::new().write(true).open(path)?.set_len(whole as u64),
    }
}

/// The seals of the file, `None` where there is no file; a line that is no seal is an error that says which.
pub(super) fn read_file(path: &Path) -> io::Result<Option<impl Iterator<Item = Result<AuditSeal, usize>> + use<>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::new(file);
    let mut number = 0;
    Ok(Some(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = io::Read::take(&mut reader, MAX_LINE).read_until(b'\n', &mut line).ok()?;
        number += 1;
        (read > 0).then(|| serde_json::from_slice(&line).map_err(|_| number))
    })))
}

/// The last record that the file has a seal for.
fn last_in_file(path: &Path, key: &AuditKey) -> io::Result<i64> {
    let seals = read_file(path)?.into_iter().flatten().filter_map(Result::ok).filter(|seal| seal.is_genuine(key));
    Ok(seals.map(|seal| seal.last).max().unwrap_or(0))
}
