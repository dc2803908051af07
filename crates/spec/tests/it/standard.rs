//! The examples of the tool-specification standard itself.

use serde_json::json;
use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, print};
use sinew_tool::ToolError;

const TABLE: &str = r#"| Parameter Name | Type     | Required | Description                                      | Example Value |
| :------------- | :------- | :------- | :----------------------------------------------- | :------------ |
| `target_file`  | `string` | Yes      | The path to the file to be processed.            | `"src/main.py"` |
| `max_lines`    | `integer`| No       | Optional maximum number of lines to process.     | `100`         |
"#;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "target_file": {
      "type": "string",
      "description": "The path to the file to be processed."
    },
    "max_lines": {
      "type": "integer",
      "description": "Optional maximum number of lines to process."
    }
  },
  "required": ["target_file"]
}"#;

/// The standard's failure object, comments and all.
const FAILURE: &str = r#"{
  "status": "failure", // Or a more specific failure status if applicable
  "error_type": "UniqueErrorCodeOrType", // e.g., "ValidationError", "FileNotFound", "ApiLimitExceeded"
  "error_message": "A descriptive message explaining the error.",
  "error_details": { // Optional: for more structured error information
    "parameter_name": "target_file", // Example if it's a validation error
    "issue": "File does not exist at the specified path."
  }
}"#;

fn document(input: &str) -> String {
    format!(
        "# Module - MCP Tool Specification\n\n## Tool: `ai_code_editing.process_file`\n\n\
         ### 3. Input Schema (Parameters)\n\n{input}\n### 5. Error Handling\n\n```json\n{FAILURE}\n```\n"
    )
}

#[test]
fn the_table_gives_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let mut read = (*Document::parse(&document(TABLE)).tools[0].input).clone();
    assert_eq!(read["properties"]["target_file"]["examples"], json!(["src/main.py"]));
    assert_eq!(read["properties"]["max_lines"]["examples"], json!([100]));
    for property in read["properties"].as_object_mut().unwrap().values_mut() {
        property.as_object_mut().unwrap().remove("examples");
    }
    assert_eq!(read, schema);
}

#[test]
fn table_and_schema_together_agree() {
    let both = document(&format!(
        "{TABLE}\n**Conceptual JSON Schema for the above `arguments`:**\n\n```json\n{SCHEMA}\n```\n"
    ));
    let document = Document::parse(&both);
    let findings = lint::check(&document, &LintConfig::default());
    assert!(
        !findings
            .iter()
            .any(|finding| ["table-schema", "input-schema-invalid", "schema-not-json"].contains(&finding.rule.id))
    );
    assert_eq!(document.tools[0].input["properties"]["max_lines"]["examples"], json!([100]));
    let apart = both.replace("\"type\": \"integer\"", "\"type\": \"string\"");
    let findings = lint::check(&Document::parse(&apart), &LintConfig::default());
    assert!(findings.iter().any(|finding| finding.rule.id == "table-schema"));
}

#[test]
fn the_dotted_name_of_the_standard_is_valid() {
    let findings = lint::check(&Document::parse(&document(TABLE)), &LintConfig::default());
    assert!(!findings.iter().any(|finding| finding.rule.id.starts_with("name-")), "{findings:#?}");
}

#[test]
fn the_failure_object_is_known_in_both_forms() {
    let output = |fields: &str| {
        let table = "### 4. Output Schema (Return Value)\n\n| Field Name | Type | Description | Example Value |\n| :--- | :--- | :--- | :--- |\n";
        let text = document(TABLE).replace("### 5. Error Handling", &format!("{table}{fields}\n### 5. Error Handling"));
        let text = text.replace(FAILURE, "{}");
        let findings = lint::check(&Document::parse(&text), &LintConfig::default());
        let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
        (rules.contains(&"error-shape"), rules.contains(&"output-status"))
    };
    let status = "| `status` | `string` | `\"success\"` or `\"failure\"` | `\"success\"` |\n";
    let flat =
        "| `error_type` | `string` | The kind. | `\"X\"` |\n| `error_message` | `string` | The words. | `\"Y\"` |\n";
    let nested = "| `error` | `object` | The error. | — |\n| `error.error_type` | `string` | The kind. | `\"X\"` |\n| `error.error_message` | `string` | The words. | `\"Y\"` |\n";
    assert_eq!(output(&format!("{status}{flat}")), (false, false));
    assert_eq!(output(&format!("{status}{nested}")), (false, false));
    assert_eq!(output(status), (true, false));
    assert_eq!(output(flat), (false, true));
    let strict: String = FAILURE.lines().map(|line| line.split(" //").next().unwrap()).collect();
    assert_eq!(
        ToolError::from_object(&serde_json::from_str(&strict).unwrap())
            .map(|error| error.details["parameter_name"].clone()),
        Some(json!("target_file"))
    );
}

#[test]
fn the_printed_tool_reads_back_with_one_source_for_both() {
    let first = Document::parse(&document(TABLE));
    let printed = print::render_markdown("Module - MCP Tool Specification", "", &first.tools);
    let second = Document::parse(&printed);
    assert_eq!(first.tools, second.tools);
    assert!(second.tools[0].places.input.table.is_some() && second.tools[0].places.input.schema.is_some());
    assert!(!lint::check(&second, &LintConfig::default()).iter().any(|finding| finding.rule.id == "table-schema"));
}
