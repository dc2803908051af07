//! The writing side: the thread of the store, and calls that write their own record while it is idle.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use sinew_tool::DeviceId;
use tokio::sync::{broadcast, oneshot};

use super::beginning::ChainBeginning;
use super::chain::{self, AuditKey, AuditSeal, ChainHead};
use super::health::{StoreHealth, is_about_content};
use super::rows::{EventRow, Write};
use super::seals::SealOutput;
use crate::registry::{PRESENCE_TOPICS, now};
use crate::settings::{MAX_DEVICE_EVENTS, Settings};
use crate::shared::AuditRow;

/// Jobs that share one transaction at most: beyond it, waiting for each other costs more than commits.
const MAX_BATCH: usize = 1_024;

/// A seal covers at most this many records: few enough to be lost without one, many enough that seals cost nothing.
pub(super) const SEAL_RECORDS: i64 = 1_000;

/// A seal comes after this time at the latest, so that a quiet gateway proves its records too.
const SEAL_TIME: Duration = Duration::from_secs(600);

/// Old records go with the seal that covers them, at most so many seals at once, so that no commit waits for long.
const MAX_PRUNED_SEALS: usize = 8;

/// With nothing to do for this long, the log is moved into the file.
const QUIET: Duration = Duration::from_millis(500);

/// Calls that end closer together than this share a commit on the thread. One that ends alone is written at once by
/// its own caller: a commit without a sync costs some 20 µs, and waking the thread and being woken by it costs more.
const ALONE: Duration = Duration::from_micros(100);

/// A caller never writes so much that SQLite would move the log in its time: at some three pages a commit this stays
/// below the 4,000 pages of `file.rs`, and then the thread moves it.
const MAX_UNMOVED: u32 = 1_000;

/// While the store cannot be written, this often it is tried again.
const PROBE: Duration = Duration::from_secs(1);

/// Room that a probe asks for: a disk with less would be full again at once.
const PROBE_BYTES: i64 = 256 << 10;

/// What is kept while the store cannot be written. Calls are refused then, so little comes; some 10 MB at most.
const MAX_UNWRITTEN: usize = 10_000;

/// Events wait so long for others; a person does not notice it.
const LATER: Duration = Duration::from_millis(5);

type Committed = Result<(), String>;

pub(super) enum Job {
    Audit(AuditRow, Option<oneshot::Sender<Committed>>),
    Event(EventRow),
    Write(Write, Option<SyncSender<Committed>>),
    /// A file beside the store, replaced at once.
    File(PathBuf, String, Option<SyncSender<Committed>>),
    /// Somebody waits until everything before this is committed.
    Settled(oneshot::Sender<()>),
    /// A caller has written to the log.
    Logged,
    /// There are [`LaterJobs`].
    Later,
    Close(oneshot::Sender<()>),
}

impl Job {
    fn is_change(&self) -> bool {
        matches!(self, Job::Audit(..) | Job::Event(_) | Job::Write(..))
    }

    /// What is left to do once nobody waits for it any more. A token is dropped: its creation was reported as failed.
    fn unawaited(self) -> Option<Job> {
        match self {
            Job::Audit(row, _) => Some(Job::Audit(row, None)),
            Job::Write(Write::Token(_), _) => None,
            Job::Write(write, _) => Some(Job::Write(write, None)),
            Job::Event(row) => Some(Job::Event(row)),
            Job::File(..) | Job::Settled(_) | Job::Logged | Job::Later | Job::Close(_) => None,
        }
    }
}

/// Events and what concerns them, in their order. Nobody waits for them, so they are written with what comes within
/// [`LATER`]: a board that sends an event with each answer would otherwise wake the thread for each call.
#[derive(Default)]
pub(super) struct LaterJobs {
    jobs: Mutex<Vec<Job>>,
    /// With those that are being written.
    unwritten: AtomicUsize,
}

impl LaterJobs {
    /// Whether the thread has to be told.
    pub(super) fn push(&self, job: Job) -> bool {
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push(job);
        jobs.len() == 1
    }

    /// Whether all of them are written.
    pub(super) fn is_empty(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) == 0
    }

    fn take(&self) -> Vec<Job> {
        std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note_written(&self, count: usize) {
        self.unwritten.fetch_sub(count, Ordering::Release);
    }
}

/// The writer, behind its mutex; `None` once the store is closed.
pub(super) type SharedWriter = Arc<Mutex<Option<StoreWriter>>>;

