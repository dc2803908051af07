//! The one error contract and the one table.
//!
//! A [`ToolError`] is a kind, a message and optional details. Its kind is a row of [`TABLE`], which
//! joins the JSON-RPC codes of the REST endpoint with the standard failure object
//! (`status`, `error_type`, `error_message`, `error_details`), says whether a retry helps and who
//! should act, and has a column per endpoint. `docs/errors.md` is printed from it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::outcome::is_third_party;

/// Why a call, or a request that never became one, failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolError {
    pub kind: ErrorKind,
    /// Names the thing, the expectation and the remedy.
    pub message: String,
    /// Machine-readable details, for example the argument at fault. Null when there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// Whose words these are, if not the gateway's: the same that results have in their `_meta` as `sinew/source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Box<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    Parse,
    InvalidRequest,
    UnknownMethod,
    UnknownTool,
    InvalidArguments,
    UnknownDevice,
    DeviceNeeded,
    UnknownResource,
    BadCursor,
    Internal,
    PermissionDenied,
    ElementNotFound,
    ActionFailed,
    Timeout,
    DeviceAway,
    DeviceLost,
    Busy,
    BadAnswer,
    TooLarge,
    Cancelled,
    InputRequired,
    Unsupported,
    NotRecorded,
    ApprovalNeeded,
    Reserved,
}

/// Whether sending the same call again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call fails the same way.
    No,
    /// The call did nothing; try again later.
    Later,
    /// The call may or may not have had its effect: look first, then decide.
    LookFirst,
}

/// Who can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Caller,
    Operator,
    Device,
    Sinew,
}

/// How `/mcp` reports a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// A JSON-RPC error with this code.
    Protocol(i32),
    /// A tool result with `isError: true`.
    Result,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRow {
    pub kind: ErrorKind,
    /// The value of `error_type`.
    pub error_type: &'static str,
    /// The code at the REST endpoint (`/mcp/v1`), numbered as in the remote-control reference.
    pub code: i32,
    pub mcp: McpForm,
    /// The exit code of the command line.
    pub exit: u8,
    pub retry: Retry,
    pub actor: Actor,
    pub meaning: &'static str,
}

macro_rules! table {
    ($($kind:ident $word:literal $code:literal $mcp:expr, $exit:literal $retry:ident $actor:ident $meaning:literal;)*) => {
        /// Every kind exactly once, in the order of [`ErrorKind`].
        pub const TABLE: &[ErrorRow] = &[$(ErrorRow {
            kind: ErrorKind::$kind, error_type: $word, code: $code, mcp: $mcp, exit: $exit,
            retry: Retry::$retry, actor: Actor::$actor, meaning: $meaning,
        }),*];
    };
}

use McpForm::{Protocol, Result as InResult};

