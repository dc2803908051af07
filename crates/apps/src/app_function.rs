//! AppFunctions through `cmd app_function`, which Android has since version 16. Its output differs between builds,
//! and failures may exit with 0, so the printed text decides.

use std::time::Duration;

use serde_json::Value;
use sinew_tool::{ErrorKind, ToolError, lenient};

use sinew_phones::adb::command::ShellCommand;

/// What the command of this phone supports, read from its help: builds of one Android version differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppFunctionSupport {
    pub list: bool,
    pub timeout: bool,
}

/// Builds differ in the stream to which they print the help.
pub(crate) fn help_command() -> ShellCommand {
    ShellCommand::new("cmd app_function help 2>&1")
}

impl AppFunctionSupport {
    pub fn parse(help: &str) -> AppFunctionSupport {
        AppFunctionSupport { list: help.contains("list-app-functions"), timeout: help.contains("--timeout-duration") }
    }
}

pub(crate) fn list_command() -> ShellCommand {
    ShellCommand::new("cmd app_function list-app-functions")
}

/// The phone's timeout is a second shorter than ours, so that its own error message arrives.
pub(crate) fn execute_command(
    package: &str,
    function: &str,
    parameters: &str,
    support: AppFunctionSupport,
    limit: Duration,
) -> ShellCommand {
    let command = ShellCommand::new("cmd app_function execute-app-function --package").arg(package);
    let command = command.literal("--function").arg(function).literal("--parameters").arg(parameters);
    match support.timeout {
        true => command.literal("--timeout-duration").arg(limit.as_secs().saturating_sub(1).max(1)),
        false => command,
    }
}

/// The member that holds what the function returned.
const RETURNED: &str = "androidAppfunctionsReturnValue";

/// What a function returned: JSON, or the text of a build that prints no JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FunctionResult {
    Nothing,
    Json(Value),
    Text(String),
}

/// Reads the output of a call. `schema` is the function's output schema.
pub(crate) fn parse(text: &str, schema: Option<&Value>) -> Result<FunctionResult, ToolError> {
    let text = text.trim();
    // Some builds print an empty document and then wait for a second one until they time out.
    if text.starts_with("{}") {
        return Ok(FunctionResult::Nothing);
    }
    if let Some(failure) = failure(text) {
        return Err(failure);
    }
    if let Some(rest) = text.strip_prefix("App function executed successfully.") {
        return Ok(match rest.trim().trim_start_matches("Function return:").trim() {
            "" => FunctionResult::Nothing,
            rest => FunctionResult::Text(rest.to_owned()),
        });
    }
    let start = text.find(['{', '[']).unwrap_or(text.len());
    let json = lenient::repair_text(&text[start..]);
    match serde_json::Deserializer::from_str(&json).into_iter::<Value>().next() {
        Some(Ok(Value::Object(mut object))) => Ok(match object.remove(RETURNED) {
            Some(value) => FunctionResult::Json(unwrapped(value, schema)),
            None if object.is_empty() => FunctionResult::Nothing,
            None => FunctionResult::Json(unwrapped(Value::Object(object), schema)),
        }),
        Some(Ok(value)) => Ok(FunctionResult::Json(unwrapped(value, schema))),
        _ => {
            let line: String = text.lines().next().unwrap_or("nothing").chars().take(200).collect();
            Err(ToolError::new(ErrorKind::BadAnswer, format!("`cmd app_function` printed no JSON but: {line}")))
        }
    }
}

