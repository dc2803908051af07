//! `/api/v1/devices/{id}/reserve`, `release` and `break-lease`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use http::Response;
use serde_json::json;
use sinew_api::{Released, Reserve, Reserved};
use sinew_gateway::{MAX_CLIENT_SECONDS, MAX_PERSON_SECONDS, MAX_WAIT_SECONDS, Principal, Reservation, Role};
use sinew_tool::{ErrorKind, ToolError};

use crate::api::{Authenticated, Change, answer, body};
use crate::state::FrontState;
use crate::to_api;

pub(crate) async fn reserve(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let reserved = async {
        let Reserve { seconds, wait, purpose } = body(&front, request).await?;
        check("seconds", seconds, 1, most_seconds(&who))?;
        let wait = wait.unwrap_or_default();
        check("wait", wait, 0, MAX_WAIT_SECONDS)?;
        let details = json!({"seconds": seconds, "purpose": purpose});
        let reservation = Reservation {
            device: id.clone(),
            time: Duration::from_secs(seconds),
            wait: Duration::from_secs(wait),
            purpose,
            run: None,
            by_person: who.role == Role::Admin,
        };
        let lease = front.gateway.reserve(&who, reservation).await;
        let change = Change { what: "reserve_device", device: Some(&id), details };
        let lease = change.record(&front, &who, || lease)?;
        let (device, until) = (lease.view.device.to_string(), lease.view.until);
        Ok(Reserved { device, lease: lease.id, until, seconds: lease.seconds })
    };
    answer(reserved.await)
}

pub(crate) async fn release(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let change = Change { what: "release_device", device: Some(&id), details: json!({}) };
    let released = front.gateway.release(&who, &id).await;
    answer(change.record(&front, &who, || released.map(|released| Released { released })))
}

pub(crate) async fn break_lease(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    Path(id): Path<String>,
) -> Response<Body> {
    let holder = front.gateway.device(&id).ok().and_then(|device| front.gateway.lease(&device.id));
    let details = json!({"holder": holder.map(|lease| lease.holder)});
    let change = Change { what: "break_lease", device: Some(&id), details };
    let broken = front.gateway.break_lease(&who, &id).await;
    answer(change.record(&front, &who, || broken.map(to_api::lease)))
}

/// A person may have a device in the hand and not use it through the gateway.
fn most_seconds(who: &Principal) -> u64 {
    if who.role == Role::Admin { MAX_PERSON_SECONDS } else { MAX_CLIENT_SECONDS }
}

fn check(name: &str, value: u64, least: u64, most: u64) -> Result<(), ToolError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let message = format!("`{name}` is {value}; expected {least} to {most}");
    Err(ToolError::new(ErrorKind::InvalidArguments, message))
}
