//! A limited number of slots, in all and per owner: beyond a limit the oldest one makes room for the next.
//!
//! For what anybody can start and hold: connections that are not identified yet, pictures on their way. Many slow ones
//! must not keep others out, so nobody waits for a slot; of all owners, the one with the most slots loses one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

pub(crate) struct Slots<K: Clone + PartialEq> {
    taken: Arc<Mutex<VecDeque<TakenSlot<K>>>>,
    limit: usize,
    limit_per_owner: usize,
}

struct TakenSlot<K> {
    owner: K,
    evicted: CancellationToken,
}

/// A taken slot; dropping it frees it.
pub(crate) struct Slot<K: Clone + PartialEq> {
    slots: Slots<K>,
    /// Cancelled when the slot was given to somebody else.
    pub(crate) evicted: CancellationToken,
}

impl<K: Clone + PartialEq> Slots<K> {
    pub(crate) fn new(limit: usize, limit_per_owner: usize) -> Slots<K> {
        Slots { taken: Arc::default(), limit: limit.max(1), limit_per_owner: limit_per_owner.max(1) }
    }

    /// Takes a slot. An older one may be evicted for it.
    pub(crate) fn take(&self, owner: K) -> Slot<K> {
        let evicted = CancellationToken::new();
        let mut taken = self.taken();
        let count = |of: &K| taken.iter().filter(|slot| slot.owner == *of).count();
        let loser = match count(&owner) >= self.limit_per_owner {
            true => Some(owner.clone()),
            false if taken.len() >= self.limit => {
                // Of equals, the one whose oldest slot is oldest.
                let owners = taken.iter().rev().map(|slot| &slot.owner);
                owners.max_by_key(|owner| count(owner)).cloned()
            }
            false => None,
        };
        let oldest = loser.and_then(|loser| taken.iter().position(|slot| slot.owner == loser));
        if let Some(slot) = oldest.and_then(|index| taken.remove(index)) {
            slot.evicted.cancel();
        }
        taken.push_back(TakenSlot { owner, evicted: evicted.clone() });
        Slot { slots: self.clone(), evicted }
    }

    fn taken(&self) -> MutexGuard<'_, VecDeque<TakenSlot<K>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + PartialEq> Clone for Slots<K> {
    fn clone(&self) -> Slots<K> {
        Slots { taken: self.taken.clone(), limit: self.limit, limit_per_owner: self.limit_per_owner }
    }
}

impl<K: Clone + PartialEq> Drop for Slot<K> {
    fn drop(&mut self) {
        self.slots.taken().retain(|slot| slot.evicted != self.evicted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted<K: Clone + PartialEq>(slot: &Slot<K>) -> bool {
        slot.evicted.is_cancelled()
    }

    #[test]
    fn beyond_the_limit_of_one_owner_its_oldest_makes_room_and_no_other() {
        let slots = Slots::new(10, 2);
        let other = slots.take("other");
        let [one, two, three] = [(); 3].map(|()| slots.take("one"));
        assert!(is_evicted(&one) && !is_evicted(&two) && !is_evicted(&three) && !is_evicted(&other));
        drop(two);
        let four = slots.take("one");
        assert!(!is_evicted(&three) && !is_evicted(&four), "a dropped slot is free");
    }

    #[test]
    fn beyond_the_limit_of_all_the_oldest_of_the_owner_with_the_most_makes_room() {
        let slots = Slots::new(4, 4);
        let honest = slots.take("honest");
        let [one, two, three] = [(); 3].map(|()| slots.take("greedy"));
        let newcomer = slots.take("newcomer");
        assert!(is_evicted(&one) && ![&honest, &two, &three, &newcomer].into_iter().any(is_evicted));
    }

    #[test]
    fn among_equals_the_oldest_makes_room() {
        let slots = Slots::new(2, 2);
        let [one, two, three] = ["a", "b", "c"].map(|owner| slots.take(owner));
        assert!(is_evicted(&one) && !is_evicted(&two) && !is_evicted(&three));
    }
}
