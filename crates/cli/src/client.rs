//! The command line's way to a running gateway: one HTTP/1.1 connection, in the clear or over TLS with a
//! pinned certificate.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use sinew_api::{CallLine, CallRequest, CallResult, Paged, Readiness, RefusedRequest, TOKEN_EXPIRED};
use sinew_compose::state;
use sinew_tool::ToolError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::args::ReachArgs;
use crate::error::{CliError, CliErrorKind};
use crate::fingerprint::{self, Fingerprint};

/// 64 MiB: larger than any answer the gateway lets through.
const MAX_ANSWER: usize = 64 << 20;

/// Items of a page, as many as the gateway gives at once.
const PAGE: usize = 1_000;

const CALL: &str = "/api/v1/call";
/// An answer in lines.
const LINES: &str = "application/x-ndjson";

/// 10 s: a gateway on this or a near machine that does not take a connection by then is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a gateway is and what opens it.
#[derive(Clone, Debug)]
pub struct GatewayTarget {
    pub url: Uri,
    pub token: Option<String>,
    pub fingerprint: Option<Fingerprint>,
    /// The certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// The state directory whose gateway's own token this is.
    pub own_token_of: Option<PathBuf>,
    /// Which gateway this is, for messages.
    pub description: String,
}

pub struct GatewayClient {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    token: Option<String>,
    tls: bool,
}

/// Takes what is reported before the answer of a call.
pub type Report<'a> = &'a (dyn Fn(CallLine) + Send + Sync);

/// A stream of either kind.
pub trait GatewayStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> GatewayStream for T {}

impl GatewayTarget {
    /// The gateway that is named, else the one that runs on the state directory, else the demo's.
    pub fn find(reach: &ReachArgs) -> Result<GatewayTarget, CliError> {
        if let Some(target) = GatewayTarget::named(reach)? {
            return Ok(target);
        }
        let directory = reach.state.directory()?;
        let running = state::find_running(&directory).ok_or_else(|| {
            CliError::new(
                CliErrorKind::NoGateway,
                format!(
                    "no gateway runs on {}; start one with `sinew demo` or `sinew serve`, or name one with --url",
                    directory.display()
                ),
            )
        })?;
        GatewayTarget::of_running(&running, reach)
    }

    /// The gateway that `--url` names.
    pub fn named(reach: &ReachArgs) -> Result<Option<GatewayTarget>, CliError> {
        let Some(url) = &reach.url else { return Ok(None) };
        let mut target = GatewayTarget::of_server(url, reach.token.as_deref(), reach.fingerprint.as_deref())?;
        target.ca = reach.ca.clone();
        // The same gateway as the one on our own state directory: its token and certificate are known.
        let directory = reach.state.directory()?;
        if let Some(running) = state::find_running(&directory)
            && let own = parse_url(&running.addresses.url)?
            && is_same_place(&own, &target.url)
        {
            if url.contains("://") && own.scheme() != target.url.scheme() {
                let message =
                    format!("`{url}` has the wrong scheme: the gateway there is at {}", running.addresses.url);
                return Err(CliError::new(CliErrorKind::Usage, message));
            }
            return GatewayTarget::of_running(&running, reach).map(Some);
        }
        Ok(Some(target))
    }

    pub fn of_running(running: &state::LocalGateway, reach: &ReachArgs) -> Result<GatewayTarget, CliError> {
        let fingerprint = reach.fingerprint.as_deref().or(running.addresses.fingerprint.as_deref());
        Ok(GatewayTarget {
            url: parse_url(&running.addresses.url)?,
            token: Some(reach.token.clone().unwrap_or_else(|| running.addresses.token.clone())),
            fingerprint: fingerprint.map(Fingerprint::parse).transpose()?,
            ca: reach.ca.clone(),
            description: running.describe(),
            own_token_of: reach.token.is_none().then(|| running.directory.clone()),
        })
    }

    pub fn with_token(&self, token: String) -> GatewayTarget {
        GatewayTarget { token: Some(token), own_token_of: None, ..self.clone() }
    }

