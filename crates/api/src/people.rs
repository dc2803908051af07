//! People who use the console, and how they sign in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnknownFields;

/// What a person may do in the console. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PersonRole {
    /// Looks at everything and changes nothing.
    Viewer,
    /// Also decides about calls that wait.
    Approver,
    /// Also calls tools and manages devices, tokens and people.
    Admin,
}

impl PersonRole {
    pub fn word(self) -> &'static str {
        match self {
            PersonRole::Viewer => "viewer",
            PersonRole::Approver => "approver",
            PersonRole::Admin => "admin",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct People {
    pub people: Vec<Person>,
}

/// A person who signs in to the console with a passphrase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Person {
    pub name: String,
    pub role: PersonRole,
    /// When the person was added, in milliseconds of Unix time.
    pub created: i64,
    #[serde(flatten)]
    pub more: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewPerson {
    /// Letters, digits, `-`, `_` and `.`.
    pub name: String,
    pub role: PersonRole,
    /// At least twelve characters. Without it one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<String>,
}

/// A person who was added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedPerson {
    #[serde(flatten)]
    pub about: Person,
    /// The passphrase that was made, which is shown only once; missing where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<String>,
}

/// A link that signs in to the console, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoginLink {
    /// The address of the login page, relative to the gateway's, with the code behind `#`.
    pub path: String,
    /// For how many seconds it can be used.
    pub seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignIns {
    /// Whether people can let clients in at this gateway.
    pub enabled: bool,
    /// Newest first.
    pub sign_ins: Vec<SignInEntry>,
}

/// A client that a person let in by signing in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignInEntry {
    pub id: String,
    /// The name in the audit; rules write it behind `oauth:`.
    pub caller: String,
    pub person: String,
    /// What the client calls itself. Nobody has checked that.
    pub client: String,
    /// The host by which it is known: of the document about it, or where its answers go.
    pub place: String,
    pub scope: String,
    /// When the person let it in, in milliseconds of Unix time.
    pub created: i64,
    /// When it last called, in milliseconds of Unix time.
    pub last_use: i64,
    /// When it ends unless it is used, in milliseconds of Unix time.
    pub ends: i64,
    #[serde(flatten)]
    pub more: UnknownFields,
}
