//! Chaos: everything around the gateway and the gateway itself is killed, filled and garbled while clients call, and
//! at the end the books must balance.
//!
//! Every call whose answer a client saw has exactly one record; one that was cut by the death of the gateway has at most
//! one; none was executed twice; no task and no socket is left over; memory is back where it was. The seed decides what
//! is disturbed when, which device is called when, and what happens to which message.

mod callers;
mod ledger;
mod parts;
mod plan;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sinew_api::{Audit, GatewayStatus, Readiness};
use tokio_util::sync::CancellationToken;

use callers::{Callee, Callers, number_of};
use parts::{AdbPart, KillableBoard, KillableGateway};
use plan::{ChaosPlan, Disturbance, KINDS};

use crate::Error;
use crate::load::{HttpConnection, bench_error};
use crate::process::Scratch;
use crate::report::{Figure, Report};
use crate::servers::{self, KillableServer, wait_until};

const CLIENTS: usize = 6;
/// More than the gateway of this run takes for one device.
const FLOOD: usize = 48;
/// How long everything may take to be as it was before.
const CALM: Duration = Duration::from_secs(20);
/// What a gateway may keep: some pages of its store, and what the allocator gives back late.
const MEMORY_SLACK: u64 = 12 << 20;

/// What is running.
struct ChaosRun {
    gateway: KillableGateway,
    broker: KillableServer,
    adb: Option<AdbPart>,
    boards: Vec<KillableBoard>,
    callers: Arc<Callers>,
    /// How often each kind of disturbance came.
    disturbances: [usize; KINDS as usize],
}

/// What the gateway uses when nothing happens.
#[derive(Clone, Copy, Debug)]
struct AtRest {
    tasks: usize,
    sockets: usize,
    resident: u64,
}

pub(crate) async fn measure(seconds: u32, seed: u64, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let folder = scratch.folder("chaos");
    let broker = servers::broker(&folder).await?;
    let adb = AdbPart::start(&folder).await?;
    if adb.is_none() {
        report.skip("phones in chaos, because adb is not there");
    }
    let (executions, executed) = mpsc::channel();
    let gateway = KillableGateway::start(&folder, broker.address, adb.as_ref().map(AdbPart::address)).await?;
    let boards = parts::boards(seed, gateway.addresses, broker.address, &executions)?;
    drop(executions);
    let expected = boards.len() + usize::from(adb.is_some());
    let address = gateway.addresses.clients;
    let callers = Callers::new(address, callees(&joined(address, expected).await?));
    let mut stage = ChaosRun { gateway, broker, adb, boards, callers, disturbances: Default::default() };

    // The first calls pay for what later ones share.
    stage.call_for(seed, Duration::from_secs(1), async |_| Ok(())).await?;
    let before = stage.rest(expected, None).await?;
    let time = Duration::from_secs(seconds.into());
    stage.call_for(seed.wrapping_add(1), time, async |stage| stage.disturb(seed, time).await).await?;
    for board in &mut stage.boards {
        board.calm_down().await;
    }
    let after = stage.rest(expected, Some(before)).await?;
    stage.check(before, after, executed, seed, report).await
}

