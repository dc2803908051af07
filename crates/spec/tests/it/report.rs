//! Findings as people and machines see them.

use sinew_spec::lint::{self, CheckedDocument, LintConfig};
use sinew_spec::{Document, print};
use sinew_tool::finding::report::{self, ReportFormat};

const BROKEN: &str = include_str!("cases/broken.md");

fn checked(path: &str, text: &str) -> CheckedDocument {
    CheckedDocument::new(path.to_owned(), Document::parse(text), &LintConfig::default())
}

fn rendered(format: ReportFormat) -> String {
    report::render(format, &lint::LINTER, &[checked("docs/a b/MCP_TOOL_SPECIFICATION.md", BROKEN).report()])
}

#[test]
fn people_see_the_line() {
    insta::assert_snapshot!("people", rendered(ReportFormat::People { color: false }));
}

#[test]
fn machines_get_json() {
    let json: serde_json::Value = serde_json::from_str(&rendered(ReportFormat::Json)).unwrap();
    insta::assert_json_snapshot!("json", json);
    let finding = &json["files"][0]["findings"][0];
    for key in ["rule", "severity", "line", "column", "message"] {
        assert!(finding.get(key).is_some(), "{key}");
    }
}

#[test]
fn github_gets_commands() {
    insta::assert_snapshot!("github", rendered(ReportFormat::Github));
}

#[test]
fn junit_gets_xml() {
    insta::assert_snapshot!("junit", rendered(ReportFormat::Junit));
}

#[test]
fn sarif_names_rules_and_places() {
    let sarif: serde_json::Value = serde_json::from_str(&rendered(ReportFormat::Sarif)).unwrap();
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), lint::RULES.len());
    for result in run["results"].as_array().unwrap() {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    insta::assert_json_snapshot!("sarif_results", run["results"]);
}

#[test]
fn errors_fail_a_build_and_warnings_do_when_strict() {
    let text = include_str!("cases/read_file.md").replace("- **Version**: 1.0.2\n", "");
    let checked = checked("x", &text);
    let files = [checked.report()];
    assert!(!report::fails(&files, false));
    assert!(report::fails(&files, true));
}

#[test]
fn the_canonical_page_and_the_free_form_are_kept() {
    let free = Document::parse(include_str!("cases/free_form.md"));
    insta::assert_snapshot!("free_form_printed", print::render_markdown("Free", &free.intro, &free.tools));
    let good = include_str!("cases/read_file.md");
    let document = Document::parse(good);
    let printed = print::render_markdown(&document.title.unwrap(), &document.intro, &document.tools);
    insta::assert_snapshot!("canonical_printed", printed);
}
