//! Limits of a rule: so many calls in a time, and so many at once, for each caller and tool.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::settings::{Deserializer, Error, Setting};

use crate::settings::PolicyRule;

/// Callers and tools that are remembered, besides those with a call under way. Those that have used least of their rate are
/// forgotten first.
const MAX_COUNTERS: usize = 10_000;

/// So many calls in a time: `30/min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    pub calls: u32,
    pub per: Duration,
}

const UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3600), ("day", 86_400)];

impl Default for Rate {
    fn default() -> Rate {
        Rate { calls: 1, per: Duration::from_secs(1) }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let wrong = || format!("`{text}` is not a rate; expected for example `30/min` (units: s, min, h, day)");
        let (calls, unit) = text.split_once('/').ok_or_else(wrong)?;
        let calls = calls.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(wrong)?;
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        Ok(Rate { calls, per: Duration::from_secs(*seconds) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, seconds)| *seconds == self.per.as_secs()).map_or("s", |(name, _)| name);
        write!(f, "{}/{unit}", self.calls)
    }
}

impl Setting for Rate {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut text = String::new();
        text.read(from)?;
        *self = text.parse().map_err(D::Error::custom)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "string", "pattern": r"^\d+\s*/\s*(s|min|h|day)$", "examples": ["30/min"]})
    }

    fn to_value(&self) -> Value {
        json!(self.to_string())
    }
}

/// Why a call is over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLimit {
    /// Too many in the time; the next is allowed after this long.
    Rate { limit: Rate, retry_in: Duration },
    /// Too many at once.
    Concurrent { limit: u32 },
}

/// Counts calls per rule, caller and tool.
#[derive(Clone, Debug, Default)]
pub struct Limiter {
    counters: Arc<Mutex<HashMap<CallLimit, RateCounter>>>,
}

/// The limits of a rule for one caller and tool. Other limits are counted anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallLimit {
    rule: String,
    caller: String,
    tool: String,
    rate: Option<Rate>,
    concurrent: Option<u32>,
}

