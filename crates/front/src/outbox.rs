//! Lines that wait to be written to a client, counted until they are written.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// No more is read from a client while this many bytes wait for it. About one large answer.
const PAUSE_READING: usize = 1 << 20;
/// Beyond this many bytes an answer is replaced by an error. The largest answer has 22 MiB as text, and answers to
/// requests that were read before may still follow.
const FULL: usize = 32 << 20;

/// The writing end of a client's connection.
pub(crate) struct Outbox {
    /// Unbounded, because the bytes are bounded instead.
    lines: Option<mpsc::UnboundedSender<QueuedLine>>,
    waiting: Arc<watch::Sender<usize>>,
    writing: JoinHandle<io::Result<()>>,
}

struct QueuedLine {
    bytes: Vec<u8>,
    written: oneshot::Sender<()>,
}

/// Resolves when a line was written.
pub(crate) type Written = oneshot::Receiver<()>;

impl Outbox {
    pub(crate) fn new(writer: impl AsyncWrite + Unpin + Send + 'static) -> Outbox {
        let (lines, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(watch::Sender::new(0));
        let writing = tokio::spawn(write(writer, queue, waiting.clone()));
        Outbox { lines: Some(lines), waiting, writing }
    }

    /// Whether a line of this length may still be queued.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        let waiting = *self.waiting.borrow();
        waiting == 0 || waiting + length <= FULL
    }

    /// Queues a line. It is lost when the connection is closed.
    pub(crate) fn push(&self, mut bytes: Vec<u8>) -> Written {
        bytes.push(b'\n');
        let (written, done) = oneshot::channel();
        let length = bytes.len();
        self.waiting.send_modify(|waiting| *waiting += length);
        if let Some(lines) = &self.lines {
            let _ = lines.send(QueuedLine { bytes, written });
        }
        done
    }

    /// Waits until few enough bytes wait to read more. `false` when the connection is closed.
    pub(crate) async fn ready(&self) -> bool {
        let Some(lines) = &self.lines else { return false };
        let mut waiting = self.waiting.subscribe();
        tokio::select! {
            biased;
            () = lines.closed() => false,
            ready = waiting.wait_for(|waiting| *waiting < PAUSE_READING) => ready.is_ok(),
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
    while let Some(QueuedLine { bytes, written }) = queue.recv().await {
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
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn reading_pauses_while_too_much_waits() {
        let (near, mut far) = tokio::io::duplex(1024);
        let outbox = Outbox::new(near);
        assert!(outbox.ready().await);
        let written = outbox.push(vec![b'a'; PAUSE_READING]);
        assert!(*outbox.waiting.borrow() >= PAUSE_READING && outbox.has_room(1) && !outbox.has_room(FULL));
        let reading = async {
            let mut bytes = vec![0; PAUSE_READING + 1];
            far.read_exact(&mut bytes).await.expect("the line");
        };
        let (ready, written, ()) = tokio::join!(outbox.ready(), written, reading);
        assert!(ready && written.is_ok() && *outbox.waiting.borrow() == 0);
        drop(far);
        let _ = outbox.push(vec![b'b'; PAUSE_READING]).await;
        assert!(!outbox.ready().await, "the client has closed its end");
    }

    #[tokio::test]
    async fn closing_waits_for_queued_lines() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut outbox = Outbox::new(near);
        drop(outbox.push(vec![b'a'; 100]));
        let mut bytes = Vec::new();
        let (closed, read) = tokio::join!(outbox.close(), far.read_to_end(&mut bytes));
        assert!(closed.is_ok() && read.ok() == Some(101));
    }
}
