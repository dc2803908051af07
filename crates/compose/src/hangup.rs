//! SIGHUP, by which a person or a service manager asks for a reload.

use std::io;

/// Waits for SIGHUP. While one exists, the signal does not end the process.
pub(crate) struct Hangup {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangup {
    pub(crate) fn new() -> io::Result<Hangup> {
        Ok(Hangup {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Returns when the signal comes; never on systems without it.
    pub(crate) async fn wait(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}
