//! HTTP as firmware speaks it: one request on one connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_runner::{RunError, Trust};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// As long as firmware waits for an answer.
const TIME: Duration = Duration::from_secs(60);
const ANSWER_BYTES: u64 = 1 << 20;

pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Where something is, taken apart.
#[derive(Clone)]
pub(crate) struct HttpAddress {
    pub(crate) url: String,
    host: String,
    port: u16,
    /// Path and query.
    pub(crate) path: String,
    tls: Option<Arc<ClientConfig>>,
}

impl HttpAddress {
    /// `plain` and `secure` are schemes with their usual ports.
    pub(crate) fn parse(
        url: &str,
        plain: (&str, u16),
        secure: (&str, u16),
        trust: &Trust,
    ) -> Result<HttpAddress, RunError> {
        let wrong = |why: &str| RunError::Address(url.to_owned(), why.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let (tls, usual) = match scheme {
            _ if scheme == plain.0 => (None, plain.1),
            _ if scheme == secure.0 => (Some(Arc::new(trust.client_config()?)), secure.1),
            _ => return Err(wrong(&format!("it must begin with {}:// or {}://", plain.0, secure.0))),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("its port is not a number"))?)
            }
            _ => (authority, usual),
        };
        let host = host.trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(HttpAddress { url: url.to_owned(), host: host.to_owned(), port, path: path.to_owned(), tls })
    }

    pub(crate) fn http(url: &str, trust: &Trust) -> Result<HttpAddress, RunError> {
        HttpAddress::parse(url, ("http", 80), ("https", 443), trust)
    }

    pub(crate) async fn connect(&self) -> Result<Box<dyn ByteStream>, RunError> {
        let unreachable = |error| RunError::Unreachable(self.url.clone(), error);
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let tls = |error| RunError::Tls(self.url.clone(), error);
        let name = ServerName::try_from(self.host.clone()).map_err(|error| tls(io::Error::other(error)))?;
        Ok(Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await.map_err(tls)?))
    }

    /// Posts, and gives status and body of the answer. `chunks` as firmware sends them: each piece with its length.
    pub(crate) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: RequestBody<'_>,
    ) -> Result<(u16, Vec<u8>), RunError> {
        let broken = |error: io::Error| RunError::Ended(format!("{}: {error}", self.url));
        let mut request = format!("POST {} HTTP/1.1\r\nHost: {}:{}\r\n", self.path, self.host, self.port);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut request = request.into_bytes();
        match body {
            RequestBody::Whole(body) => {
                request.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                request.extend(body);
            }
            RequestBody::Chunks(chunks) => {
                request.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                    request.extend(format!("{:X}\r\n", chunk.len()).bytes());
                    request.extend(chunk);
                    request.extend(b"\r\n");
                }
                request.extend(b"0\r\n\r\n");
            }
        }
        let exchange = async {
            let mut stream = self.connect().await?;
            stream.write_all(&request).await.map_err(broken)?;
            stream.flush().await.map_err(broken)?;
            let mut answer = Vec::new();
            // Every answer of a gateway ends its connection; TLS may end without saying so.
            let read = stream.take(ANSWER_BYTES).read_to_end(&mut answer).await;
            match read {
                Err(error) if answer.is_empty() => Err(broken(error)),
                _ => Ok(answer),
            }
        };
        let answer = tokio::time::timeout(TIME, exchange)
            .await
            .unwrap_or_else(|_| Err(broken(io::ErrorKind::TimedOut.into())))?;
        split_answer(&answer).ok_or_else(|| RunError::Ended(format!("{}: the answer is no HTTP", self.url)))
    }
}

/// How a body is sent.
pub(crate) enum RequestBody<'a> {
    Whole(&'a [u8]),
    Chunks(&'a [Vec<u8>]),
}

fn split_answer(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..head_end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer[head_end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parse = |url: &str| HttpAddress::http(url, &Trust::System).map(|it| (it.host, it.port, it.path));
        let parts = |host: &str, port: u16, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parse("http://x:7301/a/?b=c").expect("fine"), parts("x", 7301, "/a/?b=c"));
        assert_eq!(parse("http://[::1]:9").expect("fine"), parts("::1", 9, "/"));
        assert_eq!(parse("http://[::1]/").expect("fine"), parts("::1", 80, "/"));
        for wrong in ["", "x", "ftp://x", "http://", "http://x:y/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
