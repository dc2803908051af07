//! Reads the body of a request, within a limit of size and time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use sinew_gateway::Principal;
use sinew_tool::ErrorKind;
use tokio::time::timeout;

use crate::id_scanner::IdScanner;
use crate::memory::MemoryShare;
use crate::state::FrontState;
use crate::{inspect, message_memory, reply};
use sinew_tool::lenient;

/// Bytes of a too large body that are read and discarded: most clients read the answer only after they have sent
/// everything.
const DISCARDED: usize = 16 << 20;
/// How long the next bytes of a body may take, and discarding a whole one.
const READ_TIME: Duration = Duration::from_secs(10);
pub(crate) const TOO_SLOW: &str = "no bytes of the body arrived for 10 s; send it again without pauses";

#[derive(Debug)]
pub(crate) enum BodyError {
    /// Too large, or there is no memory for it now.
    Refused(inspect::MessageError),
    /// No bytes arrived in time.
    Slow,
    /// The client closed the connection.
    Broken,
}

/// A body that was read.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pub bytes: Bytes,
    /// Its part of the memory for requests; kept until the request is answered.
    pub share: MemoryShare,
}

pub(crate) async fn read(front: &FrontState, parts: &Parts, body: Body) -> Result<RequestBody, BodyError> {
    let budget = match parts.extensions.get::<Arc<Principal>>() {
        Some(who) => front.bodies.of(&who.id),
        None => front.bodies.all.clone(),
    };
    let mut share = budget.share();
    let bytes = collect(&parts.headers, body, front.settings.limits.body, &mut share).await?;
    message_memory::aside_where_long(bytes.len(), || look_at(bytes, share))
}

/// Estimates what a body takes, and repairs what is nearly JSON.
fn look_at(bytes: Bytes, mut share: MemoryShare) -> Result<RequestBody, BodyError> {
    // The estimate includes the raw bytes.
    share.shrink(bytes.len());
    message_memory::take(&mut share, &bytes).map_err(|error| BodyError::Refused(error.for_request(&bytes)))?;
    let bytes = match lenient::repair(&bytes) {
        Cow::Borrowed(message) => bytes.slice_ref(message),
        Cow::Owned(message) => message.into(),
    };
    Ok(RequestBody { bytes, share })
}

async fn collect(headers: &HeaderMap, body: Body, limit: usize, share: &mut MemoryShare) -> Result<Bytes, BodyError> {
    let mut scanner = IdScanner::default();
    let too_large = || inspect::MessageError::too_large(limit);
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        // A client that asks before it sends needs no discarding.
        if !headers.contains_key(EXPECT) {
            discard(body, &mut scanner).await;
        }
        return Err(BodyError::Refused(inspect::MessageError { id: scanner.finish(), ..too_large() }));
    }
    let mut body = body;
    let mut bytes = Vec::new();
    while let Some(frame) = timeout(READ_TIME, body.frame()).await.map_err(|_| BodyError::Slow)? {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let error = if bytes.len() + data.len() > limit {
            too_large()
        } else if !share.try_grow(data.len()) {
            message_memory::busy()
        } else {
            bytes.extend_from_slice(&data);
            continue;
        };
        scanner.scan(&bytes);
        scanner.scan(&data);
        drop((bytes, data));
        discard(body, &mut scanner).await;
        return Err(BodyError::Refused(inspect::MessageError { id: scanner.finish(), ..error }));
    }
    Ok(bytes.into())
}

/// The HTTP status for a refused body.
pub(crate) fn status(refusal: &inspect::MessageError) -> StatusCode {
    match refusal.kind {
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::PAYLOAD_TOO_LARGE,
    }
}

/// The answer to a body that did not arrive in time. It closes the connection, because what follows on it would still
/// belong to that body.
pub(crate) fn too_slow() -> Response<Body> {
    let mut response = reply::problem(StatusCode::REQUEST_TIMEOUT, "timeout", TOO_SLOW);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads what is left of a body, within the same limits.
pub(crate) async fn discard_rest(body: &mut Body) {
    let discarding = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(READ_TIME, discarding).await;
}

async fn discard(mut body: Body, scanner: &mut IdScanner) {
    let discarding = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else { continue };
            scanner.scan(data);
            match left.checked_sub(data.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(READ_TIME, discarding).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::memory::MemoryBudget;

    async fn read_with_pauses(pause: Duration) -> Result<Bytes, BodyError> {
        let steps = futures_util::stream::unfold(0, move |step| async move {
            sleep(pause).await;
            (step < 5).then_some((Ok::<_, Infallible>(Bytes::from_static(b"ab")), step + 1))
        });
        collect(&HeaderMap::new(), Body::from_stream(steps), 100, &mut MemoryBudget::new(1 << 10).share()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_but_must_not_stop() {
        let steady = read_with_pauses(READ_TIME - Duration::from_secs(1)).await;
        assert_eq!(steady.expect("a body").as_ref(), b"ababababab");
        let began = Instant::now();
        assert!(matches!(read_with_pauses(READ_TIME * 2).await, Err(BodyError::Slow)));
        assert_eq!(began.elapsed(), READ_TIME);
        assert_eq!(too_slow().status(), StatusCode::REQUEST_TIMEOUT);
    }
}
