//! Requests to one service, and their answers. Connections are used again while the service keeps them open.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::tls;
use crate::url::{AllowedHosts, HttpUrl};

/// A board answers within milliseconds; a sleeping network may need to find it first.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The head of an answer, and how much of a body is read at once.
const HEAD_BYTES: usize = 64 << 10;
/// Idle connections that are kept; boards often have four sockets in all.
const MAX_IDLE: usize = 2;
/// How long a connection may have been idle to carry a request that must not be repeated. Services close idle connections
/// after some seconds, and one that is closed while a request is on its way leaves open whether it arrived.
const MAX_IDLE_TIME: Duration = Duration::from_secs(2);
/// A service that closes an idle connection sooner closes every connection after its answer.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The request may have arrived.
    #[error("{0}")]
    Lost(String),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("the answer is compressed ({0}) although nobody asked for that; it is not read")]
    Compressed(String),
}

type Sender = SendRequest<Full<Bytes>>;

/// A client of one service. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    url: HttpUrl,
    headers: HeaderMap,
    allowed: AllowedHosts,
    tls: Option<Arc<ClientConfig>>,
    idle: Arc<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    senders: Mutex<Vec<IdleConnection>>,
    /// The service closes connections after their answer, so none is kept.
    closes: AtomicBool,
}

struct IdleConnection {
    sender: Sender,
    since: Instant,
}

impl IdleConnections {
    fn senders(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, sender: Sender) {
        let mut senders = self.senders();
        if !self.closes.load(Ordering::Relaxed) && !sender.is_closed() && senders.len() < MAX_IDLE {
            senders.push(IdleConnection { sender, since: Instant::now() });
        }
    }

    /// A connection that can be used again.
    fn take(&self, repeatable: bool) -> Option<IdleConnection> {
        let mut senders = self.senders();
        while let Some(idle) = senders.pop() {
            if idle.sender.is_closed() {
                self.note_closed(&idle);
            } else if repeatable || idle.since.elapsed() < MAX_IDLE_TIME {
                return Some(idle);
            }
        }
        None
    }

    fn note_closed(&self, idle: &IdleConnection) {
        if idle.since.elapsed() < CLOSING_TIME {
            self.closes.store(true, Ordering::Relaxed);
        }
    }
}

impl HttpClient {
    /// A client that sends these headers with each request.
    pub fn new(url: HttpUrl, headers: HeaderMap, allowed: AllowedHosts) -> Result<HttpClient, String> {
        let tls = url.is_encrypted().then(tls::system_trust).transpose()?;
        Ok(HttpClient { url, headers, allowed, tls, idle: Arc::default() })
    }

    pub fn url(&self) -> &HttpUrl {
        &self.url
    }