impl ChaosRun {
    /// Lets clients call while `meanwhile` runs, and for `time` at least; then until the last call has ended.
    async fn call_for(
        &mut self,
        seed: u64,
        time: Duration,
        meanwhile: impl AsyncFnOnce(&mut ChaosRun) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stop = CancellationToken::new();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| tokio::spawn(self.callers.clone().call_until(seed, client, stop.clone())))
            .collect();
        let started = Instant::now();
        let result = meanwhile(self).await;
        tokio::time::sleep(time.saturating_sub(started.elapsed())).await;
        stop.cancel();
        for client in clients {
            client.await.map_err(|error| bench_error(format!("a client died: {error}")))?;
        }
        result
    }

    /// Disturbs until the time is over, and until every kind came once.
    async fn disturb(&mut self, seed: u64, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        for (index, step) in ChaosPlan::new(seed, self.boards.len()).enumerate() {
            if index >= usize::from(KINDS) && Instant::now() + step.pause >= end {
                return Ok(());
            }
            tokio::time::sleep(step.pause).await;
            if self.adb.is_some() || step.disturbance != Disturbance::KillAdb {
                self.cause(step.disturbance).await?;
                self.disturbances[step.disturbance.kind()] += 1;
            }
        }
        Ok(())
    }

    async fn cause(&mut self, disturbance: Disturbance) -> Result<(), Error> {
        match disturbance {
            Disturbance::KillGateway => {
                self.callers.expect_death();
                self.gateway.kill().await;
                self.gateway.restart().await?;
            }
            Disturbance::KillBroker => {
                self.broker.kill().await;
                self.broker.restart().await?;
            }
            Disturbance::KillAdb => {
                if let Some(adb) = &mut self.adb {
                    adb.kill_and_restart().await?;
                }
            }
            Disturbance::KillBoard { number, away } => {
                self.boards[number].kill().await;
                tokio::time::sleep(away).await;
                self.boards[number].restart();
            }
            Disturbance::FillStore(time) => {
                self.gateway.fill_store(true).await?;
                tokio::time::sleep(time).await;
                self.gateway.fill_store(false).await?;
                self.recovered().await?;
            }
            Disturbance::FloodQueue { number } => {
                let callee = self.callers.callees[number % self.callers.callees.len()].clone();
                self.callers.flood(&callee, FLOOD).await;
            }
        }
        Ok(())
    }

    /// Waits until calls are recorded again. Records that wait for a full disk are in memory and in the log alone, so a
    /// gateway that is killed with a full disk may lose them.
    async fn recovered(&self) -> Result<(), Error> {
        let address = self.gateway.addresses.clients;
        wait_until("a store that can be written again", async || {
            let Ok(mut client) = HttpConnection::open(address).await else { return false };
            client.get::<Readiness>("/ready").await.is_ok_and(|answer| answer.ready)
        })
        .await
    }

    /// Waits until all devices are there and what the gateway uses is no more than `before`; what it uses in the end.
    async fn rest(&self, expected: usize, before: Option<AtRest>) -> Result<AtRest, Error> {
        let address = self.gateway.addresses.clients;
        joined(address, expected).await?;
        let patience = Instant::now() + CALM;
        let mut last = None;
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let status: GatewayStatus = HttpConnection::open(address).await?.get("/api/v1/status").await?;
            let usage = self.gateway.usage()?;
            let now = AtRest { tasks: status.tasks, sockets: usage.sockets, resident: usage.resident };
            let is_calm = match before {
                Some(before) => now.is_back_at(before),
                // The same numbers for a second.
                None => last.is_some_and(|(tasks, sockets, since): (usize, usize, Instant)| {
                    (tasks, sockets) == (now.tasks, now.sockets) && since.elapsed() > Duration::from_secs(1)
                }),
            };
            if is_calm || Instant::now() > patience {
                return Ok(now);
            }
            let since = last.filter(|(tasks, sockets, _)| (*tasks, *sockets) == (now.tasks, now.sockets));
            last = Some((now.tasks, now.sockets, since.map_or_else(Instant::now, |(.., since)| since)));
        }
    }

    async fn check(
        self,
        before: AtRest,
        after: AtRest,
        executed: mpsc::Receiver<Value>,
        seed: u64,
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut ledger = std::mem::take(&mut *self.callers.ledger());
        executed.try_iter().filter_map(|arguments| number_of(&arguments)).for_each(|number| ledger.executed(number));
        for number in recorded(self.gateway.addresses.clients).await? {
            ledger.recorded(number);
        }
        for what in after.differences(before) {
            ledger.violated(what);
        }
        let counts = ledger.counts();
        let violations = ledger.check();
        for (key, label, value, unit) in [
            ("chaos_seed", "seed of the chaos", seed as f64, ""),
            ("chaos_disturbances", "disturbances", self.disturbances.iter().sum::<usize>() as f64, ""),
            ("chaos_calls", "calls", counts.calls as f64, ""),
            ("chaos_succeeded", "calls that succeeded", counts.succeeded as f64, ""),
            ("chaos_failed", "calls answered with an error", counts.failed as f64, ""),
            ("chaos_not_recorded", "calls refused while the store was full", counts.not_recorded as f64, ""),
            ("chaos_cut", "calls cut by the death of the gateway", counts.cut as f64, ""),
            ("chaos_memory_before_mb", "memory before", before.resident as f64 / 1e6, "MB"),
            ("chaos_memory_after_mb", "memory after", after.resident as f64 / 1e6, "MB"),
        ] {
            report.push(Figure::plain(key, label, value, unit));
        }
        for ((key, label), count) in Disturbance::KINDS.into_iter().zip(self.disturbances) {
            report.push(Figure::plain(key, label, count as f64, ""));
        }
        report.push(Figure::at_most("chaos_violations", "violations", violations.len() as f64, "", 0.0));
        if !violations.is_empty() {
            report.violations.extend(violations);
            report.violations.push(format!("the end of the gateway's log:\n{}", self.gateway.log_end()));
        }
        Ok(())
    }
}

