//! Connections that have not said who they are: how many there may be, and who makes room for the next.
//!
//! Somebody who opens many and says nothing must not keep others out. Beyond the limit of one address, or of all
//! together, the connection that has waited longest is closed.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub(crate) struct Handshakes {
    pending: Arc<Mutex<VecDeque<PendingHandshake>>>,
    max: usize,
    max_per_network: usize,
}

struct PendingHandshake {
    network: IpAddr,
    end: CancellationToken,
}

/// One connection's place among those that wait; dropped when it is known who it is, or when it is over.
pub(crate) struct Handshake {
    all: Handshakes,
    /// Ends when the connection has to make room.
    pub(crate) end: CancellationToken,
}

impl Handshakes {
    pub(crate) fn new(max: usize, max_per_network: usize) -> Handshakes {
        Handshakes { pending: Arc::default(), max: max.max(1), max_per_network: max_per_network.max(1) }
    }

    /// A place for a new connection. Somebody may lose theirs for it.
    pub(crate) fn begin(&self, address: IpAddr) -> Handshake {
        let network = network(address);
        let end = CancellationToken::new();
        let mut pending = self.pending();
        let of_network = pending.iter().filter(|other| other.network == network).count();
        let oldest = match of_network >= self.max_per_network {
            true => pending.iter().position(|other| other.network == network),
            false => (pending.len() >= self.max).then_some(0),
        };
        if let Some(evicted) = oldest.and_then(|index| pending.remove(index)) {
            evicted.end.cancel();
        }
        pending.push_back(PendingHandshake { network, end: end.clone() });
        Handshake { all: self.clone(), end }
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<PendingHandshake>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.pending().retain(|pending| !pending.is(&self.end));
    }
}

impl PendingHandshake {
    fn is(&self, end: &CancellationToken) -> bool {
        self.end == *end
    }
}

/// Whoever has an IPv6 address has all of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(handshake: &Handshake) -> bool {
        handshake.end.is_cancelled()
    }

    #[test]
    fn beyond_the_limit_of_one_address_its_oldest_makes_room_and_no_other() {
        let all = Handshakes::new(10, 2);
        let other = all.begin([10, 0, 0, 2].into());
        let [one, two, three] = [(); 3].map(|()| all.begin([10, 0, 0, 1].into()));
        assert!(ended(&one) && !ended(&two) && !ended(&three) && !ended(&other));
        drop(two);
        let four = all.begin([10, 0, 0, 1].into());
        assert!(!ended(&three) && !ended(&four), "one that is done leaves its place");
    }

    #[test]
    fn beyond_the_limit_of_all_the_oldest_makes_room() {
        let all = Handshakes::new(2, 2);
        let [one, two, three] = [1, 2, 3].map(|host| all.begin([10, 0, 0, host].into()));
        assert!(ended(&one) && !ended(&two) && !ended(&three));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let parse = |text: &str| text.parse::<IpAddr>().map(network).unwrap();
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1"));
    }
}
