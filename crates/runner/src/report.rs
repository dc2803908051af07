//! What happens to a board's connection, for whoever wants to show it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::RunError;

/// What happens to a board's connection. As text it is a sentence.
#[derive(Debug)]
pub enum ConnectionNews<'a> {
    /// The gateway, or the broker, accepted the board.
    Connected { url: &'a str },
    /// The connection ended, or could not be made. It is tried again.
    Disconnected { why: &'a RunError, retry_in: Duration },
}

impl fmt::Display for ConnectionNews<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionNews::Connected { url } => write!(f, "connected to {url}"),
            ConnectionNews::Disconnected { why, retry_in } => {
                write!(f, "disconnected: {why}; trying again in {:.1} s", retry_in.as_secs_f64())
            }
        }
    }
}

type Listener = dyn Fn(&ConnectionNews<'_>) + Send + Sync;

/// Gets the news of all boards of a dialer.
#[derive(Clone, Default)]
pub(crate) struct Report(Option<Arc<Listener>>);

impl Report {
    pub(crate) fn to(listener: impl Fn(&ConnectionNews<'_>) + Send + Sync + 'static) -> Report {
        Report(Some(Arc::new(listener)))
    }

    pub(crate) fn send(&self, news: &ConnectionNews<'_>) {
        if let Some(listener) = &self.0 {
            listener(news);
        }
    }
}
