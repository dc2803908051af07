//! Logs refused requests with their address: the first at once, repeated ones together.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use sinew_tool::refusals::{REFUSAL_LOG_INTERVAL, RefusalCounts};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::state::FrontState;

#[derive(Default)]
pub(crate) struct Refusals {
    counts: RefusalCounts,
}

impl Refusals {
    /// Starts to log them until the gateway stops.
    pub(crate) fn new(front: &FrontState) -> Arc<Refusals> {
        let refusals = Arc::new(Refusals::default());
        let (logged, drain) = (refusals.clone(), front.drain.clone());
        front.tasks.spawn(async move {
            let mut ticks = interval_at(Instant::now() + REFUSAL_LOG_INTERVAL, REFUSAL_LOG_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while drain.run_until_cancelled(ticks.tick()).await.is_some() {
                logged.log_repeated();
            }
            logged.log_repeated();
        });
        refusals
    }

    pub(crate) fn count(&self, address: IpAddr, status: StatusCode) {
        let why = match status {
            StatusCode::UNAUTHORIZED => "its token is missing, wrong or expired",
            StatusCode::FORBIDDEN => "its token, host or origin is not allowed",
            StatusCode::SERVICE_UNAVAILABLE => "too much is under way",
            _ => "it is malformed",
        };
        if self.counts.count(address, why) {
            tracing::warn!(%address, "request refused: {why}");
        }
    }

    fn log_repeated(&self) {
        for repeated in self.counts.take_repeated() {
            let address = repeated.address.map_or("others".to_owned(), |address| address.to_string());
            tracing::warn!(address, count = repeated.count, "more requests refused: {}", repeated.why);
        }
    }
}
