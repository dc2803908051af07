//! Each sentence of the standard with the rules that check it. Part of `docs/spec-rules.md`.

use std::fmt::Write as _;

use sinew_tool::finding::Rule;

use super::rules::*;

/// What checks a sentence.
pub enum Coverage {
    By(&'static [&'static Rule]),
    /// Why no rule can check it.
    Not(&'static str),
}

use Coverage::{By, Not};

/// Every requirement of the standard, in its order: section, sentence, and what checks it.
pub static SENTENCES: &[(&str, &str, Coverage)] = &[
    (
        "1",
        "The document is the authoritative meta-specification and defines no tools itself.",
        Not("it is about the standard itself"),
    ),
    (
        "1",
        "Tool definitions are consistent, clear and machine-parsable.",
        By(&[
            &TOOL_UNREAD,
            &UNCLOSED,
            &SCHEMA_NOT_JSON,
            &LIST_NOT_JSON,
            &LIST_SHAPE,
            &NOT_TEXT,
            &TOO_LARGE,
            &LINE_ENDINGS,
            &HIDDEN_TEXT,
        ]),
    ),
    (
        "2",
        "The file is based on the canonical template.",
        By(&[&SECTION_HEADING, &SECTION_ORDER, &TABLE_SHAPE, &TITLE_MISSING]),
    ),
    ("2", "The template is copied and filled out for each tool.", By(&[&UNFILLED, &NO_TOOLS])),
    ("3", "Each tool includes the eight sections.", By(&[&SECTION_MISSING, &SECTION_EMPTY, &SECTION_ORDER])),
    (
        "3.1",
        "A clear, concise explanation of what the tool does, its use and high-level notes.",
        By(&[&DESCRIPTION_VAGUE, &DESCRIPTION_LONG]),
    ),
    (
        "3.2",
        "A unique, machine-readable invocation name.",
        By(&[&NAME_MISSING, &NAME_ILLEGAL, &NAME_DUPLICATE, &NAME_TOO_LONG]),
    ),
    (
        "3.3",
        "All input parameters with names, types, requirement, descriptions and example values.",
        By(&[
            &TYPE_UNKNOWN,
            &TYPE_ALIAS,
            &REQUIRED_UNCLEAR,
            &PARAMETER_DESCRIPTION,
            &PARAMETER_EXAMPLE,
            &PARAMETER_REPEATED,
            &EXAMPLE_TYPE,
        ]),
    ),
    (
        "3.3, 3.4",
        "JSON Schema is the recommended standard.",
        By(&[&SCHEMA_MISSING, &INPUT_SCHEMA_INVALID, &OUTPUT_SCHEMA_INVALID]),
    ),
    (
        "3.4",
        "The structure of the returned data: field names, types, descriptions and example values.",
        By(&[&OUTPUT_UNDESCRIBED, &FIELD_DESCRIPTION, &FIELD_EXAMPLE, &TYPE_UNKNOWN]),
    ),
    (
        "3.5",
        "Potential error conditions, how errors are reported, and standard codes or messages.",
        By(&[&ERRORS_UNSTATED, &ERROR_REPEATED, &ERROR_SHAPE]),
    ),
    (
        "3.6",
        "A clear statement whether the tool is idempotent, and an explanation of repeated calls.",
        By(&[&IDEMPOTENCY_UNSTATED, &IDEMPOTENCY_UNEXPLAINED]),
    ),
    (
        "3.7",
        "At least one complete, valid JSON example with `tool_name` and `arguments`.",
        By(&[&EXAMPLE_MISSING, &EXAMPLE_NOT_JSON, &EXAMPLE_SHAPE, &EXAMPLE_WRONG_TOOL, &EXAMPLE_INVALID]),
    ),
    ("3.8", "A thorough discussion of security risks and mitigations.", By(&[&SECURITY_BOILERPLATE])),
    ("4", "Input and output schemas should be defined using JSON Schema.", By(&[&SCHEMA_MISSING])),
    (
        "4",
        "Beside the Markdown table a formal JSON Schema is included or referenced.",
        By(&[&SCHEMA_MISSING, &TABLE_SCHEMA]),
    ),
    (
        "4",
        "Clear JSON Schema definitions for the `arguments` object and for the object returned on success.",
        By(&[&INPUT_SCHEMA_INVALID, &OUTPUT_SCHEMA_INVALID, &ARRAY_ITEMS, &OBJECT_MEMBERS]),
    ),
    ("5", "Errors come in a consistent format as part of the output schema.", By(&[&ERROR_SHAPE])),
    (
        "5",
        "A failure has at least `status`, `error_type`, `error_message` and optionally `error_details`.",
        By(&[&ERROR_SHAPE, &OUTPUT_STATUS]),
    ),
    ("5", "The `status` field clearly differentiates success from failure.", By(&[&OUTPUT_STATUS, &STATUS_VALUES])),
    (
        "6",
        "Each tool includes a version number, for example `Version: 1.0.2`.",
        By(&[&VERSION_MISSING, &VERSION_NOT_SEMVER]),
    ),
    (
        "6",
        "Breaking changes must increment the major version.",
        Not("one document shows no changes; `sinew spec diff` and `sinew spec lock --check` compare two versions"),
    ),
    (
        "6",
        "New optional parameters and new fields are minor or patch updates.",
        Not("one document shows no changes; `sinew spec diff` states the smallest version"),
    ),
    ("6", "The invocation name remains stable; a fundamentally different tool gets a new one.", By(&[&NAME_UNSTABLE])),
    ("6", "The protocol has a version of its own.", Not("it is not part of a tool's specification")),
    (
        "7.1",
        "Purpose, inputs, outputs and behaviour are immediately understandable; precise language.",
        By(&[&DESCRIPTION_VAGUE, &PARAMETER_DESCRIPTION, &NESTED_DESCRIPTION]),
    ),
    ("7.2", "Tools are discrete actions; avoid overly broad or multi-purpose tools.", By(&[&SPLIT_TOOL])),
    (
        "7.3",
        "Schemas specify types, formats, required fields and descriptions.",
        By(&[
            &TYPE_UNKNOWN,
            &FORMAT_MISSING,
            &REQUIRED_UNCLEAR,
            &PARAMETER_DESCRIPTION,
            &FIELD_DESCRIPTION,
            &NESTED_DESCRIPTION,
            &ARRAY_ITEMS,
            &OBJECT_MEMBERS,
        ]),
    ),
    (
        "7.4",
        "Errors are reported clearly and consistently; be specific about conditions.",
        By(&[&ERRORS_UNSTATED, &ERROR_SHAPE]),
    ),
    (
        "7.5",
        "State whether the tool is idempotent and explain side effects of repeated calls.",
        By(&[&IDEMPOTENCY_UNSTATED, &IDEMPOTENCY_UNEXPLAINED, &IDEMPOTENCY_CONFLICT, &HINTS_CONFLICT]),
    ),
    (
        "7.6",
        "The security section is detailed and actionable, above all with files, network, code and data.",
        By(&[&SECURITY_BOILERPLATE, &HIDDEN_TEXT]),
    ),
    (
        "7.7",
        "Realistic, complete and valid JSON usage examples.",
        By(&[&EXAMPLE_MISSING, &EXAMPLE_NOT_JSON, &EXAMPLE_INVALID, &EXAMPLE_TYPE]),
    ),
    ("7.8", "Tools can be reliably tested.", By(&[&UNTESTABLE_RESULT])),
    (
        "8",
        "A specification exists for all tools that a module exposes.",
        Not(
            "only the module knows its tools; `sinew spec lint --device` and `sinew spec diff FILE device:ID` compare with a running one",
        ),
    ),
    ("8", "The specification adheres to the template and the guidelines.", By(&[&SECTION_HEADING, &TABLE_SHAPE])),
    (
        "8",
        "The specification is accurate and up to date with the tool's behaviour.",
        By(&[&TABLE_SCHEMA, &EXAMPLE_INVALID]),
    ),
    (
        "8",
        "Tools are properly versioned when changes are made.",
        Not(
            "one document shows no changes; `sinew spec diff` reports a version that is too small, that went down (`version-lowered`) or that is gone (`version-removed`), and `sinew spec lock --check` refuses one that went down",
        ),
    ),
    ("9", "The template and the guidelines may be updated.", Not("it requires nothing of a document")),
];

/// The table for the reference page.
pub fn table() -> String {
    let mut page = String::from(
        "## The standard, sentence by sentence\n\nThe standard is the meta-specification of `MCP_TOOL_SPECIFICATION.md` files: \
         what each of the eight sections must say. Its sections are numbered as in the standard itself, and 3.1 is the first \
         point of section 3. Most sentences are about one document, which the rules below check. What only two versions \
         show is checked by comparing them.\n\n| Section | The standard asks | Checked by |\n| :--- | :--- | :--- |\n",
    );
    for (section, sentence, checked) in SENTENCES {
        let checked = match checked {
            By(rules) => rules.iter().map(|rule| format!("[`{0}`](#{0})", rule.id)).collect::<Vec<_>>().join(", "),
            Not(why) => format!("no rule: {why}"),
        };
        let _ = writeln!(page, "| {section} | {sentence} | {checked} |");
    }
    page
}
