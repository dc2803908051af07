//! How often something took how long, in few numbers.

/// Counts of durations, in ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// How many took at most as long as each of [`DurationCounts::LIMITS_US`] and longer than the one before; the last took
    /// longer than all.
    pub counts: [u64; DurationCounts::LIMITS_US.len() + 1],
    pub total_us: u64,
}

impl DurationCounts {
    /// From 50 µs, a commit on a fast disk, to a minute, after which clients give up; each about 2.5 times the one before.
    pub const LIMITS_US: [u64; 16] = [
        50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
        20_000_000, 60_000_000,
    ];

    pub(crate) fn note(&mut self, duration_us: u64) {
        self.counts[DurationCounts::LIMITS_US.partition_point(|limit| *limit < duration_us)] += 1;
        self.total_us = self.total_us.saturating_add(duration_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_up_to_its_limit() {
        let mut counts = DurationCounts::default();
        for duration in [0, 50, 51, 70_000_000] {
            counts.note(duration);
        }
        assert_eq!((counts.counts[0], counts.counts[1], counts.counts[16]), (2, 1, 1));
        assert_eq!((counts.counts.iter().sum::<u64>(), counts.total_us), (4, 70_000_101));
    }
}
