//! `/metrics`: counts and times as OpenMetrics text, for Prometheus and what reads the same form.
//!
//! No label has a value that devices or clients choose, so their number stays small.

use std::fmt;
use std::fs;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use sinew_gateway::{DurationCounts, FleetCounts, Totals};

use crate::api::Authenticated;
use crate::endpoint::McpEndpoint;
use crate::reply;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Linux counts processor time for programs in hundredths of a second.
const TICKS: f64 = 100.0;

pub(crate) async fn metrics(
    State(endpoint): State<Arc<McpEndpoint>>,
    Authenticated(who): Authenticated,
) -> Response<Body> {
    let front = endpoint.front();
    let gateway = &front.gateway;
    let scrape = Scrape {
        totals: gateway.totals(),
        // Those that the token may see.
        fleet: gateway.seen_by(&who).counts(),
        gauges: vec![
            ("sinew_approvals_open", "Calls that wait for a person.", gateway.approval_requests().len()),
            ("sinew_boards_waiting", "Boards that wait for approval.", gateway.waiting().len()),
            ("sinew_leases", "Devices that somebody has to themselves.", gateway.lease_count()),
            ("sinew_sessions", "Open MCP sessions of the older revisions.", endpoint.sessions().count()),
            (
                "sinew_recording",
                "1 while calls are recorded and made, else 0.",
                usize::from(gateway.store_problem().is_none()),
            ),
            (
                "sinew_config_valid",
                "0 while the configuration file has a mistake.",
                usize::from(gateway.config_problem().is_none()),
            ),
            ("sinew_ready", "0 while the gateway stops.", usize::from(!front.drain.is_cancelled())),
        ],
        process: ProcessUse::now(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    if encode(&mut text, &registry).is_err() {
        return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}

#[derive(Debug)]
struct Scrape {
    totals: Totals,
    fleet: Arc<FleetCounts>,
    gauges: Vec<(&'static str, &'static str, usize)>,
    process: Option<ProcessUse>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_calls(&mut encoder)?;
        self.encode_totals(&mut encoder)?;
        let mut devices = encoder.encode_descriptor("sinew_devices", "Devices.", None, MetricType::Gauge)?;
        for (family, states) in &self.fleet.families {
            for (state, count) in states {
                let labels = [("family", family.as_str()), ("state", state.as_str())];
                gauge(*count).encode(devices.encode_family(&labels)?)?;
            }
        }
        encode_one(&mut encoder, "sinew_tools", "Tools of all devices.", None, &gauge(self.fleet.tools))?;
        for (name, help, count) in &self.gauges {
            encode_one(&mut encoder, name, help, None, &gauge(*count))?;
        }
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        encoder.encode_descriptor("sinew_build", "The program.", None, MetricType::Info)?.encode_info(&version)?;
        let Some(process) = &self.process else { return Ok(()) };
        let memory = ConstGauge::new(process.memory_bytes);
        encode_one(&mut encoder, "process_resident_memory", "Memory in use.", Some(&Unit::Bytes), &memory)?;
        let time = ConstCounter::new(process.cpu_seconds);
        encode_one(&mut encoder, "process_cpu", "Processor time used.", Some(&Unit::Seconds), &time)?;
        encode_one(&mut encoder, "process_open_fds", "Open files and sockets.", None, &gauge(process.open_files))
    }
}

impl Scrape {
    fn encode_calls(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls that ended, by the family of the device, how they ended, and the endpoint.";
        let mut calls = encoder.encode_descriptor("sinew_calls", help, None, MetricType::Counter)?;
        for (class, count) in &self.totals.calls.calls {
            // No family is called `none`.
            let family = class.family.as_ref().map_or("none", |family| family.as_str());
            let labels = [("family", family), ("outcome", class.outcome), ("via", class.via)];
            ConstCounter::new(*count).encode(calls.encode_family(&labels)?)?;
        }
        let help = "How long calls took, from the endpoint to the answer.";
        encode_durations(encoder, "sinew_call_duration", help, &self.totals.calls.durations)
    }

    fn encode_totals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Totals { commits, decisions, dropped_events, joins, .. } = &self.totals;
        let help = "How often the policy allowed or denied a call, or wanted a person to decide.";
        let mut verdicts = encoder.encode_descriptor("sinew_policy_decisions", help, None, MetricType::Counter)?;
        for (verdict, count) in decisions {
            ConstCounter::new(*count).encode(verdicts.encode_family(&[("verdict", verdict.word())])?)?;
        }
        let help = "How often a device connected.";
        let mut connected = encoder.encode_descriptor("sinew_device_connections", help, None, MetricType::Counter)?;
        for (family, count) in joins {
            ConstCounter::new(*count).encode(connected.encode_family(&[("family", family.as_str())])?)?;
        }
        let help = "Events of devices that came faster than they could be kept.";
        encode_one(encoder, "sinew_events_dropped", help, None, &ConstCounter::new(*dropped_events))?;
        let help = "How long it took to write records and changes to the store.";
        encode_durations(encoder, "sinew_store_commit", help, &commits.durations)?;
        let help = "What could not be written to the store.";
        encode_one(encoder, "sinew_store_commits_failed", help, None, &ConstCounter::new(commits.failed))
    }
}

fn encode_durations(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    durations: &DurationCounts,
) -> fmt::Result {
    let limits = DurationCounts::LIMITS_US.iter().map(|limit| *limit as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = limits.zip(durations.counts).collect();
    let (sum, count) = (durations.total_us as f64 / 1e6, durations.counts.iter().sum());
    encoder
        .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

fn encode_one(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
}

/// What the system says about this process; only Linux says it.
#[derive(Debug)]
struct ProcessUse {
    memory_bytes: i64,
    cpu_seconds: f64,
    open_files: usize,
}

impl ProcessUse {
    fn now() -> Option<ProcessUse> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: i64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program stands in brackets and may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let times = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap_or_default());
        Some(ProcessUse {
            memory_bytes: kib * 1024,
            cpu_seconds: times.sum::<f64>() / TICKS,
            open_files: fs::read_dir("/proc/self/fd").ok()?.count(),
        })
    }
}
