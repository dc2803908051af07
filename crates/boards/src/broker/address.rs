//! Where a broker is, and how it is entered: address, trust and credentials. Secrets are never shown.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::dial::{self, DialledStream};

/// TCP and TLS together.
const DIAL_TIME: Duration = Duration::from_secs(20);

/// A broker: `mqtt://HOST:1883`, or `mqtts://HOST:8883` for TLS.
#[derive(Clone)]
pub struct Address {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    /// What `tls` was made from, where it is not the system's.
    authorities: Option<Arc<[u8]>>,
    credentials: Option<Credentials>,
}

/// Whether the same broker is entered in the same way.
impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        let Address { host, port, tls, authorities, credentials } = self;
        (host, port, authorities, credentials) == (&other.host, &other.port, &other.authorities, &other.credentials)
            && tls.is_some() == other.tls.is_some()
    }
}

/// What a broker wants to see.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub username: String,
    pub password: Option<String>,
}

impl Address {
    /// `authorities` are certificates in PEM that are trusted instead of the system's, for `mqtts`.
    pub fn new(url: &str, credentials: Option<Credentials>, authorities: Option<&[u8]>) -> Result<Address, String> {
        let form = "write it as mqtt://HOST:1883, or as mqtts://HOST:8883 for TLS";
        let uri: Uri = url.parse().map_err(|_| format!("the address of the broker cannot be read; {form}"))?;
        let is_encrypted = match uri.scheme_str() {
            Some("mqtt") => false,
            Some("mqtts") => true,
            _ => return Err(format!("the address of the broker must begin with mqtt:// or mqtts://; {form}")),
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(format!("the address of the broker names no host; {form}"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!(
                "the address of the broker must not hold a user name; write `username` beside it, and {form}"
            ));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("the address of the broker must end after the port; {form}"));
        }
        if authorities.is_some() && !is_encrypted {
            return Err(format!("`ca` is for brokers over TLS; {form}"));
        }
        let tls = is_encrypted.then(|| trust(authorities)).transpose()?.map(Arc::new);
        let port = uri.port_u16().unwrap_or(if is_encrypted { 8883 } else { 1883 });
        Ok(Address { host, port, tls, authorities: authorities.map(Into::into), credentials })
    }

    /// User name and password for the broker.
    /// User name and password to log in with.
    pub fn login(&self) -> Option<(&str, Option<&str>)> {
        let credentials = self.credentials.as_ref()?;
        Some((&credentials.username, credentials.password.as_deref()))
    }

    pub(crate) async fn dial(&self) -> io::Result<Box<dyn DialledStream>> {
        tokio::time::timeout(DIAL_TIME, dial::dial(&self.host, self.port, self.tls.as_ref())).await?
    }
}

/// Without secrets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "mqtts" } else { "mqtt" };
        let Address { host, port, .. } = self;
        if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The given authorities, or those of the operating system, where `SSL_CERT_FILE` names others.
fn trust(authorities: Option<&[u8]>) -> Result<ClientConfig, String> {
    let roots = match authorities {
        None => dial::system_roots(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            let unusable = |why: String| format!("the certificates of `ca` cannot be used: {why}; they must be PEM");
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
                roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unusable("there is none".to_owned()));
            }
            roots
        }
    };
    dial::client_config(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_secrets() {
        let credentials = Credentials { username: "me".to_owned(), password: Some("secret".to_owned()) };
        let address = Address::new("mqtt://broker", Some(credentials.clone()), None).expect("valid");
        assert_eq!(format!("{address} {address:?}"), "mqtt://broker:1883 mqtt://broker:1883");
        assert!(!format!("{credentials:?}").contains("secret"));
        assert_eq!(Address::new("mqtts://[::1]", None, None).expect("valid").to_string(), "mqtts://[::1]:8883");
    }

    #[test]
    fn an_address_with_another_password_is_another() {
        let with = |password: &str| {
            let credentials = Credentials { username: "me".to_owned(), password: Some(password.to_owned()) };
            Address::new("mqtt://broker", Some(credentials), None).expect("valid")
        };
        assert!(with("right") == with("right") && with("right") != with("wrong"));
        assert!(Address::new("mqtt://broker", None, None).expect("valid") != with("right"));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_with_the_remedy() {
        for wrong in
            ["", "broker", "http://broker", "mqtt://", "mqtt://me:secret@broker", "mqtt://broker/x", "mqtt://b?x"]
        {
            let problem = Address::new(wrong, None, None).expect_err(wrong);
            assert!(problem.contains("mqtts://HOST") && !problem.contains("secret"), "{problem}");
        }
        assert!(Address::new("mqtts://b", None, Some(b"no certificate")).expect_err("none").contains("PEM"));
        assert!(Address::new("mqtt://b", None, Some(b"")).expect_err("plain").contains("TLS"));
    }
}
