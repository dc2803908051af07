//! `sinew routine show` and `explain`: what is in a routine, and what it would do.

use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_api::{DeviceSummary, Devices, Explain, Explained};
use sinew_routines::{DEVICE, LIMITS, Routine};
use sinew_steps::PlannedStep;
use sinew_tool::PlannedCall;
use sinew_tool::text::clip;

use super::files::load;
use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::commands::{call, tools};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

/// The verdict about a tool or a device that is not there.
const UNKNOWN: &str = "unknown";
/// As much as somebody reads.
const MOST_ROWS: usize = 200;
/// Routines within routines, as deep as the gateway lets them call each other.
const MOST_DEPTH: usize = 4;

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
    pairs: &[String],
    caller: Option<String>,
    reach: &ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let routine = load(file)?;
    let given = call::arguments::typed(pairs, &routine.tool.input_schema)?;
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let devices = client.get_all::<Devices>("/api/v1/devices").await?.devices;
    let mut explaining = Explaining { client, devices, caller, file, rows: Vec::new() };
    let whole = explaining.whole(&routine, &given).await;
    explaining.steps(&routine, &given).await;
    let rows = explaining.rows;
    if printer.is_json() {
        print_json(&json!({"routine": routine.tool.name, "whole": whole, "calls": rows}));
        return Ok(());
    }
    let mut table = Table::new(["STEP", "TOOL", "DEVICE", "ARGUMENTS", "VERDICT", "WHY"]).wrap(&["ARGUMENTS", "WHY"]);
    for row in whole.iter().chain(&rows) {
        let text = |key: &str| match &row[key] {
            Value::String(text) => clean(text),
            Value::Object(members) if members.is_empty() => String::new(),
            Value::Null => String::new(),
            other => clean(&clip(&other.to_string())),
        };
        table.row(["step", "tool", "device", "arguments", "verdict", "why"].map(|key| (None, text(key))));
    }
    print(&printer.table(&table));
    match rows.iter().filter(|row| row["verdict"] == UNKNOWN).count() {
        0 => Ok(()),
        count => Err(CliError::new(CliErrorKind::ChecksFailed, format!("{count} of its calls cannot be made"))),
    }
}

/// Asks the gateway about the calls of a routine, and of those that it calls.
struct Explaining<'a> {
    client: GatewayClient,
    devices: Vec<DeviceSummary>,
    /// For whom.
    caller: Option<String>,
    file: &'a Path,
    rows: Vec<Value>,
}

impl Explaining<'_> {
    /// What is said about the routine itself, where the gateway has it.
    async fn whole(&mut self, routine: &Routine, given: &Map<String, Value>) -> Option<Value> {
        let row = self.row("", DEVICE, &routine.tool.name, given, true).await;
        Some(row).filter(|row| row["verdict"] != UNKNOWN)
    }

    async fn steps(&mut self, routine: &Routine, given: &Map<String, Value>) {
        let mut open = vec![(String::new(), routine.clone(), given.clone(), 0)];
        while let Some((within, routine, given, depth)) = open.pop() {
            let mut asked = Vec::new();
            let mut inner = Vec::new();
            for step in planned(&routine, &given) {
                // A loop makes the same call again and again.
                if self.rows.len() >= MOST_ROWS || asked.contains(&step.call) {
                    continue;
                }
                asked.push(step.call.clone());
                let PlannedStep { at, call: PlannedCall { device, tool, args }, is_known, .. } = step;
                let at = format!("{within}{at}");
                if device.as_deref() == Some(DEVICE) && depth < MOST_DEPTH {
                    let path = self.file.with_file_name(format!("{tool}.md"));
                    let called = Routine::load(&path).ok();
                    inner.extend(called.map(|called| (format!("{at}/"), called, args.clone(), depth + 1)));
                }
                self.call(&at, device, &tool, &args, is_known).await;
            }
            open.extend(inner.into_iter().rev());
        }
    }

    async fn call(&mut self, at: &str, device: Option<String>, tool: &str, args: &Map<String, Value>, is_known: bool) {
        let Some(device) = device.filter(|device| !device.contains("${")) else {
            let why = "which device it is depends on the call";
            let row = json!({"step": at, "tool": tool, "device": "", "arguments": args, "verdict": "", "why": why});
            return self.rows.push(row);
        };
        let labelled = device.strip_prefix("label:").map(|label| -> Vec<String> {
            let labelled = self.devices.iter().filter(|own| own.labels.iter().any(|own| own == label));
            labelled.map(|own| own.id.clone()).collect()
        });
        // The gateway says what is wrong with a label that no device has.
        let devices = labelled.filter(|devices| !devices.is_empty()).unwrap_or_else(|| vec![device]);
        for device in devices {
            let row = self.row(at, &device, tool, args, is_known).await;
            self.rows.push(row);
        }
    }

    async fn row(&mut self, at: &str, device: &str, tool: &str, args: &Map<String, Value>, is_known: bool) -> Value {
        let request = Explain {
            token: self.caller.clone(),
            device: device.to_owned(),
            tool: tool.to_owned(),
            arguments: args.clone(),
        };
        let (verdict, mut why) = match self.client.post::<Explained>("/api/v1/policy/explain", &request).await {
            Ok(explained) => (explained.verdict, explained.reason),
            Err(error) => (UNKNOWN.to_owned(), error.to_string()),
        };
        if !is_known {
            why.push_str("; what is not known yet may change this");
        }
        json!({"step": at, "tool": tool, "device": device, "arguments": args, "verdict": verdict, "why": why})
    }
}

/// The calls of the steps as far as these arguments and the defaults tell them.
fn planned(routine: &Routine, given: &Map<String, Value>) -> Vec<PlannedStep> {
    let has_default =
        |name: &str| routine.tool.properties().and_then(|known| known.get(name)?.get("default")).is_some();
    let mut scope = routine.scope(given);
    scope.retain(|name, _| given.contains_key(name) || has_default(name));
    routine.steps.planned_steps(&scope, &LIMITS)
}