pub(super) struct StoreWriter {
    db: Connection,
    last_commit: Instant,
    /// Commits that are in the log and not in the file.
    unmoved: u32,
    signals: broadcast::Sender<DeviceId>,
    waiting_events: Arc<AtomicUsize>,
    max_audit: i64,
    max_events: usize,
    max_device_events: usize,
    /// Events kept, by device and in all.
    kept: HashMap<String, usize>,
    kept_in_all: usize,
    key: AuditKey,
    head: ChainHead,
    /// The first record that no seal covers yet, and when this was first noticed.
    unsealed: i64,
    unsealed_since: Option<Instant>,
    /// Made in the transaction that is under way; they leave when it is committed.
    new_seals: Vec<AuditSeal>,
    /// Whether there was a seal since old records were last removed.
    is_prune_due: bool,
    seals: SealOutput,
    health: Arc<StoreHealth>,
    /// What could not be written, and how much of it was more than is kept.
    unwritten: Vec<Job>,
    lost: usize,
    last_probe: Instant,
}

impl StoreWriter {
    pub(super) fn new(
        db: Connection,
        settings: &Settings,
        (signals, waiting_events): (broadcast::Sender<DeviceId>, Arc<AtomicUsize>),
        health: Arc<StoreHealth>,
        key: AuditKey,
        (seals, lost_seals): (SealOutput, Option<usize>),
    ) -> rusqlite::Result<StoreWriter> {
        let (head, missing) = ChainHead::load(&db, &key)?;
        if let Some((first, last)) = missing {
            tracing::error!("the audit lacks the records {first} to {last}: they were sealed and then removed");
        }
        if ChainBeginning::load(&db, &key)?.is_none() {
            tracing::error!(
                "the chain of the audit was not begun with this audit-key: put the key back from a backup; without it \
                 nothing proves the records so far"
            );
        }
        let unsealed = chain::first_unsealed(&db, &key, head)?;
        let mut writer = StoreWriter {
            db,
            last_commit: Instant::now(),
            unmoved: 0,
            signals,
            waiting_events,
            max_audit: i64::try_from(settings.max_audit).unwrap_or(i64::MAX),
            max_events: settings.max_events.max(1),
            max_device_events: settings.max_device_events.clamp(1, MAX_DEVICE_EVENTS),
            kept: HashMap::new(),
            kept_in_all: 0,
            key,
            head,
            unsealed,
            unsealed_since: None,
            new_seals: Vec::new(),
            is_prune_due: false,
            seals,
            health,
            unwritten: Vec::new(),
            lost: 0,
            last_probe: Instant::now(),
        };
        writer.count_events()?;
        if let Some(lost) = lost_seals {
            writer.transact(|writer| writer.write_record(&chain::restoration(&writer.key, lost, now())))?;
        }
        Ok(writer)
    }

    /// Writes one call down in its caller's own time, unless calls come in quick succession. Also says whether this is
    /// the first commit since the log was moved.
    pub(super) fn write_alone(&mut self, row: &AuditRow) -> Option<(Committed, bool)> {
        let is_busy = self.last_commit.elapsed() < ALONE || self.unmoved >= MAX_UNMOVED;
        // Seals are made on the thread.
        if is_busy || self.is_seal_due() || self.health.has_failed() {
            return None;
        }
        let committed = self.commit(|writer| writer.write_record(row));
        if committed.is_err() && self.health.has_failed() {
            self.keep_unwritten(Job::Audit(row.clone(), None));
        }
        Some((committed, self.unmoved == 1))
    }

    /// Writes a batch, then answers those who wait. Returns who waits for the store to close.
    fn handle(&mut self, batch: &mut Vec<Job>) -> Option<oneshot::Sender<()>> {
        let result = match (batch.iter().any(Job::is_change), self.health.problem()) {
            (false, _) => Ok(()),
            (true, Some(problem)) => Err(problem),
            (true, None) => self.commit(|writer| writer.write(batch)),
        };
        let must_wait = result.is_err() && self.health.has_failed();
        let mut close = None;
        for mut job in batch.drain(..) {
            match &mut job {
                Job::Audit(_, done) => drop(done.take().map(|done| done.send(result.clone()))),
                Job::Write(_, done) => drop(done.take().map(|done| done.send(result.clone()))),
                _ => {}
            }
            if must_wait && job.is_change() {
                self.keep_unwritten(job);
                continue;
            }
            match job {
                Job::Event(row) => self.finish_event(row, result.is_ok()),
                Job::File(path, text, done) => {
                    let kept = replace(&path, &text).map_err(|error| {
                        tracing::error!(path = %path.display(), %error, "a file could not be written");
                        format!("{}: {error}", path.display())
                    });
                    if let Some(done) = done {
                        let _ = done.send(kept);
                    }
                }
                Job::Settled(done) => drop(done.send(())),
                Job::Close(done) => close = Some(done),
                Job::Audit(..) | Job::Write(..) | Job::Logged | Job::Later => {}
            }
        }
        close
    }

