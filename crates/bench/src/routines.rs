//! Routines: what a run costs beyond its calls, and how long a thousand files take until they are tools.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sinew_gateway::{Gateway, Settings};
use sinew_tool::DeviceEvent;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::load::{HttpConnection, bench_error, percentile};
use crate::process::{self, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, Error, TOOL, ready_boards, request};

/// Calls of the routine that is measured.
const CALLS: usize = 20;
/// Files that are loaded.
const FILES: usize = 1_000;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    measure_runs(if plan.is_quick() { 20 } else { 300 }, scratch, report).await?;
    measure_loading(plan.starts, scratch, report).await
}

async fn measure_runs(runs: usize, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let folder = scratch.folder("routines");
    let (config, routines) = (folder.join("sinew.toml"), folder.join("routines"));
    create(&routines)?;
    write(&config, "")?;
    let gateway = process::gateway_with(&folder.join("state"), &config).await?;
    let _boards = process::boards(gateway.devices_url(), 1, 1).await?;
    let address = gateway.address()?;
    let devices = ready_boards(address, 1).await?;
    let device = devices.first().ok_or_else(|| bench_error("no board joined"))?;
    for (name, calls) in [("once", 1), ("twenty", CALLS)] {
        write(&routines.join(format!("{name}.md")), &file(name, device, calls))?;
    }
    let mut connection = HttpConnection::open(address).await?;
    let call = |device: &str, tool: &str| {
        request::post(address, TOKEN, "/api/v1/call", &json!({"device": device, "tool": tool, "arguments": {}}))
    };
    let (single, once, twenty) = (call(device, TOOL), call("routines", "once"), call("routines", "twenty"));
    // The gateway looks for files twice a second.
    while connection.answer(&twenty).await?.0 != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (mut of_one, mut of_twenty) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let began = Instant::now();
        for _ in 0..CALLS {
            made(connection.answer(&single).await?)?;
        }
        let alone = began.elapsed().as_secs_f64();
        let began = Instant::now();
        made(connection.answer(&once).await?)?;
        of_one.push((began.elapsed().as_secs_f64() - alone / CALLS as f64) * 1e3);
        let began = Instant::now();
        made(connection.answer(&twenty).await?)?;
        of_twenty.push((began.elapsed().as_secs_f64() - alone) * 1e3);
    }
    // What the run itself costs shows with one call; with many, the calls have no HTTP of their own.
    for (key, calls, times) in [("routine_start_ms", 1, of_one), ("routine_ms", CALLS, of_twenty)] {
        let plural = if calls == 1 { "" } else { "s" };
        let label = format!("a routine of {calls} board call{plural}, beyond the call{plural}");
        report.push(Figure::at_most(key, &label, percentile(&mut times.clone(), 0.5), "ms", 1.0).with(times));
    }
    Ok(())
}

fn made((status, answer): (u16, serde_json::Value)) -> Result<(), Error> {
    if status == 200 { Ok(()) } else { Err(bench_error(format!("a call failed: {answer}"))) }
}

/// From the first look at the directory until the gateway offers all tools.
async fn measure_loading(rounds: u32, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let folder = scratch.folder("thousand");
    create(&folder)?;
    for number in 0..FILES {
        let name = format!("routine_{number}");
        write(&folder.join(format!("{name}.md")), &file(&name, "kitchen", CALLS))?;
    }
    let mut times = Vec::new();
    for _ in 0..rounds.max(3) {
        let gateway = Gateway::open(Settings::default()).map_err(|error| bench_error(error.to_string()))?;
        let (apply, effects) = (gateway.announce(), gateway.clone());
        let (sender, loaded) = oneshot::channel();
        let sender = std::sync::Mutex::new(Some(sender));
        let announce = Arc::new(move |event: DeviceEvent| {
            apply(event);
            if let Some(sender) = sender.lock().ok().and_then(|mut sender| sender.take()) {
                let _ = sender.send(());
            }
        });
        let end = CancellationToken::new();
        let began = Instant::now();
        let following = tokio::spawn(sinew_routines::run(
            folder.clone(),
            Arc::new(move |uses| effects.worst_effect(uses)),
            announce,
            end.clone(),
        ));
        loaded.await.map_err(|_| bench_error("the routines were not loaded"))?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let offered = gateway.find_device(sinew_routines::DEVICE).map_or(0, |device| device.tools);
        if offered < FILES {
            return Err(bench_error(format!("of {FILES} routines {offered} are offered")));
        }
        end.cancel();
        let _ = following.await;
        gateway.close().await;
    }
    let label = format!("{FILES} routines of {CALLS} steps loaded and offered");
    report.push(Figure::at_most("routines_ms", &label, percentile(&mut times.clone(), 0.5), "ms", 200.0).with(times));
    Ok(())
}

fn create(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| bench_error(format!("{}: {error}", folder.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| bench_error(format!("{}: {error}", path.display())))
}

/// A routine that calls one tool of a board again and again.
fn file(name: &str, device: &str, calls: usize) -> String {
    let text = sinew_routines::new_from_template(name).replace("{{", "").replace("}}", "");
    let steps = format!("- call: {TOOL}\n  device: {device}\n").repeat(calls);
    let start = text.find("```yaml\n").map_or(text.len(), |at| at + "```yaml\n".len());
    format!("{}{steps}- return: {{status: success}}\n```\n", &text[..start])
}
