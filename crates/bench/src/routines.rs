//! Routines: what a run costs beyond its calls, and how long a thousand files take to load.

use std::time::Instant;

use serde_json::json;
use sinew_routines::Routine;

use crate::load::{HttpConnection, bench_error, percentile};
use crate::process::{self, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, Error, PUBLIC_TOOL, ready_boards, request};

/// Calls of the routine that is measured.
const CALLS: usize = 20;
/// Files that are loaded.
const FILES: usize = 1_000;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let runs = if plan.is_quick() { 20 } else { 300 };
    let folder = scratch.folder("routines");
    let (config, routines) = (folder.join("sinew.toml"), folder.join("routines"));
    let failed = |error: std::io::Error| bench_error(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(&routines).map_err(failed)?;
    std::fs::write(&config, "").map_err(failed)?;
    let gateway = process::gateway_with(&folder.join("state"), &config).await?;
    let _boards = process::boards(gateway.devices_url(), 1, 1).await?;
    let address = gateway.address()?;
    let devices = ready_boards(address, 1).await?;
    let device = devices.first().ok_or_else(|| bench_error("no board joined"))?;
    std::fs::write(routines.join("twenty.md"), file("twenty", device)).map_err(failed)?;

    let mut connection = HttpConnection::open(address).await?;
    let routine = request::call(address, TOKEN, "twenty", json!({}));
    let single = request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}));
    while connection.exchange(&routine).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut extra = Vec::new();
    for _ in 0..runs {
        let began = Instant::now();
        for _ in 0..CALLS {
            connection.exchange(&single).await?;
        }
        let alone = began.elapsed().as_secs_f64();
        let began = Instant::now();
        connection.exchange(&routine).await?;
        extra.push((began.elapsed().as_secs_f64() - alone) * 1e3);
    }
    let label = format!("a routine of {CALLS} board calls, beyond the calls");
    let median = percentile(&mut extra.clone(), 0.5);
    report.push(Figure::at_most("routine_ms", &label, median, "ms", 1.0).with(extra));

    let texts: Vec<(String, String)> = (0..FILES)
        .map(|number| format!("routine_{number}"))
        .map(|name| (name.clone(), file(&name, "kitchen")))
        .collect();
    let mut times = Vec::new();
    for _ in 0..plan.starts {
        let began = Instant::now();
        for (name, text) in &texts {
            Routine::read(name, text).map_err(|problem| bench_error(format!("{name}: {problem}")))?;
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let label = format!("{FILES} routines loaded");
    let median = percentile(&mut times.clone(), 0.5);
    report.push(Figure::at_most("routines_ms", &label, median, "ms", 200.0).with(times));
    Ok(())
}

/// A routine that calls one tool of a board again and again.
fn file(name: &str, device: &str) -> String {
    let text = sinew_routines::new_from_template(name).replace("{{", "").replace("}}", "");
    let steps = format!("- call: {}\n  device: {device}\n", own_name()).repeat(CALLS);
    let start = text.find("```yaml\n").map_or(text.len(), |at| at + "```yaml\n".len());
    format!("{}{steps}- return: {{status: success}}\n```\n", &text[..start])
}

/// The tool's name on the board.
fn own_name() -> String {
    PUBLIC_TOOL.replacen("self_", "self.", 1)
}
