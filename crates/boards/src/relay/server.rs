//! Where the voice server is, and how it is dialled.

use std::fmt;
use std::time::Duration;

use http::{HeaderValue, Uri};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::dial::{DialledStream, WebAddress};

/// A voice server sends texts of some kilobytes and single frames of sound.
pub(crate) const MAX_SERVER_MESSAGE_BYTES: usize = 256 << 10;

/// `sinew doctor` waits this long.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The board that does not exist.
const PROBED_BOARD: &str = "02:00:00:00:00:00";
const PROBED_CLIENT: &str = "sinew-doctor";

pub(crate) type ServerSocket = WebSocketStream<Box<dyn DialledStream>>;

/// Where boards find their voice server.
#[derive(Clone, Debug)]
pub enum VoiceServer {
    At(VoiceAddress),
    /// This address says where, for each board.
    Ota(OtaAddress),
}

/// The WebSocket of a voice server.
#[derive(Clone)]
pub struct VoiceAddress {
    url: String,
    address: WebAddress,
    token: Option<HeaderValue>,
    /// Whether it may name addresses for photos without TLS.
    allows_plain: bool,
}

/// The address at which a voice server tells boards their settings.
#[derive(Clone)]
pub struct OtaAddress {
    pub(crate) address: WebAddress,
    /// Whether voice servers it names may be reached without TLS.
    pub(crate) allows_plain: bool,
}

impl VoiceAddress {
    /// `allows_plain`: also without TLS on other machines.
    pub fn new(url: &str, token: Option<&str>, allows_plain: bool) -> Result<VoiceAddress, String> {
        let address = WebAddress::parse(url, ["ws", "wss"])
            .and_then(|address| check_encryption(address, allows_plain, "wss"))
            .map_err(|why| format!("the address of the voice server cannot be used: {why}"))?;
        let token = token.filter(|token| !token.is_empty()).map(to_header).transpose()?;
        Ok(VoiceAddress { url: url.to_owned(), address, token, allows_plain })
    }

    /// An address that this server names, if we may use it.
    pub(crate) fn allow(&self, named: WebAddress) -> Result<WebAddress, String> {
        let named = named.named_by(&self.address)?;
        check_encryption(named, self.allows_plain, "https")
    }

    /// The same server, as the settings at `ota` name it.
    pub(crate) fn named_by(self, ota: &OtaAddress) -> Result<VoiceAddress, String> {
        let address = self.address.named_by(&ota.address);
        let address = address.map_err(|why| format!("the address of the voice server cannot be used: {why}"))?;
        Ok(VoiceAddress { address, ..self })
    }

    pub(crate) fn host(&self) -> &str {
        &self.address.host
    }

    /// Connects as a board does. With `has_timestamps` each frame of sound has a header, as servers that cancel echoes want
    /// it.
    pub(crate) async fn dial(&self, board: &BoardHeaders<'_>, has_timestamps: bool) -> Result<ServerSocket, String> {
        let host = self.host();
        let failed = |why: &str| format!("the voice server {host} cannot be reached: {why}");
        let request = self.request(board, has_timestamps).map_err(|why| failed(&why))?;
        let stream = self.address.connect().await.map_err(|error| failed(&error.to_string()))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(4096)
            .write_buffer_size(0)
            .max_write_buffer_size(2 * MAX_SERVER_MESSAGE_BYTES)
            .max_message_size(Some(MAX_SERVER_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_SERVER_MESSAGE_BYTES));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) => Err(format!("the voice server {host} refused the board: {}", answer.status())),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    fn request(&self, board: &BoardHeaders<'_>, has_timestamps: bool) -> Result<Request, String> {
        let mut request = self.url(has_timestamps)?.into_client_request().map_err(|error| error.to_string())?;
        let version = board.protocol_version.to_string();
        let headers = request.headers_mut();
        for (name, value) in
            [("device-id", board.device_id), ("client-id", board.client_id), ("protocol-version", &version)]
        {
            headers.insert(name, HeaderValue::from_str(value).map_err(|_| format!("its {name} is not plain text"))?);
        }
        if let Some(token) = &self.token {
            headers.insert("authorization", token.clone());
        }
        Ok(request)
    }

    fn url(&self, has_timestamps: bool) -> Result<Uri, String> {
        let separator = if self.address.uri.query().is_some() { '&' } else { '?' };
        let url = match has_timestamps {
            true => format!("{}{separator}from=mqtt_gateway", self.url),
            false => self.url.clone(),
        };
        url.parse().map_err(|_| "its address is not valid".to_owned())
    }