table! {
    Parse            "ParseError"          -32700 Protocol(-32700), 65 No Caller   "The text is not JSON, or nests deeper than the reader goes.";
    InvalidRequest   "InvalidRequest"      -32600 Protocol(-32600), 65 No Caller   "JSON, but not a JSON-RPC 2.0 request.";
    UnknownMethod    "MethodNotFound"      -32601 Protocol(-32601), 64 No Caller   "The endpoint has no such method.";
    UnknownTool      "ToolNotFound"        -32601 Protocol(-32602), 66 No Caller   "No such tool, or none that this caller may see.";
    InvalidArguments "ValidationError"     -32602 InResult,         64 No Caller   "An argument is missing, of the wrong type, or out of range.";
    UnknownDevice    "DeviceNotFound"      -32602 InResult,         66 No Caller   "No device has that id or name.";
    DeviceNeeded     "DeviceNeeded"        -32602 InResult,         64 No Caller   "Several devices have this tool; the call must name one.";
    UnknownResource  "ResourceNotFound"    -32602 Protocol(-32602), 66 No Caller   "No such resource.";
    BadCursor        "InvalidCursor"       -32602 Protocol(-32602), 64 No Caller   "The cursor was not given out by this list.";
    Internal         "InternalError"       -32603 InResult,         70 LookFirst Sinew "A fault of the gateway itself.";
    PermissionDenied "PermissionDenied"    -32001 InResult,         77 No Operator "The device or the gateway does not allow it.";
    ElementNotFound  "ElementNotFound"     -32002 InResult,         66 No Caller   "No element on the screen fits.";
    ActionFailed     "ActionFailed"        -32003 InResult,         1  LookFirst Device "The device tried and failed, or said so.";
    Timeout          "Timeout"             -32004 InResult,         75 LookFirst Device "The time budget ran out.";
    DeviceAway       "DeviceAway"          -32003 InResult,         69 Later Device "The device is known but not connected; nothing was sent.";
    DeviceLost       "DeviceLost"          -32003 InResult,         69 LookFirst Device "The connection broke after the call was sent.";
    Busy             "Busy"                -32003 InResult,         75 Later Caller "The device's queue is full; nothing was sent.";
    BadAnswer        "BadAnswer"           -32003 InResult,         76 LookFirst Device "The device's answer broke the protocol or its own schema.";
    TooLarge         "TooLarge"            -32602 InResult,         64 No Caller   "The request or the answer exceeds a limit.";
    Cancelled        "Cancelled"           -32003 InResult,         75 LookFirst Caller "The caller gave the call up.";
    InputRequired    "InputRequired"       -32003 InResult,         77 Later Caller "A question must be answered first, and this caller was not able to.";
    Unsupported      "Unsupported"         -32003 InResult,         69 No Operator "The device cannot do this; the message names the remedy.";
    NotRecorded      "NotRecorded"         -32003 InResult,         75 Later Operator "The gateway's store cannot be written, so no call is made; nothing was sent.";
    ApprovalNeeded   "ApprovalNeeded"      -32003 InResult,         77 Later Operator "A person must approve the call first; nothing was sent.";
    Reserved         "Reserved"            -32003 InResult,         75 Later Caller "Another caller has the device for a while; nothing was sent.";
}

impl ErrorKind {
    pub fn row(self) -> &'static ErrorRow {
        // The table is in the enum's order; a test holds it there.
        &TABLE[self as usize]
    }

    pub fn from_error_type(word: &str) -> Option<ErrorKind> {
        TABLE.iter().find(|row| row.error_type == word).map(|row| row.kind)
    }
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.row().error_type)
    }
}

impl<'de> Deserialize<'de> for ErrorKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ErrorKind, D::Error> {
        let word = String::deserialize(deserializer)?;
        // A newer gateway may know more kinds; whatever it was, the call failed.
        Ok(ErrorKind::from_error_type(&word).unwrap_or(ErrorKind::ActionFailed))
    }
}

