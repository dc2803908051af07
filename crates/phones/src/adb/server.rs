//! The adb server: finding it, starting it, asking it.
//!
//! A request is four hexadecimal digits of length and the text; the answer is `OKAY` or `FAIL` and a
//! message. One socket serves one request, or one service of one phone.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use sinew_tool::text::log_line;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::phone::PhoneError;

/// Where the server listens unless the environment says otherwise.
const DEFAULT_PORT: u16 = 5037;

/// Four hexadecimal digits of length.
pub const MAX_REQUEST: usize = 0xffff;

/// The server answers from memory; more than this means that it hangs.
const ANSWER: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum AdbError {
    #[error(
        "no adb server answers at {address} ({why}); install Android's platform-tools, or start it with `adb start-server`"
    )]
    NoServer { address: String, why: String },
    /// The server's own message.
    #[error("adb: {0}")]
    Refused(String),
    #[error("the phone disconnected during `{0}`")]
    Gone(String),
    #[error("`{what}` took longer than {} s", limit.as_secs_f32())]
    Timeout { what: String, limit: Duration },
    #[error("`{what}` answered more than {limit} bytes")]
    TooLarge { what: String, limit: usize },
    #[error("the folder has more than {0} files; name a smaller one")]
    TooMany(usize),
    #[error("the request of {0} bytes is longer than adb carries ({MAX_REQUEST})")]
    TooLong(usize),
    #[error("adb sent an unexpected answer: {0}")]
    Garbled(String),
    /// The other end of a transfer: a file on this computer, a client that uploads.
    #[error("the transfer ended early: {0}")]
    Source(String),
}

/// The only place where an adb error becomes a phone's.
impl From<AdbError> for PhoneError {
    fn from(error: AdbError) -> PhoneError {
        let message = error.to_string();
        match error {
            AdbError::Refused(why) if why.contains("unauthorized") => {
                PhoneError::Denied(format!("{message}; unlock the phone and allow USB debugging for this computer"))
            }
            AdbError::Refused(why)
                if why.contains("not found") || why.contains("offline") || why.contains("closed") =>
            {
                PhoneError::Gone(message)
            }
            AdbError::Gone(_) | AdbError::NoServer { .. } => PhoneError::Gone(message),
            AdbError::Timeout { .. } => PhoneError::Timeout(message),
            AdbError::TooLong(_) => PhoneError::Invalid(message),
            AdbError::TooLarge { .. } | AdbError::TooMany(_) => PhoneError::TooLarge(message),
            AdbError::Refused(_) | AdbError::Garbled(_) | AdbError::Source(_) => PhoneError::Failed(message),
        }
    }
}

/// The address of an adb server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdbServer {
    address: AdbServerAddress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AdbServerAddress {
    Tcp(String, u16),
    #[cfg(unix)]
    File(std::path::PathBuf),
}

impl fmt::Display for AdbServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdbServerAddress::Tcp(host, port) => write!(f, "{host}:{port}"),
            #[cfg(unix)]
            AdbServerAddress::File(path) => write!(f, "{}", path.display()),
        }
    }
}

pub trait AdbSocket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> AdbSocket for T {}

/// An open connection to a service.
pub type AdbStream = Box<dyn AdbSocket>;

impl AdbServer {
    pub fn tcp(host: impl Into<String>, port: u16) -> AdbServer {
        AdbServer { address: AdbServerAddress::Tcp(host.into(), port) }
    }

