//! The memory: devices, names, tokens, events and calls, in one SQLite file.
//!
//! One thread takes everything that waits, writes it in one transaction and then tells those who wait
//! for it: under load many calls share one commit. A call that ends while nobody writes is written by
//! its own caller, without the detour. Neighbours: `tables.rs` (the file), `writer.rs` (who writes),
//! `rows.rs` (what is written), `read.rs` (what is asked).

mod read;
mod rows;
mod tables;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use sinew_tool::{DeviceId, DeviceKey, ErrorKind, ToolError};
use tokio::sync::{broadcast, oneshot};

pub(crate) use read::Cursor;
pub(crate) use rows::{AuditRow, DeviceRow, EventRow, Loaded, Pending, TokenRow, Write};

use crate::settings::{OpenError, Settings};
use crate::view::{AuditRecord, EventPage};
use writer::{Desk, Job, Writer};

/// Events that may wait for the store, of all devices together. More than the store writes in 100 ms
/// would only be delay.
const MAX_WAITING_EVENTS: usize = 4_096;

pub(crate) struct Store {
    jobs: Sender<Job>,
    desk: Desk,
    /// Jobs on their way to the thread; nobody overtakes them.
    waiting: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
    waiting_events: Arc<AtomicUsize>,
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
    /// Opens the store and reads what it remembers. `told` hears of every event once it can be read.
    pub(crate) fn open(
        file: Option<&Path>,
        settings: &Settings,
        told: broadcast::Sender<DeviceId>,
        is_pinned: &dyn Fn(&DeviceKey) -> bool,
    ) -> Result<(Store, Loaded), OpenError> {
        let mut db = tables::open(file)?;
        let damaged = |error: rusqlite::Error| tables::damaged(file, &error);
        let loaded = rows::load(&mut db, is_pinned).map_err(damaged)?;
        let waiting_events = Arc::new(AtomicUsize::new(0));
        let writer = Writer::new(db, settings, told, waiting_events.clone()).map_err(damaged)?;
        let desk = Arc::new(Mutex::new(Some(writer)));
        let (jobs, inbox) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (for_desk, for_waiting) = (desk.clone(), waiting.clone());
        let thread = std::thread::Builder::new()
            .name("sinew-store".to_owned())
            .spawn(move || writer::run(&for_desk, &inbox, &for_waiting));
        let thread = thread.map_err(|source| OpenError::Io {
            what: "start the thread of the store",
            path: file.unwrap_or(Path::new(":memory:")).to_owned(),
            source,
        })?;
        Ok((Store { jobs, desk, waiting, thread: Mutex::new(Some(thread)), waiting_events }, loaded))
    }

    /// Writes a call down and waits until that is committed.
    pub(crate) async fn audit(&self, row: AuditRow) -> Result<(), ToolError> {
        let alone = match self.desk.try_lock() {
            Ok(mut held) if self.waiting.load(Ordering::Acquire) == 0 => {
                held.as_mut().and_then(|writer| writer.write_alone(&row))
            }
            _ => None,
        };
        let committed = match alone {
            Some((committed, is_first)) => {
                if is_first {
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

    /// Writes a call down that nobody waits for any more.
    pub(crate) fn audit_unawaited(&self, row: AuditRow) {
        if self.send(Job::Audit(row, None)).is_err() {
            tracing::warn!("a call that was given up after the store closed is not in the audit");
        }
    }

    /// Keeps an event, unless too many wait already.
    pub(crate) fn event(&self, row: EventRow) -> bool {
        if self.waiting_events.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_EVENTS
            && self.send(Job::Event(row)).is_ok()
        {
            return true;
        }
        self.waiting_events.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Writes something down without waiting.
    pub(crate) fn write(&self, write: Write) {
        if self.send(Job::Write(write, None)).is_err() {
            tracing::warn!("a change of the registry after the store closed is not kept");
        }
    }

    /// Writes something down for somebody who will wait for it.
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

    pub(crate) async fn newest_calls(&self, limit: usize) -> Result<Vec<AuditRecord>, ToolError> {
        self.read(move |db| read::newest_calls(db, limit)).await
    }

    pub(crate) async fn events(
        &self,
        device: Option<DeviceId>,
        since: Option<Cursor>,
        limit: usize,
    ) -> Result<EventPage, ToolError> {
        self.read(move |db| read::events(db, device.as_ref(), since, limit)).await
    }

    /// Puts everything on disk and ends the thread.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.send(Job::Close(done)).is_ok() {
            let _ = closed.await;
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (reply, answer) = oneshot::channel();
        let ask = move |db: &Connection| {
            let _ = reply.send(question(db));
        };
        self.send(Job::Read(Box::new(ask)))?;
        answer.await.map_err(|_| closed())?.map_err(|error| failed(&error.to_string()))
    }

    fn send(&self, job: Job) -> Result<(), ToolError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.send(job).map_err(|_| closed())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The writer ends when it has written everything and nobody can send any more.
        let (nobody, _) = channel();
        drop(std::mem::replace(&mut self.jobs, nobody));
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
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
            "the store cannot be written or read ({error}); see that the disk of the state directory has room and is sound"
        ),
    )
}
