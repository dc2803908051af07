//! Counts the memory that clients use, over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may be in use at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

/// A part of a budget, returned when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget { used: Arc::default(), limit }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.used() >= self.limit
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// A share that holds nothing yet.
    pub(crate) fn share(&self) -> MemoryShare {
        MemoryShare { budget: self.clone(), bytes: 0 }
    }
}

impl MemoryShare {
    /// Takes `bytes` more if the budget has them.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let MemoryBudget { used, limit } = &self.budget;
        let grown = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= limit)
        });
        self.bytes += grown.map_or(0, |_| bytes);
        grown.is_ok()
    }

    /// Takes `bytes` more even beyond the limit, for what is in memory already.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_counted_until_it_is_dropped() {
        let budget = MemoryBudget::new(100);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.try_grow(60) && !second.try_grow(60) && second.try_grow(40));
        assert!(budget.is_spent() && !second.try_grow(1));
        second.grow(10);
        assert_eq!(budget.used(), 110, "what is in memory already is counted beyond the limit");
        first.shrink(1000);
        assert_eq!(budget.used(), 50, "a share returns no more than it has");
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