    /// Where `ADB_SERVER_SOCKET` or `ANDROID_ADB_SERVER_PORT` point, as adb itself reads them.
    pub fn from_env() -> Result<AdbServer, AdbError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        AdbServer::from_settings(
            variable("ADB_SERVER_SOCKET").as_deref(),
            variable("ANDROID_ADB_SERVER_PORT").as_deref(),
        )
    }

    fn from_settings(socket: Option<&str>, port: Option<&str>) -> Result<AdbServer, AdbError> {
        let wrong = |name: &str, value: &str, expected: &str| AdbError::NoServer {
            address: format!("{name}={value}"),
            why: format!("expected {expected}"),
        };
        let Some(socket) = socket else {
            let port = match port {
                None => DEFAULT_PORT,
                Some(text) => {
                    let number = text.parse().ok().filter(|port| *port > 0);
                    number.ok_or_else(|| wrong("ANDROID_ADB_SERVER_PORT", text, "a port from 1 to 65535"))?
                }
            };
            return Ok(AdbServer::tcp("127.0.0.1", port));
        };
        let wrong = || wrong("ADB_SERVER_SOCKET", socket, "tcp:PORT, tcp:HOST:PORT or localfilesystem:PATH");
        #[cfg(unix)]
        if let Some(path) = socket.strip_prefix("localfilesystem:") {
            return Ok(AdbServer { address: AdbServerAddress::File(path.into()) });
        }
        let place = socket.strip_prefix("tcp:").ok_or_else(wrong)?;
        let (host, port) = place.rsplit_once(':').unwrap_or(("127.0.0.1", place));
        let host = if host == "localhost" { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
        Ok(AdbServer::tcp(host, port.parse().map_err(|_| wrong())?))
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Makes sure that a server runs: asks it, and starts it where `adb` is on the PATH and the server
    /// would be on this machine. Gives the protocol version.
    pub async fn ensure(&self) -> Result<u32, AdbError> {
        match self.version().await {
            Err(AdbError::NoServer { address, why }) => {
                self.start().await.map_err(|error| AdbError::NoServer { address, why: format!("{why}; {error}") })?;
                self.version().await
            }
            answer => answer,
        }
    }

    async fn start(&self) -> Result<(), String> {
        let AdbServerAddress::Tcp(host, port) = &self.address else {
            return Err("it is not started at a socket file".to_owned());
        };
        if host != "127.0.0.1" && host != "::1" {
            return Err("it is not started on another machine".to_owned());
        }
        let mut command = tokio::process::Command::new("adb");
        command.args(["-P", &port.to_string(), "start-server"]).env_remove("ADB_SERVER_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        // 20 s: a cold start looks for USB devices first.
        match timeout(Duration::from_secs(20), command.status()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("`adb start-server` failed with {status}")),
            Ok(Err(error)) => Err(format!("`adb` could not be run: {error}")),
            Err(_) => Err("`adb start-server` did not come back".to_owned()),
        }
    }

    pub async fn version(&self) -> Result<u32, AdbError> {
        let text = self.query("host:version").await?;
        u32::from_str_radix(text.trim(), 16).map_err(|_| AdbError::Garbled(format!("version {text:?}")))
    }

    /// Asks for a phone at `IP:PORT`. The server says OKAY also when it fails; its text tells.
    pub async fn connect_phone(&self, address: &str) -> Result<String, AdbError> {
        let answer = self.query(&format!("host:connect:{}", checked(address)?)).await?;
        match answer.contains("connected to") && !answer.contains("failed") && !answer.contains("cannot") {
            true => Ok(answer),
            false => Err(AdbError::Refused(answer)),
        }
    }

    pub async fn disconnect_phone(&self, address: &str) -> Result<String, AdbError> {
        self.query(&format!("host:disconnect:{}", checked(address)?)).await
    }

    /// Pairs with a phone that shows a six-digit code (Android 11 and later).
    pub async fn pair(&self, address: &str, code: &str) -> Result<String, AdbError> {
        if !(code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(AdbError::Refused("the pairing code is the six digits that the phone shows".to_owned()));
        }
        match self.query(&format!("host:pair:{code}:{}", checked(address)?)).await {
            Ok(answer) if answer.starts_with("Successfully") => Ok(answer),
            Ok(answer) => Err(AdbError::Refused(answer)),
            Err(AdbError::Refused(why)) if why.contains("unknown host service") => {
                let version = self.version().await.map(|version| version.to_string()).unwrap_or_default();
                let message = format!(
                    "this adb server (protocol {version}) cannot pair; platform-tools 30.0.0 or newer is needed"
                );
                Err(AdbError::Refused(message))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a phone offers a feature, `shell_v2` for example.
    pub async fn features(&self, serial: &str) -> Result<Vec<String>, AdbError> {
        let text = self.query(&format!("host-serial:{serial}:features")).await?;
        Ok(text.split(',').map(|feature| feature.trim().to_owned()).collect())
    }

    /// A request whose answer is one block of text.
    pub async fn query(&self, request: &str) -> Result<String, AdbError> {
        let what = request.split(':').take(2).collect::<Vec<_>>().join(":");
        let work = async {
            let mut stream = self.open(request).await?;
            read_block(&mut stream).await
        };
        timeout(ANSWER, work).await.unwrap_or(Err(AdbError::Timeout { what, limit: ANSWER }))
    }

    /// A connection on which the server has accepted a request.
    pub async fn open(&self, request: &str) -> Result<AdbStream, AdbError> {
        let no_server = |error: std::io::Error| AdbError::NoServer { address: self.address(), why: error.to_string() };
        let mut stream: AdbStream = match &self.address {
            AdbServerAddress::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(no_server)?;
                // Requests are small and waited for: no gathering.
                let _ = stream.set_nodelay(true);
                Box::new(stream)
            }
            #[cfg(unix)]
            AdbServerAddress::File(path) => Box::new(tokio::net::UnixStream::connect(path).await.map_err(no_server)?),
        };
        send_request(&mut stream, request).await?;
        Ok(stream)
    }

    pub fn transport(&self, serial: impl Into<String>, shell_v2: bool) -> AdbTransport {
        AdbTransport { server: self.clone(), serial: serial.into(), shell_v2, large_files: false }
    }
}

/// A phone's address as it may stand in a request.
pub(super) fn checked(address: &str) -> Result<&str, AdbError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_[]%".contains(&byte);
    match !address.is_empty() && address.len() <= 255 && address.bytes().all(plain) {
        true => Ok(address),
        false => Err(AdbError::Refused(format!("{address:?} is not the address of a phone; expected IP:PORT"))),
    }
}

/// A phone as the adb server reaches it.
#[derive(Clone, Debug)]
pub struct AdbTransport {
    pub(super) server: AdbServer,
    pub serial: String,
    /// Whether the phone's shell tells errors and exit codes apart (Android 7 and later).
    pub shell_v2: bool,
    /// Whether it lists files with sizes of 64 bits (Android 11 and later).
    pub large_files: bool,
}

impl AdbTransport {
    /// A connection to a service of the phone: `shell,v2,raw:…`, `sync:`, `tcp:9008`.
    pub async fn open(&self, service: &str) -> Result<AdbStream, AdbError> {
        tracing::debug!(phone = %self.serial, "opening: {}", log_line(service));
        let mut stream = self.server.open(&format!("host:transport:{}", self.serial)).await?;
        send_request(&mut stream, service).await?;
        Ok(stream)
    }
}

async fn send_request(stream: &mut AdbStream, request: &str) -> Result<(), AdbError> {
    if request.len() > MAX_REQUEST {
        return Err(AdbError::TooLong(request.len()));
    }
    let what = || request.split([':', ' ']).next().unwrap_or_default().to_owned();
    let gone = |_: std::io::Error| AdbError::Gone(what());
    stream.write_all(format!("{:04x}{request}", request.len()).as_bytes()).await.map_err(gone)?;
    stream.flush().await.map_err(gone)?;
    let mut status = [0; 4];
    stream.read_exact(&mut status).await.map_err(gone)?;
    match &status {
        b"OKAY" => Ok(()),
        b"FAIL" => Err(AdbError::Refused(read_block(stream).await?)),
        other => Err(AdbError::Garbled(format!("status {:?}", String::from_utf8_lossy(other)))),
    }
}

/// Four hexadecimal digits of length, and so much text.
pub async fn read_block(stream: &mut AdbStream) -> Result<String, AdbError> {
    let gone = |_: std::io::Error| AdbError::Gone("an answer of the adb server".to_owned());
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).await.map_err(gone)?;
    let length = std::str::from_utf8(&digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let length = length.ok_or_else(|| AdbError::Garbled(format!("length {:?}", String::from_utf8_lossy(&digits))))?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await.map_err(gone)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_as_adb_reads_it() {
        let at = |socket, port| AdbServer::from_settings(socket, port).map(|server| server.address()).map_err(|_| ());
        assert_eq!(at(None, None), Ok("127.0.0.1:5037".to_owned()));
        assert_eq!(at(None, Some("6000")), Ok("127.0.0.1:6000".to_owned()));
        assert_eq!(at(Some("tcp:7000"), Some("6000")), Ok("127.0.0.1:7000".to_owned()));
        assert_eq!(at(Some("tcp:localhost:7000"), None), Ok("127.0.0.1:7000".to_owned()));
        assert_eq!(at(Some("tcp:10.0.0.9:7000"), None), Ok("10.0.0.9:7000".to_owned()));
        assert_eq!(at(Some("tcp:[::1]:7000"), None), Ok("::1:7000".to_owned()));
        #[cfg(unix)]
        assert_eq!(at(Some("localfilesystem:/tmp/adb"), None), Ok("/tmp/adb".to_owned()));
        for (socket, port) in [(Some("vsock:1"), None), (Some("tcp:x"), None), (None, Some("0")), (None, Some("port"))]
        {
            assert_eq!(at(socket, port), Err(()));
        }
    }

    #[test]
    fn an_address_cannot_smuggle_another_request() {
        assert!(checked("192.168.1.5:5555").is_ok());
        assert!(checked("[fe80::1%wlan0]:5555").is_ok());
        for wrong in ["", "a b", "x;y", "1.2.3.4:5\n", "../x"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_keep_their_meaning_for_the_caller() {
        let phone = |error: AdbError| PhoneError::from(error);
        assert!(matches!(phone(AdbError::Refused("device unauthorized.".to_owned())), PhoneError::Denied(_)));
        assert!(matches!(phone(AdbError::Refused("device 'x' not found".to_owned())), PhoneError::Gone(_)));
        assert!(matches!(phone(AdbError::Refused("device offline".to_owned())), PhoneError::Gone(_)));
        assert!(matches!(phone(AdbError::TooLong(70_000)), PhoneError::Invalid(_)));
    }
}
