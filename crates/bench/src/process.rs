//! The processes of a measurement: this program itself as gateway, boards or baseline, each ended with
//! its handle.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::Error;
use crate::load::{HttpConnection, bench_error};

/// The token of every gateway that is measured.
pub(crate) const TOKEN: &str = "snw-bench-token-0123456789abcdef";

/// 20 s: what has not printed its first line by then will not.
const START: Duration = Duration::from_secs(20);

/// A process of ours.
pub(crate) struct Process {
    child: Child,
    /// The first line that it printed.
    pub(crate) page: Value,
}

impl Process {
    /// Starts this program with other arguments and waits for its first line, which is JSON.
    pub(crate) async fn start(arguments: &[&str]) -> Result<Process, Error> {
        Process::start_command(command(arguments)?, arguments).await
    }

    /// Starts a command that runs this program with these arguments, and waits for its first line.
    pub(crate) async fn start_command(mut command: Command, arguments: &[&str]) -> Result<Process, Error> {
        let mut child = command
            .spawn()
            .map_err(|error| bench_error(format!("cannot start `sinew {}`: {error}", arguments.join(" "))))?;
        let out = child.stdout.take().ok_or_else(|| bench_error("a process without standard output"))?;
        let mut lines = BufReader::new(out).lines();
        let line = tokio::time::timeout(START, lines.next_line()).await;
        let line = line.ok().and_then(Result::ok).flatten();
        let page = line.and_then(|line| serde_json::from_str(&line).ok());
        let page = page.ok_or_else(|| bench_error(format!("`sinew {}` did not start", arguments.join(" "))))?;
        // Further output is read and dropped, so that the process never waits for us.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Process { child, page })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr, Error> {
        let url = self.page["url"].as_str().unwrap_or_default();
        let address = url.rsplit('/').next().and_then(|address| address.parse().ok());
        address.ok_or_else(|| bench_error(format!("`{url}` is not a valid address")))
    }

    pub(crate) fn devices_url(&self) -> &str {
        self.page["devices_url"].as_str().unwrap_or_default()
    }

    pub(crate) fn mqtt_url(&self) -> &str {
        self.page["mqtt_url"].as_str().unwrap_or_default()
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64, Error> {
        resident(self.child.id())
    }

    /// The processor time it has used so far.
    pub(crate) fn processor_time(&self) -> Result<Duration, Error> {
        processor_time(&format!("/proc/{}/stat", self.child.id().unwrap_or_default()))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends the process at once, without a chance to clean up.
    pub(crate) async fn stop(mut self) {
        let _ = self.child.kill().await;
    }
}

/// The processor time that this process has used so far.
pub(crate) fn own_processor_time() -> Result<Duration, Error> {
    processor_time("/proc/self/stat")
}

fn processor_time(path: &str) -> Result<Duration, Error> {
    let stat = std::fs::read_to_string(path).map_err(|error| bench_error(format!("{path}: {error}")))?;
    // The name of the program, in brackets, may hold anything; the 14th and 15th fields are user and system time.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().skip(11);
    let ticks: u64 = fields.take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // Linux counts hundredths of a second for programs, whatever its own clock does.
    Ok(Duration::from_millis(ticks * 10))
}

/// The log of what is measured, in the folder for temporary files.
const LOG_FILE: &str = "sinew-bench.log";

/// The program that runs now.
pub(crate) fn program() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| bench_error(format!("cannot find this program: {error}")))
}

fn command(arguments: &[&str]) -> Result<Command, Error> {
    let mut command = Command::new(program()?);
    command.args(arguments);
    prepare(&mut command);
    Ok(command)
}

/// Whatever the user has set in the environment stays out of a measurement.
pub(crate) fn prepare(command: &mut Command) {
    command
        .env_remove("SINEW_STATE")
        .env_remove("SINEW_URL")
        .env_remove("SINEW_TOKEN")
        // Nobody's phones are part of a measurement.
        .env("ADB_SERVER_SOCKET", "localfilesystem:/nonexistent")
        .env("SINEW_LOG", "info")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log())
        .kill_on_drop(true);
}

/// What is measured logs as `sinew serve` does, to a file.
fn log() -> Stdio {
    let file = std::fs::File::options().create(true).append(true).open(std::env::temp_dir().join(LOG_FILE));
    file.map_or_else(|_| Stdio::inherit(), Stdio::from)
}

