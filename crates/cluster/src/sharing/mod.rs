//! What the nodes of a cluster share beside their devices: tokens, public names of tools, what people gave devices, and
//! the keys that seal request state. It also tells of the policy of each node.
//!
//! Each node keeps its own copy, in its store and in a file, and serves from it while NATS is away. The bucket `shared`
//! of the cluster's store has the records of all; what a node changed meanwhile follows when NATS is back.
//!
//! - `records`: the records as text, every byte checked
//! - `kept`: what must outlive a restart of this node and has no other place
//! - `tokens`, `names`: two of the contracts of `sinew_gateway::shared`; the two small ones are here

mod kept;
mod names;
mod records;
mod tokens;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use sinew_gateway::shared::{DeviceMarks, GivenMarks, RequestKeys, Shared};
use sinew_gateway::{Gateway, aside};
use sinew_presence::{DeviceHash, NodeId};
use sinew_tool::DeviceKey;
use tokio::runtime::Handle;

use crate::core::lock;
use crate::nats::Bucket;
use crate::records::hash_of;
use kept::KeptFile;
use names::{NameMirror, SharedNames};
pub(crate) use records::NodeFacts;
use records::{SharedKey, SharedRecord};
use tokens::{SharedTokens, TokenMirror};

/// Records that are written at once when a node joins.
const AT_ONCE: usize = 64;

/// What a gateway shares with its cluster. Made before the gateway, which is opened with [`Sharing::share`].
pub struct Sharing {
    pub(crate) parts: Arc<Parts>,
}

impl Sharing {
    /// `state` is the state directory of the gateway.
    pub fn open(node: NodeId, state: Option<&Path>) -> Result<Sharing, String> {
        let kept = KeptFile::open(state.map(|state| state.join("cluster.json")))?;
        let parts = Parts {
            node,
            runtime: Handle::current(),
            kept,
            bucket: Mutex::default(),
            tokens: TokenMirror::default(),
            names: NameMirror::default(),
            marks: Mutex::default(),
            nodes: Mutex::default(),
            seen: Mutex::default(),
        };
        Ok(Sharing { parts: Arc::new(parts) })
    }

    /// The parts that the gateway uses, in front of its local ones.
    pub fn share(&self, local: Shared) -> Shared {
        let parts = || self.parts.clone();
        Shared {
            names: Arc::new(SharedNames { parts: parts(), local: local.names }),
            tokens: Arc::new(SharedTokens::new(parts(), local.tokens)),
            marks: Arc::new(SharedMarks { parts: parts() }),
            request_keys: Arc::new(SharedRequestKeys { parts: parts(), local: local.request_keys }),
            ..local
        }
    }
}

/// What all forms use.
pub(crate) struct Parts {
    node: NodeId,
    runtime: Handle,
    kept: KeptFile,
    /// `None` while NATS is away.
    bucket: Mutex<Option<Bucket>>,
    tokens: TokenMirror,
    names: NameMirror,
    marks: Mutex<Marks>,
    nodes: Mutex<BTreeMap<NodeId, NodeFacts>>,
    /// The keys that the bucket has.
    seen: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct Marks {
    /// What the cluster says.
    known: HashMap<DeviceHash, GivenMarks>,
    /// What was changed here and is not in the bucket yet.
    waiting: HashMap<DeviceHash, GivenMarks>,
}

impl Parts {
    fn bucket(&self) -> Option<Bucket> {
        lock(&self.bucket).clone()
    }

    /// NATS is away: what is changed now follows later.
    pub(crate) fn set_away(&self) {
        *lock(&self.bucket) = None;
    }

    /// The watch of a bucket begins.
    pub(crate) fn begin(&self, bucket: Bucket) {
        // It may be another bucket than before.
        lock(&self.seen).clear();
        lock(&self.nodes).clear();
        lock(&self.marks).known.clear();
        self.tokens.forget_bucket();
        self.names.forget_bucket();
        *lock(&self.bucket) = Some(bucket);
    }

    /// What a record of the bucket says. The answer names a device whose marks changed.
    pub(crate) fn handle_change(self: &Arc<Parts>, key: &str, text: &[u8]) -> Option<DeviceHash> {
        let Some(parsed) = SharedKey::parse(key).zip(SharedRecord::parse(key, text)) else {
            tracing::debug!(key, "a shared record of another version was left alone");
            return None;
        };
        lock(&self.seen).insert(key.to_owned());
        match parsed {
            (SharedKey::RequestKey(node), SharedRecord::RequestKey(key)) if node != self.node => {
                aside(|| self.kept.note_request_key(&node, key));
            }
            (SharedKey::Token(id), SharedRecord::Token(token)) => tokens::handle_change(self, &id, *token),
            (SharedKey::Tool(_) | SharedKey::Name(_), SharedRecord::Name(name)) => self.names.insert(*name),
            (SharedKey::Device(device), SharedRecord::Marks(marks)) => {
                lock(&self.marks).known.insert(device, marks);
                return Some(device);
            }
            (SharedKey::Node(node), SharedRecord::Node(facts)) => drop(lock(&self.nodes).insert(node, facts)),
            _ => {}
        }
        None
    }

