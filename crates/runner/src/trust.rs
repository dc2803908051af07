//! Which certificates a board trusts.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::error::RunError;

/// Which gateways a board trusts when it dials over TLS.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Those whose certificate an authority of the operating system has signed.
    #[default]
    System,
    /// A gateway whose certificate is in this PEM text, or was signed by one that is.
    Pem(Vec<u8>),
    /// A gateway whose public key has this SHA-256 fingerprint, as `sinew serve --tls` prints it. That of the whole
    /// certificate, which earlier versions printed, is accepted too.
    Fingerprint([u8; 32]),
}

impl Trust {
    /// The TLS configuration for this trust.
    pub fn client_config(&self) -> Result<ClientConfig, RunError> {
        let provider = Arc::new(ring::default_provider());
        let mut pinned = Vec::new();
        let mut roots = RootCertStore::empty();
        match self {
            Trust::System => {
                let found = rustls_native_certs::load_native_certs();
                if found.certs.is_empty() {
                    let why = found.errors.first().map_or("it has none".to_owned(), ToString::to_string);
                    return Err(RunError::Certificate(format!("the operating system's authorities: {why}")));
                }
                roots.add_parsable_certificates(found.certs);
            }
            Trust::Fingerprint(fingerprint) => pinned.push(*fingerprint),
            Trust::Pem(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate.map_err(|error| RunError::Certificate(error.to_string()))?;
                    pinned.extend(fingerprints(&certificate));
                    // A self-signed leaf may be unfit as an authority; it is pinned all the same.
                    let _ = roots.add(certificate);
                }
                if pinned.is_empty() {
                    return Err(RunError::Certificate("the PEM text holds no certificate".to_owned()));
                }
            }
        }
        // Without authorities there is none to build, and the pins alone count.
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().ok();
        let verifier = Arc::new(Verifier { pinned, chain, provider: provider.clone() });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| RunError::Certificate(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(config)
    }
}

/// Those of the certificate, and of its public key.
fn fingerprints(certificate: &CertificateDer<'_>) -> impl Iterator<Item = [u8; 32]> {
    let key = ParsedCertificate::try_from(certificate).map(|parsed| parsed.subject_public_key_info());
    let key = key.ok().map(|key| Sha256::digest(key).into());
    [Sha256::digest(certificate).into()].into_iter().chain(key)
}

/// Trusts certificates with a given fingerprint, and those signed by a known authority.
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
        if fingerprints(certificate).any(|fingerprint| self.pinned.contains(&fingerprint)) {
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
    fn a_pem_text_without_certificate_is_refused() {
        assert!(Trust::Pem(b"nothing".to_vec()).client_config().is_err());
    }
}
