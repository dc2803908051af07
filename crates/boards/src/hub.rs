//! What all board listeners share, and the loop that accepts their connections.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use sinew_tool::plain_http::answer_to_plain_http;
use sinew_tool::refusals::{REFUSAL_LOG_INTERVAL, RefusalCounts};
use sinew_tool::{Admission, Device, DeviceInfo, DeviceKey, TokenId, Value, json, network_of};
use sinew_wire::Moment;
use sinew_wire::host::Vision;
use subtle::ConstantTimeEq;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::device::BoardDevice;
use crate::pipe::Pipe;
use crate::pump::Pump;
use crate::relay::RelayHub;
use crate::relay::sound::SoundRegistry;
use crate::roster::{Registration, RegistrationError, Roster};
use crate::slots::{Slot, Slots};
use crate::stream::BoardStream;
use crate::vision::gallery::Gallery;
use crate::{AdvertisedAddress, BoardLimits, HubConfig, vision};

/// Pause after a failed accept, which usually means too few file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const WRONG_TOKEN: &str = "wrong token or password";

/// The boards of one gateway, on all listeners. Cheap to clone.
#[derive(Clone)]
pub struct Boards {
    pub(crate) hub: Arc<BoardHub>,
}

pub(crate) struct BoardHub {
    pub(crate) config: HubConfig,
    pub(crate) roster: Arc<Roster>,
    pub(crate) start: tokio::time::Instant,
    pub(crate) sound_packets: AtomicU64,
    pub(crate) sounds: SoundRegistry,
    pub(crate) relay: Option<Arc<RelayHub>>,
    pub(crate) gallery: Arc<Gallery>,
    /// Pictures being received at once; each may take some megabytes.
    pub(crate) uploads: Slots<DeviceKey>,
    /// Signs the tokens and URLs that boards get for pictures.
    key: [u8; 32],
    refusals: RefusalCounts,
}

/// A board that was admitted, with its connection.
pub(crate) struct AdmittedBoard {
    pub(crate) pipe: Pipe,
    pub(crate) info: DeviceInfo,
    pub(crate) registration: Registration,
}

