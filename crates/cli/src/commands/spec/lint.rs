//! `sinew spec lint`: check specifications, and fix what can be fixed safely.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sinew_spec::cores::on_all_cores;
use sinew_spec::lint::{self, CheckedDocument, LINTER, LintConfig};
use sinew_tool::finding::report::{self, FileReport, ReportFormat};
use sinew_tool::finding::{Finding, Linter, Severity};

use super::args::{LintFormat, SpecLintArgs, Threshold};
use super::rules::FileRules;
use super::source::{self, SpecSource};
use super::{patch, unwritable};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, clean, print, print_exact, say};

pub async fn run(args: SpecLintArgs, printer: Printer) -> Result<(), CliError> {
    let mut rules = FileRules::new(args.reach.state.config.as_deref());
    let read = |path: &Path| SpecSource::read_as(path, args.stdin_name.as_deref());
    let mut files = Vec::new();
    for path in source::files(&args.paths)? {
        let name = SpecSource::name_of(&path, args.stdin_name.as_deref());
        let config = rules.of(&name)?;
        files.push((path, config));
    }
    if args.fix {
        // There is no file behind standard input, and it can be read only once.
        for (path, config) in files.iter().filter(|(path, _)| args.dry_run || !source::is_standard_input(path)) {
            fix(read(path)?, config, args.dry_run)?;
        }
        if args.dry_run {
            return Ok(());
        }
    }
    // Documents are large beside their findings, so each is checked as soon as it is read.
    let checked = on_all_cores(&files, |(path, config)| read(path).map(|source| source.check(config)));
    let mut checked = checked.into_iter().collect::<Result<Vec<_>, _>>()?;
    if let Some(device) = &args.device {
        let source = SpecSource::device(device, &args.reach).await?;
        let config = rules.of(&source.path)?;
        checked.push(source.check(&config));
    }
    lint::report_repeated(&mut checked);
    if let Some(file) = &args.baseline {
        let mut known = Baseline::read(file)?;
        for CheckedDocument { path, findings, .. } in &mut checked {
            findings.retain(|finding| !known.takes(path, finding));
        }
    }
    let fails = report::fails(&reports(&checked), args.strict);
    let least = least(&args);
    checked.iter_mut().for_each(|document| document.findings.drop_below(least));
    let reports = reports(&checked);
    let report_format = report_format(args.format, printer);
    if !(args.quiet && reports.iter().all(|report| report.findings.is_empty())) {
        print_report(report_format, &LINTER, &reports);
    }
    if fails { Err(CliError::already_reported(CliErrorKind::ChecksFailed)) } else { Ok(()) }
}

fn reports(checked: &[CheckedDocument]) -> Vec<FileReport<'_>> {
    checked.iter().map(CheckedDocument::report).collect()
}

/// The least severity that is shown. With `--quiet` the one that fails the command.
fn least(args: &SpecLintArgs) -> Severity {
    let asked = match args.min_severity {
        Some(Threshold::Error) => Severity::Error,
        Some(Threshold::Warning) => Severity::Warning,
        Some(Threshold::Advice) | None => Severity::Advice,
    };
    let failing = if args.strict { Severity::Warning } else { Severity::Error };
    if args.quiet { asked.max(failing) } else { asked }
}

pub fn report_format(format: Option<LintFormat>, printer: Printer) -> ReportFormat {
    match format {
        Some(LintFormat::Sarif) => ReportFormat::Sarif,
        Some(LintFormat::Github) => ReportFormat::Github,
        Some(LintFormat::Junit) => ReportFormat::Junit,
        Some(LintFormat::Json) => ReportFormat::Json,
        None if printer.is_json() => ReportFormat::Json,
        Some(LintFormat::Text) | None => ReportFormat::People { color: printer.color },
    }
}

