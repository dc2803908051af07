//! The report for people: the message, the place, and the line with the relevant part marked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{FileReport, Source, cut};
use crate::finding::{Finding, Severity};
use crate::text::{clean_line, columns, visible};

/// Lines are shown at most this wide, around the marked part: with its number, a line fits 80 columns.
const WIDTH: usize = 70;
/// From this many findings on, a summary by rule is useful.
const SUMMARY_FROM: usize = 5;

pub(super) fn people(files: &[FileReport<'_>], color: bool) -> String {
    let paint = Paint { color };
    let mut page = String::new();
    for file in files {
        for finding in file.findings {
            show(&mut page, file, finding, paint);
        }
        if file.findings.more() > 0 {
            let _ = writeln!(page, "{}: {}\n", clean_line(file.path, usize::MAX), cut(file));
        }
    }
    page.push_str(&by_rule(files, paint));
    page.push_str(&summary(files));
    page.push('\n');
    page
}

fn show(page: &mut String, file: &FileReport<'_>, finding: &Finding, paint: Paint) {
    let head = format!("{}[{}]", finding.severity.word(), finding.rule.id);
    let _ = writeln!(page, "{}: {}", paint.severity(finding.severity, &head), clean_line(&finding.message, usize::MAX));
    let line = finding.place.line();
    let number = line.map(|line| line.to_string()).unwrap_or_default();
    let margin = " ".repeat(number.len());
    let position: String = [line, finding.place.column()].iter().flatten().map(|number| format!(":{number}")).collect();
    let _ = writeln!(page, "{margin}{} {}{position}", paint.dim("-->"), clean_line(file.path, usize::MAX));
    if let Some((shown, indent, marks)) = excerpt(file, finding) {
        let bar = paint.dim("|");
        let _ = writeln!(page, "{margin} {bar}");
        let _ = writeln!(page, "{} {bar} {shown}", paint.dim(&number));
        let under = paint.severity(finding.severity, &"^".repeat(marks.max(1)));
        let _ = writeln!(page, "{margin} {bar} {}{under}", " ".repeat(indent));
    }
    if finding.fix.is_some() {
        let _ = writeln!(page, "{margin} {} fixed by --fix", paint.dim("="));
    }
    page.push('\n');
}

/// The line of a finding, cut to fit, with the column and width of the marks.
fn excerpt(file: &FileReport<'_>, finding: &Finding) -> Option<(String, usize, usize)> {
    let Source::Text { text, lines } = file.source else { return None };
    let span = finding.place.span()?;
    let range = lines.line(text, finding.place.line()?);
    let line = text.get(range.clone())?;
    let before = span.start.saturating_sub(range.start);
    let length = span.end.min(range.end).saturating_sub(span.start);
    (!line.trim().is_empty()).then(|| window(line, before, length))
}

/// The part of a line that fits, the number of columns before the marked part, and the number
/// of its columns.
fn window(line: &str, before: usize, length: usize) -> (String, usize, usize) {
    let head: Vec<char> = line.get(..before).unwrap_or_default().chars().collect();
    let meant = line.get(before..before + length).unwrap_or_default();
    let tail: Vec<char> = line.get(before + length..).unwrap_or_default().chars().take(WIDTH).collect();
    let lead = head.len().saturating_sub(WIDTH / 2);
    let mut shown: String = if lead > 0 { "…".to_owned() } else { String::new() };
    shown.extend(head[lead..].iter().map(|c| visible(*c)));
    let indent = columns(&shown);
    let meant: String = meant.chars().take(WIDTH.saturating_sub(indent)).map(visible).collect();
    let marks = columns(&meant);
    shown.push_str(&meant);
    let room = WIDTH.saturating_sub(columns(&shown));
    shown.extend(tail.iter().take(room).map(|c| visible(*c)));
    if tail.len() > room {
        shown.push('…');
    }
    (shown, indent, marks)
}

/// How often each rule was violated, the most frequent first.
fn by_rule(files: &[FileReport<'_>], paint: Paint) -> String {
    let mut counts: BTreeMap<&str, (usize, Severity)> = BTreeMap::new();
    for finding in files.iter().flat_map(|file| file.findings) {
        let entry = counts.entry(finding.rule.id).or_insert((0, finding.severity));
        *entry = (entry.0 + 1, entry.1.max(finding.severity));
    }
    let total: usize = counts.values().map(|(count, _)| count).sum();
    if total < SUMMARY_FROM || counts.len() < 2 {
        return String::new();
    }
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by_key(|(id, (count, _))| (std::cmp::Reverse(*count), *id));
    let mut page = String::new();
    for (id, (count, severity)) in rows {
        let _ = writeln!(page, "{count:>6}  {}", paint.severity(severity, &format!("{}[{id}]", severity.word())));
    }
    page.push('\n');
    page
}

fn summary(files: &[FileReport<'_>]) -> String {
    let count = |severity: Severity| files.iter().map(|file| file.findings.count(severity)).sum::<usize>();
    let plural = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let tools: usize = files.iter().map(|file| file.tools.len()).sum();
    let more: usize = files.iter().map(|file| file.findings.more()).sum();
    let unlisted = if more > 0 { format!(" ({more} not listed)") } else { String::new() };
    format!(
        "{}, {}, {} advice{unlisted} in {} ({})",
        plural(count(Severity::Error), "error"),
        plural(count(Severity::Warning), "warning"),
        count(Severity::Advice),
        plural(files.len(), "file"),
        plural(tools, "tool")
    )
}

#[derive(Clone, Copy)]
struct Paint {
    color: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Advice => "1;36",
        };
        self.with(code, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_push_the_mark_to_the_right() {
        let line = "日本 x";
        assert_eq!(window(line, line.find('x').unwrap(), 1), ("日本 x".to_owned(), 5, 1));
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let line = format!("{}HERE{}", "a".repeat(5000), "b".repeat(5000));
        let (shown, indent, marks) = window(&line, 5000, 4);
        assert!(shown.chars().count() <= WIDTH + 2, "{}", shown.chars().count());
        assert_eq!(shown.chars().skip(indent).take(marks).collect::<String>(), "HERE");
    }

    #[test]
    fn a_document_cannot_control_the_terminal() {
        assert_eq!(clean_line("a\u{1b}[31mb\u{202e}c\0", 9), "abc\u{fffd}");
    }
}
