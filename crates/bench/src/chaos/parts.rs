//! What runs during chaos: the gateway, a broker, an adb server and virtual devices, each of which can be killed and
//! started again at the same place.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use serde_json::{Value, json};
use sinew_phones::adb::AdbServer;
use sinew_sim::board::{BoardConfig, BoardKind, hardware_id};
use sinew_sim::faults::Faults;
use sinew_sim::firmware::Blueprint;
use sinew_sim::phone::{Handset, LockScreen, PhoneClock, PhoneSetup, adbd};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::callers::TOOL;
use crate::Error;
use crate::load::bench_error;
use crate::process::{self, Process, TOKEN};
use crate::servers::{KillableServer, free_address, wait_until};

/// The gateway, as a process that can be killed.
pub(super) struct KillableGateway {
    process: Option<Process>,
    config: PathBuf,
    state: PathBuf,
    log: PathBuf,
    adb: Option<SocketAddr>,
    pub(super) addresses: GatewayPorts,
}

#[derive(Clone, Copy)]
pub(super) struct GatewayPorts {
    pub(super) clients: SocketAddr,
    pub(super) boards: SocketAddr,
    pub(super) mqtt: SocketAddr,
}

impl KillableGateway {
    pub(super) async fn start(
        folder: &Path,
        broker: SocketAddr,
        adb: Option<SocketAddr>,
    ) -> Result<KillableGateway, Error> {
        let addresses = GatewayPorts { clients: free_address()?, boards: free_address()?, mqtt: free_address()? };
        let GatewayPorts { clients, boards, mqtt } = addresses;
        let config = folder.join("sinew.toml");
        // Calls are given up soon and queues are short, so that both happen in a short run.
        let text = format!(
            "listen = \"{clients}\"\ndevices = \"{boards}\"\nmqtt = \"{mqtt}\"\n\
             [gateway]\ncall-timeout = 2\nopen-calls = 16\n\
             [policy]\nunmarked = \"allow\"\n\
             [[brokers]]\nurl = \"mqtt://{broker}\"\n"
        );
        std::fs::write(&config, text).map_err(|error| bench_error(format!("{}: {error}", config.display())))?;
        let (state, log) = (folder.join("state"), folder.join("gateway.log"));
        let mut gateway = KillableGateway { process: None, config, state, log, adb, addresses };
        gateway.restart().await?;
        Ok(gateway)
    }

    /// Starts the process, and waits until it answers.
    pub(super) async fn restart(&mut self) -> Result<(), Error> {
        let (config, state) = (self.config.display().to_string(), self.state.display().to_string());
        let arguments = ["serve", "--config", &config, "--state", &state, "--token", TOKEN, "--output", "json"];
        // A write beyond the limit of the file size is to fail, and not to end the process.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(process::program()?).args(arguments);
        process::prepare(&mut command);
        if let Some(adb) = self.adb {
            command.env("ADB_SERVER_SOCKET", format!("tcp:{adb}"));
        }
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log);
        command.stderr(log.map_err(|error| bench_error(format!("{}: {error}", self.log.display())))?);
        self.process = Some(Process::start_command(command, &arguments).await?);
        Ok(())
    }

    pub(super) async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }

    /// From now on no file of the gateway can grow; or all can again.
    pub(super) async fn fill_store(&self, is_full: bool) -> Result<(), Error> {
        let Some(id) = self.process.as_ref().and_then(Process::id) else { return Ok(()) };
        let limit = if is_full { "--fsize=1:" } else { "--fsize=unlimited:" };
        let set = Command::new("prlimit").arg(format!("--pid={id}")).arg(limit).status().await;
        match set {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(bench_error(format!("prlimit failed: {status}"))),
            Err(error) => Err(bench_error(format!("prlimit of util-linux is needed: {error}"))),
        }
    }

    pub(super) fn usage(&self) -> Result<ProcessUsage, Error> {
        let process = self.process.as_ref().ok_or_else(|| bench_error("the gateway does not run"))?;
        let folder = format!("/proc/{}/fd", process.id().unwrap_or_default());
        let files = std::fs::read_dir(&folder).map_err(|error| bench_error(format!("{folder}: {error}")))?;
        let is_socket =
            |path: PathBuf| std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("socket:"));
        let sockets = files.filter_map(Result::ok).filter(|file| is_socket(file.path())).count();
        Ok(ProcessUsage { sockets, resident: process.resident()? })
    }

    /// The last lines of its log.
    pub(super) fn log_end(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// What a process uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessUsage {
    pub(super) sockets: usize,
    pub(super) resident: u64,
}

