//! A hundred thousand boards behind one connection to a broker: what each costs the gateway, how fast they join, and
//! whether calls reach them.
//!
//! The broker is a Mosquitto of the benchmark's own. The boards share a connection to it in a process of their own,
//! and one machine: what is measured is the gateway, which has one connection in any case.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Error;
use crate::load::{self, bench_error, percentile};
use crate::process::{Process, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, PUBLIC_TOOL, in_thread, request, servers};

/// The first boards, which allocate what all of them share.
const FIRST: u32 = 32;
const CONNECTIONS: u32 = 32;
/// Enough for a slow machine.
const PATIENCE: Duration = Duration::from_secs(1200);

pub(crate) async fn measure(count: u32, plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let folder = scratch.folder("crowd");
    let mut mosquitto = servers::broker(&folder).await?;
    let broker = format!("mqtt://{}", mosquitto.address);
    let gateway = gateway(&folder, &broker, count + FIRST).await?;
    let address = gateway.address()?;
    let first = crowd(&broker, 1, FIRST).await?;
    joined(address, 1, FIRST).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = gateway.resident()?;

    let began = Instant::now();
    let boards = crowd(&broker, FIRST + 1, count).await?;
    joined(address, FIRST + 1, count).await?;
    let joining = began.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let each = gateway.resident()?.saturating_sub(before) as f64 / f64::from(count) / 1024.0;

    // Spread over all of them.
    let call = |number: u32| {
        let device = format!("board-{:06x}", FIRST + 1 + number * (count / CONNECTIONS).max(1) % count);
        request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}))
    };
    let mut tally = in_thread(address, (0..CONNECTIONS).map(call).collect(), plan.time).await?;
    for process in [first, boards, gateway] {
        process.stop().await;
    }
    mosquitto.kill().await;

    let label = format!("memory for each of {count} boards behind one broker connection");
    report.push(Figure::at_most("crowd_board_kib", &label, each, "KiB", 4.0));
    report.push(Figure::plain(
        "crowd_join_per_second",
        "the same boards joining",
        f64::from(count) / joining,
        "boards/s",
    ));
    let label = format!("tools/call through the broker, {CONNECTIONS} connections");
    report.push(Figure::plain("crowd_calls_per_second", &label, tally.per_second(), "calls/s"));
    let tail = percentile(&mut tally.latencies, 0.99) / 1e3;
    report.push(Figure::plain("crowd_calls_p99_ms", "the same, 99th percentile", tail, "ms"));
    Ok(())
}

async fn gateway(folder: &Path, broker: &str, count: u32) -> Result<Process, Error> {
    let config = folder.join("sinew.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndevices = \"127.0.0.1:0\"\nmqtt = \"off\"\nmax-devices = {count}\n[[brokers]]\nurl = \"{broker}\"\n"
    );
    std::fs::write(&config, text).map_err(|error| bench_error(format!("{}: {error}", config.display())))?;
    let (config, state) = (config.display().to_string(), folder.join("state").display().to_string());
    let arguments = ["serve", "--config", &config, "--state", &state, "--token", TOKEN, "--output", "json"];
    Process::start(&arguments).await
}

async fn crowd(broker: &str, first: u32, count: u32) -> Result<Process, Error> {
    let (first, count) = (first.to_string(), count.to_string());
    let whereto = ["sim", "board", "--broker", broker, "--crowd", "--output", "json"];
    let which = ["--kind", "relay", "--first", &first, "--count", &count];
    Process::start(&[&whereto[..], &which].concat()).await
}

/// Waits until these boards are known, one small question each, and seldom: while boards join, every answer is made
/// from a fresh look at all of them.
async fn joined(address: SocketAddr, first: u32, count: u32) -> Result<(), Error> {
    let mut client = load::HttpConnection::open(address).await?;
    let patience = Instant::now() + PATIENCE;
    for number in first..first + count {
        let path = format!("/api/v1/events?limit=1&device=board-{number:06x}");
        while let Err(failure) = client.get::<sinew_api::Events>(&path).await {
            if Instant::now() > patience {
                return Err(bench_error(format!("board {number} did not join: {failure}")));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
    Ok(())
}
