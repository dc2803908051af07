//! How long to wait before dialling again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Between two attempts to connect: growing, and never all boards at once.
const FIRST: Duration = Duration::from_millis(250);
const LAST: Duration = Duration::from_secs(15);

/// Doubles from the first pause to the last, with a random share on top: boards that lost their gateway
/// together should not return together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    random: RandomState,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST, random: RandomState::new() }
    }

    /// After success.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }

    /// The pause to make now.
    pub(crate) fn take(&mut self) -> Duration {
        let base = self.next;
        self.next = (base * 2).min(LAST);
        let spread = base.as_millis() as u64 / 2;
        base + Duration::from_millis(self.random.hash_one(base) % spread.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_begin_anew_after_success() {
        let mut pause = Backoff::new();
        let mut base = FIRST;
        for _ in 0..20 {
            let taken = pause.take();
            assert!(taken >= base && taken < base * 3 / 2, "{taken:?} after {base:?}");
            base = (base * 2).min(LAST);
        }
        pause.reset();
        assert!(pause.take() < FIRST * 3 / 2);
    }
}
