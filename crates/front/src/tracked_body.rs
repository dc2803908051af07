//! An answer of `/mcp`, and what stays open until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::revision::Revision;

/// An answer, and what stays open until it is sent: the running call, the memory of its request and the use of its
/// session.
pub(crate) struct TrackedBody<B, O> {
    body: B,
    has_priming: bool,
    _open: O,
}

impl<B, O> TrackedBody<B, O> {
    pub(crate) fn new(body: B, open: O) -> TrackedBody<B, O> {
        TrackedBody { body, has_priming: true, _open: open }
    }

    /// Leaves out what a session of this revision does not know.
    pub(crate) fn for_revision(self, revision: Option<Revision>) -> TrackedBody<B, O> {
        TrackedBody { has_priming: revision.is_none_or(Revision::has_priming_events), ..self }
    }
}

/// Whether events carry no message, only an id to resume from or a time to wait. rmcp writes each event as one frame.
fn is_priming(events: &[u8]) -> bool {
    let mut data = events.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:")).peekable();
    data.peek().is_some() && data.all(|data| data.trim_ascii().is_empty())
}

impl<B: Body<Data = Bytes> + Unpin, O: Unpin> Body for TrackedBody<B, O> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            if self.has_priming || !data.is_some_and(|data| is_priming(data)) {
                return Poll::Ready(frame);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_left_out_only_if_it_carries_no_message() {
        for event in ["id: 0\nretry: 3000\ndata: \n\n", "retry: 3000\ndata:\n\n", "data:\r\n\r\n"] {
            assert!(is_priming(event.as_bytes()), "{event:?}");
        }
        for event in ["", ":\n\n", "data: {}\n\n", "data:\n\ndata: {}\n\n", "id: 1\n\n", "{\"data:\": 1}"] {
            assert!(!is_priming(event.as_bytes()), "{event:?}");
        }
    }
}
