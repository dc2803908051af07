//! Tokens: made at one node, valid at all, and revoked at all.
//!
//! Each node keeps all of them in its own store, so that they are valid while NATS is away. A token that was revoked
//! stays in the bucket and in a file of each node: neither a node that was away nor a store that lost everything brings
//! it back.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use sinew_gateway::aside;
use sinew_gateway::shared::{TokenListener, TokenRow, TokenStore};
use sinew_tool::ToolError;

use super::Parts;
use super::records::{SharedKey, SharedRecord, SharedToken};
use crate::core::lock;

/// The tokens of this node, as its store has them.
#[derive(Default)]
pub(super) struct TokenMirror {
    rows: Arc<Mutex<Vec<TokenRow>>>,
    local: OnceLock<Arc<dyn TokenStore>>,
    /// The ids of those that the bucket says were revoked.
    ended: Mutex<HashSet<String>>,
}

impl TokenMirror {
    pub(super) fn forget_bucket(&self) {
        lock(&self.ended).clear();
    }
}

pub(super) struct SharedTokens {
    parts: Arc<Parts>,
    local: Arc<dyn TokenStore>,
}

impl SharedTokens {
    pub(super) fn new(parts: Arc<Parts>, local: Arc<dyn TokenStore>) -> SharedTokens {
        let _ = parts.tokens.local.set(local.clone());
        SharedTokens { parts, local }
    }
}

impl TokenStore for SharedTokens {
    fn add(&self, token: TokenRow) -> Result<(), ToolError> {
        self.local.add(token.clone())?;
        let key = SharedKey::Token(token.id.clone());
        self.parts.unwritten.add(key, SharedRecord::Token(Box::new(SharedToken { row: Some(token) })));
        Ok(())
    }

    fn revoke(&self, id: &str) -> Result<(), ToolError> {
        let revoked = self.local.revoke(id);
        self.parts.kept.note_revoked(id);
        self.parts.unwritten.add(SharedKey::Token(id.to_owned()), revocation());
        revoked
    }

    fn note_use(&self, id: &str, at: i64) {
        self.local.note_use(id, at);
    }

    fn listen(&self, listener: TokenListener) {
        let seen = self.parts.tokens.rows.clone();
        self.local.listen(Box::new(move |rows| {
            lock(&seen).clone_from(&rows);
            listener(rows);
        }));
    }
}

fn revocation() -> SharedRecord {
    SharedRecord::Token(Box::new(SharedToken { row: None }))
}

fn has(parts: &Parts, id: &str) -> bool {
    lock(&parts.tokens.rows).iter().any(|row| row.id == id)
}

/// What another node says of a token, or this one.
pub(super) fn handle_change(parts: &Arc<Parts>, id: &str, token: SharedToken) {
    let Some(local) = parts.tokens.local.get() else { return };
    let done = match token.row {
        None => {
            lock(&parts.tokens.ended).insert(id.to_owned());
            aside(|| {
                parts.kept.note_revoked(id);
                if has(parts, id) { local.revoke(id) } else { Ok(()) }
            })
        }
        // A node that was away does not know it yet.
        Some(_) if parts.kept.is_revoked(id) => {
            parts.unwritten.add(SharedKey::Token(id.to_owned()), revocation());
            Ok(())
        }
        Some(row) if !has(parts, id) => aside(|| local.add(row)),
        Some(_) => Ok(()),
    };
    if let Err(error) = done {
        tracing::warn!(token = id, "a token of another node could not be kept here: {error}");
    }
}

/// The tokens and revocations that the bucket does not have.
pub(super) fn missing(parts: &Parts) -> Vec<(SharedKey, SharedRecord)> {
    let seen = lock(&parts.seen).clone();
    let ended = lock(&parts.tokens.ended).clone();
    let is_seen = |id: &str| seen.contains(&SharedKey::Token(id.to_owned()).text());
    let rows = lock(&parts.tokens.rows).clone();
    let rows = rows.into_iter().filter(|row| !is_seen(&row.id) && !parts.kept.is_revoked(&row.id)).map(|row| {
        let key = SharedKey::Token(row.id.clone());
        (key, SharedRecord::Token(Box::new(SharedToken { row: Some(row) })))
    });
    let revoked = parts.kept.revoked().into_iter().filter(|id| !(is_seen(id) && ended.contains(id)));
    rows.chain(revoked.map(|id| (SharedKey::Token(id), revocation()))).collect()
}
