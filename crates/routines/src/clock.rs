//! The time of a run.

use std::time::Duration;

use sinew_steps::StepClock;
use sinew_tool::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Counts from when it is made. Pauses end when the run is cancelled.
#[derive(Debug)]
pub struct RunClock {
    began: Instant,
    cancel: CancellationToken,
}

impl RunClock {
    pub fn start(cancel: CancellationToken) -> RunClock {
        RunClock { began: Instant::now(), cancel }
    }
}

impl Default for RunClock {
    fn default() -> RunClock {
        RunClock::start(CancellationToken::new())
    }
}

impl StepClock for RunClock {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = tokio::time::timeout(time, self.cancel.cancelled()).await;
        })
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
