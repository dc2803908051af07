//! The queue from callers to a board's task.
//!
//! A tokio channel would do, but reserves some 800 bytes for each board; this one needs nothing while it is empty.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

/// Items for which memory is kept.
const SMALL: usize = 8;

pub(crate) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    waker: AtomicWaker,
}

struct QueueState<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { state: Mutex::new(QueueState { items: VecDeque::new(), closed: false }), waker: AtomicWaker::new() }
    }

    /// False if the queue is closed; then the item is dropped.
    pub(crate) fn push(&self, item: T) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.items.push_back(item);
        drop(state);
        self.waker.wake();
        true
    }

    /// Like `push`, if fewer than `most` items wait.
    pub(crate) fn push_within(&self, item: T, most: usize) -> bool {
        self.lock().items.len() < most && self.push(item)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        let item = state.items.pop_front();
        if state.items.is_empty() && state.items.capacity() > SMALL {
            // An idle board keeps no large buffer.
            state.items = VecDeque::new();
        }
        item
    }

    /// All that waits.
    pub(crate) fn drain(&self) -> VecDeque<T> {
        std::mem::take(&mut self.lock().items)
    }

    /// For the one task that reads the queue.
    pub(crate) fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(item) = self.pop() {
            return Poll::Ready(item);
        }
        self.waker.register(cx.waker());
        // An item may have arrived before the waker was registered.
        self.pop().map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes no more items, and drops those that wait.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn items_of_many_come_each_once_and_in_the_order_of_each() {
        let queue = Arc::new(Queue::new());
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let queue = queue.clone();
                std::thread::spawn(move || (0..1000).for_each(|number| assert!(queue.push((sender, number)))))
            })
            .collect();
        let mut next = [0; 4];
        for _ in 0..4000 {
            let (sender, number) = poll_fn(|cx| queue.poll_pop(cx)).await;
            assert_eq!(number, next[sender]);
            next[sender] += 1;
        }
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
    }

    #[test]
    fn a_closed_queue_drops_what_waits_and_takes_nothing() {
        let queue = Queue::new();
        let item = Arc::new(());
        assert!(queue.push(item.clone()));
        queue.close();
        assert_eq!(Arc::strong_count(&item), 1);
        assert!(!queue.push(item));
    }
}