/// An adb server, and a virtual phone that it knows.
pub(super) struct AdbPart {
    server: KillableServer,
    phone: SocketAddr,
    _serving: CancellationOnDrop,
}

/// Ends what runs with it.
struct CancellationOnDrop(CancellationToken);

impl Drop for CancellationOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl AdbPart {
    /// `None` if adb is not installed.
    pub(super) async fn start(folder: &Path) -> Result<Option<AdbPart>, Error> {
        let (address, home) = (free_address()?, folder.to_owned());
        let server = KillableServer::start(address, move || {
            let mut command = Command::new("adb");
            command.args(["-P", &address.port().to_string(), "nodaemon", "server"]).env("HOME", &home);
            command
        });
        let Some(server) = server.await? else { return Ok(None) };
        let setup = PhoneSetup { lock: LockScreen::None, ..PhoneSetup::default() };
        let io = |error: std::io::Error| bench_error(format!("a virtual phone: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
        let phone = listener.local_addr().map_err(io)?;
        let shutdown = CancellationToken::new();
        tokio::spawn(adbd::run(listener, Handset::new(setup, PhoneClock::Real), shutdown.clone()));
        let part = AdbPart { server, phone, _serving: CancellationOnDrop(shutdown) };
        part.connect_phone().await?;
        Ok(Some(part))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(super) async fn kill_and_restart(&mut self) -> Result<(), Error> {
        self.server.kill().await;
        self.server.restart().await?;
        self.connect_phone().await
    }

    async fn connect_phone(&self) -> Result<(), Error> {
        let server = AdbServer::tcp("127.0.0.1", self.server.address.port());
        let phone = self.phone.to_string();
        wait_until("connecting the virtual phone", async || server.connect_phone(&phone).await.is_ok()).await
    }
}

/// A virtual board that can be killed.
pub(super) struct KillableBoard {
    config: BoardConfig,
    running: Option<JoinHandle<()>>,
}

impl KillableBoard {
    pub(super) fn start(config: BoardConfig) -> KillableBoard {
        let mut board = KillableBoard { config, running: None };
        board.restart();
        board
    }

    /// Its sockets close at once, without a goodbye.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
    }

    /// A board whose address or token is refused ends, which the calls to it show.
    pub(super) fn restart(&mut self) {
        let config = self.config.clone();
        self.running = Some(tokio::spawn(async move {
            let _ = sinew_sim::board::run(config, CancellationToken::new()).await;
        }));
    }

    /// From now on nothing happens to its messages.
    pub(super) async fn calm_down(&mut self) {
        self.kill().await;
        self.config.faults = Faults::default();
        self.restart();
    }
}

/// Boards over WebSocket, MQTT and the broker, with faults drawn from the seed; each reports what it executes.
pub(super) fn boards(
    seed: u64,
    ports: GatewayPorts,
    broker: SocketAddr,
    executions: &mpsc::Sender<Value>,
) -> Result<Vec<KillableBoard>, Error> {
    let tool = json!({"name": TOOL, "description": "Count a call.", "inputSchema": {
        "type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"],
    }});
    let blueprint = Blueprint::read("chaos-board", &[tool]).map_err(bench_error)?.reporting_to(executions.clone());
    let faults = Faults {
        seed,
        lost: 0.01,
        late: 0.05,
        garbled: 0.01,
        doubled: 0.01,
        disconnect: 0.005,
        strict_ids: true,
        ..Faults::default()
    };
    let direct = [format!("ws://{}/xiaozhi/v1/", ports.boards), format!("mqtt://{}", ports.mqtt)];
    let places = [&direct[0], &direct[0], &direct[0], &direct[1], &direct[1]].map(|url| (url.clone(), false));
    let at_broker = format!("mqtt://{broker}");
    let places = places.into_iter().chain([(at_broker.clone(), true), (at_broker, true)]);
    let configs = places.zip(1..).map(|((url, behind_broker), index)| BoardConfig {
        token: (!behind_broker).then(|| TOKEN.to_owned()),
        blueprint: Some(blueprint.clone()),
        behind_broker,
        faults,
        ..BoardConfig::new(url, hardware_id(index), BoardKind::Relay)
    });
    Ok(configs.map(KillableBoard::start).collect())
}
