//! What is wrong with a message that could not be read as MCP.
//!
//! The way of a good message costs nothing here: only what the reader refused is looked at again.

use serde_json::{Value, json};
use sinew_tool::ErrorKind;

/// Why a message was not taken, in JSON-RPC's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub id: Value,
    pub kind: ErrorKind,
    pub message: String,
}

impl Refusal {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Refusal {
        Refusal { id: Value::Null, kind, message: message.into() }
    }

    pub(crate) fn too_large(limit: usize) -> Refusal {
        Refusal::new(
            ErrorKind::InvalidRequest,
            format!("the message is larger than {limit} bytes; send less at once, large data as a resource"),
        )
    }

    /// The code is the same at every door for the kinds that occur here.
    pub(crate) fn code(&self) -> i32 {
        self.kind.row().code
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": self.code(), "message": self.message},
        })
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
pub(crate) fn refusal(bytes: &[u8]) -> Refusal {
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        return Refusal::new(ErrorKind::Parse, format!("the text is not UTF-8 at byte {at}; send JSON in UTF-8"));
    }
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        // Also where arrays and objects nest deeper than 128: the reader says so in its own words.
        Err(error) => return Refusal::new(ErrorKind::Parse, format!("the text is not JSON: {error}")),
    };
    let shape = match &message {
        Value::Array(_) => "batches are not part of MCP; send each message by itself",
        Value::Object(_) => fault(&message).unwrap_or("this is not a JSON-RPC request, notification or response"),
        _ => "a JSON-RPC message is an object",
    };
    Refusal { id: id_of(&message), kind: ErrorKind::InvalidRequest, message: shape.to_owned() }
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
    fn every_kind_of_bad_message_is_named() {
        check(b"{", ErrorKind::Parse, Value::Null, "not JSON");
        check(b"\xff\xfe", ErrorKind::Parse, Value::Null, "UTF-8 at byte 0");
        check("[".repeat(10_000).as_bytes(), ErrorKind::Parse, Value::Null, "recursion limit");
        check(b"[]", ErrorKind::InvalidRequest, Value::Null, "batches");
        check(b"5", ErrorKind::InvalidRequest, Value::Null, "object");
        check(b"{}", ErrorKind::InvalidRequest, Value::Null, "jsonrpc");
        check(br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "not null");
        check(br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, ErrorKind::InvalidRequest, Value::Null, "64-bit");
        check(br#"{"jsonrpc":"2.0","id":7,"method":5}"#, ErrorKind::InvalidRequest, json!(7), "string");
        check(br#"{"jsonrpc":"2.0","id":"a"}"#, ErrorKind::InvalidRequest, json!("a"), "`method` is missing");
    }
}
