//! `sinew spec`: read, check, print, compare and lock tool specifications. One file a command.
//!
//! Made for CI: exit code 0 means that nothing was found, 1 that something was found, 2 that the
//! command could not run.

mod add;
pub mod args;
mod diff;
mod explain;
mod from;
pub(super) mod lint;
mod lock;
mod new;
mod patch;
mod render;
mod rules;
mod server_connection;
pub mod source;

use std::path::Path;

use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print_exact};
use args::{SpecArgs, SpecCommand};

pub async fn run(args: SpecArgs, printer: Printer) -> Result<(), CliError> {
    let done = match args.command {
        SpecCommand::Lint(args) => lint::run(args, printer).await,
        SpecCommand::Explain { rule } => explain::run(&rule, printer),
        SpecCommand::Rules => rules::run(printer),
        SpecCommand::Render(args) => render::run(args).await,
        SpecCommand::New { name, out } => new::run(&name, out.as_deref()),
        SpecCommand::Add { tool, file } => add::run(&tool, &file),
        SpecCommand::From(args) => from::run(args).await,
        SpecCommand::Diff(args) => diff::run(args, printer).await,
        SpecCommand::Lock(args) => lock::run(args, printer),
    };
    let kinds = [CliErrorKind::Usage, CliErrorKind::Config, CliErrorKind::Io].map(|kind| CliError::new(kind, "").exit);
    done.map_err(|failure| if kinds.contains(&failure.exit) { CliError { exit: 2, ..failure } } else { failure })
}

/// Writes to a file, or prints where none is named.
fn put(text: &str, out: Option<&Path>) -> Result<(), CliError> {
    match out {
        Some(path) => std::fs::write(path, text).map_err(|error| unwritable(path, &error)),
        None => {
            print_exact(text);
            Ok(())
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()))
}
