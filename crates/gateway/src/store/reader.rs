//! The reading side: a thread with a connection of its own. In WAL mode it sees the last commit and delays nobody.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, InterruptHandle};
use tokio::sync::oneshot;

type Query = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct StoreReader {
    thread: Mutex<Option<(Sender<Query>, JoinHandle<()>)>>,
    interrupt: InterruptHandle,
}

impl StoreReader {
    pub(super) fn start(db: Connection) -> std::io::Result<StoreReader> {
        let (queries, inbox) = channel();
        let interrupt = db.get_interrupt_handle();
        let thread = std::thread::Builder::new().name("sinew-reader".to_owned());
        let thread = thread.spawn(move || run(&db, &inbox))?;
        Ok(StoreReader { thread: Mutex::new(Some((queries, thread))), interrupt })
    }

    /// `None` once the store is closed.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let ask = move |db: &Connection| {
            let _ = reply.send(query(db));
        };
        self.send(Box::new(ask))?;
        answer.await.ok()
    }

    fn send(&self, query: Query) -> Option<()> {
        let held = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref()?.0.send(query).ok()
    }

    /// Ends running queries and closes the file, which the last checkpoint needs for itself.
    pub(super) fn close(&self) {
        let held = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((queries, thread)) = held {
            drop(queries);
            self.interrupt.interrupt();
            let _ = thread.join();
        }
    }
}

fn run(db: &Connection, inbox: &Receiver<Query>) {
    inbox.iter().for_each(|query| query(db));
}