impl AtRest {
    fn is_back_at(self, before: AtRest) -> bool {
        self.differences(before).is_empty()
    }

    fn differences(self, before: AtRest) -> Vec<String> {
        let mut found = Vec::new();
        if self.tasks > before.tasks {
            found.push(format!("{} tasks are left over: {} before", self.tasks - before.tasks, before.tasks));
        }
        if self.sockets > before.sockets {
            found.push(format!("{} sockets are left over: {} before", self.sockets - before.sockets, before.sockets));
        }
        if self.resident > before.resident + MEMORY_SLACK {
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            let (now, then) = (megabytes(self.resident), megabytes(before.resident));
            found.push(format!("the gateway has {now:.1} MB, and had {then:.1} MB before"));
        }
        found
    }
}

/// Waits until so many devices are ready; all of them with their families.
async fn joined(address: std::net::SocketAddr, count: usize) -> Result<Vec<(String, String)>, Error> {
    let mut ready = Vec::new();
    let waiting = wait_until("devices that join", async || {
        let Ok(mut client) = HttpConnection::open(address).await else { return false };
        let Ok(found) = client.ready_devices().await else { return false };
        let is_called = |family: &str| ["board", "phone"].contains(&family);
        let devices = found.into_iter().filter(|device| is_called(&device.family));
        ready = devices.map(|device| (device.id, device.family)).collect();
        ready.len() >= count
    });
    waiting.await.map_err(|error| bench_error(format!("{error}; of {count} there are {ready:?}")))?;
    Ok(ready)
}

fn callees(devices: &[(String, String)]) -> Vec<Callee> {
    let callee = |(id, family): &(String, String)| match family.as_str() {
        "phone" => Callee::Phone(id.clone()),
        _ => Callee::Board(id.clone()),
    };
    devices.iter().map(callee).collect()
}

/// The numbers of all calls in the audit.
async fn recorded(address: std::net::SocketAddr) -> Result<Vec<u64>, Error> {
    let mut client = HttpConnection::open(address).await?;
    let (mut numbers, mut before) = (Vec::new(), None);
    loop {
        let before_this = before.map(|id: i64| format!("&before={id}")).unwrap_or_default();
        let page: Audit = client.get(&format!("/api/v1/audit?limit=1000{before_this}")).await?;
        let Some(oldest) = page.records.iter().map(|record| record.id).min() else { return Ok(numbers) };
        let arguments = page.records.iter().filter_map(|record| serde_json::from_str(&record.args).ok());
        numbers.extend(arguments.filter_map(|arguments: Value| number_of(&arguments)));
        before = Some(oldest);
    }
}
