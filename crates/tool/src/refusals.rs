//! Refused connections and requests, counted by address, so that many of them become few lines of a log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Addresses that are counted one by one; further ones are counted together, because an attacker may have many.
const MAX_ADDRESSES: usize = 32;
/// How often repeated refusals are logged.
pub const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How often each address was refused, and why, since the counts were last taken.
#[derive(Default)]
pub struct RefusalCounts {
    counts: Mutex<BTreeMap<(Option<IpAddr>, &'static str), u64>>,
}

/// Refusals of one address for one reason, without the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedRefusal {
    /// `None` for all addresses beyond those that are counted one by one.
    pub address: Option<IpAddr>,
    pub why: &'static str,
    pub count: u64,
}

impl RefusalCounts {
    /// Counts a refusal. True for the first of its kind, which deserves a line of its own.
    pub fn count(&self, address: IpAddr, why: &'static str) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = counts.contains_key(&(Some(address), why));
        let key = if is_known || counts.len() < MAX_ADDRESSES { Some(address) } else { None };
        let count = counts.entry((key, why)).or_default();
        *count += 1;
        *count == 1
    }

    /// What was counted more than once; counting starts again.
    pub fn take_repeated(&self) -> Vec<RepeatedRefusal> {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let repeated = counts.into_iter().filter(|(_, count)| *count > 1);
        repeated.map(|((address, why), count)| RepeatedRefusal { address, why, count: count - 1 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_told_apart_and_the_others_are_summed_up_by_address() {
        let counts = RefusalCounts::default();
        let [one, two] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        assert!(counts.count(one, "wrong token") && counts.count(two, "wrong token"));
        assert!(!counts.count(one, "wrong token") && !counts.count(one, "wrong token"));
        assert!(counts.count(one, "too many"), "another reason");
        let repeated = RepeatedRefusal { address: Some(one), why: "wrong token", count: 2 };
        assert_eq!(counts.take_repeated(), [repeated]);
        assert!(counts.take_repeated().is_empty() && counts.count(one, "wrong token"));
    }

    #[test]
    fn thousands_of_addresses_are_counted_together() {
        let counts = RefusalCounts::default();
        let lines =
            (0..10_000_u32).filter(|host| counts.count(IpAddr::from(host.to_be_bytes()), "wrong token")).count();
        assert_eq!(lines, MAX_ADDRESSES + 1);
        let others = 10_000 - MAX_ADDRESSES as u64 - 1;
        assert_eq!(counts.take_repeated(), [RepeatedRefusal { address: None, why: "wrong token", count: others }]);
    }
}
