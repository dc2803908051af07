//! Many boards: how fast they join, what each costs, how calls to any of them fare, and what happens when most of
//! them drop at once and return. And boards on MQTT, called as fast as they answer.
//!
//! The boards live in three processes, each dialling from a loopback address of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Error;
use crate::load::{self, Tally, bench_error, percentile};
use crate::process::{self, Process, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, PUBLIC_TOOL, in_thread, joined, ready_boards, request, settled};

const SOURCES: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
const CALLS_PER_SECOND: u32 = 2000;
/// Calls to those that stay, while the others drop and return.
const CALLS_MEANWHILE: u32 = 500;
/// As long as all of them may take to return, and then some.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn measure(count: u32, plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    // Unless it is a quick run, longer than a stay that would count as restless.
    let call_time = plan.time * 4;
    let share = count.div_ceil(3);
    let groups: Vec<(u32, u32)> = (0..3).map(|group| (group * share + 1, share)).collect();
    let count = share * 3;
    let gateway = process::gateway(&scratch.folder("fleet")).await?;
    let address = gateway.address()?;
    settled(address).await?;
    let before = gateway.resident()?;

    let began = Instant::now();
    let mut boards = start(&gateway, &groups).await?;
    let joining = gathered(address, &groups).await?.duration_since(began).as_secs_f64();
    // Only then may anybody ask for all of them: a list so long leaves its own mark on the memory.
    settled(address).await?;
    let each = gateway.resident()?.saturating_sub(before) as f64 / f64::from(count) / 1024.0;
    let listed = ready(address).await?;
    report.push(Figure::at_least(
        "fleet_join_per_second",
        &format!("{count} boards joining"),
        f64::from(count) / joining,
        "boards/s",
        2000.0,
    ));
    report.push(Figure::at_most("fleet_board_kib", "memory for each of them", each, "KiB", 8.0));
    report.push(Figure::at_least("fleet_listed", "of them listed as ready", listed as f64, "", f64::from(count)));

    let all = calls(address, 1, count);
    let mut tally = paced(address, all, CALLS_PER_SECOND, call_time).await?;
    let label = format!("calls to any of them at {CALLS_PER_SECOND}/s");
    report.push(Figure::plain("fleet_call_p50_ms", &format!("{label}, median"), tally.share_ms(0.5), "ms"));
    report.push(Figure::at_most(
        "fleet_call_p99_ms",
        &format!("{label}, 99th percentile"),
        tally.share_ms(0.99),
        "ms",
        5.0,
    ));
    report.push(failures("fleet_call_failures", "of these failed", &tally));

    // Two of three groups drop at once, as if somebody pulled the plug of their hall, and return.
    let (first, stay) = groups[0];
    let meanwhile = tokio::spawn(paced(address, calls(address, first, stay), CALLS_MEANWHILE, call_time * 2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let dropped = Instant::now();
    for group in boards.drain(1..).collect::<Vec<_>>() {
        group.stop().await;
    }
    until(address, |ready| ready <= stay as usize, dropped).await?;
    let gone = dropped.elapsed().as_secs_f64();
    boards.extend(start(&gateway, &groups[1..]).await?);
    until(address, |ready| ready >= count as usize, dropped).await?;
    let back = dropped.elapsed().as_secs_f64();
    let tally = meanwhile.await.map_err(|error| bench_error(format!("the load generator died: {error}")))??;
    let many = count - stay;
    report.push(Figure::plain("fleet_gone_s", &format!("{many} of them dropping at once, known after"), gone, "s"));
    report.push(Figure::at_most("fleet_back_s", "and all of them back after", back, "s", 15.0));
    report.push(failures("fleet_others_failures", "calls to the others that failed meanwhile", &tally));

    boards.push(gateway);
    for process in boards {
        process.stop().await;
    }
    Ok(())
}

/// Boards on MQTT, each called over a connection of its own.
pub(crate) async fn measure_mqtt(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    const BOARDS: u32 = 100;
    let gateway = process::gateway(&scratch.folder("mqtt")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.mqtt_url(), 1, BOARDS).await?;
    ready_boards(address, BOARDS).await?;
    let (mut rates, mut tails) = (Vec::new(), Vec::new());
    for round in 0..=plan.rounds {
        let mut tally = in_thread(address, calls(address, 1, BOARDS), plan.time).await?;
        if round > 0 {
            rates.push(tally.per_second());
            tails.push(percentile(&mut tally.latencies, 0.99) / 1e3);
        }
    }
    for process in [boards, gateway] {
        process.stop().await;
    }
    let rate = percentile(&mut rates.clone(), 0.5);
    let label = format!("tools/call to {BOARDS} boards on MQTT");
    report.push(Figure::at_least("mqtt_calls_per_second", &label, rate, "calls/s", 10_000.0).with(rates));
    let tail = percentile(&mut tails.clone(), 0.5);
    report.push(Figure::plain("mqtt_calls_p99_ms", "the same, 99th percentile", tail, "ms").with(tails));
    Ok(())
}

async fn start(gateway: &Process, groups: &[(u32, u32)]) -> Result<Vec<Process>, Error> {
    let mut boards = Vec::new();
    for (first, count) in groups {
        let source = SOURCES[(*first / count) as usize % SOURCES.len()];
        boards.push(process::boards_from(source, gateway.devices_url(), *first, *count).await?);
    }
    Ok(boards)
}

/// When the last of them was there. The last of each group are waited for, so that joining is not disturbed by
/// questions; those that then turn out to be missing are waited for one by one.
async fn gathered(address: SocketAddr, groups: &[(u32, u32)]) -> Result<Instant, Error> {
    for (first, count) in groups {
        joined(address, first + count - 1, 1).await?;
    }
    let mut since = Instant::now();
    let mut client = load::HttpConnection::open(address).await?;
    for number in groups.iter().flat_map(|(first, count)| *first..first + count) {
        if client.get::<sinew_api::Events>(&format!("/api/v1/events?limit=1&device=board-{number:06x}")).await.is_err()
        {
            joined(address, number, 1).await?;
            since = Instant::now();
        }
    }
    Ok(since)
}

fn calls(address: SocketAddr, first: u32, count: u32) -> Vec<Vec<u8>> {
    let call =
        |number: u32| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": format!("board-{number:06x}")}));
    (first..first + count).map(call).collect()
}

async fn paced(address: SocketAddr, calls: Vec<Vec<u8>>, per_second: u32, time: Duration) -> Result<Tally, Error> {
    let run = tokio::task::spawn_blocking(move || load::run_paced(address, calls, per_second, time));
    run.await.map_err(|error| bench_error(format!("the load generator died: {error}")))?
}

fn failures(key: &'static str, label: &str, tally: &Tally) -> Figure {
    let sample = tally.failure.as_deref().map(|first| format!(" ({first})")).unwrap_or_default();
    Figure::at_most(key, &format!("{label}, of {}{sample}", tally.calls), tally.failures as f64, "", 0.0)
}

/// How many boards are ready.
async fn ready(address: SocketAddr) -> Result<usize, Error> {
    let page = "/api/v1/devices?state=ready&limit=1";
    let answer: sinew_api::Devices = load::HttpConnection::open(address).await?.get(page).await?;
    Ok(answer.total)
}

/// Looks twice a second; counting them all is work for the gateway, too.
async fn until(address: SocketAddr, is_so: impl Fn(usize) -> bool, since: Instant) -> Result<(), Error> {
    loop {
        let ready = ready(address).await?;
        if is_so(ready) {
            return Ok(());
        }
        if since.elapsed() > PATIENCE {
            return Err(bench_error(format!("{ready} boards are ready, and it stays so")));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
