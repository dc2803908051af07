//! `sinew config`: checks a configuration file, or prints the schema of all of them.

use std::path::Path;

use serde_json::json;
use sinew_compose::config::schema;
use sinew_compose::{GatewayConfig, Overrides};

use crate::args::{ConfigArgs, ConfigCommand};
use crate::error::CliError;
use crate::terminal::{Printer, print, print_json};

/// For scripts and editors, as a misspelt flag.
const WRONG: u8 = 2;

pub fn run(args: ConfigArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        ConfigCommand::Check { file } => check(&file, printer),
        ConfigCommand::Schema => {
            print_json(&schema());
            Ok(())
        }
    }
}

/// Loads what `serve` loads, and opens nothing.
fn check(file: &Path, printer: Printer) -> Result<(), CliError> {
    GatewayConfig::settings(file, &Overrides::default()).map_err(|error| CliError { exit: WRONG, ..error.into() })?;
    if printer.is_json() {
        print_json(&json!({"file": file, "status": "ok"}));
    } else {
        print(&format!("{} is valid.\n", file.display()));
    }
    Ok(())
}
