//! Devices that speak the board protocol over another connection than those of this crate: a serial line, or a channel
//! in a test.
//!
//! [`Boards::serve_line`] is the one entry point. It owns the protocol, the queue of calls, limits and time; the [`Line`]
//! only carries messages.
//!
//! ```no_run
//! # use sinew_boards::{Boards, Line};
//! # use sinew_tool::DeviceInfo;
//! # async fn example(boards: Boards, info: DeviceInfo, line: impl Line + 'static) -> Result<(), String> {
//! // `info` names the device, its family and how it was admitted; the future lives as long as the connection.
//! boards.serve_line(info, line).await
//! # }
//! ```

use std::io;
use std::task::{Context, Poll, ready};

use sinew_tool::DeviceInfo;

use crate::hub::{AdmittedBoard, Boards};
use crate::pipe::{self, Pipe, PipeError, Received};
use crate::pump::Pump;

/// Carries messages between a device and the gateway. It keeps message boundaries, and limits its own buffers.
pub trait Line: Send {
    /// Queues a message; [`Line::poll_flush`] sends it.
    fn send(&mut self, text: String) -> io::Result<()>;

    /// Ready when everything was sent.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The next message of the device, in any encoding; `None` when it closed the connection cleanly.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>>;

    /// The longest message that the device takes, where that is less than the gateway's own limit.
    fn longest_message(&self) -> Option<usize> {
        None
    }
}

impl Boards {
    /// Serves a device over a line until it disconnects, its token is revoked, the same device reconnects or
    /// [`Boards::close`] is called. It is announced once it has listed its tools. Fails if it cannot be registered.
    pub async fn serve_line(&self, info: DeviceInfo, line: impl Line + 'static) -> Result<(), String> {
        let hub = &self.hub;
        let registration =
            hub.register(&info.key, &info.admission).map_err(|refused| refused.reason(&hub.config.limits))?;
        let pipe = Pipe::Line(Box::new(LinePipe { line: Box::new(line), unread: 0, is_flushed: true }));
        Pump::new(AdmittedBoard { pipe, info, registration }, hub.clone()).run().await;
        Ok(())
    }

    /// Closes every connection, and admits no more devices.
    pub fn close(&self) {
        self.hub.roster.close();
    }
}

/// A line as a pipe.
pub(crate) struct LinePipe {
    line: Box<dyn Line>,
    /// Bytes of answers that the device asked for and has not read.
    pub(crate) unread: usize,
    is_flushed: bool,
}

impl LinePipe {
    pub(crate) fn longest_message(&self) -> Option<usize> {
        self.line.longest_message()
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), PipeError> {
        self.is_flushed = false;
        self.line.send(text).map_err(broken)
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PipeError>> {
        if !self.is_flushed {
            ready!(self.line.poll_flush(cx)).map_err(broken)?;
            (self.is_flushed, self.unread) = (true, 0);
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, PipeError>> {
        let message = ready!(self.line.poll_receive(cx)).map_err(broken)?;
        Poll::Ready(Ok(message.map_or(Received::Close, pipe::read_text)))
    }
}

fn broken(error: io::Error) -> PipeError {
    PipeError::Network(error.to_string())
}
