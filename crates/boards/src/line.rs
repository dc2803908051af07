//! Devices that speak the board protocol over something else than the connections of this crate: a serial line, a
//! channel of a test.
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

use crate::hall::{Boards, Met};
use crate::pipe::{self, Broken, Heard, Pipe};
use crate::pump::Pump;

/// Carries messages between a device and the gateway. It keeps their borders, and bounds what it keeps itself.
pub trait Line: Send {
    /// Takes a message to be sent; it leaves with [`Line::poll_flush`].
    fn send(&mut self, text: String) -> io::Result<()>;

    /// Ready when everything sent has left.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The next message of the device, in whatever encoding; `None` when it ended the connection in order.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>>;

    /// The longest message that the device takes, where that is less than the gateway's own limit.
    fn longest_message(&self) -> Option<usize> {
        None
    }
}

impl Boards {
    /// Serves a device over a line until it leaves, its token is revoked, the same device comes again or
    /// [`Boards::close`] is called. It is announced once it has listed its tools. Fails where it gets no place.
    pub async fn serve_line(&self, info: DeviceInfo, line: impl Line + 'static) -> Result<(), String> {
        let hall = &self.hall;
        let place = hall.enter(&info.key, &info.admission).map_err(|turned| turned.reason(&hall.door.limits))?;
        let pipe = Pipe::Line(Box::new(LinePipe { line: Box::new(line), owed: 0, is_flushed: true }));
        Pump::new(Met { pipe, info, place }, hall.clone()).run().await;
        Ok(())
    }

    /// Ends every connection, and admits no device any more.
    pub fn close(&self) {
        self.hall.roster.close();
    }
}

/// A line as a pipe.
pub(crate) struct LinePipe {
    line: Box<dyn Line>,
    /// Bytes of answers that the device asked for and has not read.
    pub(crate) owed: usize,
    is_flushed: bool,
}

impl LinePipe {
    pub(crate) fn longest_message(&self) -> Option<usize> {
        self.line.longest_message()
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), Broken> {
        self.is_flushed = false;
        self.line.send(text).map_err(broken)
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if !self.is_flushed {
            ready!(self.line.poll_flush(cx)).map_err(broken)?;
            (self.is_flushed, self.owed) = (true, 0);
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_hear(&mut self, cx: &mut Context<'_>) -> Poll<Result<Heard, Broken>> {
        let message = ready!(self.line.poll_receive(cx)).map_err(broken)?;
        Poll::Ready(Ok(message.map_or(Heard::Farewell, pipe::read_text)))
    }
}

fn broken(error: io::Error) -> Broken {
    Broken::Network(error.to_string())
}
