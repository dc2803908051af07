//! Explains what is wrong with a message that could not be read as MCP.
//!
//! Valid messages cost next to nothing here: only messages that could not be parsed are looked at again.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{ErrorKind, ToolError};

use crate::id_scanner;

/// The answers to two requests with one id could not be told apart.
pub(crate) const SAME_ID: &str = "another request with this `id` is still open; give each request an id of its own";

/// Where a request of a stateless revision names that revision, within `_meta`.
const META_REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// Why a message was refused.
#[derive(Debug, PartialEq)]
pub struct MessageError {
    /// The id of the request as JSON; `null` if none can be read.
    pub id: String,
    pub kind: ErrorKind,
    pub message: String,
}

impl MessageError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> MessageError {
        MessageError { id: "null".to_owned(), kind, message: message.into() }
    }

    /// The error as the answer to `request`, as far as its id can be read.
    pub(crate) fn for_request(self, request: &[u8]) -> MessageError {
        MessageError { id: id_scanner::id_of(request), ..self }
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

    /// The JSON-RPC error. The id is sent back as it was written.
    pub fn to_text(&self) -> String {
        let error = json!({"code": self.code(), "message": self.message, "data": self.to_error().to_object()});
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}", self.id)
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

/// Says why `bytes` is not a message.
pub fn explain(bytes: &[u8]) -> MessageError {
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        let message = format!("the text is not UTF-8 at byte {at}; send JSON in UTF-8");
        return MessageError::new(ErrorKind::Parse, message).for_request(bytes);
    }
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        // serde_json has no other sign for this than its message.
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let message = "the text nests more than 127 arrays and objects; make it flatter";
            return MessageError::new(ErrorKind::Parse, message).for_request(bytes);
        }
        Err(error) => {
            return MessageError::new(ErrorKind::Parse, format!("the text is not JSON: {error}")).for_request(bytes);
        }
    };
    let fault = match &message {
        Value::Array(_) => {
            "batches are only allowed in sessions of the revision 2025-03-26, and not inside another batch; send each message by itself"
        }
        Value::Object(_) => fault(&message).unwrap_or("this is not a JSON-RPC request, notification or response"),
        _ => "a JSON-RPC message is an object",
    };
    MessageError::new(ErrorKind::InvalidRequest, fault).for_request(bytes)
}

/// Refuses messages that rmcp would misread: a cursor that is not a string counts as none, and an incomplete
/// `initialize` as another method.
pub fn check_parameters(bytes: &[u8]) -> Option<MessageError> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.contains("\"cursor\"") && !text.contains("\"initialize\"") {
        return None;
    }
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message.get("method")?.as_str()?;
    let params = message.get("params").unwrap_or(&Value::Null);
    let (kind, text) = match method {
        // Requests that name their revision themselves have no `initialize`: for those it is an unknown method.
        "initialize" if params["_meta"][META_REVISION].is_string() => return None,
        "initialize" => (ErrorKind::InvalidArguments, initialize_fault(params)?),
        method if method.ends_with("/list") => (ErrorKind::BadCursor, cursor_fault(method, params)?),
        _ => return None,
    };
    Some(MessageError::new(kind, text).for_request(bytes))
}

fn cursor_fault(method: &str, params: &Value) -> Option<String> {
    let cursor = params.get("cursor").filter(|cursor| !cursor.is_string() && !cursor.is_null())?;
    let shown = clip(&cursor.to_string());
    Some(format!("the cursor of `{}` must be the string `nextCursor` of the page before, not {shown}", clip(method)))
}

fn initialize_fault(params: &Value) -> Option<String> {
    let missing = [
        ("protocolVersion", "a string such as \"2025-06-18\"", params["protocolVersion"].is_string()),
        ("capabilities", "an object, which may be empty", params["capabilities"].is_object()),
        (
            "clientInfo",
            "an object with the strings `name` and `version`",
            params["clientInfo"]["name"].is_string() && params["clientInfo"]["version"].is_string(),
        ),
    ];
    let (name, expected, _) = missing.into_iter().find(|(.., is_there)| !is_there)?;
    Some(format!("the parameters of `initialize` must have `{name}`: {expected}"))
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

    #[track_caller]
    fn check(text: &[u8], kind: ErrorKind, id: &str, word: &str) {
        let error = explain(text);
        assert_eq!((error.kind, error.id.as_str()), (kind, id), "{error:?}");
        assert!(error.message.contains(word), "{error:?}");
    }

    #[test]
    fn a_cursor_that_is_not_a_string_is_refused() {
        let list = |cursor: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"cursor":{cursor}}}}}"#);
            check_parameters(text.as_bytes()).map(|error| (error.id.clone(), error.code()))
        };
        for cursor in ["5", "true", "[]", "{}"] {
            assert_eq!(list(cursor), Some(("7".to_owned(), -32602)), "{cursor}");
        }
        assert_eq!((list("null"), list("\"a\"")), (None, None));
    }

    #[test]
    fn an_incomplete_initialize_is_told_what_it_lacks() {
        let whole =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        let fault_without = |missing: &str| {
            let mut params = whole.clone();
            params.as_object_mut().unwrap().shift_remove(missing);
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
            check_parameters(message.as_bytes()).map(|error| (error.code(), error.message))
        };
        assert_eq!(fault_without(""), None);
        for missing in ["protocolVersion", "capabilities", "clientInfo"] {
            let (code, message) = fault_without(missing).unwrap();
            assert!(code == -32602 && message.contains(&format!("must have `{missing}`")), "{message}");
        }
        let bare = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        assert!(check_parameters(bare).is_some_and(|error| error.message.contains("protocolVersion")));
        let stateless = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "_meta": {META_REVISION: "2026-07-28"}
        }});
        assert!(check_parameters(stateless.to_string().as_bytes()).is_none());
    }

    #[test]
    fn every_kind_of_bad_message_is_named() {
        check(b"{", ErrorKind::Parse, "null", "not JSON");
        check(br#"{"id":7,"method":}"#, ErrorKind::Parse, "7", "not JSON");
        check(b"\xff\xfe", ErrorKind::Parse, "null", "UTF-8 at byte 0");
        check("[".repeat(10_000).as_bytes(), ErrorKind::Parse, "null", "nests more than");
        check(b"[]", ErrorKind::InvalidRequest, "null", "batches");
        check(b"5", ErrorKind::InvalidRequest, "null", "object");
        check(b"{}", ErrorKind::InvalidRequest, "null", "jsonrpc");
        check(br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, ErrorKind::InvalidRequest, "null", "not null");
        check(br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, ErrorKind::InvalidRequest, "1.5", "64-bit");
        let beyond = br#"{"jsonrpc":"2.0","id":18446744073709551617,"method":"x"}"#;
        check(beyond, ErrorKind::InvalidRequest, "18446744073709551617", "64-bit");
        check(br#"{"jsonrpc":"2.0","id":7,"method":5}"#, ErrorKind::InvalidRequest, "7", "string");
        check(br#"{"jsonrpc":"2.0","id":"a"}"#, ErrorKind::InvalidRequest, "\"a\"", "`method` is missing");
    }
}
