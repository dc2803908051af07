//! Tools and calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::UnknownFields;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    pub tools: Vec<ListedTool>,
}

/// A tool, with the schemas of its device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
    /// The name of the tool on its device. Only in lists of one device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
    /// What is simplified in the schemas for AI clients, where and for whom: `/properties/mail: format, for Gemini`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub simplified: Vec<String>,
    /// Title, output schema, annotations and whatever else MCP has.
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRequest {
    /// Id or name of the device, or `label:NAME` for all devices with a label; without it, `tool` is a name of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// How long the call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The administrator who calls agrees to the call: where the policy would ask, it is made. It counts for people who
    /// signed in with a passphrase; for a token only as long as nobody else could agree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// Content items, as MCP has them.
    pub content: Vec<Value>,
    #[serde(default, rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// A line of an answer to a call that was asked for with `Accept: application/x-ndjson`. The last is the result or the
/// error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallLine {
    /// `progress`, and perhaps `total` and `message`.
    Progress(Value),
    /// What the device logs; of a routine, each step when it is done.
    Log(Value),
    /// The call, or one that it makes, waits for a person's approval: `id`, `device`, `tool` and `reason`.
    Waiting(Value),
    Result(CallResult),
    /// The object of an error, as in every other answer.
    Error(Value),
}
