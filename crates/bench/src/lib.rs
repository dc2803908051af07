//! The benchmark behind `sinew bench`: speed and size on this machine, against baselines in the same run.
//!
//! Everything shares the machine: the load generator, the gateway, and virtual boards in a process of
//! their own over real sockets, with tokens, validation and audit as always. Rounds of the gateway and
//! of its baselines alternate, so that other load on the machine affects all of them.

#![warn(unreachable_pub)]

mod access;
mod apps;
mod chaos;
mod console;
mod crowd;
mod direct;
mod endpoint;
mod fleet;
mod gadgets;
mod hostile;
pub mod instructions;
mod load;
mod phone_streams;
mod phones;
mod plot;
mod process;
mod report;
mod request;
mod routines;
mod servers;
mod soak;
mod specifications;
mod stage;
mod virtual_adb;
mod voice;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;

pub use report::{Figure, PROFILE, Report, Target};
pub use stage::Stage;

use load::{bench_error, percentile};
use process::{Process, Scratch, TOKEN};

/// Why something could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// As many boards as connections, so that no two calls wait for one board.
const CONNECTIONS: u32 = 32;

/// A tool of the relay board that only reads: as the board calls it, and as clients see it.
const TOOL: &str = "self.read_sensors";
const PUBLIC_TOOL: &str = "self_read_sensors";

/// What to measure, and how much of everything.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A short run: the same figures, less exact.
    pub quick: bool,
    /// Only these of [`Stage::USUAL`]; all where none is named.
    pub only: Vec<Stage>,
    pub rounds: Option<u32>,
    pub seconds: Option<f64>,
    pub boards: Option<u32>,
    /// A fleet of this many boards instead of everything else.
    pub fleet: Option<u32>,
    /// This many boards behind one broker connection instead of everything else.
    pub crowd: Option<u32>,
    /// So many seconds of chaos instead of everything else.
    pub chaos: Option<u32>,
    /// What the chaos is drawn from.
    pub seed: u64,
    /// A million calls spread over so many minutes instead of everything else.
    pub soak: Option<f64>,
    /// Where the soak is plotted, as SVG.
    pub plot: Option<PathBuf>,
}

struct BenchPlan {
    rounds: u32,
    time: Duration,
    boards: u32,
    starts: u32,
}

impl BenchPlan {
    fn is_quick(&self) -> bool {
        self.starts == 1
    }
}

/// A run of the benchmark.
pub struct Bench {
    plan: BenchPlan,
    stages: Vec<Stage>,
    scratch: Scratch,
    report: Report,
    seed: u64,
    plot: Option<PathBuf>,
}

impl Bench {
    pub fn new(options: Options) -> Result<Bench, Error> {
        let Options { quick, only, rounds, seconds, boards, fleet, crowd, chaos, seed, soak, plot } = options;
        let plan = BenchPlan {
            rounds: rounds.unwrap_or(if quick { 1 } else { 5 }).max(1),
            time: Duration::from_secs_f64(seconds.unwrap_or(if quick { 0.2 } else { 3.0 }).clamp(0.05, 600.0)),
            boards: boards.unwrap_or(if quick { 50 } else { 4000 }).max(1),
            starts: if quick { 1 } else { 7 },
        };
        let alone = (fleet.map(|count| vec![Stage::Fleet(count.max(3)), Stage::Mqtt]))
            .or_else(|| crowd.map(|count| vec![Stage::Crowd(count.max(1))]))
            .or_else(|| chaos.map(|seconds| vec![Stage::Chaos(seconds)]))
            .or_else(|| soak.map(|minutes| vec![Stage::Soak(minutes)]));
        let is_wanted = |stage: &Stage| only.is_empty() || only.contains(stage);
        let stages = alone.unwrap_or_else(|| Stage::USUAL.into_iter().filter(is_wanted).collect());
        Ok(Bench { plan, stages, scratch: Scratch::new()?, report: Report::default(), seed, plot })
    }

    /// What is measured, in this order.
    pub fn stages(&self) -> Vec<Stage> {
        self.stages.clone()
    }

