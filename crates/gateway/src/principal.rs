//! Who asks.

/// Somebody a door has recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name that stands in the audit: a token's label, or the door's word for a local caller.
    pub name: String,
    /// What tells callers of the same name apart: a token's id, or else the name.
    pub id: String,
    pub role: Role,
    /// Whether it came with a token that can be revoked; the gateway's own and local callers cannot lose theirs.
    pub revocable: bool,
}

/// What a token opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Lists and calls tools.
    Client,
    /// A person: also sees tools meant for people, and manages tokens and names.
    Admin,
    /// The device door, for this device alone: its id, its key or its hardware id.
    Device(String),
}

impl Principal {
    pub fn new(name: impl Into<String>, role: Role) -> Principal {
        let name = name.into();
        Principal { id: name.clone(), name, role, revocable: false }
    }
}

impl Role {
    /// The word in tables and in the store.
    pub fn word(&self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Admin => "admin",
            Role::Device(_) => "device",
        }
    }
}
