//! Why a gateway could not be configured, opened or kept open.

/// A failure with its message for people; the kind is for programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ComposeErrorKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComposeErrorKind {
    /// Another process owns the state directory.
    StateTaken,
    /// An address cannot be listened on.
    AddressTaken,
    /// A setting, file or combination of settings that cannot work.
    Config,
    /// Reading or writing failed.
    Io,
}

impl Error {
    pub fn new(kind: ComposeErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
}