    fn finish_event(&mut self, row: EventRow, is_kept: bool) {
        self.waiting_events.fetch_sub(1, Ordering::Relaxed);
        // Whoever watches learns of these as a change of the device, many at once as one.
        if is_kept && !PRESENCE_TOPICS.contains(&row.topic.as_str()) {
            let _ = self.signals.send(row.device);
        }
    }

    fn keep_unwritten(&mut self, job: Job) {
        let Some(job) = job.unawaited() else { return };
        // The log has what the store may never have.
        if let Job::Audit(row, _) = &job
            && row.is_sent
        {
            let AuditRow { at, principal, door, device, tool, args, outcome, .. } = row;
            let device = device.as_ref().map(DeviceId::as_str);
            tracing::error!(at, principal, door, device, tool, args, outcome, "call made but not recorded yet");
        }
        match self.unwritten.len() < MAX_UNWRITTEN {
            true => self.unwritten.push(job),
            false => {
                self.lost += 1;
                if let Job::Event(row) = job {
                    self.finish_event(row, false);
                }
            }
        }
    }

    /// Tries whether the store can be written again, and writes what waited for it.
    fn probe(&mut self) {
        if !self.health.has_failed() || self.last_probe.elapsed() < PROBE {
            return;
        }
        self.last_probe = Instant::now();
        let unwritten = std::mem::take(&mut self.unwritten);
        let take_room = |writer: &mut StoreWriter| {
            let mut insert = writer
                .db
                .prepare_cached("INSERT OR REPLACE INTO counters (name, value) VALUES ('probe', zeroblob(?))")?;
            insert.execute([PROBE_BYTES])?;
            drop(insert);
            writer.write(&unwritten)
        };
        let give_room = |writer: &mut StoreWriter| {
            writer.db.prepare_cached("DELETE FROM counters WHERE name = 'probe'")?.execute([]).map(drop)
        };
        if let Err(error) = self.transact(take_room) {
            self.health.fail(&error.to_string());
            self.unwritten = unwritten;
            return;
        }
        let _ = self.transact(give_room);
        let lost = std::mem::take(&mut self.lost);
        tracing::info!(written = unwritten.len(), lost, "the store can be written again; calls are made again");
        for job in unwritten {
            if let Job::Event(row) = job {
                self.finish_event(row, true);
            }
        }
        self.health.recover();
    }

    fn commit(&mut self, write: impl FnOnce(&mut StoreWriter) -> rusqlite::Result<()>) -> Committed {
        let started = Instant::now();
        let written = self.transact(write).map_err(|error| {
            match is_about_content(&error) {
                true => tracing::error!(%error, "the store refused what was to be written"),
                false => {
                    self.last_probe = Instant::now();
                    self.health.fail(&error.to_string());
                }
            }
            error.to_string()
        });
        self.last_commit = Instant::now();
        self.health.note_commit(self.last_commit - started, written.is_ok());
        self.unmoved += 1;
        written
    }

    fn transact(&mut self, write: impl FnOnce(&mut StoreWriter) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let before = (self.head, self.unsealed);
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let written = write(self).and_then(|()| self.db.prepare_cached("COMMIT")?.execute([]).map(drop));
        let new_seals = std::mem::take(&mut self.new_seals);
        match &written {
            Ok(()) => new_seals.into_iter().for_each(|seal| self.seals.send(seal)),
            Err(_) => {
                let _ = self.db.execute_batch("ROLLBACK");
                (self.head, self.unsealed) = before;
                let _ = self.count_events();
            }
        }
        written
    }

