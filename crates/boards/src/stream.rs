//! The bytes under a board's WebSocket: plain or encrypted, and how many of them were read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

pub(crate) struct BoardStream {
    kind: StreamKind,
    read: u64,
}

enum StreamKind {
    Plain(TcpStream),
    // Boxed, because the state of a TLS connection is a kilobyte that plain boards need not carry.
    Tls(Box<TlsStream<TcpStream>>),
}

impl BoardStream {
    pub(crate) fn plain(tcp: TcpStream) -> BoardStream {
        BoardStream { kind: StreamKind::Plain(tcp), read: 0 }
    }

    pub(crate) fn tls(tls: TlsStream<TcpStream>) -> BoardStream {
        BoardStream { kind: StreamKind::Tls(Box::new(tls)), read: 0 }
    }

    /// Bytes read since the last [`BoardStream::reset_count`].
    pub(crate) fn count(&self) -> u64 {
        self.read
    }

    pub(crate) fn reset_count(&mut self, count: u64) {
        self.read = count;
    }
}

impl AsyncRead for BoardStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = match &mut self.kind {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            StreamKind::Tls(tls) => Pin::new(tls.as_mut()).poll_read(cx, buf),
        };
        self.read += (buf.filled().len() - before) as u64;
        result
    }
}

impl AsyncWrite for BoardStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            StreamKind::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            StreamKind::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            StreamKind::Tls(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
        }
    }
}