impl Boards {
    /// Fails only if the system has no random numbers.
    pub fn new(config: HubConfig) -> io::Result<Boards> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let hub = BoardHub {
            roster: Arc::default(),
            start: tokio::time::Instant::now(),
            sound_packets: AtomicU64::new(0),
            sounds: SoundRegistry::default(),
            relay: config.relay.clone().map(|relay| Arc::new(RelayHub::new(relay))),
            gallery: Arc::default(),
            uploads: Slots::new(config.limits.uploads, config.limits.uploads_per_board),
            key,
            refusals: RefusalCounts::default(),
            config,
        };
        Ok(Boards { hub: Arc::new(hub) })
    }

    /// Ends every connection that was admitted by a device token which is not valid any more.
    pub fn keep_admitted(&self, valid: &HashSet<TokenId>) {
        self.hub.roster.revoke(|admission| match admission {
            Admission::DeviceToken(token) => !valid.contains(token),
            _ => false,
        });
    }

    /// Ends the connection of a board that connected to another gateway of the cluster meanwhile.
    pub fn end_moved(&self, device: &Arc<dyn Device>) {
        self.hub.roster.end_moved(&device.info().key.0, Arc::as_ptr(device).cast());
    }

    /// Packets of sound that were dropped, because they belong to no conversation.
    pub fn sound_packets(&self) -> u64 {
        self.hub.sound_packets.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl BoardHub {
    pub(crate) fn now(&self) -> Moment {
        Moment(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Registers an admitted board. One that connects too often is refused, and the reason shown at the device.
    pub(crate) fn register(&self, key: &DeviceKey, admission: &Admission) -> Result<Registration, RegistrationError> {
        let limits = &self.config.limits;
        let registered = self.roster.register(&key.0, admission, self.now(), limits);
        // A token that was revoked since the board was admitted: whoever ended its boards did not find this one.
        if registered.is_ok() && !self.config.admit.is_valid(admission) {
            return Err(RegistrationError::Revoked);
        }
        if let Err(RegistrationError::TooOften) = registered
            && self.roster.is_first_refusal(&key.0)
        {
            let trouble = RegistrationError::TooOften.reason(limits);
            tracing::warn!(%key, "board refused: {trouble}");
            if let Some((_, device)) = self.roster.find(&key.0) {
                self.trouble(&device, &trouble);
            }
        }
        registered
    }

    /// Somebody used the id of a board with a wrong token. The device shows that, too.
    pub(crate) fn refuse(&self, key: &DeviceKey, address: SocketAddr) {
        if self.refusals.count(address.ip(), WRONG_TOKEN) {
            tracing::warn!(%key, address = %address.ip(), "board refused: {WRONG_TOKEN}");
        }
        if let Some((_, device)) = self.roster.find(&key.0) {
            self.trouble(&device, "a connection that used its id with a wrong token was refused");
        }
    }

    /// Somebody offered tools with a wrong token.
    pub(crate) fn refuse_provider(&self, address: SocketAddr) {
        if self.refusals.count(address.ip(), WRONG_TOKEN) {
            tracing::warn!(address = %address.ip(), "tool provider refused: {WRONG_TOKEN}");
        }
    }

    fn log_repeated_refusals(&self) {
        for repeated in self.refusals.take_repeated() {
            let address = repeated.address.map_or("others".to_owned(), |address| address.to_string());
            tracing::warn!(address, count = repeated.count, "more connections refused: {}", repeated.why);
        }
    }

    /// Shows at a device what is wrong with it, once.
    fn trouble(&self, device: &Arc<BoardDevice>, trouble: &str) {
        if device.info().attributes.get("trouble").is_none_or(|known| known != trouble) {
            device.set_attribute("trouble", json!(trouble));
            (self.config.announce)(sinew_tool::DeviceEvent::Changed(device.clone()));
        }
    }

    /// Where a board may send photos, with its token.
    pub(crate) fn vision(&self, registration: &Registration) -> Option<Vision> {
        let reach = self.config.reach.as_ref().filter(|_| self.config.pictures.is_some())?;
        let token = self.seal(vision::EXPLAIN, &registration.key, registration.number);
        Some(Vision { url: self.url(reach, self.scheme(), vision::EXPLAIN), token })
    }

    /// Where a board may send copies of its screen. The URL itself is the secret, because firmware sends no token.
    pub(crate) fn upload_url(&self, registration: &Registration) -> Option<String> {
        let reach = self.config.reach.as_ref().filter(|_| self.config.pictures.is_some())?;
        let seal = self.seal(vision::UPLOAD, &registration.key, registration.number);
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("device", &registration.key).append_pair("key", &seal);
        Some(format!("{}?{}", self.url(reach, self.scheme(), vision::UPLOAD), query.finish()))
    }

    pub(crate) fn url(&self, reach: &AdvertisedAddress, scheme: &str, path: &str) -> String {
        let AdvertisedAddress { host, http, .. } = reach;
        if host.contains(':') {
            format!("{scheme}://[{host}]:{http}{path}")
        } else {
            format!("{scheme}://{host}:{http}{path}")
        }
    }

    fn scheme(&self) -> &'static str {
        if self.config.tls.is_some() { "https" } else { "http" }
    }

    /// A token for one purpose on one connection of one board.
    fn seal(&self, purpose: &str, key: &str, number: u64) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        for part in [purpose.as_bytes(), &number.to_be_bytes(), key.as_bytes()] {
            mac.update(&[part.len() as u8]);
            mac.update(part);
        }
        hex(&mac.finalize().into_bytes()[..16])
    }

    /// The board that a token belongs to, if it is connected.
    pub(crate) fn check_seal(&self, purpose: &str, key: &str, seal: &str) -> Option<Arc<BoardDevice>> {
        let (number, device) = self.roster.find(key)?;
        let expected = self.seal(purpose, key, number);
        let same: bool = expected.as_bytes().ct_eq(seal.as_bytes()).into();
        (same && !expected.is_empty()).then_some(device)
    }

    /// Where an MQTT board may send sound: firmware opens no conversation without it. Nothing is ever decrypted with
    /// this key and nonce.
    pub(crate) fn sound_section(&self) -> Option<Value> {
        let reach = self.config.reach.as_ref()?;
        let mut random = [0; 32];
        if let Err(error) = getrandom::fill(&mut random) {
            tracing::warn!(%error, "no random numbers for the key of a board's sound");
            return None;
        }
        Some(json!({"udp": {
            "server": reach.host,
            "port": reach.sound?,
            "encryption": "aes-128-ctr",
            "key": hex(&random[..16]),
            "nonce": hex(&random[16..]),
        }}))
    }

    pub(crate) async fn encrypt(&self, mut tcp: TcpStream) -> io::Result<BoardStream> {
        tcp.set_nodelay(true)?;
        let Some(config) = &self.config.tls else { return Ok(BoardStream::plain(tcp)) };
        let mut first = [0];
        if tcp.peek(&mut first).await? == 1
            && let Some(answer) = answer_to_plain_http(first[0])
        {
            tcp.write_all(answer.as_bytes()).await?;
            tcp.shutdown().await?;
            // What is left unread when a connection closes may cost the board the answer.
            tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await?;
            return Err(io::Error::other(
                "it speaks plain HTTP, and this port speaks TLS only; use wss:// or https://",
            ));
        }
        Ok(BoardStream::tls(TlsAcceptor::from(config.clone()).accept(tcp).await?))
    }
}

/// Why a silent connection was closed.
pub(crate) fn evicted_error() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "closed to make room for another connection, because it had sent nothing")
}

