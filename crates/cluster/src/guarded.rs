//! A device of this node that other nodes can reach too.

use std::sync::{Arc, Weak};

use sinew_presence::{DeviceHash, Refusal};
use sinew_tool::{
    Args, BoxFuture, Call, Device, DeviceInfo, Effect, ErrorKind, Outcome, Picture, ShownScreen, ToolError, Toolset,
};

use crate::core::Core;

/// Acts only while this node holds the device: another one may act on it as soon as this one lost its lease. Looking is
/// always possible.
pub(crate) struct GuardedDevice {
    pub(crate) core: Weak<Core>,
    pub(crate) hash: DeviceHash,
    pub(crate) device: Arc<dyn Device>,
}

impl Device for GuardedDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.device.info()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.device.tools()
    }

    fn pictures(&self) -> Vec<Picture> {
        self.device.pictures()
    }

    fn screen<'a>(&'a self, args: &'a Args) -> BoxFuture<'a, Option<ShownScreen>> {
        self.device.screen(args)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let refusal = self.core.upgrade().and_then(|core| core.may_act(self.hash).err());
        let only_looks = || self.device.tools().find(&call.tool).is_some_and(|tool| tool.effect == Some(Effect::Read));
        match refusal {
            Some(refusal) if !only_looks() => Box::pin(std::future::ready(Err(refused(refusal)))),
            _ => self.device.call(call),
        }
    }
}

fn refused(refusal: Refusal) -> ToolError {
    let message = match refusal {
        Refusal::NoLease => {
            "this gateway cannot reach the cluster's NATS, and another one may use the device meanwhile; nothing was sent. \
             Try again when `sinew cluster` shows this node as connected, or call another node"
        }
        Refusal::Moved => "the cluster has not assigned the device to this gateway yet; nothing was sent. Try again",
    };
    ToolError::new(ErrorKind::DeviceAway, message)
}
