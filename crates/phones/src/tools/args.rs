//! Reading arguments, with the error texts of the remote-control reference.
//!
//! An explicit null counts as absent.

use std::ops::RangeInclusive;

use serde_json::{Value, json};
use sinew_tool::{Args, ErrorKind, ToolError};

/// A wrong argument. `message` is what callers of the reference read; the details are those of an argument that does not
/// fit the schema, from which other callers get the gateway's words. `parameter` may stand in the words of a message:
/// `Parameter 'x'`.
pub(super) fn invalid(parameter: &str, message: impl Into<String>) -> ToolError {
    let message = message.into();
    let name = parameter.strip_prefix("Parameter '").and_then(|name| name.strip_suffix('\'')).unwrap_or(parameter);
    let words = [format!("Parameter '{name}' "), format!("{name} "), capitalised(name) + " "];
    let issue = match words.iter().find_map(|words| message.strip_prefix(words)) {
        Some(issue) => issue.replacen(", got: ", ", got ", 1),
        None if message.starts_with("Missing required parameter") => {
            let rest = message.split_once("': ").map(|(_, rest)| format!(": {rest}")).unwrap_or_default();
            format!("is missing{rest}")
        }
        None => message.clone(),
    };
    let details = json!({"parameter_name": name, "issue": issue});
    ToolError::new(ErrorKind::InvalidArguments, message).with_details(details)
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

fn given<'a>(args: &'a Args, name: &str) -> Option<&'a Value> {
    args.get(name).filter(|value| !value.is_null())
}

/// A number that must be there.
pub(super) fn number(args: &Args, name: &str) -> Result<f32, ToolError> {
    let value = given(args, name).ok_or_else(|| invalid(name, format!("Missing required parameter: '{name}'")))?;
    number_of(value, &format!("Parameter '{name}'"))
}

pub(super) fn number_of(value: &Value, what: &str) -> Result<f32, ToolError> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN) as f32;
            match number.is_finite() {
                true => Ok(number),
                false => Err(invalid(what, format!("{what} must be a finite number, got: '{value}'"))),
            }
        }
        Value::String(text) => Err(invalid(what, format!("{what} must be a number, got string: '{text}'"))),
        _ => Err(invalid(what, format!("{what} must be a number"))),
    }
}

/// An integer that may be left out, or come as `300.0`.
pub(super) fn integer(args: &Args, name: &str, default: i64, range: RangeInclusive<i64>) -> Result<i64, ToolError> {
    let Some(value) = given(args, name) else { return Ok(default) };
    let what = &format!("Parameter '{name}'");
    number_of(value, what)?;
    let whole = value.as_i64().or_else(|| {
        value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15).map(|number| number as i64)
    });
    let whole = whole.ok_or_else(|| invalid(what, format!("{what} must be an integer, got: '{value}'")))?;
    if !range.contains(&whole) {
        let (least, most) = (range.start(), range.end());
        return Err(invalid(what, format!("{what} must be between {least} and {most}, got: {whole}")));
    }
    Ok(whole)
}

/// Milliseconds from 1 to 60000.
pub(super) fn duration(args: &Args, default: i64) -> Result<u64, ToolError> {
    integer(args, "duration", default, 1..=60_000).map(i64::unsigned_abs)
}

/// Milliseconds from 1 to 30000; a number in a string is taken for what it means.
pub(super) fn timeout(args: &Args, default: i64) -> Result<u64, ToolError> {
    let milliseconds = match given(args, "timeout") {
        None => default,
        Some(Value::String(text)) => text
            .trim()
            .parse()
            .map_err(|_| invalid("timeout", format!("Parameter 'timeout' must be a number, got string: '{text}'")))?,
        Some(_) => integer(args, "timeout", default, i64::MIN..=i64::MAX)?,
    };
    match milliseconds {
        1..=30_000 => Ok(milliseconds.unsigned_abs()),
        _ => Err(invalid("timeout", format!("Timeout must be between 1 and 30000 ms, got: {milliseconds}"))),
    }
}

/// Text that may be left out; numbers and truth values count as their text.
pub(super) fn text(args: &Args, name: &str) -> Result<Option<String>, ToolError> {
    match given(args, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(value.to_string())),
        Some(_) => Err(invalid(name, format!("Parameter '{name}' must be a string"))),
    }
}

pub(super) fn required_text(args: &Args, name: &str) -> Result<String, ToolError> {
    text(args, name)?.ok_or_else(|| invalid(name, format!("Missing required parameter '{name}'")))
}

