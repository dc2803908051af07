//! Who is connected, and which toolsets are known.
//!
//! A board that comes while an older connection of it still stands takes its place, and the older one
//! is told. Equal toolsets are kept once, however many boards have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sinew_tool::{Admission, Digest, Toolset};
use sinew_wire::Moment;
use tokio::sync::oneshot;

use crate::Limits;
use crate::flood::Bucket;
use crate::handle::BoardDevice;

#[derive(Default)]
pub(crate) struct Roster {
    entries: Mutex<Entries>,
    shelf: Mutex<HashMap<Digest, Weak<Toolset>>>,
}

#[derive(Default)]
struct Entries {
    boards: HashMap<Arc<str>, Entry>,
    /// Boards that left or were replaced soon after they came, and how often they may still come.
    restless: HashMap<Arc<str>, Restless>,
    last_number: u64,
    closed: bool,
}

struct Entry {
    number: u64,
    came: Moment,
    admission: Admission,
    device: Weak<BoardDevice>,
    end: oneshot::Sender<Lost>,
}

struct Restless {
    bucket: Bucket,
    last: Moment,
    /// It was turned away, and somebody was told.
    told: bool,
}

/// Why an admitted board gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    Full,
    TooOften,
    Closing,
}

impl Turned {
    /// What whoever is turned away is told.
    pub(crate) fn reason(self, limits: &Limits) -> String {
        match self {
            Turned::Full => {
                format!("{} boards are connected already, as many as this door admits; try again later", limits.boards)
            }
            Turned::TooOften => format!(
                "the board connects too often: more than {} times at once or {} times a second; is something else using its id?",
                limits.connect_burst, limits.connects_per_second
            ),
            Turned::Closing => "the gateway is shutting down".to_owned(),
        }
    }
}

/// A stay that lasted longer than this is nothing unusual.
const SHORT_STAY: Duration = Duration::from_secs(10);
/// Restless boards remembered at once; beyond it those are forgotten that have calmed down.
const RESTLESS: usize = 4096;

/// A board's place among the connected; leaving it is dropping it.
pub(crate) struct Place {
    roster: Arc<Roster>,
    /// The key of the device, which names its family too.
    pub(crate) key: Arc<str>,
    came: Moment,
    pub(crate) number: u64,
    /// Resolves when the place is lost; with `Err` because the door closes.
    pub(crate) end: oneshot::Receiver<Lost>,
}

/// To whom a place was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The same board came again.
    Replaced,
    /// Its token does not count any more.
    Revoked,
}

impl Roster {
    /// A place for a board; one that is here already gives its older one up.
    pub(crate) fn enter(
        self: &Arc<Roster>,
        key: &str,
        admission: &Admission,
        now: Moment,
        limits: &Limits,
    ) -> Result<Place, Turned> {
        let (sender, end) = oneshot::channel();
        let key: Arc<str> = key.into();
        let mut entries = self.entries();
        if entries.closed {
            return Err(Turned::Closing);
        }
        if entries.boards.len() >= limits.boards && !entries.boards.contains_key(&key) {
            return Err(Turned::Full);
        }
        if let Some(entry) = entries.boards.get(&key)
            && now.since(entry.came) < SHORT_STAY
        {
            entries.remember(&key, now, limits);
        }
        if let Some(restless) = entries.restless.get_mut(&key) {
            restless.last = now;
            if !restless.bucket.take(now) {
                return Err(Turned::TooOften);
            }
        }
        entries.last_number += 1;
        let number = entries.last_number;
        let entry = Entry { number, came: now, admission: admission.clone(), device: Weak::new(), end: sender };
        let before = entries.boards.insert(key.clone(), entry);
        drop(entries);
        if let Some(before) = before {
            // An error means that the older connection is ending by itself.
            let _ = before.end.send(Lost::Replaced);
        }
        Ok(Place { roster: self.clone(), key, came: now, number, end })
    }

    /// True the first time after a board that is turned away for coming too often had a rest.
    pub(crate) fn is_news(&self, key: &str) -> bool {
        let mut entries = self.entries();
        entries.restless.get_mut(key).is_some_and(|restless| !std::mem::replace(&mut restless.told, true))
    }

    /// The present stay of a board, and its number.
    pub(crate) fn find(&self, key: &str) -> Option<(u64, Arc<BoardDevice>)> {
        let entries = self.entries();
        let entry = entries.boards.get(key)?;
        Some((entry.number, entry.device.upgrade()?))
    }

    /// Ends every connection whose admission is over.
    pub(crate) fn dismiss(&self, is_over: impl Fn(&Admission) -> bool) {
        let mut entries = self.entries();
        for (_, entry) in entries.boards.extract_if(|_, entry| is_over(&entry.admission)) {
            let _ = entry.end.send(Lost::Revoked);
        }
    }

