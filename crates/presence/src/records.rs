//! What is kept in the store, and how it is asked.

use std::fmt;
use std::sync::Arc;

/// The name of a node, unique in its cluster: `[a-z0-9-]{1,32}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// A host name without its domain fits.
    pub const MAX_LENGTH: usize = 32;

    pub fn parse(text: &str) -> Option<NodeId> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=NodeId::MAX_LENGTH).contains(&text.len()) && text.bytes().all(is_plain);
        fits.then(|| NodeId(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One run of a node: another number after each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Boot(pub u64);

/// Who wrote an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    pub node: NodeId,
    pub boot: Boot,
}

/// The identity of a device in the store: a part of the SHA-256 of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceHash(pub [u8; 16]);

impl fmt::Display for DeviceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The number of a change. It grows with each change of a store and is never used again there; 0 is "no record".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// One lease of a node, from its first record to the last renewal: the revision of that first record, which names itself
/// with 0. A node that lost its lease, even for a moment, has another term after it.
pub type Term = Revision;

/// Which store numbered the changes: another one after the store was lost and made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(pub u64);

/// Under what a node holds a device. No two holders ever have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence {
    pub store: StoreId,
    pub revision: Revision,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Node(NodeId),
    Device(DeviceHash),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Record<B> {
    /// A node is alive in this run.
    Lease { boot: Boot, term: Term },
    /// A node stopped, or was declared dead.
    Ended,
    /// A device is held.
    Held(Entry<B>),
    /// A device left.
    Left,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry<B> {
    pub owner: Owner,
    /// In which lease it was written. What several nodes can reach is held only as long as that.
    pub term: Term,
    /// What other nodes need to know of the device.
    pub body: B,
}

/// A record as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<B> {
    pub key: Key,
    pub revision: Revision,
    pub record: Record<B>,
}

/// Joins an answer with what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAnswer {
    Done(Revision),
    /// The record had another revision than expected; nothing was written.
    Conflict,
    /// Nobody knows whether it was written.
    Lost,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReadAnswer<B> {
    /// May be older than what was written last.
    Found(Revision, Record<B>),
    Missing,
    Lost,
}