    /// An MCP server, or a gateway elsewhere.
    pub fn of_server(url: &str, token: Option<&str>, fingerprint: Option<&str>) -> Result<GatewayTarget, CliError> {
        let fingerprint = fingerprint.map(Fingerprint::parse).transpose()?;
        Ok(GatewayTarget {
            url: parse_url(url)?,
            token: token.map(str::to_owned),
            fingerprint,
            ca: None,
            own_token_of: None,
            description: format!("the gateway at {url}"),
        })
    }

    /// An open connection, for other protocols than the gateway's.
    pub async fn stream(&self) -> Result<Box<dyn GatewayStream>, CliError> {
        let authority = self.url.authority().map(ToString::to_string).unwrap_or_default();
        tokio::time::timeout(CONNECT, self.open(&authority))
            .await
            .map_err(|_| unreachable(&self.url, "it does not take the connection"))?
    }

    pub async fn connect(&self) -> Result<GatewayClient, CliError> {
        let authority = self.url.authority().map(ToString::to_string).unwrap_or_default();
        let stream = self.stream().await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&self.url, error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!("connection to the gateway: {error}");
            }
        });
        Ok(GatewayClient { sender, authority, token: self.token.clone(), tls: self.is_https() })
    }

    /// Whether the gateway is there and accepts the token.
    pub async fn check(&self) -> Result<(), CliError> {
        let _: IgnoredAny = self.connect().await?.get("/api/v1/devices?limit=1").await?;
        Ok(())
    }

    fn is_https(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    async fn open(&self, authority: &str) -> Result<Box<dyn GatewayStream>, CliError> {
        let tls = self.is_https();
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = self.url.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| unreachable(&self.url, error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&self.url, error))?;
        if !tls {
            return Ok(Box::new(stream));
        }
        let config = match &self.fingerprint {
            Some(fingerprint) => fingerprint::client_config(fingerprint)?,
            None => fingerprint::trusting(self.ca.as_deref())?,
        };
        let connector = TlsConnector::from(Arc::new(config));
        let name = rustls::pki_types::ServerName::try_from(host)
            .map_err(|_| CliError::new(CliErrorKind::Usage, format!("{authority} is not a host name")))?;
        let stream = connector.connect(name, stream).await.map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(rustls::Error::InvalidCertificate(problem)) if self.fingerprint.is_none() => {
                    let why = untrusted(problem);
                    CliError::new(CliErrorKind::NoGateway, format!("the certificate at https://{authority} {why}"))
                }
                Some(rustls::Error::InvalidCertificate(_)) => CliError::new(
                    CliErrorKind::NoGateway,
                    format!(
                        "the certificate at https://{authority} does not have the fingerprint that was given; the gateway \
                         prints its own when it starts. If it is this one, someone else answers there"
                    ),
                ),
                Some(rustls::Error::InvalidMessage(_)) => {
                    unreachable(&self.url, format!("it does not speak TLS; try http://{authority}"))
                }
                _ => unreachable(&self.url, error),
            }
        })?;
        Ok(Box::new(stream))
    }
}

