//! The dial-out endpoint: the gateway connects to a broker of MCP endpoints and serves its tools there.
//!
//! The broker is the client. It sends raw JSON-RPC, one message per text frame, and recognises the gateway by the token
//! in the URL. Every connection is an MCP session of its own, over lines as with `stdio`: in this process ([`serve`]),
//! or to a gateway elsewhere ([`run`]). `address` hides the token, `pump` copies the messages.

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

use crate::state::FrontState;
use crate::{Front, FrontLimits, stdio};

pub use address::EndpointAddress;
use pump::{EndReason, PumpEnd, pump};

/// Pauses between attempts double from the first to the last, and start over once the broker has sent a message.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// TCP, TLS and upgrade together.
const DIAL_TIME: Duration = Duration::from_secs(20);
/// Bytes that a pipe inside this process holds before its writer waits.
const PIPE: usize = 64 << 10;

/// Serves this gateway's tools at the broker until `shutdown`, and then until the running calls have ended
/// or their time is up.
pub async fn serve(
    front: Front,
    address: EndpointAddress,
    shape: Shape,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let front = FrontState::new(front)?;
    let who = Arc::new(Principal::new(format!("endpoint {}", address.host()), Role::Client));
    let stop = CancellationToken::new();
    let open = || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(theirs);
        let (serving, who, stop) = (front.clone(), who.clone(), stop.clone());
        front.tasks.spawn(async move {
            if let Err(error) = stdio::serve(&serving, who, shape.into(), "endpoint", reader, writer, stop).await {
                tracing::debug!(%error, "a session at the broker ended");
            }
        });
        std::future::ready(Ok(ours))
    };
    let ran = run(&address, open, shutdown).await;
    front.drain.cancel();
    stop.cancel();
    front.tasks.close();
    front.tasks.wait().await;
    ran
}

/// Connects the broker to pipes with one MCP message per line; `open` makes one for every connection. Fails only when
/// trying again cannot help.
pub async fn run<P, F>(address: &EndpointAddress, open: impl Fn() -> F, shutdown: CancellationToken) -> io::Result<()>
where
    P: AsyncRead + AsyncWrite + Send,
    F: Future<Output = io::Result<P>>,
{
    let tls = address.is_encrypted().then(system_trust).transpose()?;
    let random = RandomState::new();
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        let connecting = async {
            let pipe = open().await.map_err(|error| format!("the gateway cannot be reached: {error}"))?;
            Ok((pipe, dial(address, tls.clone()).await?))
        };
        let PumpEnd { reason, had_message } = match shutdown.run_until_cancelled(connecting).await {
            None => break,
            Some(Err(message)) => PumpEnd { reason: EndReason::Broken(message), had_message: false },
            Some(Ok((pipe, socket))) => {
                tracing::info!(broker = %address, "connected to the broker of endpoints");
                pump(socket, pipe, &shutdown).await
            }
        };
        if had_message {
            pause = FIRST_PAUSE;
        }
        match reason {
            EndReason::Stopped => break,
            EndReason::NewTools => {
                tracing::info!(broker = %address, "the tools changed; reconnecting so that the broker lists them")
            }
            EndReason::Broken(message) => {
                // A random part, so that gateways that lost their broker together do not reconnect together.
                let delay = pause + pause.mul_f64((random.hash_one(pause) % 100) as f64 / 200.0);
                tracing::warn!(broker = %address, "{}; trying again in {delay:.1?}", address.hide(&message));
                shutdown.run_until_cancelled(sleep(delay)).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
    }
    Ok(())
}

trait DialStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> DialStream for T {}

type BrokerSocket = WebSocketStream<Box<dyn DialStream>>;

/// Connects to the broker once and leaves again; the error says why that does not work.
pub async fn probe(address: &EndpointAddress) -> Result<(), String> {
    let tls = address.is_encrypted().then(system_trust).transpose().map_err(|error| error.to_string())?;
    dial(address, tls).await.map(drop).map_err(|why| address.hide(&why))
}

async fn dial(address: &EndpointAddress, tls: Option<Arc<ClientConfig>>) -> Result<BrokerSocket, String> {
    let opening = async {
        let unreachable = |error: io::Error| format!("the broker cannot be reached: {error}");
        let tcp = TcpStream::connect((address.host(), address.port())).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let stream: Box<dyn DialStream> = match tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::try_from(address.host().to_owned())
                    .map_err(|_| "the broker's host name cannot be checked against a certificate; use a DNS name or an IP address".to_owned())?;
                let encrypted = TlsConnector::from(config).connect(name, tcp).await;
                Box::new(encrypted.map_err(|error| format!("TLS with the broker failed: {error}"))?)
            }
        };
        let request = address.uri().into_client_request().map_err(|error| error.to_string())?;
        let limit = Some(FrontLimits::default().body);
        let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => {
                Err(format!("the broker refused the connection: HTTP {}; is the address right?", answer.status()))
            }
            Err(error) => Err(format!("the WebSocket handshake with the broker failed: {error}")),
        }
    };
    match timeout(DIAL_TIME, opening).await {
        Ok(opened) => opened,
        Err(_) => Err("the broker did not answer in time".to_owned()),
    }
}

/// The certificate authorities of the operating system, or those in `SSL_CERT_FILE`.
fn system_trust() -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