    fn write(&mut self, batch: &[Job]) -> rusqlite::Result<()> {
        let mut has_dropped_events = false;
        for job in batch {
            match job {
                Job::Audit(row, _) => {
                    if self.unsealed_records() >= SEAL_RECORDS {
                        self.add_seal()?;
                    }
                    self.write_record(row)?;
                }
                Job::Event(row) => self.write_event(row)?,
                Job::Write(write, _) => {
                    write.apply(&self.db)?;
                    has_dropped_events |= matches!(write, Write::ForgetEvents(_));
                }
                Job::File(..) | Job::Settled(_) | Job::Logged | Job::Later | Job::Close(_) => {}
            }
        }
        if has_dropped_events {
            self.count_events()?;
        }
        Ok(())
    }

    fn write_record(&mut self, row: &AuditRow) -> rusqlite::Result<()> {
        self.head = chain::append(&self.db, &self.key, self.head, row)?;
        Ok(())
    }

    fn unsealed_records(&self) -> i64 {
        self.head.id - self.unsealed + 1
    }

    fn is_seal_due(&self) -> bool {
        self.unsealed_records() >= SEAL_RECORDS || self.until_seal() == Some(Duration::ZERO)
    }

    /// How long until the records that no seal covers need one; `None` while there are none.
    fn until_seal(&self) -> Option<Duration> {
        (self.unsealed_records() > 0).then(|| {
            let waited = self.unsealed_since.map_or(Duration::ZERO, |since| since.elapsed());
            SEAL_TIME.saturating_sub(waited)
        })
    }

    fn note_unsealed(&mut self) {
        match self.unsealed_records() > 0 {
            true => drop(self.unsealed_since.get_or_insert_with(Instant::now)),
            false => self.unsealed_since = None,
        }
    }

    /// Seals the records since the last seal, in the transaction that is under way.
    fn add_seal(&mut self) -> rusqlite::Result<()> {
        let seal = AuditSeal::new(&self.key, self.unsealed, self.head, now());
        seal.insert(&self.db)?;
        self.unsealed = seal.last + 1;
        self.unsealed_since = None;
        self.is_prune_due = true;
        self.new_seals.push(seal);
        Ok(())
    }

    /// Seals the records since the last seal, if there are any.
    fn seal(&mut self) {
        if self.unsealed_records() == 0 || self.health.has_failed() {
            return;
        }
        self.unmoved += 1;
        if let Err(error) = self.transact(StoreWriter::add_seal) {
            tracing::warn!(%error, "the audit could not be sealed");
            self.unsealed_since = Some(Instant::now());
        }
    }

    /// Seals and removes what is due.
    fn tidy(&mut self) {
        if self.is_seal_due() {
            self.seal();
        }
        if std::mem::take(&mut self.is_prune_due) && !self.health.has_failed() {
            self.unmoved += 1;
            if let Err(error) = self.transact(StoreWriter::prune) {
                tracing::warn!(%error, "old records of the audit could not be removed");
            }
        }
    }

    /// Removes the oldest records beyond the limit, whole seals at a time, and records that.
    fn prune(&mut self) -> rusqlite::Result<()> {
        let mut removed = None;
        for _ in 0..MAX_PRUNED_SEALS {
            let oldest = "SELECT id, hash IS NULL FROM audit WHERE id > 0 ORDER BY id LIMIT 1";
            let mut select = self.db.prepare_cached(oldest)?;
            let oldest: Option<(i64, bool)> = select.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            drop(select);
            let Some((oldest, is_unchained)) = oldest else { break };
            let excess = self.head.id - oldest + 1 - self.max_audit;
            // Records of formats before the chain are covered by no seal.
            let until = match is_unchained {
                true => Some(oldest + excess.min(SEAL_RECORDS) - 1),
                false => chain::seals_after(&self.db, &self.key, oldest - 1, 1)?.first().map(|seal| seal.last),
            };
            let Some(until) = until.filter(|until| *until >= oldest && *until - oldest < excess) else { break };
            let sql = match is_unchained {
                true => "DELETE FROM audit WHERE id <= ? AND hash IS NULL",
                false => "DELETE FROM audit WHERE id <= ?",
            };
            self.db.prepare_cached(sql)?.execute([until])?;
            removed = removed.max((!is_unchained).then_some(until));
        }
        removed.map_or(Ok(()), |until| self.write_record(&chain::removal(&self.key, until, now())))
    }

