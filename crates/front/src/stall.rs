//! Connections that fail when the other end stops reading.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A connection that fails when nothing could be written for `limit`, or when it is cut.
pub(crate) struct StallTimeout<S> {
    inner: S,
    limit: Duration,
    /// Runs while the other end reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    cut: Option<Cut>,
}

/// One for each direction: a future wakes only the task that polled it last, and two tasks may hold the two halves.
struct Cut {
    reading: Pin<Box<WaitForCancellationFutureOwned>>,
    writing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> StallTimeout<S> {
    pub(crate) fn new(inner: S, limit: Duration) -> StallTimeout<S> {
        StallTimeout { inner, limit, stalled: None, cut: None }
    }

    /// Fails in both directions as soon as `cut` is cancelled.
    pub(crate) fn cut_by(self, cut: CancellationToken) -> StallTimeout<S> {
        let reading = Box::pin(cut.clone().cancelled_owned());
        StallTimeout { cut: Some(Cut { reading, writing: Box::pin(cut.cancelled_owned()) }), ..self }
    }

    fn poll_read_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        check_cut(self.cut.as_mut().is_some_and(|cut| cut.reading.as_mut().poll(cx).is_ready()))
    }

    fn poll_write_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        check_cut(self.cut.as_mut().is_some_and(|cut| cut.writing.as_mut().poll(cx).is_ready()))
    }

    /// Returns the result of a write, or an error when writes have been waiting for too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => {
                let message = format!("the client read nothing for {} s", limit.as_secs());
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

fn check_cut(is_cut: bool) -> io::Result<()> {
    if is_cut { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_cut(cx)?;
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_cut(cx)?;
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_cut(cx)?;
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_cut(cx)?;
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

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for_and_one_that_stops_is_not() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = StallTimeout::new(near, LIMIT);
        let slow = async {
            let mut bytes = [0; 8];
            for _ in 0..3 {
                sleep(LIMIT / 2).await;
                far.read_exact(&mut bytes).await.expect("bytes");
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[7; 32]), slow);
        written.expect("there was progress all the time");
        let began = Instant::now();
        assert_eq!(near.write_all(&[7; 8]).await.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_ends_both_directions_at_once() {
        let (near, _far) = tokio::io::duplex(8);
        let cut = CancellationToken::new();
        let (mut reader, mut writer) = tokio::io::split(StallTimeout::new(near, LIMIT).cut_by(cut.clone()));
        let began = Instant::now();
        // Two tasks, of which the reading one is the last to wait.
        let writing = tokio::spawn(async move { writer.write_all(&[7; 32]).await });
        tokio::task::yield_now().await;
        let reading = tokio::spawn(async move { reader.read_u8().await });
        tokio::task::yield_now().await;
        cut.cancel();
        let (read, written) = (reading.await.expect("it ends"), writing.await.expect("it ends"));
        assert!(read.is_err() && written.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
