//! What an idle board costs: `cargo run --release -p sinew-boards --example idle [COUNT]`.
//!
//! Opens a door, lets virtual boards of another process join, waits until all is quiet, and prints how
//! much the resident memory of this process has grown per board. Linux only, as it reads `/proc`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use sinew_boards::{Boards, HubConfig, http};
use sinew_sim::board::{BoardConfig, BoardKind, run_many};
use sinew_tool::{Admission, DeviceEvent, DeviceKey};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    let shutdown = CancellationToken::new();
    if first.as_deref() == Some("boards") {
        let (Some(url), Some(count)) = (arguments.next(), arguments.next()) else {
            return Err("boards URL COUNT".into());
        };
        return Ok(run_many(count.parse()?, BoardConfig::new(url, "", BoardKind::Talking), shutdown).await?);
    }
    let count: usize = first.map_or(Ok(2000), |count| count.parse())?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/xiaozhi/v1/", listener.local_addr()?);
    let (sender, mut events) = mpsc::unbounded_channel();
    let admit = Arc::new(|_: Option<&str>, _: &DeviceKey| Some(Admission::OwnToken));
    let door = HubConfig::new(admit, Arc::new(move |event| drop(sender.send(event))));
    let running = tokio::spawn(http::run(listener, Boards::new(door)?, shutdown.clone()));
    let mut devices = Vec::with_capacity(count);
    let before = resident_kib()?;
    let mut boards = tokio::process::Command::new(std::env::current_exe()?)
        .args(["boards", &url, &count.to_string()])
        .kill_on_drop(true)
        .spawn()?;
    while devices.len() < count {
        match events.recv().await {
            Some(DeviceEvent::Joined(device)) => devices.push(device),
            Some(_) => {}
            None => return Err("the door closed".into()),
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = resident_kib()?.saturating_sub(before);
    println!("{count} boards: {grown} KiB, {:.2} KiB each", grown as f64 / count as f64);
    boards.kill().await?;
    shutdown.cancel();
    running.await??;
    Ok(())
}

fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
