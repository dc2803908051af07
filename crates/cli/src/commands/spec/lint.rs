//! `sinew spec lint`: what is wrong, where, and mended where that is safe.

use std::fs;
use std::path::Path;

use sinew_spec::judge::{self, Config, LINTER};
use sinew_tool::finding::Findings;
use sinew_tool::finding::report::{self, FileReport, Style};

use super::args::{Lint, LintFormat};
use super::source::{self, Source};
use super::{rules, unwritable};
use crate::failure::{Failure, Kind};
use crate::show::{Show, clean, print};

pub async fn run(args: Lint, show: Show) -> Result<(), Failure> {
    let config = rules::configured(&args.rules)?;
    let mut sources = Vec::new();
    for path in source::files(&args.paths)? {
        sources.push(Source::read(&path)?);
    }
    if let Some(device) = &args.device {
        sources.push(Source::device(device, &args.reach).await?);
    }
    if args.fix {
        for source in &mut sources {
            mend(source, &config)?;
        }
    }
    let mut findings: Vec<Findings> = sources.iter().map(|source| judge::lint(&source.document, &config)).collect();
    let documents: Vec<_> = sources.iter().map(|source| (source.path.as_str(), &source.document)).collect();
    judge::tell_repeated(&documents, &mut findings, &config);

    let reports: Vec<FileReport<'_>> = sources
        .iter()
        .zip(&findings)
        .map(|(source, findings)| source.document.report(&source.path, findings))
        .collect();
    print(&report::render(style(args.format, show), &LINTER, &reports));
    if report::fails(&reports, args.strict) { Err(Failure::told(Kind::Unwell)) } else { Ok(()) }
}

pub(in crate::commands) fn style(format: Option<LintFormat>, show: Show) -> Style {
    match format {
        Some(LintFormat::Sarif) => Style::Sarif,
        Some(LintFormat::Github) => Style::Github,
        Some(LintFormat::Junit) => Style::Junit,
        Some(LintFormat::Json) => Style::Json,
        None if show.json() => Style::Json,
        Some(LintFormat::Text) | None => Style::People { color: show.color },
    }
}

fn mend(source: &mut Source, config: &Config) -> Result<(), Failure> {
    let (Some(file), Some(text)) = (&source.file, &source.text) else { return Ok(()) };
    let fixed = judge::fix(text, config);
    if fixed.edits == 0 {
        return Ok(());
    }
    replace(file, &fixed.text).map_err(|error| unwritable(file, &error))?;
    eprintln!("{}: {} mended", clean(&source.path), fixed.edits);
    source.document = sinew_spec::Document::parse(&fixed.text);
    source.text = Some(fixed.text);
    Ok(())
}

/// Puts the new text in the old one's place at once, so that nobody ever finds half of it.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
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