impl GatewayClient {
    pub async fn get<A: DeserializeOwned>(&mut self, path: &str) -> Result<A, CliError> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Gets all pages of an answer.
    pub async fn get_all<A: DeserializeOwned + Paged>(&mut self, path: &str) -> Result<A, CliError> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}limit={PAGE}");
        let mut whole: A = self.get(&path).await?;
        while let Some(after) = whole.take_next() {
            whole.append(self.get(&format!("{path}&after={}", encode(&after))).await?);
        }
        Ok(whole)
    }

    pub async fn post<A: DeserializeOwned>(&mut self, path: &str, body: &impl Serialize) -> Result<A, CliError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| CliError::new(CliErrorKind::Usage, format!("cannot ask for {path}: {error}")))?;
        self.send(Method::POST, path, body.into()).await
    }

    /// Makes a call. What comes before the answer goes to `report` as it comes.
    pub async fn call(&mut self, call: &CallRequest, report: Report<'_>) -> Result<CallResult, CliError> {
        let unsent = |error: &dyn std::fmt::Display| {
            CliError::new(CliErrorKind::Usage, format!("cannot ask for {CALL}: {error}"))
        };
        let body = serde_json::to_vec(call).map_err(|error| unsent(&error))?;
        let request = self
            .request(Method::POST, CALL)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, LINES)
            .body(Full::new(body.into()))
            .map_err(|error| unsent(&error))?;
        self.sender.ready().await.map_err(|error| self.broken(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        let has_lines = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == LINES);
        let mut body = Limited::new(answer.into_body(), MAX_ANSWER);
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ended_early(&error))?;
            read.extend_from_slice(&frame.into_data().unwrap_or_default());
            while has_lines && let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = read.drain(..=end).collect();
                match serde_json::from_slice(&line) {
                    Ok(CallLine::Result(result)) => return Ok(result),
                    Ok(CallLine::Error(error)) => {
                        return Err(ToolError::from_object(&error).map_or_else(unexpected_line, CliError::from));
                    }
                    Ok(line @ (CallLine::Progress(_) | CallLine::Log(_) | CallLine::Waiting(_))) => report(line),
                    Err(_) => return Err(unexpected_line()),
                }
            }
        }
        match has_lines {
            true => Err(ended_early(&"it has no answer")),
            // A refusal, or a gateway that knows no lines.
            false => self.read(status, &read),
        }
    }

    /// Asks for a file and writes it while it comes.
    pub async fn download(&mut self, path: &str, out: &mut impl Write) -> Result<(), CliError> {
        let request = self
            .request(Method::POST, path)
            .body(Full::default())
            .map_err(|error| CliError::new(CliErrorKind::Usage, format!("cannot ask for {path}: {error}")))?;
        self.sender.ready().await.map_err(|error| self.broken(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        let mut body = answer.into_body();
        if !status.is_success() {
            let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| ended_early(&error))?;
            return match self.read::<IgnoredAny>(status, &body.to_bytes()) {
                Err(failure) => Err(failure),
                Ok(_) => Err(unexpected_line()),
            };
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ended_early(&error))?;
            let written = out.write_all(&frame.into_data().unwrap_or_default());
            written.map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot write the file: {error}")))?;
        }
        Ok(())
    }

    pub async fn delete<A: DeserializeOwned>(&mut self, path: &str) -> Result<A, CliError> {
        self.send(Method::DELETE, path, Bytes::new()).await
    }

    /// Whether the gateway can make calls. One that cannot says why, with a status that is an error elsewhere.
    pub async fn readiness(&mut self) -> Result<Readiness, CliError> {
        const PATH: &str = "/ready";
        let (status, body) = self.exchange(Method::GET, PATH, Bytes::new()).await?;
        match serde_json::from_slice(&body) {
            Ok(readiness) if status == StatusCode::SERVICE_UNAVAILABLE => Ok(readiness),
            _ => self.read(status, &body),
        }
    }

    async fn send<A: DeserializeOwned>(&mut self, method: Method, path: &str, body: Bytes) -> Result<A, CliError> {
        let (status, body) = self.exchange(method, path, body).await?;
        self.read(status, &body)
    }

    async fn exchange(&mut self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Bytes), CliError> {
        let request = self
            .request(method, path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| CliError::new(CliErrorKind::Usage, format!("cannot ask for {path}: {error}")))?;
        self.sender.ready().await.map_err(|error| self.broken(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| ended_early(&error))?;
        Ok((status, body.to_bytes()))
    }

    /// Turns the connection into a stream of newline-delimited MCP.
    pub async fn upgrade(mut self, path: &str) -> Result<impl GatewayStream + use<>, CliError> {
        let request = self
            .request(Method::GET, path)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "sinew-mcp")
            .body(Full::default())
            .map_err(|error| CliError::new(CliErrorKind::Usage, format!("cannot ask for {path}: {error}")))?;
        self.sender.ready().await.map_err(|error| self.broken(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            return match self.read::<IgnoredAny>(status, &body) {
                Err(failure) if !status.is_success() => Err(failure),
                _ => {
                    Err(CliError::new(CliErrorKind::Io, format!("the gateway did not open the stream: HTTP {status}")))
                }
            };
        }
        hyper::upgrade::on(answer).await.map(TokioIo::new).map_err(|error| self.broken(&error))
    }

    fn read<A: DeserializeOwned>(&self, status: StatusCode, body: &[u8]) -> Result<A, CliError> {
        if status == StatusCode::UNAUTHORIZED && self.token.is_none() {
            let message = "the gateway needs a token; give one with --token or SINEW_TOKEN, or, on the gateway's machine, \
                           name its state directory with --state";
            return Err(CliError::new(CliErrorKind::TokenRefused, message));
        }
        read_answer(status, body)
    }

    fn broken(&self, error: &hyper::Error) -> CliError {
        let authority = &self.authority;
        let message = match error.is_parse() {
            // A TLS server answers a plain request with an alert.
            true if !self.tls => format!(
                "http://{authority} does not answer in HTTP and seems to speak TLS; try https://{authority} with --fingerprint"
            ),
            _ => format!("the connection to the gateway broke: {error}"),
        };
        CliError::new(CliErrorKind::NoGateway, message)
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(path).header(header::HOST, &self.authority);
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }
}

