//! The file of a recorded routine.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::RecordedStep;
use super::inputs::Parameter;
use crate::routine::DEVICE_PARAMETER;

/// How long a screen may take to come up, in milliseconds.
const SCREEN_TIME: u32 = 5_000;
/// Characters of an answer that are shown as an example.
const MAX_EXAMPLE: usize = 40;

/// What can go wrong with any routine.
const FAILURES: &str = "\
- `DeviceAway`: a device of its steps is not connected.
- `ElementNotFound`: the screen looks different. The error names the step and what is there.

A failure is an object; the steps before the one that it names were done.

```json
{\"status\": \"failure\", \"error_type\": \"DeviceAway\", \"error_message\": \"step 1: the device is away\"}
```
";

pub(super) fn write(
    name: &str,
    parameters: &[Parameter],
    steps: &[RecordedStep],
    returned: Option<(String, &Value)>,
) -> String {
    let mut text = format!("# Routine {name}\n\n## Tool: {name}\n\n**Version**: 1.0.0\n\n");
    let _ = write!(text, "### 1. Tool Purpose and Description\n\n{}\n\n", purpose(steps));
    let _ = write!(text, "### 2. Invocation Name\n\n`{name}`\n\n### 3. Input Schema (Parameters)\n\n");
    text.push_str(&input(parameters));
    let _ =
        write!(text, "### 4. Output Schema (Return Value)\n\n{}\n", output(returned.as_ref().map(|(_, value)| *value)));
    let _ = write!(text, "### 5. Error Handling\n\n{FAILURES}\n");
    text.push_str("### 6. Idempotency\n\n- **Idempotent**: No\n");
    text.push_str("- **Explanation**: each call carries all steps out again.\n\n");
    text.push_str("### 7. Usage Examples (for MCP context)\n\n");
    let arguments: Map<String, Value> =
        parameters.iter().map(|parameter| (parameter.name.clone(), parameter.example.clone())).collect();
    let _ = write!(text, "```json\n{}\n```\n\n", json!({"tool_name": name, "arguments": arguments}));
    text.push_str("### 8. Security Considerations\n\n");
    text.push_str("It does what its steps do, with the rights of the caller and no others.\n\n");
    let _ = write!(text, "### Steps\n\n```yaml\n{}", steps.iter().map(step).collect::<String>());
    let answer = returned.map_or_else(String::new, |(reference, _)| format!(", answer: {}", json!(reference)));
    let _ = writeln!(text, "- return: {{status: success{answer}}}");
    text + "```\n"
}

fn purpose(steps: &[RecordedStep]) -> String {
    let each_once = |name: fn(&RecordedStep) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        steps.iter().map(name).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names
    };
    let (devices, tools) = (each_once(|step| &step.device), each_once(|step| &step.tool));
    let listed = |names: &[&str]| match names.len() {
        0..=6 => names.join(", "),
        count => format!("{} and {} more", names[..6].join(", "), count - 6),
    };
    format!("Carries out {} recorded steps on {}: {}.", steps.len(), listed(&devices), listed(&tools))
}

fn input(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "This tool takes no parameters.\n\n".to_owned();
    }
    let mut table =
        "| Parameter Name | Type | Required | Description | Example Value |\n|---|---|---|---|---|\n".to_owned();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for Parameter { name, schema, default, example } in parameters {
        let kind = schema["type"].as_str().unwrap_or_default();
        let needed = if default.is_none() { "Yes" } else { "No" };
        let about = describe(name, default.as_ref());
        let _ = writeln!(table, "| `{name}` | {kind} | {needed} | {} | {} |", in_table(&about), cell(example));
        let mut schema = schema.clone();
        schema["description"] = json!(about);
        schema["examples"] = json!([example]);
        match default {
            Some(default) => schema["default"] = default.clone(),
            None => required.push(name),
        }
        properties.insert(name.clone(), schema);
    }
    let schema = json!({"type": "object", "properties": properties, "required": required});
    format!("{table}\n**JSON Schema**:\n\n```json\n{schema:#}\n```\n\n")
}

fn describe(name: &str, default: Option<&Value>) -> String {
    let words = name.replace('_', " ");
    match default {
        Some(default) if name.starts_with(DEVICE_PARAMETER) => {
            format!("The {words} of the steps: an id, a given name or `label:NAME`. Default: {default}.")
        }
        Some(default) => format!("The {words} that the steps use. Default: {default}."),
        None => format!("The {words} that the steps use."),
    }
}

/// A value in a cell of a table.
fn cell(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = text.replace("{{", "{ {");
    format!("`{}`", in_table(&text).replace('`', " "))
}

/// A text without what would end a cell, a row or a file of text.
fn in_table(text: &str) -> String {
    let ends = |c: char| c == '|' || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if ends(c) { ' ' } else { c }).collect()
}

fn output(returned: Option<&Value>) -> String {
    let mut table = "| Field Name | Type | Description | Example Value |\n|---|---|---|---|\n".to_owned();
    table.push_str("| `status` | string | Whether all steps were done. | `success` |\n");
    let status =
        json!({"enum": ["success", "failure"], "description": "Whether all steps were done.", "examples": ["success"]});
    let mut schema = json!({"type": "object", "properties": {"status": status}, "required": ["status"]});
    if let Some(value) = returned {
        let text = value.get("text").filter(|_| value.as_object().map_or(0, Map::len) == 1);
        let value = text.unwrap_or(value);
        let kind = kind_of(value);
        let about = "What the last step answered.";
        let example: String = value.to_string().chars().take(MAX_EXAMPLE).collect();
        let _ = writeln!(table, "| `answer` | {kind} | {about} | {} |", cell(&json!(example)));
        schema["properties"]["answer"] = json!({"type": kind, "description": about});
        schema["required"] = json!(["status", "answer"]);
    }
    format!("{table}\n**JSON Schema**:\n\n```json\n{schema:#}\n```\n")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::String(_) | Value::Null => "string",
    }
}

fn step(step: &RecordedStep) -> String {
    let RecordedStep { on, tool, args, save, landmark, .. } = step;
    let mut text = format!("- call: {}\n  device: {}\n", plain(tool), flow(on));
    if !args.is_empty() {
        let _ = writeln!(text, "  arguments: {}", flow(&Value::Object(args.clone())));
    }
    if let Some(name) = save {
        let _ = writeln!(text, "  as: {name}");
    }
    if let Some(selector) = landmark {
        let condition = json!({"screen": selector, "device": on});
        let _ = writeln!(text, "- expect: {}\n  within: {SCREEN_TIME}", flow(&condition));
    }
    text
}

/// A name without quotes where it needs none.
fn plain(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && !["true", "false", "null"].contains(&name);
    if is_plain { name.to_owned() } else { json!(name).to_string() }
}

/// A value on one line, as people write it: names without quotes, texts with.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", plain(name), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        leaf => leaf.to_string(),
    }
}
