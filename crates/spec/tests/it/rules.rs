//! Every rule speaks where it should, and only there.

use std::collections::BTreeSet;
use std::path::Path;

use sinew_spec::lint::{self, LintConfig, RULES};
use sinew_spec::{Document, print, read};
use sinew_tool::finding::Severity;

const GOOD: &str = include_str!("cases/read_file.md");

fn found(text: &str) -> BTreeSet<&'static str> {
    lint::check(&Document::parse(text), &LintConfig::default()).iter().map(|finding| finding.rule.id).collect()
}

/// What breaks the good document: the rule, what is replaced, and by what.
const BREAKS: &[(&str, &str, &str)] = &[
    ("unfilled", "Returns the text of one file", "[Brief description of what the tool does] {{What it holds.}}"),
    ("no-tools", "## Tool: `files.read_text`", "# Reading"),
    ("tool-unread", "Tools that", "## `list_files`\n\nLists them.\n\nTools that"),
    ("field-example", "`\"import os\"`", "—"),
    (
        "array-items",
        "    \"max_lines\": {",
        "    \"tags\": {\"type\": \"array\", \"description\": \"x\"},\n    \"max_lines\": {",
    ),
    (
        "object-members",
        "    \"max_lines\": {",
        "    \"tags\": {\"type\": \"object\", \"description\": \"x\"},\n    \"max_lines\": {",
    ),
    (
        "nested-description",
        "    \"max_lines\": {",
        "    \"tags\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}},\n    \"max_lines\": {",
    ),
    ("example-type", "| `100` |", "| `\"ten\"` |"),
    (
        "status-values",
        "`enum[\"success\", \"failure\"]` | Whether the file was read.",
        "`string` | \"success\" or \"failure\".",
    ),
    ("error-repeated", "`ValidationError`: ", "`FileNotFound`: "),
    ("title-missing", "# ", "Title "),
    (
        "table-schema",
        "The file to read, relative to the workspace. | `\"src",
        "Colour that the lamps should show. | `\"src",
    ),
    ("hidden-text", "Tools that", "Tools&#8203;that"),
    ("hidden-text", "\"The file to read", "\"The \\u2060file to read"),
    ("idempotency-unstated", "Yes\n- **Explanation**: reading changes nothing.", "Depends, see the code."),
    ("idempotency-unstated", "Yes\n- **Explanation**: reading changes nothing.", "Yes and no."),
    ("not-text", "Tools that", "Tools\0that"),
    ("unclosed", "Tools that", "~~~text\nTools that"),
    ("line-endings", "Tools that", "Tools\r\nthat"),
    ("hidden-text", "Tools that", "Tools\u{202e}that"),
    ("section-missing", "### 8. Security Considerations", "### Remarks"),
    ("section-order", "### 2. Invocation Name", "### 8. Security Considerations"),
    ("section-heading", "### 7. Usage Examples (for MCP context)", "### 7. Usage Examples (JSON)"),
    ("section-empty", "- **Idempotent**: Yes\n- **Explanation**: reading changes nothing.", "<!-- later -->"),
    ("name-illegal", "`files.read_text`\n\n### 3", "`files read`\n\n### 3"),
    ("name-unstable", "`files.read_text`\n\n### 3", "`files.read_text_v2`\n\n### 3"),
    (
        "name-too-long",
        "`files.read_text`\n\n### 3",
        "`files.read_the_text_of_one_of_the_files_of_the_workspace`\n\n### 3",
    ),
    ("schema-not-json", "\"type\": \"integer\",\n", "\"type\": \"integer\", // whole\n"),
    ("input-schema-invalid", "\"minimum\": 1,", "\"minimum\": \"one\","),
    ("table-schema", "| `max_lines` | `integer` | No |", "| `max_lines` | `string` | No |"),
    ("table-shape", "| Parameter Name | Type | Required |", "| Parameter | Type | Mandatory | Phase |"),
    ("type-unknown", "| `text` | `string` |", "| `text` | `TextBlob` |"),
    ("type-alias", "| `text` | `string` |", "| `text` | `str` |"),
    ("required-unclear", "| `max_lines` | `integer` | No |", "| `max_lines` | `integer` | Conditional |"),
    ("parameter-repeated", "| `max_lines` | `integer` | No |", "| `target_file` | `string` | Yes |"),
    ("parameter-example", "| `100` |", "| — |"),
    ("field-description", "The lines, as they are in the file.", "—"),
    ("output-undescribed", "| Field Name | Type | Description | Example Value |\n| :--- | :--- | :--- | :--- |\n", ""),
    ("output-status", "| `status` |", "| `state` |"),
    ("error-shape", "| `error_type` |", "| `kind` |"),
    ("idempotency-unstated", "- **Idempotent**: Yes", "- **Idempotent**: as the case may be"),
    ("idempotency-conflict", "- **Idempotent**: Yes", "- **Idempotent**: No"),
    ("hints-conflict", "`readOnlyHint=true`", "`readOnlyHint=true`, `destructiveHint=true`"),
    ("example-missing", "```json\n{\n  \"tool_name\"", "```python\n{\n  \"tool_name\""),
    ("example-not-json", "\"max_lines\": 100\n", "\"max_lines\": 100,\n"),
    ("example-shape", "\"tool_name\"", "\"tool\""),
    ("example-wrong-tool", "\"tool_name\": \"files.read_text\"", "\"tool_name\": \"read_text\""),
    ("example-invalid", "\"max_lines\": 100", "\"max_lines\": 0"),
    ("version-missing", "- **Version**: 1.0.2\n", ""),
    ("version-not-semver", "1.0.2", "v1.0"),
    (
        "description-vague",
        "Returns the text of one file below the workspace, at most `max_lines` lines of it.",
        "Reads text.",
    ),
    (
        "format-missing",
        "\"type\": \"string\",\n      \"description\": \"The file",
        "\"type\": \"string\",\n      \"description\": \"An ISO 8601 date. The file",
    ),
    (
        "schema-simplified",
        "    \"max_lines\": {",
        "    \"note\": {\"type\": [\"string\", \"null\"], \"description\": \"x\"},\n    \"max_lines\": {",
    ),
    ("untestable-result", "| `text` | `string` |", "| `text` | `any` |"),
];

