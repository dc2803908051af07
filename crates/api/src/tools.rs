//! Tools and calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::More;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    pub tools: Vec<Tool>,
}

/// A tool, as MCP lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
    /// The name its device knows it by, where the tools of one device were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
    /// Title, output schema, annotations and whatever else MCP has.
    #[serde(flatten)]
    pub more: More,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Id or name of the device, or `label:NAME` for all devices with a label; without it, `tool` is a name of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// How long the call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What a call brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// Content items, as MCP has them.
    pub content: Vec<Value>,
    #[serde(default, rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(flatten)]
    pub more: More,
}
