//! A limited number of slots, in all and per owner: beyond a limit, the one that was unused longest makes room.
//!
//! For what anybody can start and hold: connections that are not identified yet, pictures on their way. Many slow ones
//! must not keep others out, so nobody waits for a slot; of all owners, the one with the most slots loses one. Slots that
//! are in use stay.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In place of the number of uses, once a slot was given to another owner.
const EVICTED: usize = usize::MAX;

/// Slots of owners such as addresses or tokens. Cheap to clone.
pub struct SlotTable<K: Clone + Eq + Hash> {
    shared: Arc<SharedSlots<K>>,
}

struct SharedSlots<K> {
    taken: Mutex<Vec<Arc<SlotState<K>>>>,
    /// Counts uses, so that slots can be ordered by their last one.
    uses: AtomicU64,
    limit: usize,
    limit_per_owner: usize,
}

struct SlotState<K> {
    owner: K,
    last_used: AtomicU64,
    in_use: AtomicUsize,
    evict: Box<dyn Fn() + Send + Sync>,
}

/// A taken slot; dropping it frees it.
pub struct TakenSlot<K: Clone + Eq + Hash> {
    shared: Arc<SharedSlots<K>>,
    state: Arc<SlotState<K>>,
}

/// Keeps a slot from being evicted.
pub struct SlotUse<K> {
    shared: Arc<SharedSlots<K>>,
    state: Arc<SlotState<K>>,
}

impl<K: Clone + Eq + Hash> SlotTable<K> {
    pub fn new(limit: usize, limit_per_owner: usize) -> SlotTable<K> {
        let (limit, limit_per_owner) = (limit.max(1), limit_per_owner.max(1));
        SlotTable {
            shared: Arc::new(SharedSlots { taken: Mutex::default(), uses: AtomicU64::new(0), limit, limit_per_owner }),
        }
    }

    /// Takes a slot. Another one may be evicted for it, whose `evict` is called; `None` if all that could be are in use.
    pub fn take(&self, owner: K, evict: impl Fn() + Send + Sync + 'static) -> Option<TakenSlot<K>> {
        let mut taken = self.shared.lock();
        while let Some(loser) = self.shared.find_loser(&taken, &owner) {
            let loser = loser?;
            // It may just have been put to use.
            if taken[loser].in_use.compare_exchange(0, EVICTED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                (taken.swap_remove(loser).evict)();
                break;
            }
        }
        let (last_used, in_use) = (AtomicU64::new(self.shared.next_use()), AtomicUsize::new(0));
        let state = Arc::new(SlotState { owner, last_used, in_use, evict: Box::new(evict) });
        taken.push(state.clone());
        Some(TakenSlot { shared: self.shared.clone(), state })
    }
}

impl<K: Clone + Eq + Hash> SharedSlots<K> {
    /// The slot that makes room for one more of this owner: `None` if there is room, `Some(None)` if nothing can go.
    fn find_loser(&self, taken: &[Arc<SlotState<K>>], owner: &K) -> Option<Option<usize>> {
        let idle = || taken.iter().enumerate().filter(|(_, slot)| slot.in_use.load(Ordering::Acquire) == 0);
        let last_used = |slot: &SlotState<K>| slot.last_used.load(Ordering::Relaxed);
        if taken.iter().filter(|slot| slot.owner == *owner).count() >= self.limit_per_owner {
            let own = idle().filter(|(_, slot)| slot.owner == *owner);
            return Some(own.min_by_key(|(_, slot)| last_used(slot)).map(|(index, _)| index));
        }
        if taken.len() < self.limit {
            return None;
        }
        let mut counts: HashMap<&K, usize> = HashMap::new();
        for slot in taken {
            *counts.entry(&slot.owner).or_default() += 1;
        }
        let most = idle().max_by_key(|(_, slot)| (counts[&slot.owner], std::cmp::Reverse(last_used(slot))));
        Some(most.map(|(index, _)| index))
    }
}

impl<K> SharedSlots<K> {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SlotState<K>>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }
}

