//! `sinew config`: checks a configuration file, or prints the schema of all of them.

use std::path::Path;

use serde_json::json;
use sinew_compose::config::schema;
use sinew_compose::{Config as File, Overrides};

use crate::args::{Config, ConfigVerb};
use crate::failure::Failure;
use crate::show::{Show, print, print_json};

/// For scripts and editors, as a misspelt flag.
const WRONG: u8 = 2;

pub fn run(args: Config, show: Show) -> Result<(), Failure> {
    match args.verb {
        ConfigVerb::Check { file } => check(&file, show),
        ConfigVerb::Schema => {
            print_json(&schema());
            Ok(())
        }
    }
}

/// Loads what `serve` loads, and opens nothing.
fn check(file: &Path, show: Show) -> Result<(), Failure> {
    File::settings(file, &Overrides::default()).map_err(|error| Failure { exit: WRONG, ..error.into() })?;
    if show.json() {
        print_json(&json!({"file": file, "status": "ok"}));
    } else {
        print(&format!("{} is valid.\n", file.display()));
    }
    Ok(())
}
