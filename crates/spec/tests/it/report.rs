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
fn findings_that_are_cut_are_counted_in_text_and_json() {
    let tools: Vec<serde_json::Value> =
        (0..1207).map(|index| serde_json::json!({"name": format!("a b{index}")})).collect();
    let mut config = LintConfig::default();
    for rule in lint::RULES.iter().filter(|rule| rule.id != "name-illegal") {
        config.set(rule.id, "off").unwrap();
    }
    let text = serde_json::json!({ "tools": tools }).to_string();
    let checked = CheckedDocument::new("x.json".to_owned(), Document::parse(&text), &config);
    assert_eq!((checked.findings.len(), checked.findings.more()), (1000, 207));
    let rendered = |format| report::render(format, &lint::LINTER, &[checked.report()]);
    let people = rendered(ReportFormat::People { color: false });
    assert!(people.contains("207 more findings are not listed"), "{people}");
    assert!(people.contains("1207 errors, 0 warnings, 0 advice (207 not listed)"), "{people}");
    let json: serde_json::Value = serde_json::from_str(&rendered(ReportFormat::Json)).unwrap();
    assert_eq!(json["files"][0]["more"], 207);
    assert_eq!(json["files"][0]["findings"].as_array().map(Vec::len), Some(1000));
}

#[test]
fn one_cause_is_one_finding_and_what_is_left_out_is_counted() {
    let good = include_str!("cases/read_file.md");
    let found = |text: &str| -> Vec<(&'static str, String)> {
        let findings = lint::check(&Document::parse(text), &LintConfig::default());
        findings.iter().map(|finding| (finding.rule.id, finding.message.clone())).collect()
    };
    assert_eq!(found(good), []);
    let counted = |text: &str, rule: &str, count: usize, last: &str| {
        let found = found(text);
        assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), vec![rule; count], "{found:#?}");
        assert!(found[count - 1].1.contains(last), "{found:#?}");
    };
    let security = &good[good.find("### 8.").unwrap()..];
    counted(&good.replace(security, ""), "section-missing", 1, "Security");
    let split = format!("the work{}space", "\u{200b}".repeat(45));
    counted(&good.replacen("the workspace", &split, 1), "hidden-text", 21, "25 such places");
    counted(&format!("{good}\n{}", "<b hidden>x</b>\n".repeat(22)), "hidden-text", 21, "2 such places");
    let required: Vec<String> = (0..9).map(|index| format!("\"more_{index}\"")).collect();
    let required = format!("\"required\": [\"target_file\", {}]", required.join(", "));
    let undescribed = found(&good.replacen("\"required\": [\"target_file\"]", &required, 1));
    let undescribed: Vec<_> = undescribed.iter().filter(|(id, _)| *id == "parameter-description").collect();
    assert_eq!(undescribed.len(), 5);
    assert!(undescribed[4].1.ends_with("nor are 4 more"), "{undescribed:#?}");
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