    fn write_event(&mut self, row: &EventRow) -> rusqlite::Result<()> {
        let mut insert = self
            .db
            .prepare_cached("INSERT INTO events (seq, at, device, nth, topic, body) VALUES (?, ?, ?, ?, ?, ?)")?;
        insert.execute(params![row.seq, row.at, row.device.as_str(), row.nth, row.topic, row.body])?;
        drop(insert);
        self.kept_in_all += 1;
        let of_device = self.kept.entry(row.device.as_str().to_owned()).or_default();
        *of_device += 1;
        if *of_device > self.max_device_events {
            self.drop_oldest(Some(row.device.as_str()))?;
        }
        if self.kept_in_all > self.max_events {
            self.drop_oldest(None)?;
        }
        Ok(())
    }

    fn drop_oldest(&mut self, device: Option<&str>) -> rusqlite::Result<()> {
        let oldest: Option<(i64, String)> = match device {
            Some(device) => self
                .db
                .prepare_cached("SELECT seq, device FROM events WHERE device = ? ORDER BY seq LIMIT 1")?
                .query_row([device], |row| Ok((row.get(0)?, row.get(1)?))),
            None => self
                .db
                .prepare_cached("SELECT seq, device FROM events ORDER BY seq LIMIT 1")?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?))),
        }
        .optional()?;
        let Some((seq, device)) = oldest else { return Ok(()) };
        self.db.prepare_cached("DELETE FROM events WHERE seq = ?")?.execute([seq])?;
        self.kept_in_all = self.kept_in_all.saturating_sub(1);
        if let Some(of_device) = self.kept.get_mut(&device) {
            *of_device = of_device.saturating_sub(1);
            if *of_device == 0 {
                self.kept.remove(&device);
            }
        }
        Ok(())
    }

    fn count_events(&mut self) -> rusqlite::Result<()> {
        let mut count = self.db.prepare("SELECT device, count(*) FROM events GROUP BY device")?;
        self.kept = count.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        self.kept_in_all = self.kept.values().sum();
        Ok(())
    }

    /// When the thread must look again, also if nothing comes: to move the log, to probe, or to seal.
    fn wake_in(&mut self) -> Duration {
        self.note_unsealed();
        match self.unmoved > 0 || self.health.has_failed() {
            true => QUIET,
            false => self.until_seal().unwrap_or(Duration::MAX),
        }
    }

    /// Seals everything and puts it on the disk.
    fn close(&mut self) {
        self.seal();
        self.tidy();
        self.seals.close();
        self.checkpoint("TRUNCATE");
    }

    /// The newest record, as this process wrote it.
    pub(super) fn head(&self) -> ChainHead {
        self.head
    }

    fn checkpoint(&mut self, how: &str) {
        self.unmoved = 0;
        if let Err(error) = self.db.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(())) {
            tracing::warn!(%error, "the log of the store could not be moved into its file");
        }
    }
}

/// The thread of the store. Takes everything that waits, writes it in one transaction, and moves the log in quiet
/// moments.
pub(super) fn run(shared: &SharedWriter, inbox: &Receiver<Job>, later: &LaterJobs, waiting: &AtomicUsize) {
    let mut batch = Vec::new();
    let mut wake = Duration::MAX;
    loop {
        let mut first = inbox.recv_timeout(wake);
        if let Ok(Job::Later) = first {
            // Whatever else comes is not kept waiting.
            first = inbox.recv_timeout(LATER).or(first);
        }
        let mut held = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = held.as_mut() else { return };
        writer.probe();
        match first {
            Ok(first) => batch.push(first),
            Err(RecvTimeoutError::Timeout) => {
                writer.tidy();
                if writer.last_commit.elapsed() >= QUIET {
                    writer.checkpoint("PASSIVE");
                }
                wake = writer.wake_in();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => {
                writer.close();
                *held = None;
                return;
            }
        }
        batch.extend(inbox.try_iter().take(MAX_BATCH - 1));
        let taken = batch.iter().filter(|job| !matches!(job, Job::Later)).count();
        let mut from_later = later.take();
        let taken_later = from_later.len();
        batch.append(&mut from_later);
        if let Some(done) = writer.handle(&mut batch) {
            writer.close();
            *held = None;
            let _ = done.send(());
            return;
        }
        waiting.fetch_sub(taken, Ordering::Release);
        later.note_written(taken_later);
        writer.tidy();
        if writer.unmoved >= MAX_UNMOVED {
            writer.checkpoint("PASSIVE");
        }
        wake = writer.wake_in();
    }
}

/// Replaces the file atomically.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