#[test]
fn the_good_document_is_good() {
    let findings = lint::check(&Document::parse(GOOD), &LintConfig::default());
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(Document::parse(GOOD).is_canonical());
}

#[test]
fn every_mistake_is_reported_by_its_rule() {
    for (rule, from, to) in BREAKS {
        assert!(GOOD.contains(from), "{rule}: {from:?} is not in the document");
        let broken = GOOD.replacen(from, to, 1);
        assert!(found(&broken).contains(rule), "{rule} is not reported, but {:?}", found(&broken));
    }
}

#[test]
fn a_schema_that_a_gateway_does_not_list_is_reported_with_the_remedy() {
    let schema = |length: usize| {
        let argument = serde_json::json!({"type": "string", "description": "d".repeat(length)});
        serde_json::json!({"type": "object", "properties": {"a": argument}})
    };
    let messages = |length: usize| {
        let tool = serde_json::json!({"name": "open", "description": "Opens a door.", "inputSchema": schema(length)});
        let document = Document::parse(&serde_json::json!({"tools": [tool]}).to_string());
        let findings = lint::check(&document, &LintConfig::default());
        let simplified = findings.iter().filter(|finding| finding.rule.id == "schema-simplified");
        simplified.map(|finding| finding.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        messages(70_000),
        ["AI clients get this tool without its arguments, which are not checked either, because the schema is larger \
          than 64 KiB; shorten the schema, or split the tool"]
    );
    assert!(messages(40_000).is_empty());
}

#[test]
fn rules_that_need_more_than_one_change_are_reported_too() {
    let twice = format!("{GOOD}\n---\n\n{}", &GOOD[GOOD.find("## Tool:").unwrap()..]);
    assert_eq!(found(&twice), BTreeSet::from(["name-duplicate"]));

    let cheerful =
        GOOD.replace("`enum[\"success\", \"failure\"]` | Whether the file was read.", "`string` | `\"success\"`");
    assert_eq!(found(&cheerful), BTreeSet::from(["output-status"]));

    assert_eq!(
        found(&GOOD.replace("How many lines to return at most, 1 to 10000.", "")),
        BTreeSet::from(["parameter-description"])
    );

    let nameless =
        GOOD.replace("## Tool: `files.read_text`", "## Tool:").replace("`files.read_text`\n\n### 3", "### 3");
    assert!(found(&nameless).contains("name-missing"));

    let output = "| Field Name |";
    let schema = "**JSON Schema:**\n\n```json\n{\"type\": \"object\", \"required\": \"status\"}\n```\n\n";
    assert!(found(&GOOD.replace(output, &format!("{schema}{output}"))).contains("output-schema-invalid"));

    let at = GOOD.find("- Paths are").unwrap();
    assert!(found(&format!("{}- Validate.\n", &GOOD[..at])).contains("security-boilerplate"));
    let empty = "- Validate all inputs. Follow security best practices. Use with caution, as needed.\n";
    assert_eq!(found(&format!("{}{empty}", &GOOD[..at])), BTreeSet::from(["security-boilerplate"]));

    let errors = GOOD.find("- `FileNotFound`").unwrap()..GOOD.find("### 6.").unwrap();
    let silent = format!("{}None.\n\n{}", &GOOD[..errors.start], &GOOD[errors.end..]);
    assert_eq!(found(&silent), BTreeSet::from(["errors-unstated"]));

    let schema = GOOD.find("**JSON Schema:**").unwrap()..GOOD.find("### 4.").unwrap();
    let bare = format!("{}{}", &GOOD[..schema.start], &GOOD[schema.end..]);
    assert!(found(&bare).contains("schema-missing"));

    let brief = GOOD
        .replace("\n- **Explanation**: reading changes nothing.", "")
        .replace("`readOnlyHint=true`", "`openWorldHint=false`");
    assert_eq!(found(&brief), BTreeSet::from(["idempotency-unexplained"]));

    let long = GOOD.replace("Returns the text", &format!("{} Returns the text", "Background. ".repeat(200)));
    assert_eq!(found(&long), BTreeSet::from(["description-long"]));

    let switch = GOOD.replace("max_lines", "operation");
    let switch = switch.replace("`integer`", "`enum[\"head\", \"tail\"]`").replace("`100`", "`\"head\"`");
    let switch = switch.replace(
        "\"type\": \"integer\",\n      \"minimum\": 1,\n      \"maximum\": 10000",
        "\"type\": \"string\",\n      \"enum\": [\"head\", \"tail\"]",
    );
    assert_eq!(found(&switch.replace("\"operation\": 100", "\"operation\": \"head\"")), BTreeSet::from(["split-tool"]));

    assert_eq!(found(&"#\n".repeat(5 << 20)), BTreeSet::from(["too-large"]));
    assert_eq!(found("{\"tools\": ["), BTreeSet::from(["list-not-json"]));
    assert_eq!(found("{\"tools\": 5}"), BTreeSet::from(["list-shape"]));
}

#[test]
fn a_finding_is_suppressed_with_a_reason_for_one_tool_only() {
    let with = |comment: &str| {
        let text = GOOD.replace("| `100` |", "| — |");
        text.replace("- **Version**: 1.0.2", &format!("<!-- {comment} -->\n\n- **Version**: 1.0.2"))
    };
    let ignored = with("sinew: ignore parameter-example because the device documents it");
    assert_eq!(found(&ignored), BTreeSet::new());
    assert_eq!(
        found(&with("sinew: ignore parameter-example")),
        BTreeSet::from(["ignore-invalid", "parameter-example"])
    );
    assert_eq!(
        found(&with("sinew: ignore no-such-rule because of it")),
        BTreeSet::from(["ignore-invalid", "parameter-example"])
    );
    assert_eq!(
        found(&with("sinew: ignore split-tool because of it")),
        BTreeSet::from(["ignore-unused", "parameter-example"])
    );
    for code in ["```html\n<!-- {} -->\n```", "`<!-- {} -->`"] {
        let example = code.replace("{}", "sinew: ignore parameter-example because the device documents it");
        let text = with("plain").replace("<!-- plain -->", &example);
        assert_eq!(found(&text), BTreeSet::from(["parameter-example"]), "{code}");
    }
    let second = GOOD[GOOD.find("## Tool:").unwrap()..]
        .replace("files.read_text", "files.read_more")
        .replace("| `100` |", "| — |");
    assert_eq!(found(&format!("{ignored}\n---\n\n{second}")), BTreeSet::from(["parameter-example"]));
    let list = |comment: &str| {
        format!(
            r#"{{"tools": [{{"name": "set", "$comment": "{comment}", "description": "Sets the level of one lamp.", "inputSchema": {{"type": "object", "properties": {{"x": {{"type": "string"}}}}}}}}]}}"#
        )
    };
    assert_eq!(found(&list("none")), BTreeSet::from(["parameter-description"]));
    assert_eq!(found(&list("sinew: ignore parameter-description because x says it")), BTreeSet::new());
}

#[test]
fn every_rule_is_in_the_table_of_the_standard_or_is_about_the_checks_themselves() {
    let named: BTreeSet<&str> = lint::standard::SENTENCES
        .iter()
        .flat_map(|(_, _, checked)| match checked {
            lint::standard::Coverage::By(rules) => *rules,
            lint::standard::Coverage::Not(_) => &[],
        })
        .map(|rule| rule.id)
        .collect();
    let rest: Vec<&str> = RULES.iter().map(|rule| rule.id).filter(|id| !named.contains(id)).collect();
    // The standard says nothing about the APIs behind AI clients.
    assert_eq!(rest, ["ignore-invalid", "ignore-unused", "schema-simplified"]);
    assert!(lint::standard::SENTENCES.len() > 30);
}

#[test]
fn every_rule_is_tested() {
    let mut tried: BTreeSet<&str> = BREAKS.iter().map(|(rule, _, _)| *rule).collect();
    tried.extend([
        "name-duplicate",
        "output-schema-invalid",
        "security-boilerplate",
        "errors-unstated",
        "ignore-invalid",
        "ignore-unused",
        "schema-missing",
        "idempotency-unexplained",
        "description-long",
        "split-tool",
        "too-large",
        "list-not-json",
        "list-shape",
        "name-missing",
        "parameter-description",
    ]);
    assert_eq!(tried, RULES.iter().map(|rule| rule.id).collect());
}

#[test]
fn ids_are_unique_words_and_every_rule_is_explained() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    for rule in RULES {
        assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", rule.id);
        for part in [rule.title, rule.why, rule.good, rule.bad] {
            assert!(!part.is_empty() && !part.ends_with(' '), "{}", rule.id);
        }
        assert_ne!(rule.good, rule.bad, "{}", rule.id);
    }
}

