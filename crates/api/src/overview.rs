//! What goes on at a gateway, in a few numbers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnknownFields;

/// What goes on at a gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    pub version: String,
    /// How many devices are in each state.
    pub states: BTreeMap<String, usize>,
    /// How many devices each family has.
    pub families: BTreeMap<String, usize>,
    /// How many devices of each family are in each state.
    #[serde(default)]
    pub fleet: BTreeMap<String, BTreeMap<String, usize>>,
    pub tools: usize,
    /// Calls of the last hour, oldest minute first.
    pub minutes: Vec<CallMinute>,
    /// The newest calls that failed since the gateway started, newest first.
    pub failures: Vec<FailedCall>,
    /// Calls that wait for a person.
    pub waiting_calls: usize,
    /// Boards that wait for approval.
    pub waiting_boards: usize,
    /// Why calls cannot be recorded and are refused, while that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_problem: Option<String>,
    /// Why the changed configuration is not in force, where it has a mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_problem: Option<String>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// The calls that ended in one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallMinute {
    pub calls: u64,
    pub failures: u64,
    /// What they took on average, in microseconds.
    pub mean_us: u64,
    /// What the slowest took.
    pub slowest_us: u64,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCall {
    /// When it came, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    #[serde(default)]
    pub device: Option<String>,
    pub tool: String,
    /// The `error_type` of the failure.
    pub outcome: String,
    #[serde(flatten)]
    pub more: UnknownFields,
}
