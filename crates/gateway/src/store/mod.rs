//! The store: devices, names, tokens, events and calls, in one SQLite file.
//!
//! One thread takes all waiting jobs, writes them in one transaction and then answers those who wait: under load many
//! calls share one commit. A call that ends while nobody writes is written by its own task. Queries have a
//! connection and a thread of their own, so that no commit waits for them. Neighbours: `file.rs` (opening the file), `format.rs` (its tables),
//! `writer.rs` (who writes), `health.rs` (whether that works), `rows.rs` (what is written), `chain.rs` (how audit records
//! hang together), `beginning.rs` (where they begin), `seals.rs` (where seals go), `verify.rs` (whether the audit is whole), `reader.rs` (who reads), `read.rs`
//! (what is asked).

mod beginning;
mod chain;
mod events;
mod file;
mod format;
mod health;
mod read;
mod reader;
mod rows;
mod seals;
mod tokens;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use sinew_tool::{BoxFuture, DeviceId, DeviceKey, ErrorKind, ToolError};
use tokio::sync::{broadcast, oneshot};

pub(crate) use chain::{AuditKey, hex};
pub use chain::{AuditSeal, time_of_chaining};
pub(crate) use events::LocalEvents;
pub(crate) use format::CURRENT;
pub use health::CommitCounts;
pub(crate) use read::Cursor;
pub(crate) use rows::{DeviceRow, EventRow, PendingEvent, RestingId, StoredState, Write};
pub(crate) use tokens::LocalTokens;

use crate::settings::{OpenError, Settings};
use crate::shared::{AuditLog, AuditRow, NameChange, NameClaim, NameClaims};
use crate::tokens::ENROLLED;
use crate::view::{AuditFilter, AuditRecord, AuditReport, EventPage};
use file::StoreLocation;
use health::StoreHealth;
use reader::StoreReader;
use seals::SealOutput;
use verify::Verification;
use writer::{Job, LaterJobs, SharedWriter, StoreWriter};

/// Events that may wait for the store, of all devices together. More than the store writes in 100 ms
/// would only be delay.
const MAX_WAITING_EVENTS: usize = 4_096;

pub(crate) struct Store {
    jobs: Sender<Job>,
    writer: SharedWriter,
    /// Jobs on their way to the thread, which are written first.
    waiting: Arc<AtomicUsize>,
    later: Arc<LaterJobs>,
    thread: Mutex<Option<JoinHandle<()>>>,
    waiting_events: Arc<AtomicUsize>,
    reader: StoreReader,
    key: AuditKey,
    seal_file: Option<PathBuf>,
    pub(crate) health: Arc<StoreHealth>,
}

/// A change on its way to the disk.
pub(crate) struct Commit(Receiver<Result<(), String>>);

impl Commit {
    /// Blocks for the time of one commit; for the rare commands of people.
    pub(crate) fn wait(self) -> Result<(), ToolError> {
        self.0.recv().map_err(|_| closed())?.map_err(|error| failed(&error))
    }
}

impl Store {
    /// Opens the store and reads its state. `signals` gets the device of every event once the event can be read.
    pub(crate) fn open(
        file: Option<&Path>,
        settings: &Settings,
        signals: broadcast::Sender<DeviceId>,
        key: AuditKey,
        seals: broadcast::Sender<AuditSeal>,
        is_pinned: &dyn Fn(&DeviceKey) -> bool,
    ) -> Result<(Store, StoredState), OpenError> {
        let location = StoreLocation::new(file);
        let mut db = file::open(&location, &key)?;
        let refused = |error: rusqlite::Error| location.refused(&error);
        let loaded = rows::load(&mut db, is_pinned).map_err(refused)?;
        let waiting_events = Arc::new(AtomicUsize::new(0));
        let health = Arc::new(StoreHealth::default());
        let seals = SealOutput::open(&db, file, &key, seals).map_err(|source| {
            let path = file.unwrap_or(Path::new(":memory:")).with_file_name(seals::FILE);
            OpenError::Io { what: "open the seals of the audit in", path, source }
        })?;
        let events = (signals, waiting_events.clone());
        let writer = StoreWriter::new(db, settings, events, health.clone(), key.clone(), seals).map_err(refused)?;
        let reader = StoreReader::start(file::open_reader(&location)?).map_err(started(file))?;
        let writer = Arc::new(Mutex::new(Some(writer)));
        let (jobs, inbox) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let later = Arc::new(LaterJobs::default());
        let (for_writer, for_later, for_waiting) = (writer.clone(), later.clone(), waiting.clone());
        let thread = std::thread::Builder::new()
            .name("sinew-store".to_owned())
            .spawn(move || writer::run(&for_writer, &inbox, &for_later, &for_waiting));
        let thread = Mutex::new(Some(thread.map_err(started(file))?));
        let file = file.map(|file| file.with_file_name(seals::FILE));
        let store =
            Store { jobs, writer, later, waiting, thread, waiting_events, reader, key, seal_file: file, health };
        Ok((store, loaded))
    }

