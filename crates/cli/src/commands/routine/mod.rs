//! `sinew routine`: write, record, check, run and explain routines.

mod playing;
mod recording;
mod suite;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use sinew_api::{Explain, Explained};
use sinew_routines::{DEVICE, Routine, is_routine_name, new_from_template};
use sinew_steps::{RunReport, StepRecord};
use sinew_tool::{ErrorKind, ToolError, ToolUse};

use super::{call, tools};
use crate::args::{CallArgs, ReachArgs, StateArgs};
use crate::client::{GatewayClient, GatewayTarget};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_exact, print_json};

/// The verdict about a tool or a device that is not there.
const UNKNOWN: &str = "unknown";

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

        #[command(flatten)]
        state: StateArgs,
    },
    /// Check files: the steps, and whether they fit the parameters
    Lint {
        /// Files of routines
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Make a routine of calls that happen now
    Record(recording::RecordArgs),
    /// Run all routines of a directory, on several devices at once, and report
    Test(suite::SuiteArgs),
    /// Run a routine of the gateway by its name, or the steps of a file one by one
    Run {
        /// Name of a routine, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
        /// Arguments of the routine
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show a file: what it is for, its parameters and its steps
    Show { file: PathBuf },
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
        RoutineCommand::New { name, folder, state } => new(&name, &folder, &state, printer),
        RoutineCommand::Lint { files } => lint(&files, printer),
        RoutineCommand::Record(args) => recording::run(args, printer).await,
        RoutineCommand::Test(args) => suite::run(args, printer).await,
        RoutineCommand::Run { name, arguments, reach } if name.ends_with(".md") => {
            run_file(Path::new(&name), &arguments, &reach, printer).await
        }
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
            call::run(call, printer).await.map_err(where_files_go)
        }
        RoutineCommand::Show { file } => show(&file, printer),
        RoutineCommand::Explain { file, caller, reach } => explain(&file, caller.as_deref(), &reach, printer).await,
    }
}

/// Whoever names a routine that the gateway does not have has most likely put its file elsewhere.
fn where_files_go(mut failure: CliError) -> CliError {
    let unknown = [ErrorKind::UnknownTool, ErrorKind::UnknownDevice].map(|kind| kind.row().error_type);
    if unknown.contains(&failure.error_type) {
        failure.message.push_str(
            "\nA routine is a file NAME.md in the folder `routines` beside the gateway's sinew.toml, or, without that \
             file, in its state directory; `sinew status` shows which gateway this is, and `sinew devices show routines` \
             the files with mistakes.",
        );
    }
    failure
}

fn new(name: &str, folder: &Path, state: &StateArgs, printer: Printer) -> Result<(), CliError> {
    check_name(name)?;
    let path = write_new(folder, name, &new_from_template(name))?;
    match printer.is_json() {
        true => print_json(&json!({"file": path})),
        false => {
            let shown = path.display();
            print(&format!("Wrote {shown}.\nFill it in, then check it with `sinew routine lint {shown}`.\n"));
            print(&where_it_is_read(&path, state));
        }
    }
    Ok(())
}

/// Where a file must be so that the gateway has it as a tool.
fn where_it_is_read(path: &Path, state: &StateArgs) -> String {
    let running = state.directory().ok().and_then(|directory| sinew_compose::state::find_running(&directory));
    let Some(folder) = running.and_then(|running| running.addresses.routines) else {
        return "A gateway reads routines from the folder `routines` beside its sinew.toml, or, without that file, in its \
                state directory.\n"
            .to_owned();
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match path.parent().is_some_and(|parent| real(parent) == real(&folder)) {
        true => "The gateway that runs reads it there.\n".to_owned(),
        false => format!("The gateway that runs reads routines from {}: move it there.\n", folder.display()),
    }
}

fn check_name(name: &str) -> Result<(), CliError> {
    if is_routine_name(name) {
        return Ok(());
    }
    let message = format!("`{}` is no name for a routine; expected small letters, digits and `_`", clean(name));
    Err(CliError::new(CliErrorKind::Usage, message))
}

/// Writes a file that must not be there yet.
fn write_new(folder: &Path, name: &str, text: &str) -> Result<PathBuf, CliError> {
    let path = folder.join(format!("{name}.md"));
    let failed = |error: std::io::Error| CliError::new(CliErrorKind::Io, format!("{}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    match File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already; choose another name", path.display());
            Err(CliError::new(CliErrorKind::Usage, message))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Carries out the steps of a file from here.
async fn run_file(path: &Path, pairs: &[String], reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let routine = load(path)?;
    let arguments = call::arguments::typed(pairs, &routine.tool.input_schema)?;
    playing::check_arguments(&routine, &arguments)?;
    let client = GatewayTarget::find(reach)?.connect().await?;
    let (report, _) = playing::play(&routine, &arguments, client, false, &|step| log_step(step, printer)).await;
    match (&report.returned, printer.is_json()) {
        (_, true) => print_json(&report.to_json()),
        (Some(returned), false) => print_exact(&format!("{}\n", clean(&format!("{returned:#}")))),
        (None, false) => {}
    }
    finish(&routine.tool.name, &report)
}

fn load(path: &Path) -> Result<Routine, CliError> {
    Routine::load(path)
        .map_err(|problem| CliError::new(CliErrorKind::ChecksFailed, format!("{}: {problem}", path.display())))
}

/// Prints a step that was carried out.
fn log_step(step: &StepRecord, printer: Printer) {
    if printer.is_json() {
        return;
    }
    let (style, word) = if step.outcome.is_ok() { (TextStyle::Good, "ok    ") } else { (TextStyle::Bad, "failed") };
    let word = printer.paint(style, word);
    print(&format!("{word} {}. {}, {} ms\n", step.at, clean(&step.what), step.took.as_millis()));
}

/// The exit code of a run that was shown step by step.
fn finish(name: &str, report: &RunReport) -> Result<(), CliError> {
    match &report.failure {
        None => Ok(()),
        Some(failure) => {
            let step =
                report.failed_step().map_or(String::new(), |step| format!(" at step {} ({})", step.at, step.what));
            let message = format!("{name} failed{step}: {}", failure.message);
            Err(ToolError::new(failure.kind, message).into())
        }
    }
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

fn show(file: &Path, printer: Printer) -> Result<(), CliError> {
    let Routine { tool, steps } = load(file)?;
    if printer.is_json() {
        print_json(
            &json!({"tool": tool.to_json(), "uses": steps.calls().iter().map(|call| call.tool).collect::<Vec<_>>()}),
        );
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
    for (number, call) in steps.calls().iter().enumerate() {
        let device = call.device.and_then(Value::as_str).map(|device| format!(" on {device}")).unwrap_or_default();
        text.push_str(&format!("{:>3}. {}{}\n", number + 1, clean(call.tool), clean(&device)));
    }
    print(&text);
    Ok(())
}

async fn explain(file: &Path, caller: Option<&str>, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let routine = load(file)?;
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let mut rows = Vec::new();
    for used in &routine.tool.uses {
        rows.push(explain_use(&mut client, used, caller).await);
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
        Err(error) => (UNKNOWN.to_owned(), error.to_string()),
    };
    json!({"tool": used.tool, "device": device, "verdict": verdict, "why": why})
}
