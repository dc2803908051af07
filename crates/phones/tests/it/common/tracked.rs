//! A real adb server of the test's own, a virtual phone behind it, and what the tracker announces.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use sinew_phones::adb::{self, PhoneOptions};
use sinew_sim::phone::{Handset, PhoneClock, PhoneSetup};
use sinew_tool::{Device, DeviceEvent, DeviceKey, LeaveReason, Status};
use tokio::sync::mpsc;

use super::virtual_adb::VirtualAdb;

pub struct Tracked {
    adb: VirtualAdb,
    events: mpsc::UnboundedReceiver<DeviceEvent>,
    /// The devices that are there, by their keys, and what they said last.
    here: HashMap<DeviceKey, Arc<dyn Device>>,
    /// Why devices left, by their keys.
    pub left: HashMap<DeviceKey, LeaveReason>,
}

impl Deref for Tracked {
    type Target = VirtualAdb;

    fn deref(&self) -> &VirtualAdb {
        &self.adb
    }
}

impl Tracked {
    /// `None` where there is no adb on this machine.
    pub async fn open(setup: PhoneSetup, offer: PhoneOptions) -> Option<Tracked> {
        Tracked::with(Handset::new(setup, PhoneClock::Virtual), offer).await
    }

    pub async fn with(handset: Handset, offer: PhoneOptions) -> Option<Tracked> {
        let adb = VirtualAdb::open(handset).await?;
        let (send, events) = mpsc::unbounded_channel();
        let announce = Arc::new(move |event| drop(send.send(event)));
        tokio::spawn(adb::run(adb.server.clone(), offer, announce, adb.shutdown.clone()));
        adb.server.connect_phone(&adb.address).await.unwrap();
        Some(Tracked { adb, events, here: HashMap::new(), left: HashMap::new() })
    }

    /// Takes in what is announced until something holds.
    pub async fn until<T>(&mut self, mut holds: impl FnMut(&HashMap<DeviceKey, Arc<dyn Device>>) -> Option<T>) -> T {
        loop {
            if let Some(found) = holds(&self.here) {
                return found;
            }
            match self.events.recv().await.expect("the tracker runs") {
                DeviceEvent::Joined(device) => drop(self.here.insert(device.info().key.clone(), device)),
                DeviceEvent::Left(device, reason) => {
                    self.here.remove(&device.info().key);
                    self.left.insert(device.info().key.clone(), reason);
                }
                DeviceEvent::Changed(_) | DeviceEvent::Said(..) | DeviceEvent::Dropped(..) => {}
            }
        }
    }

    /// The phone once it is ready; what it was before passes by.
    pub async fn phone(&mut self) -> Arc<dyn Device> {
        self.until(|here| {
            let is_ready = |device: &&Arc<dyn Device>| {
                let info = device.info();
                info.family.name.as_str() == "phone" && info.status == Status::Ready
            };
            here.values().find(is_ready).cloned()
        })
        .await
    }

    /// What the phone says of itself, which does not depend on its address.
    pub fn serial_number(&self) -> String {
        self.handset.with(|machine| machine.setup.serial.clone())
    }

    /// The device with a key once it is there.
    pub async fn device(&mut self, key: &str) -> Arc<dyn Device> {
        let key = DeviceKey(key.to_owned());
        self.until(|here| here.get(&key).cloned()).await
    }

    pub async fn without_device(&mut self, key: &str) {
        let key = DeviceKey(key.to_owned());
        self.until(|here| (!here.contains_key(&key)).then_some(())).await;
    }

    /// An app once it is there.
    pub async fn app(&mut self, package: &str) -> Arc<dyn Device> {
        let key = DeviceKey(format!("app:{}:{package}", self.serial_number()));
        self.until(|here| here.get(&key).cloned()).await
    }

    pub async fn without_app(&mut self, package: &str) {
        let key = DeviceKey(format!("app:{}:{package}", self.serial_number()));
        self.until(|here| (!here.contains_key(&key)).then_some(())).await;
    }
}

/// What a test needs from outside. Where all tests are meant to run, its absence is a failure.
pub fn outside<T>(found: Option<T>, what: &str) -> Option<T> {
    assert!(found.is_some() || std::env::var_os("SINEW_TEST_ALL").is_none(), "{what} is missing; run scripts/install");
    found
}

/// A file that `android/build` made.
pub fn built(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/android").join(name);
    outside(path.is_file().then_some(path), &format!("target/android/{name} (made by android/build)"))
}