    /// Records a call and waits until that is committed.
    pub(crate) async fn audit(&self, row: AuditRow) -> Result<(), ToolError> {
        let alone = match self.writer.try_lock() {
            Ok(mut held) if self.waiting.load(Ordering::Acquire) == 0 => {
                held.as_mut().and_then(|writer| writer.write_alone(&row))
            }
            _ => None,
        };
        let committed = match alone {
            Some((committed, is_first)) => {
                // The thread moves the log, and makes the probes after a failure.
                if is_first || committed.is_err() {
                    let _ = self.send(Job::Logged);
                }
                committed
            }
            None => {
                let (done, committed) = oneshot::channel();
                self.send(Job::Audit(row, Some(done)))?;
                committed.await.map_err(|_| closed())?
            }
        };
        committed.map_err(|error| failed(&error))
    }

    /// Records a call that nobody waits for any more.
    pub(crate) fn audit_unawaited(&self, row: AuditRow) {
        if self.send(Job::Audit(row, None)).is_err() {
            tracing::warn!("a call that was given up after the store closed is not in the audit");
        }
    }

    /// Keeps an event, unless too many wait already.
    pub(crate) fn event(&self, row: EventRow) -> bool {
        if self.waiting_events.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_EVENTS
            && self.send_later(Job::Event(row)).is_ok()
        {
            return true;
        }
        self.waiting_events.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Removes the events of a device; those that come afterwards stay.
    pub(crate) fn forget_events(&self, device: DeviceId) {
        if self.send_later(Job::Write(Write::ForgetEvents(device), None)).is_err() {
            tracing::warn!("events of a device that was forgotten after the store closed are kept");
        }
    }

    /// Writes a change without waiting.
    pub(crate) fn write(&self, write: Write) {
        if self.send(Job::Write(write, None)).is_err() {
            tracing::warn!("a change of the registry after the store closed is not kept");
        }
    }

    /// Writes a change for somebody who will wait for it.
    pub(crate) fn write_awaited(&self, write: Write) -> Commit {
        let (done, committed) = sync_channel(1);
        let _ = self.send(Job::Write(write, Some(done)));
        Commit(committed)
    }

    /// Replaces a file beside the store; in the order of the other changes.
    pub(crate) fn file(&self, path: PathBuf, text: String) -> Commit {
        let (done, committed) = sync_channel(1);
        let _ = self.send(Job::File(path, text, Some(done)));
        Commit(committed)
    }

    pub(crate) async fn newest_records(
        &self,
        filter: AuditFilter,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, ToolError> {
        self.read(move |db| read::newest_records(db, &filter, limit)).await
    }

    pub(crate) async fn last_seal(&self) -> Result<Option<AuditSeal>, ToolError> {
        let key = self.key.clone();
        self.read(move |db| chain::last_seal(db, &key)).await
    }

    /// Reads the whole audit, page by page, and says whether it is as it was written.
    pub(crate) async fn verify(&self) -> Result<AuditReport, ToolError> {
        self.settled().await?;
        let written = {
            let held = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().map(StoreWriter::head)
        };
        let (key, file) = (self.key.clone(), self.seal_file.clone());
        let mut verification = self
            .read(move |db| {
                let mut verification = Verification::begin(db, key, written)?;
                if let Some(file) = file {
                    let seals = seals::read_file(&file).map_err(unreadable)?;
                    verification.check_file(db, seals)?;
                }
                Ok(verification)
            })
            .await?;
        loop {
            let (returned, has_more) =
                self.read(move |db| verification.page(db).map(|more| (verification, more))).await?;
            verification = returned;
            if !has_more {
                return Ok(verification.finish(written));
            }
        }
    }

    pub(crate) async fn events(
        &self,
        device: Option<DeviceId>,
        since: Option<Cursor>,
        limit: usize,
    ) -> Result<EventPage, ToolError> {
        self.read(move |db| read::events(db, device.as_ref(), since, limit)).await
    }

    /// Puts everything on disk and ends the threads.
    pub(crate) async fn close(&self) {
        self.reader.close();
        let (done, closed) = oneshot::channel();
        if self.send(Job::Close(done)).is_ok() {
            let _ = closed.await;
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.settled().await?;
        let answer = self.reader.ask(question).await.ok_or_else(closed)?;
        answer.map_err(|error| failed(&error.to_string()))
    }

    /// Waits until everything that was handed over before is committed, so that a reader finds what it did itself.
    pub(crate) async fn settled(&self) -> Result<(), ToolError> {
        if self.waiting.load(Ordering::Acquire) == 0 && self.later.is_empty() {
            return Ok(());
        }
        let (done, settled) = oneshot::channel();
        self.send(Job::Settled(done))?;
        settled.await.map_err(|_| closed())
    }

    fn send_later(&self, job: Job) -> Result<(), ToolError> {
        match self.later.push(job) {
            true => self.jobs.send(Job::Later).map_err(|_| closed()),
            false => Ok(()),
        }
    }

    fn send(&self, job: Job) -> Result<(), ToolError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.send(job).map_err(|_| closed())
    }
}

impl AuditLog for Store {
    fn check(&self) -> Result<(), ToolError> {
        self.health.check()
    }

    fn record(&self, call: AuditRow) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.audit(call))
    }

