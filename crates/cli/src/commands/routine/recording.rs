//! `sinew routine record`: calls that happen now become a routine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use sinew_api::{DraftRoutine, Journal, JournalCall, RecordJournal, RoutineDraft};
use sinew_routines::{DEVICE, Routine};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::files::{new_folder, new_path, write_new};
use super::log_step;
use super::playing::{Playing, example_arguments, play};
use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json, say};

/// The gateway keeps calls for so long after the last request for it.
const LEASE_S: u64 = 30;
/// A routine that was recorded in the middle of an app fails wherever the app is not just there.
const STARTED: &str = "\
Recording. Make the calls now, with any client or with `sinew call`.
On a phone, begin at a screen that can be found again: `close_app` makes an app
forget where it was, and `open_app` starts it at its first screen.
Press Enter when the calls are done.";
/// Calls that one recording may have.
const MOST_CALLS: usize = 1_000;

#[derive(Debug, Args)]
pub(super) struct RecordArgs {
    /// The name of the new routine
    name: String,
    /// Only calls of this device, by id or name
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Only calls of this caller, as `sinew journal` names it
    #[arg(long, value_name = "CALLER")]
    who: Option<String>,
    /// Make it of calls that happened already, after the one with this id in the journal
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
    /// Where the file goes; by default where the running gateway reads routines, else `routines` here
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Carry the new routine out once, with the recorded values
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

pub(super) async fn run(args: RecordArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    // Before anybody makes calls for nothing.
    let path = new_path(&new_folder(args.folder.clone(), &args.reach).await?, &args.name)?;
    let (name, draft) = (args.name.clone(), "/api/v1/routines/draft");
    let calls = match args.after {
        Some(after) => recorded_calls(&mut client, &args, after).await?,
        None => record_calls(&mut client, &args).await?,
    };
    let RoutineDraft { file: text, calls, .. } = client.post(draft, &DraftRoutine { name, calls }).await?;
    let routine = Routine::read(&args.name, &text).map_err(|problem| {
        CliError::new(CliErrorKind::ChecksFailed, format!("what was recorded is no routine: {problem}"))
    })?;
    write_new(&path, &text)?;
    match printer.is_json() {
        true => print_json(&json!({"file": path, "calls": calls, "steps": routine.steps.len()})),
        false => print(&page(&path, &text, calls, args.replay, printer)),
    }
    if args.replay {
        replay(&routine, client, printer).await?;
    }
    Ok(())
}

/// Keeps the journal on until somebody presses Enter; returns the calls since.
async fn record_calls(client: &mut GatewayClient, args: &RecordArgs) -> Result<Vec<u64>, CliError> {
    // Two people may record under the same name.
    let name = format!("{}-{}", args.name, std::process::id());
    let waited = wait_for_the_end(client, &name).await;
    let calls = match waited {
        Ok(after) => recorded_calls(client, args, after).await,
        Err(error) => Err(error),
    };
    // It ends by itself if this does not come through.
    let _ = client.post::<Journal>("/api/v1/journal", &RecordJournal { seconds: 0, name: Some(name) }).await;
    calls
}

/// Returns the id of the last call before.
async fn wait_for_the_end(client: &mut GatewayClient, name: &str) -> Result<u64, CliError> {
    let lease = RecordJournal { seconds: LEASE_S, name: Some(name.to_owned()) };
    let begun: Journal = client.post("/api/v1/journal", &lease).await?;
    say(STARTED);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut renewal = tokio::time::interval(Duration::from_secs(LEASE_S / 3));
    loop {
        tokio::select! {
            _ = lines.next_line() => return Ok(begun.last),
            _ = renewal.tick() => {
                client.post::<Journal>("/api/v1/journal", &lease).await?;
            }
        }
    }
}

/// The ids of the calls that are wanted.
async fn recorded_calls(client: &mut GatewayClient, args: &RecordArgs, after: u64) -> Result<Vec<u64>, CliError> {
    let device = args.device.as_ref().map(|device| format!("&device={}", encode(device))).unwrap_or_default();
    let journal: Journal = client.get(&format!("/api/v1/journal?after={after}&limit={MOST_CALLS}{device}")).await?;
    let is_wanted = |call: &&JournalCall| {
        let is_callers = args.who.as_ref().is_none_or(|who| *who == call.principal);
        is_callers && !call.nested && call.error.is_none() && call.device != DEVICE
    };
    Ok(journal.calls.iter().filter(is_wanted).map(|call| call.id).collect())
}

fn page(path: &Path, text: &str, calls: usize, is_replayed: bool, printer: Printer) -> String {
    let next = match is_replayed {
        true => "",
        false => "Read it, change what should differ, and try it:\n",
    };
    let command = printer.command(&format!("sinew routine run {}", path.display()));
    format!("{text}\nWrote {} from {calls} calls. {next}{}", path.display(), if is_replayed { "\n" } else { &command })
}

async fn replay(routine: &Routine, client: GatewayClient, printer: Printer) -> Result<(), CliError> {
    let arguments = example_arguments(routine, sinew_tool::Args::new())
        .map_err(|why| CliError::new(CliErrorKind::ChecksFailed, why))?;
    let playing = Playing { confirmed: false, observes: false, log: &|step| log_step(step, printer) };
    let (report, _) = play(routine, &arguments, client, playing).await;
    super::finish(&routine.tool.name, &report)
}
