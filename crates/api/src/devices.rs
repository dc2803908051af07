//! Devices, boards that wait for approval, and events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::More;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    pub devices: Vec<Device>,
}

/// A device that the gateway knows, connected or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    pub id: String,
    /// The name that an administrator gave it.
    #[serde(default)]
    pub name: Option<String>,
    /// The labels that administrators gave it.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What it is recognised by.
    #[serde(default)]
    pub key: String,
    /// `board`, `phone`, `app` or another family.
    #[serde(default)]
    pub family: String,
    /// How it was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted_by: Option<String>,
    /// What the device says it is.
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub version: String,
    /// `ready`, `away`, or why it cannot be used.
    pub state: String,
    /// How many tools it offers.
    #[serde(default)]
    pub tools: usize,
    /// Whether its tools were agreed on.
    #[serde(default)]
    pub pinned: bool,
    /// How many of its tools are held back.
    #[serde(default)]
    pub quarantined: usize,
    /// Since when it is in this state, in milliseconds of Unix time.
    #[serde(default)]
    pub since: i64,
    /// What its family has to say about it.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// What can be done about a state that is not `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// What the device tells models about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What is wrong with its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(flatten)]
    pub more: More,
}

impl Device {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// The texts of an attribute that is a list.
    pub fn attribute_list(&self, name: &str) -> Vec<&str> {
        let list = self.attributes.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// An attribute that is a text; empty where there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rename {
    /// An empty name removes the one it has.
    pub name: String,
}

/// Labels to add to a device and to remove from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Labels {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// What differs from the tools that were agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    pub id: String,
    pub pinned: bool,
    /// Tools that are held back.
    pub quarantined: Vec<Held>,
    /// Tools that were agreed on and that the device no longer has.
    pub gone: Vec<String>,
    #[serde(flatten)]
    pub more: More,
}

/// A tool that is held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    pub tool: String,
    pub why: String,
    pub changes: Vec<Change>,
    #[serde(flatten)]
    pub more: More,
}

/// One change of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `breaking`, `additive` or `cosmetic`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub impact: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(flatten)]
    pub more: More,
}

/// Which of the tools that are held back to accept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accept {
    /// One tool; all where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boards {
    pub boards: Vec<Board>,
}

/// A board that waits for approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    pub code: String,
    pub hardware_id: String,
    /// What the board says it is.
    pub kind: String,
    pub version: String,
    pub address: String,
    /// Milliseconds of Unix time.
    pub since: i64,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approve {
    pub code: String,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    pub events: Vec<Event>,
    /// The cursor to go on from.
    pub next: String,
    /// Events after the cursor that are gone, because too many came.
    #[serde(default)]
    pub dropped: u64,
}

/// Something a device sent, or the gateway about it (topics `sinew/…`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub seq: u64,
    /// Milliseconds of Unix time.
    pub at: i64,
    pub device: String,
    pub topic: String,
    pub body: Value,
}