    fn record_unawaited(&self, call: AuditRow) {
        self.audit_unawaited(call);
    }

    fn find(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditRecord>, ToolError>> {
        Box::pin(self.newest_records(filter, limit))
    }
}

impl NameClaims for Store {
    /// Nobody else uses this store, so no name is claimed by another.
    fn keep(&self, mut changes: Vec<NameChange>) -> Result<Vec<NameClaim>, ToolError> {
        let Some(last) = changes.pop() else { return Ok(Vec::new()) };
        changes.into_iter().for_each(|change| self.write(Write::Name(change)));
        self.write_awaited(Write::Name(last)).wait().map(|()| Vec::new())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.reader.close();
        // The writer ends when it has written everything and nobody can send any more.
        let (nobody, _) = channel();
        drop(std::mem::replace(&mut self.jobs, nobody));
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Checks the store of a state directory that no gateway uses, if it has one, and changes nothing.
pub(crate) fn check_closed(dir: &Path) -> Result<(), OpenError> {
    file::check(&dir.join("gateway.db"))
}

/// Whether the store of a state directory has records that only their key proves.
pub(crate) fn needs_key(dir: &Path) -> bool {
    let file = dir.join("gateway.db");
    let Ok(db) = file::open_reader(&StoreLocation::File(file)) else { return false };
    ["chain_beginning", "seals"].iter().any(|table| {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {table})");
        // Formats before the chain have neither.
        db.query_row(&sql, [], |row| row.get(0)).unwrap_or(false)
    })
}

/// How many boards of a state directory were approved by a person.
pub(crate) fn enrolled_boards(dir: &Path) -> usize {
    let Ok(db) = file::open_reader(&StoreLocation::File(dir.join("gateway.db"))) else { return 0 };
    let sql = "SELECT count(*) FROM tokens WHERE role = 'device' AND label = ?1";
    db.query_row(sql, [ENROLLED], |row| row.get(0)).unwrap_or(0)
}

/// The names of the callers with a token in a state directory; `None` where it has no store that can be read.
pub(crate) fn callers(dir: &Path) -> Option<Vec<String>> {
    let file = dir.join("gateway.db");
    let db = file::open_reader(&StoreLocation::File(file)).ok()?;
    let sql = "SELECT iif(label = '', id, label) FROM tokens WHERE role <> 'device'";
    db.prepare(sql).ok()?.query_map([], |row| row.get(0)).ok()?.collect::<rusqlite::Result<_>>().ok()
}

/// Copies the store of a state directory, also while a gateway writes to it, into an empty file. Gives the format of the
/// copy and the last record that a seal in it covers.
pub(crate) fn copy(dir: &Path, to: &Path) -> std::io::Result<(i64, i64)> {
    let copied = || {
        let db = file::open_existing(&dir.join("gateway.db"))?;
        db.execute("VACUUM INTO ?", [to.to_string_lossy()])?;
        let copy = file::open_existing(to)?;
        let format: i64 = copy.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        // Formats before the chain have no seals.
        let seal = copy.query_row("SELECT coalesce(max(last), 0) FROM seals", [], |row| row.get(0)).unwrap_or(0);
        Ok((format, seal))
    };
    copied().map_err(|error: rusqlite::Error| std::io::Error::other(format!("the store cannot be copied: {error}")))
}

/// Whether a database that nobody uses is whole, page by page.
pub(crate) fn check_integrity(file: &Path) -> Result<(), String> {
    let check = || -> rusqlite::Result<String> {
        file::open_existing(file)?.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
    };
    match check() {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(problem) => Err(problem.replace('\n', " ")),
        Err(error) => Err(error.to_string()),
    }
}

/// Verifies the audit of a state directory that no gateway uses.
pub(crate) fn verify_closed(dir: &Path, key: AuditKey) -> Result<AuditReport, OpenError> {
    let location = StoreLocation::new(Some(&dir.join("gateway.db")));
    let db = file::open(&location, &key)?;
    let path = dir.join(seals::FILE);
    let seals = seals::read_file(&path).map_err(|source| OpenError::Io { what: "read the seals in", path, source })?;
    let verify = || {
        let mut verification = Verification::begin(&db, key, None)?;
        verification.check_file(&db, seals)?;
        while verification.page(&db)? {}
        Ok(verification.finish(None))
    };
    verify().map_err(|error| location.refused(&error))
}

fn unreadable(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR),
        Some(format!("{}: {error}", seals::FILE)),
    )
}

