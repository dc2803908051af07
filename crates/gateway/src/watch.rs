//! Notifications about changes.

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use sinew_tool::{DeviceId, Digest};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use crate::gateway::Gateway;
use crate::principal::Principal;
use crate::snapshot::{DeviceEntry, Snapshot};
use crate::view::Shape;

/// What changed. Changes that happen close together are reported as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// The tool list reads differently now.
    Tools,
    /// These devices connected, disconnected, or changed their information. `is_list` says whether the list of known
    /// devices changed too (ids, given names or kinds): a device that only disconnects or reconnects stays on it.
    Devices { changed: Vec<DeviceId>, is_list: bool },
    /// Events of this device can be read.
    Event { device: DeviceId },
}

impl Update {
    /// Without the devices that are not to be told of.
    fn keep(self, is_told: impl Fn(&DeviceId) -> bool) -> Update {
        match self {
            Update::Devices { mut changed, is_list } => {
                changed.retain(is_told);
                Update::Devices { is_list: is_list && !changed.is_empty(), changed }
            }
            other => other,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Update::Devices { changed, .. } if changed.is_empty())
    }
}

/// A subscription to changes. A slow reader gets fewer notifications, but misses no change.
pub struct Watch {
    gateway: Gateway,
    who: Principal,
    shape: Shape,
    versions: watch::Receiver<u64>,
    events: broadcast::Receiver<DeviceId>,
    /// The tool list as last reported.
    tools: Digest,
    /// The devices as last reported.
    seen: Arc<Snapshot>,
    /// When the changes since the first unreported one are collected.
    due: Option<Instant>,
    unreported: VecDeque<Update>,
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
        let seen = gateway.snapshot();
        Watch { gateway, who, shape, versions, events, tools, seen, due: None, unreported: VecDeque::new() }
    }

    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Update {
        loop {
            if let Some(change) = self.unreported.pop_front() {
                return change;
            }
            // The end of a grace changes the list without anybody doing anything.
            let wake = self.due.or(self.gateway.snapshot().ends);
            tokio::select! {
                changed = self.versions.changed(), if self.due.is_none() => match changed {
                    Ok(()) => self.due = Some(Instant::now() + self.gateway.settings().coalesce),
                    Err(_) => std::future::pending().await,
                },
                received = self.events.recv() => self.receive(received),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.collect(),
            }
        }
    }

    fn collect(&mut self) {
        self.due = None;
        self.versions.mark_unchanged();
        let tools = self.gateway.list(&self.who, self.shape).digest;
        if tools != self.tools {
            self.tools = tools;
            self.unreported.push_back(Update::Tools);
        }
        let before = std::mem::replace(&mut self.seen, self.gateway.snapshot());
        let lens = self.gateway.lens(&self.who);
        let seen = |snapshot: &Snapshot| -> Vec<Arc<DeviceEntry>> {
            snapshot.devices.iter().filter(|entry| lens.sees_device(entry)).cloned().collect()
        };
        let update = match lens.hides_nothing() {
            true => compare(&before.devices, &self.seen.devices),
            false => {
                // A change of what the caller does not see is none.
                let view = self.gateway.seen_by(&self.who);
                let looks = |snapshot: &Snapshot, id: &DeviceId| {
                    snapshot.entry(id.as_str()).filter(|entry| lens.sees_device(entry)).map(|entry| view.view(entry))
                };
                compare(&seen(&before), &seen(&self.seen))
                    .map(|update| update.keep(|id| looks(&before, id) != looks(&self.seen, id)))
            }
        };
        self.unreported.extend(update.filter(|update| !update.is_empty()));
    }

    fn receive(&mut self, received: Result<DeviceId, RecvError>) {
        let mut devices = BTreeSet::new();
        let mut has_lagged = matches!(received, Err(RecvError::Lagged(_)));
        devices.extend(received.ok());
        loop {
            match self.events.try_recv() {
                Ok(device) => drop(devices.insert(device)),
                Err(TryRecvError::Lagged(_)) => has_lagged = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if has_lagged {
            // It is not known whose events were missed, so every device may have new ones.
            devices.extend(self.gateway.snapshot().devices.iter().map(|entry| entry.id.clone()));
        }
        let (lens, snapshot) = (self.gateway.lens(&self.who), self.gateway.snapshot());
        devices.retain(|id| {
            lens.hides_nothing() || snapshot.entry(id.as_str()).is_some_and(|entry| lens.sees_device(entry))
        });
        self.unreported.extend(devices.into_iter().map(|device| Update::Event { device }));
    }
}

/// The difference between two lists of devices, both sorted by id.
fn compare(before: &[Arc<DeviceEntry>], after: &[Arc<DeviceEntry>]) -> Option<Update> {
    let (mut changed, mut is_list) = (Vec::new(), false);
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some(old), Some(new)) => old.id.cmp(&new.id),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let old = before.next_if(|_| order.is_le());
        let new = after.next_if(|_| order.is_ge());
        match (old, new) {
            (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
            (Some(old), Some(new)) => {
                is_list |= old.name != new.name || old.kind() != new.kind();
                changed.push(new.id.clone());
            }
            (Some(one), None) | (None, Some(one)) => {
                is_list = true;
                changed.push(one.id.clone());
            }
            (None, None) => {}
        }
    }
    (!changed.is_empty()).then_some(Update::Devices { changed, is_list })
}
