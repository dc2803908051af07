//! The boards' HTTP port: boards ask here for their settings (`bootstrap`), send pictures (`vision`), and
//! upgrade to WebSocket; so do tool providers (`provider`).
//!
//! hyper speaks HTTP until the upgrade; after it nothing of hyper is kept, because its state would be more than half of
//! the memory of an idle board.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sinew_tool::DeviceInfo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::hub::{self, AdmittedBoard, BoardHub, Boards, admit_all};
use crate::identity::{self, BoardIdentity, HttpResponse};
use crate::pipe::Pipe;
use crate::roster::Registration;
use crate::slots::Slot;
use crate::socket::BoardSocket;
use crate::stream::BoardStream;
use crate::{bootstrap, provider, vision};

/// The smallest buffer hyper allows; the headers of a board take some 400 bytes.
const REQUEST_BYTES: usize = 8192;

/// Serves boards until `shutdown`; returns when the last of them has been disconnected.
pub async fn run(listener: TcpListener, boards: Boards, shutdown: CancellationToken) -> io::Result<()> {
    admit_all(listener, boards.hub, shutdown, |tcp, address, hub, handshake| async move {
        identify(tcp, address, &hub, handshake).await
    })
    .await;
    Ok(())
}

/// An upgrade that was accepted, and whose it is.
type PendingUpgrade = Mutex<Option<(OnUpgrade, DeviceInfo, Registration)>>;

/// How long a request may still take.
pub(crate) struct RequestDeadline {
    end: Mutex<Instant>,
    handshake: Mutex<Option<Slot<IpAddr>>>,
    evicted: CancellationToken,
}

impl RequestDeadline {
    fn new(time: Duration, handshake: Slot<IpAddr>) -> RequestDeadline {
        let evicted = handshake.evicted.clone();
        RequestDeadline { end: Mutex::new(Instant::now() + time), handshake: Mutex::new(Some(handshake)), evicted }
    }

    /// The sender is identified: it gets more time, and cannot be evicted.
    pub(crate) fn extend(&self, time: Duration) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *end = (*end).max(Instant::now() + time);
        self.handshake.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    async fn run_out(&self) -> io::Error {
        loop {
            let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
            if end <= Instant::now() {
                return io::Error::other("it took longer than the handshake time");
            }
            tokio::select! {
                () = tokio::time::sleep_until(end) => {}
                () = self.evicted.cancelled() => return hub::evicted_error(),
            }
        }
    }
}

/// From the first byte to the WebSocket. `None` if the request was answered without an upgrade.
async fn identify(
    tcp: TcpStream,
    address: SocketAddr,
    hub: &Arc<BoardHub>,
    handshake: Slot<IpAddr>,
) -> io::Result<Option<AdmittedBoard>> {
    let pending: PendingUpgrade = Mutex::new(None);
    let deadline = RequestDeadline::new(hub.config.limits.handshake_time, handshake);
    let service = service_fn(|request: Request<Incoming>| async {
        Ok::<_, Infallible>(answer(request, address, hub, &deadline, &pending).await)
    });
    let conversation = async {
        let stream = hub.encrypt(tcp).await?;
        let connection = http1::Builder::new()
            .max_buf_size(REQUEST_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        connection.await.map_err(io::Error::other)
    };
    tokio::select! {
        ended = conversation => ended?,
        why = deadline.run_out() => return Err(why),
    }

    let Some((upgrade, info, registration)) = pending.into_inner().unwrap_or_else(PoisonError::into_inner) else {
        return Ok(None);
    };
    let upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<BoardStream>>()
        .map_err(|_| io::Error::other("the upgraded connection is not the one that came in"))?;
    let socket = BoardSocket::new(parts.io.into_inner(), parts.read_buf.to_vec(), &hub.config.limits).await;
    Ok(Some(AdmittedBoard { pipe: Pipe::WebSocket(Box::new(socket)), info, registration }))
}

async fn answer(
    request: Request<Incoming>,
    address: SocketAddr,
    hub: &BoardHub,
    deadline: &RequestDeadline,
    pending: &PendingUpgrade,
) -> HttpResponse {
    if is_of_a_page(request.headers(), hub) {
        tracing::warn!(%address, "refused a request of a web page at the boards' listener");
        return *identity::refusal(
            StatusCode::FORBIDDEN,
            "this address is for boards and tool providers, not for web pages",
        );
    }
    let (method, path) = (request.method(), request.uri().path());
    match path {
        _ if path.trim_end_matches('/') == bootstrap::PATH.trim_end_matches('/') => {
            bootstrap::greet(request, address, hub).await
        }
        bootstrap::ACTIVATE => bootstrap::activate(request, address, hub).await,
        vision::EXPLAIN if method == Method::POST => vision::explain(request, hub, deadline).await,
        vision::UPLOAD if method == Method::POST => vision::upload(request, hub, deadline).await,
        _ => upgrade(request, address, hub, pending).unwrap_or_else(|refusal| *refusal),
    }
}

/// Whether a browser sent this for a web page. Nothing here is for browsers; programs that send an origin send the
/// address they dial, which is an IP address of ours or the advertised name.
fn is_of_a_page(headers: &HeaderMap, hub: &BoardHub) -> bool {
    // Which of several would count, nobody can say.
    let is_repeated = |name| headers.get_all(name).iter().nth(1).is_some();
    if headers.contains_key("sec-fetch-site") || is_repeated(ORIGIN) || is_repeated(HOST) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    // WebSocket libraries for microcontrollers send these by default: embedded-websocket the first, arduinoWebSockets
    // the second.
    if ["", "file://"].iter().any(|unnamed| origin.as_bytes() == unnamed.as_bytes()) {
        return false;
    }
    let authority = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok()?.into_parts().authority);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let (Some(authority), Some(host)) = (authority, host) else { return true };
    let name = host.host().trim_matches(['[', ']']);
    let is_ours = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hub.config.reach.as_ref().is_some_and(|reach| reach.host.eq_ignore_ascii_case(name));
    !is_ours || !authority.as_str().eq_ignore_ascii_case(host.as_str())
}

fn upgrade(
    mut request: Request<Incoming>,
    address: SocketAddr,
    hub: &BoardHub,
    pending: &PendingUpgrade,
) -> Result<HttpResponse, Box<HttpResponse>> {
    let (answer, info, registration) = if provider::is_for(request.uri().path()) {
        provider::receive(&request, address, hub)?
    } else {
        receive(&request, address, hub)?
    };
    let upgrade = hyper::upgrade::on(&mut request);
    *pending.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, info, registration));
    Ok(answer)
}

/// Identifies, admits and registers a board.
fn receive(
    request: &Request<Incoming>,
    address: SocketAddr,
    hub: &BoardHub,
) -> Result<(HttpResponse, DeviceInfo, Registration), Box<HttpResponse>> {
    let newcomer = BoardIdentity::read(request)?;
    let key = identity::key(&newcomer.hardware_id);
    let Some(admission) = hub.config.admit.admit(newcomer.token(), &key) else {
        hub.refuse(&key, address);
        return Err(identity::unauthorized(&identity::wrong_token(&newcomer)));
    };
    let answer = identity::accept(request)?;
    let registration = hub
        .register(&key, &admission)
        .map_err(|refused| identity::registration_refused(refused, &hub.config.limits))?;
    Ok((answer, newcomer.to_info("websocket", address, admission), registration))
}