/// Every value is printed as an array, also a single one. The schema says which are lists; without a schema, an
/// array of one element is read as a single value, which is far more common.
fn unwrapped(value: Value, schema: Option<&Value>) -> Value {
    let is_list = schema.is_some_and(|schema| has_type(schema, "array"));
    match value {
        Value::Array(items) if is_list => {
            let of = schema.and_then(|schema| schema.get("items"));
            items.into_iter().map(|item| unwrapped(item, of)).collect()
        }
        Value::Array(mut items) if items.len() == 1 => unwrapped(items.remove(0), schema),
        Value::Array(items) => items.into_iter().map(|item| unwrapped(item, None)).collect(),
        Value::Object(object) => {
            let of = |key: &str| schema.and_then(|schema| schema.get("properties")?.get(key));
            object.into_iter().map(|(key, value)| (key.clone(), unwrapped(value, of(&key)))).collect()
        }
        plain => plain,
    }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

fn failure(text: &str) -> Option<ToolError> {
    let line = |start: &str| text.lines().map(str::trim).find(|line| line.starts_with(start));
    let short = |line: &str| line.chars().take(300).collect::<String>();
    if let Some(failed) = line("Error executing app function:") {
        let (kind, meaning) = match code(failed) {
            Some(1000) => (ErrorKind::PermissionDenied, "the phone or the app does not permit adb to call it"),
            Some(1001) => (ErrorKind::InvalidArguments, "the app refused the arguments"),
            Some(1002) => (ErrorKind::PermissionDenied, "the function is disabled on the phone"),
            Some(1003) => (ErrorKind::ActionFailed, "the app no longer has this function"),
            Some(2002) => (ErrorKind::PermissionDenied, "the phone's policy forbids it"),
            _ => (ErrorKind::ActionFailed, "the app or Android failed"),
        };
        return Some(ToolError::new(kind, format!("{meaning}: {}", short(failed))));
    }
    if line("Timed out").is_some() {
        let message = "the app did not answer in time; it is unknown whether the call took effect";
        return Some(ToolError::new(ErrorKind::Timeout, message));
    }
    if text.contains("Can't find service: app_function") || text.contains("No shell command implementation") {
        let message = "this phone's Android has no `cmd app_function`; it needs Android 16 or newer";
        return Some(ToolError::new(ErrorKind::Unsupported, message));
    }
    let complaints = ["Exception: ", "Error: ", "Unknown option", "Failed to convert", "Only allow shell"];
    let failed = complaints.iter().find_map(|start| line(start))?;
    let kind = if failed.contains("JSONException") { ErrorKind::InvalidArguments } else { ErrorKind::ActionFailed };
    Some(ToolError::new(kind, format!("`cmd app_function` failed: {}", short(failed))))
}

/// Reads the code in `… (code 1001). See logcat …`, or in earlier builds `Error executing app function: 1001 - …`.
fn code(line: &str) -> Option<u32> {
    let digits = match line.rsplit_once("(code ") {
        Some((_, rest)) => rest,
        None => line.split_once(": ")?.1,
    };
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_output_of_every_known_build_is_read() {
        let value = |text: &str| parse(text, None).unwrap();
        assert_eq!(value("{\"androidAppfunctionsReturnValue\": [true]}"), FunctionResult::Json(json!(true)));
        let half = r#"{"androidAppfunctionsReturnValue": ["a\ud83d"]}"#;
        assert_eq!(value(half), FunctionResult::Json(json!("a\u{fffd}")), "half a surrogate pair");
        let nested = r#"{ "androidAppfunctionsReturnValue": [ {"id": ["n1"], "tags": ["a", "b"]} ] }"#;
        assert_eq!(value(nested), FunctionResult::Json(json!({"id": "n1", "tags": ["a", "b"]})));
        let schema =
            json!({"type": "object", "properties": {"tags": {"type": ["array", "null"], "items": {"type": "string"}}}});
        let one = r#"{ "androidAppfunctionsReturnValue": [ {"id": ["n1"], "tags": ["a"]} ] }"#;
        assert_eq!(parse(one, Some(&schema)), Ok(FunctionResult::Json(json!({"id": "n1", "tags": ["a"]}))));
        assert_eq!(value("{}\nTimed out"), FunctionResult::Nothing);
        assert_eq!(value("Invalid user ID: x Using current user.\n{}\n"), FunctionResult::Nothing);
        assert_eq!(value("[{\"a\": [1]}]"), FunctionResult::Json(json!({"a": 1})));
        let plain = "App function executed successfully.\nFunction return:\nGenericDocument {\n}";
        assert_eq!(value(plain), FunctionResult::Text("GenericDocument {\n}".to_owned()));
        assert_eq!(value("App function executed successfully."), FunctionResult::Nothing);
    }

    #[test]
    fn every_failure_has_its_kind() {
        let kind = |text: &str| parse(text, None).unwrap_err().kind;
        let coded = |code: u32| {
            format!(
                "Error executing app function: android.app.appfunctions.AppFunctionException: no (code {code}). See logcat for more details."
            )
        };
        assert_eq!(kind(&coded(1000)), ErrorKind::PermissionDenied);
        assert_eq!(kind(&coded(1001)), ErrorKind::InvalidArguments);
        assert_eq!(kind(&coded(1002)), ErrorKind::PermissionDenied);
        assert_eq!(kind(&coded(3000)), ErrorKind::ActionFailed);
        assert_eq!(kind("Error executing app function: 1001 - x"), ErrorKind::InvalidArguments);
        assert_eq!(kind("Timed out"), ErrorKind::Timeout);
        assert_eq!(kind("cmd: Can't find service: app_function"), ErrorKind::Unsupported);
        assert_eq!(kind("Exception: org.json.JSONException: x"), ErrorKind::InvalidArguments);
        assert_eq!(kind("Error: --package must be specified."), ErrorKind::ActionFailed);
        for odd in ["", "{", "hello", "{\"a\":"] {
            assert_eq!(kind(odd), ErrorKind::BadAnswer, "{odd}");
        }
    }

    #[test]
    fn a_function_is_called_in_one_quoted_line() {
        let support = AppFunctionSupport::parse(
            "  list-app-functions [--user U]\n  execute-app-function … [--timeout-duration S]",
        );
        assert_eq!(support, AppFunctionSupport { list: true, timeout: true });
        let line = execute_command("a.b", "a.B#go", "{\"t\":\"it's\"}", support, Duration::from_secs(30));
        assert_eq!(
            line.line(),
            "cmd app_function execute-app-function --package 'a.b' --function 'a.B#go' --parameters '{\"t\":\"it'\\''s\"}' --timeout-duration '29'"
        );
    }
}
