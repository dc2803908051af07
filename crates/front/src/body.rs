//! Reading the body of a request, within its limit and without waiting for ever.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use sinew_tool::ErrorKind;
use tokio::time::timeout;

use crate::budget::Share;
use crate::hall::Hall;
use crate::{inspect, reply, weight};

/// What is read and thrown away of a body beyond the limit: most clients look for the answer only once
/// they have sent everything.
const DISCARDED: usize = 16 << 20;
/// How long the next bytes of a body may take, and throwing one away altogether.
const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const TOO_SLOW: &str = "the body stopped coming for 10 s; send it again, without pauses";

#[derive(Debug)]
pub(crate) enum Unread {
    /// Too large, or there is no memory left for it now.
    Refused(inspect::Refusal),
    /// Nothing came for longer than our patience.
    Slow,
    /// The client broke off; there is hardly anybody to answer.
    Broken,
}

/// A body that was read.
#[derive(Debug)]
pub(crate) struct Message {
    pub bytes: Bytes,
    /// What it takes of the memory for requests; to be kept until the request is answered.
    pub share: Share,
}

pub(crate) async fn read(hall: &Hall, headers: &HeaderMap, body: Body) -> Result<Message, Unread> {
    let mut share = hall.bodies.share();
    let bytes = collect(headers, body, hall.settings.limits.body, &mut share).await?;
    // From here on the estimate stands for the raw bytes too.
    share.shrink(bytes.len());
    weight::take(&mut share, &bytes).map_err(Unread::Refused)?;
    Ok(Message { bytes, share })
}

async fn collect(headers: &HeaderMap, body: Body, limit: usize, share: &mut Share) -> Result<Bytes, Unread> {
    let too_large = || Unread::Refused(inspect::Refusal::too_large(limit));
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        // A client that asks before it sends is simply told no.
        if !headers.contains_key(EXPECT) {
            discard(body).await;
        }
        return Err(too_large());
    }
    let mut body = body;
    let mut bytes = Vec::new();
    while let Some(frame) = timeout(PATIENCE, body.frame()).await.map_err(|_| Unread::Slow)? {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        let refusal = if bytes.len() + data.len() > limit {
            too_large()
        } else if !share.try_grow(data.len()) {
            Unread::Refused(weight::busy())
        } else {
            bytes.extend_from_slice(&data);
            continue;
        };
        drop(bytes);
        discard(body).await;
        return Err(refusal);
    }
    Ok(bytes.into())
}

/// The status that goes with a refused body.
pub(crate) fn status(refusal: &inspect::Refusal) -> StatusCode {
    match refusal.kind {
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::PAYLOAD_TOO_LARGE,
    }
}

/// The answer to a body that stopped coming. The connection ends with it: what follows on it belongs to that body.
pub(crate) fn too_slow() -> Response<Body> {
    let mut response = reply::problem(StatusCode::REQUEST_TIMEOUT, "timeout", TOO_SLOW);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn discard(mut body: Body) {
    let discarding = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            match frame.data_ref().map_or(Some(left), |data| left.checked_sub(data.len())) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = timeout(PATIENCE, discarding).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::budget::Budget;

    async fn read_with_pauses(pause: Duration) -> Result<Bytes, Unread> {
        let steps = futures_util::stream::unfold(0, move |step| async move {
            sleep(pause).await;
            (step < 5).then_some((Ok::<_, Infallible>(Bytes::from_static(b"ab")), step + 1))
        });
        collect(&HeaderMap::new(), Body::from_stream(steps), 100, &mut Budget::new(1 << 10).share()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_and_may_not_stop_coming() {
        let steady = read_with_pauses(PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(steady.expect("it came").as_ref(), b"ababababab");
        let began = Instant::now();
        assert!(matches!(read_with_pauses(PATIENCE * 2).await, Err(Unread::Slow)));
        assert_eq!(began.elapsed(), PATIENCE);
        assert_eq!(too_slow().status(), StatusCode::REQUEST_TIMEOUT);
    }
}
