//! Devices, events and calls as the gateway shows them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use sinew_tool::{Admission, DeviceId, DeviceKey, Digest, Family, TextTrust, Tool};

use crate::labels::Label;
use crate::leases::LeaseView;
use crate::prepare::ExactSchemas;

/// The form in which a client sees the tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Equal tools of several devices are one tool with a `device` argument.
    #[default]
    Folded,
    /// One tool per device and tool: `<device>__<tool>`.
    Unfolded,
}

/// A device as tables and models see it. Texts a device chose are bounded and cleaned.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceView {
    pub id: DeviceId,
    /// The given name, where somebody gave one.
    pub name: Option<String>,
    /// Sorted; set by administrators.
    pub labels: Vec<Label>,
    pub key: DeviceKey,
    pub family: Family,
    /// What the device calls itself, for example the board's name.
    pub kind: String,
    pub version: String,
    /// `ready`, `away`, or the state of a limited device (`no MCP`).
    pub state: String,
    /// What a person can do about a state that is not `ready`.
    pub remedy: Option<String>,
    /// How many of its tools are listed: none once it has been away for longer than the grace time.
    pub tools: usize,
    /// Whether its tools were agreed on.
    pub pinned: bool,
    /// How many of its tools are held back, because they differ from what was agreed.
    pub quarantined: usize,
    /// Tools that are not offered because checking them would cost too much; the reason by name.
    pub withdrawn: BTreeMap<String, String>,
    /// Since when it is in this state, in milliseconds of Unix time.
    pub since: i64,
    pub admission: Admission,
    pub attributes: BTreeMap<String, Value>,
    pub instructions: Option<String>,
    /// What is wrong with its tools.
    pub warnings: Vec<String>,
    /// Who has it.
    pub lease: Option<LeaseView>,
}

impl DeviceView {
    pub fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// Whether it has words that anybody may have written.
    pub fn has_quotes(&self) -> bool {
        self.family.text_trust == TextTrust::Quoted && self.instructions.is_some()
    }

    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "id": self.id.as_str(),
            "name": self.name,
            "labels": self.labels,
            "key": self.key.0,
            "family": self.family.name,
            "admitted_by": self.admission.word(),
            "kind": self.kind,
            "version": self.version,
            "state": self.state,
            "tools": self.tools,
            "pinned": self.pinned,
            "quarantined": self.quarantined,
            "withdrawn": self.withdrawn,
            "since": self.since,
            "attributes": self.attributes,
        });
        for (key, text) in [("remedy", &self.remedy), ("instructions", &self.instructions)] {
            if let Some(text) = text {
                object[key] = json!(text);
            }
        }
        if !self.warnings.is_empty() {
            object["warnings"] = json!(self.warnings);
        }
        object
    }
}

/// What differs from the agreement about a device's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceChanges {
    pub id: String,
    pub pinned: bool,
    /// Which changes a pinned device may make by itself: `nothing`, `patch`, `minor` or `major`.
    pub follow: Option<String>,
    /// Names what is held back or gone, for [`Gateway::accept`](crate::Gateway::accept); `None` where nothing is.
    pub digest: Option<String>,
    pub held: Vec<HeldToolView>,
    /// Changes of what the device writes about itself.
    pub text: Vec<HeldChange>,
    /// That text as a whole.
    pub text_form: Option<HeldForm>,
    /// Agreed tools that the device no longer has.
    pub gone: Vec<String>,
}

/// A tool that is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldToolView {
    pub tool: String,
    pub why: String,
    pub changes: Vec<HeldChange>,
    pub form: HeldForm,
}

/// The whole of what would be accepted, beside what was agreed: JSON with its members in order, to be compared line by
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldForm {
    /// `None` for what is new.
    pub agreed: Option<String>,
    pub now: String,
}

/// One difference from the agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// JSON pointer into the tool.
    pub path: String,
    pub kind: String,
    /// `breaking`, `undecided`, `additive` or `cosmetic`.
    pub impact: String,
    /// With the device's new text: for people, never for models.
    pub message: String,
}

/// The tools one caller sees, sorted by name.
#[derive(Clone, Debug)]
pub struct ToolList {
    pub tools: Vec<PublicTool>,
    /// Equal digests, equal lists.
    pub digest: Digest,
}