fn ended_early(why: &dyn std::fmt::Display) -> CliError {
    CliError::new(CliErrorKind::Io, format!("the gateway closed the connection before its answer ended: {why}"))
}

fn unexpected_line() -> CliError {
    CliError::new(CliErrorKind::Io, "a line of the gateway's answer cannot be read; is this a Sinew gateway?")
}

/// Why a certificate is not trusted, and what helps.
fn untrusted(problem: &CertificateError) -> String {
    let pin = "give its SHA-256 with --fingerprint, which the gateway prints when it starts";
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("has expired; renew it, or {pin}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("is not valid yet; check the clocks of both machines, or {pin}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("is for another name; use a name that it has in --url, or {pin}")
        }
        _ => format!(
            "is not signed by an authority that this system trusts; {pin}, or name the authority with --ca FILE"
        ),
    }
}

fn read_answer<A: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<A, CliError> {
    if status.is_success() {
        return serde_json::from_slice(body).map_err(|error| {
            let message = format!("the gateway's answer cannot be read ({error}); is this a Sinew gateway?");
            CliError::new(CliErrorKind::Io, message)
        });
    }
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let is_expired = value.as_ref().is_some_and(|value| value["error"] == TOKEN_EXPIRED);
    if status == StatusCode::UNAUTHORIZED && !is_expired {
        return Err(CliError::new(
            CliErrorKind::TokenRefused,
            "the gateway does not accept the token; give a valid one with --token or SINEW_TOKEN, or use the gateway's \
             own from the file `token` in its state directory",
        ));
    }
    if let Some(error) = value.as_ref().and_then(ToolError::from_object) {
        return Err(error.into());
    }
    // A refusal before any protocol began has a sentence of its own.
    let refused = value.and_then(|value| serde_json::from_value::<RefusedRequest>(value).ok());
    let kind = match &refused {
        _ if status == StatusCode::FORBIDDEN || is_expired => CliErrorKind::TokenRefused,
        Some(refused) if refused.error == "https_required" => CliErrorKind::NoGateway,
        _ => CliErrorKind::Io,
    };
    let message = refused.map_or_else(|| unexpected(status), |refused| refused.message);
    let details = if is_expired { json!({"token": "expired"}) } else { Value::Null };
    Err(CliError { details, ..CliError::new(kind, message) })
}

fn parse_url(text: &str) -> Result<Uri, CliError> {
    let wrong = || {
        CliError::new(
            CliErrorKind::Usage,
            format!("`{text}` is not a gateway address; expected HOST:PORT, http://HOST:PORT or https://HOST:PORT"),
        )
    };
    let is_whole = text.contains("://");
    let url: Uri = if is_whole { text.parse() } else { format!("http://{text}").parse() }.map_err(|_| wrong())?;
    let fits = matches!(url.scheme_str(), Some("http" | "https"))
        && url.host().is_some_and(|host| !host.is_empty())
        && (is_whole || url.port().is_some());
    fits.then_some(url).ok_or_else(wrong)
}

fn unexpected(status: StatusCode) -> String {
    let hint = match status {
        StatusCode::NOT_FOUND => "; is this the address for clients? `sinew status` on its machine shows it",
        _ => "",
    };
    format!("the gateway answered HTTP {status}{hint}")
}

