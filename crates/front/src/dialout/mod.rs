//! The dial-out endpoint: the gateway connects to a broker of MCP endpoints and serves its tools there.
//!
//! The broker is the client. It sends raw JSON-RPC, one message a text frame, and knows the gateway by the
//! token in the address. Every connection is an MCP session of its own, over a pipe of lines like that of
//! `stdio`: in this process ([`serve`]), or to a gateway elsewhere ([`run`] with a pipe to it). `address`
//! keeps the token out of sight, `pump` carries the messages.

mod address;
mod pump;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use sinew_gateway::{Principal, Role, Shape};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::sync::CancellationToken;

use crate::hall::Hall;
use crate::{Front, Limits, stdio};

pub use address::Address;
use pump::{Ended, Why, pump};

/// Pauses between attempts double from the first to the last, and begin anew once the broker has spoken.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// TCP, TLS and upgrade together.
const DIAL_TIME: Duration = Duration::from_secs(20);
/// What a pipe inside this process holds before its writer waits.
const PIPE: usize = 64 << 10;

/// Serves this gateway's tools at the broker until `shutdown`, and then until the running calls have ended
/// or their time is up.
pub async fn serve(front: Front, address: Address, shape: Shape, shutdown: CancellationToken) -> io::Result<()> {
    let hall = Hall::new(front)?;
    let who = Arc::new(Principal::new(format!("endpoint {}", address.host()), Role::Client));
    let stop = CancellationToken::new();
    let open = || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(theirs);
        let (serving, who, stop) = (hall.clone(), who.clone(), stop.clone());
        hall.tasks.spawn(async move {
            if let Err(error) = stdio::serve(&serving, who, shape.into(), "endpoint", reader, writer, stop).await {
                tracing::debug!(%error, "a session at the broker ended");
            }
        });
        std::future::ready(Ok(ours))
    };
    let ran = run(&address, open, shutdown).await;
    hall.drain.cancel();
    stop.cancel();
    hall.tasks.close();
    hall.tasks.wait().await;
    ran
}

/// Serves at the broker what speaks MCP, a message a line, at the other end of the pipes that `open` gives:
/// one for every connection. Fails only where trying again cannot help.
pub async fn run<P, F>(address: &Address, open: impl Fn() -> F, shutdown: CancellationToken) -> io::Result<()>
where
    P: AsyncRead + AsyncWrite + Send,
    F: Future<Output = io::Result<P>>,
{
    let tls = address.is_encrypted().then(system_trust).transpose()?;
    let random = RandomState::new();
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        let connecting = async {
            let pipe = open().await.map_err(|error| format!("the gateway is not there: {error}"))?;
            Ok((pipe, dial(address, tls.clone()).await?))
        };
        let Ended { why, heard } = match shutdown.run_until_cancelled(connecting).await {
            None => break,
            Some(Err(why)) => Ended { why: Why::Broken(why), heard: false },
            Some(Ok((pipe, socket))) => {
                tracing::info!(broker = %address, "connected to the broker of endpoints");
                pump(socket, pipe, &shutdown).await
            }
        };
        if heard {
            pause = FIRST_PAUSE;
        }
        match why {
            Why::Stopped => break,
            Why::NewTools => tracing::info!(broker = %address, "the tools changed; connecting anew to show them"),
            Why::Broken(why) => {
                // A little more or less, so that gateways which lost their broker together do not return together.
                let rest = pause + pause.mul_f64((random.hash_one(pause) % 100) as f64 / 200.0);
                tracing::warn!(broker = %address, "{}; trying again in {rest:.1?}", address.hide(&why));
                shutdown.run_until_cancelled(sleep(rest)).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
    }
    Ok(())
}

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

type Socket = WebSocketStream<Box<dyn Bytes>>;

async fn dial(address: &Address, tls: Option<Arc<ClientConfig>>) -> Result<Socket, String> {
    let opening = async {
        let unreachable = |error: io::Error| format!("the broker cannot be reached: {error}");
        let tcp = TcpStream::connect((address.host(), address.port())).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let stream: Box<dyn Bytes> = match tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::try_from(address.host().to_owned())
                    .map_err(|_| "the broker's host name fits no certificate".to_owned())?;
                let encrypted = TlsConnector::from(config).connect(name, tcp).await;
                Box::new(encrypted.map_err(|error| format!("TLS with the broker failed: {error}"))?)
            }
        };
        let request = address.uri().into_client_request().map_err(|error| error.to_string())?;
        let limit = Some(Limits::default().body);
        let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                Err(format!("the broker refused the connection: HTTP {}; is the address right?", answer.status()))
            }
            Err(error) => Err(format!("the broker took no WebSocket: {error}")),
        }
    };
    match timeout(DIAL_TIME, opening).await {
        Ok(opened) => opened,
        Err(_) => Err("the broker did not answer in time".to_owned()),
    }
}

/// The authorities of the operating system; `SSL_CERT_FILE` names others.
fn system_trust() -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
