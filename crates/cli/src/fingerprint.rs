//! Which certificates are trusted: the one whose SHA-256 is expected, whoever signed it, else those of public
//! authorities.

use std::path::Path;

use rustls::ClientConfig;
use sinew_sim::board::Trust;

use crate::error::{CliError, CliErrorKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// 64 hexadecimal digits, with or without colons and spaces.
    pub fn parse(text: &str) -> Result<Fingerprint, CliError> {
        let wrong = || {
            CliError::new(
                CliErrorKind::Usage,
                format!("`{text}` is not a SHA-256 fingerprint; expected 64 hexadecimal digits"),
            )
        };
        let digits: Vec<u8> = text
            .chars()
            .filter(|character| *character != ':' && !character.is_whitespace())
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

pub fn client_config(fingerprint: &Fingerprint) -> Result<ClientConfig, CliError> {
    let config = Trust::Fingerprint(fingerprint.0).client_config();
    config.map_err(|error| CliError::new(CliErrorKind::Io, format!("TLS cannot be set up: {error}")))
}

/// Trust in the authorities of a PEM file, else in those of the operating system (`SSL_CERT_FILE` names others).
pub fn trusting(ca: Option<&Path>) -> Result<ClientConfig, CliError> {
    let Some(path) = ca else {
        let config = Trust::System.client_config();
        return config.map_err(|error| CliError::new(CliErrorKind::Io, format!("{error}; name others with --ca FILE")));
    };
    let wrong = |why: String| CliError::new(CliErrorKind::Usage, format!("--ca {}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    Trust::Pem(pem).client_config().map_err(|error| wrong(format!("{error}; expected PEM")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_64_digits_with_or_without_colons() {
        let plain = "ab".repeat(32);
        let colons = ["AB"; 32].join(":");
        assert_eq!(Fingerprint::parse(&plain), Fingerprint::parse(&colons));
        let groups = [&colons[..24], &colons[24..48], &colons[48..]].join("\n   ");
        assert_eq!(Fingerprint::parse(&plain), Fingerprint::parse(&groups), "as copied from lines");
        assert!(Fingerprint::parse(&plain).is_ok());
        for wrong in ["", "ab", &"ag".repeat(32), &"ab".repeat(33), &"a".repeat(63)] {
            assert!(Fingerprint::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
