//! `sinew app scaffold`: generates an app from a tool specification.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_apps::offer::ProtocolNames;
use sinew_apps::scaffold::{ScaffoldFile, ScaffoldKind, scaffold};
use sinew_spec::lint::{self, LintConfig};

use super::args::{ScaffoldArgs, ScaffoldForm};
use crate::commands::spec::source::SpecSource;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print_exact, print_json, say};

pub fn run(args: ScaffoldArgs, printer: Printer) -> Result<(), CliError> {
    let source = SpecSource::read(&args.spec)?.readable()?;
    refuse_placeholders(&source)?;
    let kind = match args.form {
        ScaffoldForm::Activity => ScaffoldKind::Activity,
        ScaffoldForm::Provider => ScaffoldKind::Provider,
    };
    let instructions = source.document.intro.trim();
    let files = scaffold(kind, &args.package, instructions, &source.document.to_tools(), &ProtocolNames::default())
        .map_err(|what| CliError::new(CliErrorKind::Usage, format!("{}: {what}", source.path)))?;
    match &args.out {
        Some(folder) => write(folder, &files),
        None if printer.is_json() => {
            let files: Map<String, Value> = files.iter().map(|file| (file.name.to_owned(), json!(file.text))).collect();
            print_json(&json!({ "files": files }));
            Ok(())
        }
        None => {
            for file in &files {
                print_exact(&format!("==> {} <==\n{}\n", file.name, file.text));
            }
            Ok(())
        }
    }
}

/// A form that is not filled in would become an app whose tools say nothing.
fn refuse_placeholders(source: &SpecSource) -> Result<(), CliError> {
    let findings = lint::check(&source.document, &LintConfig::default());
    let Some(finding) = findings.iter().find(|finding| finding.rule.id == "unfilled") else { return Ok(()) };
    let message = format!(
        "{}: {}; fill in the form first, `sinew spec lint` shows what is missing",
        source.path, finding.message
    );
    Err(CliError::new(CliErrorKind::Usage, message))
}

/// Existing files are never overwritten: they may have an author's work.
fn write(folder: &Path, files: &[ScaffoldFile]) -> Result<(), CliError> {
    let unwritable = |path: &Path, error: std::io::Error| {
        CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    for file in files {
        let path = folder.join(file.name);
        if path.exists() {
            return Err(CliError::new(
                CliErrorKind::Io,
                format!("{} exists already; name another folder", path.display()),
            ));
        }
    }
    for file in files {
        let path = folder.join(file.name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = opened.and_then(|mut target| target.write_all(file.text.as_bytes()));
        written.map_err(|error| unwritable(&path, error))?;
        say(&path.display().to_string());
    }
    Ok(())
}
