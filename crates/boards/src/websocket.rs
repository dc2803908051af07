//! The door for boards: a listener of its own that upgrades to WebSocket and then forgets HTTP.
//!
//! HTTP is spoken by hyper until the upgrade; after it nothing of hyper is kept, because its state
//! would be the larger half of an idle board.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sinew_tool::DeviceInfo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::greeting::{self, Answer, Newcomer};
use crate::pipe::Pipe;
use crate::pump::Pump;
use crate::roster::{Place, Roster};
use crate::stream::Stream;
use crate::{Admission, Door};

/// The smallest buffer hyper allows; the headers of a board take some 400 bytes.
const REQUEST_BYTES: usize = 8192;
/// After a failed accept, usually for want of file descriptors, others get time to close some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What all connections of one door share.
pub(crate) struct Hall {
    pub(crate) door: Door,
    pub(crate) roster: Arc<Roster>,
    pub(crate) start: tokio::time::Instant,
}

/// Admits boards until `shutdown`; returns when the last of them has been told and has left.
pub async fn run(listener: TcpListener, door: Door, shutdown: CancellationToken) -> io::Result<()> {
    let gate = Arc::new(Semaphore::new(door.limits.handshakes));
    let hall = Arc::new(Hall { door, roster: Arc::default(), start: tokio::time::Instant::now() });
    let tracker = TaskTracker::new();
    let admit_all = async {
        loop {
            let Ok(permit) = gate.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((tcp, address)) => {
                    let serving = serve(tcp, address, hall.clone(), permit, shutdown.clone());
                    tracker.spawn(serving);
                }
                Err(error) => {
                    tracing::warn!(%error, "a board could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    shutdown.run_until_cancelled(admit_all).await;
    drop(listener);
    hall.roster.close();
    tracker.close();
    tracker.wait().await;
    Ok(())
}

/// The life of one connection. Both halves are boxed so that the first leaves no room behind in the
/// task of the second.
fn serve(
    tcp: TcpStream,
    address: SocketAddr,
    hall: Arc<Hall>,
    permit: OwnedSemaphorePermit,
    shutdown: CancellationToken,
) -> impl Future<Output = ()> + Send {
    let meeting = Box::pin(async move {
        let met = meet(tcp, address, &hall);
        let met = tokio::time::timeout(hall.door.limits.handshake_time, shutdown.run_until_cancelled(met)).await;
        drop(permit);
        let (pipe, info, place) =
            met.ok()??.inspect_err(|error| tracing::debug!(%address, %error, "no board")).ok()??;
        Some(Pump::new(pipe, info, place, hall).run())
    });
    async move {
        if let Some(stay) = meeting.await {
            stay.await;
        }
    }
}

/// From the first byte to the WebSocket. `None` where the knocking one was sent away with an answer.
async fn meet(tcp: TcpStream, address: SocketAddr, hall: &Arc<Hall>) -> io::Result<Option<(Pipe, DeviceInfo, Place)>> {
    tcp.set_nodelay(true)?;
    let stream = match &hall.door.tls {
        Some(config) => Stream::tls(TlsAcceptor::from(config.clone()).accept(tcp).await?),
        None => Stream::plain(tcp),
    };
    let admitted: Mutex<Option<(OnUpgrade, Newcomer, Admission)>> = Mutex::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        let answer = judge(request, hall, &admitted).unwrap_or_else(|refusal| *refusal);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let connection = http1::Builder::new()
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    connection.await.map_err(io::Error::other)?;

    let Some((upgrade, newcomer, admission)) = admitted.into_inner().unwrap_or_else(PoisonError::into_inner) else {
        return Ok(None);
    };
    let upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<Stream>>()
        .map_err(|_| io::Error::other("the upgraded connection is not the one that came in"))?;
    let Some(place) = hall.roster.enter(&newcomer.hardware_id) else { return Ok(None) };
    let pipe = Pipe::new(parts.io.into_inner(), parts.read_buf.to_vec(), hall.door.limits.message_bytes).await;
    Ok(Some((pipe, newcomer.to_info(address, admission), place)))
}

fn judge(
    mut request: Request<Incoming>,
    hall: &Hall,
    admitted: &Mutex<Option<(OnUpgrade, Newcomer, Admission)>>,
) -> Result<Answer, Box<Answer>> {
    let newcomer = Newcomer::read(&request)?;
    let admission = hall.door.admit.admit(newcomer.token(), &newcomer.hardware_id);
    if admission == Admission::Refused {
        tracing::warn!(hardware_id = %newcomer.hardware_id, "a board was refused: its token does not fit");
        return Err(greeting::unauthorized(&newcomer));
    }
    let limit = hall.door.limits.boards;
    if !hall.roster.has_room(&newcomer.hardware_id, limit) {
        return Err(greeting::full(limit));
    }
    let answer = greeting::accept(&request)?;
    let upgrade = hyper::upgrade::on(&mut request);
    *admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, newcomer, admission));
    Ok(answer)
}