#[test]
fn the_template_says_exactly_unfilled() {
    let findings = lint::check(&Document::parse(print::TEMPLATE), &LintConfig::default());
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
    assert_eq!(rules, ["unfilled"], "{findings:#?}");
    let named = print::new_from_template("relay.switch");
    let document = Document::parse(&named);
    assert_eq!(document.tools[0].name, "relay.switch");
    assert_eq!(found(&named), BTreeSet::from(["unfilled"]));
    assert!(document.is_canonical());
    assert_eq!(document.tools[0].version.as_deref(), Some("1.0.0"));
}

#[test]
fn findings_have_places() {
    let broken = GOOD.replace("\"max_lines\": 100", "\"max_lines\": 0");
    let findings = lint::check(&Document::parse(&broken), &LintConfig::default());
    let (line, column) = (findings[0].place.line().unwrap(), findings[0].place.column().unwrap());
    assert_eq!(broken.lines().nth(line - 1).map(|line| &line[column - 1..]), Some("\"max_lines\": 0"));
    assert_eq!(findings[0].tool.as_deref(), Some("files.read_text"));
}

#[test]
fn fixes_remove_the_finding_and_keep_the_meaning() {
    for (rule, from, to) in BREAKS {
        let broken = GOOD.replacen(from, to, 1);
        let findings = lint::check(&Document::parse(&broken), &LintConfig::default());
        let has_fix = findings.iter().any(|finding| finding.rule.id == *rule && finding.fix.is_some());
        assert!(!has_fix || lint::rule(rule).unwrap().fixable, "{rule} has a fix and does not say so");
        let fixed = lint::fix(&broken, &LintConfig::default());
        let left: BTreeSet<&str> = fixed.findings.iter().map(|finding| finding.rule.id).collect();
        if has_fix {
            assert!(!left.contains(rule), "{rule} is reported again after fixing: {}", fixed.text);
        }
        assert!(fixed.findings.iter().all(|finding| finding.fix.is_none()), "{rule}: {:#?}", fixed.findings);
    }
    for rule in [
        "type-alias",
        "example-not-json",
        "version-not-semver",
        "section-heading",
        "schema-not-json",
        "line-endings",
        "example-wrong-tool",
        "example-shape",
    ] {
        let (_, from, to) = BREAKS.iter().find(|(id, _, _)| *id == rule).unwrap();
        let fixed = lint::fix(&GOOD.replacen(from, to, 1), &LintConfig::default());
        assert!(fixed.edits > 0 && fixed.findings.is_empty(), "{rule}: {:#?}", fixed.findings);
    }
}

