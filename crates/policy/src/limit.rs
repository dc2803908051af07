//! Limits of a rule: so many calls in a time, and so many at once, for each caller and tool.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::settings::{Deserializer, Error, Setting};

/// Callers and tools that are remembered. Those that have not called for the time of their rate are forgotten first.
const MAX_COUNTERS: usize = 10_000;

/// So many calls in a time: `30/min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    counters: Arc<Mutex<HashMap<CounterKey, RateCounter>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CounterKey {
    rule: String,
    caller: String,
    tool: String,
}

#[derive(Debug)]
struct RateCounter {
    /// The time at which all tokens are back. One call costs `per / calls`.
    full_at: Duration,
    running: u32,
}

/// A call that counts against a limit until it is dropped.
#[derive(Debug)]
pub struct RunningCall {
    limiter: Limiter,
    key: CounterKey,
}

impl Limiter {
    /// Counts a call. `now` is a clock that never goes back.
    pub fn enter(
        &self,
        (rule, caller, tool): (&str, &str, &str),
        rate: Option<Rate>,
        concurrent: Option<u32>,
        now: Duration,
    ) -> Result<RunningCall, OverLimit> {
        let key = CounterKey { rule: rule.to_owned(), caller: caller.to_owned(), tool: tool.to_owned() };
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() >= MAX_COUNTERS && !counters.contains_key(&key) {
            counters.retain(|_, counter| counter.running > 0 || counter.full_at > now);
        }
        let counter = counters.entry(key.clone()).or_insert(RateCounter { full_at: now, running: 0 });
        if let Some(limit) = concurrent.filter(|limit| counter.running >= *limit) {
            return Err(OverLimit::Concurrent { limit });
        }
        if let Some(limit) = rate {
            let full_at = counter.full_at.max(now) + limit.per / limit.calls;
            if full_at > now + limit.per {
                return Err(OverLimit::Rate { limit, retry_in: full_at - now - limit.per });
            }
            counter.full_at = full_at;
        }
        counter.running += 1;
        drop(counters);
        Ok(RunningCall { limiter: self.clone(), key })
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut counters = self.limiter.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get_mut(&self.key) {
            counter.running = counter.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (&str, &str, &str) = ("heating", "tablet", "set");

    #[test]
    fn a_rate_allows_its_calls_at_once_and_then_one_at_a_time() {
        let limiter = Limiter::default();
        let rate: Rate = "3/min".parse().unwrap();
        let enter = |now: u64| limiter.enter(KEY, Some(rate), None, Duration::from_secs(now)).map(drop);
        for _ in 0..3 {
            enter(100).unwrap();
        }
        assert_eq!(enter(100), Err(OverLimit::Rate { limit: rate, retry_in: Duration::from_secs(20) }));
        enter(120).unwrap();
        assert!(enter(121).is_err());
        for _ in 0..3 {
            enter(1_000).unwrap();
        }
        assert!(enter(1_000).is_err());
    }

    #[test]
    fn callers_are_counted_apart() {
        let limiter = Limiter::default();
        let rate = Some("1/h".parse().unwrap());
        limiter.enter(KEY, rate, None, Duration::ZERO).unwrap();
        assert!(limiter.enter(KEY, rate, None, Duration::ZERO).is_err());
        limiter.enter(("heating", "phone", "set"), rate, None, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_call_that_ended_makes_room_for_the_next() {
        let limiter = Limiter::default();
        let first = limiter.enter(KEY, None, Some(1), Duration::ZERO).unwrap();
        let second = limiter.enter(KEY, None, Some(1), Duration::ZERO);
        assert_eq!(second.unwrap_err(), OverLimit::Concurrent { limit: 1 });
        drop(first);
        limiter.enter(KEY, None, Some(1), Duration::ZERO).unwrap();
    }

    #[test]
    fn counters_do_not_grow_without_end() {
        let limiter = Limiter::default();
        let rate = Some("1/s".parse().unwrap());
        for index in 0..2 * MAX_COUNTERS as u64 {
            let caller = format!("caller-{index}");
            limiter.enter(("r", &caller, "t"), rate, None, Duration::from_secs(2 * index)).unwrap();
        }
        assert!(limiter.counters.lock().unwrap().len() <= MAX_COUNTERS);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for wrong in ["", "30", "0/min", "-1/s", "3/year", "x/min"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        assert_eq!("30 / min".parse::<Rate>().unwrap().to_string(), "30/min");
    }
}
