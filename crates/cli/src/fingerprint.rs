//! Which certificates are trusted: the one whose SHA-256 is expected, whoever signed it, else those of public
//! authorities.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use sha2::{Digest, Sha256};

use crate::error::{CliError, CliErrorKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// 64 hexadecimal digits, with or without colons.
    pub fn parse(text: &str) -> Result<Fingerprint, CliError> {
        let wrong = || {
            CliError::new(
                CliErrorKind::Usage,
                format!("`{text}` is no SHA-256 fingerprint; expected 64 hexadecimal digits"),
            )
        };
        let digits: Vec<u8> = text
            .chars()
            .filter(|character| *character != ':')
            .map(|character| character.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        if digits.len() != 64 {
            return Err(wrong());
        }
        bytes.try_into().map(Fingerprint).map_err(|_| wrong())
    }

    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

pub fn client_config(fingerprint: Fingerprint) -> Result<ClientConfig, CliError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pinned = FingerprintVerifier { fingerprint, provider: provider.clone() };
    let builder = builder(provider)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(pinned)).with_no_client_auth())
}

/// Trust in the authorities of a PEM file, else in those of the operating system (`SSL_CERT_FILE` names others).
pub fn trusting(ca: Option<&Path>) -> Result<ClientConfig, CliError> {
    let mut roots = RootCertStore::empty();
    match ca {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let wrong = |why: String| CliError::new(CliErrorKind::Usage, format!("--ca {}: {why}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| wrong(error.to_string()))?;
            if roots.add_parsable_certificates(certificates).0 == 0 {
                return Err(wrong("there is no usable certificate in it; expected PEM".to_owned()));
            }
        }
    }
    let builder = builder(Arc::new(rustls::crypto::ring::default_provider()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, CliError> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|error| CliError::new(CliErrorKind::Io, format!("TLS cannot be set up: {error}")))
}

#[derive(Debug)]
struct FingerprintVerifier {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Sha256::digest(certificate.as_ref())[..] == self.fingerprint.0 {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
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
    fn fingerprints_are_64_digits_with_or_without_colons() {
        let plain = "ab".repeat(32);
        let colons = ["AB"; 32].join(":");
        assert_eq!(Fingerprint::parse(&plain), Fingerprint::parse(&colons));
        assert!(Fingerprint::parse(&plain).is_ok());
        for wrong in ["", "ab", &"ag".repeat(32), &"ab".repeat(33), &"a".repeat(63)] {
            assert!(Fingerprint::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