/// A message we cannot read helps whoever sets up a board; a network failure does not.
fn log_ended(address: SocketAddr, error: &io::Error) {
    match error.kind() {
        io::ErrorKind::Other => tracing::info!(%address, "closed a connection that is not from a board: {error}"),
        _ => tracing::debug!(%address, %error, "connection failed before a board was identified"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Accepts connections until `shutdown`, identifies each with `identify`, and gives every board its own task. Returns
/// when the last board has been disconnected.
pub(crate) async fn admit_all<F, M>(listener: TcpListener, hub: Arc<BoardHub>, shutdown: CancellationToken, identify: F)
where
    F: Fn(TcpStream, SocketAddr, Arc<BoardHub>, Slot<IpAddr>) -> M + Clone + Send + 'static,
    M: Future<Output = io::Result<Option<AdmittedBoard>>> + Send + 'static,
{
    let BoardLimits { handshakes, handshakes_of_one, .. } = hub.config.limits;
    let handshakes = Slots::new(handshakes, handshakes_of_one);
    let tracker = TaskTracker::new();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((tcp, address)) => {
                    let (hub, shutdown, identify) = (hub.clone(), shutdown.clone(), identify.clone());
                    let handshake = handshakes.take(network_of(address.ip()));
                    // Both halves are boxed, so that the task of a connected board does not keep the size of the first.
                    let identifying = Box::pin(async move {
                        let admitted = identify(tcp, address, hub.clone(), handshake);
                        let admitted = shutdown.run_until_cancelled(admitted).await;
                        let admitted = admitted?.inspect_err(|error| log_ended(address, error)).ok()??;
                        Some(Pump::new(admitted, hub).run())
                    });
                    tracker.spawn(async move {
                        if let Some(serving) = identifying.await {
                            serving.await;
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection from a board");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let logging = async {
        loop {
            tokio::time::sleep(REFUSAL_LOG_INTERVAL).await;
            hub.log_repeated_refusals();
        }
    };
    tokio::select! {
        () = accepting => {}
        () = logging => {}
        () = shutdown.cancelled() => {}
    }
    hub.log_repeated_refusals();
    drop(listener);
    hub.roster.close();
    tracker.close();
    tracker.wait().await;
}
