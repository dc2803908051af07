//! Why a board cannot connect or cannot go on.

use std::fmt;
use std::io;

use thiserror::Error;

#[derive(Error)]
pub enum RunError {
    #[error("{0} is not an address of a gateway: {1}")]
    Address(String, String),
    #[error("{0}: no gateway answers there ({1}); is it running?")]
    Unreachable(String, io::Error),
    #[error("{0}: TLS failed ({1}); a certificate that no authority signed must be given, or its fingerprint")]
    Tls(String, io::Error),
    #[error("{url}: the gateway refused the board: {why}")]
    Refused { url: String, status: Option<u16>, why: String },
    #[error("the certificate to trust cannot be read: {0}")]
    Certificate(String),
    #[error("the connection ended: {0}")]
    Ended(String),
}

/// The sentence: `main` prints what it returns in this form, and that is the first that an author of a board reads.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl RunError {
    /// Whether dialling again brings the same.
    pub fn is_final(&self) -> bool {
        match self {
            RunError::Address(..) | RunError::Certificate(_) => true,
            // rustls reports what it makes of a certificate this way; everything else is the network's.
            RunError::Tls(_, error) => error.kind() == io::ErrorKind::InvalidData,
            RunError::Refused { status, .. } => {
                status.is_some_and(|status| (400..500).contains(&status) && !matches!(status, 408 | 429))
            }
            RunError::Unreachable(..) | RunError::Ended(_) => false,
        }
    }
}
