//! The one binary: reads the command line, runs the command, and turns a failure into a message and an
//! exit code. The verbs are in [`commands`].

mod ai_clients;
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

use sinew_compose::log::{self, RunningLog};
use tracing::level_filters::LevelFilter;

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
    let log = start_log(&cli);
    let done = run(cli, printer);
    // What was logged comes before the error.
    drop(log);
    match done {
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
        if !error.use_stderr() {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        let text = error.render();
        let is_colored = terminal::is_colored(&std::io::stderr());
        terminal::ask(&if is_colored { text.ansi().to_string() } else { text.to_string() });
        return ExitCode::from(USAGE);
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
        terminal::say("warning: `--json OBJECT` is now `--args OBJECT`; `--json` alone prints JSON");
        words[at - 1] = "--args".into();
    }
    words
}

fn refuse(failure: &CliError) -> ExitCode {
    if wants_json() {
        terminal::print_exact(&format!("{:#}\n", failure.to_object()));
    } else {
        terminal::say(&format!("error: {failure}"));
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
    let names = [
        "SINEW_STATE",
        "SINEW_CONFIG",
        "SINEW_URL",
        "SINEW_TOKEN",
        "SINEW_FINGERPRINT",
        "SINEW_CA",
        "SINEW_LOG",
        "MCP_ENDPOINT",
    ];
    let is_empty = |name: &&&str| std::env::var_os(name).is_some_and(|value| value.is_empty());
    match names.iter().find(is_empty) {
        None => Ok(()),
        Some(name) => {
            let message = format!("the environment variable {name} is empty; give it a value or unset it");
            Err(CliError { exit: USAGE, ..CliError::new(CliErrorKind::Usage, message) })
        }
    }
}

/// Starts the log on standard error. `SINEW_LOG` sets the level, for example `debug` or `info,sinew_boards=trace`, else
/// the configuration does.
fn start_log(cli: &Cli) -> Option<RunningLog> {
    let usual = match cli.command {
        CliCommand::Serve(_) | CliCommand::Endpoint(_) => "info",
        _ => "warn",
    };
    // A file with a mistake is reported by the command itself.
    let config = cli.command.state().and_then(|state| state.load_config().ok()).unwrap_or_default().log;
    let wanted = std::env::var_os("SINEW_LOG").and_then(|text| {
        let levels = text.to_str().filter(|text| log::parse_levels(text).is_some()).map(str::to_owned);
        if levels.is_none() {
            let text = text.display();
            terminal::say(&format!(
                "warning: SINEW_LOG={text} is not understood and ignored; expected {}",
                log::LEVELS
            ));
        }
        levels
    });
    let levels = wanted.or(config.level).unwrap_or_else(|| usual.to_owned());
    let mut levels = log::parse_levels(&levels)?;
    if !levels.iter().any(|(part, _)| part == "rmcp") {
        // rmcp warns of every mistake a client makes; those are for the client.
        levels = levels.with_target("rmcp", LevelFilter::OFF);
    }
    let color = std::io::stderr().is_terminal() && !cli.no_color && std::env::var_os("NO_COLOR").is_none();
    log::start(levels, config.format, color).ok()
}
