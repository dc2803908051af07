//! Events that wait for the store, in order.

use std::collections::VecDeque;

/// Events of one node. Each has a number; the store drops a number that it has seen, so what may have been written is
/// sent again.
#[derive(Debug)]
pub struct Outbox<E> {
    waiting: VecDeque<(u64, E)>,
    next: u64,
    /// How many of the first are under way.
    sent: usize,
    most: usize,
    dropped: u64,
}

impl<E: Clone> Outbox<E> {
    /// Keeps at most `most` events; the oldest make room.
    pub fn new(most: usize) -> Outbox<E> {
        Outbox { waiting: VecDeque::new(), next: 0, sent: 0, most, dropped: 0 }
    }

    /// Adds an event and returns its number.
    pub fn add(&mut self, event: E) -> u64 {
        if self.waiting.len() >= self.most {
            self.waiting.pop_front();
            self.sent = self.sent.saturating_sub(1);
            self.dropped += 1;
        }
        let number = self.next;
        self.next += 1;
        self.waiting.push_back((number, event));
        number
    }

    /// The next event to send, while fewer than `window` are under way.
    pub fn send(&mut self, window: usize) -> Option<(u64, E)> {
        let next = self.waiting.get(self.sent).filter(|_| self.sent < window)?.clone();
        self.sent += 1;
        Some(next)
    }

    /// The store has the event, and with it all before it.
    pub fn handle_stored(&mut self, number: u64) {
        while self.waiting.front().is_some_and(|(first, _)| *first <= number) {
            self.waiting.pop_front();
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// Nobody knows what was written of what is under way: it is sent again, in order.
    pub fn handle_lost(&mut self) {
        self.sent = 0;
    }

    /// The number of the oldest that waits.
    pub fn first(&self) -> Option<u64> {
        self.waiting.front().map(|(number, _)| *number)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many made room for newer ones.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sent_in_order_and_again_until_they_are_stored() {
        let mut outbox = Outbox::new(10);
        for event in ["a", "b", "c"] {
            outbox.add(event);
        }
        assert_eq!([outbox.send(2), outbox.send(2), outbox.send(2)], [Some((0, "a")), Some((1, "b")), None]);
        outbox.handle_stored(0);
        outbox.handle_lost();
        assert_eq!([outbox.send(2), outbox.send(2)], [Some((1, "b")), Some((2, "c"))]);
        outbox.handle_stored(2);
        assert!(outbox.is_empty() && outbox.send(2).is_none());
    }

    #[test]
    fn beyond_its_limit_the_oldest_make_room_and_are_counted() {
        let mut outbox = Outbox::new(2);
        for event in ["a", "b", "c"] {
            outbox.add(event);
        }
        assert_eq!((outbox.send(9), outbox.dropped(), outbox.len()), (Some((1, "b")), 1, 2));
    }
}
