//! The way out, shared by the boards that have the same gateway: they dial in turns, and say together why
//! it does not answer.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::RunError;

/// Boards of one process that dial at once; a thousand of them would only knock each other out.
const DIALLING: usize = 64;

pub(crate) struct DialQueue {
    turns: Semaphore,
    /// Why dialling failed last; told once, however many boards fail how often.
    told: Mutex<Option<String>>,
}

impl DialQueue {
    pub(crate) fn new() -> DialQueue {
        DialQueue { turns: Semaphore::new(DIALLING), told: Mutex::new(None) }
    }

    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// A board got through: what comes next is news.
    pub(crate) fn opened(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells why a board could not get through, unless that was told last.
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
