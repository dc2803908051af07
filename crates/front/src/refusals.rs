//! Counts refused requests and logs them together, so that many of them do not fill the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::state::FrontState;

/// How often refusals are logged, if there were any.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Refusals {
    /// Without a token or with an invalid one.
    unauthorized: AtomicU64,
    /// With a token, host or origin that is not allowed.
    forbidden: AtomicU64,
    other: AtomicU64,
}

impl Refusals {
    /// Starts to log them until the gateway stops.
    pub(crate) fn new(front: &FrontState) -> Arc<Refusals> {
        let refusals = Arc::new(Refusals::default());
        let (logged, drain) = (refusals.clone(), front.drain.clone());
        front.tasks.spawn(async move {
            let mut ticks = interval_at(Instant::now() + LOG_INTERVAL, LOG_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while drain.run_until_cancelled(ticks.tick()).await.is_some() {
                logged.log();
            }
            logged.log();
        });
        refusals
    }

    pub(crate) fn count(&self, status: StatusCode) {
        let counter = match status {
            StatusCode::UNAUTHORIZED => &self.unauthorized,
            StatusCode::FORBIDDEN => &self.forbidden,
            _ => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn log(&self) {
        let [unauthorized, forbidden, other] = self.take();
        if unauthorized + forbidden + other > 0 {
            tracing::warn!(unauthorized, forbidden, other, "requests refused");
        }
    }

    fn take(&self) -> [u64; 3] {
        [&self.unauthorized, &self.forbidden, &self.other].map(|counter| counter.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_until_they_are_logged() {
        let refusals = Refusals::default();
        for status in [401, 401, 403, 400, 503] {
            refusals.count(StatusCode::from_u16(status).expect("a status"));
        }
        assert_eq!(refusals.take(), [2, 1, 2]);
        assert_eq!(refusals.take(), [0, 0, 0]);
    }
}
