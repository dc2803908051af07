//! `sinew app scaffold`: from a tool specification to the beginning of an app.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_apps::offer::ProtocolNames;
use sinew_apps::scaffold::{ScaffoldFile, ScaffoldKind, scaffold};

use super::args::{ScaffoldArgs, ScaffoldForm};
use crate::commands::spec::source::SpecSource;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json};

pub fn run(args: ScaffoldArgs, printer: Printer) -> Result<(), CliError> {
    let source = SpecSource::read(&args.spec)?.readable()?;
    let shape = match args.form {
        ScaffoldForm::Intent => ScaffoldKind::Intent,
        ScaffoldForm::Provider => ScaffoldKind::Provider,
    };
    let instructions = source.document.intro.trim();
    let drafts = scaffold(shape, &args.package, instructions, &source.document.to_tools(), &ProtocolNames::default())
        .map_err(|what| CliError::new(CliErrorKind::Usage, format!("{}: {what}", source.path)))?;
    match &args.out {
        Some(folder) => write(folder, &drafts),
        None if printer.is_json() => {
            let files: Map<String, Value> =
                drafts.iter().map(|draft| (draft.name.to_owned(), json!(draft.text))).collect();
            print_json(&json!({ "files": files }));
            Ok(())
        }
        None => {
            for draft in &drafts {
                print(&format!("==> {} <==\n{}\n", draft.name, draft.text));
            }
            Ok(())
        }
    }
}

/// Files that are there stay: they may hold an author's work.
fn write(folder: &Path, drafts: &[ScaffoldFile]) -> Result<(), CliError> {
    let unwritable = |path: &Path, error: std::io::Error| {
        CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    for draft in drafts {
        let path = folder.join(draft.name);
        if path.exists() {
            return Err(CliError::new(
                CliErrorKind::Io,
                format!("{} is there already; name another folder", path.display()),
            ));
        }
    }
    for draft in drafts {
        let path = folder.join(draft.name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(draft.text.as_bytes()));
        written.map_err(|error| unwritable(&path, error))?;
        eprintln!("{}", path.display());
    }
    Ok(())
}
