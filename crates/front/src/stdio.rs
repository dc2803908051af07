//! MCP over a pair of pipes: standard input and output, or an upgraded connection.

use std::io;
use std::sync::Arc;

use rmcp::service::serve_server_with_ct;
use sinew_gateway::{Principal, Shape};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::Front;
use crate::hall::Hall;
use crate::lines::Lines;
use crate::listing::Form;
use crate::mcp::Mcp;
use crate::patience::Patient;

/// Serves one client until it closes its end or `shutdown` is cancelled. A client that has closed its
/// end still gets the answers to what it asked before.
pub async fn run<R, W>(
    front: Front,
    who: Principal,
    shape: Shape,
    reader: R,
    writer: W,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let hall = Hall::new(front)?;
    let stop = CancellationToken::new();
    let who = Arc::new(who);
    let mut serving = std::pin::pin!(serve(&hall, who.clone(), shape.into(), "stdio", reader, writer, stop.clone()));
    let served = tokio::select! {
        served = &mut serving => served,
        () = hall.gateway.tokens().revoked(&who) => {
            stop.cancel();
            serving.await
        }
        () = shutdown.cancelled() => {
            hall.drain.cancel();
            hall.calls.close();
            tokio::select! {
                served = &mut serving => served,
                () = finished(&hall) => {
                    stop.cancel();
                    serving.await
                }
            }
        }
    };
    hall.drain.cancel();
    hall.tasks.close();
    hall.tasks.wait().await;
    served
}

/// Waits for the running calls, but not longer than the settings allow.
pub(crate) async fn finished(hall: &Hall) {
    tokio::select! {
        () = hall.calls.wait() => {}
        () = tokio::time::sleep(hall.settings.drain) => {}
    }
}

pub(crate) async fn serve<R, W>(
    hall: &Arc<Hall>,
    who: Arc<Principal>,
    form: Form,
    door: &'static str,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mcp = Mcp::new(hall.clone(), form, door, Some(who));
    let limits = &hall.settings.limits;
    let lines = Lines::new(reader, Patient::new(writer, limits.stall), limits.body, hall.bodies.clone());
    // A token of its own: rmcp cancels the one it is given when the session ends, and others share `stop`.
    let service = match serve_server_with_ct(mcp, lines, stop.child_token()).await {
        Ok(service) => service,
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    service.waiting().await.map(drop).map_err(io::Error::other)
}