fn started(file: Option<&Path>) -> impl Fn(std::io::Error) -> OpenError {
    let path = file.unwrap_or(Path::new(":memory:")).to_owned();
    move |source| OpenError::Io { what: "start a thread for the store", path: path.clone(), source }
}

fn closed() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        "the gateway is shutting down; start it again and look whether the call had its effect",
    )
}

fn failed(error: &str) -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        format!(
            "the store cannot be written or read ({error}); check that the disk of the state directory has space and is not damaged"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::shared::{KeptArgs, RecordKind};

    fn call(number: i64) -> AuditRow {
        AuditRow {
            kind: RecordKind::Call,
            at: number,
            principal: "tester".to_owned(),
            door: "test",
            device: None,
            tool: None,
            name: "x".to_owned(),
            caller: None,
            decided: None,
            run: None,
            args_digest: [0; 32],
            args: "{}".to_owned(),
            kept: KeptArgs::Cut,
            outcome: "ok",
            duration_us: 1,
            bytes: 1,
            is_sent: true,
        }
    }

    fn open(file: &Path) -> Store {
        open_at(Some(file))
    }

    fn open_at(file: Option<&Path>) -> Store {
        let (signals, seals) = (broadcast::Sender::new(1), broadcast::Sender::new(1));
        Store::open(file, &Settings::default(), signals, AuditKey::new("key"), seals, &|_| false).unwrap().0
    }

    #[tokio::test]
    async fn a_reader_in_the_middle_of_a_page_delays_no_commit() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir.path().join("gateway.db"));
        for number in 0..10 {
            store.audit(call(number)).await.unwrap();
        }
        let (begun, has_begun) = oneshot::channel();
        let (go, may_go) = sync_channel::<()>(1);
        let page = store.read(move |db| {
            let mut select = db.prepare("SELECT id FROM audit")?;
            let mut rows = select.query([])?;
            let mut count = i64::from(rows.next()?.is_some());
            let _ = begun.send(());
            let _ = may_go.recv();
            while rows.next()?.is_some() {
                count += 1;
            }
            Ok(count)
        });
        let commits = async {
            has_begun.await.unwrap();
            for number in 10..20 {
                store.audit(call(number)).await.unwrap();
            }
            go.send(()).unwrap();
        };
        // Without a reader of its own the commits would wait for the page, and the page for the commits.
        let both = async { tokio::join!(page, commits) };
        let (page, ()) =
            tokio::time::timeout(Duration::from_secs(60), both).await.expect("a commit waited for the page");
        assert_eq!(page.unwrap(), 10);
        assert_eq!(store.newest_records(AuditFilter::default(), 100).await.unwrap().len(), 20);
    }

    #[tokio::test]
    async fn a_question_finds_what_was_written_before_it() {
        for file in [None, Some(tempfile::tempdir().unwrap())] {
            let path = file.as_ref().map(|dir| dir.path().join("gateway.db"));
            let store = open_at(path.as_deref());
            for number in 1..200 {
                store.audit_unawaited(call(number));
                assert_eq!(store.newest_records(AuditFilter::default(), 1).await.unwrap()[0].at, number);
            }
        }
    }
}