fn spawn(arguments: &[&str]) -> Result<Child, Error> {
    command(arguments)?
        .spawn()
        .map_err(|error| bench_error(format!("cannot start `sinew {}`: {error}", arguments.join(" "))))
}

/// Runs this program to its end; how long it took, and what it printed. It may fail, as a check that finds something.
pub(crate) async fn run_to_end(arguments: &[&str]) -> Result<(Duration, String), Error> {
    let began = Instant::now();
    let output = spawn(arguments)?.wait_with_output().await;
    let output = output.map_err(|error| bench_error(format!("`sinew {}`: {error}", arguments.join(" "))))?;
    let took = began.elapsed();
    if output.status.code().is_none_or(|code| code > 1) {
        return Err(bench_error(format!("`sinew {}` failed", arguments.join(" "))));
    }
    Ok((took, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// A gateway of its own, on a fresh state directory and free ports.
pub(crate) async fn gateway(state: &Path) -> Result<Process, Error> {
    Process::start(&serve_arguments("127.0.0.1:0", &state.display().to_string())).await
}

/// The same with a configuration file.
pub(crate) async fn gateway_with(state: &Path, config: &Path) -> Result<Process, Error> {
    let (state, config) = (state.display().to_string(), config.display().to_string());
    let arguments = [&serve_arguments("127.0.0.1:0", &state)[..], &["--config", &config]].concat();
    Process::start(&arguments).await
}

fn serve_arguments<'a>(listen: &'a str, state: &'a str) -> [&'a str; 13] {
    let free = "127.0.0.1:0";
    #[rustfmt::skip]
    let arguments = [
        "serve", "--listen", listen, "--devices", free, "--mqtt", free, "--state", state, "--token", TOKEN,
        "--output", "json",
    ];
    arguments
}

/// Virtual boards in a process of their own.
pub(crate) async fn boards(url: &str, first: u32, count: u32) -> Result<Process, Error> {
    start_boards(url, first, count, &[]).await
}

/// Virtual boards that dial from an address of their own, so that there are ports enough for all.
pub(crate) async fn boards_from(source: &str, url: &str, first: u32, count: u32) -> Result<Process, Error> {
    start_boards(url, first, count, &["--source", source]).await
}

async fn start_boards(url: &str, first: u32, count: u32, more: &[&str]) -> Result<Process, Error> {
    let (first, count) = (first.to_string(), count.to_string());
    let gateway = ["sim", "board", "--connect", url, "--token", TOKEN, "--output", "json"];
    let which = ["--kind", "relay", "--first", &first, "--count", &count];
    Process::start(&[&gateway[..], &which, more].concat()).await
}

/// How long a gateway takes from its start to its first answer, and its memory at rest.
pub(crate) async fn start_figures(state: &Path) -> Result<(f64, u64), Error> {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_err(|error| bench_error(format!("no free port: {error}")))?;
    let (listen, state) = (address.to_string(), state.display().to_string());
    let arguments = serve_arguments(&listen, &state);
    let started = Instant::now();
    let mut child = spawn(&arguments)?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let ready = loop {
        if let Ok(mut connection) = HttpConnection::open(address).await
            && connection.answers(request.as_bytes()).await
        {
            break started.elapsed();
        }
        if started.elapsed() > START {
            return Err(bench_error("the gateway did not answer /health"));
        }
        tokio::time::sleep(Duration::from_micros(500)).await;
    };
    // A second of rest, until what only starting needed is given back.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let resident = resident(child.id())?;
    let _ = child.kill().await;
    Ok((ready.as_secs_f64() * 1e3, resident))
}

fn resident(pid: Option<u32>) -> Result<u64, Error> {
    let path = format!("/proc/{}/status", pid.unwrap_or_default());
    let status = std::fs::read_to_string(&path).map_err(|error| bench_error(format!("{path}: {error}")))?;
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.map(|kibibytes: u64| kibibytes * 1024).ok_or_else(|| bench_error(format!("{path} has no line VmRSS")))
}

/// A folder that is removed with everything in it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Error> {
        let path = std::env::temp_dir().join(format!("sinew-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| bench_error(format!("{}: {error}", path.display())))?;
        Ok(Scratch(path))
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