#[test]
fn sections_out_of_order_are_put_in_order() {
    let errors = GOOD.find("### 5.").unwrap();
    let idempotency = GOOD.find("### 6.").unwrap();
    let examples = GOOD.find("### 7.").unwrap();
    let swapped = format!(
        "{}{}{}{}",
        &GOOD[..errors],
        &GOOD[idempotency..examples],
        &GOOD[errors..idempotency],
        &GOOD[examples..]
    );
    assert_eq!(found(&swapped), BTreeSet::from(["section-order"]));
    assert_eq!(lint::fix(&swapped, &LintConfig::default()).text, GOOD);
}

#[test]
fn a_type_that_the_standard_cannot_express_is_not_fixed() {
    for cell in ["dict[str, int]", "datetime", "string (ISO 8601)", "tuple[float, float]", "url"] {
        let text = GOOD.replace("| `text` | `string` |", &format!("| `text` | `{cell}` |"));
        let fixed = lint::fix(&text, &LintConfig::default());
        assert_eq!((fixed.edits, &fixed.text), (0, &text), "{cell}");
        let reported = fixed.findings.iter().find(|finding| finding.rule.id == "type-alias");
        assert!(
            reported.is_some_and(|finding| finding.message.contains("JSON Schema")),
            "{cell}: {:?}",
            fixed.findings
        );
    }
}

