//! Routines that are made of calls, and their files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes the text of a routine of calls that are in the journal. Nothing is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftRoutine {
    /// The name of the new routine: small letters, digits and `_`.
    pub name: String,
    /// The ids of the calls in the journal; those that failed, or that another call made, are left out.
    pub calls: Vec<u64>,
}

/// A routine to read and to change before it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutineDraft {
    pub name: String,
    /// The whole file.
    pub file: String,
    /// Calls that it was made of.
    pub calls: usize,
    pub steps: usize,
}

/// Writes a new routine into the gateway's folder. It replaces none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewRoutine {
    pub name: String,
    /// The whole file; its tool has the same name.
    pub file: String,
}

/// A routine that was saved. It is a tool within a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedRoutine {
    pub name: String,
    /// Where it is, on the machine of the gateway.
    pub path: String,
}
