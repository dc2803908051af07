//! `sinew spec`: read, check, print, compare and lock tool specifications. One file a verb.
//!
//! Made for CI: exit code 0 means nothing to complain of, 1 that something was found, 2 that the
//! question could not be answered as it was put.

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
pub mod source;

use std::path::Path;

use crate::failure::{Failure, Kind};
use crate::show::{Show, print};
use args::{Spec, SpecVerb};

pub async fn run(args: Spec, show: Show) -> Result<(), Failure> {
    let done = match args.verb {
        SpecVerb::Lint(args) => lint::run(args, show).await,
        SpecVerb::Explain { rule } => explain::run(&rule, show),
        SpecVerb::Rules => rules::run(show),
        SpecVerb::Render(args) => render::run(args).await,
        SpecVerb::New { name, out } => new::run(&name, out.as_deref()),
        SpecVerb::Add { tool, file } => add::run(&tool, &file),
        SpecVerb::From(args) => from::run(args).await,
        SpecVerb::Diff(args) => diff::run(args, show).await,
        SpecVerb::Lock(args) => lock::run(args, show),
    };
    let kinds = [Kind::Usage, Kind::Config, Kind::Io].map(|kind| Failure::new(kind, "").exit);
    done.map_err(|failure| if kinds.contains(&failure.exit) { Failure { exit: 2, ..failure } } else { failure })
}

/// Writes to a file, or prints where none is named.
fn put(text: &str, out: Option<&Path>) -> Result<(), Failure> {
    match out {
        Some(path) => std::fs::write(path, text).map_err(|error| unwritable(path, &error)),
        None => {
            print(text);
            Ok(())
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Io, format!("cannot write {}: {error}", path.display()))
}
