//! For machines: JSON, SARIF 2.1.0, GitHub's workflow commands and JUnit's XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::FileReport;
use crate::judge::{Finding, RULES, Severity};
use crate::print::escape_html;

pub fn json(files: &[FileReport<'_>]) -> Value {
    let finding = |finding: &Finding| {
        let mut value = json!({
            "rule": finding.rule,
            "severity": finding.severity.word(),
            "line": finding.line,
            "column": finding.column,
            "message": finding.message,
        });
        if let Some(tool) = &finding.tool {
            value["tool"] = json!(tool);
        }
        if finding.fix.is_some() {
            value["fixable"] = json!(true);
        }
        value
    };
    let file = |file: &FileReport<'_>| {
        json!({
            "path": file.path,
            "tools": file.document.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            "findings": file.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    };
    json!({"files": files.iter().map(file).collect::<Vec<_>>()})
}

pub fn sarif(files: &[FileReport<'_>]) -> Value {
    let level = |severity: Severity| match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    };
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": rule.explain(), "markdown": rule.explain()},
                "defaultConfiguration": {"level": level(rule.severity)},
            })
        })
        .collect();
    let result = |file: &FileReport<'_>, finding: &Finding| {
        let end = end_of(file, finding);
        json!({
            "ruleId": finding.rule,
            "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
            "level": level(finding.severity),
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(file.path)},
                "region": {"startLine": finding.line, "startColumn": finding.column, "endLine": end.0, "endColumn": end.1},
            }}],
        })
    };
    let results: Vec<Value> =
        files.iter().flat_map(|file| file.findings.iter().map(move |finding| result(file, finding))).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "sinew spec", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// Line and column just behind a finding.
fn end_of(file: &FileReport<'_>, finding: &Finding) -> (usize, usize) {
    let end = finding.span.end.max(finding.span.start);
    let position = file.document.lines.position(&file.document.text, end);
    let empty = (position.line, position.column) == (finding.line, finding.column);
    (position.line, position.column + usize::from(empty))
}

fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => uri.push(byte as char),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

pub fn github(files: &[FileReport<'_>]) -> String {
    let message = |text: &str| printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| message(text).replace(':', "%3A").replace(',', "%2C");
    let mut page = String::new();
    for file in files {
        for finding in file.findings {
            let command = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Advice => "notice",
            };
            let _ = writeln!(
                page,
                "::{command} file={},line={},col={},title={}::{}",
                property(file.path),
                finding.line,
                finding.column,
                property(finding.rule),
                message(&finding.message)
            );
        }
    }
    page
}

pub fn junit(files: &[FileReport<'_>]) -> String {
    let mut page = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sinew spec\">\n");
    for file in files {
        let counted = |finding: &&Finding| finding.severity > Severity::Advice;
        let failures = file.findings.iter().filter(counted).count();
        let path = xml(file.path);
        let _ = writeln!(
            page,
            "  <testsuite name=\"{path}\" tests=\"{}\" failures=\"{failures}\">",
            file.findings.len().max(1)
        );
        if file.findings.is_empty() {
            let _ = writeln!(page, "    <testcase classname=\"{path}\" name=\"specification\"/>");
        }
        for finding in file.findings {
            let name = format!("{} at {}:{}", finding.rule, finding.line, finding.column);
            let message = xml(&finding.message);
            let _ = write!(page, "    <testcase classname=\"{path}\" name=\"{name}\">");
            let _ = match finding.severity {
                Severity::Advice => write!(page, "<system-out>{message}</system-out>"),
                severity => write!(page, "<failure type=\"{}\" message=\"{message}\"/>", severity.word()),
            };
            page.push_str("</testcase>\n");
        }
        page.push_str("  </testsuite>\n");
    }
    page.push_str("</testsuites>\n");
    page
}

/// XML has no way to write most control characters, and a log takes them for commands.
fn printable(text: &str) -> String {
    let is_fit = |c: char| matches!(c, '\n' | '\t') || !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if is_fit(c) { c } else { '\u{fffd}' }).collect()
}

fn xml(text: &str) -> String {
    escape_html(&printable(text))
}
