//! A real adb server of the test's own, a virtual phone behind it, and what the tracker announces.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sinew_phones::adb::{self, AdbServer, PhoneOptions};
use sinew_sim::phone::{Handset, PhoneClock, PhoneSetup, adbd};
use sinew_tool::{Device, DeviceEvent, DeviceKey, LeaveReason, Status};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub struct Tracked {
    pub server: AdbServer,
    pub handset: Handset,
    pub address: String,
    pub shutdown: CancellationToken,
    events: mpsc::UnboundedReceiver<DeviceEvent>,
    /// The devices that are there, by their keys, and what they said last.
    here: HashMap<DeviceKey, Arc<dyn Device>>,
    /// Why devices left, by their keys.
    pub left: HashMap<DeviceKey, LeaveReason>,
    _home: tempfile::TempDir,
    _process: tokio::process::Child,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Tracked {
    /// `None` where there is no adb on this machine; `scripts/test` installs it, and there its absence is a failure.
    pub async fn open(setup: PhoneSetup, offer: PhoneOptions) -> Option<Tracked> {
        Tracked::with(Handset::new(setup, PhoneClock::Virtual), offer).await
    }

    pub async fn with(handset: Handset, offer: PhoneOptions) -> Option<Tracked> {
        let home = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let mut command = tokio::process::Command::new("adb");
        command.args(["-P", &port.to_string(), "nodaemon", "server"]).env("HOME", home.path());
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        let process = command.stderr(std::process::Stdio::null()).kill_on_drop(true).spawn();
        let process = outside(process.ok(), "adb")?;
        let server = AdbServer::tcp("127.0.0.1", port);
        while server.version().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        tokio::spawn(adbd::run(listener, handset.clone(), shutdown.clone()));
        let (send, events) = mpsc::unbounded_channel();
        let announce = Arc::new(move |event| drop(send.send(event)));
        tokio::spawn(adb::run(server.clone(), offer, announce, shutdown.clone()));
        server.connect_phone(&address).await.unwrap();
        let (here, left) = (HashMap::new(), HashMap::new());
        Some(Tracked { server, handset, address, shutdown, events, here, left, _home: home, _process: process })
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

    /// Serves the same phone at one more address and connects it; gives the address.
    pub async fn connect_again(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(adbd::run(listener, self.handset.clone(), self.shutdown.clone()));
        self.server.connect_phone(&address).await.unwrap();
        address
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
