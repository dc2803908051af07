//! A million calls spread over a long time: whether memory and latency stay where they are.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::load::{self, bench_error};
use crate::plot::{PlotLine, PlotPanel, to_svg};
use crate::process::{self, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{CONNECTIONS, Error, PUBLIC_TOOL, ready_boards, request};

const CALLS: u32 = 1_000_000;
/// Points of the plot.
const SAMPLES: u32 = 120;

/// One point of the plot.
struct Sample {
    minutes: f64,
    resident_mb: f64,
    p50_ms: f64,
    p99_ms: f64,
}

pub(crate) async fn measure(
    minutes: f64,
    plot: Option<&Path>,
    scratch: &Scratch,
    report: &mut Report,
) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("soak")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 1, CONNECTIONS).await?;
    let devices = ready_boards(address, CONNECTIONS).await?;
    let calls: Vec<_> =
        devices.iter().map(|device| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}))).collect();
    let window = Duration::from_secs_f64(minutes.clamp(0.01, 10_000.0) * 60.0 / f64::from(SAMPLES));
    let per_second = (f64::from(CALLS) / f64::from(SAMPLES) / window.as_secs_f64()).ceil() as u32;
    let started = Instant::now();
    let (mut samples, mut made, mut failures) = (Vec::new(), 0, 0);
    while made < u64::from(CALLS) {
        let requests = calls.clone();
        let run = tokio::task::spawn_blocking(move || load::run_paced(address, requests, per_second, window));
        let mut tally = run.await.map_err(|error| bench_error(format!("the load generator died: {error}")))??;
        made += tally.calls;
        failures += tally.failures;
        samples.push(Sample {
            minutes: started.elapsed().as_secs_f64() / 60.0,
            resident_mb: gateway.resident()? as f64 / 1e6,
            p50_ms: tally.share_ms(0.5),
            p99_ms: tally.share_ms(0.99),
        });
    }
    boards.stop().await;
    gateway.stop().await;
    let values = |value: fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<f64>>();
    let (memory, p50, p99) =
        (values(|sample| sample.resident_mb), values(|sample| sample.p50_ms), values(|sample| sample.p99_ms));
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    report.push(Figure::plain("soak_calls", "calls of the soak", made as f64, "calls"));
    report.push(Figure::plain("soak_minutes", "its time", started.elapsed().as_secs_f64() / 60.0, "minutes"));
    report.push(Figure::at_most("soak_failures", "calls that failed", failures as f64, "", 0.0));
    report.push(Figure::plain("soak_memory_first_mb", "memory after the first calls", memory[0], "MB"));
    report.push(Figure::plain("soak_memory_mb", "memory at the end", last(&memory), "MB").with(memory.clone()));
    report.push(Figure::plain("soak_p50_ms", "median at the end", last(&p50), "ms").with(p50.clone()));
    report.push(Figure::plain("soak_p99_ms", "99th percentile at the end", last(&p99), "ms").with(p99.clone()));
    let Some(plot) = plot else { return Ok(()) };
    let minutes = values(|sample| sample.minutes);
    let svg = to_svg(
        &format!("{made} calls in {:.0} minutes, 32 boards", started.elapsed().as_secs_f64() / 60.0),
        "minutes",
        &minutes,
        &[
            PlotPanel { unit: "MB", lines: vec![PlotLine { name: "resident memory", values: memory }] },
            PlotPanel {
                unit: "ms",
                lines: vec![
                    PlotLine { name: "median", values: p50 },
                    PlotLine { name: "99th percentile", values: p99 },
                ],
            },
        ],
    );
    std::fs::write(plot, svg).map_err(|error| bench_error(format!("{}: {error}", plot.display())))
}
