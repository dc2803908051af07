//! Whether a gateway is alive and ready, and how requests fail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthStatus {
    pub status: String,
    pub version: String,
    pub server: String,
}

/// Whether the gateway can make calls now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    pub ready: bool,
    /// Why it is not ready; empty when it is.
    pub reasons: Vec<NotReadyReason>,
}

/// Why a gateway is not ready. The list is closed and says nothing about the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotReadyReason {
    /// The gateway is stopping and takes no new calls.
    Stopping,
    /// Calls cannot be recorded, so none are made.
    NotRecording,
    /// Too many bytes of answers wait for clients to read them.
    Busy,
}

/// A request that was refused before anything was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedRequest {
    /// A word for programs.
    pub error: String,
    /// A sentence for people.
    pub message: String,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFailure {
    /// The failure object: `status`, `error_type`, `error_message` and `error_details`.
    pub error: Value,
    /// The code that the failure has in JSON-RPC.
    pub code: i32,
}
