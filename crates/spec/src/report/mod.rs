//! Findings, shown: to people with the lines they speak of, to machines in four dialects.

mod machine;
mod people;

use crate::judge::{Finding, Severity};
use crate::read::Document;

pub use people::people;

/// What was found in one file.
#[derive(Clone, Copy, Debug)]
pub struct FileReport<'a> {
    pub path: &'a str,
    pub document: &'a Document,
    pub findings: &'a [Finding],
}

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people; with colour or without.
    People {
        color: bool,
    },
    Json,
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
    Junit,
}

impl Style {
    pub fn from_word(word: &str) -> Option<Style> {
        Some(match word {
            "text" | "people" => Style::People { color: false },
            "json" => Style::Json,
            "sarif" => Style::Sarif,
            "github" => Style::Github,
            "junit" => Style::Junit,
            _ => return None,
        })
    }
}

/// The reports in a dialect.
pub fn render(style: Style, files: &[FileReport<'_>]) -> String {
    match style {
        Style::People { color } => people(files, color),
        Style::Json => pretty(&machine::json(files)),
        Style::Sarif => pretty(&machine::sarif(files)),
        Style::Github => machine::github(files),
        Style::Junit => machine::junit(files),
    }
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Whether the findings should stop a build: errors do, and under `strict` warnings do.
pub fn fails(files: &[FileReport<'_>], strict: bool) -> bool {
    let least = if strict { Severity::Warning } else { Severity::Error };
    files.iter().flat_map(|file| file.findings).any(|finding| finding.severity >= least)
}
