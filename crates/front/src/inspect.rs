//! What is wrong with a message that could not be read as MCP.
//!
//! The way of a good message costs next to nothing here: only what the reader refused, or would take for
//! something else, is looked at again.

use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{ErrorKind, ToolError};

/// Two requests with one id could not be told apart by their answers.
pub(crate) const SAME_ID: &str = "another request with this `id` is still open; give each request an id of its own";

/// Why a message was not taken, in JSON-RPC's words.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    pub id: Value,
    pub kind: ErrorKind,
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        Refusal { id: Value::Null, kind, message: message.into() }
    }

    pub(crate) fn too_large(limit: usize) -> Refusal {
        Refusal::new(
            ErrorKind::TooLarge,
            format!("the message is larger than {limit} bytes; send less at once, large data as a resource"),
        )
    }

    pub(crate) fn content_type() -> Refusal {
        Refusal::new(ErrorKind::InvalidRequest, "send JSON, with the header `Content-Type: application/json`")
    }

    pub(crate) fn unknown_method(method: &str) -> Refusal {
        Refusal::new(ErrorKind::UnknownMethod, format!("unknown method `{}`", clip(method)))
    }

    /// What never became a call is a JSON-RPC error, whatever its kind is as the failure of a call.
    /// The code is the same at every door for the kinds that occur here.
    pub fn code(&self) -> i32 {
        self.kind.row().code
    }

    pub fn to_json(&self) -> Value {
        let object = self.to_error().to_object();
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": self.code(), "message": self.message, "data": object},
        })
    }

    pub(crate) fn to_error(&self) -> ToolError {
        ToolError::new(self.kind, self.message.clone())
    }
}

/// Reads JSON-RPC's request id where it is one that may be sent back.
pub(crate) fn id_of(message: &Value) -> Value {
    match message.get("id") {
        Some(id @ Value::String(_)) => id.clone(),
        Some(id @ Value::Number(number)) if number.is_i64() || number.is_u64() => id.clone(),
        _ => Value::Null,
    }
}

/// Says why `bytes` is not a message.
pub fn refusal(bytes: &[u8]) -> Refusal {
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        return Refusal::new(ErrorKind::Parse, format!("the text is not UTF-8 at byte {at}; send JSON in UTF-8"));
    }
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        // The reader has no other sign for it than its words.
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let message = "the text nests too deeply, more than 127 arrays and objects in one another; make it flatter";
            return Refusal::new(ErrorKind::Parse, message);
        }
        Err(error) => return Refusal::new(ErrorKind::Parse, format!("the text is not JSON: {error}")),
    };
    let shape = match &message {
        Value::Array(_) => "this gateway takes one message at a time, no batches; send each by itself",
        Value::Object(_) => fault(&message).unwrap_or("this is not a JSON-RPC request, notification or response"),
        _ => "a JSON-RPC message is an object",
    };
    Refusal { id: id_of(&message), kind: ErrorKind::InvalidRequest, message: shape.to_owned() }
}

/// What rmcp would read as a request without parameters: a cursor that is no string.
pub fn refusal_of_readable(bytes: &[u8]) -> Option<Refusal> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("\"cursor\""))?;
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message.get("method")?.as_str()?;
    let cursor = message.get("params")?.get("cursor")?;
    if !method.ends_with("/list") || cursor.is_string() || cursor.is_null() {
        return None;
    }
    let shown = clip(&cursor.to_string());
    let message_text = format!("the cursor of `{}` must be a string that the list gave out, not {shown}", clip(method));
    Some(Refusal { id: id_of(&message), kind: ErrorKind::BadCursor, message: message_text })
}

fn fault(message: &Value) -> Option<&'static str> {
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Some("`jsonrpc` must be \"2.0\"");
    }
    match message.get("id") {
        Some(Value::Null) => return Some("`id` must be a string or an integer, not null; leave it out to notify"),
        Some(id) if !(id.is_string() || id.is_i64()) => return Some("`id` must be a string or a 64-bit integer"),
        _ => {}
    }
    match message.get("method") {
        Some(Value::String(_)) => None,
        Some(_) => Some("`method` must be a string"),
        None if message.get("result").is_some() || message.get("error").is_some() => None,
        None => Some("`method` is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], kind: ErrorKind, id: Value, word: &str) {
        let refusal = refusal(text);
        assert_eq!((refusal.kind, &refusal.id), (kind, &id), "{refusal:?}");
        assert!(refusal.message.contains(word), "{refusal:?}");
    }

    #[test]
    fn a_cursor_that_is_no_string_is_refused() {
        let list = |cursor: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"cursor":{cursor}}}}}"#);
            refusal_of_readable(text.as_bytes()).map(|refusal| (refusal.id.clone(), refusal.code()))
        };
        for cursor in ["5", "true", "[]", "{}"] {
            assert_eq!(list(cursor), Some((json!(7), -32602)), "{cursor}");
        }
        assert_eq!((list("null"), list("\"a\"")), (None, None));
    }

    #[test]
    fn foreign_words_are_repeated_up_to_a_limit() {}

    #[test]
    fn every_kind_of_bad_message_is_named() {
        check(b"{", ErrorKind::Parse, Value::Null, "not JSON");
        check(b"\xff\xfe", ErrorKind::Parse, Value::Null, "UTF-8 at byte 0");
        check("[".repeat(10_000).as_bytes(), ErrorKind::Parse, Value::Null, "nests too deeply");
        check(b"[]", ErrorKind::InvalidRequest, Value::Null, "batches");
        check(b"5", ErrorKind::InvalidRequest, Value::Null, "object");
        check(b"{}", ErrorKind::InvalidRequest, Value::Null, "jsonrpc");
        check(br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "not null");
        check(br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "64-bit");
        check(br#"{"jsonrpc":"2.0","id":7,"method":5}"#, ErrorKind::InvalidRequest, json!(7), "string");
        check(br#"{"jsonrpc":"2.0","id":"a"}"#, ErrorKind::InvalidRequest, json!("a"), "`method` is missing");
    }
}