impl ToolList {
    pub fn find(&self, name: &str) -> Option<&PublicTool> {
        let place = self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.tools.get(place)
    }
}

/// A tool under its public name.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicTool {
    pub name: String,
    /// Ready to be listed: named by its public name, and in the folded form with the argument that
    /// selects the device.
    pub tool: Tool,
    /// The schemas for clients that want those of the device.
    pub exact: ExactSchemas,
    /// The name its device knows it by.
    pub own_name: String,
    /// The device, in the unfolded form.
    pub device: Option<DeviceId>,
    /// The argument that selects the device, in the folded form: `device`, or `on_device` where the
    /// tool has a `device` of its own. Built-in tools have none.
    pub selector: Option<String>,
}

/// Something a device sent, or the gateway about it (topics `sinew/…`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredEvent {
    /// Counts the events of all devices; for callers who do not see all of them, those of its device.
    pub seq: u64,
    #[serde(skip)]
    pub nth: u64,
    /// Milliseconds of Unix time.
    pub at: i64,
    pub device: String,
    pub topic: String,
    pub body: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventPage {
    pub events: Vec<StoredEvent>,
    /// The cursor to continue from; opaque. Always present, also without events.
    pub next: String,
    /// Events after the cursor that are gone, because too many came.
    pub dropped: u64,
}

/// Any outcome but `ok`, in [`AuditFilter::outcome`].
pub(crate) const FAILED: &str = "failed";

/// Selects calls of the audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The id of the device that was called.
    pub device: Option<String>,
    /// The name of the caller.
    pub principal: Option<String>,
    /// `ok`, `failed`, or the `error_type` of a failure.
    pub outcome: Option<String>,
    pub kind: Option<String>,
    /// The id of a run.
    pub run: Option<String>,
    /// Only what happened at this time or later, in milliseconds of Unix time.
    pub since: Option<i64>,
    /// Only records before the one with this id: the last of a page leads to the next.
    pub before: Option<i64>,
    /// Only records after the one with this id.
    pub after: Option<i64>,
}

/// One call, decision or change, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRecord {
    pub id: i64,
    /// `call`, `decision`, `change` or `device`.
    pub kind: String,
    /// When the call started, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    /// The id of the caller's token, or its name where it has none; `None` in records of earlier formats and where the
    /// gateway itself acts.
    pub caller: Option<String>,
    pub door: String,
    pub device: Option<String>,
    /// The name the device knows the tool by.
    pub tool: Option<String>,
    /// The name the caller used.
    pub name: String,
    /// HMAC-SHA-256 over the JSON text of the arguments, with the key of this installation; empty for records of
    /// earlier formats.
    pub args_digest: String,
    /// The JSON text of the arguments, without secrets and cut where it is long.
    pub args: String,
    /// What decided about the call: verdict, rule or default, approval, and the version of the policy.
    pub decided: Option<String>,
    /// The id of the run that the call began or belongs to: a routine and its steps have the same.
    pub run: Option<String>,
    /// `ok`, or the `error_type` of the failure.
    pub outcome: String,
    pub duration_us: i64,
    /// The size of the answer.
    pub bytes: i64,
}

/// What a verification of the audit found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditReport {
    /// Records that were checked.
    pub records: u64,
    /// Records of formats before the chain; they cannot be checked.
    pub unchained: u64,
    /// Records whose arguments were removed.
    pub emptied: u64,
    pub seals: u64,
    /// The last record that a seal covers.
    pub sealed_until: Option<i64>,
    /// The last record that was checked.
    pub checked_until: i64,
    /// The last record that retention removed.
    pub removed_until: Option<i64>,
    /// The first hundred.
    pub problems: Vec<AuditProblem>,
    pub problems_in_all: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditProblem {
    pub fault: AuditFault,
    /// The record, or the first of several; 0 where it is about none.
    pub record: i64,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFault {
    /// A record is not as it was written, or not where.
    Changed,
    /// Records in the middle are missing.
    Gap,
    /// The newest records are missing.
    CutTail,
    /// A seal is missing, or not genuine.
    Seal,
}

impl AuditFault {
    pub fn word(self) -> &'static str {
        match self {
            AuditFault::Changed => "changed",
            AuditFault::Gap => "gap",
            AuditFault::CutTail => "cut_tail",
            AuditFault::Seal => "seal",
        }
    }
}