    pub async fn measure(&mut self, stage: Stage) -> Result<(), Error> {
        let Bench { plan, scratch, report, seed, plot, .. } = self;
        match stage {
            Stage::Starting => starting(plan, scratch, report).await,
            Stage::Speed => speed(plan, scratch, report).await,
            Stage::Latency => latency(plan, scratch, report).await,
            Stage::Memory => memory(plan, scratch, report).await,
            Stage::Listing => listing(plan, scratch, report).await,
            Stage::Access => access::measure(plan, scratch, report).await,
            Stage::ConsolePages => console::pages(plan, scratch, report).await,
            Stage::ConsoleLoad => console::first_load(plan, scratch, report).await,
            Stage::OpenConsoles => console::open_consoles(plan, scratch, report).await,
            Stage::Phones => phones::measure(plan, scratch, report).await,
            Stage::Apps => apps::measure(plan, scratch, report).await,
            Stage::Specifications => specifications::measure(plan, scratch, report).await,
            Stage::Voice => voice::measure(plan, scratch, report).await,
            Stage::Routines => routines::measure(plan, scratch, report).await,
            Stage::Gadgets => gadgets::measure(plan, scratch, report).await,
            Stage::Hostile => hostile::measure(plan, scratch, report).await,
            Stage::Fleet(count) => fleet::measure(count, plan, scratch, report).await,
            Stage::Mqtt => fleet::measure_mqtt(plan, scratch, report).await,
            Stage::Crowd(count) => crowd::measure(count, plan, scratch, report).await,
            Stage::Chaos(seconds) => chaos::measure(seconds, *seed, scratch, report).await,
            Stage::Soak(minutes) => soak::measure(minutes, plot.as_deref(), scratch, report).await,
        }
    }

    pub fn finish(self) -> Report {
        self.report
    }
}

/// What the gateway is compared with: servers that do nothing but echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Rmcp,
    Axum,
}

impl Peer {
    /// Serves until this process is ended; `announce` gets the address.
    pub async fn serve(self, announce: impl FnOnce(SocketAddr)) -> Result<(), Error> {
        let listener =
            TcpListener::bind("127.0.0.1:0").await.map_err(|error| bench_error(format!("no free port: {error}")))?;
        announce(listener.local_addr().map_err(|error| bench_error(format!("no free port: {error}")))?);
        let shutdown = tokio_util::sync::CancellationToken::new();
        let served = match self {
            Peer::Rmcp => sinew_front::echo::run_rmcp_echo(listener, shutdown).await,
            Peer::Axum => sinew_front::echo::run_axum_echo(listener, shutdown).await,
        };
        served.map_err(|error| bench_error(format!("the baseline server failed: {error}")))
    }
}

async fn starting(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for number in 0..plan.starts {
        let (time, resident) = process::start_figures(&scratch.folder(&format!("start-{number}"))).await?;
        times.push(time);
        sizes.push(resident as f64 / 1e6);
    }
    report.push(
        Figure::at_most("ready_ms", "ready to serve after", percentile(&mut times.clone(), 0.5), "ms", 50.0)
            .with(times),
    );
    report.push(
        Figure::at_most("idle_mb", "idle gateway, resident", percentile(&mut sizes.clone(), 0.5), "MB", 15.0)
            .with(sizes),
    );
    Ok(())
}

