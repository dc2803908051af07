//! `sinew manual DIR`: the manual pages, one for each command.

use crate::args::{ManualArgs, command_tree};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json};

pub fn run(args: &ManualArgs, printer: Printer) -> Result<(), CliError> {
    let folder = &args.folder;
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command_tree().disable_help_subcommand(true), folder)
    };
    write().map_err(|error| {
        let message = format!("cannot write the manual pages to {}: {error}", folder.display());
        CliError::new(CliErrorKind::Io, message)
    })?;
    match printer.is_json() {
        true => print_json(&serde_json::json!({ "folder": folder })),
        false => print(&format!("the manual pages are in {}\n", folder.display())),
    }
    Ok(())
}
