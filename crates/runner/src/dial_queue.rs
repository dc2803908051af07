//! Shared by all boards of one process with the same gateway: they dial in turns, and a failure is logged once.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::RunError;

/// Boards of one process that dial at once; a thousand would only delay each other.
const DIALLING: usize = 64;

pub(crate) struct DialQueue {
    turns: Semaphore,
    /// Why dialling failed last; logged once.
    told: Mutex<Option<String>>,
}

impl DialQueue {
    pub(crate) fn new() -> DialQueue {
        DialQueue { turns: Semaphore::new(DIALLING), told: Mutex::new(None) }
    }

    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// A board connected: the next failure is logged again.
    pub(crate) fn opened(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Logs why a board could not connect, unless that was logged last.
    pub(crate) fn failed(&self, error: &RunError) {
        if self.is_news(&error.to_string()) {
            tracing::warn!("{error}; it is tried again");
        }
    }

    fn is_news(&self, why: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = told.as_deref() != Some(why);
        *told = Some(why.to_owned());
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_until_it_changes_or_somebody_gets_through() {
        let dial_queue = DialQueue::new();
        assert!(dial_queue.is_news("nobody answers"));
        assert!(!dial_queue.is_news("nobody answers"));
        assert!(dial_queue.is_news("refused"));
        dial_queue.opened();
        assert!(dial_queue.is_news("refused"));
    }
}
