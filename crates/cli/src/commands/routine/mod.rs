//! `sinew routine`: write, record, check, run and explain routines.

mod explaining;
mod files;
mod linting;
mod playing;
mod recording;
mod running;
mod suite;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sinew_routines::new_from_template;
use sinew_steps::{RunReport, StepRecord};
use sinew_tool::ToolError;

use crate::args::ReachArgs;
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

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
        /// Where the file goes; by default where the running gateway reads routines, else `routines` here
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Check files: the steps, their parameters and, where a gateway runs, the tools they call
    Lint {
        /// Files of routines
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        reach: ReachArgs,
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
        /// Agree to calls that need an approval
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show a routine: what it is for, its parameters and its steps
    Show {
        /// Name of a routine of the gateway, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Show what a routine would call, on which devices, and whether the policy allows it; calls nothing
    Explain {
        /// Name of a routine of the gateway, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
        /// Arguments of the routine: what the policy says may depend on them
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// Explain it for the token with this label
        #[arg(long = "as", value_name = "TOKEN")]
        caller: Option<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub async fn run(args: RoutineArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        RoutineCommand::New { name, folder, reach } => new(&name, folder, &reach, printer).await,
        RoutineCommand::Lint { files, reach } => linting::lint(&files, &reach, printer).await,
        RoutineCommand::Record(args) => recording::run(args, printer).await,
        RoutineCommand::Test(args) => suite::run(args, printer).await,
        RoutineCommand::Run { name, arguments, yes, reach } => {
            running::run(&name, arguments, yes, reach, printer).await
        }
        RoutineCommand::Show { name, reach } => explaining::show(&files::find(&name, &reach).await?, printer),
        RoutineCommand::Explain { name, arguments, caller, reach } => {
            let file = files::find(&name, &reach).await?;
            explaining::explain(&file, &arguments, caller, &reach, printer).await
        }
    }
}

async fn new(name: &str, folder: Option<PathBuf>, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = files::new_path(&files::new_folder(folder, reach).await?, name)?;
    files::write_new(&path, &new_from_template(name))?;
    match printer.is_json() {
        true => print_json(&json!({"file": path})),
        false => {
            let shown = path.display();
            print(&format!("Wrote {shown}.\nFill it in, then check it with `sinew routine lint {shown}`.\n"));
            print(&files::where_it_is_read(&path, reach).await?);
        }
    }
    Ok(())
}

/// Prints a step that was carried out.
fn log_step(step: &StepRecord, printer: Printer) {
    if !printer.is_json() {
        let ms = step.took.as_millis();
        print(&step_line(step.outcome.is_ok(), &step.at, &step.what, ms, printer));
    }
}

/// Prints a step as the gateway reports it.
fn print_step(step: &Value, printer: Printer) {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let (is_ok, ms) = (step["ok"] == true, step["ms"].as_u64().unwrap_or(0));
    print(&step_line(is_ok, text("at"), text("what"), ms.into(), printer));
}

fn step_line(is_ok: bool, at: &str, what: &str, ms: u128, printer: Printer) -> String {
    let (style, word) = if is_ok { (TextStyle::Good, "ok    ") } else { (TextStyle::Bad, "failed") };
    format!("{} {}. {}, {ms} ms\n", printer.paint(style, word), clean(at), clean(what))
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
