//! Where a gateway or a broker is, and how its bytes are reached: TCP, and TLS where the scheme asks for it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::error::RunError;
use crate::trust::Trust;

/// The bytes of a connection, plain or encrypted.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Where a gateway or a broker is, and whether TLS is spoken there.
#[derive(Clone)]
pub struct GatewayAddress {
    pub url: String,
    pub host: String,
    pub port: u16,
    tls: Option<Arc<ClientConfig>>,
    /// The address of ours to dial from, where it matters.
    pub(crate) source: Option<IpAddr>,
}

impl GatewayAddress {
    /// `schemes` are the plain and the secure one, with their usual ports.
    pub fn parse(url: &str, schemes: [(&str, u16); 2], trust: &Trust) -> Result<GatewayAddress, RunError> {
        let wrong = |why: &str| RunError::Address(url.to_owned(), why.to_owned());
        let [plain, secure] = schemes;
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let (tls, usual) = match scheme {
            _ if scheme == plain.0 => (None, plain.1),
            _ if scheme == secure.0 => (Some(Arc::new(trust.client_config()?)), secure.1),
            _ => return Err(wrong(&format!("it must begin with {}:// or {}://", plain.0, secure.0))),
        };
        let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        if authority.contains('@') {
            return Err(wrong("a user name does not belong into it"));
        }
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
        Ok(GatewayAddress { url: url.to_owned(), host: host.to_owned(), port, tls, source: None })
    }

    pub async fn connect(&self) -> Result<Box<dyn ByteStream>, RunError> {
        let unreachable = |error| RunError::Unreachable(self.url.clone(), error);
        let tcp = match self.source {
            None => TcpStream::connect((self.host.as_str(), self.port)).await,
            Some(source) => self.connect_from(source).await,
        };
        let tcp = tcp.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let Some(config) = &self.tls else { return Ok(Box::new(tcp)) };
        let tls = |error| RunError::Tls(self.url.clone(), error);
        let name = ServerName::try_from(self.host.clone()).map_err(|error| tls(io::Error::other(error)))?;
        Ok(Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await.map_err(tls)?))
    }

    async fn connect_from(&self, source: IpAddr) -> io::Result<TcpStream> {
        let mut found = lookup_host((self.host.as_str(), self.port)).await?;
        let there = found.find(|there| there.is_ipv4() == source.is_ipv4());
        let there = there.ok_or_else(|| io::Error::other("it has no address of the kind of the source"))?;
        let socket = if there.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind(SocketAddr::new(source, 0))?;
        socket.connect(there).await
    }

    pub(crate) fn timed_out(&self) -> RunError {
        RunError::Unreachable(self.url.clone(), io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_wrong_with_it() {
        let parse = |url: &str| {
            let trust = Trust::Fingerprint([0; 32]);
            GatewayAddress::parse(url, [("ws", 80), ("wss", 443)], &trust).map(|address| (address.host, address.port))
        };
        assert_eq!(parse("ws://[::1]:7301/xiaozhi/v1/").expect("fine"), ("::1".to_owned(), 7301));
        assert_eq!(parse("ws://[::1]/").expect("fine"), ("::1".to_owned(), 80));
        assert_eq!(parse("ws://gateway").expect("fine"), ("gateway".to_owned(), 80));
        assert_eq!(parse("wss://gateway?a=b").expect("fine"), ("gateway".to_owned(), 443));
        for wrong in ["", "gateway", "http://x/", "ws://", "ws:///x", "ws://x:y/", "ws://me:pw@x/"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
