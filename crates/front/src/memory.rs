//! Counts the memory that clients use, over all connections, and for each client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes that may be in use at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    used: AtomicUsize,
    limit: usize,
    /// The budget that this one is a part of. What is used here is used there too.
    whole: Option<MemoryBudget>,
}

/// A part of a budget, returned when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    budget: MemoryBudget,
    bytes: usize,
}

/// A budget of all clients together, with a lower limit for each of them: one that does not read takes nothing from the
/// others.
pub(crate) struct ClientBudgets {
    pub all: MemoryBudget,
    each: usize,
    /// The budgets of clients that use some memory.
    clients: Mutex<HashMap<Box<str>, Weak<BudgetState>>>,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(BudgetState { used: AtomicUsize::new(0), limit, whole: None }))
    }

    /// Whether nothing more can be taken.
    pub(crate) fn is_spent(&self) -> bool {
        self.used() >= self.0.limit || self.0.whole.as_ref().is_some_and(MemoryBudget::is_spent)
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// A share that holds nothing yet.
    pub(crate) fn share(&self) -> MemoryShare {
        MemoryShare { budget: self.clone(), bytes: 0 }
    }

    fn try_add(&self, bytes: usize) -> bool {
        let BudgetState { used, limit, whole } = &*self.0;
        let grown = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= limit)
        });
        let fits = grown.is_ok() && whole.as_ref().is_none_or(|whole| whole.try_add(bytes));
        if grown.is_ok() && !fits {
            used.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    fn add(&self, bytes: usize) {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        self.0.whole.iter().for_each(|whole| whole.add(bytes));
    }

    fn subtract(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        self.0.whole.iter().for_each(|whole| whole.subtract(bytes));
    }
}

impl ClientBudgets {
    pub(crate) fn new(all: usize, each: usize) -> ClientBudgets {
        ClientBudgets { all: MemoryBudget::new(all), each, clients: Mutex::default() }
    }

    /// The budget of the client with this id.
    pub(crate) fn of(&self, client: &str) -> MemoryBudget {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = clients.get(client).and_then(Weak::upgrade) {
            return MemoryBudget(budget);
        }
        clients.retain(|_, budget| budget.strong_count() > 0);
        let whole = Some(self.all.clone());
        let budget = Arc::new(BudgetState { used: AtomicUsize::new(0), limit: self.each, whole });
        clients.insert(client.into(), Arc::downgrade(&budget));
        MemoryBudget(budget)
    }

    /// The spent budget for which the client gets nothing more: its own or that of all.
    pub(crate) fn spent(&self, client: &str) -> Option<MemoryBudget> {
        if self.all.is_spent() {
            return Some(self.all.clone());
        }
        // While all use less than one may, nobody is asked for by name.
        (self.all.used() >= self.each).then(|| self.of(client)).filter(MemoryBudget::is_spent)
    }
}

impl MemoryShare {
    /// Takes `bytes` more if the budget has them.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let grown = self.budget.try_add(bytes);
        self.bytes += if grown { bytes } else { 0 };
        grown
    }

    /// Takes `bytes` more even beyond the limit, for what is in memory already.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.budget.add(bytes);
        self.bytes += bytes;
    }

    /// Takes over what another share of the same budget holds.
    pub(crate) fn absorb(&mut self, mut other: MemoryShare) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.subtract(bytes);
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

    #[test]
    fn a_client_that_has_used_up_its_part_takes_nothing_from_others() {
        let budgets = ClientBudgets::new(100, 60);
        let mut slow = budgets.of("slow").share();
        assert!(slow.try_grow(60) && !slow.try_grow(1));
        assert!(budgets.spent("slow").is_some() && budgets.spent("other").is_none());
        let mut other = budgets.of("other").share();
        assert!(!other.try_grow(41), "all together have no more");
        assert_eq!(budgets.of("other").used(), 0, "what was refused is not counted");
        assert!(other.try_grow(40));
        assert!(budgets.spent("third").is_some());
        drop((slow, other));
        assert_eq!((budgets.all.used(), budgets.of("slow").used()), (0, 0));
        assert_eq!(budgets.clients.lock().map(|clients| clients.len()).ok(), Some(1), "idle clients are forgotten");
    }
}
