//! Lines that wait to be written to a client, counted until they are written.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::memory::{MemoryBudget, MemoryShare};

/// No more is read from a client while this many bytes wait for it. About one large answer.
const PAUSE_READING: usize = 1 << 20;

/// The writing end of a client's connection.
pub(crate) struct Outbox {
    /// Unbounded, because the bytes are bounded instead.
    lines: Option<mpsc::UnboundedSender<QueuedLine>>,
    /// Memory for what the client has not read yet.
    memory: MemoryBudget,
    waiting: Arc<watch::Sender<usize>>,
    writing: JoinHandle<io::Result<()>>,
}

struct QueuedLine {
    bytes: Vec<u8>,
    written: oneshot::Sender<()>,
    _share: MemoryShare,
}

/// Resolves when a line was written.
pub(crate) type Written = oneshot::Receiver<()>;

impl Outbox {
    pub(crate) fn new(writer: impl AsyncWrite + Unpin + Send + 'static, memory: MemoryBudget) -> Outbox {
        let (lines, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(watch::Sender::new(0));
        let writing = tokio::spawn(write(writer, queue, waiting.clone()));
        Outbox { lines: Some(lines), memory, waiting, writing }
    }

    /// Whether no further answer may wait for the client.
    pub(crate) fn is_full(&self) -> bool {
        self.memory.is_spent()
    }

    /// The memory for an answer of this length, if it may wait for the client.
    pub(crate) fn reserve(&self, length: usize) -> Option<MemoryShare> {
        let mut share = self.memory.share();
        share.try_grow(length).then_some(share)
    }

    /// The memory for a short line, such as an error in place of an answer, which is queued in any case.
    pub(crate) fn take(&self, length: usize) -> MemoryShare {
        let mut share = self.memory.share();
        share.grow(length);
        share
    }

    /// Queues a line. It is lost when the connection is closed.
    pub(crate) fn push(&self, mut bytes: Vec<u8>, share: MemoryShare) -> Written {
        bytes.push(b'\n');
        let (written, done) = oneshot::channel();
        let length = bytes.len();
        self.waiting.send_modify(|waiting| *waiting += length);
        if let Some(lines) = &self.lines {
            let _ = lines.send(QueuedLine { bytes, written, _share: share });
        }
        done
    }

    /// Waits until few enough bytes wait to read more: while the memory is used up, none, for each further request would
    /// get an error that waits too. `false` when the connection is closed.
    pub(crate) async fn ready(&self) -> bool {
        let Some(lines) = &self.lines else { return false };
        let mut waiting = self.waiting.subscribe();
        tokio::select! {
            biased;
            () = lines.closed() => false,
            ready = waiting.wait_for(|waiting| match self.is_full() {
                true => *waiting == 0,
                false => *waiting < PAUSE_READING,
            }) => ready.is_ok(),
        }
    }

    /// Waits until everything is written and closes the connection.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        drop(self.lines.take());
        (&mut self.writing).await.map_err(io::Error::other)?
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<QueuedLine>,
    waiting: Arc<watch::Sender<usize>>,
) -> io::Result<()> {
    while let Some(QueuedLine { bytes, written, _share }) = queue.recv().await {
        writer.write_all(&bytes).await?;
        if queue.is_empty() {
            writer.flush().await?;
        }
        waiting.send_modify(|waiting| *waiting -= bytes.len());
        let _ = written.send(());
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Queues a line of so many bytes, with its end.
    fn push(outbox: &Outbox, length: usize) -> Written {
        outbox.push(vec![b'a'; length - 1], outbox.reserve(length).expect("room"))
    }

    #[tokio::test]
    async fn reading_pauses_while_too_much_waits() {
        let (near, mut far) = tokio::io::duplex(1024);
        let memory = MemoryBudget::new(2 * PAUSE_READING);
        let outbox = Outbox::new(near, memory.clone());
        assert!(outbox.ready().await);
        let written = push(&outbox, PAUSE_READING);
        assert_eq!((*outbox.waiting.borrow(), memory.used()), (PAUSE_READING, PAUSE_READING));
        let reading = async {
            let mut bytes = vec![0; PAUSE_READING];
            far.read_exact(&mut bytes).await.expect("the line");
        };
        let (ready, written, ()) = tokio::join!(outbox.ready(), written, reading);
        assert!(ready && written.is_ok() && *outbox.waiting.borrow() == 0);
        drop(far);
        let _ = push(&outbox, PAUSE_READING).await;
        assert!(!outbox.ready().await, "the client has closed its end");
        assert_eq!(memory.used(), 0, "nothing waits for a client that is gone");
    }

    #[tokio::test]
    async fn closing_waits_for_queued_lines() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut outbox = Outbox::new(near, MemoryBudget::new(1000));
        drop(push(&outbox, 101));
        let mut bytes = Vec::new();
        let (closed, read) = tokio::join!(outbox.close(), far.read_to_end(&mut bytes));
        assert!(closed.is_ok() && read.ok() == Some(101));
    }

    #[tokio::test]
    async fn lines_of_all_connections_are_counted_until_they_are_written() {
        let memory = MemoryBudget::new(1000);
        let connect = || {
            let (near, far) = tokio::io::duplex(16);
            (Outbox::new(near, memory.clone()), far)
        };
        let ((mut first, mut far), (second, _far)) = (connect(), connect());
        drop((push(&first, 600), push(&second, 400)));
        assert!(first.is_full() && second.is_full() && second.reserve(1).is_none());
        assert_eq!(second.ready().now_or_never(), None, "an error for each request would wait, too");
        let mut bytes = Vec::new();
        let (closed, read) = tokio::join!(first.close(), far.read_to_end(&mut bytes));
        assert!(closed.is_ok() && read.ok() == Some(600));
        assert!(second.reserve(600).is_some() && second.reserve(601).is_none());
        assert_eq!(second.ready().now_or_never(), Some(true));
    }
}
