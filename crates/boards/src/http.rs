//! The boards' HTTP port: boards ask here for their settings (`bootstrap`), send pictures (`vision`), and
//! upgrade to WebSocket; so do tool providers (`provider`).
//!
//! HTTP is spoken by hyper until the upgrade; after it nothing of hyper is kept, because its state
//! would be the larger half of an idle board.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sinew_tool::DeviceInfo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::greeting::{self, Answer, Newcomer};
use crate::hall::{Boards, Hall, Met, admit_all};
use crate::pipe::Pipe;
use crate::roster::Place;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::{bootstrap, provider, vision};

/// The smallest buffer hyper allows; the headers of a board take some 400 bytes.
const REQUEST_BYTES: usize = 8192;

/// Serves boards until `shutdown`; returns when the last of them has been told and has left.
pub async fn run(listener: TcpListener, boards: Boards, shutdown: CancellationToken) -> io::Result<()> {
    admit_all(listener, boards.hall, shutdown, |tcp, address, hall| async move { meet(tcp, address, &hall).await })
        .await;
    Ok(())
}

/// What an upgrade leaves behind: the connection to be, and who is on it.
type Admitted = Mutex<Option<(OnUpgrade, DeviceInfo, Place)>>;

/// How long a connection may still take. Whoever turns out to have good reasons gets more.
pub(crate) struct Patience(Mutex<Instant>);

impl Patience {
    pub(crate) fn extend(&self, time: Duration) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *end = (*end).max(Instant::now() + time);
    }

    async fn run_out(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// From the first byte to the WebSocket. `None` where the request was answered and nobody stays.
async fn meet(tcp: TcpStream, address: SocketAddr, hall: &Arc<Hall>) -> io::Result<Option<Met>> {
    let admitted: Admitted = Mutex::new(None);
    let patience = Patience(Mutex::new(Instant::now() + hall.door.limits.handshake_time));
    let service = service_fn(|request: Request<Incoming>| async {
        Ok::<_, Infallible>(answer(request, address, hall, &patience, &admitted).await)
    });
    let conversation = async {
        let stream = hall.encrypt(tcp).await?;
        let connection = http1::Builder::new()
            .max_buf_size(REQUEST_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        connection.await.map_err(io::Error::other)
    };
    tokio::select! {
        ended = conversation => ended?,
        () = patience.run_out() => return Err(io::Error::other("it took too long")),
    }

    let Some((upgrade, info, place)) = admitted.into_inner().unwrap_or_else(PoisonError::into_inner) else {
        return Ok(None);
    };
    let upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<Stream>>()
        .map_err(|_| io::Error::other("the upgraded connection is not the one that came in"))?;
    let socket = Socket::new(parts.io.into_inner(), parts.read_buf.to_vec(), &hall.door.limits).await;
    Ok(Some(Met { pipe: Pipe::WebSocket(Box::new(socket)), info, place }))
}

async fn answer(
    request: Request<Incoming>,
    address: SocketAddr,
    hall: &Hall,
    patience: &Patience,
    admitted: &Admitted,
) -> Answer {
    let (method, path) = (request.method(), request.uri().path());
    match path {
        _ if path.trim_end_matches('/') == bootstrap::PATH.trim_end_matches('/') => {
            bootstrap::greet(request, address, hall).await
        }
        bootstrap::ACTIVATE => bootstrap::activate(request, address, hall).await,
        vision::EXPLAIN if method == Method::POST => vision::explain(request, hall, patience).await,
        vision::UPLOAD if method == Method::POST => vision::upload(request, hall, patience).await,
        _ => upgrade(request, address, hall, admitted).unwrap_or_else(|refusal| *refusal),
    }
}

fn upgrade(
    mut request: Request<Incoming>,
    address: SocketAddr,
    hall: &Hall,
    admitted: &Admitted,
) -> Result<Answer, Box<Answer>> {
    let (answer, info, place) = if provider::is_for(request.uri().path()) {
        provider::receive(&request, address, hall)?
    } else {
        receive(&request, address, hall)?
    };
    let upgrade = hyper::upgrade::on(&mut request);
    *admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, info, place));
    Ok(answer)
}

/// A board: who it is, whether it may come in, and its place.
fn receive(
    request: &Request<Incoming>,
    address: SocketAddr,
    hall: &Hall,
) -> Result<(Answer, DeviceInfo, Place), Box<Answer>> {
    let newcomer = Newcomer::read(request)?;
    let key = greeting::key(&newcomer.hardware_id);
    let Some(admission) = hall.door.admit.admit(newcomer.token(), &key) else {
        hall.refuse(&key, address);
        return Err(greeting::unauthorized(&greeting::wrong_token(&newcomer)));
    };
    let answer = greeting::accept(request)?;
    let place = hall.enter(&key, &admission).map_err(|turned| greeting::turn_away(turned, &hall.door.limits))?;
    Ok((answer, newcomer.to_info("websocket", address, admission), place))
}
