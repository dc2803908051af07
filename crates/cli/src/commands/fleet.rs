//! `sinew sim fleet`: a cluster of gateways in virtual time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sinew_sim::fleet::{self, FleetOptions, FleetReport};

use crate::args::SimFleetArgs;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, print, print_json};

pub async fn run(args: SimFleetArgs, printer: Printer) -> Result<(), CliError> {
    let SimFleetArgs { devices, nodes, seed, trouble } = args;
    let options = FleetOptions { devices, nodes, seed, trouble, ..FleetOptions::default() };
    let started = Instant::now();
    let work = tokio::task::spawn_blocking(move || fleet::run(options));
    let report = printer.waiting("running the fleet", work).await;
    let report = report.map_err(|error| CliError::new(CliErrorKind::Io, format!("the fleet ended early: {error}")))?;
    let figures = figures(&report);
    if printer.is_json() {
        let mut object: serde_json::Map<String, Value> =
            figures.into_iter().map(|(key, _, value)| (key.to_owned(), value)).collect();
        object.insert("seconds".to_owned(), json!(started.elapsed().as_secs_f64()));
        object.insert("violations".to_owned(), json!(report.violations));
        print_json(&object);
    } else {
        let mut table = Table::new(["WHAT", "COUNT"]);
        for (_, label, value) in figures {
            table.row([(None, label.to_owned()), (Some(TextStyle::Bold), value.to_string())]);
        }
        print(&printer.table(&table));
    }
    match report.violations.as_slice() {
        [] => Ok(()),
        violations => {
            let message = format!("{} things happened that must not:\n{}", violations.len(), violations.join("\n"));
            Err(CliError::new(CliErrorKind::ChecksFailed, message))
        }
    }
}

/// Key, label and value of each figure.
fn figures(report: &FleetReport) -> Vec<(&'static str, &'static str, Value)> {
    let seconds = |time: Duration| json!((time.as_secs_f64() * 1000.0).round() / 1000.0);
    vec![
        ("virtual_seconds", "virtual time, in seconds", seconds(report.virtual_time)),
        ("nodes_killed", "gateways killed", json!(report.nodes_killed)),
        ("nodes_paused", "gateways paused", json!(report.nodes_paused)),
        ("partitions", "gateways cut off from the network", json!(report.partitions)),
        ("slow_watchers", "slow watchers", json!(report.slow_watchers)),
        ("stale_reads", "reads that may be old", json!(report.stale_reads)),
        ("stores_lost", "times that the store lost everything", json!(report.stores_lost)),
        ("claims", "devices claimed", json!(report.claims)),
        ("moves", "devices taken over from another gateway", json!(report.moves)),
        ("writes", "records written", json!(report.writes)),
        ("changes_seen", "changes seen, by all gateways", json!(report.changes_seen)),
        ("calls", "calls", json!(report.calls)),
        ("calls_done", "calls that ran and were answered", json!(report.calls_done)),
        ("calls_refused", "calls refused before they were sent", json!(report.calls_refused)),
        ("calls_rerouted", "calls routed a second time", json!(report.calls_rerouted)),
        ("calls_unknown", "calls without an answer, which may have run", json!(report.calls_unknown)),
        ("events", "events", json!(report.events)),
        ("events_dropped", "events beyond what is kept", json!(report.events_dropped)),
        ("slowest_notice_s", "slowest notice of a dead gateway, in seconds", seconds(report.slowest_notice)),
        ("slowest_claim_s", "slowest claim of a device, in seconds", seconds(report.slowest_claim)),
    ]
}
