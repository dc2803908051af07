//! MCP servers that the gateway calls, and those that were found on the network.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnknownFields;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Servers {
    pub servers: Vec<Server>,
}

/// A server that the gateway calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    pub name: String,
    /// Its URL, or the program that is started.
    pub address: String,
    pub source: ServerSource,
    /// Seconds between two looks at its tools.
    pub poll_s: u64,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// Who named a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerSource {
    /// The configuration file.
    Configuration,
    /// An administrator, with `sinew servers add` or by approving one that was found.
    Added,
}

/// A server to add. Programs can be named in the configuration file only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    pub url: String,
    /// By default made from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sent as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Further headers of each request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Seconds between two looks at its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundServers {
    pub found: Vec<FoundServer>,
    /// Why the network could not be searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A server that announces itself on the network and waits for approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundServer {
    /// The name to approve it by, which becomes the device's.
    pub name: String,
    /// What it calls itself.
    pub announced: String,
    pub url: String,
    #[serde(flatten)]
    pub more: UnknownFields,
}
