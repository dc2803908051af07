//! How many devices are in which state, counted once for each snapshot: every open console asks again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::access::LensKey;
use crate::caller_view::CallerView;
use crate::snapshot::Snapshot;

/// Callers that see different devices and look at the same time.
const MAX_KEPT: usize = 8;

/// How many devices there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetCounts {
    /// By family and state.
    pub families: BTreeMap<String, BTreeMap<String, usize>>,
    /// Their tools.
    pub tools: usize,
}

#[derive(Default)]
pub(crate) struct CountedFleets(Mutex<Vec<CountedFleet>>);

struct CountedFleet {
    /// The weak pointer keeps the address from being used again, so that equal addresses are equal snapshots.
    of: Weak<Snapshot>,
    key: LensKey,
    counts: Arc<FleetCounts>,
}

impl CountedFleets {
    pub(crate) fn get(&self, snapshot: &Arc<Snapshot>, view: &CallerView) -> Arc<FleetCounts> {
        let key = view.key();
        let is_wanted = |one: &&CountedFleet| std::ptr::eq(one.of.as_ptr(), Arc::as_ptr(snapshot)) && one.key == key;
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().find(is_wanted) {
            return kept.counts.clone();
        }
        let counts = Arc::new(view.count(snapshot));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.of.strong_count() > 0);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(CountedFleet { of: Arc::downgrade(snapshot), key, counts: counts.clone() });
        counts
    }
}
