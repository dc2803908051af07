//! A real adb server of its own, and a virtual phone behind it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sinew_phones::adb::{AdbPhone, AdbServer};
use sinew_sim::phone::{Handset, adbd};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::load::bench_error;

/// The server looks for USB devices first; after connecting a phone it calls it offline for a moment.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct VirtualAdb {
    pub home: PathBuf,
    port: u16,
    server: AdbServer,
    address: String,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    _process: Child,
}

impl VirtualAdb {
    /// `None` where there is no adb on this machine.
    pub(crate) async fn open(home: PathBuf, handset: Handset) -> Result<Option<VirtualAdb>, Error> {
        std::fs::create_dir_all(&home).map_err(io)?;
        let port =
            TcpListener::bind("127.0.0.1:0").await.and_then(|listener| listener.local_addr()).map_err(io)?.port();
        let Ok(process) = adb(port, &home).args(["nodaemon", "server"]).spawn() else { return Ok(None) };
        let server = AdbServer::tcp("127.0.0.1", port);
        let started = Instant::now();
        while server.version().await.is_err() {
            if started.elapsed() > PATIENCE {
                return Err(bench_error("the adb server does not answer"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
        let address = listener.local_addr().map_err(io)?.to_string();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(adbd::run(listener, handset, shutdown.clone()));
        let connected = server.connect_phone(&address).await;
        connected.map_err(|error| bench_error(format!("a virtual phone is not connected: {error}")))?;
        Ok(Some(VirtualAdb { home, port, server, address, shutdown, serving, _process: process }))
    }

    pub(crate) async fn phone(&self) -> Result<AdbPhone, Error> {
        let began = Instant::now();
        loop {
            match AdbPhone::open(&self.server, &self.address).await {
                Ok(phone) => return Ok(phone),
                Err(error) if began.elapsed() > PATIENCE => {
                    return Err(bench_error(format!("a virtual phone does not answer: {error}")));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// adb itself, for this phone.
    pub(crate) fn command(&self) -> Command {
        let mut command = adb(self.port, &self.home);
        command.args(["-s", &self.address]);
        command
    }

    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        let _ = self.serving.await;
    }
}

fn adb(port: u16, home: &std::path::Path) -> Command {
    let mut adb = Command::new("adb");
    adb.args(["-P", &port.to_string()]).env("HOME", home).kill_on_drop(true);
    adb.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    adb
}

fn io(error: std::io::Error) -> Error {
    bench_error(format!("the adb server and its phone: {error}"))
}
