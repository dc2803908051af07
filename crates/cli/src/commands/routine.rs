//! `sinew routine`: write, check, run and explain routines.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use sinew_api::{Explain, Explained};
use sinew_routines::{Routine, new_from_template};
use sinew_tool::ToolUse;

use super::call;
use crate::args::{CallArgs, ReachArgs};
use crate::client::{GatewayClient, GatewayTarget};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

/// The device whose tools are the routines.
const DEVICE: &str = "routines";

#[derive(Debug, Args)]
pub struct RoutineArgs {
    #[command(subcommand)]
    command: RoutineCommand,
}

#[derive(Debug, Subcommand)]
enum RoutineCommand {
    /// Write a new routine to fill in
    New {
        /// Its name, which the tool and the file have too
        name: String,
        /// Where the file goes
        #[arg(long, value_name = "DIR", default_value = "routines")]
        folder: PathBuf,
    },
    /// Check files: the steps, and whether they fit the parameters
    Lint {
        /// Files of routines
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Call a routine of the running gateway
    Run {
        name: String,
        /// Arguments of the routine
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show what a file would call, on which devices, and whether the policy allows it; calls nothing
    Explain {
        file: PathBuf,
        /// Explain it for the token with this label
        #[arg(long = "as", value_name = "TOKEN")]
        caller: Option<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub async fn run(args: RoutineArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        RoutineCommand::New { name, folder } => new(&name, &folder, printer),
        RoutineCommand::Lint { files } => lint(&files, printer),
        RoutineCommand::Run { name, arguments, reach } => {
            let call = CallArgs {
                device: DEVICE.to_owned(),
                tool: name,
                arguments,
                args: None,
                timeout: None,
                save: None,
                yes: false,
                reach,
            };
            call::run(call, printer).await
        }
        RoutineCommand::Explain { file, caller, reach } => explain(&file, caller.as_deref(), &reach, printer).await,
    }
}

fn new(name: &str, folder: &Path, printer: Printer) -> Result<(), CliError> {
    let is_name = |name: &str| {
        (1..=48).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if !is_name(name) {
        let message = format!("`{}` is no name for a routine; expected small letters, digits and `_`", clean(name));
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    let path = folder.join(format!("{name}.md"));
    let failed = |error: std::io::Error| CliError::new(CliErrorKind::Io, format!("{}: {error}", path.display()));
    if path.exists() {
        let message = format!("{} is there already; choose another name", path.display());
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&path, new_from_template(name)).map_err(failed)?;
    match printer.is_json() {
        true => print_json(&json!({"file": path})),
        false => print(&format!(
            "Wrote {}.\nFill it in, check it with `sinew routine lint`, and keep it where the gateway reads routines\n\
             (`routines` in sinew.toml, or `routines` in the state directory).\n",
            path.display()
        )),
    }
    Ok(())
}

fn lint(files: &[PathBuf], printer: Printer) -> Result<(), CliError> {
    let checked: Vec<(&PathBuf, Result<Routine, String>)> =
        files.iter().map(|file| (file, Routine::load(file))).collect();
    let bad = checked.iter().filter(|(_, read)| read.is_err()).count();
    if printer.is_json() {
        let row = |(file, read): &(&PathBuf, Result<Routine, String>)| match read {
            Ok(routine) => json!({"file": file, "ok": true, "steps": routine.steps.len()}),
            Err(problem) => json!({"file": file, "ok": false, "problem": problem}),
        };
        print_json(&json!({"routines": checked.iter().map(row).collect::<Vec<_>>()}));
    } else {
        for (file, read) in &checked {
            let line = match read {
                Ok(routine) => format!("{} steps", routine.steps.len()),
                Err(problem) => printer.paint(TextStyle::Bad, &clean(problem)).into_owned(),
            };
            print(&format!("{}: {line}\n", file.display()));
        }
    }
    match bad {
        0 => Ok(()),
        _ => Err(CliError::new(CliErrorKind::ChecksFailed, format!("{bad} of {} files are no routines", files.len()))),
    }
}

async fn explain(file: &Path, caller: Option<&str>, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let routine = Routine::load(file)
        .map_err(|problem| CliError::new(CliErrorKind::ChecksFailed, format!("{}: {problem}", file.display())))?;
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let mut rows = Vec::new();
    for used in &routine.tool.uses {
        rows.push(explain_use(&mut client, used, caller).await);
    }
    if printer.is_json() {
        print_json(&json!({"routine": routine.tool.name, "calls": rows}));
        return Ok(());
    }
    let mut table = Table::new(["TOOL", "DEVICE", "VERDICT", "WHY"]);
    for row in &rows {
        let text = |key: &str| clean(row[key].as_str().unwrap_or_default());
        table.row(["tool", "device", "verdict", "why"].map(|key| (None, text(key))));
    }
    print(&printer.table(&table));
    Ok(())
}

async fn explain_use(client: &mut GatewayClient, used: &ToolUse, caller: Option<&str>) -> Value {
    let Some(device) = &used.device else {
        let why = "which device it is depends on the call";
        return json!({"tool": used.tool, "device": "", "verdict": "", "why": why});
    };
    let request = Explain {
        token: caller.map(str::to_owned),
        device: device.clone(),
        tool: used.tool.clone(),
        arguments: Map::new(),
    };
    let explained = client.post::<Explained>("/api/v1/policy/explain", &request).await;
    let (verdict, why) = match explained {
        Ok(explained) => (explained.verdict, explained.reason),
        Err(error) => ("unknown".to_owned(), error.to_string()),
    };
    json!({"tool": used.tool, "device": device, "verdict": verdict, "why": why})
}
