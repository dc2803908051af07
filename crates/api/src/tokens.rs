//! Tokens and the audit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::More;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub tokens: Vec<Token>,
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
    /// Milliseconds of Unix time; 0 for the gateway's own.
    pub created: i64,
    /// From when on it opens nothing, in milliseconds of Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// When it was last used, in milliseconds of Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use: Option<i64>,
    #[serde(flatten)]
    pub more: More,
}

/// What a new token opens.
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
    /// The device of a device token, and of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How long it is valid, in seconds; without an end where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

/// A new token. Its text is shown this once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MadeToken {
    #[serde(flatten)]
    pub about: Token,
    pub token: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    pub records: Vec<Record>,
}

/// One call, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    pub id: i64,
    /// When the call came, in milliseconds of Unix time.
    pub at: i64,
    pub principal: String,
    /// The endpoint it came through.
    pub door: String,
    pub device: Option<String>,
    /// The name the device knows the tool by.
    pub tool: Option<String>,
    /// The name the caller used.
    pub name: String,
    /// SHA-256 of the arguments as JSON.
    pub args_digest: String,
    /// The arguments as JSON, cut where they are long.
    pub args: String,
    /// `ok`, or the `error_type` of the failure.
    pub outcome: String,
    pub duration_us: i64,
    /// Bytes of the answer.
    pub bytes: i64,
    #[serde(flatten)]
    pub more: More,
}
