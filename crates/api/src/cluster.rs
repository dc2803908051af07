//! The cluster that a gateway is a part of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnknownFields;

/// A cluster as one of its gateways sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterState {
    pub name: String,
    /// The name of the gateway that answers.
    pub node: String,
    /// Whether it can reach NATS.
    pub connected: bool,
    /// Whether it is a part of the cluster: the other gateways count on it, and it knows what they have. Without, it does
    /// not act on devices that they can reach too.
    pub lease: bool,
    /// The version of the NATS server; empty before the first connection.
    pub server: String,
    /// All gateways that are alive, by name.
    pub nodes: Vec<ClusterNode>,
    /// Devices that this gateway took over from others since it started.
    pub moves: u64,
    /// Devices of this gateway that the others do not know yet.
    pub waiting: usize,
    /// Changes at this gateway, of tokens for example, that the others do not know yet.
    #[serde(default)]
    pub unshared: usize,
    /// Ids of devices that mean another device at other gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids_twice: Vec<String>,
    /// Calls to other gateways that are not answered.
    pub calls_out: usize,
    /// Calls from other gateways that are not answered.
    pub calls_in: usize,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// A gateway of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterNode {
    pub name: String,
    /// Devices that are connected to it.
    pub devices: usize,
    /// The version of its policy. Nodes with different policies decide differently about the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The version of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}
