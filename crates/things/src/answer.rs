//! What a gadget answered, as the result of a tool.

use sinew_tool::lenient::repair_text;
use sinew_tool::text::clip;
use sinew_tool::{ErrorKind, Outcome, ToolError, Value};

/// The whole answer, or the part that a JSON Pointer names.
pub fn read(bytes: &[u8], pick: Option<&str>) -> Result<Outcome, ToolError> {
    let text = String::from_utf8_lossy(bytes);
    let value: Option<Value> = serde_json::from_str(&repair_text(text.trim())).ok();
    match (pick, value) {
        (None, Some(value @ Value::Object(_))) => Ok(Outcome::json(value)),
        (None, _) => Ok(Outcome::text(text)),
        (Some(_), None) => Err(bad(format!("the answer is not JSON: {}", clip(&text)))),
        (Some(pick), Some(value)) => match value.pointer(pick) {
            None => Err(bad(format!("the answer has nothing at `{pick}`: {}", clip(&text)))),
            Some(Value::String(text)) => Ok(Outcome::text(text)),
            Some(part @ Value::Object(_)) => Ok(Outcome::json(part.clone())),
            Some(part) => Ok(Outcome::text(part.to_string())),
        },
    }
}

fn bad(message: String) -> ToolError {
    ToolError::new(ErrorKind::BadAnswer, message)
}

#[cfg(test)]
mod tests {
    use sinew_tool::json;

    use super::*;

    #[test]
    fn a_pointer_picks_a_part_of_the_answer() {
        let answer = br#"{"POWER": "ON", "temperature": 21.5, "deep": {"a": [1]}}"#;
        let picked =
            |pick: &str| read(answer, Some(pick)).map(|outcome| outcome.joined_text()).map_err(|error| error.kind);
        assert_eq!(picked("/POWER").as_deref(), Ok("ON"));
        assert_eq!(picked("/temperature").as_deref(), Ok("21.5"));
        assert_eq!(picked("/deep/a/0").as_deref(), Ok("1"));
        assert_eq!(read(answer, Some("/deep")).expect("picked").structured, Some(json!({"a": [1]})));
        assert_eq!(picked("/missing"), Err(ErrorKind::BadAnswer));
        assert_eq!(read(b"on", Some("/a")).expect_err("no JSON").kind, ErrorKind::BadAnswer);
        assert_eq!(read(b"on\xff", None).expect("text").joined_text(), "on\u{fffd}");
    }
}
