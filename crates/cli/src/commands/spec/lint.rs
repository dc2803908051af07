//! `sinew spec lint`: check specifications, and fix what can be fixed safely.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sinew_spec::Document;
use sinew_spec::cores::on_all_cores;
use sinew_spec::lint::{self, LINTER, LintConfig};
use sinew_tool::finding::report::{self, FileReport, ReportFormat};
use sinew_tool::finding::{Finding, Findings, Linter, Severity};

use super::args::{LintFormat, SpecLintArgs, Threshold};
use super::rules::FileRules;
use super::source::{self, SpecSource};
use super::{patch, unwritable};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, clean, print, print_exact, say};

pub async fn run(args: SpecLintArgs, printer: Printer) -> Result<(), CliError> {
    let mut rules = FileRules::new(args.reach.state.config.as_deref());
    let read = |path: &PathBuf| SpecSource::read_as(path, args.stdin_name.as_deref());
    let mut sources = on_all_cores(&source::files(&args.paths)?, read).into_iter().collect::<Result<Vec<_>, _>>()?;
    if let Some(device) = &args.device {
        sources.push(SpecSource::device(device, &args.reach).await?);
    }
    let configs = sources.iter().map(|source| rules.of(&source.path)).collect::<Result<Vec<LintConfig>, CliError>>()?;
    if args.fix {
        for (source, config) in sources.iter_mut().zip(&configs) {
            fix(source, config, args.dry_run)?;
        }
        if args.dry_run {
            return Ok(());
        }
    }
    let pairs: Vec<_> = sources.iter().zip(&configs).collect();
    let mut findings: Vec<Findings> = on_all_cores(&pairs, |(source, config)| lint::check(&source.document, config));
    let documents: Vec<_> = sources.iter().map(|source| (source.path.as_str(), &source.document)).collect();
    lint::report_repeated(&documents, &mut findings, &configs.first().cloned().unwrap_or_default());
    if let Some(file) = &args.baseline {
        let mut known = Baseline::read(file)?;
        for (source, findings) in sources.iter().zip(&mut findings) {
            findings.retain(|finding| !known.takes(&source.path, finding));
        }
    }
    let fails = {
        let reports = reports(&sources, &findings);
        report::fails(&reports, args.strict)
    };
    let least = least(&args);
    findings.iter_mut().for_each(|findings| findings.retain(|finding| finding.severity >= least));
    let reports = reports(&sources, &findings);
    let report_format = report_format(args.format, printer);
    if !(args.quiet && reports.iter().all(|report| report.findings.is_empty())) {
        print_report(report_format, &LINTER, &reports);
    }
    if fails { Err(CliError::already_reported(CliErrorKind::ChecksFailed)) } else { Ok(()) }
}

fn reports<'a>(sources: &'a [SpecSource], findings: &'a [Findings]) -> Vec<FileReport<'a>> {
    sources.iter().zip(findings).map(|(source, findings)| source.document.report(&source.path, findings)).collect()
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
/// move with every edit.
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
                let key = (word(&finding["rule"]), word(&finding["tool"]), word(&finding["message"]));
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
        let Some(places) = self.known.get_mut(&(finding.rule.id.to_owned(), tool, finding.message.clone())) else {
            return false;
        };
        let whole = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
        let known = places.iter_mut().find(|(path, left)| *left > 0 && whole.ends_with(path));
        known.map(|(_, left)| *left -= 1).is_some()
    }
}

fn fix(source: &mut SpecSource, config: &LintConfig, dry_run: bool) -> Result<(), CliError> {
    let Some(text) = &source.text else { return Ok(()) };
    let fixed = lint::fix(text, config);
    if dry_run {
        print_exact(&patch::unified(&clean(&source.path), text, &fixed.text));
        return Ok(());
    }
    let Some(file) = &source.file else { return Ok(()) };
    if fixed.edits == 0 {
        return Ok(());
    }
    replace(file, &fixed.text).map_err(|error| unwritable(file, &error))?;
    say(&format!("{}: {} fixed", clean(&source.path), fixed.edits));
    source.document = Document::parse(&fixed.text);
    source.text = Some(fixed.text);
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
