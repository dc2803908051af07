//! For programs: JSON, SARIF 2.1.0, GitHub's workflow commands and JUnit's XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{FileReport, Source, escape_markup};
use crate::finding::{Finding, Linter, Severity};
use crate::text::clean_all;

pub(super) fn json(files: &[FileReport<'_>]) -> Value {
    let finding = |finding: &Finding| {
        let mut value = json!({"rule": finding.rule.id, "severity": finding.severity.word()});
        let parts = [
            ("line", finding.place.line().map(Value::from)),
            ("column", finding.place.column().map(Value::from)),
            ("message", Some(json!(finding.message))),
            ("component", finding.component.clone().map(Value::from)),
            ("tool", finding.tool.clone().map(Value::from)),
            ("fixable", finding.fix.is_some().then_some(json!(true))),
        ];
        for (key, part) in parts {
            if let Some(part) = part {
                value[key] = part;
            }
        }
        value
    };
    let file = |file: &FileReport<'_>| {
        let mut value = json!({
            "path": file.path,
            "tools": file.tools,
            "findings": file.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        if file.findings.more() > 0 {
            value["more"] = json!(file.findings.more());
        }
        value
    };
    json!({"files": files.iter().map(file).collect::<Vec<_>>()})
}

/// The address of a reference page; `None` where the package names no homepage, since an address that nobody can open
/// helps less than the text of the rule, which is there anyway.
fn address(homepage: &str, page: &str) -> Option<String> {
    let home = homepage.trim_end_matches('/');
    (!home.is_empty()).then(|| format!("{home}/{page}"))
}

pub(super) fn sarif(linter: &Linter, files: &[FileReport<'_>]) -> Value {
    sarif_with_links(env!("CARGO_PKG_HOMEPAGE"), linter, files)
}

fn sarif_with_links(homepage: &str, linter: &Linter, files: &[FileReport<'_>]) -> Value {
    let level = |severity: Severity| match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    };
    let page = address(homepage, linter.page);
    let rules: Vec<Value> = linter
        .rules
        .iter()
        .map(|rule| {
            let mut value = json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": rule.explain_plainly(), "markdown": rule.explain()},
                "defaultConfiguration": {"level": level(rule.severity)},
            });
            if let Some(page) = &page {
                value["helpUri"] = json!(format!("{page}#{}", rule.id));
            }
            value
        })
        .collect();
    let result = |file: &FileReport<'_>, finding: &Finding| {
        let mut location = json!({"artifactLocation": {"uri": uri(file.path)}});
        if let Some(region) = region(file, finding) {
            location["region"] = region;
        }
        json!({
            "ruleId": finding.rule.id,
            "ruleIndex": linter.rules.iter().position(|rule| *rule == finding.rule),
            "level": level(finding.severity),
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": location}],
        })
    };
    let results: Vec<Value> =
        files.iter().flat_map(|file| file.findings.iter().map(move |finding| result(file, finding))).collect();
    let mut driver = json!({"name": linter.name, "version": env!("CARGO_PKG_VERSION"), "rules": rules});
    if let Some(page) = &page {
        driver["informationUri"] = json!(page);
    }
    let mut run = json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results});
    let cut: Vec<Value> = files.iter().filter(|file| file.findings.more() > 0).map(notification).collect();
    if !cut.is_empty() {
        run["invocations"] = json!([{"executionSuccessful": true, "toolExecutionNotifications": cut}]);
    }
    json!({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]})
}

fn notification(file: &FileReport<'_>) -> Value {
    json!({
        "level": "warning",
        "message": {"text": super::cut(file)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(file.path)}}}],
    })
}

