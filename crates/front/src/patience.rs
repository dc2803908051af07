//! Connections whose other end must go on reading.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A connection that fails once nothing could be written to it for some time, or when it is cut.
pub(crate) struct Patient<S> {
    inner: S,
    patience: Duration,
    /// Runs while the other end takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    cut: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S, patience: Duration) -> Patient<S> {
        Patient { inner, patience, stalled: None, cut: None }
    }

    /// Fails in both directions as soon as `cut` is cancelled.
    pub(crate) fn cut_by(self, cut: CancellationToken) -> Patient<S> {
        Patient { cut: Some(Box::pin(cut.cancelled_owned())), ..self }
    }

    fn poll_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().is_some_and(|cut| cut.as_mut().poll(cx).is_ready()) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Passes on how a write went, and fails where writes have been waiting for too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => {
                let message = format!("the other end read nothing for {} s", patience.as_secs());
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_cut(cx)?;
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_cut(cx)?;
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_cut(cx)?;
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_cut(cx)?;
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, closed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_goes_on_is_waited_for_and_one_that_stops_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = Patient::new(near, PATIENCE);
        let slow = async {
            let mut bytes = [0; 8];
            for _ in 0..3 {
                sleep(PATIENCE / 2).await;
                far.read_exact(&mut bytes).await.expect("bytes");
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[7; 32]), slow);
        written.expect("there was progress all the time");
        let began = Instant::now();
        assert_eq!(near.write_all(&[7; 8]).await.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_ends_both_directions_at_once() {
        let (near, _far) = tokio::io::duplex(8);
        let cut = CancellationToken::new();
        let (mut reader, mut writer) = tokio::io::split(Patient::new(near, PATIENCE).cut_by(cut.clone()));
        let began = Instant::now();
        let (read, written, ()) = tokio::join!(reader.read_u8(), writer.write_all(&[7; 32]), async { cut.cancel() });
        assert!(read.is_err() && written.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
