//! The signals that end a long-running command.

use crate::error::{CliError, CliErrorKind};

/// Ctrl-C, or what a service manager sends. Listens from when it is made, so that nothing sent
/// meanwhile ends the process without a word.
pub struct StopSignal {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl StopSignal {
    pub fn new() -> Result<StopSignal, CliError> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| {
                signal(kind)
                    .map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot wait for signals: {error}")))
            };
            Ok(StopSignal { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
        }
        #[cfg(not(unix))]
        Ok(StopSignal {})
    }

    pub async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
