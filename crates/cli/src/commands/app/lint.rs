//! `sinew app lint`: what keeps an app's tools from being found, called or understood.

use std::path::Path;

use sinew_apps::lint::lint;
use sinew_apps::offer::ProtocolNames;
use sinew_apps::rules::LINTER;
use sinew_tool::finding::report::{self, FileReport, Source};
use sinew_tool::finding::{Findings, Lines};

use super::args::LintArgs;
use super::{ParsedApp, file, read};
use crate::commands::spec::lint::{print_report, report_format};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::Printer;

/// One file that was checked.
struct LintedApp {
    path: String,
    seen: ParsedApp,
    /// Where the lines of a source manifest begin; an APK has none.
    lines: Option<Lines>,
    findings: Findings,
}

pub async fn run(args: LintArgs, printer: Printer) -> Result<(), CliError> {
    let (mut checked, mut unread) = (Vec::new(), None);
    for path in &args.files {
        match check(path).await {
            Ok(file) => checked.push(file),
            // A file that cannot be read does not hide what was found in the others.
            Err(failure) => unread = unread.or(Some(failure)),
        }
    }
    let reports: Vec<FileReport<'_>> = checked.iter().map(LintedApp::report).collect();
    if !reports.is_empty() || unread.is_none() {
        print_report(report_format(args.format, printer), &LINTER, &reports);
    }
    match unread {
        Some(failure) => Err(failure),
        None if report::fails(&reports, args.strict) => Err(CliError::already_reported(CliErrorKind::ChecksFailed)),
        None => Ok(()),
    }
}

async fn check(path: &Path) -> Result<LintedApp, CliError> {
    let names = ProtocolNames::default();
    let file = file(path)?;
    let seen = read(&file, &names, true).await?;
    let findings = lint(&seen.manifest, &seen.offer, &names, seen.code.as_deref());
    let lines = seen.text.as_deref().map(Lines::new);
    Ok(LintedApp { path: file.display().to_string(), seen, lines, findings })
}

impl LintedApp {
    fn report(&self) -> FileReport<'_> {
        let source = match (&self.seen.text, &self.lines) {
            (Some(text), Some(lines)) => Source::Text { text, lines },
            _ => Source::Binary,
        };
        let tools = self.seen.offer.tools.iter().map(|tool| tool.tool.name.as_str()).collect();
        FileReport { path: &self.path, source, tools, findings: &self.findings }
    }
}
