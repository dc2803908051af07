//! Where checks run: small ones immediately, larger ones on background threads, a few at a time.

use std::sync::Arc;

use serde_json::Value;
use sinew_schema::{Exhausted, Meter};
use tokio::sync::Semaphore;

use crate::check::CheckResult;
use crate::record::weigh_value;

/// What is checked immediately, on the thread that serves all calls: an estimated 100 µs.
const IMMEDIATE: u64 = 5_000;
/// What any value may take: some milliseconds.
const AT_LEAST: u64 = 200_000;
/// What each byte of a value adds. An honest schema takes one or two units a byte.
const EACH_BYTE: u64 = 16;
/// What no value may exceed: some tenths of a second.
const AT_MOST: u64 = 20_000_000;
/// Larger texts are read in the background.
const READ_IMMEDIATELY: usize = 64 << 10;
/// Parts of one answer that is read from a text. Each takes some 80 bytes, whatever its text takes.
const MAX_PARTS: usize = 500_000;

/// The places for checks that take longer.
pub(crate) struct Validation {
    places: Arc<Semaphore>,
}

impl Validation {
    pub(crate) fn new() -> Validation {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Validation { places: Arc::new(Semaphore::new(cores.clamp(1, 4))) }
    }

    /// Checks a value and gives it back. `turn` lets one device have one larger check at a time.
    pub(crate) async fn check<E: Send + 'static>(
        &self,
        turn: &Arc<Semaphore>,
        value: Value,
        check: impl Fn(&Value, &mut Meter) -> CheckResult<E> + Send + 'static,
    ) -> (Value, CheckResult<E>) {
        if let Ok(verdict) = check(&value, &mut Meter::new(IMMEDIATE)) {
            return (value, Ok(verdict));
        }
        let work = move || {
            let verdict = check(&value, &mut Meter::new(limit(&value)));
            (value, verdict)
        };
        self.in_background(turn, work).await.unwrap_or((Value::Null, Err(Exhausted)))
    }

    /// Reads JSON from a text, and gives the text back.
    pub(crate) async fn read(&self, turn: &Arc<Semaphore>, text: String) -> (String, Option<Value>) {
        let is_short = text.len() <= READ_IMMEDIATELY;
        let read = move || {
            let value = read(&text);
            (text, value)
        };
        if is_short { read() } else { self.in_background(turn, read).await.unwrap_or_default() }
    }

    /// Runs work on a thread of its own when its turn comes; `None` where it failed. The places are given
    /// back when the work is done, also if nobody waits for it any more.
    async fn in_background<T: Send + 'static>(
        &self,
        turn: &Arc<Semaphore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = turn.clone().acquire_owned().await.ok()?;
        let place = self.places.clone().acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let _held = (turn, place);
            work()
        });
        done.await.ok()
    }
}

fn limit(value: &Value) -> u64 {
    let size = weigh_value(value) as u64;
    AT_LEAST.saturating_add(size.saturating_mul(EACH_BYTE)).min(AT_MOST)
}

fn read(text: &str) -> Option<Value> {
    let parts = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if parts > MAX_PARTS { None } else { serde_json::from_str(text).ok() }
}
