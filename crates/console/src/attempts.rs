//! How often somebody may guess a passphrase or a token.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sinew_tool::network_of;
use tokio::time::Instant;

/// Wrong passphrases and tokens of one address, or of one caller with a token, in a minute.
const MAX_FAILURES: usize = 5;
/// Wrong passphrases of all callers with tokens in a minute: an administrator's token makes others.
const MAX_OF_CALLERS: usize = 50;
/// How long a failure counts.
const FAILURE_TIME: Duration = Duration::from_secs(60);
/// Addresses whose failures are counted; beyond it the one that failed longest ago is forgotten.
const MAX_ADDRESSES: usize = 1_000;

/// The failed attempts of the last minute.
#[derive(Default)]
pub(crate) struct Attempts {
    addresses: Mutex<Failures<IpAddr>>,
    callers: Mutex<Failures<String>>,
}

/// When somebody failed, oldest first.
type Failures<K> = HashMap<K, Vec<Instant>>;

impl Attempts {
    /// Begins an attempt of somebody at an address, who is nobody yet. It counts as a failure until it
    /// [succeeds](Attempts::address_succeeded), so that many at once are as few as one after another. `false` where the
    /// address has tried too often.
    pub(crate) fn begin_of_address(&self, address: IpAddr) -> bool {
        let mut failures = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut failures);
        let network = network_of(address);
        if failures.len() >= MAX_ADDRESSES && !failures.contains_key(&network) {
            let oldest = failures.iter().min_by_key(|(_, times)| times.last().copied()).map(|(key, _)| *key);
            oldest.and_then(|oldest| failures.remove(&oldest));
        }
        count(&mut failures, network)
    }

    /// The newest attempt of the address was none.
    pub(crate) fn address_succeeded(&self, address: IpAddr) {
        uncount(&mut self.addresses.lock().unwrap_or_else(PoisonError::into_inner), &network_of(address));
    }

    /// Begins an attempt of a caller that is known by its token. One that guesses keeps no other from deciding.
    pub(crate) fn begin_of_caller(&self, id: &str) -> bool {
        let mut failures = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut failures);
        failures.values().map(Vec::len).sum::<usize>() < MAX_OF_CALLERS && count(&mut failures, id.to_owned())
    }

    /// The newest attempt of the caller was none.
    pub(crate) fn caller_succeeded(&self, id: &str) {
        uncount(&mut self.callers.lock().unwrap_or_else(PoisonError::into_inner), id);
    }
}

fn forget_old<K: Hash + Eq>(failures: &mut Failures<K>) {
    failures.retain(|_, times| {
        times.retain(|at| at.elapsed() < FAILURE_TIME);
        !times.is_empty()
    });
}

fn count<K: Hash + Eq>(failures: &mut Failures<K>, key: K) -> bool {
    let times = failures.entry(key).or_default();
    let may_try = times.len() < MAX_FAILURES;
    if may_try {
        times.push(Instant::now());
    }
    may_try
}

fn uncount<K: Hash + Eq + std::borrow::Borrow<Q>, Q: Hash + Eq + ?Sized>(failures: &mut Failures<K>, key: &Q) {
    if let Some(times) = failures.get_mut(key) {
        times.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_five_wrong_attempts_a_minute() {
        let attempts = Attempts::default();
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        for _ in 0..20 {
            assert!(attempts.begin_of_address(one), "who gets in may sign in as often as they like");
            attempts.address_succeeded(one);
        }
        assert!((0..5).all(|_| attempts.begin_of_address(one)));
        assert!(!attempts.begin_of_address(one) && attempts.begin_of_address(other));
        tokio::time::advance(FAILURE_TIME).await;
        assert!(attempts.begin_of_address(one));
        assert!((0..2_000_u32).all(|number| attempts.begin_of_address(IpAddr::from(number.to_be_bytes()))));
        assert!(attempts.addresses.lock().expect("unlocked").len() <= MAX_ADDRESSES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_guesses_stops_itself_and_many_together_have_a_bound() {
        let attempts = Attempts::default();
        assert!((0..5).all(|_| attempts.begin_of_caller("guesser")));
        assert!(!attempts.begin_of_caller("guesser"));
        assert!(attempts.begin_of_caller("tablet"));
        attempts.caller_succeeded("tablet");
        let begun = (0..200).filter(|number| attempts.begin_of_caller(&format!("made-{number}"))).count();
        assert_eq!(begun, MAX_OF_CALLERS - 5);
        tokio::time::advance(FAILURE_TIME).await;
        assert!(attempts.begin_of_caller("guesser"));
    }
}
