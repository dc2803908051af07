//! The one binary: reads the command line, runs the command, and turns a failure into a message and an
//! exit code. The verbs are in [`commands`].

mod args;
mod client;
mod client_setup;
mod client_tokens;
mod commands;
#[cfg(test)]
mod docs;
mod error;
mod fingerprint;
mod relay;
mod start_page;
mod stop;
mod terminal;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, CliCommand};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::Printer;

/// A call costs a seventh less than with the system's allocator, and a connected board a little less memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What shells and clap say where a command line cannot be understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    // Before the arguments: clap would refuse an empty variable without its name.
    if let Err(failure) = check_environment() {
        return refuse(&failure);
    }
    let cli = match args::parse(command_line()) {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let printer = Printer::new(&cli);
    log(&cli);
    match run(cli, printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            ExitCode::from(failure.exit)
        }
    }
}

/// Help and version are printed; everything else is reported like every other failure.
fn misread(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !wants_json() {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
    }
    let text = error.render().to_string();
    // Usage and hints are for people; the reason comes before them.
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|tail| text.find(tail)).min();
    let reason = text[..end.unwrap_or(text.len())].trim();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    refuse(&CliError { exit: USAGE, ..CliError::new(CliErrorKind::Usage, reason) })
}

/// Whether JSON is wanted, as far as can be seen of a command line that is not understood.
fn wants_json() -> bool {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    words.iter().any(|word| word == "--output=json" || word == "--json")
        || words.windows(2).any(|pair| pair == ["--output", "json"])
}

/// The words of the command line. `call --json OBJECT` of earlier versions is `call --args OBJECT` now.
fn command_line() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_object = |word: &OsString| word.to_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
    let old = (2..words.len()).find(|at| words[at - 1] == "--json" && is_object(&words[*at]));
    if let Some(at) = old.filter(|_| words.iter().any(|word| word == "call")) {
        eprintln!("warning: `--json OBJECT` is now `--args OBJECT`; `--json` alone prints JSON");
        words[at - 1] = "--args".into();
    }
    words
}

fn refuse(failure: &CliError) -> ExitCode {
    if wants_json() {
        terminal::print(&format!("{:#}\n", failure.to_object()));
    } else {
        eprintln!("error: {failure}");
    }
    ExitCode::from(failure.exit)
}

fn run(cli: Cli, printer: Printer) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(CliErrorKind::Io, format!("no runtime: {error}")))?;
    let done = runtime.block_on(commands::run(cli.command, printer));
    // `stdio` may leave a read of standard input behind, which only the process's end interrupts.
    runtime.shutdown_background();
    done
}

/// An empty variable is a slip of a script, and would be taken for a value.
fn check_environment() -> Result<(), CliError> {
    let names =
        ["SINEW_STATE", "SINEW_CONFIG", "SINEW_URL", "SINEW_TOKEN", "SINEW_FINGERPRINT", "SINEW_CA", "MCP_ENDPOINT"];
    let is_empty = |name: &&&str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    match names.iter().find(is_empty) {
        None => Ok(()),
        Some(name) => {
            let message = format!("the environment variable {name} is empty; give it a value or unset it");
            Err(CliError { exit: USAGE, ..CliError::new(CliErrorKind::Usage, message) })
        }
    }
}

/// A word alone is a level: the reader of targets would take a misspelt one for the name of a part, and silence the rest.
fn levels(text: &str) -> Option<Targets> {
    let is_level = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    text.split(',').all(is_level).then(|| text.parse().ok()).flatten()
}

/// Logs go to standard error. `SINEW_LOG` sets the level, for example `debug` or `info,sinew_boards=trace`.
fn log(cli: &Cli) {
    // rmcp warns of every mistake a client makes; those are the client's to hear.
    let usual = match cli.command {
        CliCommand::Serve(_) | CliCommand::Endpoint(_) => "info,rmcp=off",
        _ => "warn,rmcp=off",
    };
    let wanted = std::env::var_os("SINEW_LOG").filter(|text| !text.is_empty());
    let wanted = wanted.and_then(|text| {
        let targets = text.to_str().and_then(levels);
        if targets.is_none() {
            eprintln!(
                "warning: SINEW_LOG={} is not understood and left aside; expected error, warn, info, debug, trace or \
                 off, also for a part as in info,sinew_boards=trace",
                text.display()
            );
        }
        targets
    });
    let targets = wanted.unwrap_or_else(|| usual.parse().unwrap_or(Targets::new().with_default(LevelFilter::WARN)));
    let color = std::io::stderr().is_terminal() && !cli.no_color && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(color).with_target(false);
    tracing_subscriber::registry().with(targets).with(lines).init();
}
