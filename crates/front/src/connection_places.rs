//! The places for connections: a few for those that have not sent a token, and others for those that have.
//!
//! Anybody can open connections and leave them idle, so they are limited per address, and make room for each other.
//! The first request with a valid token moves its connection to the places of that token, which strangers cannot take.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sinew_gateway::Principal;
use sinew_tool::network_of;
use sinew_tool::slots::{SlotTable, SlotUse, TakenSlot};
use tokio_util::sync::CancellationToken;

use crate::FrontLimits;

/// The places of one listener.
#[derive(Clone)]
pub(crate) struct ConnectionPlaces {
    strangers: SlotTable<IpAddr>,
    callers: SlotTable<Box<str>>,
}

/// The place of one connection.
pub(crate) struct ConnectionPlace {
    places: ConnectionPlaces,
    stranger: Mutex<Option<TakenSlot<IpAddr>>>,
    caller: OnceLock<TakenSlot<Box<str>>>,
    /// Cancelled when another connection has the place.
    pub(crate) evicted: CancellationToken,
    /// Where the connection comes from.
    pub(crate) address: IpAddr,
}

/// A request is being answered: its connection stays.
pub(crate) type ConnectionUse = SlotUse<Box<str>>;

impl ConnectionPlaces {
    pub(crate) fn new(limits: &FrontLimits) -> ConnectionPlaces {
        ConnectionPlaces {
            strangers: SlotTable::new(limits.strangers, limits.strangers_each),
            callers: SlotTable::new(limits.connections, limits.connections_each),
        }
    }

    /// A place for a new connection. It may take the place of one that is idle.
    pub(crate) fn take(&self, address: IpAddr) -> Arc<ConnectionPlace> {
        let evicted = CancellationToken::new();
        let evict = evicted.clone();
        let stranger = self.strangers.take(network_of(address), move || evict.cancel());
        let (places, caller) = (self.clone(), OnceLock::new());
        Arc::new(ConnectionPlace { places, stranger: Mutex::new(stranger), caller, evicted, address })
    }
}

impl ConnectionPlace {
    /// Keeps the connection while a request of this caller is answered. `None` if the caller has too many in use.
    pub(crate) fn start_use(&self, who: &Principal) -> Option<ConnectionUse> {
        if let Some(caller) = self.caller.get() {
            return caller.start_use();
        }
        let evict = self.evicted.clone();
        let taken = self.places.callers.take(who.id.as_str().into(), move || evict.cancel())?;
        let connection_use = taken.start_use();
        // Requests of one connection come one after another.
        let _ = self.caller.set(taken);
        self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
        connection_use
    }
}

#[cfg(test)]
mod tests {
    use sinew_gateway::Role;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn places() -> ConnectionPlaces {
        let limits = FrontLimits {
            connections: 3,
            connections_each: 2,
            strangers: 3,
            strangers_each: 2,
            ..FrontLimits::default()
        };
        ConnectionPlaces::new(&limits)
    }

    #[test]
    fn strangers_make_room_for_each_other_and_never_take_the_place_of_a_caller() {
        let places = places();
        let caller = places.take(ADDRESS);
        drop(caller.start_use(&Principal::new("app", Role::Client)));
        let strangers: Vec<_> = (0..50).map(|_| places.take(ADDRESS)).collect();
        let evicted = strangers.iter().filter(|place| place.evicted.is_cancelled()).count();
        assert_eq!((evicted, caller.evicted.is_cancelled()), (48, false));
    }

    #[test]
    fn the_idle_connection_of_the_same_token_makes_room_and_one_in_use_stays() {
        let places = places();
        let connect = |name: &str| {
            let place = places.take(ADDRESS);
            let using = place.start_use(&Principal::new(name, Role::Client));
            (place, using)
        };
        let other = connect("other");
        let (first, first_use) = connect("app");
        let (second, second_use) = connect("app");
        drop(second_use);
        let third = connect("app");
        assert!(second.evicted.is_cancelled() && !first.evicted.is_cancelled() && third.1.is_some());
        assert!(connect("app").1.is_none(), "both are in use");
        drop((first_use, third));
        assert!(connect("app").1.is_some() && !other.0.evicted.is_cancelled());
    }

    #[test]
    fn one_network_of_ipv6_counts_as_one_address() {
        let places = places();
        let [one, two, other] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
            .map(|text| places.take(text.parse().expect("an address")));
        let three = places.take("2001:db8::3".parse().expect("an address"));
        assert_eq!([one, two, other, three].map(|place| place.evicted.is_cancelled()), [true, false, false, false]);
    }
}
