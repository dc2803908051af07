//! `sinew app scaffold`: generates an app from a tool specification.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_apps::offer::ProtocolNames;
use sinew_apps::scaffold::{ScaffoldFile, ScaffoldKind, scaffold};
use sinew_spec::lint::{self, LintConfig};
use sinew_tool::finding::Severity;

use super::args::{ScaffoldArgs, ScaffoldForm};
use crate::commands::spec::source::SpecSource;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print_exact, print_json, say};

pub fn run(args: ScaffoldArgs, printer: Printer) -> Result<(), CliError> {
    let source = SpecSource::read(&args.spec)?.readable()?;
    refuse_errors(&source)?;
    let kind = match args.form {
        ScaffoldForm::Activity => ScaffoldKind::Activity,
        ScaffoldForm::Provider => ScaffoldKind::Provider,
    };
    let instructions = source.document.intro.trim();
    let files = scaffold(kind, &args.package, instructions, &source.document.to_tools(), &ProtocolNames::default())
        .map_err(|what| CliError::new(CliErrorKind::Usage, format!("{}: {what}", source.path)))?;
    match &args.out {
        Some(folder) => write(folder, &files, &args),
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

/// What `sinew spec lint` calls an error, such as a form that is not filled in or a type that does not exist, would become
/// an app whose tools cannot be called.
fn refuse_errors(source: &SpecSource) -> Result<(), CliError> {
    let findings = lint::check(&source.document, &LintConfig::default());
    let Some(finding) = findings.iter().find(|finding| finding.severity == Severity::Error) else { return Ok(()) };
    let line = finding.place.line().map(|line| format!(":{line}")).unwrap_or_default();
    let remedy = if finding.rule.id == "unfilled" { "fill in the form first" } else { "correct it first" };
    let message = format!("{}{line}: {}; {remedy}, `sinew spec lint` shows everything", source.path, finding.message);
    Err(CliError::new(CliErrorKind::Usage, message))
}

/// Existing files are never overwritten: they may have an author's work.
fn write(folder: &Path, files: &[ScaffoldFile], args: &ScaffoldArgs) -> Result<(), CliError> {
    let unwritable = |path: &Path, error: std::io::Error| {
        CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let is_same =
        |file: &ScaffoldFile| std::fs::read_to_string(folder.join(file.name)).is_ok_and(|present| present == file.text);
    let (same, other): (Vec<&ScaffoldFile>, Vec<&ScaffoldFile>) = files.iter().partition(|file| is_same(file));
    let changed: Vec<&str> = other.iter().map(|file| file.name).filter(|name| folder.join(name).exists()).collect();
    if !changed.is_empty() {
        return Err(CliError::new(CliErrorKind::Usage, how_to_update(folder, &changed, args)));
    }
    for file in same {
        say(&format!("{} is up to date", folder.join(file.name).display()));
    }
    for file in other {
        let path = folder.join(file.name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = opened.and_then(|mut target| target.write_all(file.text.as_bytes()));
        written.map_err(|error| unwritable(&path, error))?;
        say(&path.display().to_string());
    }
    Ok(())
}

/// An app that was generated before and has another specification now, or code of its author.
fn how_to_update(folder: &Path, changed: &[&str], args: &ScaffoldArgs) -> String {
    let folder = folder.display();
    let form = match args.form {
        ScaffoldForm::Activity => "activity",
        ScaffoldForm::Provider => "provider",
    };
    format!(
        "{} in {folder} differs from what would be generated and may have your work, so nothing was written. To update it, \
         generate beside it and take over what changed:\n\
         sinew app scaffold {} --form {form} --package {} -o {folder}.new\n\
         diff -ru {folder} {folder}.new",
        changed.join(" and "),
        args.spec.display(),
        args.package,
    )
}