    /// Tells every board that the door closes, and lets none in any more.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.closed = true;
        entries.boards.clear();
    }

    /// The one copy of a toolset.
    pub(crate) fn shelve(&self, tools: Toolset) -> Arc<Toolset> {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shelf.get(&tools.digest()).and_then(Weak::upgrade) {
            return known;
        }
        shelf.retain(|_, tools| tools.strong_count() > 0);
        let tools = Arc::new(tools);
        shelf.insert(tools.digest(), Arc::downgrade(&tools));
        tools
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Keeps an eye on a board that does not stay.
    fn remember(&mut self, key: &Arc<str>, now: Moment, limits: &Limits) {
        if self.restless.len() >= RESTLESS {
            self.restless.retain(|_, restless| now.since(restless.last) < SHORT_STAY);
        }
        if self.restless.len() < RESTLESS {
            self.restless.entry(key.clone()).or_insert_with(|| Restless {
                bucket: Bucket::new(limits.connects_per_second, limits.connect_burst, now),
                last: now,
                told: false,
            });
        }
    }

    fn remove(&mut self, place: &Place) {
        if self.boards.get(&place.key).is_some_and(|entry| entry.number == place.number) {
            self.boards.remove(&place.key);
        }
    }
}

impl Place {
    /// Lets others find the device in this place.
    pub(crate) fn show(&self, device: &Arc<BoardDevice>) {
        let mut entries = self.roster.entries();
        if let Some(entry) = entries.boards.get_mut(&self.key).filter(|entry| entry.number == self.number) {
            entry.device = Arc::downgrade(device);
        }
    }

    /// Gives the place up, and remembers if it was a short stay.
    pub(crate) fn leave(&self, now: Moment, limits: &Limits) {
        let mut entries = self.roster.entries();
        if now.since(self.came) < SHORT_STAY {
            entries.remember(&self.key, now, limits);
        }
        entries.remove(self);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.roster.entries().remove(self);
    }
}

#[cfg(test)]
mod tests {
    use sinew_tool::{Tool, json};
    use tokio::sync::oneshot::error::TryRecvError;

    use sinew_tool::TokenId;

    use super::*;

    fn limits(boards: usize) -> Limits {
        Limits { boards, connects_per_second: 1, connect_burst: 3, ..Limits::default() }
    }

    fn enter(roster: &Arc<Roster>, hardware_id: &str, seconds: u64) -> Result<Place, Turned> {
        let token = TokenId::parse(hardware_id).expect("a plain id");
        roster.enter(hardware_id, &Admission::DeviceToken(token), Moment(seconds * 1_000_000), &limits(2))
    }

    #[test]
    fn a_board_that_returns_takes_its_own_place() {
        let roster = Arc::new(Roster::default());
        let mut first = enter(&roster, "aa", 0).expect("open");
        let mut other = enter(&roster, "bb", 0).expect("open");
        let mut second = enter(&roster, "aa", 60).expect("open");
        assert_eq!(first.end.try_recv(), Ok(Lost::Replaced));
        assert_eq!(other.end.try_recv(), Err(TryRecvError::Empty));

        drop(first);
        assert_eq!(second.end.try_recv(), Err(TryRecvError::Empty), "the old farewell must not end the new stay");
        assert_eq!(enter(&roster, "cc", 60).err(), Some(Turned::Full));
        drop(second);
        assert!(enter(&roster, "cc", 60).is_ok());
    }

    #[test]
    fn closing_ends_every_stay_and_admits_none() {
        let roster = Arc::new(Roster::default());
        let mut place = enter(&roster, "aa", 0).expect("open");
        roster.close();
        assert_eq!(place.end.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(enter(&roster, "aa", 0).err(), Some(Turned::Closing));
    }

    #[test]
    fn a_board_that_is_dismissed_loses_its_place_and_no_other_does() {
        let roster = Arc::new(Roster::default());
        let mut meant = enter(&roster, "aa", 0).expect("open");
        let mut other = enter(&roster, "bb", 0).expect("open");
        let token = Admission::DeviceToken(TokenId::parse("aa").expect("a plain id"));
        roster.dismiss(|admission| *admission == token);
        assert_eq!(meant.end.try_recv(), Ok(Lost::Revoked));
        assert_eq!(other.end.try_recv(), Err(TryRecvError::Empty));
        let mut again = enter(&roster, "aa", 60).expect("it may come again, if it is let in");
        drop(meant);
        assert_eq!(again.end.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn a_board_that_comes_and_goes_too_often_is_turned_away_until_it_rests() {
        let roster = Arc::new(Roster::default());
        for _ in 0..4 {
            let place = enter(&roster, "aa", 0).expect("at first");
            place.leave(Moment(0), &limits(2));
        }
        assert_eq!(enter(&roster, "aa", 0).err(), Some(Turned::TooOften));
        assert!(roster.is_news("aa") && !roster.is_news("aa"), "told once");
        assert!(enter(&roster, "bb", 0).is_ok(), "nobody else notices");
        assert!(enter(&roster, "aa", 5).is_ok());
    }

    #[test]
    fn a_board_that_replaces_itself_too_often_keeps_its_last_place() {
        let roster = Arc::new(Roster::default());
        let mut places: Vec<Place> = (0..4).map(|_| enter(&roster, "aa", 0).expect("at first")).collect();
        assert_eq!(enter(&roster, "aa", 0).err(), Some(Turned::TooOften));
        assert_eq!(places[3].end.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn equal_toolsets_are_kept_once_and_not_for_ever() {
        let roster = Roster::default();
        let set = |name: &str| Toolset::new([Tool::new(name, "", json!({"type": "object"}))]);
        let first = roster.shelve(set("a"));
        assert!(Arc::ptr_eq(&first, &roster.shelve(set("a"))));
        let other = roster.shelve(set("b"));
        assert!(!Arc::ptr_eq(&first, &other));
        drop(first);
        let _third = roster.shelve(set("c"));
        assert_eq!(roster.shelf.lock().expect("whole").len(), 2);
    }
}
