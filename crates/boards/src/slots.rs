//! Slots for what a board or a stranger can start and hold; whoever loses its slot is told by a token.

use std::hash::Hash;

use sinew_tool::slots::{SlotTable, TakenSlot};
use tokio_util::sync::CancellationToken;

pub(crate) struct Slots<K: Clone + Eq + Hash>(SlotTable<K>);

/// A taken slot; dropping it frees it.
pub(crate) struct Slot<K: Clone + Eq + Hash> {
    _taken: Option<TakenSlot<K>>,
    /// Cancelled when the slot was given to somebody else.
    pub(crate) evicted: CancellationToken,
}

impl<K: Clone + Eq + Hash> Slots<K> {
    pub(crate) fn new(limit: usize, limit_per_owner: usize) -> Slots<K> {
        Slots(SlotTable::new(limit, limit_per_owner))
    }

    /// Takes a slot. An older one may be evicted for it.
    pub(crate) fn take(&self, owner: K) -> Slot<K> {
        let evicted = CancellationToken::new();
        let evict = evicted.clone();
        // Slots here are never marked as in use, so there is always one that can go.
        Slot { _taken: self.0.take(owner, move || evict.cancel()), evicted }
    }
}
