//! A real adb server of the test's own, and a virtual phone that is connected to it.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::time::Duration;

use sinew_phones::adb::{AdbPhone, AdbServer};
use sinew_sim::phone::{Handset, adbd};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::tracked::outside;

pub struct VirtualAdb {
    pub server: AdbServer,
    pub handset: Handset,
    pub address: String,
    pub shutdown: CancellationToken,
    _home: tempfile::TempDir,
    _process: tokio::process::Child,
}

impl Drop for VirtualAdb {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl VirtualAdb {
    /// `None` where there is no adb on this machine; `scripts/test` installs it, and there its absence is a failure.
    pub async fn open(handset: Handset) -> Option<VirtualAdb> {
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
        Some(VirtualAdb { server, handset, address, shutdown, _home: home, _process: process })
    }

    /// Serves the same phone at one more address and connects it; gives the address.
    pub async fn connect_again(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(adbd::run(listener, self.handset.clone(), self.shutdown.clone()));
        self.server.connect_phone(&address).await.unwrap();
        address
    }

    /// The phone, also after its cable was pulled: the server may still think that it is there.
    pub async fn connected(&self) -> AdbPhone {
        loop {
            let _ = self.server.connect_phone(&self.address).await;
            if let Ok(phone) = AdbPhone::open(&self.server, &self.address).await {
                return phone;
            }
            let _ = self.server.disconnect_phone(&self.address).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
