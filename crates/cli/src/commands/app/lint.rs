//! `sinew app lint`: what keeps an app's tools from being found, called or understood.

use std::path::Path;

use sinew_apps::lint::lint;
use sinew_apps::offer::ProtocolNames;
use sinew_apps::rules::LINTER;
use sinew_tool::finding::report::{self, FileReport, Source};
use sinew_tool::finding::{Findings, Lines};

use super::args::Lint;
use super::{Seen, file, read};
use crate::commands::spec::lint::style;
use crate::failure::{Failure, Kind};
use crate::show::{Show, print};

/// One file that was checked.
struct Checked {
    path: String,
    seen: Seen,
    /// Where the lines of a source manifest begin; an APK has none.
    lines: Option<Lines>,
    findings: Findings,
}

pub async fn run(args: Lint, show: Show) -> Result<(), Failure> {
    let (mut checked, mut unread) = (Vec::new(), None);
    for path in &args.files {
        match check(path).await {
            Ok(file) => checked.push(file),
            // A file that cannot be read does not hide what was found in the others.
            Err(failure) => unread = unread.or(Some(failure)),
        }
    }
    let reports: Vec<FileReport<'_>> = checked.iter().map(Checked::report).collect();
    if !reports.is_empty() || unread.is_none() {
        print(&report::render(style(args.format, show), &LINTER, &reports));
    }
    match unread {
        Some(failure) => Err(failure),
        None if report::fails(&reports, args.strict) => Err(Failure::told(Kind::Unwell)),
        None => Ok(()),
    }
}

async fn check(path: &Path) -> Result<Checked, Failure> {
    let names = ProtocolNames::default();
    let file = file(path)?;
    let seen = read(&file, &names, true).await?;
    let findings = lint(&seen.manifest, &seen.offer, &names, seen.code.as_deref());
    let lines = seen.text.as_deref().map(Lines::new);
    Ok(Checked { path: file.display().to_string(), seen, lines, findings })
}

impl Checked {
    fn report(&self) -> FileReport<'_> {
        let source = match (&self.seen.text, &self.lines) {
            (Some(text), Some(lines)) => Source::Text { text, lines },
            _ => Source::Binary,
        };
        let tools = self.seen.offer.tools.iter().map(|tool| tool.tool.name.as_str()).collect();
        FileReport { path: &self.path, source, tools, findings: &self.findings }
    }
}