async fn speed(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("speed")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 1, CONNECTIONS).await?;
    let devices = ready_boards(address, CONNECTIONS).await?;
    let calls: Vec<_> =
        devices.iter().map(|device| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}))).collect();
    let rmcp = Process::start(&["bench-peer", "rmcp"]).await?;
    let axum = Process::start(&["bench-peer", "axum"]).await?;
    let echoes = |address: SocketAddr| -> Vec<_> {
        (0..CONNECTIONS).map(|_| request::call(address, TOKEN, "echo", json!({"text": "hello"}))).collect()
    };
    let runs =
        [(address, calls), (rmcp.address()?, echoes(rmcp.address()?)), (axum.address()?, echoes(axum.address()?))];
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut tails = Vec::new();
    // The first round warms up and is not counted.
    for round in 0..=plan.rounds {
        for (which, (address, requests)) in runs.iter().enumerate() {
            let time = if round == 0 { plan.time.min(Duration::from_millis(500)) } else { plan.time };
            let mut tally = in_thread(*address, requests.clone(), time).await?;
            if round > 0 {
                rates[which].push(tally.per_second());
                if which == 0 {
                    tails.push(percentile(&mut tally.latencies, 0.99) / 1e3);
                }
            }
        }
    }
    for process in [gateway, boards, rmcp, axum] {
        process.stop().await;
    }
    let [ours, rmcp, axum] = rates.each_ref().map(|rates| percentile(&mut rates.clone(), 0.5));
    let ratio = |other: f64| ours / other;
    report.push(
        Figure::at_least("calls_per_second", "tools/call to boards, 32 connections", ours, "calls/s", 12_000.0)
            .with(rates[0].clone()),
    );
    report.push(
        Figure::plain("calls_p99_ms", "the same, 99th percentile", percentile(&mut tails.clone(), 0.5), "ms")
            .with(tails),
    );
    report.push(Figure::plain("rmcp_per_second", "rmcp echo, no boards", rmcp, "calls/s").with(rates[1].clone()));
    report.push(Figure::plain("axum_per_second", "bare axum echo", axum, "calls/s").with(rates[2].clone()));
    report.push(Figure::at_least("of_rmcp", "share of the rmcp echo", ratio(rmcp), "", 0.4));
    report.push(Figure::plain("of_axum", "share of the bare axum echo", ratio(axum), ""));
    Ok(())
}

/// The generator has a thread and a runtime of its own.
async fn in_thread(address: SocketAddr, requests: Vec<Vec<u8>>, time: Duration) -> Result<load::Tally, Error> {
    let run = tokio::task::spawn_blocking(move || load::run(address, requests, time));
    run.await.map_err(|error| bench_error(format!("the load generator died: {error}")))?
}

async fn latency(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("latency")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 1, 1).await?;
    let devices = ready_boards(address, 1).await?;
    let call = request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": devices.first()}));

    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|error| bench_error(format!("no free port: {error}")))?;
    let direct_address = listener.local_addr().map_err(|error| bench_error(format!("no free port: {error}")))?;
    let url = format!("ws://{direct_address}/xiaozhi/v1/");
    let (board, direct) = tokio::join!(process::boards(&url, 1, 1), direct::Direct::accept(&listener));
    let (board, mut direct) = (board?, direct?);

    let (mut ours, mut theirs) = alternate(plan, address, call, async || direct.call(TOOL).await).await?;
    for process in [gateway, boards, board] {
        process.stop().await;
    }
    let [ours_p50, ours_p99] = [0.5, 0.99].map(|share| percentile(&mut ours, share));
    let [theirs_p50, theirs_p99] = [0.5, 0.99].map(|share| percentile(&mut theirs, share));
    report.push(Figure::plain("direct_p50_us", "a board called directly, median", theirs_p50, "µs"));
    report.push(Figure::plain("gateway_p50_us", "the same through the gateway", ours_p50, "µs"));
    report.push(Figure::at_most("added_p50_us", "added latency, median", ours_p50 - theirs_p50, "µs", 150.0));
    report.push(Figure::plain("added_p99_us", "added latency, 99th percentile", ours_p99 - theirs_p99, "µs"));
    Ok(())
}

/// The times in µs of a call through the gateway and of a direct one, in rounds that alternate.
async fn alternate(
    plan: &BenchPlan,
    address: SocketAddr,
    call: Vec<u8>,
    mut direct: impl AsyncFnMut() -> Result<(), Error>,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round warms up and is not counted.
    for round in 0..=plan.rounds {
        let tally = in_thread(address, vec![call.clone()], plan.time).await?;
        let mut straight = Vec::new();
        let end = Instant::now() + plan.time;
        while Instant::now() < end {
            let sent = Instant::now();
            direct().await?;
            straight.push(sent.elapsed().as_nanos() as f64 / 1e3);
        }
        if round > 0 {
            ours.extend(tally.latencies);
            theirs.extend(straight);
        }
    }
    Ok((ours, theirs))
}

async fn memory(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("memory")).await?;
    let each = memory_of_each(&gateway, gateway.devices_url(), plan.boards).await?;
    gateway.stop().await;
    let label = format!("memory for each of {} idle boards", plan.boards);
    report.push(Figure::at_most("board_kib", &label, each, "KiB", 8.0));
    Ok(())
}

