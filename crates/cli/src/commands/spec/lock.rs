//! `sinew spec lock`: the tools of a repository as they were agreed on.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_spec::compare::Change;
use sinew_spec::lint;
use sinew_spec::lock::{self, Decision, Lock, Verdict};
use sinew_tool::finding::Finding;

use super::args::SpecLockArgs;
use super::diff::changes;
use super::source::{self, FILE_NAME, SpecSource};
use super::unwritable;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

/// Larger than any repository's tools.
const MAX_LOCK: u64 = 64 << 20;

pub fn run(args: SpecLockArgs, printer: Printer) -> Result<(), CliError> {
    let mut locked = read(&args)?;
    let mut files: Vec<(String, Vec<Verdict>)> = Vec::new();
    let folder = folder_of(&args.file);
    for path in source::files(&args.paths)? {
        let source = SpecSource::read(&path)?.readable()?;
        refuse_unfinished(&source)?;
        let (key, tools) = (key(&folder, &path), source.document.to_tools());
        files.push((key.clone(), lock::check_file(&locked, &key, &args.package_version, &tools)));
        locked.record(&key, &args.package_version, &tools, Some(true));
    }
    let folders: Vec<String> = args.paths.iter().filter(|path| path.is_dir()).map(|path| key(&folder, path)).collect();
    for path in vanished(&locked, &files, &folders) {
        files.push((path.clone(), lock::check(&locked, &path, &args.package_version, &[])));
        locked.owners.remove(&path);
    }
    let refused = args.check && files.iter().flat_map(|(_, verdicts)| verdicts).any(is_refused);
    if !args.check {
        fs::write(&args.file, locked.to_text()).map_err(|error| unwritable(&args.file, &error))?;
    }
    if printer.is_json() {
        print_json(&to_json(&files, !refused));
    } else {
        print(&people(&files, &args, printer));
    }
    if refused { Err(CliError::already_reported(CliErrorKind::ChecksFailed)) } else { Ok(()) }
}

/// The folder that the paths in a lock are relative to: its own.
fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The name of a file in the lock, independent of the current folder.
fn key(folder: &Path, path: &Path) -> String {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let relative = whole.strip_prefix(folder).unwrap_or(&whole);
    relative.to_string_lossy().replace('\\', "/")
}

/// Refuses a form that is not filled in, and a tool that was not read: it would be missing in the lock.
fn refuse_unfinished(source: &SpecSource) -> Result<(), CliError> {
    let findings = lint::check(&source.document, &lint::LintConfig::default());
    let remedy = |finding: &Finding| match finding.rule.id {
        "unfilled" => Some("fill them in before locking"),
        "tool-unread" => Some("only what was read can be locked"),
        _ => None,
    };
    let Some((finding, remedy)) = findings.iter().find_map(|finding| Some((finding, remedy(finding)?))) else {
        return Ok(());
    };
    let line = finding.place.line().map(|line| format!(":{line}")).unwrap_or_default();
    Err(CliError::new(CliErrorKind::Usage, format!("{}{line}: {}; {remedy}", source.path, finding.message)))
}

/// Locked specifications below the folders that no longer exist. The lock may have devices too.
fn vanished(locked: &Lock, files: &[(String, Vec<Verdict>)], folders: &[String]) -> Vec<String> {
    let is_below = |key: &str| {
        folders
            .iter()
            .any(|folder| folder.is_empty() || key.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    };
    let is_file = |key: &str| key.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(FILE_NAME));
    let is_here = |key: &str| files.iter().any(|(path, _)| path == key);
    locked.owners.keys().filter(|key| is_file(key) && is_below(key) && !is_here(key)).cloned().collect()
}

fn read(args: &SpecLockArgs) -> Result<Lock, CliError> {
    let shown = args.file.display();
    match fs::metadata(&args.file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !args.check => return Ok(Lock::default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = format!("there is no {shown}; make it with `sinew spec lock` and commit it");
            return Err(CliError::new(CliErrorKind::Usage, message));
        }
        Err(error) => return Err(CliError::new(CliErrorKind::Usage, format!("cannot read {shown}: {error}"))),
        Ok(about) if about.len() > MAX_LOCK => {
            return Err(CliError::new(CliErrorKind::Usage, format!("{shown} is larger than {} MiB", MAX_LOCK >> 20)));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(&args.file);
    let text = text.map_err(|error| CliError::new(CliErrorKind::Usage, format!("cannot read {shown}: {error}")))?;
    Lock::parse(&text).map_err(|what| CliError::new(CliErrorKind::Usage, format!("{shown}: {what}")))
}

/// Whether a locked tool changed in a way that is not allowed, or was removed.
fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict.decision, Decision::Quarantined | Decision::Gone)
}

fn to_json(files: &[(String, Vec<Verdict>)], ok: bool) -> Value {
    let verdict = |verdict: &Verdict| {
        json!({
            "tool": verdict.tool,
            "decision": verdict.decision.word(),
            "why": verdict.why,
            "changes": verdict.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
        })
    };
    let file = |(path, verdicts): &(String, Vec<Verdict>)| json!({"path": path, "verdicts": verdicts.iter().map(verdict).collect::<Vec<_>>()});
    json!({"ok": ok, "files": files.iter().map(file).collect::<Vec<_>>()})
}

fn people(files: &[(String, Vec<Verdict>)], args: &SpecLockArgs, printer: Printer) -> String {
    let mut page = String::new();
    let mut count = 0;
    for (path, verdicts) in files {
        count += verdicts.iter().filter(|verdict| verdict.decision != Decision::Gone).count();
        for verdict in verdicts.iter().filter(|verdict| verdict.decision != Decision::Same) {
            let ink = if is_refused(verdict) { TextStyle::Bad } else { TextStyle::Good };
            let _ = writeln!(
                page,
                "{}: {} {}: {}",
                clean(path),
                clean(&verdict.tool),
                printer.paint(ink, verdict.decision.word()),
                clean(&verdict.why)
            );
            page.push_str(&changes(&verdict.changes, printer));
        }
    }
    let file = args.file.display();
    let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    let _ = match args.check {
        true => writeln!(page, "{tools} checked against {file}"),
        false => writeln!(page, "{tools} written to {file}"),
    };
    page
}