fn region(file: &FileReport<'_>, finding: &Finding) -> Option<Value> {
    let line = finding.place.line()?;
    let (Source::Text { text, lines }, Some(span), Some(column)) =
        (file.source, finding.place.span(), finding.place.column())
    else {
        return Some(json!({"startLine": line}));
    };
    let end = lines.position(text, span.end.max(span.start));
    let is_empty = (end.line, end.column) == (line, column);
    let end_column = end.column + usize::from(is_empty);
    Some(json!({"startLine": line, "startColumn": column, "endLine": end.line, "endColumn": end_column}))
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

pub(super) fn github(files: &[FileReport<'_>]) -> String {
    let message = |text: &str| clean_all(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| message(text).replace(':', "%3A").replace(',', "%2C");
    let mut page = String::new();
    for file in files {
        for finding in file.findings {
            let command = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Advice => "notice",
            };
            let line = finding.place.line().map(|line| format!(",line={line}")).unwrap_or_default();
            let column = finding.place.column().map(|column| format!(",col={column}")).unwrap_or_default();
            let _ = writeln!(
                page,
                "::{command} file={}{line}{column},title={}::{}",
                property(file.path),
                property(finding.rule.id),
                message(&finding.message)
            );
        }
        if file.findings.more() > 0 {
            let _ = writeln!(page, "::notice file={}::{}", property(file.path), message(&super::cut(file)));
        }
    }
    page
}

/// Errors are failures; warnings and advice are the output of a test that passed.
pub(super) fn junit(linter: &Linter, files: &[FileReport<'_>]) -> String {
    let mut page = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", linter.name);
    for file in files {
        let failures = file.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        let path = xml(file.path);
        let tests = file.findings.len().max(1);
        let _ = writeln!(page, "  <testsuite name=\"{path}\" tests=\"{tests}\" failures=\"{failures}\">");
        if file.findings.is_empty() {
            let _ = writeln!(page, "    <testcase classname=\"{path}\" name=\"{}\"/>", linter.name);
        }
        for finding in file.findings {
            let line = finding.place.line().map(|line| format!(" at {line}")).unwrap_or_default();
            let column = finding.place.column().map(|column| format!(":{column}")).unwrap_or_default();
            let message = xml(&finding.message);
            let word = finding.severity.word();
            let _ = write!(page, "    <testcase classname=\"{path}\" name=\"{}{line}{column}\">", finding.rule.id);
            let _ = match finding.severity {
                Severity::Error => write!(page, "<failure type=\"{word}\" message=\"{message}\"/>"),
                _ => write!(page, "<system-out>{word}: {message}</system-out>"),
            };
            page.push_str("</testcase>\n");
        }
        if file.findings.more() > 0 {
            let _ = writeln!(page, "    <system-out>{}</system-out>", xml(&super::cut(file)));
        }
        page.push_str("  </testsuite>\n");
    }
    page.push_str("</testsuites>\n");
    page
}

fn xml(text: &str) -> String {
    escape_markup(&clean_all(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::rules! {
        static RULES = [
            TOO_LOUD {
                severity: Warning, fixable: false,
                title: "The bell is quiet",
                why: "People sleep.",
                bad: "volume: 100",
                good: "volume: 10",
            }
        ];
    }

    static BELLS: Linter = Linter { name: "bells", page: "docs/bells.md", rules: RULES };

    #[test]
    fn rules_are_explained_in_the_report_and_linked_where_the_publisher_has_an_address() {
        let driver = |homepage| sarif_with_links(homepage, &BELLS, &[])["runs"][0]["tool"]["driver"].clone();
        let (alone, linked) = (driver(""), driver("https://git.example/sinew/blob/main/"));
        for driver in [&alone, &linked] {
            let help = &driver["rules"][0]["help"];
            assert!(["text", "markdown"].iter().all(|form| {
                let says = |words| help[*form].as_str().is_some_and(|help| help.contains(words));
                says("People sleep.") && says("volume: 10")
            }));
        }
        assert!(alone.get("informationUri").is_none() && alone["rules"][0].get("helpUri").is_none());
        assert_eq!(linked["informationUri"], "https://git.example/sinew/blob/main/docs/bells.md");
        assert_eq!(linked["rules"][0]["helpUri"], "https://git.example/sinew/blob/main/docs/bells.md#too-loud");
    }
}
