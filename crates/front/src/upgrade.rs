//! `/mcp/stream`: an HTTP connection that becomes a pipe of MCP lines.
//!
//! `sinew stdio` only carries bytes between its own pipes and this door, so a client on stdio is
//! served by the running gateway and sees the same devices as everybody else.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use sinew_gateway::Principal;
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoint;
use crate::hall::Hall;
use crate::listing::Form;
use crate::patience::Patient;
use crate::{reply, stdio};

/// What the `Upgrade` header names.
pub const PROTOCOL: &str = "sinew-mcp";

#[derive(Clone)]
pub(crate) struct Stream {
    pub hall: Arc<Hall>,
    pub endpoint: Arc<Endpoint>,
}

pub(crate) async fn handle(State(stream): State<Stream>, mut request: Request) -> Response<Body> {
    let Some(who) = request.extensions().get::<Arc<Principal>>().cloned() else {
        return reply::empty(StatusCode::UNAUTHORIZED);
    };
    let wanted = request.headers().get(UPGRADE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    if !wanted.eq_ignore_ascii_case(PROTOCOL) {
        let message = format!("this address serves upgraded connections; send `Upgrade: {PROTOCOL}`, or use /mcp");
        let mut response = reply::problem(StatusCode::UPGRADE_REQUIRED, "upgrade_required", &message);
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        return response;
    }
    let form = match Form::of(request.uri()) {
        Ok(form) => form,
        Err(message) => return reply::problem(StatusCode::BAD_REQUEST, "bad_request", &message),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let Stream { hall, endpoint } = stream;
    hall.tasks.clone().spawn(async move {
        let served = match upgrade.await {
            Ok(pipe) => serve(&hall, who, form, TokioIo::new(pipe), &endpoint.stop).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = served {
            tracing::debug!(%error, "an upgraded connection ended");
        }
    });
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS);
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Serves the client until it leaves, the gateway stops, or its token is no longer valid.
async fn serve(
    hall: &Arc<Hall>,
    who: Arc<Principal>,
    form: Form,
    pipe: TokioIo<Upgraded>,
    stop: &CancellationToken,
) -> std::io::Result<()> {
    let (cut, stop) = (CancellationToken::new(), stop.child_token());
    let pipe = Patient::new(pipe, hall.settings.limits.stall).cut_by(cut.clone());
    let (reader, writer) = tokio::io::split(pipe);
    let mut serving = std::pin::pin!(stdio::serve(hall, who.clone(), form, "stdio", reader, writer, stop.clone()));
    tokio::select! {
        served = &mut serving => served,
        () = hall.gateway.tokens().revoked(&who) => {
            cut.cancel();
            stop.cancel();
            serving.await
        }
    }
}
