//! What deciding about calls and recording them costs: the policy, the chain of the audit, its verification, and
//! whether somebody who reads the whole audit delays a call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use sinew_gateway::{AuditFilter, Gateway, Principal, Role, Settings, time_of_chaining};
use sinew_policy::{CallerFacts, CallerKind, DeviceFacts, LocalTime, Policy, PolicySettings, ToolFacts};
use sinew_tool::settings::Setting;
use sinew_tool::{Args, Audience, Effect, Hints, ToolError};

use crate::load::{bench_error, percentile};
use crate::process::{self, Process, Scratch, TOKEN, run_to_end};
use crate::report::{Figure, Report};
use crate::{BenchPlan, CONNECTIONS, Error, PUBLIC_TOOL, in_thread, ready_boards, request};

const RULES: usize = 1_000;

/// Calls that record at the same time while the audit is filled, so that many share a commit.
const WRITERS: usize = 500;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let decision = decision_time(plan)?;
    let label = format!("a decision with {RULES} rules, ten of them with conditions on this call");
    report.push(Figure::at_most("decision_us", &label, decision, "µs", 2.0));
    calls(plan, scratch, report, decision).await?;
    audit(plan, scratch, report).await
}

/// Ten rules look at the arguments of the call that is measured, the others select other devices, tools and callers;
/// none of them stops it.
fn rules() -> Vec<Value> {
    let rule = |number: usize| {
        let id = format!("rule-{number}");
        match number % 100 {
            0 => json!({
                "id": id, "do": "ask", "tools": [format!("{PUBLIC_TOOL}*")],
                "if": [{"arg": "/level", "min": 100 + number}],
            }),
            n if n % 3 == 0 => json!({"id": id, "do": "deny", "on": [format!("label:room-{number}")]}),
            n if n % 3 == 1 => json!({"id": id, "do": "ask", "tools": [format!("door_{number}*")]}),
            _ => json!({"id": id, "do": "deny", "who": [format!("token:tablet-{number}")]}),
        }
    };
    (0..RULES).map(rule).collect()
}

/// The rules as they stand in a configuration file: plain values look the same in TOML and in JSON.
fn rules_file() -> String {
    let lines = |table: &Value| -> String {
        let members = table.as_object().into_iter().flatten().filter(|(key, _)| *key != "if");
        members.map(|(key, value)| format!("{key} = {value}\n")).collect()
    };
    let file = |rule: &Value| {
        let conditions = rule["if"].as_array().into_iter().flatten();
        let conditions: String =
            conditions.map(|condition| format!("[[policy.rules.if]]\n{}", lines(condition))).collect();
        format!("[[policy.rules]]\n{}{conditions}", lines(rule))
    };
    rules().iter().map(file).collect()
}

/// What the policy alone takes for a call, in microseconds, once it was asked about this caller, device and tool.
fn decision_time(plan: &BenchPlan) -> Result<f64, Error> {
    let invalid = |error: &dyn std::fmt::Display| bench_error(format!("the policy of the benchmark: {error}"));
    let mut settings = PolicySettings::default();
    settings.read(json!({"rules": rules()})).map_err(|error| invalid(&error))?;
    let policy = Policy::new(settings).map_err(|problems| invalid(&format!("{problems:?}")))?;
    let caller = CallerFacts { kind: CallerKind::Token, name: "bench", admin: false };
    let device = DeviceFacts { id: "board-1", name: None, kind: "relay", family: "board", labels: &[], approved: true };
    let tool = ToolFacts {
        name: PUBLIC_TOOL,
        public_name: PUBLIC_TOOL,
        effect: Some(Effect::Read),
        hints: Hints::default(),
        audience: Audience::Everyone,
    };
    let made = policy.plan(&policy.rights_of(&caller), &device, &tool);
    let args: Args = [("level".to_owned(), json!(42))].into_iter().collect();
    let noon = LocalTime { weekday: 0, minute: 720 };
    let count = if plan.is_quick() { 1_000 } else { 100_000 };
    let mut times: Vec<f64> = (0..7)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..count {
                std::hint::black_box(policy.decide(&made, std::hint::black_box(&args), noon));
            }
            began.elapsed().as_secs_f64() * 1e6 / f64::from(count)
        })
        .collect();
    Ok(percentile(&mut times, 0.5))
}