#[test]
fn an_unknown_type_is_reported_with_the_one_that_was_meant() {
    for (cell, expected) in [
        ("strng", "did you mean `string`?"),
        ("Integr", "did you mean `integer`?"),
        ("RelayHandle", "is not a known type; use string, integer, number"),
        ("datetime", "write `string`, and `\"format\": \"date-time\"` in a JSON Schema"),
    ] {
        let text = GOOD.replace("| `text` | `string` |", &format!("| `text` | `{cell}` |"));
        let findings = lint::check(&Document::parse(&text), &LintConfig::default());
        assert!(findings.iter().any(|finding| finding.message.contains(expected)), "{cell}: {findings:?}");
    }
}

#[test]
fn a_bare_value_in_an_example_cell_is_checked_and_a_sentence_is_not() {
    let with = |cell: &str| found(&GOOD.replace("| `100` |", &format!("| {cell} |")));
    assert_ne!(GOOD.replace("| `100` |", ""), GOOD);
    for cell in ["1.5", "true", "ten", "`ten`", "\"10\"", "[1]"] {
        assert!(with(cell).contains("example-type"), "{cell}");
    }
    for cell in ["10", "`10`", "1 to 5000", "`1` or `2`", "e.g. 10", "—"] {
        assert!(!with(cell).contains("example-type"), "{cell}");
    }
}