    /// What people gave a device, as far as another node said it last.
    pub(crate) fn marks_of(&self, device: DeviceHash) -> Option<GivenMarks> {
        let marks = lock(&self.marks);
        if marks.waiting.contains_key(&device) {
            return None;
        }
        marks.known.get(&device).cloned()
    }

    /// What is known of the other nodes and of this one.
    pub(crate) fn nodes(&self) -> BTreeMap<NodeId, NodeFacts> {
        lock(&self.nodes).clone()
    }

    /// Puts into the bucket what this node has and the others do not. All that they had was handled.
    pub(crate) async fn reconcile(self: Arc<Parts>, gateway: &Gateway) {
        let Some(bucket) = self.bucket() else { return };
        let mut writes: Vec<(SharedKey, SharedRecord)> = Vec::new();
        let own_key = gateway.request_keys().first().copied();
        writes.extend(own_key.map(|key| (SharedKey::RequestKey(self.node.clone()), SharedRecord::RequestKey(key))));
        writes.extend(tokens::missing(&self));
        for (device, marks) in gateway.given_marks() {
            let hash = hash_of(&device);
            let mut all = lock(&self.marks);
            if !all.known.contains_key(&hash) {
                all.waiting.insert(hash, marks);
            }
        }
        let waiting = lock(&self.marks).waiting.clone();
        writes
            .extend(waiting.into_iter().map(|(device, marks)| (SharedKey::Device(device), SharedRecord::Marks(marks))));
        let written = futures_util::stream::iter(writes).map(|(key, record)| self.write(&bucket, key, record));
        written.buffer_unordered(AT_ONCE).for_each(|()| std::future::ready(())).await;
        let conflicts = names::claim_all(&self, &bucket, gateway.name_claims()).await;
        if conflicts > 0 {
            tracing::warn!(
                names = conflicts,
                "tools of this node have names that other nodes know otherwise; they keep them until the node forgets \
                 their devices"
            );
        }
    }

    /// Tells the others what they should know of this node.
    pub(crate) async fn tell_facts(&self, facts: NodeFacts) {
        if let Some(bucket) = self.bucket() {
            self.write(&bucket, SharedKey::Node(self.node.clone()), SharedRecord::Node(facts)).await;
        }
    }

    /// Writes a record, over whatever there is. What was not written is written when the node joins again.
    async fn write(&self, bucket: &Bucket, key: SharedKey, record: SharedRecord) {
        let (Some(text), name) = (record.text(), key.text()) else { return };
        let written = match &record {
            // A token that was revoked stays so.
            SharedRecord::Token(token) if token.row.is_some() => bucket.keep(&name, Bytes::from(text)).await,
            _ => bucket.put(&name, Bytes::from(text)).await,
        };
        match (written, key, record) {
            (Err(why), ..) => tracing::debug!(key = name, "a shared record is not written yet: {why}"),
            (Ok(()), SharedKey::Device(device), SharedRecord::Marks(marks)) => {
                let mut all = lock(&self.marks);
                if all.waiting.get(&device) == Some(&marks) {
                    all.waiting.remove(&device);
                }
            }
            _ => {}
        }
    }

    /// Writes a record without waiting for it.
    fn spawn_write(self: &Arc<Parts>, key: SharedKey, record: SharedRecord) {
        let Some(bucket) = self.bucket() else { return };
        let parts = self.clone();
        self.runtime.spawn(async move { parts.write(&bucket, key, record).await });
    }
}

struct SharedMarks {
    parts: Arc<Parts>,
}

impl DeviceMarks for SharedMarks {
    fn note(&self, device: &DeviceKey, marks: GivenMarks) {
        let hash = hash_of(device);
        lock(&self.parts.marks).waiting.insert(hash, marks.clone());
        self.parts.spawn_write(SharedKey::Device(hash), SharedRecord::Marks(marks));
    }
}

struct SharedRequestKeys {
    parts: Arc<Parts>,
    local: Arc<dyn RequestKeys>,
}

impl RequestKeys for SharedRequestKeys {
    /// Each node seals with its own key, and knows those of the others.
    fn keys(&self) -> Vec<[u8; 32]> {
        let mut keys = self.local.keys();
        keys.extend(self.parts.kept.request_keys().into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
        keys
    }
}
