//! Calls that wait for a person, and what the policy says about calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::UnknownFields;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// The calls that wait, oldest first.
    pub approvals: Vec<WaitingCall>,
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingCall {
    pub id: String,
    /// Who called.
    pub principal: String,
    /// The id of the device, and its name if it has one.
    pub device: String,
    pub tool: String,
    /// The JSON text of the arguments, without secrets.
    pub args: String,
    /// Whether `args` is only the beginning, as in the list of calls; `GET /api/v1/approvals/{id}` has all of it.
    #[serde(default)]
    pub args_cut: bool,
    /// What the tool does: `read`, `change`, `danger` or `unmarked`.
    #[serde(default)]
    pub effect: String,
    /// Why a person is asked.
    pub reason: String,
    /// For so many seconds an approval also covers the caller's later calls of the tool on the device, with any arguments,
    /// because the policy says so.
    #[serde(default)]
    pub keep_s: u64,
    /// When the call came, in milliseconds of Unix time.
    pub at: i64,
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    Approve,
    Deny,
}

/// A decision about a call that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decide {
    pub decision: ApprovalVerdict,
    /// Also approves this caller's calls of the tool on the device for so many seconds, with any arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86400))]
    pub for_s: Option<u64>,
    /// Also approves this caller's calls of the tool on the device until somebody revokes it; of tools that can do harm, or
    /// of which nobody said what they do, with the same arguments only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
    /// The person who decides, in place of the owner of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonLogin>,
}

/// A person with their passphrase.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonLogin {
    pub name: String,
    pub passphrase: String,
}

impl std::fmt::Debug for PersonLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersonLogin").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grants {
    /// Newest first.
    pub grants: Vec<Grant>,
}

/// How far an approval reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The same call, once.
    Once,
    /// Calls of the tool on the device, with any arguments.
    AnyArguments,
    /// Calls of the tool on the device, with the same arguments.
    SameArguments,
}

/// An approval that can still be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    pub id: String,
    /// Whose calls it covers.
    pub principal: String,
    /// The id of the device, and its name if it has one.
    pub device: String,
    pub tool: String,
    pub covers: Covers,
    /// The JSON text of the arguments that it is bound to, without secrets and perhaps cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Why a person was asked.
    pub reason: String,
    /// Who decided.
    pub by: String,
    /// When that was, in milliseconds of Unix time.
    pub at: i64,
    /// When it ends, in milliseconds of Unix time; missing where it stays until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<i64>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// A call to explain. It is not made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explain {
    /// The label of a token; the caller itself if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    pub device: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// What the policy says about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// What decided.
    pub reason: String,
    /// Whether whoever asks this may agree to such a call of its own, with `confirmed`.
    #[serde(default)]
    pub may_confirm: bool,
    /// Whether the tool is listed for the caller.
    pub listed: bool,
    /// Every rule whose selectors match, in the order of the file.
    pub rules: Vec<ExplainedRule>,
    /// What holds where no rule decides.
    pub default: String,
    pub effect: MarkedTool,
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRule {
    pub id: String,
    /// Whether it holds, and if not, why.
    pub result: String,
    /// What it says; missing where it says nothing about this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    pub tools: Vec<MarkedTool>,
    /// How many tools fit, on all pages.
    #[serde(default)]
    pub total: usize,
    /// `after` of the next page; missing on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A tool and what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedTool {
    pub device: String,
    pub tool: String,
    /// `read`, `change`, `danger` or `unmarked`.
    pub effect: String,
    /// Who says so; missing for unmarked tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// A guess from its hints and its name.
    pub proposal: String,
}

/// A policy to check against the devices that are known now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckPolicy {
    /// The table `[policy]` of a configuration file, as JSON.
    pub policy: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyWarnings {
    pub warnings: Vec<PolicyWarning>,
}

/// Something that probably does not do what was meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyWarning {
    /// The key in the configuration, for example `policy.rules.3.on`.
    pub key: String,
    pub message: String,
}
