//! Explains what is wrong with a message that could not be read as MCP.
//!
//! Valid messages cost next to nothing here: only messages that could not be parsed are looked at again.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{ErrorKind, ToolError};

/// The answers to two requests with one id could not be told apart.
pub(crate) const SAME_ID: &str = "another request with this `id` is still open; give each request an id of its own";

/// Why a message was refused.
#[derive(Debug, PartialEq)]
pub struct MessageError {
    pub id: Value,
    pub kind: ErrorKind,
    pub message: String,
}

impl MessageError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> MessageError {
        MessageError { id: Value::Null, kind, message: message.into() }
    }

    pub(crate) fn too_large(limit: usize) -> MessageError {
        MessageError::new(
            ErrorKind::TooLarge,
            format!("the message is larger than {limit} bytes; send less at once, large data as a resource"),
        )
    }

    pub(crate) fn content_type() -> MessageError {
        MessageError::new(ErrorKind::InvalidRequest, "send JSON, with the header `Content-Type: application/json`")
    }

    pub(crate) fn unknown_method(method: &str) -> MessageError {
        MessageError::new(ErrorKind::UnknownMethod, format!("unknown method `{}`", clip(method)))
    }

    /// The JSON-RPC code. For the kinds that occur here it is the same at every endpoint.
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

/// The method and id of a message, read without the rest.
#[derive(Default, Deserialize)]
pub(crate) struct MessageHead<'a> {
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(default)]
    pub id: Value,
}

impl MessageHead<'_> {
    pub(crate) fn of(bytes: &[u8]) -> MessageHead<'_> {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(crate) fn is_request(&self) -> bool {
        self.method.is_some() && !self.id.is_null()
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.method.is_none() && !self.id.is_null()
    }

    /// The id of a request as text; notifications and answers have none.
    pub(crate) fn request_id(&self) -> Option<String> {
        self.is_request().then(|| self.id.to_string())
    }
}

/// The id of a JSON-RPC request if it can be sent back, else null.
pub(crate) fn id_of(message: &Value) -> Value {
    match message.get("id") {
        Some(id @ Value::String(_)) => id.clone(),
        Some(id @ Value::Number(number)) if number.is_i64() || number.is_u64() => id.clone(),
        _ => Value::Null,
    }
}

/// Says why `bytes` is not a message.
pub fn explain(bytes: &[u8]) -> MessageError {
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        return MessageError::new(ErrorKind::Parse, format!("the text is not UTF-8 at byte {at}; send JSON in UTF-8"));
    }
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        // serde_json has no other sign for this than its message.
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let message = "the text nests more than 127 arrays and objects; make it flatter";
            return MessageError::new(ErrorKind::Parse, message);
        }
        Err(error) => return MessageError::new(ErrorKind::Parse, format!("the text is not JSON: {error}")),
    };
    let shape = match &message {
        Value::Array(_) => "this gateway takes one message at a time, no batches; send each by itself",
        Value::Object(_) => fault(&message).unwrap_or("this is not a JSON-RPC request, notification or response"),
        _ => "a JSON-RPC message is an object",
    };
    MessageError { id: id_of(&message), kind: ErrorKind::InvalidRequest, message: shape.to_owned() }
}

/// Refuses a cursor that is not a string, which rmcp would read as a request without parameters.
pub fn check_cursor(bytes: &[u8]) -> Option<MessageError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("\"cursor\""))?;
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message.get("method")?.as_str()?;
    let cursor = message.get("params")?.get("cursor")?;
    if !method.ends_with("/list") || cursor.is_string() || cursor.is_null() {
        return None;
    }
    let shown = clip(&cursor.to_string());
    let message_text =
        format!("the cursor of `{}` must be the string `nextCursor` of the page before, not {shown}", clip(method));
    Some(MessageError { id: id_of(&message), kind: ErrorKind::BadCursor, message: message_text })
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
        let error = explain(text);
        assert_eq!((error.kind, &error.id), (kind, &id), "{error:?}");
        assert!(error.message.contains(word), "{error:?}");
    }

    #[test]
    fn a_cursor_that_is_not_a_string_is_refused() {
        let list = |cursor: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"cursor":{cursor}}}}}"#);
            check_cursor(text.as_bytes()).map(|error| (error.id.clone(), error.code()))
        };
        for cursor in ["5", "true", "[]", "{}"] {
            assert_eq!(list(cursor), Some((json!(7), -32602)), "{cursor}");
        }
        assert_eq!((list("null"), list("\"a\"")), (None, None));
    }

    #[test]
    fn every_kind_of_bad_message_is_named() {
        check(b"{", ErrorKind::Parse, Value::Null, "not JSON");
        check(b"\xff\xfe", ErrorKind::Parse, Value::Null, "UTF-8 at byte 0");
        check("[".repeat(10_000).as_bytes(), ErrorKind::Parse, Value::Null, "nests more than");
        check(b"[]", ErrorKind::InvalidRequest, Value::Null, "batches");
        check(b"5", ErrorKind::InvalidRequest, Value::Null, "object");
        check(b"{}", ErrorKind::InvalidRequest, Value::Null, "jsonrpc");
        check(br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "not null");
        check(br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "64-bit");
        check(br#"{"jsonrpc":"2.0","id":7,"method":5}"#, ErrorKind::InvalidRequest, json!(7), "string");
        check(br#"{"jsonrpc":"2.0","id":"a"}"#, ErrorKind::InvalidRequest, json!("a"), "`method` is missing");
    }
}
