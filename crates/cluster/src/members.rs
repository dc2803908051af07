//! The devices of this node and those of others, and which of the two the gateway sees.

use std::collections::HashMap;
use std::sync::Arc;

use sinew_presence::{DeviceHash, Presence};
use sinew_tool::{Device, DeviceEvent, Digest, LeaveReason, Reach, Status};

use crate::records::Card;
use crate::remote::RemoteDevice;

pub(crate) struct Members {
    pub(crate) presence: Presence<Card>,
    pub(crate) locals: HashMap<DeviceHash, LocalDevice>,
    /// What other nodes say of their devices.
    pub(crate) cards: HashMap<DeviceHash, Card>,
    /// Those whose tools are here.
    pub(crate) remotes: HashMap<DeviceHash, Arc<RemoteDevice>>,
    /// Devices that wait for tools.
    pub(crate) awaited: HashMap<Digest, Vec<DeviceHash>>,
    /// What the gateway sees.
    shown: HashMap<DeviceHash, Arc<dyn Device>>,
}

pub(crate) struct LocalDevice {
    /// As its family announced it.
    pub(crate) device: Arc<dyn Device>,
    /// As the gateway sees it.
    pub(crate) guarded: Arc<dyn Device>,
    pub(crate) reach: Reach,
}

impl Members {
    pub(crate) fn new(presence: Presence<Card>) -> Members {
        Members {
            presence,
            locals: HashMap::new(),
            cards: HashMap::new(),
            remotes: HashMap::new(),
            awaited: HashMap::new(),
            shown: HashMap::new(),
        }
    }

    /// The device of this node, where the event is of its current connection.
    pub(crate) fn current(&self, hash: DeviceHash, device: &Arc<dyn Device>) -> Option<&LocalDevice> {
        self.locals.get(&hash).filter(|local| is_same(&local.device, device))
    }

    /// Brings the gateway up to date about a device; what it must apply, if anything.
    pub(crate) fn settle(&mut self, hash: DeviceHash, reason: LeaveReason) -> Option<DeviceEvent> {
        let wanted = self.wanted(hash);
        let shown = self.shown.get(&hash);
        match (wanted, shown) {
            (Some(wanted), Some(shown)) if is_same(&wanted, shown) => None,
            (Some(wanted), _) => {
                self.shown.insert(hash, wanted.clone());
                Some(DeviceEvent::Joined(wanted))
            }
            (None, _) => self.shown.remove(&hash).map(|shown| DeviceEvent::Left(shown, reason)),
        }
    }

    pub(crate) fn is_shown(&self, hash: DeviceHash, device: &Arc<dyn Device>) -> bool {
        self.shown.get(&hash).is_some_and(|shown| is_same(shown, device))
    }

    fn wanted(&self, hash: DeviceHash) -> Option<Arc<dyn Device>> {
        let remote = self.remotes.get(&hash).map(|remote| remote.clone() as Arc<dyn Device>);
        let Some(local) = self.locals.get(&hash) else { return remote };
        // One that keeps its link here is here. One that several nodes can reach belongs to the node that holds it, and
        // what this node cannot use is better used at another.
        let is_theirs = local.reach == Reach::SeveralGateways && self.presence.fence(hash).is_none();
        let is_usable = local.device.info().status == Status::Ready;
        match remote {
            Some(remote) if is_theirs || !is_usable => Some(remote),
            _ => Some(local.guarded.clone()),
        }
    }
}

pub(crate) fn is_same(one: &Arc<dyn Device>, other: &Arc<dyn Device>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}