impl<K: Clone + Eq + Hash> TakenSlot<K> {
    /// The slot is in use, and is not evicted, until the result is dropped. `None` if it was evicted.
    pub fn start_use(&self) -> Option<SlotUse<K>> {
        let one_more = |uses| (uses != EVICTED).then(|| uses + 1);
        self.state.in_use.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(SlotUse { shared: self.shared.clone(), state: self.state.clone() })
    }
}

impl<K: Clone + Eq + Hash> Drop for TakenSlot<K> {
    fn drop(&mut self) {
        let mut taken = self.shared.lock();
        if let Some(index) = taken.iter().position(|slot| Arc::ptr_eq(slot, &self.state)) {
            taken.swap_remove(index);
        }
    }
}

impl<K> Drop for SlotUse<K> {
    fn drop(&mut self) {
        self.state.last_used.store(self.shared.next_use(), Ordering::Relaxed);
        self.state.in_use.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<K: Clone + Eq + Hash> Clone for SlotTable<K> {
    fn clone(&self) -> SlotTable<K> {
        SlotTable { shared: self.shared.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Held {
        slot: TakenSlot<&'static str>,
        evicted: Arc<AtomicUsize>,
    }

    impl Held {
        fn is_evicted(&self) -> bool {
            self.evicted.load(Ordering::Relaxed) == 1
        }
    }

    fn take(slots: &SlotTable<&'static str>, owner: &'static str) -> Option<Held> {
        let evicted = Arc::new(AtomicUsize::new(0));
        let count = evicted.clone();
        let slot = slots.take(owner, move || count.store(1, Ordering::Relaxed))?;
        Some(Held { slot, evicted })
    }

    fn take_all<const N: usize>(slots: &SlotTable<&'static str>, owners: [&'static str; N]) -> [Held; N] {
        owners.map(|owner| take(slots, owner).expect("a slot"))
    }

    fn evicted(held: &[&Held]) -> Vec<bool> {
        held.iter().map(|held| held.is_evicted()).collect()
    }

    #[test]
    fn beyond_the_limit_of_one_owner_its_oldest_makes_room_and_no_other() {
        let slots = SlotTable::new(10, 2);
        let [other, one, two, three] = take_all(&slots, ["other", "one", "one", "one"]);
        assert_eq!(evicted(&[&one, &two, &three, &other]), [true, false, false, false]);
        drop(two);
        let [four] = take_all(&slots, ["one"]);
        assert_eq!(evicted(&[&three, &four]), [false, false], "a dropped slot is free");
    }

    #[test]
    fn beyond_the_limit_of_all_the_oldest_of_the_owner_with_the_most_makes_room() {
        let slots = SlotTable::new(4, 4);
        let held = take_all(&slots, ["honest", "greedy", "greedy", "greedy", "newcomer"]);
        assert_eq!(evicted(&held.each_ref()), [false, true, false, false, false]);
    }

    #[test]
    fn among_equals_the_oldest_makes_room() {
        let slots = SlotTable::new(2, 2);
        let held = take_all(&slots, ["a", "b", "c"]);
        assert_eq!(evicted(&held.each_ref()), [true, false, false]);
    }

    #[test]
    fn a_slot_in_use_stays_and_one_that_was_used_lately_goes_last() {
        let slots = SlotTable::new(10, 2);
        let [one, two] = take_all(&slots, ["a", "a"]);
        let using = one.slot.start_use().expect("it is not evicted");
        let [three] = take_all(&slots, ["a"]);
        assert_eq!(evicted(&[&one, &two]), [false, true]);
        assert!(two.slot.start_use().is_none(), "it belongs to another connection now");
        drop(using);
        let [four] = take_all(&slots, ["a"]);
        assert_eq!(evicted(&[&one, &three]), [false, true], "the first one was used after the third was taken");
        let _busy = [one.slot.start_use(), four.slot.start_use()];
        assert!(take(&slots, "a").is_none(), "everything is in use");
        assert!(take(&slots, "b").is_some());
    }
}
