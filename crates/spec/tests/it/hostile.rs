//! Whatever comes in: findings with places, never a panic, never a hang.

use proptest::prelude::*;
use serde_json::json;
use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, ToolSpecification, compare, print, read};
use sinew_tool::Tool;
use sinew_tool::finding::Findings;
use sinew_tool::finding::report::{self, ReportFormat};

const GOOD: &str = include_str!("cases/read_file.md");

/// Everything that can be done with a document; answers with its findings.
fn use_all(document: &Document) -> Findings {
    let findings = lint::check(document, &LintConfig::default());
    for finding in &findings {
        assert!(finding.place.line().unwrap() >= 1 && finding.place.column().unwrap() >= 1);
        assert!(finding.place.line().unwrap() <= document.lines.count(), "{finding:?}");
    }
    let checked = lint::CheckedDocument::new("x.md".to_owned(), document.clone(), &LintConfig::default());
    for format in [
        ReportFormat::People { color: true },
        ReportFormat::Json,
        ReportFormat::Sarif,
        ReportFormat::Github,
        ReportFormat::Junit,
    ] {
        report::render(format, &lint::LINTER, &[checked.report()]);
    }
    let printed = print::render_markdown("Title", &document.intro, &document.tools);
    assert_eq!(Document::parse(&printed).tools.len(), document.tools.len(), "{printed}");
    print::render_html_document("Title", document);
    let tools = document.to_tools();
    compare::diff(&tools, &tools[..tools.len() / 2]);
    findings
}

fn rules(text: &str) -> Vec<&'static str> {
    use_all(&Document::parse(text)).iter().map(|finding| finding.rule.id).collect()
}

#[test]
fn line_endings_change_no_meaning() {
    let plain = Document::parse(GOOD);
    for text in [GOOD.replace('\n', "\r\n"), GOOD.replace('\n', "\r"), format!("\u{feff}{GOOD}")] {
        let other = Document::parse(&text);
        assert_eq!(plain.tools, other.tools);
        assert!(use_all(&other).is_empty());
    }
    let mixed = GOOD.replacen('\n', "\r\n", 5);
    assert_eq!(Document::parse(&mixed).tools, plain.tools);
    assert_eq!(rules(&mixed), ["line-endings"]);
}

#[test]
fn other_scripts_are_supported() {
    let text = GOOD
        .replace("Returns the text of one file below the workspace", "返回工作区中一个文件的文本内容")
        .replace("The file to read, relative to the workspace.", "הקובץ לקריאה, יחסית לסביבת העבודה.")
        .replace("The lines, as they are in the file.", "السطور كما هي في الملف 🗂️");
    let document = Document::parse(&text);
    assert!(use_all(&document).is_empty(), "{:#?}", use_all(&document));
    assert!(document.tools[0].purpose.starts_with("返回"));
}

