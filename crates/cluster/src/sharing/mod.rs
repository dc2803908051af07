//! What the nodes of a cluster share beside their devices: tokens, public names of tools, ids, marks and pins of devices,
//! the keys that seal request state, and those of boards. It also tells of the policy of each node.
//!
//! Each node keeps its own copy, in its store and in a file, and serves from it while NATS is away. The bucket `shared`
//! of the cluster's store has the records of all; what a node changed waits until it is written there.
//!
//! - `records`: the records as text, every byte checked
//! - `unwritten`: what waits for the bucket
//! - `kept`: what must outlive a restart of this node and has no other place
//! - `tokens`, `names`, `ids`: three of the contracts of `sinew_gateway::shared`; the small ones are here

mod ids;
mod kept;
mod names;
mod records;
mod tokens;
mod unwritten;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use sinew_gateway::shared::{AgreedPins, BoardKeys, DeviceMarks, GivenMarks, RequestKeys, Shared};
use sinew_gateway::{Gateway, aside};
use sinew_presence::{DeviceHash, NodeId};
use sinew_tool::DeviceKey;
use tokio::runtime::Handle;

use crate::core::lock;
use crate::nats::Bucket;
use crate::records::hash_of;
use ids::{IdMirror, SharedIds};
use kept::KeptFile;
use names::{NameMirror, SharedNames};
use records::SharedPin;
pub(crate) use records::{NodeFacts, SharedKey, SharedRecord};
use tokens::{SharedTokens, TokenMirror};
use unwritten::Unwritten;

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
            ids: IdMirror::default(),
            unwritten: Unwritten::default(),
            marks: Mutex::default(),
            pins: Mutex::default(),
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
            ids: Arc::new(SharedIds { parts: parts() }),
            tokens: Arc::new(SharedTokens::new(parts(), local.tokens)),
            marks: Arc::new(SharedMarks { parts: parts() }),
            pins: Arc::new(SharedPins { parts: parts() }),
            request_keys: Arc::new(SharedRequestKeys { parts: parts(), local: local.request_keys }),
            board_keys: Arc::new(SharedBoardKeys { parts: parts(), local: local.board_keys }),
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
    ids: IdMirror,
    unwritten: Unwritten,
    /// What the cluster says that people gave devices.
    marks: Mutex<HashMap<DeviceHash, GivenMarks>>,
    /// What the cluster says is agreed on.
    pins: Mutex<HashMap<DeviceHash, SharedPin>>,
    nodes: Mutex<BTreeMap<NodeId, NodeFacts>>,
    /// The keys that the bucket has.
    seen: Mutex<HashSet<String>>,
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
        lock(&self.marks).clear();
        lock(&self.pins).clear();
        self.tokens.forget_bucket();
        self.names.forget_bucket();
        self.ids.forget_bucket();
        *lock(&self.bucket) = Some(bucket);
    }

    /// What a record of the bucket says. The answer names a device whose marks or pin changed.
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
            (SharedKey::BoardKey(node), SharedRecord::BoardKey(key)) if node != self.node => {
                aside(|| self.kept.note_board_key(&node, key));
            }
            (SharedKey::Id(id), SharedRecord::Id(device)) => self.ids.insert(id, device),
            (SharedKey::Token(id), SharedRecord::Token(token)) => tokens::handle_change(self, &id, *token),
            (SharedKey::Tool(_) | SharedKey::Name(_), SharedRecord::Name(name)) => self.names.insert(*name),
            (SharedKey::Device(device), SharedRecord::Marks(marks)) => {
                lock(&self.marks).insert(device, marks);
                return Some(device);
            }
            (SharedKey::Pin(device), SharedRecord::Pin(pin)) => {
                lock(&self.pins).insert(device, *pin);
                return Some(device);
            }
            (SharedKey::Node(node), SharedRecord::Node(facts)) => drop(lock(&self.nodes).insert(node, facts)),
            _ => {}
        }
        None
    }

    /// What people gave a device, as far as another node said it last.
    pub(crate) fn marks_of(&self, device: DeviceHash) -> Option<GivenMarks> {
        if self.unwritten.has(&SharedKey::Device(device)) {
            return None;
        }
        lock(&self.marks).get(&device).cloned()
    }

    /// What is agreed on about a device, as far as another node said it last.
    pub(crate) fn pin_of(&self, device: DeviceHash) -> Option<SharedPin> {
        if self.unwritten.has(&SharedKey::Pin(device)) {
            return None;
        }
        lock(&self.pins).get(&device).cloned()
    }

    /// What is known of the other nodes and of this one.
    pub(crate) fn nodes(&self) -> BTreeMap<NodeId, NodeFacts> {
        lock(&self.nodes).clone()
    }

    /// Puts into the bucket what this node has and the others do not. All that they had was handled.
    pub(crate) async fn reconcile(self: Arc<Parts>, gateway: &Gateway) {
        let Some(bucket) = self.bucket() else { return };
        if let Some(key) = gateway.request_keys().first() {
            self.unwritten.add(SharedKey::RequestKey(self.node.clone()), SharedRecord::RequestKey(*key));
        }
        if let Some(key) = gateway.board_keys().into_iter().next() {
            self.unwritten.add(SharedKey::BoardKey(self.node.clone()), SharedRecord::BoardKey(key));
        }
        for (key, record) in tokens::missing(&self) {
            self.unwritten.add(key, record);
        }
        for (device, marks) in gateway.given_marks() {
            let key = SharedKey::Device(hash_of(&device));
            if !lock(&self.marks).contains_key(&hash_of(&device)) && !self.unwritten.has(&key) {
                self.unwritten.add(key, SharedRecord::Marks(marks));
            }
        }
        for (device, agreed) in gateway.agreed_pins() {
            let (hash, pin) = (hash_of(&device), SharedPin::new(&device, Some(agreed)));
            let key = SharedKey::Pin(hash);
            if !lock(&self.pins).contains_key(&hash) && !self.unwritten.has(&key) {
                self.unwritten.add(key, SharedRecord::Pin(Box::new(pin)));
            }
        }
        ids::claim_all(&self, &bucket, gateway.id_claims()).await;
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
    pub(crate) fn tell_facts(&self, facts: NodeFacts) {
        self.unwritten.add(SharedKey::Node(self.node.clone()), SharedRecord::Node(facts));
    }

    /// Writes what was changed here, and what will be, for as long as the store can be used.
    pub(crate) async fn write_all(&self, bucket: &Bucket) {
        self.unwritten.write_all(bucket).await;
    }

    /// Ids that mean another device at this node than at others.
    pub(crate) fn ids_twice(&self) -> Vec<String> {
        self.ids.twice()
    }

    /// Changes that the other nodes do not know yet.
    pub(crate) fn waiting(&self) -> usize {
        self.unwritten.len()
    }
}

struct SharedMarks {
    parts: Arc<Parts>,
}

impl DeviceMarks for SharedMarks {
    fn note(&self, device: &DeviceKey, marks: GivenMarks) {
        self.parts.unwritten.add(SharedKey::Device(hash_of(device)), SharedRecord::Marks(marks));
    }
}

struct SharedPins {
    parts: Arc<Parts>,
}

impl AgreedPins for SharedPins {
    fn note(&self, device: &DeviceKey, agreed: Option<String>) {
        let pin = SharedPin::new(device, agreed);
        self.parts.unwritten.add(SharedKey::Pin(hash_of(device)), SharedRecord::Pin(Box::new(pin)));
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

struct SharedBoardKeys {
    parts: Arc<Parts>,
    local: Arc<dyn BoardKeys>,
}

impl BoardKeys for SharedBoardKeys {
    /// Each node makes tokens with its own key, and finds those of the others.
    fn keys(&self) -> Vec<String> {
        let mut keys = self.local.keys();
        keys.extend(self.parts.kept.board_keys());
        keys
    }
}