/// Text with something in it.
pub(super) fn filled_text(args: &Args, name: &str) -> Result<String, ToolError> {
    let text = required_text(args, name)?;
    match text.is_empty() {
        true => Err(invalid(name, format!("Parameter '{name}' must be non-empty"))),
        false => Ok(text),
    }
}

pub(super) fn boolean(args: &Args, name: &str) -> Result<Option<bool>, ToolError> {
    match given(args, name) {
        None => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(*truth)),
        Some(Value::String(text)) if text == "true" || text == "false" => Ok(Some(text == "true")),
        Some(value) => Err(invalid(name, format!("Parameter '{name}' must be true or false, got: {value}"))),
    }
}

/// One word of several, in any case.
pub(super) fn word<'a>(args: &Args, name: &str, words: &[&'a str]) -> Result<Option<&'a str>, ToolError> {
    let value = match given(args, name) {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(value) => return Err(invalid(name, format!("Parameter '{name}' must be a string, got: {value}"))),
    };
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(value));
    found.copied().map(Some).ok_or_else(|| {
        invalid(name, format!("Parameter '{name}' must be one of: {}. Got: '{value}'", words.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(value: Value) -> Args {
        value.as_object().cloned().unwrap_or_default()
    }

    fn message<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn numbers_are_read_with_the_references_texts() {
        let number = |value: Value| number(&args(json!({"x": value})), "x");
        assert_eq!(number(json!(5)), Ok(5.0));
        assert_eq!(message(number(json!(null))), "Missing required parameter: 'x'");
        assert_eq!(message(number(json!("5"))), "Parameter 'x' must be a number, got string: '5'");
        assert_eq!(message(number(json!([5]))), "Parameter 'x' must be a number");
        assert!(message(number(json!(1e300))).starts_with("Parameter 'x' must be a finite number, got: '"));
    }

    #[test]
    fn every_wrong_argument_has_an_issue_that_continues_a_sentence() {
        let issue = |error: ToolError| error.details["issue"].as_str().unwrap_or_default().to_owned();
        let none = args(json!({}));
        assert_eq!(issue(number(&none, "x").unwrap_err()), "is missing");
        assert_eq!(issue(required_text(&none, "text").unwrap_err()), "is missing");
        let slow = args(json!({"timeout": 30_001, "duration": 0}));
        assert_eq!(issue(timeout(&slow, 1).unwrap_err()), "must be between 1 and 30000 ms, got 30001");
        assert_eq!(issue(duration(&slow, 1).unwrap_err()), "must be between 1 and 60000, got 0");
        assert_eq!(issue(invalid("do", "Missing required parameter 'do': open or act")), "is missing: open or act");
        assert_eq!(issue(invalid("app", "No app is called 'x'")), "No app is called 'x'");
    }

    #[test]
    fn durations_are_whole_and_in_range() {
        let duration = |value: Value| duration(&args(json!({"duration": value})), 300);
        assert_eq!(duration(json!(null)), Ok(300));
        assert_eq!(duration(json!(300.0)), Ok(300));
        assert_eq!(message(duration(json!(1.5))), "Parameter 'duration' must be an integer, got: '1.5'");
        assert_eq!(message(duration(json!(0))), "Parameter 'duration' must be between 1 and 60000, got: 0");
        assert_eq!(message(duration(json!("5"))), "Parameter 'duration' must be a number, got string: '5'");
    }

    #[test]
    fn a_timeout_in_a_string_is_understood_not_swallowed() {
        let timeout = |value: Value| timeout(&args(json!({"timeout": value})), 5000);
        assert_eq!(timeout(json!("2000")), Ok(2000));
        assert_eq!(timeout(json!(null)), Ok(5000));
        assert_eq!(message(timeout(json!(30_001))), "Timeout must be between 1 and 30000 ms, got: 30001");
        assert_eq!(message(timeout(json!("soon"))), "Parameter 'timeout' must be a number, got string: 'soon'");
    }

    #[test]
    fn words_are_found_in_any_case() {
        let word = |value: Value| word(&args(json!({"direction": value})), "direction", &["up", "down"]);
        assert_eq!(word(json!("UP")), Ok(Some("up")));
        assert_eq!(word(json!(null)), Ok(None));
        assert_eq!(message(word(json!("x"))), "Parameter 'direction' must be one of: up, down. Got: 'x'");
        assert_eq!(message(word(json!(5))), "Parameter 'direction' must be a string, got: 5");
    }
}
