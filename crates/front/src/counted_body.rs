//! HTTP answers that are counted until they are sent, and that end when the caller's token is revoked.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use http::Response;
use hyper::body::{Body as _, Frame, SizeHint};
use sinew_tool::BoxFuture;

use crate::connection_places::ConnectionUse;
use crate::memory::{MemoryBudget, MemoryShare};

/// Bytes handed to the connection at once. The connection buffers about as much, so what is not sent yet stays here
/// and is counted.
const PIECE: usize = 64 << 10;

/// The answer, counted against `budget` and ended early when `end` resolves. The budget when it has no room for it.
pub(crate) fn counted(
    response: Response<Body>,
    budget: impl FnOnce() -> MemoryBudget,
    end: Option<BoxFuture<'static, ()>>,
    connection_use: Option<ConnectionUse>,
) -> Result<Response<Body>, MemoryBudget> {
    let size = response.body().size_hint().exact();
    if size.is_some_and(|size| size <= PIECE as u64) {
        return Ok(response);
    }
    let budget = budget();
    let mut share = budget.share();
    let length = size.and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
    if !share.try_grow(length) {
        return Err(budget);
    }
    let counted = length > 0;
    let counted_body =
        |body| CountedBody { body, rest: Bytes::new(), share, counted, end, _connection: connection_use };
    Ok(response.map(|body| Body::new(counted_body(body))))
}

struct CountedBody {
    body: Body,
    /// Data that the connection has not taken yet.
    rest: Bytes,
    share: MemoryShare,
    /// Whether the whole answer was counted at the start. The pieces of a stream are counted as they arrive.
    counted: bool,
    end: Option<BoxFuture<'static, ()>>,
    _connection: Option<ConnectionUse>,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(frame) => frame?,
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
            if !self.counted {
                let length = self.rest.len();
                self.share.grow(length);
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.share.shrink(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let hint = self.body.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::oneshot;

    use super::*;

    fn large(budget: &MemoryBudget) -> Result<Response<Body>, MemoryBudget> {
        counted(Response::new(Body::from(vec![7; 5 * PIECE + 1])), || budget.clone(), None, None)
    }

    #[tokio::test]
    async fn unread_answers_are_counted_and_the_budget_refuses_more() {
        let budget = MemoryBudget::new(6 * PIECE);
        let mut body = large(&budget).expect("there is room").into_body();
        assert_eq!((budget.used(), body.size_hint().exact()), (5 * PIECE + 1, Some(5 * PIECE as u64 + 1)));
        assert!(large(&budget).is_err());
        assert!(counted(Response::new(Body::from("small")), || budget.clone(), None, None).is_ok());
        let first = body.frame().await.expect("a frame").expect("data").into_data().expect("data");
        assert_eq!((first.len(), budget.used()), (PIECE, 4 * PIECE + 1));
        assert_eq!(body.collect().await.expect("the rest").to_bytes().len(), 4 * PIECE + 1);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_stream_ends_when_the_token_of_its_caller_is_revoked() {
        let (revoke, revoked) = oneshot::channel::<()>();
        let silent = futures_util::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let end: BoxFuture<'static, ()> = Box::pin(async { drop(revoked.await) });
        let response = Response::new(Body::from_stream(silent));
        let body = counted(response, || MemoryBudget::new(PIECE), Some(end), None).expect("a stream").into_body();
        let ((), ended) = tokio::join!(async { revoke.send(()).unwrap_or_default() }, body.collect());
        assert!(ended.is_ok_and(|body| body.to_bytes().is_empty()));
    }
}