    /// Sends a request to the client's own path, or another of the same service. A request that is `repeatable` is sent
    /// again if a connection that was kept turns out to be closed.
    pub async fn send(
        &self,
        method: Method,
        path: Option<&str>,
        headers: HeaderMap,
        body: Bytes,
        repeatable: bool,
    ) -> Result<Answer, FetchError> {
        loop {
            let request = self.request(method.clone(), path, &headers, body.clone())?;
            let kept = self.idle.take(repeatable);
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(kept) => kept,
                None => IdleConnection { sender: self.connect().await?, since: Instant::now() },
            };
            if connection.sender.ready().await.is_err() {
                if is_kept {
                    self.idle.note_closed(&connection);
                    continue;
                }
                return Err(FetchError::Unreachable(format!("{} closes connections at once", self.url)));
            }
            let mut sender = connection.sender;
            match sender.try_send_request(request).await {
                Ok(response) => return Answer::new(response, sender, self.idle.clone()),
                Err(failed) if is_kept && (failed.message().is_some() || repeatable) => {
                    self.idle.closes.store(true, Ordering::Relaxed);
                }
                Err(failed) => {
                    let was_sent = failed.message().is_none();
                    let why = describe(&failed.into_error());
                    return Err(if was_sent { FetchError::Lost(why) } else { FetchError::Unreachable(why) });
                }
            }
        }
    }

    /// Closes the connections that are not in use.
    pub fn close_idle(&self) {
        self.idle.senders().clear();
    }

    fn request(
        &self,
        method: Method,
        path: Option<&str>,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, FetchError> {
        // Without it, the servers of some boards answer 411 to a request that may have a body.
        let is_empty_write = body.is_empty() && matches!(method, Method::POST | Method::PUT | Method::PATCH);
        let mut request = Request::builder()
            .method(method)
            .uri(path.unwrap_or(self.url.path()))
            .header(HOST, self.url.authority())
            .body(Full::new(body))
            .map_err(|error| FetchError::Unreachable(format!("the request cannot be written: {error}")))?;
        for set in [&self.headers, headers] {
            for (name, value) in set {
                request.headers_mut().insert(name, value.clone());
            }
        }
        if is_empty_write {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(request)
    }

    async fn connect(&self) -> Result<Sender, FetchError> {
        let unreachable = |why: String| FetchError::Unreachable(format!("{} cannot be reached: {why}", self.url));
        let connecting = async {
            let addresses = self.url.addresses(self.allowed).await?;
            let tcp = TcpStream::connect(addresses.as_slice()).await.map_err(|error| error.to_string())?;
            tcp.set_nodelay(true).map_err(|error| error.to_string())?;
            match &self.tls {
                None => handshake(tcp).await,
                Some(config) => {
                    let name = ServerName::try_from(self.url.host().to_owned()).map_err(|error| error.to_string())?;
                    let stream = TlsConnector::from(config.clone()).connect(name, tcp).await;
                    handshake(stream.map_err(|error| error.to_string())?).await
                }
            }
        };
        let connected = tokio::time::timeout(CONNECT_TIME, connecting).await;
        connected.unwrap_or_else(|_| Err(format!("no answer within {} s", CONNECT_TIME.as_secs()))).map_err(unreachable)
    }
}

/// Starts HTTP on a stream. The connection lives in a task of its own, which ends when its sender and body are dropped.
async fn handshake<S>(stream: S) -> Result<Sender, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let builder = http1::Builder::new().max_buf_size(HEAD_BYTES).handshake(TokioIo::new(stream));
    let (sender, connection) = builder.await.map_err(|error| describe(&error))?;
    tokio::spawn(async move {
        // Whoever waits for an answer learns of the failure from its own request.
        let _ = connection.await;
    });
    Ok(sender)
}

/// The innermost cause says what happened; the outer ones say only that something did.
fn describe(error: &hyper::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match error.is_incomplete_message() {
        true => "the connection was closed before the answer".to_owned(),
        false => innermost.to_string(),
    }
}

/// An answer whose body is read piece by piece.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    /// Goes back to the client with the end of the body.
    connection: Option<(Sender, Arc<IdleConnections>)>,
}

impl Answer {
    fn new(
        response: http::Response<Incoming>,
        sender: Sender,
        idle: Arc<IdleConnections>,
    ) -> Result<Answer, FetchError> {
        let (head, body) = response.into_parts();
        let encoding = head.headers.get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(encoding) = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return Err(FetchError::Compressed(encoding.chars().take(32).collect()));
        }
        Ok(Answer { status: head.status, headers: head.headers, body, connection: Some((sender, idle)) })
    }

    /// A header as text; empty where it is missing or not text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            match self.body.frame().await {
                None => {
                    if let Some((sender, idle)) = self.connection.take() {
                        idle.keep(sender);
                    }
                    return Ok(None);
                }
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => return Err(FetchError::Lost(describe(&error))),
            }
        }
    }

    /// The whole body, of at most `limit` bytes.
    pub async fn whole(mut self, limit: usize) -> Result<Bytes, FetchError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() > limit {
                return Err(FetchError::TooLarge(limit));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

impl From<FetchError> for io::Error {
    fn from(error: FetchError) -> io::Error {
        io::Error::other(error)
    }
}
