//! Gadgets that speak no MCP, described in the configuration: each tool is one MQTT message or one HTTP request.
//!
//! [`plan`] checks the description (`settings`) and takes its texts apart ([`template`]); [`run`] keeps one gadget. What
//! it answers becomes a result in [`answer`].

#![warn(unreachable_pub)]

pub mod answer;
mod answer_topics;
mod broker;
mod device;
mod place;
mod settings;
pub mod template;

use std::io;
use std::sync::Arc;

use sinew_boards::broker::{Address, Disconnected, ReconnectDelay};
use sinew_tool::{Admit, Announce, DeviceEvent, LeaveReason, StandIn};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use settings::{HttpToolConfig, InputSchema, MqttToolConfig, ThingConfig, ThingPlan, ThingToolConfig, plan};

use crate::broker::ThingConnection;
use crate::device::ThingDevice;

/// Messages that wait for the broker; calls of one gadget come one after the other.
const PUBLICATIONS: usize = 4;

/// Keeps one gadget until `shutdown`. One on a broker is there while its broker is; `known` says which devices were
/// connected before, and one that never was is shown with what is wrong.
pub async fn run(
    plan: ThingPlan,
    known: Arc<dyn Admit>,
    announce: Announce,
    shutdown: CancellationToken,
) -> io::Result<()> {
    match plan.broker.clone() {
        Some(address) => {
            let stand_in = StandIn::new(device::info(&plan), known, announce.clone());
            follow(&plan, &address, &announce, stand_in, &shutdown).await;
        }
        None => {
            let device = Arc::new(ThingDevice::new(&plan, None).map_err(io::Error::other)?);
            announce(DeviceEvent::Joined(device.clone()));
            shutdown.cancelled().await;
            announce(DeviceEvent::Left(device, LeaveReason::Closed));
        }
    }
    Ok(())
}

async fn follow(
    plan: &ThingPlan,
    address: &Address,
    announce: &Announce,
    mut stand_in: StandIn,
    shutdown: &CancellationToken,
) {
    let mut pause = ReconnectDelay::new();
    let mut last_trouble = String::new();
    while !shutdown.is_cancelled() {
        let connecting = connect_once(plan, address, announce, &mut stand_in, &mut pause, shutdown);
        if let Some(Err(Disconnected(why))) = shutdown.run_until_cancelled(connecting).await {
            stand_in.show(&format!("its broker {address} is not reached: {why}"));
            if why != last_trouble {
                tracing::warn!(thing = %plan.config.name, broker = %address, "thing not connected: {why}; trying again");
                last_trouble = why;
            }
        }
        shutdown.run_until_cancelled(tokio::time::sleep(pause.take())).await;
    }
}

async fn connect_once(
    plan: &ThingPlan,
    address: &Address,
    announce: &Announce,
    stand_in: &mut StandIn,
    pause: &mut ReconnectDelay,
    shutdown: &CancellationToken,
) -> Result<(), Disconnected> {
    let connection = ThingConnection::open(plan, address).await?;
    pause.note_connected();
    let (sender, mut publications) = mpsc::channel(PUBLICATIONS);
    let device = Arc::new(ThingDevice::new(plan, Some(sender)).map_err(Disconnected)?);
    stand_in.end();
    announce(DeviceEvent::Joined(device.clone()));
    let mut leaving = Leaving { device: device.clone(), announce, reason: LeaveReason::Closed };
    let ended = connection.run(plan, &device, announce, &mut publications, shutdown).await;
    if let Err(Disconnected(why)) = &ended {
        leaving.reason = LeaveReason::Broken(why.clone());
    }
    ended
}

/// Reports that a gadget is gone, also when its task is dropped.
struct Leaving<'a> {
    device: Arc<ThingDevice>,
    announce: &'a Announce,
    reason: LeaveReason,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        (self.announce)(DeviceEvent::Left(self.device.clone(), self.reason.clone()));
    }
}
