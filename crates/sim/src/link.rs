//! How a virtual board reaches its gateway: a WebSocket dialled with the headers of real firmware.

use std::io;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Which gateways a board believes when it dials `wss://`.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// None: the board speaks only to `ws://`.
    #[default]
    Nobody,
    /// A gateway whose certificate is in this PEM text, or was signed by one that is.
    Pem(Vec<u8>),
    /// A gateway whose certificate has this SHA-256 fingerprint.
    Fingerprint([u8; 32]),
}

/// Why a virtual board cannot connect or cannot go on.
#[derive(Debug, Error)]
pub enum SimError {
    #[error("{0} is not an address of a gateway: {1}")]
    Address(String, String),
    #[error("{0}: no gateway answers there ({1}); is it running?")]
    Unreachable(String, io::Error),
    #[error("{0}: the gateway's certificate is not trusted or TLS failed ({1})")]
    Tls(String, io::Error),
    #[error("{url}: the gateway refused the board ({why})")]
    Refused { url: String, status: Option<u16>, why: String },
    #[error("the certificate to trust cannot be read: {0}")]
    Certificate(String),
    #[error("the connection ended: {0}")]
    Ended(String),
}

impl SimError {
    /// Whether dialling again brings the same.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            SimError::Address(..) | SimError::Certificate(_) | SimError::Tls(..) => true,
            SimError::Refused { status, .. } => status.is_some_and(|status| (400..500).contains(&status)),
            SimError::Unreachable(..) | SimError::Ended(_) => false,
        }
    }
}

/// What a board says of itself when it dials.
#[derive(Clone, Debug)]
pub struct Credentials<'a> {
    pub token: Option<&'a str>,
    pub hardware_id: &'a str,
    pub client_id: &'a str,
}

pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub type Socket = WebSocketStream<Box<dyn Bytes>>;

/// How to dial one gateway; made once, used at every reconnect.
#[derive(Clone)]
pub struct Dialer {
    url: String,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Dialer {
    pub fn new(url: &str, trust: &Trust) -> Result<Dialer, SimError> {
        let wrong = |why: &str| SimError::Address(url.to_owned(), why.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong("write it as ws://HOST:PORT/xiaozhi/v1/"))?;
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?.trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some("ws") => None,
            Some("wss") => Some(Arc::new(client_config(trust)?)),
            _ => return Err(wrong("it must begin with ws:// or wss://")),
        };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Dialer { url: url.to_owned(), host, port, tls })
    }

    pub async fn dial(&self, who: &Credentials<'_>) -> Result<Socket, SimError> {
        let unreachable = |error| SimError::Unreachable(self.url.clone(), error);
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let stream: Box<dyn Bytes> = match &self.tls {
            None => Box::new(tcp),
            Some(config) => {
                let tls = |error| SimError::Tls(self.url.clone(), error);
                let name = ServerName::try_from(self.host.clone()).map_err(|error| tls(io::Error::other(error)))?;
                Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await.map_err(tls)?)
            }
        };
        let refused = |why: String| SimError::Refused { url: self.url.clone(), status: None, why };
        let mut request = self.url.as_str().into_client_request().map_err(|error| refused(error.to_string()))?;
        let mut header = |name: &'static str, value: &str| -> Result<(), SimError> {
            let value = HeaderValue::from_str(value).map_err(|_| refused(format!("{name} cannot be {value:?}")))?;
            request.headers_mut().insert(name, value);
            Ok(())
        };
        if let Some(token) = who.token {
            // As firmware does: a token with a space in it brings its own scheme.
            let scheme = if token.contains(' ') { "" } else { "Bearer " };
            header("authorization", &format!("{scheme}{token}"))?;
        }
        header("protocol-version", "1")?;
        header("device-id", who.hardware_id)?;
        header("client-id", who.client_id)?;
        // Thousands of boards share one process, so each gets by with little.
        let config = WebSocketConfig::default().read_buffer_size(1024).write_buffer_size(4096);
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
                let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                let why = format!("{}: {}", answer.status(), body.trim());
                Err(SimError::Refused { url: self.url.clone(), status: Some(answer.status().as_u16()), why })
            }
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

fn client_config(trust: &Trust) -> Result<ClientConfig, SimError> {
    let provider = Arc::new(ring::default_provider());
    let mut pinned = Vec::new();
    let mut chain = None;
    match trust {
        Trust::Nobody => {
            let why = "wss:// needs the gateway's certificate or its fingerprint, and none was given";
            return Err(SimError::Certificate(why.to_owned()));
        }
        Trust::Fingerprint(fingerprint) => pinned.push(*fingerprint),
        Trust::Pem(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| SimError::Certificate(error.to_string()))?;
                pinned.push(fingerprint(&certificate));
                // A self-signed leaf may be unfit as an authority; it is pinned all the same.
                let _ = roots.add(certificate);
            }
            if pinned.is_empty() {
                return Err(SimError::Certificate("the PEM text holds no certificate".to_owned()));
            }
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            chain = built.ok();
        }
    }
    let verifier = Arc::new(Verifier { pinned, chain, provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SimError::Certificate(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Believes pinned certificates, and those a pinned one has signed.
#[derive(Debug)]
struct Verifier {
    pinned: Vec<[u8; 32]>,
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pinned.contains(&fingerprint(certificate)) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.chain {
            Some(chain) => chain.verify_server_cert(certificate, others, name, ocsp, now),
            None => Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_wrong_with_it() {
        let dial = |url: &str| Dialer::new(url, &Trust::Nobody).map(|dialer| (dialer.host, dialer.port));
        assert_eq!(dial("ws://[::1]:7301/xiaozhi/v1/").expect("fine"), ("::1".to_owned(), 7301));
        assert_eq!(dial("ws://gateway").expect("fine"), ("gateway".to_owned(), 80));
        for wrong in ["", "http://x/", "ws://", "wss://x/"] {
            assert!(dial(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_pem_text_without_certificate_is_refused() {
        assert!(Dialer::new("wss://x/", &Trust::Pem(b"nothing".to_vec())).is_err());
    }
}
