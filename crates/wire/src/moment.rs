//! Time as an argument: neither end of the protocol looks at a clock.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// Microseconds from an arbitrary zero of the owner's choosing, for example its own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// How long ago `earlier` was; nothing when it lies in the future.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    /// Never overflows: the end of time is far enough for every deadline.
    fn add(self, duration: Duration) -> Moment {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_never_overflows() {
        assert_eq!(Moment(1) + Duration::from_micros(2), Moment(3));
        assert_eq!(Moment(1) + Duration::MAX, Moment(u64::MAX));
        assert_eq!(Moment(1).since(Moment(5)), Duration::ZERO);
        assert_eq!(Moment(7).since(Moment(5)), Duration::from_micros(2));
    }
}