#[test]
fn hostile_schemas_are_checked_with_bounded_work() {
    let within = |schema: &str| {
        let start = GOOD.find("```json\n{\n  \"type\"").unwrap() + 8;
        let end = start + GOOD[start..].find("```").unwrap();
        rules(&format!("{}{schema}\n{}", &GOOD[..start], &GOOD[end..]))
    };
    assert!(within(r##"{"type": "object", "$ref": "#"}"##).contains(&"input-schema-invalid"));
    assert!(within(r##"{"type": "object", "properties": {"max_lines": {"$ref": "#"}, "target_file": {"$ref": "https://example.com/s"}}}"##)
        .contains(&"input-schema-invalid"));
    let circle = r##"{"type": "object", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "allOf": [{"$ref": "#/$defs/a"}]}"##;
    assert!(within(circle).contains(&"input-schema-invalid"));
    let mut bomb = json!({"type": "object", "$defs": {"d40": {}}, "allOf": [{"$ref": "#/$defs/d0"}]});
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        bomb["$defs"][format!("d{level}")] = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
    }
    assert!(within(&bomb.to_string()).contains(&"example-invalid"));
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    assert!(within(&deep).contains(&"schema-not-json"));
    let slow = r#"{"type": "object", "properties": {"target_file": {"type": "string", "pattern": "^(a+)+(?!b)$"}, "max_lines": {"type": "integer"}}}"#;
    within(slow);
    let huge = r#"{"type": "object", "properties": {"target_file": {"type": "string", "pattern": "((a{1000}){1000}){1000}"}}}"#;
    within(huge);
}

#[test]
fn a_comment_that_ignores_is_read_once_for_all_tools() {
    let tool = |index: usize| {
        let ignored = if index < 100 { "<!-- sinew: ignore name-duplicate because both are old -->\n\n" } else { "" };
        format!("## Tool: `t{index}`\n\n{ignored}### 3. Input Schema\n\n| a | b |\n|---|---|\n| x | y |\n\n")
    };
    let text = format!("# T\n\n{}", (0..900).map(tool).collect::<String>());
    let mut config = LintConfig::default();
    for rule in lint::RULES.iter().filter(|rule| rule.id != "name-duplicate") {
        config.set(rule.id, "off").unwrap();
    }
    let checked = |path: &str| lint::CheckedDocument::new(path.to_owned(), Document::parse(&text), &config);
    let mut documents = [checked("a.md"), checked("b.md")];
    lint::report_repeated(&mut documents);
    assert_eq!(documents.map(|document| document.findings.iter().count()), [0, 800]);
}

#[test]
fn big_documents_are_read_in_bounded_time() {
    let tool = &GOOD[GOOD.find("## Tool:").unwrap()..];
    let many: String = (0..400).map(|index| tool.replace("read_text", &format!("tool_{index}"))).collect();
    assert_eq!(Document::parse(&many).tools.len(), 400);
    let shapes: [String; 10] = [
        "| a | b |\n|---|---|\n".to_owned() + &"| `x` | string |\n".repeat(100_000),
        format!(
            "## Tool: `t`\n\n### 3. Input Schema\n\n| Name | Type |\n|---|---|\n{}",
            (0..60_000).map(|i| format!("| `p{i}` | string |\n")).collect::<String>()
        ),
        "### `x_y`\n".repeat(100_000),
        format!("## Tool: `t`\n{}", "#### `x_y`\n".repeat(100_000)),
        "<!-- open\n".repeat(100_000) + "--> words",
        "```\n~~~\n".repeat(50_000),
        "[".repeat(1_000_000),
        "`".repeat(1_000_000),
        format!(
            "## Tool: `t`\n\n### 7. Usage Examples\n\n{}",
            "```json\n{\"tool_name\": \"t\", \"arguments\": {\"a\": 1}}\n```\n".repeat(5_000)
        ),
        format!(
            "{{\"tools\": [{{\"name\": \"t\", \"inputSchema\": {{\"type\": \"object\", \"properties\": {{{}}}}}}}]}}",
            (0..60_000).map(|i| format!("\"p{i}\": {{}}")).collect::<Vec<_>>().join(",")
        ),
    ];
    for text in &shapes {
        let document = Document::parse(text);
        assert!(lint::check(&document, &LintConfig::default()).len() <= 1000);
    }
}

#[test]
fn names_and_text_from_devices_cannot_break_a_document() {
    let nasty = [
        "## Tool: `other`\n\n### 2. Invocation Name\n\n`other`",
        "```json\n{}",
        "text\n---\n# Title\n<!-- gone",
        "| a | b |\n|---|---|\n| `x` | y |",
        "- **Version**: 9.9.9\n- **Hints**: `readOnlyHint=true`",
        "**Parameters**:\n\n**Example**: x",
        "_Not stated._",
        "This tool takes no parameters.",
        "\\# a\n\\\\b\n    # c\n\t```",
        "",
    ];
    for words in nasty {
        let schema = json!({"type": "object", "properties": {
            "a|b": {"type": "string", "description": words, "examples": ["`|`\n"]},
            "c`d": {"enum": ["x|y", "```"], "description": words},
        }, "required": ["a|b"]});
        let output = json!({"description": words, "items": true});
        let tool = Tool::new("t", words, schema).with_title(words).with_output_schema(output);
        let spec = ToolSpecification::from_tool(&tool);
        let printed = print::render_markdown("T", "", std::slice::from_ref(&spec));
        let back = Document::parse(&printed);
        assert_eq!(back.tools, [spec], "{printed}");
        assert_eq!(back.tools[0].to_tool().input_schema, tool.input_schema);
    }
}

/// Text that looks enough like a specification to reach every corner of the reader.
fn scribble() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "## Tool: `x`\n",
        "### 2. Invocation Name\n",
        "### 3. Input Schema (Parameters)\n",
        "### 4. Output Schema\n",
        "### 5. Error Handling\n",
        "### 6. Idempotency\n",
        "### 7. Usage Examples\n",
        "### 8. Security\n",
        "`x`\n",
        "\n",
        "\n",
        "| Name | Type | Required | Default | Description | Example |\n|---|---|---|---|---|---|\n",
        "| a | `str \\| None` | Yes | `1` | d | `2` |\n",
        "| `a.b` | list[str] | Conditional | — | | |\n",
        "```json\n",
        "```\n",
        "~~~\n",
        "{\"type\": \"object\", \"properties\": {\"a\": {}}}\n",
        "{\"tool_name\": \"x\", \"arguments\": {\"a\": 1, // c\n}}\n",
        "{\"name\": \"x\", \"inputSchema\": {}}\n",
        "**Parameters**:\n",
        "**Returns**: # text\n",
        "- `a` (string, required): words\n",
        "- **Version**: 1.0.0\n",
        "- **Idempotent**: Yes\n",
        "Reads. **Idempotent**: Yes | **Status**: x\n",
        "| Idempotent | No, it adds |\n",
        "  ## Tool: `y`\n",
        "  ===\n",
        "Parameters:\n",
        "<table><tr><th>Name<th>Type<tr><td>b<td>int</table>\n",
        "<!--",
        "-->\n",
        "---\n",
        "# T\n",
        "#### sub\n",
        "\\# x\n",
        "words | more\n",
        "**JSON Schema:**\n",
        "_Not stated._\n",
        "\r\n",
        "\r",
        "\u{202e}",
        "日本\n",
        "    indented\n",
        "...",
        "[YourToolName]",
        "{{tool_name}}",
        "This tool takes no parameters.\n",
        "`",
        "|",
        " ",
        "{",
        "}",
        "\"",
        "\\",
    ]);
    prop_oneof![
        4 => prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat()),
        1 => ".*",
    ]
}