impl ToolError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ToolError {
        ToolError { kind, message: message.into(), details: Value::Null, source: None }
    }

    /// Whether the gateway marked it as holding text that anybody may have written.
    pub fn is_third_party(&self) -> bool {
        is_third_party(self.source.as_deref())
    }

    pub fn with_details(mut self, details: Value) -> ToolError {
        self.details = details;
        self
    }

    /// The standard failure object of the tool specification.
    pub fn to_object(&self) -> Value {
        let mut object = json!({
            "status": "failure",
            "error_type": self.kind.row().error_type,
            "error_message": self.message,
        });
        if !self.details.is_null() {
            object["error_details"] = self.details.clone();
        }
        object
    }

    /// Reads a standard failure object back; also the form that nests it under `error`.
    pub fn from_object(object: &Value) -> Option<ToolError> {
        let body = object.get("error").filter(|nested| nested.is_object()).unwrap_or(object);
        let message = body.get("error_message")?.as_str()?;
        let word = body.get("error_type").and_then(Value::as_str).unwrap_or_default();
        Some(ToolError {
            kind: ErrorKind::from_error_type(word).unwrap_or(ErrorKind::ActionFailed),
            message: message.to_owned(),
            details: body.get("error_details").cloned().unwrap_or(Value::Null),
            source: None,
        })
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_row_in_order() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{:?} stands in the wrong place", row.kind);
            assert_eq!(row.kind.row().error_type, row.error_type);
        }
        assert_eq!(TABLE.len(), ErrorKind::Reserved as usize + 1);
    }

    #[test]
    fn error_types_are_unique_words() {
        for row in TABLE {
            assert_eq!(ErrorKind::from_error_type(row.error_type), Some(row.kind));
        }
    }

    #[test]
    fn the_rest_endpoint_uses_only_the_nine_codes_of_the_reference() {
        let codes = [-32700, -32600, -32601, -32602, -32603, -32001, -32002, -32003, -32004];
        assert!(TABLE.iter().all(|row| codes.contains(&row.code)));
        assert!(codes.iter().all(|code| TABLE.iter().any(|row| row.code == *code)));
    }

    #[test]
    fn the_mcp_door_never_speaks_a_code_reserved_for_others() {
        for row in TABLE {
            if let McpForm::Protocol(code) = row.mcp {
                assert!(!(-32099..=-32000).contains(&code), "{:?}", row.kind);
            }
        }
    }

    /// Clients act on these columns, so no row changes unnoticed.
    #[test]
    fn codes_exits_retries_and_actors_are_a_contract() {
        let row = |row: &ErrorRow| {
            let mcp = match row.mcp {
                McpForm::Protocol(code) => code,
                McpForm::Result => 0,
            };
            format!("{} {} {mcp} {} {:?} {:?}", row.error_type, row.code, row.exit, row.retry, row.actor)
        };
        let rows: Vec<String> = TABLE.iter().map(row).collect();
        let expected = [
            "ParseError -32700 -32700 65 No Caller",
            "InvalidRequest -32600 -32600 65 No Caller",
            "MethodNotFound -32601 -32601 64 No Caller",
            "ToolNotFound -32601 -32602 66 No Caller",
            "ValidationError -32602 0 64 No Caller",
            "DeviceNotFound -32602 0 66 No Caller",
            "DeviceNeeded -32602 0 64 No Caller",
            "ResourceNotFound -32602 -32602 66 No Caller",
            "InvalidCursor -32602 -32602 64 No Caller",
            "InternalError -32603 0 70 LookFirst Sinew",
            "PermissionDenied -32001 0 77 No Operator",
            "ElementNotFound -32002 0 66 No Caller",
            "ActionFailed -32003 0 1 LookFirst Device",
            "Timeout -32004 0 75 LookFirst Device",
            "DeviceAway -32003 0 69 Later Device",
            "DeviceLost -32003 0 69 LookFirst Device",
            "Busy -32003 0 75 Later Caller",
            "BadAnswer -32003 0 76 LookFirst Device",
            "TooLarge -32602 0 64 No Caller",
            "Cancelled -32003 0 75 LookFirst Caller",
            "InputRequired -32003 0 77 Later Caller",
            "Unsupported -32003 0 69 No Operator",
            "NotRecorded -32003 0 75 Later Operator",
            "ApprovalNeeded -32003 0 77 Later Operator",
            "Reserved -32003 0 75 Later Caller",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn no_failure_exits_with_success() {
        assert!(TABLE.iter().all(|row| row.exit != 0));
    }

    #[test]
    fn the_failure_object_is_that_of_the_tool_specification_standard() {
        let error = ToolError::new(ErrorKind::InvalidArguments, "File does not exist.")
            .with_details(json!({"parameter_name": "target_file"}));
        assert_eq!(
            error.to_object(),
            json!({
                "status": "failure",
                "error_type": "ValidationError",
                "error_message": "File does not exist.",
                "error_details": {"parameter_name": "target_file"},
            })
        );
    }

    #[test]
    fn the_object_is_read_back_flat_and_nested() {
        let error = ToolError::new(ErrorKind::Timeout, "too slow");
        assert_eq!(ToolError::from_object(&error.to_object()), Some(error.clone()));
        let nested = json!({"status": "failure", "error": {"error_type": "Timeout", "error_message": "too slow"}});
        assert_eq!(ToolError::from_object(&nested), Some(error));
        assert_eq!(ToolError::from_object(&json!({"text": "fine"})), None);
    }
}
