//! `sinew routine run`: a routine of the gateway, or the steps of a file from here.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sinew_api::{CallLine, CallRequest, CallResult};
use sinew_routines::DEVICE;
use sinew_tool::ErrorKind;

use super::files::{is_file, load};
use super::playing::{Playing, check_arguments, play};
use super::{finish, log_step, print_step};
use crate::args::{CallArgs, ReachArgs};
use crate::client::{GatewayClient, GatewayTarget};
use crate::commands::call;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, clean, print_exact, print_json, say};

/// Longer than a routine lets its caller wait.
const PATIENCE: Duration = Duration::from_secs(60);
/// Each look is a call, and recorded.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn run(
    name: &str,
    pairs: Vec<String>,
    yes: bool,
    reach: ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    match is_file(name) {
        true => run_file(Path::new(name), &pairs, yes, &reach, printer).await,
        false => run_named(name, pairs, yes, reach, printer).await,
    }
}

async fn run_named(
    name: &str,
    arguments: Vec<String>,
    yes: bool,
    reach: ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let args = CallArgs {
        device: DEVICE.to_owned(),
        tool: name.to_owned(),
        arguments,
        args: None,
        timeout: Some(PATIENCE),
        save: None,
        yes,
        reach: reach.clone(),
    };
    let shown = AtomicUsize::new(0);
    let report = |line: CallLine| {
        if let CallLine::Log(data) = line
            && data["step"].is_object()
            && !printer.is_json()
        {
            shown.fetch_add(1, Ordering::Relaxed);
            print_step(&data["step"], printer);
        }
    };
    let failure = match call::run_reporting(args, printer, Some(&report)).await {
        Ok(()) => return Ok(()),
        Err(failure) => failure,
    };
    let still_runs = failure.error_type == ErrorKind::Timeout.row().error_type;
    match failure.details["run"].as_str().filter(|_| still_runs) {
        Some(run) => {
            say(&format!("It goes on as {}.", clean(run)));
            let client = GatewayTarget::find(&reach)?.connect().await?;
            follow(run, client, shown.into_inner(), printer).await
        }
        None => Err(where_files_go(failure)),
    }
}

/// Looks at a run until it has ended, and prints the steps that are new.
async fn follow(run: &str, mut client: GatewayClient, mut shown: usize, printer: Printer) -> Result<(), CliError> {
    let arguments: Map<String, Value> = [("run".to_owned(), json!(run))].into_iter().collect();
    let device = Some(DEVICE.to_owned());
    let request = CallRequest { device, tool: "get_run".to_owned(), arguments, timeout_ms: None, confirmed: false };
    loop {
        let answer: CallResult = client.post("/api/v1/call", &request).await?;
        let page = answer.structured.unwrap_or_default();
        let steps = page["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !printer.is_json() {
            steps.iter().skip(shown).for_each(|step| print_step(step, printer));
        }
        shown = steps.len();
        match page["state"].as_str() {
            Some("running" | "waiting") => tokio::time::sleep(LOOK_EVERY).await,
            Some("done") if printer.is_json() => {
                print_json(&json!({"structuredContent": page["result"]}));
                return Ok(());
            }
            Some("done") => {
                print_exact(&format!("{}\n", clean(&format!("{:#}", page["result"]))));
                return Ok(());
            }
            _ => {
                let message = page["error"].as_str().unwrap_or("the run ended without an answer");
                return Err(CliError::new(CliErrorKind::ChecksFailed, clean(message)));
            }
        }
    }
}

/// Whoever names a routine that the gateway does not have has most likely put its file elsewhere.
fn where_files_go(mut failure: CliError) -> CliError {
    let unknown = [ErrorKind::UnknownTool, ErrorKind::UnknownDevice].map(|kind| kind.row().error_type);
    if unknown.contains(&failure.error_type) {
        failure.message.push_str(
            "\nA routine is a file NAME.md in the folder that `sinew status` shows; `sinew devices show routines` lists \
             the files with mistakes.",
        );
    }
    failure
}

/// Carries out the steps of a file from here.
async fn run_file(
    path: &Path,
    pairs: &[String],
    yes: bool,
    reach: &ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let routine = load(path)?;
    let arguments = call::arguments::typed(pairs, &routine.tool.input_schema)?;
    check_arguments(&routine, &arguments)?;
    let client = GatewayTarget::find(reach)?.connect().await?;
    let playing = Playing { confirmed: yes, observes: false, log: &|step| log_step(step, printer) };
    let (report, _) = play(&routine, &arguments, client, playing).await;
    match (&report.returned, printer.is_json()) {
        (_, true) => print_json(&report.to_json()),
        (Some(returned), false) => print_exact(&format!("{}\n", clean(&format!("{returned:#}")))),
        (None, false) => {}
    }
    finish(&routine.tool.name, &report)
}
