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

/// What waits at a gateway, and what it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayStatus {
    /// Boards that wait for approval.
    pub waiting_boards: usize,
    /// Brokers with boards that have not joined.
    pub brokers: Vec<BrokerPresences>,
    /// Why calls cannot be recorded and are refused, while that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_problem: Option<String>,
    /// Why the changed configuration is not in force, where it has a mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_problem: Option<String>,
    /// The folder on the gateway's machine that routines are read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routines: Option<String>,
    /// Tasks of the program: some for its listeners, one for each board, one for each connection of a client.
    pub tasks: usize,
}

/// Boards that are present at a broker and have not joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokerPresences {
    /// The address of the broker.
    pub broker: String,
    /// Boards that are not asked for their tools yet.
    pub waiting: usize,
    /// Boards that do not answer: their presence may be left over from a board that is gone.
    pub silent: usize,
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

/// The word of [`RefusedRequest::error`] for a token that was valid once.
pub const TOKEN_EXPIRED: &str = "token_expired";

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