#[test]
fn security_in_empty_words_is_reported_whatever_their_order() {
    let start = GOOD.find("### 8.").unwrap();
    let with = |words: &str| found(&format!("{}### 8. Security Considerations\n\n{words}\n", &GOOD[..start]));
    for words in [
        "This tool is secure and safe to use.",
        "Please always be careful and follow the usual security practices with this tool.",
        "- Inputs are validated.\n- Errors are handled properly.\n- Best practices apply.",
    ] {
        assert!(with(words).contains("security-boilerplate"), "{words}");
    }
    let words = "Paths are resolved and refused unless they lie below the workspace; links are not followed.";
    assert!(!with(words).contains("security-boilerplate"), "{words}");
}

#[test]
fn fixing_the_name_of_a_type_changes_no_tool() {
    for cell in ["str", "list[int]", "dict", "str \\| None", "Optional[bool]", "array of strings", "dict[str, Any]"] {
        let text = GOOD.replace("| `text` | `string` |", &format!("| `text` | `{cell}` |"));
        let fixed = lint::fix(&text, &LintConfig::default());
        assert_eq!(Document::parse(&text).to_tools(), Document::parse(&fixed.text).to_tools(), "{cell}");
    }
}

#[test]
fn a_removed_comment_leaves_no_empty_line() {
    for ending in ["\n", "\r\n"] {
        let good = GOOD.replace('\n', ending);
        let call = format!("```json{ending}{{{ending}  \"tool_name\"");
        assert!(good.contains(&call));
        let commented = format!("```json{ending}// Request{ending}{{{ending}  /* who */{ending}  \"tool_name\"");
        assert_eq!(lint::fix(&good.replace(&call, &commented), &LintConfig::default()).text, good);
    }
}

#[test]
fn the_version_of_a_whole_document_is_reported_once() {
    let tool = "## Tool: `a`\n\nReads the long list of things.\n\n";
    let text = format!("# M\n\n**Version**: v0.2.0 | **Status**: Active\n\n{tool}{}", tool.replace("`a`", "`b`"));
    let findings = lint::check(&Document::parse(&text), &LintConfig::default());
    let reported = findings.iter().filter(|finding| finding.rule.id == "version-not-semver").count();
    assert_eq!((Document::parse(&text).tools.len(), reported), (2, 1), "{findings:#?}");
}

#[test]
fn a_row_that_says_none_is_not_a_parameter() {
    let rows =
        "| Parameter | Type | Required | Description |\n|---|---|---|---|\n| none | - | - | No input parameters |\n";
    let text = format!("## Tool: `a`\n\nReads the list.\n\n### 3. Input Schema (Parameters)\n\n{rows}");
    assert_eq!(Document::parse(&text).tools[0].parameters().count(), 0);
    let named = text.replace("| none | - |", "| none | boolean |");
    assert_eq!(Document::parse(&named).tools[0].parameters().count(), 1, "a parameter may have that name");
}