    /// Whether it takes a connection; nothing is said on it.
    pub async fn probe(&self) -> Result<(), String> {
        let nobody = BoardHeaders { device_id: PROBED_BOARD, client_id: PROBED_CLIENT, protocol_version: 1 };
        let dialled = timeout(PROBE_TIME, self.dial(&nobody, false)).await;
        let late = || format!("the voice server {} did not answer within {} s", self.host(), PROBE_TIME.as_secs());
        dialled.map_err(|_| late())?.map(drop)
    }
}

impl OtaAddress {
    pub fn new(url: &str, allows_plain: bool) -> Result<OtaAddress, String> {
        let address = WebAddress::parse(url, ["http", "https"])
            .and_then(|address| check_encryption(address, allows_plain, "https"))
            .map_err(|why| format!("the OTA address of the voice server cannot be used: {why}"))?;
        Ok(OtaAddress { address, allows_plain })
    }

    /// The address below this one, as firmware makes it: with one slash between them.
    pub(crate) fn below(&self, path: &str) -> Result<WebAddress, String> {
        if path.is_empty() {
            return Ok(self.address.clone());
        }
        let base = self.address.uri.path().trim_end_matches('/');
        self.address.at_path(&format!("{base}/{path}"))
    }

    /// Whether it has settings with which a board can talk. It is asked as by a board that does not exist, whose voice
    /// server is then dialled, unless that board would have to be activated first.
    pub async fn probe(&self) -> Result<(), String> {
        match self.settings_of_nobody(PROBED_BOARD, PROBED_CLIENT).await? {
            Some(address) => address.probe().await,
            None => Ok(()),
        }
    }
}

/// What a voice server learns of a board when it is dialled.
pub(crate) struct BoardHeaders<'a> {
    pub(crate) device_id: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) protocol_version: u8,
}

fn check_encryption(address: WebAddress, allows_plain: bool, encrypted: &str) -> Result<WebAddress, String> {
    if address.is_encrypted() || address.is_loopback() || allows_plain {
        return Ok(address);
    }
    Err(format!(
        "it is not encrypted, and everybody on the way could listen; use {encrypted}://, or `insecure-lan = true` if you \
         trust everyone on that network"
    ))
}

/// As firmware does: a token with a space brings its own scheme.
fn to_header(token: &str) -> Result<HeaderValue, String> {
    let scheme = if token.contains(' ') { "" } else { "Bearer " };
    let mut value = HeaderValue::from_str(&format!("{scheme}{token}"))
        .map_err(|_| "the token of the voice server is not plain text".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for VoiceAddress {
    /// Without the token, and without a query that may hold one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VoiceAddress").field("host", &self.host()).finish_non_exhaustive()
    }
}

impl fmt::Debug for OtaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtaAddress").field("host", &self.address.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_server_beyond_loopback_must_be_encrypted() {
        for url in ["ws://192.168.1.5:8000/xiaozhi/v1/", "ws://voice.example/"] {
            let why = VoiceAddress::new(url, None, false).expect_err(url);
            assert!(why.contains("insecure-lan"), "{why}");
            assert!(VoiceAddress::new(url, None, true).is_ok());
        }
        for url in ["ws://127.0.0.1:8000/xiaozhi/v1/", "ws://localhost/", "ws://[::1]:8000/"] {
            assert!(VoiceAddress::new(url, None, false).is_ok(), "{url}");
        }
        for url in ["", "voice", "http://127.0.0.1/", "ws://"] {
            assert!(VoiceAddress::new(url, None, true).is_err(), "{url}");
        }
        assert!(OtaAddress::new("http://192.168.1.5/xiaozhi/ota/", false).is_err());
        assert!(OtaAddress::new("http://127.0.0.1:8003/xiaozhi/ota/", false).is_ok());
    }

    #[test]
    fn a_token_travels_as_firmware_sends_it_and_is_never_shown() {
        let board = BoardHeaders { device_id: "aa:bb", client_id: "c", protocol_version: 3 };
        for (token, header) in [("secret", "Bearer secret"), ("Own secret", "Own secret")] {
            let address = VoiceAddress::new("ws://127.0.0.1/v1/", Some(token), false).expect("valid");
            let request = address.request(&board, true).expect("valid");
            assert_eq!(request.headers()["authorization"], header);
            assert_eq!(
                (&request.headers()["device-id"], &request.headers()["protocol-version"]),
                (&"aa:bb".parse().expect("plain"), &"3".parse().expect("plain"))
            );
            assert_eq!(request.uri().to_string(), "ws://127.0.0.1/v1/?from=mqtt_gateway");
            assert!(!format!("{address:?} {request:?}").contains("secret"));
        }
    }
}
