//! Memory that clients can make the gateway use, counted over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may be in use at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Budget {
        Budget { used: Arc::default(), limit }
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
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Takes `bytes` more, where the budget has them left.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let Budget { used, limit } = &self.budget;
        let grown = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= limit)
        });
        self.bytes += grown.map_or(0, |_| bytes);
        grown.is_ok()
    }

    /// Takes `bytes` more, whatever is left: what is in memory already must be counted.
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

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_counted_until_it_is_given_back() {
        let budget = Budget::new(100);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.try_grow(60) && !second.try_grow(60) && second.try_grow(40));
        assert!(budget.is_spent() && !second.try_grow(1));
        second.grow(10);
        assert_eq!(budget.used(), 110, "what is there already is counted in any case");
        first.shrink(1000);
        assert_eq!(budget.used(), 50, "nobody gives back more than they have");
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
