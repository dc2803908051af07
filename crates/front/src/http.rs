//! The HTTP server: connections, routes and shutdown.

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
use sinew_tool::plain_http::answer_to_plain_http;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection_places::{ConnectionPlace, ConnectionPlaces};
use crate::console::{self, ConsoleHost};
use crate::endpoint::{self, McpEndpoint};
use crate::guard::{self, Guard};
use crate::stall::StallTimeout;
use crate::state::FrontState;
use crate::{
    Front, TlsIdentity, api, backup, cluster, decisions, leases, metrics, overview, phones, reply, rest, routines,
    servers, sign_in, stdio, upgrade,
};

/// A connection that sends nothing for this long is closed, whether it is slow or idle.
const IDLE: Duration = Duration::from_secs(75);
/// A new connection has this long to send the head of its first request, so that idle connections do not use up the
/// limit.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What one connection buffers in each direction; the head of a request must fit.
const BUFFER: usize = 64 << 10;
/// How long connections may take to close once nothing runs any more.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Serves all HTTP endpoints on `listener` until `shutdown` is cancelled, and then until the running calls have ended
/// or their time is up.
pub async fn run(
    listener: TcpListener,
    front: Front,
    tls: Option<TlsIdentity>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    if front.settings.open && !listener.local_addr()?.ip().is_loopback() {
        let message = "a gateway that needs no tokens may listen only on loopback; use 127.0.0.1";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let front = FrontState::new(front)?;
    let endpoint = McpEndpoint::new(front.clone());
    let app = routes(&front, &endpoint, tls.is_some());
    let places = ConnectionPlaces::new(&front.settings.limits);
    let stall = front.settings.limits.stall;
    let tls = tls.map(|tls| TlsAcceptor::from(tls.server_config()));
    let connections = HttpConnections { app, tls, stall: Some(stall), ..HttpConnections::default() };

    connections.accept(listener, &places, &shutdown).await;

    // The order matters: subscriptions end with their last message, running calls end with their answers, and only
    // then are the streams closed that would never end by themselves.
    front.drain.cancel();
    front.gateway.end_waiting();
    connections.leave.cancel();
    front.calls.close();
    stdio::calls_finished(&front).await;
    front.stop.cancel();
    front.tasks.close();
    connections.tasks.close();
    let closing = async { tokio::join!(connections.tasks.wait(), front.tasks.wait()) };
    if tokio::time::timeout(CLOSE_TIME, closing).await.is_err() {
        connections.cut.cancel();
        connections.tasks.wait().await;
    }
    Ok(())
}

fn routes(front: &Arc<FrontState>, endpoint: &Arc<McpEndpoint>, is_tls: bool) -> Router {
    let add = |router: Router, route: &Route| router.route(route.path, handler(route.operation, front, endpoint));
    let own = ROUTES.iter().fold(Router::new(), add);
    let pages = front.console.as_ref().map(|console| {
        let api = ROUTES.iter().filter(|route| route.person_role().is_some()).fold(Router::new(), add);
        console.pages(ConsoleHost::new(front, api, is_tls))
    });
    let sign_in = front.sign_in.as_deref().map(|signed| sign_in::routes(front, signed));
    own.merge(pages.unwrap_or_default())
        .merge(sign_in.unwrap_or_default())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(axum::middleware::from_fn_with_state(Guard::new(front.clone()), guard::guard))
}

fn handler(operation: Operation, front: &Arc<FrontState>, endpoint: &Arc<McpEndpoint>) -> MethodRouter {
    let router: MethodRouter<Arc<FrontState>> = match operation {
        Operation::Mcp => any(endpoint::handle).with_state(endpoint.clone()),
        Operation::McpStream => get(upgrade::handle),
        Operation::RestInitialize | Operation::RestCall | Operation::RestListPosted => post(rest::receive),
        Operation::RestList => get(rest::list),
        Operation::Health => get(health),
        Operation::Ready => get(ready),
        Operation::Metrics => get(metrics::metrics).with_state(endpoint.clone()),
        Operation::Document => get(api::document),
        Operation::Devices => get(api::devices),
        Operation::Rename => post(api::rename),
        Operation::Label => post(api::label),
        Operation::Forget => post(api::forget),
        Operation::Reserve => post(leases::reserve),
        Operation::Release => post(leases::release),
        Operation::BreakLease => post(leases::break_lease),
        Operation::PhoneScreen => get(phones::screen),
        Operation::InstallApp => post(phones::install),
        Operation::Changes => get(api::changes),
        Operation::Pin => post(api::pin),
        Operation::Unpin => post(api::unpin),
        Operation::Accept => post(api::accept),
        Operation::Status => get(api::status),
        Operation::Overview => get(overview::overview),
        Operation::People => get(console::people),
        Operation::AddPerson => post(console::add_person),
        Operation::RemovePerson => delete(console::remove_person),
        Operation::LoginLink => post(console::login_link),
        Operation::Boards => get(api::boards),
        Operation::Approve => post(api::approve),
        Operation::Servers => get(servers::servers),
        Operation::AddServer => post(servers::add),
        Operation::RemoveServer => delete(servers::remove),
        Operation::FindServers => get(servers::find),
        Operation::ApproveServer => post(servers::approve),
        Operation::Cluster => get(cluster::cluster),
        Operation::Tools => get(api::tools),
        Operation::Call => post(api::call),
        Operation::Events => get(api::events),
        Operation::Tokens => get(api::tokens),
        Operation::NewToken => post(api::new_token),
        Operation::RevokeToken => delete(api::revoke_token),
        Operation::CheckPolicy => post(api::check_policy),
        Operation::Audit => get(api::audit),
        Operation::Journal => get(api::journal),
        Operation::RecordJournal => post(api::record_journal),
        Operation::DraftRoutine => post(routines::draft),
        Operation::SaveRoutine => post(routines::save),
        Operation::VerifyAudit => get(api::verify_audit),
        Operation::Backup => post(backup::backup),
        Operation::Approvals => get(decisions::approvals),
        Operation::Approval => get(decisions::approval),
        Operation::Decide => post(decisions::decide),
        Operation::Grants => get(decisions::grants),
        Operation::RevokeGrant => delete(decisions::revoke_grant),
        Operation::SignIns => get(sign_in::sign_ins),
        Operation::EndSignIn => delete(sign_in::end_sign_in),
        Operation::Effects => get(api::effects),
        Operation::Explain => post(api::explain),
    };
    router.with_state(front.clone())
}

async fn health() -> Response<Body> {
    let [status, version, server] = ["healthy", env!("CARGO_PKG_VERSION"), "running"].map(str::to_owned);
    reply::value(StatusCode::OK, &json!(HealthStatus { status, version, server }))
}

async fn ready(State(front): State<Arc<FrontState>>) -> Response<Body> {
    let checks = [
        (front.drain.is_cancelled(), NotReadyReason::Stopping),
        (front.gateway.store_problem().is_some(), NotReadyReason::NotRecording),
        (front.answers.all.is_spent(), NotReadyReason::Busy),
    ];
    let reasons: Vec<NotReadyReason> =
        checks.into_iter().filter(|(failed, _)| *failed).map(|(_, reason)| reason).collect();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    reply::value(status, &json!(Readiness { ready: reasons.is_empty(), reasons }))
}

async fn not_found() -> Response<Body> {
    let message = "this path does not exist; MCP is at /mcp, the REST interface at /mcp/v1/initialize, /mcp/v1/tools/list and \
                   /mcp/v1/tools/call, administration at /api/v1/devices, /api/v1/tools, /api/v1/call and so on";
    reply::problem(StatusCode::NOT_FOUND, "not_found", message)
}

async fn method_not_allowed() -> Response<Body> {
    let message = "this path does not support this method; the header `Allow` lists the supported ones";
    reply::problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// The connections of one server.
#[derive(Default)]
pub(crate) struct HttpConnections {
    pub app: Router,
    pub tls: Option<TlsAcceptor>,
    /// How long the client may leave unread what is written to it.
    pub stall: Option<Duration>,
    pub tasks: TaskTracker,
    /// Idle connections close, busy ones close after their answer.
    pub leave: CancellationToken,
    /// All connections close at once.
    pub cut: CancellationToken,
}

impl HttpConnections {
    pub(crate) async fn accept(&self, listener: TcpListener, places: &ConnectionPlaces, shutdown: &CancellationToken) {
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((socket, address)) => {
                    self.tasks.spawn(self.serve(socket, places.take(address.ip())));
                }
                Err(error) => {
                    // Most likely out of file descriptors: trying again at once would only spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn serve(&self, socket: TcpStream, place: Arc<ConnectionPlace>) -> impl Future<Output = ()> + Send + 'static {
        let (app, tls) = (self.app.clone(), self.tls.clone());
        let (leave, cut) = (self.leave.clone(), self.cut.clone());
        let stall = self.stall.unwrap_or(IDLE);
        async move {
            // Answers are written in one piece; waiting for more data would only delay them.
            let _ = socket.set_nodelay(true);
            let evicted = place.evicted.clone();
            let serving = async {
                match tls {
                    None => serve_connection(StallTimeout::new(socket, stall), app, place, leave).await,
                    Some(tls) => match tokio::time::timeout(HANDSHAKE, handshake(tls, socket, stall)).await {
                        Ok(Ok(socket)) => serve_connection(socket, app, place, leave).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    },
                }
            };
            tokio::select! {
                () = serving => {}
                () = cut.cancelled() => {}
                () = evicted.cancelled() => tracing::debug!("an idle connection made room for another"),
            }
        }
    }
}

/// Begins TLS. A client that speaks plain HTTP gets an answer it can read.
async fn handshake(
    tls: TlsAcceptor,
    mut socket: TcpStream,
    stall: Duration,
) -> io::Result<TlsStream<StallTimeout<TcpStream>>> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 1
        && let Some(answer) = answer_to_plain_http(first[0])
    {
        socket.write_all(answer.as_bytes()).await?;
        socket.shutdown().await?;
        // What is left unread when a connection closes may cost the client the answer.
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await?;
        return Err(io::Error::other("the client speaks plain HTTP"));
    }
    tls.accept(StallTimeout::new(socket, stall)).await
}

async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    socket: S,
    app: Router,
    place: Arc<ConnectionPlace>,
    leave: CancellationToken,
) {
    let requested = Arc::new(Notify::new());
    let service = {
        let (requested, app) = (requested.clone(), TowerToHyperService::new(app));
        service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
            requested.notify_one();
            request.extensions_mut().insert(place.clone());
            app.call(request)
        })
    };
    let no_request = async {
        if tokio::time::timeout(FIRST_REQUEST, requested.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = no_request => return,
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
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::FrontLimits;

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_first_request_is_closed_soon_and_one_that_pauses_between_requests_is_not() {
        let app = Router::new().route("/health", get(health));
        let began = tokio::time::Instant::now();
        let (mut silent, socket) = tokio::io::duplex(4096);
        let places = ConnectionPlaces::new(&FrontLimits::default());
        let place = || places.take([127, 0, 0, 1].into());
        let serving = tokio::spawn(serve_connection(socket, app.clone(), place(), CancellationToken::new()));
        silent.write_all(b"GET /hea").await.expect("it is open");
        assert_eq!(silent.read_to_end(&mut Vec::new()).await.ok(), Some(0));
        assert_eq!(began.elapsed().as_secs(), FIRST_REQUEST.as_secs());
        serving.await.expect("it ended");

        let (mut pausing, socket) = tokio::io::duplex(4096);
        tokio::spawn(serve_connection(socket, app, place(), CancellationToken::new()));
        for _ in 0..2 {
            pausing.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
            let mut answer = [0; 4096];
            let length = pausing.read(&mut answer).await.expect("an answer");
            assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
            tokio::time::sleep(FIRST_REQUEST * 2).await;
        }
    }
}
