//! The same mistakes as other people make them: in other quotes, languages and forms. And what looks like a mistake to
//! a hasty reader, and is none.

use std::collections::BTreeSet;

use sinew_spec::Document;
use sinew_spec::lint::{self, LintConfig};

const GOOD: &str = include_str!("cases/read_file.md");

fn found(text: &str) -> BTreeSet<&'static str> {
    lint::check(&Document::parse(text), &LintConfig::default()).iter().map(|finding| finding.rule.id).collect()
}

/// The good document with another part.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the document");
    GOOD.replacen(from, to, 1)
}

/// The good document with another section.
fn with_section(number: usize, body: &str) -> String {
    let at = |number: usize| GOOD.find(&format!("### {number}. ")).unwrap_or(GOOD.len());
    let heading = GOOD[at(number)..].lines().next().unwrap();
    format!("{}{heading}\n\n{body}\n\n{}", &GOOD[..at(number)], &GOOD[at(number + 1)..])
}

const STATUS: &str = "`enum[\"success\", \"failure\"]` | Whether the file was read.";
const PROPERTIES: &str = "    \"max_lines\": {";
const NUMBER_CELL: &str = "How many lines to return at most, 1 to 10000. | `100` |";

#[test]
fn a_mistake_is_reported_in_whatever_form_it_comes() {
    let property = |schema: &str| with(PROPERTIES, &format!("    \"more\": {schema},\n{PROPERTIES}"));
    let status = |cell: &str| with(STATUS, cell);
    let cases: Vec<(&str, String)> = vec![
        ("hidden-text", with("Tools that", "Tools <span style=\"display:none\">ignore the rest</span> that")),
        ("hidden-text", with("Tools that", "Tools <b hidden>ignore the rest</b> that")),
        ("hidden-text", with("Tools that", "Tools \u{1b}[8mthat")),
        ("hidden-text", with("\"The file to read", "\"The \\u001b[8mfile to read")),
        ("ignore-invalid", with("Tools that", "<!-- sinew: disable split-tool -->\n\nTools that")),
        ("ignore-invalid", with("Tools that", "<!-- SINEW:IGNORE because of it -->\n\nTools that")),
        ("section-empty", with_section(8, "TBD")),
        ("section-empty", with_section(5, "*To be defined.*")),
        ("section-empty", with_section(6, "…")),
        (
            "parameter-description",
            with("The file to read, relative to the workspace. | `\"src", "TODO | `\"src").replacen(
                "\"The file to read, relative to the workspace.\"",
                "\"TBD\"",
                1,
            ),
        ),
        ("parameter-description", with("\"required\": [\"target_file\"]", "\"required\": [\"target_fle\"]")),
        ("field-description", with("The lines, as they are in the file.", "See above")),
        ("array-items", property(r#"{"type": ["array", "null"], "description": "Words to find."}"#)),
        ("array-items", property(r#"{"type": "array", "items": {}, "description": "Words to find."}"#)),
        (
            "array-items",
            property(r#"{"anyOf": [{"type": "array"}, {"type": "null"}], "description": "Words to find."}"#),
        ),
        ("array-items", property(r#"{"type": "array", "items": {"type": "array"}, "description": "Words to find."}"#)),
        ("object-members", property(r#"{"type": "object", "properties": {}, "description": "Words to find."}"#)),
        ("object-members", property(r#"{"type": "object", "additionalProperties": true, "description": "Words."}"#)),
        ("object-members", property(r#"{"type": "array", "items": {"type": "object"}, "description": "Words."}"#)),
        (
            "nested-description",
            property(
                r#"{"oneOf": [{"type": "object", "properties": {"a": {"type": "string", "description": " "}}}], "description": "x"}"#,
            ),
        ),
        ("example-type", with(NUMBER_CELL, "How many lines to return at most, 1 to 10000. | ten |")),
        ("example-type", property(r#"{"type": "integer", "examples": ["ten"], "description": "How many words."}"#)),
        (
            "example-type",
            property(r#"{"type": "string", "enum": ["a", "b"], "default": "c", "description": "Which."}"#),
        ),
        (
            "example-type",
            property(r#"{"type": "array", "items": {"type": "integer"}, "example": ["1"], "description": "Which."}"#),
        ),
        (
            "example-type",
            with(
                "| `text` | `string` | The lines, as they are in the file. | `\"import os\"` |",
                "| `text` | `array[string]` | The lines, as they are in the file. | `[1, 2]` |",
            ),
        ),
        ("example-type", with("| `\"success\"` |", "| `\"maybe\"` |")),
        ("status-values", status("`string` | ‘success’ or ‘failure’.")),
        ("status-values", status("`string` | «success» ou «failure».")),
        ("status-values", status("`string` | „success“ oder „failure“.")),
        ("status-values", status("`string` | One of success, failure.")),
        ("status-values", status("`string` | success/failure")),
        ("output-status", status("`enum[\"ok\", \"done\"]` | How it went.")),
        ("output-status", status("`string` | The tool's answer: 'ok' or 'done'.")),
        ("errors-unstated", with_section(5, "Standard errors.")),
        ("errors-unstated", with_section(5, "Errors are handled gracefully by the tool and reported to the caller.")),
        (
            "errors-unstated",
            with_section(
                5,
                "If anything goes wrong while the tool is running, then an error will be returned to the caller with a \
             descriptive message and details, as usual.",
            ),
        ),
        ("errors-unstated", with_section(5, "TODO: list the errors.")),
        ("error-repeated", with_section(5, "- FileNotFound: no such file.\n- FileNotFound: the folder is empty.")),
        ("error-repeated", with_section(5, "| Code | Cause |\n|---|---|\n| `E_IO` | disk |\n| `E_IO` | network |")),
        ("idempotency-unstated", with_section(6, "- **Idempotent**: Probably yes.")),
        ("idempotency-unstated", with_section(6, "- **Idempotent**: Mostly")),
        ("idempotency-unstated", with_section(6, "It should be idempotent, I think.")),
        (
            "idempotency-conflict",
            with_section(6, "- **Idempotent**: ❌ — each call appends one more line to the file."),
        ),
        ("hints-conflict", with("`readOnlyHint=true`", "`readOnlyHint=true`, `idempotentHint=false`")),
        ("hints-conflict", GOOD.replace("files.read_text", "files.text_delete")),
        (
            "hints-conflict",
            GOOD.replace("files.read_text", "files.deleteText").replace("readOnlyHint=true", "destructiveHint=false"),
        ),
        ("name-unstable", GOOD.replace("files.read_text", "files.readTextV2")),
        ("name-unstable", GOOD.replace("files.read_text", "files.read_2025_01")),
        (
            "example-shape",
            with(
                "{\n  \"tool_name\"",
                "{\n  \"tool_call\": {\"name\": \"files.read_text\", \"arguments\": {\"target_file\": \"a\"}}}\n{\n  \"tool_name\"",
            ),
        ),
        (
            "example-wrong-tool",
            with_section(7, "```json\n[{\"tool_name\": \"read\", \"arguments\": {\"target_file\": \"a\"}}]\n```"),
        ),
        (
            "example-invalid",
            with_section(
                7,
                "```json\n[{\"tool_name\": \"files.read_text\", \"arguments\": {\"target_file\": 5}}]\n```",
            ),
        ),
        (
            "table-schema",
            property(r#"{"type": "string", "enum": ["a", "c"], "description": "Which one of them."}"#).replacen(
                "| `max_lines` | `integer` |",
                "| `more` | `enum[\"a\", \"b\"]` | No | Which one of them. | `\"a\"` |\n| `max_lines` | `integer` |",
                1,
            ),
        ),
        (
            "table-schema",
            property(r#"{"type": "array", "items": {"type": "integer"}, "description": "All of them."}"#).replacen(
                "| `max_lines` | `integer` |",
                "| `more` | `array[string]` | No | All of them. | `[\"a\"]` |\n| `max_lines` | `integer` |",
                1,
            ),
        ),
        ("security-boilerplate", with_section(8, "No known issues.")),
        (
            "security-boilerplate",
            with_section(
                8,
                "Users should make sure that they have proper authorization before using this tool in production systems.",
            ),
        ),
        ("security-boilerplate", with_section(8, "There are no security considerations, because this tool is safe.")),
        ("description-vague", with_section(1, "This tool reads texts of files.")),
        (
            "split-tool",
            property(
                r#"{"type": "string", "enum": ["create_it", "read_it", "delete_it"], "description": "What to do."}"#,
            ),
        ),
        (
            "split-tool",
            property(
                r#"{"oneOf": [{"const": "create"}, {"const": "copy"}, {"const": "move"}], "description": "What to do."}"#,
            ),
        ),
        ("split-tool", GOOD.replace("files.read_text", "files.readAndDelete")),
        (
            "format-missing",
            property(
                r#"{"type": "string", "description": "When it was changed.", "examples": ["2025-01-01T00:00:00Z"]}"#,
            )
            .replace("\"more\"", "\"changed_at\""),
        ),
        (
            "untestable-result",
            with(
                "| `text` | `string` | The lines, as they are in the file. | `\"import os\"` |",
                "| `text` | `object \\| null` | The lines, as they are in the file. | `{\"a\": 1}` |",
            ),
        ),
    ];
    let missed: Vec<String> = cases
        .iter()
        .filter(|(rule, text)| !found(text).contains(rule))
        .map(|(rule, text)| format!("{rule} is not reported, but {:?}, for\n{}", found(text), changed(text)))
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The lines that are not in the good document.
fn changed(text: &str) -> String {
    let good: BTreeSet<&str> = GOOD.lines().collect();
    text.lines().filter(|line| !good.contains(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_only_looks_like_a_mistake_is_not_reported() {
    let property = |schema: &str| with(PROPERTIES, &format!("    \"more\": {schema},\n{PROPERTIES}"));
    let status = |cell: &str| with(STATUS, cell);
    let output =
        |schema: &str| with("| Field Name |", &format!("**JSON Schema:**\n\n```json\n{schema}\n```\n\n| Field Name |"));
    let cases: Vec<(&str, String)> = vec![
        ("hidden-text", with("Tools that", "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Tools that")),
        ("hidden-text", with("Tools that", "Tools for `<div hidden>` that")),
        ("hidden-text", with("Tools that", "Tools for <td style=\"color:red\">files</td> that")),
        ("ignore-invalid", with("Tools that", "<!-- sinew spec checks this file -->\n\nTools that")),
        ("section-empty", with_section(6, "Yes: reading changes nothing.")),
        (
            "array-items",
            property(
                r#"{"type": "array", "prefixItems": [{"type": "string", "description": "x"}], "description": "x"}"#,
            ),
        ),
        ("array-items", property(r##"{"type": "array", "$ref": "#/properties/max_lines", "description": "x"}"##)),
        (
            "object-members",
            property(r#"{"type": "object", "additionalProperties": {"type": "string"}, "description": "x"}"#),
        ),
        (
            "nested-description",
            property(r#"{"type": "object", "properties": {"kind": {"const": "a"}}, "description": "x"}"#),
        ),
        ("example-type", property(r#"{"type": "string", "default": null, "description": "Which one."}"#)),
        ("example-type", with(NUMBER_CELL, "How many lines to return at most, 1 to 10000. | e.g. 10, or 20 |")),
        ("example-type", with("| `\"import os\"` |", "| `42` |")),
        (
            "example-type",
            with(
                "| `text` | `string` | The lines, as they are in the file. | `\"import os\"` |",
                "| `text` | `array[string]` | The lines, as they are in the file. | `[\"a\", ...]` |",
            ),
        ),
        ("output-status", status("`string` | Whether the tool's call worked, as the caller's log says.")),
        ("output-status", status("`string` | `success`, or the code of the error.")),
        ("output-status", status("`enum[\"OK\", \"KO\"]` | How it went.")),
        ("output-status", status("`enum[\"done\", \"aborted\"]` | How it went.")),
        (
            "output-status",
            output(
                r##"{"$ref": "#/$defs/answer", "$defs": {"answer": {"type": "object", "properties": {"status": {"enum": ["ok", "failed"]}}}}}"##,
            ),
        ),
        (
            "output-status",
            output(
                r#"{"oneOf": [{"properties": {"status": {"const": "success"}}}, {"properties": {"status": {"const": "failure"}}}]}"#,
            ),
        ),
        ("output-status", output(r#"{"properties": {"status": {"oneOf": [{"const": "ok"}, {"const": "error"}]}}}"#)),
        (
            "status-values",
            output(r#"{"properties": {"status": {"type": "string", "oneOf": [{"const": "ok"}, {"const": "error"}]}}}"#),
        ),
        (
            "error-shape",
            output(
                r##"{"properties": {"status": {"enum": ["ok", "failed"]}, "error": {"anyOf": [{"$ref": "#/$defs/e"}, {"type": "null"}]}}, "$defs": {"e": {"properties": {"error_type": {}, "error_message": {}}}}}"##,
            ),
        ),
        ("errors-unstated", with_section(5, "- FileNotFound: no such file.\n- OutOfRange: too many lines.")),
        ("errors-unstated", with_section(5, "- **404:** no such file.\n- **500:** the disk failed.")),
        ("errors-unstated", with_section(5, "- `timeout`: the disk is slow.")),
        ("errors-unstated", with_section(5, "- `E1`: no such file.\n- `E2`: too many lines.")),
        ("errors-unstated", with_section(5, "- E1: no such file.\n- E2: too many lines.")),
        ("errors-unstated", with_section(5, "- `1`: no such file.\n- `2`: too many lines.")),
        ("errors-unstated", with_section(5, "Cannot fail, because it only returns a constant.")),
        (
            "errors-unstated",
            with_section(
                5,
                "A path outside the workspace is refused. A file that does not exist, or that the gateway may not open, ends \
             the call, and so does a disk that stops answering.",
            ),
        ),
        ("idempotency-unstated", with_section(6, "- **Idempotent**: ✅ reading changes nothing.")),
        ("idempotency-unstated", with_section(6, "Reading is safe to retry, since nothing is changed.")),
        ("hints-conflict", GOOD.replace("files.read_text", "files.format_date")),
        ("hints-conflict", GOOD.replace("files.read_text", "files.list_deleted")),
        ("name-unstable", GOOD.replace("files.read_text", "files.get_latest")),
        ("name-unstable", GOOD.replace("files.read_text", "files.iso_8601_parse")),
        (
            "example-missing",
            with_section(
                7,
                "```json\n[{\"tool_name\": \"files.read_text\", \"arguments\": {\"target_file\": \"a\"}}]\n```",
            ),
        ),
        (
            "example-missing",
            with_section(
                7,
                "```json\n{\"type\": \"tool_use\", \"name\": \"files.read_text\", \"input\": {\"target_file\": \"a\"}}\n```",
            ),
        ),
        ("split-tool", GOOD.replace("files.read_text", "files.search_and_replace")),
        (
            "split-tool",
            property(r#"{"type": "string", "enum": ["open", "close"], "description": "The blinds' new place."}"#),
        ),
        (
            "format-missing",
            property(r#"{"type": "string", "description": "Its name.", "examples": ["door"]}"#)
                .replace("\"more\"", "\"look_at\""),
        ),
        ("required-unclear", with("| `max_lines` | `integer` | No |", "| `max_lines` | `integer` | Não |")),
        ("required-unclear", with("| `max_lines` | `integer` | No |", "| `max_lines` | `integer` | 可选 |")),
        ("required-unclear", with("| `max_lines` | `integer` | No |", "| `max_lines` | `integer` | необязательно |")),
        (
            "security-boilerplate",
            with_section(8, "Requires an API token, which is stored encrypted and never leaves the gateway."),
        ),
        ("no-tools", "# Protokoll\n\nDieses Modul stellt keine Werkzeuge bereit.\n".to_owned()),
        ("no-tools", "# Journal\n\nCe module n'expose aucun outil MCP.\n".to_owned()),
        ("no-tools", "# 日志\n\n本模块没有工具。\n".to_owned()),
    ];
    let alarms: Vec<String> = cases
        .iter()
        .filter(|(rule, text)| found(text).contains(rule))
        .map(|(rule, text)| format!("{rule} is reported for\n{}", changed(text)))
        .collect();
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}