/// The memory of each further board in KiB, after the first ones have allocated what all of them share.
async fn memory_of_each(gateway: &Process, url: &str, boards: u32) -> Result<f64, Error> {
    const FIRST: u32 = 32;
    let address = gateway.address()?;
    let first = process::boards(url, 1, FIRST).await?;
    joined(address, 1, FIRST).await?;
    settled(address).await?;
    let before = gateway.resident()?;
    let further = process::boards(url, FIRST + 1, boards).await?;
    joined(address, FIRST + 1, boards).await?;
    settled(address).await?;
    let each = gateway.resident()?.saturating_sub(before) as f64 / f64::from(boards) / 1024.0;
    for process in [first, further] {
        process.stop().await;
    }
    Ok(each)
}

/// Waits until these boards are known, one small question each: a list of all of them would leave its own mark
/// on the memory that is measured.
async fn joined(address: SocketAddr, first: u32, count: u32) -> Result<(), Error> {
    let mut client = load::HttpConnection::open(address).await?;
    let patience = Instant::now() + Duration::from_secs(60);
    for number in first..first + count {
        let path = format!("/api/v1/events?limit=1&device=board-{number:06x}");
        while let Err(failure) = client.get::<sinew_api::Events>(&path).await {
            if Instant::now() > patience {
                return Err(bench_error(format!("board {number} did not join: {failure}")));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Waits until the memory that joining needed is released: the allocator keeps what was freed for a second, and
/// gives it back only while it is used.
async fn settled(address: SocketAddr) -> Result<(), Error> {
    let mut client = load::HttpConnection::open(address).await?;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.get::<sinew_api::Events>("/api/v1/events?limit=1").await?;
    }
    Ok(())
}

async fn listing(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("listing")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 1, 50).await?;
    let devices = ready_boards(address, 50).await?;
    let list = request::list_at(request::ENDPOINT, address, TOKEN);
    let length = load::HttpConnection::open(address).await?.exchange(&list).await?;
    report.push(Figure::at_most("list_bytes", "tools/list with 50 equal boards", length as f64, "bytes", 3000.0));
    let lists = |path: &str| vec![request::list_at(path, address, TOKEN); CONNECTIONS as usize];
    let lists = share_of_exact(plan, address, lists).await?;
    let calls = |path: &str| {
        let of_device =
            |device: &String| request::call_at(path, address, TOKEN, PUBLIC_TOOL, json!({"device": device}));
        devices.iter().take(CONNECTIONS as usize).map(of_device).collect()
    };
    let calls = share_of_exact(plan, address, calls).await?;
    boards.stop().await;
    gateway.stop().await;
    report.push(Figure::at_least("portable_lists", "tools/list, rate with portable to exact schemas", lists, "", 0.95));
    report.push(Figure::at_least("portable_calls", "calls, rate with portable to exact schemas", calls, "", 0.95));
    Ok(())
}

/// The rate of requests where schemas are portable to that where they are exact, in turns at the same gateway.
async fn share_of_exact(
    plan: &BenchPlan,
    address: SocketAddr,
    requests: impl Fn(&str) -> Vec<Vec<u8>>,
) -> Result<f64, Error> {
    let mut rates: [Vec<f64>; 2] = Default::default();
    // The first round warms up and is not counted.
    for round in 0..=plan.rounds {
        for (path, rates) in [request::ENDPOINT, request::EXACT_ENDPOINT].into_iter().zip(&mut rates) {
            let tally = in_thread(address, requests(path), plan.time).await?;
            if round > 0 {
                rates.push(tally.per_second());
            }
        }
    }
    let [portable, exact] = rates.map(|mut rates| percentile(&mut rates, 0.5));
    Ok(portable / exact)
}

/// Waits until so many boards are ready; gives their ids.
async fn ready_boards(address: SocketAddr, count: u32) -> Result<Vec<String>, Error> {
    let mut client = load::HttpConnection::open(address).await?;
    let patience = Instant::now() + Duration::from_secs(60);
    let ids = loop {
        // Routines are a device of the gateway itself.
        let ready = client.ready_devices().await?.into_iter().filter(|device| device.family != "routine");
        let ready: Vec<String> = ready.map(|device| device.id).collect();
        if ready.len() >= count as usize {
            break ready;
        }
        if Instant::now() > patience {
            return Err(bench_error(format!("only {} of {count} boards joined", ready.len())));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    Ok(ids)
}