#[test]
fn a_definition_in_yaml_is_reported() {
    let text = "## Tool: `a`\n\nReads the list.\n\n```yaml\nname: a\nparameters:\n  type: object\n```\n";
    let findings = lint::check(&Document::parse(text), &LintConfig::default());
    let reported = findings.iter().find(|finding| finding.rule.id == "schema-not-json").expect("a finding");
    assert_eq!((reported.place.line().unwrap(), reported.message.contains("YAML")), (6, true));
    assert!(
        !found(&text.replace("parameters:", "tags:")).contains("schema-not-json"),
        "other YAML is nobody's business"
    );
}

#[test]
fn an_example_is_not_changed_to_an_invalid_name() {
    let text = GOOD.replacen("`files.read_text`", "`files read!`", 2);
    let fixed = lint::fix(&text, &LintConfig::default());
    assert!(fixed.text.contains("\"tool_name\": \"files.read_text\""), "{}", fixed.text);
}

#[test]
fn a_byte_order_mark_survives_fixing() {
    let text = format!("\u{feff}{}", GOOD.replace("1.0.2", "v1.0.2"));
    let fixed = lint::fix(&text, &LintConfig::default());
    assert_eq!(fixed.text, format!("\u{feff}{GOOD}"));
}

#[test]
fn a_configuration_turns_rules_off_and_changes_severities() {
    let broken = GOOD.replace("| `text` | `string` |", "| `text` | `str` |");
    let mut config = LintConfig::default();
    config.set("type-alias", "off").unwrap();
    assert!(lint::check(&Document::parse(&broken), &config).is_empty());
    config.set("type-alias", "error").unwrap();
    assert_eq!(lint::check(&Document::parse(&broken), &config)[0].severity, Severity::Error);
    assert!(config.set("type-alais", "off").unwrap_err().contains("type-alais"));
    assert!(config.set("type-alias", "loud").unwrap_err().contains("loud"));
}

#[test]
fn live_tools_are_checked_without_sections() {
    let list = r#"{"tools": [
        {"name": "self.audio.set_volume", "description": "Set the volume of the speaker, 0 to 100.",
         "inputSchema": {"type": "object", "properties": {"volume": {"type": "integer", "minimum": 0}}, "required": ["volume"]}},
        {"name": "do it", "description": "", "inputSchema": {"type": "strng"}}
    ]}"#;
    let document = read::tools_list_json(list);
    let findings = lint::check(&document, &LintConfig::default());
    let reported: Vec<(usize, &str)> =
        findings.iter().map(|finding| (finding.place.line().unwrap(), finding.rule.id)).collect();
    assert_eq!(
        reported,
        [
            (3, "parameter-description"),
            (4, "name-illegal"),
            (4, "description-vague"),
            (4, "input-schema-invalid"),
            (4, "input-schema-invalid")
        ]
    );
    let same = lint::check_tools(&document.to_tools(), &LintConfig::default());
    assert!(same.iter().any(|finding| finding.rule.id == "name-illegal"));
}

#[test]
fn names_are_compared_across_documents() {
    let other = GOOD.replace("files.read_text", "files.other");
    let ignored = format!("{GOOD}\n<!-- sinew: ignore name-duplicate because both are the same module -->\n");
    let texts = [("a.md", GOOD), ("b.md", &other), ("c.md", GOOD), ("d.md", &ignored)];
    let mut off = LintConfig::default();
    off.set("name-duplicate", "off").unwrap();
    let checked = |(path, text): (&str, &str), config: &LintConfig| {
        lint::CheckedDocument::new(path.to_owned(), Document::parse(text), config)
    };
    let mut documents: Vec<_> = texts.into_iter().map(|text| checked(text, &LintConfig::default())).collect();
    documents.push(checked(("e.md", GOOD), &off));
    lint::report_repeated(&mut documents);
    let found: Vec<_> = documents.iter().flat_map(|document| document.findings.iter()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].message, "`files.read_text` is already the name of a tool in a.md");
    assert_eq!(documents[2].findings.len(), 1);
}

#[test]
fn the_page_of_rules_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec-rules.md");
    let page = lint::rules_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/spec-rules.md is stale; run this test with UPDATE_DOCS=1");
}
