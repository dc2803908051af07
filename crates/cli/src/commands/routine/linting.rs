//! `sinew routine lint`: files by themselves, and their steps against the devices of a running gateway.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use sinew_api::{DeviceSummary, Devices, Effects, ListedTool, MarkedTool, Tools};
use sinew_routines::{DEVICE, Routine, misfits};
use sinew_steps::WrittenCall;
use sinew_tool::spelling::nearest;

use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::commands::tools;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_json, say};

/// A file and what is wrong with it.
struct LintedFile<'a> {
    file: &'a Path,
    steps: usize,
    problems: Vec<String>,
}

pub(super) async fn lint(files: &[PathBuf], reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let mut known = match GatewayTarget::find(reach) {
        Ok(target) => Some(KnownDevices::read(target.connect().await?).await?),
        Err(error) if error.is(CliErrorKind::NoGateway) => None,
        Err(error) => return Err(error),
    };
    let mut linted = Vec::new();
    for file in files {
        let (steps, problems) = match Routine::load(file) {
            Err(problem) => (0, vec![problem]),
            Ok(routine) => {
                let mut problems: Vec<String> = routine.check_returns().err().iter().map(ToString::to_string).collect();
                if let Some(known) = &mut known {
                    problems.extend(known.problems(&routine).await);
                }
                (routine.steps.len(), problems)
            }
        };
        linted.push(LintedFile { file, steps, problems });
    }
    let bad = linted.iter().filter(|file| !file.problems.is_empty()).count();
    if printer.is_json() {
        let row = |linted: &LintedFile<'_>| {
            let LintedFile { file, steps, problems } = linted;
            json!({"file": file, "ok": problems.is_empty(), "steps": steps, "problems": problems})
        };
        print_json(&json!({
            "routines": linted.iter().map(row).collect::<Vec<_>>(),
            "compared_with_devices": known.is_some(),
        }));
    } else {
        linted.iter().for_each(|file| print(&lines(file, printer)));
        if known.is_none() {
            say("No gateway runs here, so the steps were not compared with the tools of devices.");
        }
    }
    match bad {
        0 => Ok(()),
        _ => {
            let message = format!("{bad} of {} files have mistakes", files.len());
            Err(CliError::new(CliErrorKind::ChecksFailed, message))
        }
    }
}

fn lines(linted: &LintedFile<'_>, printer: Printer) -> String {
    let file = linted.file.display();
    match linted.problems.is_empty() {
        true => format!("{file}: {} steps\n", linted.steps),
        false => {
            let line = |problem: &String| format!("{file}: {}\n", printer.paint(TextStyle::Bad, &clean(problem)));
            linted.problems.iter().map(line).collect()
        }
    }
}

/// The devices of a gateway and, once they are asked for, their tools.
struct KnownDevices {
    client: GatewayClient,
    devices: Vec<DeviceSummary>,
    public: Vec<ListedTool>,
    /// Every tool of every device, by its own name.
    named: Vec<MarkedTool>,
    tools: HashMap<String, Vec<ListedTool>>,
}

impl KnownDevices {
    async fn read(mut client: GatewayClient) -> Result<KnownDevices, CliError> {
        let devices = client.get_all::<Devices>("/api/v1/devices").await?.devices;
        let public = client.get::<Tools>("/api/v1/tools?shape=folded").await?.tools;
        // Only for administrators.
        let named = client.get_all::<Effects>("/api/v1/policy/effects").await.map(|all| all.tools).unwrap_or_default();
        Ok(KnownDevices { client, devices, public, named, tools: HashMap::new() })
    }

    /// What the calls of a routine name and the devices do not have.
    async fn problems(&mut self, routine: &Routine) -> Vec<String> {
        let mut problems = Vec::new();
        let name = &routine.tool.name;
        if let Some(other) = self.named.iter().find(|other| other.tool == *name && other.device != DEVICE) {
            problems.push(format!(
                "line 1: {} has a tool `{name}` too, and clients would see one of them under another name; choose another name",
                other.device
            ));
        }
        for call in routine.steps.calls() {
            let found = self.tool(routine, &call).await;
            let misfits = match (found, call.arguments) {
                (Err(problem), _) => vec![problem],
                (Ok(Some(tool)), Some(arguments)) => misfits(arguments, &tool.input_schema),
                (Ok(_), _) => Vec::new(),
            };
            let line = routine.line_of(&call);
            problems.extend(misfits.iter().map(|problem| format!("line {line}: step {}: {problem}", call.at)));
        }
        problems
    }

    /// The tool that is called; `None` where that shows only when it is called.
    async fn tool(&mut self, routine: &Routine, call: &WrittenCall<'_>) -> Result<Option<ListedTool>, String> {
        let Some(written) = call.device else {
            return find(&self.public, call.tool, "no device").map(Some);
        };
        let Some(device) = routine.known_device(written) else { return Ok(None) };
        let ids = self.ids(device)?;
        let mut last = Ok(None);
        for id in ids {
            let tools = self.tools_of(&id).await;
            // A device that is away may offer nothing now.
            if tools.is_empty() {
                return Ok(None);
            }
            last = find(tools, call.tool, device).map(Some);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// The devices that a name means.
    fn ids(&self, wanted: &str) -> Result<Vec<String>, String> {
        let fits = |device: &&DeviceSummary| match wanted.strip_prefix("label:") {
            Some(label) => device.labels.iter().any(|own| own == label),
            None => device.id == wanted || device.name.as_deref() == Some(wanted),
        };
        let ids: Vec<String> = self.devices.iter().filter(fits).map(|device| device.id.clone()).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
        let labels = self.devices.iter().flat_map(|device| &device.labels).map(|label| format!("label:{label}"));
        let names = self.devices.iter().flat_map(|device| [Some(device.id.clone()), device.name.clone()]).flatten();
        let known: Vec<String> = names.chain(labels).collect();
        let hint = nearest(wanted, known.iter().map(String::as_str)).map(|name| format!("; did you mean `{name}`?"));
        Err(format!("the gateway knows no device `{wanted}`{}", hint.unwrap_or_default()))
    }

    async fn tools_of(&mut self, id: &str) -> &[ListedTool] {
        if !self.tools.contains_key(id) {
            let tools = tools::of_device(&mut self.client, id).await.unwrap_or_default();
            self.tools.insert(id.to_owned(), tools);
        }
        self.tools.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

fn find(tools: &[ListedTool], wanted: &str, device: &str) -> Result<ListedTool, String> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == wanted) {
        return Ok(tool.clone());
    }
    let hint = nearest(wanted, tools.iter().map(|tool| tool.name.as_str()));
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    Err(format!("{device} has no tool `{wanted}`{hint}"))
}
