//! Public names, of which each means one tool at all nodes.
//!
//! A name and a tool are claimed with a record each, by compare-and-set: the first node has it, and the others take it
//! over. While NATS is away, a node claims for itself alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use sinew_gateway::aside;
use sinew_gateway::shared::{NameChange, NameClaim, NameClaims};
use sinew_presence::{Revision, WriteAnswer};
use sinew_tool::ToolError;

use super::records::{SharedKey, SharedName, SharedRecord};
use super::{AT_ONCE, Parts};
use crate::core::lock;
use crate::nats::Bucket;

/// How long new names wait for the cluster. Without an answer they are kept here alone.
const PATIENCE: Duration = Duration::from_secs(3);

/// The names of all nodes.
#[derive(Default)]
pub(super) struct NameMirror {
    /// By the key of the tool, and by that of the name.
    known: Mutex<HashMap<String, SharedName>>,
}

impl NameMirror {
    pub(super) fn insert(&self, name: SharedName) {
        let mut known = lock(&self.known);
        for key in [SharedKey::tool(&name.tool, &name.digest), SharedKey::name(&name.name, &name.digest)] {
            known.insert(key.text(), name.clone());
        }
    }

    pub(super) fn forget_bucket(&self) {
        lock(&self.known).clear();
    }

    fn get(&self, key: &SharedKey) -> Option<SharedName> {
        lock(&self.known).get(&key.text()).cloned()
    }
}

pub(super) struct SharedNames {
    pub(super) parts: Arc<Parts>,
    pub(super) local: Arc<dyn NameClaims>,
}

impl NameClaims for SharedNames {
    fn keep(&self, changes: Vec<NameChange>) -> Result<Vec<NameClaim>, ToolError> {
        let Some(bucket) = self.parts.bucket() else { return self.local.keep(changes) };
        let claims: Vec<NameClaim> = changes
            .iter()
            .filter_map(|change| match change {
                NameChange::Keep(claim) => Some(claim.clone()),
                NameChange::Release { .. } => None,
            })
            .collect();
        let (sender, receiver) = mpsc::sync_channel(1);
        let parts = self.parts.clone();
        self.parts.runtime.spawn(async move {
            let _ = sender.send(claim(&parts, &bucket, claims).await);
        });
        let first = aside(|| receiver.recv_timeout(PATIENCE)).unwrap_or_else(|_| {
            tracing::warn!("the names of new tools are not agreed on with the cluster: NATS does not answer");
            Vec::new()
        });
        // What another node was first with is not kept as it was asked for, but as it is there.
        let is_late = |change: &NameChange| match change {
            NameChange::Keep(claim) => first.iter().any(|(asked, _)| asked == claim),
            NameChange::Release { .. } => false,
        };
        let theirs = first.iter().map(|(_, theirs)| NameChange::Keep(theirs.clone()));
        let kept = changes.iter().filter(|change| !is_late(change)).cloned().chain(theirs).collect();
        self.local.keep(kept)?;
        Ok(first.into_iter().map(|(_, theirs)| theirs).collect())
    }
}

/// Claims names that this node has from before. Returns how many another node knows otherwise.
pub(super) async fn claim_all(parts: &Arc<Parts>, bucket: &Bucket, claims: Vec<NameClaim>) -> usize {
    claim(parts, bucket, claims).await.len()
}

/// Claims names; the answer has those that another node was first with, and as what.
async fn claim(parts: &Arc<Parts>, bucket: &Bucket, claims: Vec<NameClaim>) -> Vec<(NameClaim, NameClaim)> {
    let asked = futures_util::stream::iter(claims).map(|claim| async move {
        match claim_one(&parts.names, bucket, &claim).await {
            Ok(theirs) => theirs.map(|theirs| (claim, theirs)),
            Err(why) => {
                tracing::debug!(name = &*claim.name, "a name is not agreed on with the cluster: {why}");
                None
            }
        }
    });
    asked.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

async fn claim_one(mirror: &NameMirror, bucket: &Bucket, claim: &NameClaim) -> Result<Option<NameClaim>, String> {
    let mine = SharedName::of(claim);
    let (tool, name) = (SharedKey::tool(&mine.tool, &mine.digest), SharedKey::name(&mine.name, &mine.digest));
    let is_same_tool = |other: &SharedName| (&other.tool, &other.digest) == (&mine.tool, &mine.digest);
    // The same tool has another name there, and counts for our device here.
    let renamed = |other: SharedName| {
        let theirs = NameClaim { owner: claim.owner.clone(), face: claim.face, ..other.claim() };
        (other.name != mine.name).then_some(theirs)
    };
    if let Some(other) = mirror.get(&tool) {
        return Ok(renamed(other));
    }
    if let Some(other) = mirror.get(&name).filter(|other| !is_same_tool(other)) {
        return Ok(Some(other.claim()));
    }
    // The name first: one whose tool another node named meanwhile stays claimed, which does no harm.
    if let Some(other) = create(bucket, &name, &mine).await?.filter(|other| !is_same_tool(other)) {
        mirror.insert(other.clone());
        return Ok(Some(other.claim()));
    }
    match create(bucket, &tool, &mine).await? {
        None => {
            mirror.insert(mine);
            Ok(None)
        }
        Some(other) => {
            mirror.insert(other.clone());
            Ok(renamed(other))
        }
    }
}

/// Writes a record where there is none; otherwise returns what there is.
async fn create(bucket: &Bucket, key: &SharedKey, name: &SharedName) -> Result<Option<SharedName>, String> {
    let record = SharedRecord::Name(Box::new(name.clone()));
    let text = record.text().ok_or("it is too long")?;
    match bucket.write(&key.text(), Bytes::from(text), Revision::default()).await {
        WriteAnswer::Done(_) => Ok(None),
        WriteAnswer::Lost => Err("the store did not answer".to_owned()),
        WriteAnswer::Conflict => {
            let (_, text) = bucket.read(&key.text()).await?.ok_or("its record is not there yet")?;
            match SharedRecord::parse(&key.text(), &text) {
                Some(SharedRecord::Name(other)) => Ok(Some(*other)),
                _ => Err("its record is of another version".to_owned()),
            }
        }
    }
}
