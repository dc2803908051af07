//! Findings as text for people, and as JSON, SARIF, GitHub commands and JUnit XML for programs.

mod machine;
mod people;

use super::{Findings, Lines, Linter, Severity};

/// What was found in one file.
#[derive(Clone, Debug)]
pub struct FileReport<'a> {
    pub path: &'a str,
    pub source: Source<'a>,
    /// Names of the tools in it.
    pub tools: Vec<&'a str>,
    pub findings: &'a Findings,
}

/// The text that findings point into.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Text {
        text: &'a str,
        lines: &'a Lines,
    },
    /// Not text, such as an APK.
    Binary,
}

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for people; with colour or without.
    People {
        color: bool,
    },
    Json,
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
    Junit,
}

/// All reports in one format.
pub fn render(format: ReportFormat, linter: &Linter, files: &[FileReport<'_>]) -> String {
    match format {
        ReportFormat::People { color } => people::people(files, color),
        ReportFormat::Json => pretty(&machine::json(files)),
        ReportFormat::Sarif => pretty(&machine::sarif(linter, files)),
        ReportFormat::Github => machine::github(files),
        ReportFormat::Junit => machine::junit(linter, files),
    }
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

/// The note that some findings of a file are not listed.
fn cut(file: &FileReport<'_>) -> String {
    let (more, listed) = (file.findings.more(), file.findings.len());
    format!("{more} more findings are not listed; only the {listed} most severe are")
}

/// Whether the findings should fail a build: errors do, and warnings with `strict`.
pub fn fails(files: &[FileReport<'_>], strict: bool) -> bool {
    let failing = if strict { &[Severity::Error, Severity::Warning] as &[_] } else { &[Severity::Error] };
    files.iter().any(|file| failing.iter().any(|severity| file.findings.count(*severity) > 0))
}

/// Text as character data or an attribute value of HTML and XML.
pub fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