impl CallLimit {
    pub fn of(rule: &PolicyRule, caller: &str, tool: &str) -> CallLimit {
        CallLimit {
            rule: rule.id.clone(),
            caller: caller.to_owned(),
            tool: tool.to_owned(),
            rate: rule.rate,
            concurrent: rule.concurrent,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct RateCounter {
    /// The time at which all tokens are back. One call costs `per / calls`.
    full_at: Duration,
    running: u32,
}

impl RateCounter {
    fn new(now: Duration) -> RateCounter {
        RateCounter { full_at: now, running: 0 }
    }

    /// The counter with one more call.
    fn with_call(self, limit: &CallLimit, now: Duration) -> Result<RateCounter, OverLimit> {
        if let Some(limit) = limit.concurrent.filter(|limit| self.running >= *limit) {
            return Err(OverLimit::Concurrent { limit });
        }
        let full_at = match limit.rate {
            None => self.full_at,
            Some(rate) => {
                let full_at = self.full_at.max(now) + rate.per / rate.calls;
                if full_at > now + rate.per {
                    return Err(OverLimit::Rate { limit: rate, retry_in: full_at - now - rate.per });
                }
                full_at
            }
        };
        Ok(RateCounter { full_at, running: self.running + 1 })
    }
}

/// A call that counts against a limit until it is dropped.
#[derive(Debug)]
pub struct RunningCall {
    limiter: Limiter,
    limit: CallLimit,
}

impl Limiter {
    /// Whether a call would be counted. `now` is a clock that never goes back.
    pub fn check(&self, limit: &CallLimit, now: Duration) -> Result<(), OverLimit> {
        let counter = self.counters().get(limit).copied().unwrap_or(RateCounter::new(now));
        counter.with_call(limit, now).map(drop)
    }

    /// Counts a call. `now` is a clock that never goes back.
    pub fn enter(&self, limit: CallLimit, now: Duration) -> Result<RunningCall, OverLimit> {
        let mut counters = self.counters();
        let counter = counters.get(&limit).copied().unwrap_or(RateCounter::new(now)).with_call(&limit, now)?;
        if counters.len() >= MAX_COUNTERS && !counters.contains_key(&limit) {
            make_room(&mut counters, now);
        }
        counters.insert(limit.clone(), counter);
        drop(counters);
        Ok(RunningCall { limiter: self.clone(), limit })
    }

    fn counters(&self) -> MutexGuard<'_, HashMap<CallLimit, RateCounter>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets counters that say nothing any more, and the emptier half of the others where those are too many.
fn make_room(counters: &mut HashMap<CallLimit, RateCounter>, now: Duration) {
    counters.retain(|_, counter| counter.running > 0 || counter.full_at > now);
    if counters.len() < MAX_COUNTERS {
        return;
    }
    let mut idle: Vec<Duration> =
        counters.values().filter(|counter| counter.running == 0).map(|counter| counter.full_at).collect();
    let middle = idle.len() / 2;
    if middle < idle.len() {
        let (_, middle, _) = idle.select_nth_unstable(middle);
        let middle = *middle;
        counters.retain(|_, counter| counter.running > 0 || counter.full_at > middle);
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(counter) = self.limiter.counters().get_mut(&self.limit) {
            counter.running = counter.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(caller: &str, rate: Option<&str>, concurrent: Option<u32>) -> CallLimit {
        let rate = rate.map(|rate| rate.parse().unwrap());
        let rule = PolicyRule { id: "heating".to_owned(), rate, concurrent, ..PolicyRule::default() };
        CallLimit::of(&rule, caller, "set")
    }

    #[test]
    fn a_rate_allows_its_calls_at_once_and_then_one_at_a_time() {
        let limiter = Limiter::default();
        let three = limit("tablet", Some("3/min"), None);
        let enter = |now: u64| limiter.enter(three.clone(), Duration::from_secs(now)).map(drop);
        for _ in 0..3 {
            limiter.check(&three, Duration::from_secs(100)).unwrap();
            enter(100).unwrap();
        }
        let over = OverLimit::Rate { limit: "3/min".parse().unwrap(), retry_in: Duration::from_secs(20) };
        assert_eq!(enter(100), Err(over));
        assert_eq!(limiter.check(&three, Duration::from_secs(100)), Err(over));
        enter(120).unwrap();
        assert!(enter(121).is_err());
        for _ in 0..3 {
            enter(1_000).unwrap();
        }
        assert!(enter(1_000).is_err());
    }

    #[test]
    fn callers_and_changed_limits_are_counted_apart() {
        let limiter = Limiter::default();
        let enter = |limit: CallLimit| limiter.enter(limit, Duration::ZERO).map(drop);
        enter(limit("tablet", Some("1/h"), None)).unwrap();
        assert!(enter(limit("tablet", Some("1/h"), None)).is_err());
        enter(limit("phone", Some("1/h"), None)).unwrap();
        enter(limit("tablet", Some("1/min"), None)).unwrap();
    }

    #[test]
    fn a_call_that_ended_makes_room_for_the_next() {
        let limiter = Limiter::default();
        let one = || limit("tablet", None, Some(1));
        let first = limiter.enter(one(), Duration::ZERO).unwrap();
        let second = limiter.enter(one(), Duration::ZERO);
        assert_eq!(second.unwrap_err(), OverLimit::Concurrent { limit: 1 });
        drop(first);
        limiter.enter(one(), Duration::ZERO).unwrap();
    }

    #[test]
    fn counters_do_not_grow_without_end() {
        let limiter = Limiter::default();
        for index in 0..3 * MAX_COUNTERS as u64 {
            // All within the time of the rate, so that none can be forgotten without a loss.
            let caller = limit(&format!("caller-{index}"), Some("1/day"), None);
            limiter.enter(caller, Duration::from_millis(index)).unwrap();
        }
        assert!(limiter.counters().len() <= MAX_COUNTERS);
        // The newest are still counted.
        let newest = limit(&format!("caller-{}", 3 * MAX_COUNTERS - 1), Some("1/day"), None);
        assert!(limiter.enter(newest, Duration::from_secs(40)).is_err());
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for wrong in ["", "30", "0/min", "-1/s", "3/year", "x/min"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        assert_eq!("30 / min".parse::<Rate>().unwrap().to_string(), "30/min");
    }
}
