//! The HTTP server: connections, routes, and how it stops.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{MethodRouter, any, delete, get, post};
use http::{Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use sinew_api::{HealthStatus, NotReadyReason, Operation, ROUTES, Readiness, Route};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::endpoint::{self, Endpoint};
use crate::guard::{self, Guard};
use crate::hall::Hall;
use crate::patience::Patient;
use crate::upgrade::{self, Stream};
use crate::{Front, TlsIdentity, api, reply, rest, stdio};

/// A connection that says nothing for this long is closed, whether it is slow or idle.
const QUIET: Duration = Duration::from_secs(75);
/// A new connection has this long for the head of its first request: who only connects keeps no place.
const FIRST: Duration = Duration::from_secs(10);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What one connection buffers in each direction; the head of a request must fit.
const BUFFER: usize = 64 << 10;
/// What connections get to close in order once nothing runs any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves all HTTP doors on `listener` until `shutdown` is cancelled, and then until the running
/// calls have ended or their time is up.
pub async fn run(
    listener: TcpListener,
    front: Front,
    tls: Option<TlsIdentity>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    if front.settings.open && !listener.local_addr()?.ip().is_loopback() {
        let message = "a gateway without tokens listens on loopback only";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let hall = Hall::new(front)?;
    let endpoint = Endpoint::new(hall.clone());
    let app = routes(&hall, &endpoint);
    let limit = hall.settings.limits.connections;
    let stall = hall.settings.limits.stall;
    let tls = tls.map(|tls| TlsAcceptor::from(tls.server_config()));
    let doors = Doors { app, tls, stall: Some(stall), ..Doors::default() };

    doors.accept(listener, limit, &shutdown).await;

    // The order matters: subscriptions end with their final word, running calls end with their
    // answers, and only then are the streams cut that would never end by themselves.
    hall.drain.cancel();
    doors.leave.cancel();
    hall.calls.close();
    stdio::finished(&hall).await;
    endpoint.stop.cancel();
    hall.tasks.close();
    doors.connections.close();
    let farewell = async { tokio::join!(doors.connections.wait(), hall.tasks.wait()) };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        doors.cut.cancel();
        doors.connections.wait().await;
    }
    Ok(())
}

fn routes(hall: &Arc<Hall>, endpoint: &Arc<Endpoint>) -> Router {
    let add = |router: Router, route: &Route| router.route(route.path, handler(route.operation, hall, endpoint));
    ROUTES
        .iter()
        .fold(Router::new(), add)
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(axum::middleware::from_fn_with_state(Guard::new(hall.clone()), guard::guard))
}

fn handler(operation: Operation, hall: &Arc<Hall>, endpoint: &Arc<Endpoint>) -> MethodRouter {
    let router: MethodRouter<Arc<Hall>> = match operation {
        Operation::Mcp => any(endpoint::handle).with_state(endpoint.clone()),
        Operation::McpStream => {
            let stream = Stream { hall: hall.clone(), endpoint: endpoint.clone() };
            get(upgrade::handle).with_state(stream)
        }
        Operation::RestInitialize | Operation::RestCall | Operation::RestListPosted => post(rest::receive),
        Operation::RestList => get(rest::list),
        Operation::Health => get(health),
        Operation::Ready => get(ready),
        Operation::Document => get(api::document),
        Operation::Devices => get(api::devices),
        Operation::Rename => post(api::rename),
        Operation::Label => post(api::label),
        Operation::Forget => post(api::forget),
        Operation::Changes => get(api::changes),
        Operation::Pin => post(api::pin),
        Operation::Unpin => post(api::unpin),
        Operation::Accept => post(api::accept),
        Operation::Boards => get(api::boards),
        Operation::Approve => post(api::approve),
        Operation::Tools => get(api::tools),
        Operation::Call => post(api::call),
        Operation::Events => get(api::events),
        Operation::Tokens => get(api::tokens),
        Operation::NewToken => post(api::new_token),
        Operation::RevokeToken => delete(api::revoke_token),
        Operation::Audit => get(api::audit),
    };
    router.with_state(hall.clone())
}

async fn health() -> Response<Body> {
    let [status, version, server] = ["healthy", env!("CARGO_PKG_VERSION"), "running"].map(str::to_owned);
    reply::value(StatusCode::OK, &json!(HealthStatus { status, version, server }))
}

async fn ready(State(hall): State<Arc<Hall>>) -> Response<Body> {
    let faults = [
        (hall.drain.is_cancelled(), NotReadyReason::Stopping),
        (hall.gateway.store_problem().is_some(), NotReadyReason::NotRecording),
        (hall.answers.is_spent(), NotReadyReason::Busy),
    ];
    let reasons: Vec<NotReadyReason> =
        faults.into_iter().filter(|(is_so, _)| *is_so).map(|(_, reason)| reason).collect();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    reply::value(status, &json!(Readiness { ready: reasons.is_empty(), reasons }))
}

async fn nowhere() -> Response<Body> {
    let message = "nothing is served here; MCP is at /mcp, the REST door at /mcp/v1/initialize, /mcp/v1/tools/list and \
                   /mcp/v1/tools/call, administration at /api/v1/devices, /api/v1/tools, /api/v1/call and so on";
    reply::problem(StatusCode::NOT_FOUND, "not_found", message)
}

async fn not_so() -> Response<Body> {
    let message = "this path is served, but not with this method; the header `Allow` names those that are";
    reply::problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// The connections of one server.
#[derive(Default)]
pub(crate) struct Doors {
    pub app: Router,
    pub tls: Option<TlsAcceptor>,
    /// How long the other end may read nothing of what is written to it.
    pub stall: Option<Duration>,
    pub connections: TaskTracker,
    /// Idle connections close, busy ones after their answer.
    pub leave: CancellationToken,
    /// All close, whatever they do.
    pub cut: CancellationToken,
}

impl Doors {
    pub(crate) async fn accept(&self, listener: TcpListener, limit: usize, shutdown: &CancellationToken) {
        let permits = Arc::new(Semaphore::new(limit));
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                accepted = async {
                    let permit = permits.clone().acquire_owned().await;
                    listener.accept().await.map(|(socket, _)| (socket, permit))
                } => accepted,
            };
            match accepted {
                Ok((socket, permit)) => {
                    let connection = self.serve(socket);
                    self.connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: trying again at once would only spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn serve(&self, socket: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let (app, tls) = (self.app.clone(), self.tls.clone());
        let (leave, cut) = (self.leave.clone(), self.cut.clone());
        let stall = self.stall.unwrap_or(QUIET);
        async move {
            // Answers are written in one piece; waiting for more to send would only delay them.
            let _ = socket.set_nodelay(true);
            let socket = Patient::new(socket, stall);
            let talk = async {
                match tls {
                    None => talk(socket, app, leave).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(socket)).await {
                        Ok(Ok(socket)) => talk(socket, app, leave).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    },
                }
            };
            tokio::select! {
                () = talk => {}
                () = cut.cancelled() => {}
            }
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(socket: S, app: Router, leave: CancellationToken) {
    let heard = Arc::new(Notify::new());
    let service = {
        let (heard, app) = (heard.clone(), TowerToHyperService::new(app));
        service_fn(move |request| {
            heard.notify_one();
            app.call(request)
        })
    };
    let silence = async {
        if tokio::time::timeout(FIRST, heard.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(QUIET)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = silence => return,
        () = leave.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed_soon_and_one_that_rests_between_two_is_not() {
        let app = Router::new().route("/health", get(health));
        let began = tokio::time::Instant::now();
        let (mut silent, socket) = tokio::io::duplex(4096);
        let serving = tokio::spawn(talk(socket, app.clone(), CancellationToken::new()));
        silent.write_all(b"GET /hea").await.expect("it is open");
        assert_eq!(silent.read_to_end(&mut Vec::new()).await.ok(), Some(0));
        assert_eq!(began.elapsed().as_secs(), FIRST.as_secs());
        serving.await.expect("it ended");

        let (mut resting, socket) = tokio::io::duplex(4096);
        tokio::spawn(talk(socket, app, CancellationToken::new()));
        for _ in 0..2 {
            resting.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
            let mut answer = [0; 4096];
            let length = resting.read(&mut answer).await.expect("an answer");
            assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
            tokio::time::sleep(FIRST * 2).await;
        }
    }
}