/// Whether both addresses lead to the same listener; a machine has several names for itself.
fn is_same_place(one: &Uri, other: &Uri) -> bool {
    let is_loopback = |url: &Uri| matches!(url.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    one.port_u16() == other.port_u16() && (one.host() == other.host() || (is_loopback(one) && is_loopback(other)))
}

fn unreachable(url: &Uri, why: impl std::fmt::Display) -> CliError {
    CliError::new(
        CliErrorKind::NoGateway,
        format!("cannot reach a gateway at {url}: {why}; is it running? `sinew doctor` looks closer"),
    )
}

/// A value for use in a path or query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn values_are_safe_in_a_path() {
        assert_eq!(encode("küche/1?"), "k%C3%BCche%2F1%3F");
    }

    #[tokio::test]
    async fn all_pages_of_an_answer_are_read() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = listener.local_addr().expect("an address").to_string();
        let pages = [
            ("/api/v1/tokens?limit=1000", json!({"tokens": [], "total": 0, "next": "1-a b"})),
            ("/api/v1/tokens?limit=1000&after=1-a%20b", json!({"tokens": [], "total": 7})),
        ];
        let serve = async {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut stream = tokio::io::BufReader::new(stream);
            for (path, page) in pages {
                let mut asked = String::new();
                while !asked.ends_with("\r\n\r\n") {
                    stream.read_line(&mut asked).await.expect("a request");
                }
                assert!(asked.starts_with(&format!("GET {path} ")), "{asked}");
                let body = page.to_string();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.expect("sent");
            }
        };
        let read = async {
            let target = GatewayTarget::of_server(&url, None, None).expect("a target");
            let mut client = target.connect().await.expect("a connection");
            client.get_all::<sinew_api::TokenList>("/api/v1/tokens").await.expect("all pages")
        };
        let (whole, ()) = tokio::join!(read, serve);
        assert_eq!(whole.next, None);
    }

    #[test]
    fn an_address_needs_a_host_and_may_have_a_scheme() {
        assert!(parse_url("https://[::1]:7300/").is_ok());
        for plain in ["localhost:7300", "127.0.0.1:7300", "http://127.0.0.1:7300"] {
            let url = parse_url(plain).expect("an address");
            assert_eq!((url.scheme_str(), url.port_u16()), (Some("http"), Some(7300)), "{plain}");
            assert!(is_same_place(&url, &parse_url("http://127.0.0.1:7300").expect("an address")));
        }
        let other = parse_url("localhost:7400").expect("an address");
        assert!(!is_same_place(&other, &parse_url("http://127.0.0.1:7300").expect("an address")));
        for wrong in ["ftp://x", "http://", "", "http://a b", "a b:7300", "nonsense"] {
            assert_eq!(parse_url(wrong).map_err(|failure| failure.exit), Err(2), "{wrong:?}");
        }
    }

    #[test]
    fn a_failure_of_the_gateway_keeps_its_row() {
        let object = ToolError::new(sinew_tool::ErrorKind::Timeout, "too slow").to_object();
        let read_answer = read_answer::<Value>;
        let failure = read_answer(StatusCode::GATEWAY_TIMEOUT, object.to_string().as_bytes()).expect_err("a failure");
        assert_eq!((failure.exit, failure.error_type), (75, "Timeout"));
        assert_eq!(read_answer(StatusCode::UNAUTHORIZED, b"").map_err(|failure| failure.exit), Err(77));
        let expired = br#"{"error": "token_expired", "message": "it expired yesterday"}"#;
        let failure = read_answer(StatusCode::UNAUTHORIZED, expired).expect_err("a failure");
        assert_eq!((failure.exit, failure.message.as_str()), (77, "it expired yesterday"));
        let forbidden = br#"{"error": "forbidden", "message": "this needs an admin token"}"#;
        let failure = read_answer(StatusCode::FORBIDDEN, forbidden).expect_err("a failure");
        assert_eq!((failure.exit, failure.message.as_str()), (77, "this needs an admin token"));
        assert_eq!(read_answer(StatusCode::BAD_GATEWAY, b"<html>").map_err(|failure| failure.exit), Err(74));
    }
}
