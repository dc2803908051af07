//! Reading the body of a request, within its limit.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;

use crate::inspect;

/// What is read and thrown away of a body beyond the limit: most clients look for the answer only once
/// they have sent everything.
const DISCARDED: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) enum Unread {
    TooLarge(inspect::Refusal),
    /// The client broke off; there is hardly anybody to answer.
    Broken,
}

pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Unread> {
    let too_large = || Unread::TooLarge(inspect::Refusal::too_large(limit));
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
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            drop(bytes);
            discard(body).await;
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.into())
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
    let _ = tokio::time::timeout(PATIENCE, discarding).await;
}
