//! Being told that something changed.

use sinew_tool::DeviceId;

/// What changed. Changes that come close together are told as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The tool list reads differently now.
    Tools,
    /// A device came, went, or changed what it says of itself.
    Devices,
    /// Events of this device can be read.
    Event { device: DeviceId },
}

/// A standing wish to be told. A reader that lags hears less often, never less.
pub struct Watch {
    pub(crate) changes: tokio::sync::broadcast::Receiver<Change>,
}

impl Watch {
    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Change {
        loop {
            match self.changes.recv().await {
                Ok(change) => return change,
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => return Change::Devices,
                Err(tokio::sync::broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