pub fn print_report(format: ReportFormat, linter: &Linter, reports: &[FileReport<'_>]) {
    let text = report::render(format, linter, reports);
    if matches!(format, ReportFormat::People { .. }) { print(&text) } else { print_exact(&text) }
}

/// Known findings: what `lint --format json` printed, by rule, tool and message. Places do not matter, because they
/// move with every edit, and neither do the lines that a message names.
struct Baseline {
    /// The files of each finding, and how often it is in them. Paths are as they were typed, in whatever folder.
    known: HashMap<(String, String, String), Vec<(PathBuf, usize)>>,
}

impl Baseline {
    fn read(file: &Path) -> Result<Baseline, CliError> {
        let wrong = |what: String| {
            let message = format!(
                "{}: {what}; write a baseline with `sinew spec lint --format json PATH > FILE`",
                file.display()
            );
            CliError::new(CliErrorKind::Usage, message)
        };
        let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let report: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let files = report["files"].as_array().ok_or_else(|| wrong("there is no `files` in it".to_owned()))?;
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut known: HashMap<_, Vec<(PathBuf, usize)>> = HashMap::new();
        for file in files {
            let typed = word(&file["path"]);
            let path: PathBuf = Path::new(&typed).components().filter(|part| *part != Component::CurDir).collect();
            for finding in file["findings"].as_array().into_iter().flatten() {
                let key = (word(&finding["rule"]), word(&finding["tool"]), without_lines(&word(&finding["message"])));
                let places = known.entry(key).or_default();
                match places.iter_mut().find(|(other, _)| *other == path) {
                    Some((_, count)) => *count += 1,
                    None => places.push((path.clone(), 1)),
                }
            }
        }
        Ok(Baseline { known })
    }

    /// Whether a finding is known; each entry covers one finding.
    fn takes(&mut self, path: &str, finding: &Finding) -> bool {
        let tool = finding.tool.clone().unwrap_or_default();
        let Some(places) = self.known.get_mut(&(finding.rule.id.to_owned(), tool, without_lines(&finding.message)))
        else {
            return false;
        };
        let whole = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
        let known = places.iter_mut().find(|(path, left)| *left > 0 && whole.ends_with(path));
        known.map(|(_, left)| *left -= 1).is_some()
    }
}

/// A message without the numbers after `line` or `lines`.
fn without_lines(message: &str) -> String {
    let Some(at) = message.rfind(" line") else { return message.to_owned() };
    let rest = message[at + " line".len()..].strip_prefix('s').unwrap_or(&message[at + " line".len()..]);
    match rest.strip_prefix(' ').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        Some(numbers) => {
            let is_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ' | '…');
            format!("{} line {}", &message[..at], numbers.trim_start_matches(is_number))
        }
        None => message.to_owned(),
    }
}

fn fix(source: SpecSource, config: &LintConfig, dry_run: bool) -> Result<(), CliError> {
    let Some(text) = source.text else { return Ok(()) };
    let fixed = lint::fix(&text, config);
    if dry_run {
        print_exact(&patch::unified(&clean(&source.path), &text, &fixed.text));
    } else if let Some(file) = source.file.filter(|_| fixed.edits > 0) {
        replace(&file, &fixed.text).map_err(|error| unwritable(&file, &error))?;
        say(&format!("{}: {} fixed", clean(&source.path), fixed.edits));
    }
    Ok(())
}

/// Replaces the file atomically.
pub fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let file = fs::canonicalize(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = file.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let replaced = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, fs::metadata(&file)?.permissions()))
        .and_then(|()| fs::rename(&beside, &file));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::without_lines;

    #[test]
    fn the_lines_in_a_message_do_not_tell_findings_apart() {
        for (one, two) in [
            ("not filled in: line 3", "not filled in: lines 4, 15, …"),
            ("the name of the tool in line 3; rename it", "the name of the tool in line 12; rename it"),
        ] {
            assert_eq!(without_lines(one), without_lines(two));
        }
        for message in ["the string is on one line 日", "no lines", "5 lines 日"] {
            assert_eq!(without_lines(message), message);
        }
    }
}
