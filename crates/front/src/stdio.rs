//! MCP over a pair of byte streams: standard input and output, or an upgraded connection.

use std::io;
use std::sync::Arc;

use rmcp::service::serve_server_with_ct;
use sinew_gateway::Principal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::Front;
use crate::line_transport::LineTransport;
use crate::listing::ListForm;
use crate::mcp::Mcp;
use crate::stall::StallTimeout;
use crate::state::FrontState;

/// Serves one client until it closes its end or `shutdown` is cancelled. A client that has closed its end still gets
/// the answers to its open requests.
pub async fn run<R, W>(
    front: Front,
    who: Principal,
    form: impl Into<ListForm>,
    reader: R,
    writer: W,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let front = FrontState::new(front)?;
    let stop = CancellationToken::new();
    let (who, form) = (Arc::new(who), form.into());
    let mut serving = std::pin::pin!(serve(&front, who.clone(), form, "stdio", reader, writer, stop.clone()));
    let served = tokio::select! {
        served = &mut serving => served,
        () = front.gateway.tokens().revoked(&who) => {
            stop.cancel();
            serving.await
        }
        () = shutdown.cancelled() => {
            front.drain.cancel();
            front.calls.close();
            tokio::select! {
                served = &mut serving => served,
                () = calls_finished(&front) => {
                    stop.cancel();
                    serving.await
                }
            }
        }
    };
    front.drain.cancel();
    front.tasks.close();
    front.tasks.wait().await;
    served
}

/// Waits for the running calls, but not longer than the settings allow.
pub(crate) async fn calls_finished(front: &FrontState) {
    tokio::select! {
        () = front.calls.wait() => {}
        () = tokio::time::sleep(front.settings.drain) => {}
    }
}

pub(crate) async fn serve<R, W>(
    front: &Arc<FrontState>,
    who: Arc<Principal>,
    form: ListForm,
    endpoint: &'static str,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (bodies, answers) = (front.bodies.of(&who.id), front.answers.of(&who.id));
    let mcp = Mcp::new(front.clone(), form, endpoint, Some(who));
    let limits = &front.settings.limits;
    let writer = StallTimeout::new(writer, limits.stall);
    let lines = LineTransport::new(reader, writer, limits.body, bodies, answers);
    // rmcp cancels this token when the session ends, and others share `stop`.
    let service = match serve_server_with_ct(mcp, lines, stop.child_token()).await {
        Ok(service) => service,
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    service.waiting().await.map(drop).map_err(io::Error::other)
}
