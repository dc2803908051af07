//! A device that was never reached, shown with what is wrong until it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admission::Admit;
use crate::call::Call;
use crate::device::{Announce, BoxFuture, Device, DeviceEvent, DeviceInfo, LeaveReason, Status};
use crate::error::{ErrorKind, ToolError};
use crate::outcome::Outcome;
use crate::tool::Toolset;

/// Shows a configured device as `not reached` while it was never connected. One that was connected before is shown as
/// away already.
pub struct StandIn {
    /// `None` once it is over: a device that is connected need not keep it.
    info: Option<Box<DeviceInfo>>,
    known: Arc<dyn Admit>,
    announce: Announce,
    shown: Option<Arc<UnreachedDevice>>,
}

impl StandIn {
    /// `info` is what is known of the device before it is reached.
    pub fn new(info: DeviceInfo, known: Arc<dyn Admit>, announce: Announce) -> StandIn {
        StandIn { info: Some(Box::new(info)), known, announce, shown: None }
    }

    /// Shows the device with what is wrong, and what to do about it.
    pub fn show(&mut self, why: &str) {
        let Some(info) = &self.info else { return };
        let status = Status::Limited { state: "not reached".to_owned(), remedy: why.to_owned() };
        match &self.shown {
            None if self.known.is_known(&info.key) => {}
            None => {
                let info = DeviceInfo { status, ..DeviceInfo::clone(info) };
                let device = Arc::new(UnreachedDevice { info: Mutex::new(Arc::new(info)) });
                (self.announce)(DeviceEvent::Joined(device.clone()));
                self.shown = Some(device);
            }
            Some(device) if device.info().status != status => {
                *device.lock() = Arc::new(DeviceInfo { status, ..DeviceInfo::clone(info) });
                (self.announce)(DeviceEvent::Changed(device.clone()));
            }
            Some(_) => {}
        }
    }

    /// Takes it away for good: the device is about to join, or is not configured any more.
    pub fn end(&mut self) {
        self.info = None;
        if let Some(device) = self.shown.take() {
            (self.announce)(DeviceEvent::Left(device, LeaveReason::NeverConnected));
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.end();
    }
}

struct UnreachedDevice {
    info: Mutex<Arc<DeviceInfo>>,
}

impl UnreachedDevice {
    fn lock(&self) -> MutexGuard<'_, Arc<DeviceInfo>> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for UnreachedDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.lock().clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        Arc::default()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let message = format!("{} is not reached; nothing was sent", self.info().suggested_id);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::DeviceAway, message))))
    }
}
