//! A token bucket: limits how often something may happen.

use sinew_wire::Moment;

pub(crate) struct TokenBucket {
    /// Thousandths of a token, so that slow rates work too.
    level: u64,
    rate: u32,
    burst: u32,
    filled: Moment,
}

impl TokenBucket {
    pub(crate) fn new(rate: u32, burst: u32, now: Moment) -> TokenBucket {
        TokenBucket { level: u64::from(burst) * 1000, rate, burst, filled: now }
    }

    /// Takes one token, if there is one.
    pub(crate) fn take(&mut self, now: Moment) -> bool {
        let elapsed_ms = now.0.saturating_sub(self.filled.0) / 1000;
        if elapsed_ms > 0 {
            let gained = elapsed_ms.saturating_mul(u64::from(self.rate));
            self.level = self.level.saturating_add(gained).min(u64::from(self.burst) * 1000);
            self.filled = Moment(self.filled.0 + elapsed_ms * 1000);
        }
        let enough = self.level >= 1000;
        if enough {
            self.level -= 1000;
        }
        enough
    }

    /// Whether the bucket is full again.
    pub(crate) fn is_full(&self) -> bool {
        self.level + 1000 >= u64::from(self.burst) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut TokenBucket, now: Moment) -> usize {
        (0..10_000).take_while(|_| bucket.take(now)).count()
    }

    #[test]
    fn a_burst_is_allowed_once_and_then_the_rate_holds() {
        let mut bucket = TokenBucket::new(200, 400, Moment(5));
        assert_eq!(taken(&mut bucket, Moment(5)), 400);
        assert_eq!(taken(&mut bucket, Moment(5)), 0);
        assert_eq!(taken(&mut bucket, Moment(1_000_005)), 200);
        assert_eq!(taken(&mut bucket, Moment(3_600_000_000)), 400);
    }

    #[test]
    fn asking_often_does_not_stop_the_filling() {
        let mut bucket = TokenBucket::new(1, 1, Moment(0));
        let granted = (0..3_000_000).step_by(400).filter(|&micros| bucket.take(Moment(micros))).count();
        assert_eq!(granted, 3);
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing_and_breaks_nothing() {
        let mut bucket = TokenBucket::new(10, 1, Moment(1_000_000));
        assert!(bucket.take(Moment(1_000_000)));
        assert!(!bucket.take(Moment(0)));
    }
}
