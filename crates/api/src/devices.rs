//! Devices, boards that wait for approval, and events.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::UnknownFields;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    pub devices: Vec<DeviceSummary>,
    /// How many devices fit, on all pages.
    #[serde(default)]
    pub total: usize,
    /// `after` of the next page; missing on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A device that the gateway knows, connected or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSummary {
    pub id: String,
    /// The name that an administrator gave it.
    #[serde(default)]
    pub name: Option<String>,
    /// The labels that administrators gave it.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The key by which the gateway recognises it, such as a hardware address.
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
    /// Whether its tools are pinned.
    #[serde(default)]
    pub pinned: bool,
    /// How many of its tools are held back.
    #[serde(default)]
    pub quarantined: usize,
    /// Tools that the gateway does not offer because of a fault, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub withdrawn: BTreeMap<String, String>,
    /// Since when it is in this state, in milliseconds of Unix time.
    #[serde(default)]
    pub since: i64,
    /// Facts that its family reports about it.
    #[serde(default)]
    pub attributes: Map<String, Value>,
    /// What can be done about a state that is not `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Text from the device about how to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What is wrong with its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Who has it to themselves for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<DeviceLease>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// Who has a device to themselves for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLease {
    /// The name of the caller.
    pub holder: String,
    /// Only for administrators, and only where the device was reserved; without it, the caller just uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// When it ends, in milliseconds of Unix time. Use prolongs it.
    pub until: i64,
    /// How many wait for the device.
    #[serde(default)]
    pub waiting: usize,
}

/// Has a device to itself for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reserve {
    /// How long, in seconds: up to 600 for clients, where a lease also ends after 60 s without use, and up to 86400 for
    /// administrators.
    pub seconds: u64,
    /// How long to wait where another has it, in seconds, up to 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub purpose: String,
}

/// A device that the caller has now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reserved {
    pub device: String,
    /// The id of the lease; calls may name the device as `lease:ID`.
    pub lease: String,
    /// When it ends, in milliseconds of Unix time. Use prolongs it.
    pub until: i64,
    /// How long it lasts at most.
    pub seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Whether the caller had the device.
    pub released: bool,
}

impl DeviceSummary {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// The texts of an attribute that is a list; empty when it is missing.
    pub fn attribute_list(&self, name: &str) -> Vec<&str> {
        let list = self.attributes.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The text of an attribute; empty when it is missing or not a text.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rename {
    /// The new name. An empty name removes the current one.
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

/// How the tools of a device differ from the pinned ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    pub id: String,
    pub pinned: bool,
    /// Which changes a pinned device may make by itself: `nothing`, `patch`, `minor` or `major`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<String>,
    /// Names what is held back or gone, for `accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Tools that are held back.
    pub quarantined: Vec<QuarantinedTool>,
    /// Changes of the device's own name and instructions, which are held back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<ToolChange>,
    /// The device's name and instructions as a whole, where they are held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_form: Option<HeldForm>,
    /// Pinned tools that the device no longer has.
    pub gone: Vec<String>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// A tool that is held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantinedTool {
    pub tool: String,
    pub why: String,
    pub changes: Vec<ToolChange>,
    #[serde(default)]
    pub form: HeldForm,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// The whole of what would be accepted, beside what was agreed: JSON with its members in order, to be compared line by
/// line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldForm {
    /// Missing for what is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<String>,
    pub now: String,
}

/// One change of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolChange {
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
    pub more: UnknownFields,
}

/// Which changes a device may make by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pin {
    /// `patch`, `minor` or `major`: changes that the device's version announces. Without it, every difference is held
    /// back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<String>,
}

/// What to accept of that which is held back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accept {
    /// `digest` of the answer of `changes`. Where something else is there by now, nothing is accepted.
    pub digest: String,
    /// One tool. Without it, all are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingBoards {
    pub boards: Vec<WaitingBoard>,
}

/// A board that waits for approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingBoard {
    pub code: String,
    pub hardware_id: String,
    /// What the board says it is.
    pub kind: String,
    pub version: String,
    pub address: String,
    /// Milliseconds of Unix time.
    pub since: i64,
    /// When it is forgotten, unless it asks again before. Milliseconds of Unix time.
    #[serde(default)]
    pub until: i64,
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approve {
    pub code: String,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    pub events: Vec<EventRecord>,
    /// The cursor of the next page.
    pub next: String,
    /// How many events after the cursor were dropped because too many arrived.
    #[serde(default)]
    pub dropped: u64,
}

/// An event that a device sent, or that the gateway reports about it (topics `sinew/…`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// Counts the events of all devices; for callers who do not see all of them, those of its device.
    pub seq: u64,
    /// Milliseconds of Unix time.
    pub at: i64,
    pub device: String,
    pub topic: String,
    pub body: Value,
}
