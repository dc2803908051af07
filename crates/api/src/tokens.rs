//! Tokens and the audit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CallResult, UnknownFields};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    pub tokens: Vec<Token>,
    /// How many tokens there are, on all pages.
    #[serde(default)]
    pub total: usize,
    /// `after` of the next page; missing on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: String,
    /// `client`, `admin` or `device`.
    pub role: String,
    pub label: String,
    /// The device that a device token is for.
    #[serde(default)]
    pub device: Option<String>,
    /// When it was created, in milliseconds of Unix time; 0 for the gateway's own token.
    pub created: i64,
    /// When it stops being valid, in milliseconds of Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// When it was last used, in milliseconds of Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use: Option<i64>,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// What a new token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    Client,
    Admin,
    Device,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    pub role: TokenRole,
    #[serde(default)]
    pub label: String,
    /// The device that a device token is for. Only for the role `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How long it is valid, in seconds. Without it the token does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
    /// What to do if a valid token of a client or administrator has that label.
    #[serde(default)]
    pub if_taken: IfTaken,
}

/// What happens to a new token with the label of a valid one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IfTaken {
    /// It is refused.
    #[default]
    Refuse,
    /// It gets the label with a number; rules for the label do not apply to it.
    Number,
    /// It gets the label, and the old token is revoked.
    Replace,
}

/// A new token. Its text is shown only once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub about: Token,
    pub token: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    pub records: Vec<AuditEntry>,
}

/// One call, decision or change, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: i64,
    /// `call`, `decision` (about a call that waited for a person), `change` (by an administrator) or `device`.
    pub kind: String,
    /// When the call came, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    /// The id of the caller's token, or its name where it has none; null in old records and where the gateway itself acts.
    #[serde(default)]
    pub caller: Option<String>,
    /// The endpoint it came through.
    pub door: String,
    pub device: Option<String>,
    /// The name the device knows the tool by.
    pub tool: Option<String>,
    /// The name the caller used.
    pub name: String,
    /// HMAC-SHA-256 of the arguments as JSON, with the gateway's key; empty in records of 0.1.0.
    pub args_digest: String,
    /// The arguments as JSON, without secrets and cut where they are long; of a decision or change its details.
    pub args: String,
    /// What decided about the call: verdict, rule or default, approval, and the version of the policy.
    #[serde(default)]
    pub decided: Option<String>,
    /// The run that the call began or belongs to: a routine and its steps have the same.
    #[serde(default)]
    pub run: Option<String>,
    /// `ok`, or the `error_type` of the failure.
    pub outcome: String,
    pub duration_us: i64,
    /// Bytes of the answer.
    pub bytes: i64,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// What a verification of the audit found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditCheck {
    /// Whether nothing was found.
    pub ok: bool,
    /// Records that were checked.
    pub records: u64,
    /// Records of 0.1.0, which cannot be checked.
    pub unchained: u64,
    /// Records whose arguments were removed.
    #[serde(default)]
    pub emptied: u64,
    pub seals: u64,
    /// The last record that a seal covers.
    pub sealed_until: Option<i64>,
    /// The last record that was checked.
    pub checked_until: i64,
    /// The last record that was removed because newer ones needed the room.
    pub removed_until: Option<i64>,
    /// The first hundred.
    pub problems: Vec<AuditProblem>,
    pub problems_in_all: u64,
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditProblem {
    /// `changed`, `gap`, `cut_tail` or `seal`.
    pub fault: String,
    /// The record, or the first of several; 0 where it is about none.
    pub record: i64,
    pub message: String,
    #[serde(flatten)]
    pub more: UnknownFields,
}

/// Recent calls with their answers, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Journal {
    /// Whether calls are kept now.
    pub on: bool,
    /// The id of the newest call, or 0.
    pub last: u64,
    pub calls: Vec<JournalCall>,
}

/// Keeps the journal on, whatever the configuration says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordJournal {
    /// For how long, 60 at most; ask again to go on.
    pub seconds: u64,
    /// Which recording this is. Asking again under the same name replaces its time, and 0 seconds end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A call and its answer. Secrets are redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalCall {
    /// Counts up from 1 since the gateway started.
    pub id: u64,
    /// When the call came, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    /// The endpoint it came through.
    pub door: String,
    pub device: String,
    pub tool: String,
    /// Whether another call made it: a step of a routine, a member of a label.
    pub nested: bool,
    pub arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
    /// The failure object, where the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    pub duration_us: u64,
    /// What the device showed before and after a call that acted, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen_before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen_after: Option<String>,
    /// A selector for something on the screen that was not there before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landmark: Option<Value>,
    /// The arguments with selectors in place of names that hold only while a screen is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting_arguments: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub more: UnknownFields,
}
