//! Being told that something changed.

use std::collections::{BTreeSet, VecDeque};

use sinew_tool::{DeviceId, Digest};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use crate::gateway::Gateway;
use crate::principal::Principal;
use crate::view::Shape;

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
    gateway: Gateway,
    who: Principal,
    shape: Shape,
    versions: watch::Receiver<u64>,
    events: broadcast::Receiver<DeviceId>,
    /// The tool list as last told.
    tools: Digest,
    /// When the changes since the first untold one are looked at together.
    due: Option<Instant>,
    untold: VecDeque<Change>,
}

impl Watch {
    pub(crate) fn new(
        gateway: Gateway,
        who: Principal,
        shape: Shape,
        versions: watch::Receiver<u64>,
        events: broadcast::Receiver<DeviceId>,
    ) -> Watch {
        let tools = gateway.list(&who, shape).digest;
        Watch { gateway, who, shape, versions, events, tools, due: None, untold: VecDeque::new() }
    }

    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.untold.pop_front() {
                return change;
            }
            // The end of a grace changes the list without anybody doing anything.
            let wake = self.due.or(self.gateway.snapshot().ends);
            tokio::select! {
                changed = self.versions.changed(), if self.due.is_none() => match changed {
                    Ok(()) => self.due = Some(Instant::now() + self.gateway.settings().coalesce),
                    Err(_) => std::future::pending().await,
                },
                heard = self.events.recv() => self.hear(heard),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.look(),
            }
        }
    }

    fn look(&mut self) {
        let is_devices = self.due.take().is_some();
        self.versions.mark_unchanged();
        let tools = self.gateway.list(&self.who, self.shape).digest;
        if tools != self.tools {
            self.tools = tools;
            self.untold.push_back(Change::Tools);
        }
        if is_devices {
            self.untold.push_back(Change::Devices);
        }
    }

    fn hear(&mut self, heard: Result<DeviceId, RecvError>) {
        let mut devices = BTreeSet::new();
        let mut has_lagged = matches!(heard, Err(RecvError::Lagged(_)));
        devices.extend(heard.ok());
        loop {
            match self.events.try_recv() {
                Ok(device) => drop(devices.insert(device)),
                Err(TryRecvError::Lagged(_)) => has_lagged = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if has_lagged {
            // Whose events were missed is not known, so everybody's may be new.
            devices.extend(self.gateway.snapshot().devices.iter().map(|entry| entry.id.clone()));
        }
        self.untold.extend(devices.into_iter().map(|device| Change::Event { device }));
    }
}
