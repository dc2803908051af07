//! Servers of others that a measurement needs: a broker, an adb server. Each can be killed and started again at the same
//! address.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use crate::Error;
use crate::load::{HttpConnection, bench_error};

/// Whatever has not come up by then will not.
const START: Duration = Duration::from_secs(20);

/// A port that is free now. Everything that is killed comes back on its own.
pub(crate) fn free_address() -> Result<SocketAddr, Error> {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map_err(|error| bench_error(format!("no free port: {error}")))
}

/// Waits until `is_ready` says so.
pub(crate) async fn wait_until(what: &str, mut is_ready: impl AsyncFnMut() -> bool) -> Result<(), Error> {
    let patience = Instant::now() + START;
    while !is_ready().await {
        if Instant::now() > patience {
            return Err(bench_error(format!("{what}: not after {} s", START.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A program of somebody else, killed and started again at the same address.
pub(crate) struct KillableServer {
    pub(crate) address: SocketAddr,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Option<Child>,
}

impl KillableServer {
    /// `None` if the program is not installed.
    pub(crate) async fn start(
        address: SocketAddr,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Result<Option<KillableServer>, Error> {
        let mut server = KillableServer { address, command: Box::new(command), child: None };
        match server.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(bench_error(format!("cannot start a server at {address}: {error}"))),
            Ok(child) => server.child = Some(child),
        }
        server.answers().await?;
        Ok(Some(server))
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = (self.command)();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()
    }

    async fn answers(&self) -> Result<(), Error> {
        let address = self.address;
        wait_until(&format!("a server at {address}"), async || HttpConnection::open(address).await.is_ok()).await
    }

    pub(crate) async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill().await;
        }
    }

    pub(crate) async fn restart(&mut self) -> Result<(), Error> {
        let started = self.spawn();
        self.child = Some(started.map_err(|error| bench_error(format!("cannot start a server again: {error}")))?);
        self.answers().await
    }
}

/// A Mosquitto without a memory, with its files in this folder.
pub(crate) async fn broker(folder: &Path) -> Result<KillableServer, Error> {
    let address = free_address()?;
    let file = folder.join("mosquitto.conf");
    let text = format!("listener {} 127.0.0.1\nallow_anonymous true\n", address.port());
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
    written.map_err(|error| bench_error(format!("{}: {error}", file.display())))?;
    let started = KillableServer::start(address, move || {
        let program = ["/usr/sbin/mosquitto", "mosquitto"].into_iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(program.unwrap_or("mosquitto"));
        command.arg("-c").arg(&file);
        command
    });
    started.await?.ok_or_else(|| bench_error("mosquitto is missing; install it (Debian: mosquitto)"))
}
