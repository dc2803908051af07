//! Connections that Sinew opens to servers of others: TCP, TLS, and single HTTP requests.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) trait DialledStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> DialledStream for T {}

/// Connects to a host, with TLS where it is configured.
pub(crate) async fn dial(host: &str, port: u16, tls: Option<&Arc<ClientConfig>>) -> io::Result<Box<dyn DialledStream>> {
    secure(TcpStream::connect((host, port)).await?, host, tls).await
}

async fn secure(tcp: TcpStream, host: &str, tls: Option<&Arc<ClientConfig>>) -> io::Result<Box<dyn DialledStream>> {
    tcp.set_nodelay(true)?;
    Ok(match tls {
        None => Box::new(tcp),
        Some(config) => {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await?)
        }
    })
}

/// Trusts these authorities and no others.
pub(crate) fn client_config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

/// The authorities of the operating system, where `SSL_CERT_FILE` names others.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// An address that nobody is given leads here too.
fn is_this_machine(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

/// The address of a web server.
#[derive(Clone)]
pub(crate) struct WebAddress {
    pub(crate) uri: Uri,
    pub(crate) host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    /// Refuse to connect to this machine, whatever the host's name says.
    is_elsewhere: bool,
}

impl WebAddress {
    /// `schemes`: the plain one and the encrypted one, `["http", "https"]` or `["ws", "wss"]`.
    pub(crate) fn parse(url: &str, schemes: [&str; 2]) -> Result<WebAddress, String> {
        let uri: Uri = url.parse().map_err(|_| "it is not an address".to_owned())?;
        let host = uri.host().ok_or("it names no host")?.trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some(scheme) if scheme == schemes[0] => None,
            Some(scheme) if scheme == schemes[1] => {
                let roots = system_roots();
                if roots.is_empty() {
                    let why = "the system has no certificates to trust; install its package ca-certificates";
                    return Err(why.to_owned());
                }
                Some(Arc::new(client_config(roots)?))
            }
            _ => return Err(format!("it must begin with {}:// or {}://", schemes[0], schemes[1])),
        };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(WebAddress { uri, host, port, tls, is_elsewhere: false })
    }

    /// Another path on the same server.
    pub(crate) fn at_path(&self, path: &str) -> Result<WebAddress, String> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| "its path is not valid".to_owned())?);
        let uri = Uri::from_parts(parts).map_err(|error| error.to_string())?;
        Ok(WebAddress { uri, ..self.clone() })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host.trim_end_matches('.');
        host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_this_machine)
    }

    /// The address as a server may name it: one that is not on this machine leads nobody to this machine.
    pub(crate) fn named_by(self, server: &WebAddress) -> Result<WebAddress, String> {
        if server.is_loopback() {
            return Ok(self);
        }
        match self.is_loopback() {
            true => Err(format!("it is on this machine, and {}, which names it, is not", server.host)),
            false => Ok(WebAddress { is_elsewhere: true, ..self }),
        }
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn DialledStream>> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await?;
        if self.is_elsewhere && is_this_machine(tcp.peer_addr()?.ip()) {
            return Err(io::Error::other("the name leads to this machine"));
        }
        secure(tcp, &self.host, self.tls.as_ref()).await
    }

    /// Sends one request on a connection of its own. Path and host are those of this address; the answer has at most
    /// `answer_bytes`.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>, answer_bytes: usize) -> io::Result<WebAnswer> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(io::Error::other)?;
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        request.headers_mut().insert(HOST, authority.parse().map_err(io::Error::other)?);
        let stream = TokioIo::new(self.connect().await?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), answer_bytes).collect().await.map_err(io::Error::other)?;
            Ok(WebAnswer { status, body: body.to_bytes() })
        };
        // The connection makes progress only while it is polled, and ends with the answer.
        tokio::pin!(answering);
        tokio::select! {
            answer = &mut answering => answer,
            ended = connection => match ended {
                Ok(()) => answering.await,
                Err(error) => Err(io::Error::other(error)),
            },
        }
    }
}

/// The answer of a web server.
pub(crate) struct WebAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}
