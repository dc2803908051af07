//! A device of this node that other nodes can reach too.

use std::sync::{Arc, Weak};

use sinew_presence::{DeviceHash, Refusal};
use sinew_tool::{
    Args, BoxFuture, Call, Device, DeviceInfo, Effect, ErrorKind, LivePicture, LiveRequest, Outcome, Picture,
    ShownScreen, ToolError, Toolset,
};

use crate::core::Core;

/// Acts only while this node holds the device: another one may act on it as soon as this one lost its lease. Looking is
/// always possible.
pub(crate) struct GuardedDevice {
    pub(crate) core: Weak<Core>,
    pub(crate) hash: DeviceHash,
    pub(crate) device: Arc<dyn Device>,
}

// Every method of the trait is passed on, also those that have a default.
#[deny(clippy::missing_trait_methods)]
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

    fn check_call<'a>(&'a self, tool: &'a str, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
        self.device.check_call(tool, args)
    }

    fn live_picture<'a>(&'a self, wanted: &'a LiveRequest) -> BoxFuture<'a, Result<Option<LivePicture>, ToolError>> {
        self.device.live_picture(wanted)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Answers what no default does.
    struct Busy;

    impl Device for Busy {
        fn info(&self) -> Arc<DeviceInfo> {
            unreachable!("nobody asks")
        }

        fn tools(&self) -> Arc<Toolset> {
            unreachable!("nobody asks")
        }

        fn check_call<'a>(&'a self, _: &'a str, _: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
            Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Busy, "busy"))))
        }

        fn live_picture<'a>(&'a self, _: &'a LiveRequest) -> BoxFuture<'a, Result<Option<LivePicture>, ToolError>> {
            Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::ActionFailed, "dark"))))
        }

        fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
            unreachable!("nobody asks")
        }
    }

    #[tokio::test]
    async fn a_guarded_device_shows_its_screen_and_checks_calls() {
        let guarded = GuardedDevice { core: Weak::new(), hash: DeviceHash([0; 16]), device: Arc::new(Busy) };
        assert_eq!(guarded.check_call("x", &Args::new()).await.map_err(|error| error.kind), Err(ErrorKind::Busy));
        let wanted = LiveRequest { max_side: 1, quality: 1, known: None, patience: Duration::ZERO };
        assert_eq!(guarded.live_picture(&wanted).await.map_err(|error| error.kind), Err(ErrorKind::ActionFailed));
    }
}