/// Calls to boards through a gateway with rules and one without, in turns, and the share of deciding and chaining in the
/// processor time of a call.
async fn calls(plan: &BenchPlan, scratch: &Scratch, report: &mut Report, decision: f64) -> Result<(), Error> {
    let mut setups = Vec::new();
    for name in ["rules", "no-rules"] {
        let folder = scratch.folder(name);
        let config = folder.join("sinew.toml");
        let text = if name == "rules" { rules_file() } else { String::new() };
        (std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&config, text)))
            .map_err(|error| bench_error(format!("{}: {error}", config.display())))?;
        let gateway = process::gateway_with(&folder.join("state"), &config).await?;
        let address = gateway.address()?;
        let boards = process::boards(gateway.devices_url(), 1, CONNECTIONS).await?;
        let devices = ready_boards(address, CONNECTIONS).await?;
        let call = |device| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}));
        setups.push(Setup { requests: devices.iter().map(call).collect(), gateway, boards, rates: Vec::new() });
    }
    let (mut processor, mut count) = (Duration::ZERO, 0);
    for round in 0..=plan.rounds {
        for setup in &mut setups {
            let before = setup.gateway.processor_time()?;
            let tally = in_thread(setup.gateway.address()?, setup.requests.clone(), plan.time).await?;
            // The first round warms up and is not counted.
            if round > 0 {
                setup.rates.push(tally.per_second());
                processor += setup.gateway.processor_time()?.saturating_sub(before);
                count += tally.calls;
            }
        }
    }
    let rates: Vec<f64> = setups.iter().map(|setup| percentile(&mut setup.rates.clone(), 0.5)).collect();
    for setup in setups {
        setup.boards.stop().await;
        setup.gateway.stop().await;
    }
    if let [with, without] = rates[..] {
        let label = format!("calls to boards with {RULES} rules, share of those without");
        report.push(Figure::at_least("with_rules", &label, with / without, "", 0.95));
    }
    let each = processor.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap_or(u32::MAX).max(1));
    let records = if plan.is_quick() { 1_000 } else { 200_000 };
    let chaining = time_of_chaining(records).as_secs_f64() * 1e6 / f64::from(records);
    report.push(Figure::plain("call_cpu_us", "processor time of the gateway for a call", each, "µs"));
    report.push(Figure::plain("chaining_us", "digest, chain and seal of a record", chaining, "µs"));
    let share = (decision + chaining) / each.max(f64::MIN_POSITIVE) * 100.0;
    report.push(Figure::at_most(
        "access_percent",
        "policy and chain, part of a call's processor time",
        share,
        "%",
        10.0,
    ));
    Ok(())
}

/// A gateway with its boards and calls to them.
struct Setup {
    gateway: Process,
    boards: Process,
    requests: Vec<Vec<u8>>,
    rates: Vec<f64>,
}

/// Fills an audit, reads all of it while calls are recorded, and verifies it.
async fn audit(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let count = if plan.is_quick() { 2_000 } else { 1_000_000 };
    let state = scratch.folder("audit");
    let settings = Settings { state_dir: Some(state.clone()), max_audit: count + 100_000, ..Settings::default() };
    let gateway = Gateway::open(settings).map_err(|error| bench_error(format!("no gateway for the audit: {error}")))?;
    fill(&gateway, count).await.map_err(|error| bench_error(format!("filling the audit: {error}")))?;
    let delay = reading_delay(plan, &gateway).await.map_err(|error| bench_error(format!("recording: {error}")))?;
    let label = format!("longest commit while all of {count} records are read, beyond the longest without");
    report.push(Figure::at_most("scan_delay_ms", &label, delay, "ms", 5.0));
    gateway.close().await;
    drop(gateway);
    let took = verified(&state, count).await?;
    report.push(Figure::at_most("verify_s", &format!("audit verify of {count} records"), took.as_secs_f64(), "s", 5.0));
    Ok(())
}

async fn fill(gateway: &Gateway, count: usize) -> Result<(), ToolError> {
    let who = Principal::new("bench", Role::Admin);
    for _ in 0..count / WRITERS {
        try_join_all((0..WRITERS).map(|_| gateway.record(&who, "api", "board-1", "look_at"))).await?;
    }
    Ok(())
}

/// How much longer the slowest commit takes while somebody reads the whole audit, in milliseconds.
async fn reading_delay(plan: &BenchPlan, gateway: &Gateway) -> Result<f64, ToolError> {
    let alone = slowest_commit(plan, gateway).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (reader, over) = (gateway.clone(), is_over.clone());
    let reading = tokio::spawn(async move {
        while !over.load(Ordering::Acquire) {
            let mut filter = AuditFilter::default();
            while let Some(oldest) = reader.find_records(filter.clone(), usize::MAX).await?.last() {
                filter.before = Some(oldest.id);
            }
        }
        Ok::<_, ToolError>(())
    });
    let disturbed = slowest_commit(plan, gateway).await;
    is_over.store(true, Ordering::Release);
    let _ = reading.await;
    Ok(disturbed?.saturating_sub(alone).as_secs_f64() * 1e3)
}

async fn slowest_commit(plan: &BenchPlan, gateway: &Gateway) -> Result<Duration, ToolError> {
    let who = Principal::new("bench", Role::Admin);
    let mut slowest = Duration::ZERO;
    for _ in 0..if plan.is_quick() { 100 } else { 20_000 } {
        let began = Instant::now();
        gateway.record(&who, "api", "board-1", "look_at").await?;
        slowest = slowest.max(began.elapsed());
    }
    Ok(slowest)
}

/// How long `sinew audit verify` takes as a whole process.
async fn verified(state: &Path, count: usize) -> Result<Duration, Error> {
    let state = state.display().to_string();
    let (took, page) = run_to_end(&["audit", "verify", "--state", &state, "--output", "json"]).await?;
    let report: Value = serde_json::from_str(&page).unwrap_or_default();
    let is_whole = report["problems"].as_array().is_some_and(Vec::is_empty);
    if !is_whole || report["records"].as_u64().is_none_or(|records| records < count as u64) {
        return Err(bench_error("the audit of the benchmark was not verified"));
    }
    Ok(took)
}
