//! `/mcp/stream`: an HTTP connection that is upgraded to a stream of MCP lines.
//!
//! `sinew stdio` only copies bytes between its standard streams and this endpoint, so the running gateway serves
//! clients on stdio too.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use sinew_gateway::Principal;
use tokio_util::sync::CancellationToken;

use crate::connection_places::ConnectionPlace;
use crate::listing::ListForm;
use crate::stall::StallTimeout;
use crate::state::FrontState;
use crate::{reply, stdio};

/// The value of the `Upgrade` header.
pub const PROTOCOL: &str = "sinew-mcp";

pub(crate) async fn handle(State(front): State<Arc<FrontState>>, mut request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let wanted = request.headers().get(UPGRADE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    if !wanted.eq_ignore_ascii_case(PROTOCOL) {
        let message = format!("this path needs an upgraded connection; send `Upgrade: {PROTOCOL}`, or use /mcp");
        let mut response = reply::problem(StatusCode::UPGRADE_REQUIRED, "upgrade_required", &message);
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        return response;
    }
    let form = match ListForm::of(request.uri()) {
        Ok(form) => form,
        Err(message) => return reply::problem(StatusCode::BAD_REQUEST, "bad_request", &message),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let place = request.extensions().get::<Arc<ConnectionPlace>>().cloned();
    let connection_use = place.as_ref().and_then(|place| place.start_use(&who));
    front.tasks.clone().spawn(async move {
        let served = match upgrade.await {
            Ok(upgraded) => serve(&front, who, form, TokioIo::new(upgraded)).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = served {
            tracing::debug!(%error, "an upgraded connection ended");
        }
        drop((connection_use, place));
    });
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Serves the client until it closes the connection, the gateway stops, or its token is revoked.
async fn serve(
    front: &Arc<FrontState>,
    who: Arc<Principal>,
    form: ListForm,
    connection: TokioIo<Upgraded>,
) -> std::io::Result<()> {
    let (cut, stop) = (CancellationToken::new(), front.stop.child_token());
    let connection = StallTimeout::new(connection, front.settings.limits.stall).cut_by(cut.clone());
    let (reader, writer) = tokio::io::split(connection);
    let mut serving = std::pin::pin!(stdio::serve(front, who.clone(), form, "stdio", reader, writer, stop.clone()));
    tokio::select! {
        served = &mut serving => served,
        () = front.gateway.tokens().revoked(&who) => {
            cut.cancel();
            stop.cancel();
            serving.await
        }
    }
}
