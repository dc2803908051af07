//! `sinew routine show` and `explain`: what is in a routine, and what it would do.

use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_api::{Devices, Explain, Explained};
use sinew_routines::Routine;

use super::files::load;
use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::commands::tools;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

/// The verdict about a tool or a device that is not there.
const UNKNOWN: &str = "unknown";

pub(super) fn show(file: &Path, printer: Printer) -> Result<(), CliError> {
    let Routine { tool, steps, .. } = load(file)?;
    if printer.is_json() {
        let uses: Vec<&str> = steps.calls().iter().map(|call| call.tool).collect();
        print_json(&json!({"file": file, "tool": tool.to_json(), "uses": uses}));
        return Ok(());
    }
    let mut text = format!(
        "{}\n{}\n",
        printer.paint(TextStyle::Bold, &clean(&tool.name)),
        printer.wrap(&clean(&tool.description), 0)
    );
    let mut table = Table::new(["PARAMETER", "TYPE", "DESCRIPTION"]).wrap(&["TYPE", "DESCRIPTION"]);
    for (name, schema) in tool.properties().into_iter().flatten() {
        let about = schema["description"].as_str().unwrap_or_default();
        table.row([name.clone(), tools::kind(schema), about.to_owned()].map(|cell| (None, clean(&cell))));
    }
    text.push_str(&printer.table(&table));
    for call in steps.calls() {
        let device = call.device.and_then(Value::as_str).map(|device| format!(" on {device}")).unwrap_or_default();
        text.push_str(&format!("{:>6}. {}{}\n", call.at, clean(call.tool), clean(&device)));
    }
    print(&text);
    Ok(())
}

pub(super) async fn explain(
    file: &Path,
    caller: Option<&str>,
    reach: &ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let routine = load(file)?;
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let mut rows = Vec::new();
    for (device, tool) in uses(&routine) {
        rows.extend(explain_use(&mut client, device, &tool, caller).await);
    }
    if printer.is_json() {
        print_json(&json!({"routine": routine.tool.name, "calls": rows}));
        return Ok(());
    }
    let mut table = Table::new(["TOOL", "DEVICE", "VERDICT", "WHY"]).wrap(&["WHY"]);
    for row in &rows {
        let text = |key: &str| clean(row[key].as_str().unwrap_or_default());
        table.row(["tool", "device", "verdict", "why"].map(|key| (None, text(key))));
    }
    print(&printer.table(&table));
    match rows.iter().filter(|row| row["verdict"] == UNKNOWN).count() {
        0 => Ok(()),
        count => Err(CliError::new(CliErrorKind::ChecksFailed, format!("{count} of its calls cannot be made"))),
    }
}

/// The devices and tools of the steps, each pair once, in the order of the steps.
fn uses(routine: &Routine) -> Vec<(Option<String>, String)> {
    let mut uses = Vec::new();
    for call in routine.steps.calls() {
        let device = call.device.and_then(|device| routine.known_device(device)).map(str::to_owned);
        let pair = (device, call.tool.to_owned());
        if !uses.contains(&pair) {
            uses.push(pair);
        }
    }
    uses
}

async fn explain_use(
    client: &mut GatewayClient,
    device: Option<String>,
    tool: &str,
    caller: Option<&str>,
) -> Vec<Value> {
    let Some(device) = device else {
        let why = "which device it is depends on the call";
        return vec![json!({"tool": tool, "device": "", "verdict": "", "why": why})];
    };
    let devices = match device.strip_prefix("label:") {
        None => vec![device],
        Some(label) => {
            let known = client.get::<Devices>("/api/v1/devices").await.map(|known| known.devices).unwrap_or_default();
            let labelled = known.into_iter().filter(|own| own.labels.iter().any(|own| own == label));
            let ids: Vec<String> = labelled.map(|own| own.id).collect();
            // The gateway says what is wrong with a label that no device has.
            if ids.is_empty() { vec![device] } else { ids }
        }
    };
    let mut rows = Vec::new();
    for device in devices {
        let request = Explain {
            token: caller.map(str::to_owned),
            device: device.clone(),
            tool: tool.to_owned(),
            arguments: Map::new(),
        };
        let (verdict, why) = match client.post::<Explained>("/api/v1/policy/explain", &request).await {
            Ok(explained) => (explained.verdict, explained.reason),
            Err(error) => (UNKNOWN.to_owned(), error.to_string()),
        };
        rows.push(json!({"tool": tool, "device": device, "verdict": verdict, "why": why}));
    }
    rows
}
