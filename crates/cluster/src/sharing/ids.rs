//! Ids of devices, of which each means one device at all nodes.
//!
//! An id is claimed with a record, by compare-and-set: the first node has it, and the others give their device another
//! one. While NATS is away a node decides for itself; what was given twice then is reported.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use sinew_gateway::aside;
use sinew_gateway::shared::IdClaims;
use sinew_presence::{DeviceHash, Revision, WriteAnswer};
use sinew_tool::{DeviceId, DeviceKey};

use super::records::{SharedKey, SharedRecord};
use super::{AT_ONCE, Parts};
use crate::core::lock;
use crate::nats::Bucket;
use crate::records::hash_of;

/// How long a new id waits for the cluster.
const PATIENCE: Duration = Duration::from_secs(3);

/// The ids of all nodes.
#[derive(Default)]
pub(super) struct IdMirror {
    known: Mutex<HashMap<DeviceId, DeviceHash>>,
    /// Those that mean another device at this node.
    twice: Mutex<BTreeSet<String>>,
}

impl IdMirror {
    pub(super) fn insert(&self, id: DeviceId, device: DeviceHash) {
        lock(&self.known).insert(id, device);
    }

    pub(super) fn forget_bucket(&self) {
        lock(&self.known).clear();
    }

    pub(super) fn twice(&self) -> Vec<String> {
        lock(&self.twice).iter().cloned().collect()
    }
}

pub(super) struct SharedIds {
    pub(super) parts: Arc<Parts>,
}

impl IdClaims for SharedIds {
    fn claim(&self, id: &DeviceId, device: &DeviceKey) -> bool {
        let device = hash_of(device);
        if let Some(holder) = lock(&self.parts.ids.known).get(id) {
            return *holder == device;
        }
        let Some(bucket) = self.parts.bucket() else { return true };
        let (sender, receiver) = mpsc::sync_channel(1);
        let (parts, wanted) = (self.parts.clone(), id.clone());
        self.parts.runtime.spawn(async move {
            let _ = sender.send(claim(&parts.ids, &bucket, &wanted, device).await);
        });
        match aside(|| receiver.recv_timeout(PATIENCE)) {
            Ok(Ok(holder)) => holder == device,
            Ok(Err(why)) => alone(id, &why),
            Err(_) => alone(id, "NATS does not answer"),
        }
    }
}

fn alone(id: &DeviceId, why: &str) -> bool {
    tracing::warn!(device = %id, "the id of a new device is not agreed on with the cluster: {why}");
    true
}

/// Claims the ids that this node gave before, and notes those that are another device's.
pub(super) async fn claim_all(parts: &Parts, bucket: &Bucket, claims: Vec<(DeviceId, DeviceKey)>) {
    let asked = futures_util::stream::iter(claims).map(|(id, key)| async move {
        let device = hash_of(&key);
        match claim(&parts.ids, bucket, &id, device).await {
            Ok(holder) => (holder != device).then(|| id.to_string()),
            Err(why) => {
                tracing::debug!(device = %id, "an id is not agreed on with the cluster: {why}");
                None
            }
        }
    });
    let twice: BTreeSet<String> = asked.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
    if !twice.is_empty() {
        let ids = twice.iter().cloned().collect::<Vec<_>>().join(", ");
        tracing::warn!(
            "these ids are another device's at other nodes: {ids}; forget one of both (`sinew devices forget`)"
        );
    }
    *lock(&parts.ids.twice) = twice;
}

/// Whose id it is, after this device asked for it.
async fn claim(mirror: &IdMirror, bucket: &Bucket, id: &DeviceId, device: DeviceHash) -> Result<DeviceHash, String> {
    if let Some(holder) = lock(&mirror.known).get(id) {
        return Ok(*holder);
    }
    let key = SharedKey::Id(id.clone()).text();
    let text = SharedRecord::Id(device).text().ok_or("it is too long")?;
    let holder = match bucket.write(&key, Bytes::from(text), Revision::default()).await {
        WriteAnswer::Done(_) => device,
        WriteAnswer::Lost => return Err("the store did not answer".to_owned()),
        WriteAnswer::Conflict => {
            let (_, text) = bucket.read(&key).await?.ok_or("its record is not there yet")?;
            match SharedRecord::parse(&key, &text) {
                Some(SharedRecord::Id(holder)) => holder,
                _ => return Err("its record is of another version".to_owned()),
            }
        }
    };
    mirror.insert(id.clone(), holder);
    Ok(holder)
}