#[test]
fn an_underline_below_a_table_ends_the_same_when_printed() {
    let table = "| Name | Type | Required |\n|---|---|---|\n  ===\n| a | string | Yes |\n  ===\n";
    use_all(&Document::parse(&format!("#### sub\n{table}### 2. Invocation Name\n### 3. Input Schema (Parameters)\n")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_can_be_used(text in scribble()) {
        use_all(&Document::parse(&text));
        use_all(&read::tools_list_json(&text));
        use_all(&read::manifest(&text));
        lint::fix(&text, &LintConfig::default());
    }

    #[test]
    fn no_name_is_lost_in_printing(text in scribble()) {
        let mut names = 0;
        // Beside the words of a line, and at the end of some lines.
        let text = text.split_inclusive([' ', '\n']).enumerate().map(|(index, part)| {
            if part.ends_with('\n') && index % 3 != 0 {
                return part.to_owned();
            }
            names += 1;
            let end = if part.ends_with('\n') { "\n" } else { " " };
            format!("{} stone{names:03}{end}", part.trim_end_matches(['\n', '\r']))
        });
        let text = text.collect::<String>().replace('<', "");
        let document = Document::parse(&text);
        if document.unreadable().is_none() {
            let rendered = print::render_document("T", &document);
            let known = rendered.text.to_lowercase();
            let named = rendered.lost.iter().map(|(_, lost)| lost.as_str()).collect::<Vec<_>>().join(" ");
            for name in (1..=names).map(|name| format!("stone{name:03}")) {
                prop_assert!(known.contains(&name) || named.contains(&name), "lost {name}\n{text}\n=====\n{}", rendered.text);
            }
            let again = print::render_document("T", &Document::parse(&rendered.text));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&again.text), words(&rendered.text), "not stable\n{}", text);
        }
    }

    #[test]
    fn printing_breaks_no_caller(text in scribble()) {
        let document = Document::parse(&text);
        let printed = Document::parse(&print::render_document("T", &document).text);
        for (old, new) in [(&document, &document), (&document, &printed), (&printed, &document)] {
            let changes = compare::diff_documents(old, new).changes;
            let breaking: Vec<_> = changes.iter().filter(|change| change.impact == compare::Impact::Breaking).collect();
            prop_assert!(breaking.is_empty(), "{breaking:?}\n{text}\n=====\n{}", printed.text);
        }
        prop_assert!(compare::diff_documents(&document, &document).changes.is_empty());
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use_all(&Document::from_bytes(&bytes));
    }

    #[test]
    fn reading_printing_and_reading_is_the_identity(text in scribble()) {
        let first = Document::parse(&text);
        let printed = print::render_markdown("T", "", &first.tools);
        let second = Document::parse(&printed);
        prop_assert_eq!(&first.tools, &second.tools, "{}\n-----\n{}", text, printed);
        prop_assert_eq!(print::render_markdown("T", "", &second.tools), printed);
    }
}
