//! Callers.

use sinew_policy::CallerKind;

use crate::shared::TokenKind;

/// In front of the board's id in the name of a voice server.
const RELAY: &str = "relay:";
/// In front of the name of a person in its id; no token has an id like it.
const PERSON: &str = "person:";
/// In front of a hook's name.
const HOOK: &str = "hook:";
/// In front of the id of a sign-in; no token has an id like it.
pub(crate) const SIGN_IN: &str = "oauth:";

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name in the audit: a token's label, or the endpoint's name for a local caller.
    pub name: String,
    /// Distinguishes callers of the same name: a token's id, or else the name.
    pub id: String,
    pub role: Role,
    /// How it came in.
    pub kind: CallerKind,
    /// Whether it uses a token that can be revoked; the gateway's own token and local callers cannot be revoked.
    pub revocable: bool,
}

/// What a token permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Lists and calls tools.
    Client,
    /// A person: also sees tools meant for people, and manages tokens and names.
    Admin,
    /// Connects as this device only: its id, its key or its hardware id.
    Device(String),
}

impl Principal {
    pub fn new(name: impl Into<String>, role: Role) -> Principal {
        let name = name.into();
        Principal { id: name.clone(), name, role, kind: CallerKind::Token, revocable: false }
    }

    /// The voice server behind a relayed board: `relay:<board>` in the audit and in the policy.
    pub fn relay(board: &str) -> Principal {
        Principal { kind: CallerKind::Relay, ..Principal::new(format!("{RELAY}{board}"), Role::Client) }
    }

    /// An event that starts something: `hook:<name>` in the audit and in the policy.
    pub fn hook(name: &str) -> Principal {
        Principal { kind: CallerKind::Hook, ..Principal::new(format!("{HOOK}{name}"), Role::Client) }
    }

    /// Somebody who showed a passphrase. What the role permits is checked where they come in.
    pub fn person(name: &str) -> Principal {
        let id = format!("{PERSON}{}", name.to_lowercase());
        Principal { id, kind: CallerKind::Person, ..Principal::new(name, Role::Admin) }
    }

    /// A client that somebody let sign in. `sign_in` distinguishes callers of the same name.
    pub fn oauth(name: &str, sign_in: &str, role: Role) -> Principal {
        let id = format!("{SIGN_IN}{sign_in}");
        Principal { id, kind: CallerKind::OAuth, revocable: true, ..Principal::new(name, role) }
    }

    /// The name by which rules know it.
    pub(crate) fn policy_name(&self) -> &str {
        match self.kind {
            CallerKind::Relay => self.name.strip_prefix(RELAY).unwrap_or(&self.name),
            CallerKind::Hook => self.name.strip_prefix(HOOK).unwrap_or(&self.name),
            _ => &self.name,
        }
    }
}

impl Role {
    /// The name in tables.
    pub fn word(&self) -> &'static str {
        self.kind().word()
    }

    /// The device that a device token is for.
    pub fn device(&self) -> Option<&str> {
        match self {
            Role::Device(device) => Some(device),
            Role::Client | Role::Admin => None,
        }
    }

    pub(crate) fn kind(&self) -> TokenKind {
        match self {
            Role::Client => TokenKind::Client,
            Role::Admin => TokenKind::Admin,
            Role::Device(_) => TokenKind::Device,
        }
    }
}
