//! Who is connected, and which toolsets are known.
//!
//! A board that comes while an older connection of it still stands takes its place, and the older one
//! is told. Equal toolsets are kept once, however many boards have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sinew_tool::{Digest, Toolset};
use tokio::sync::oneshot;

#[derive(Default)]
pub(crate) struct Roster {
    entries: Mutex<Entries>,
    shelf: Mutex<HashMap<Digest, Weak<Toolset>>>,
}

#[derive(Default)]
struct Entries {
    boards: HashMap<Arc<str>, Entry>,
    last_number: u64,
    closed: bool,
}

struct Entry {
    number: u64,
    end: oneshot::Sender<()>,
}

/// A board's place among the connected; leaving it is dropping it.
pub(crate) struct Place {
    roster: Arc<Roster>,
    hardware_id: Arc<str>,
    pub(crate) number: u64,
    /// Resolves when the place is lost: with `Ok` to the same board that came again, with `Err`
    /// because the door closes.
    pub(crate) end: oneshot::Receiver<()>,
}

impl Roster {
    /// `None` once the door is closing.
    pub(crate) fn enter(self: &Arc<Roster>, hardware_id: &str) -> Option<Place> {
        let (sender, end) = oneshot::channel();
        let hardware_id: Arc<str> = hardware_id.into();
        let mut entries = self.entries();
        if entries.closed {
            return None;
        }
        entries.last_number += 1;
        let number = entries.last_number;
        let before = entries.boards.insert(hardware_id.clone(), Entry { number, end: sender });
        drop(entries);
        if let Some(before) = before {
            // An error means that the older connection is ending by itself.
            let _ = before.end.send(());
        }
        Some(Place { roster: self.clone(), hardware_id, number, end })
    }

    /// Whether one more board may come; one that is here already always may.
    pub(crate) fn has_room(&self, hardware_id: &str, limit: usize) -> bool {
        let entries = self.entries();
        entries.boards.len() < limit || entries.boards.contains_key(hardware_id)
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

impl Drop for Place {
    fn drop(&mut self) {
        let mut entries = self.roster.entries();
        if entries.boards.get(&self.hardware_id).is_some_and(|entry| entry.number == self.number) {
            entries.boards.remove(&self.hardware_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_tool::{Tool, json};
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    #[test]
    fn a_board_that_returns_takes_its_own_place() {
        let roster = Arc::new(Roster::default());
        let mut first = roster.enter("aa").expect("open");
        let mut other = roster.enter("bb").expect("open");
        let mut second = roster.enter("aa").expect("open");
        assert_eq!(first.end.try_recv(), Ok(()));
        assert_eq!(other.end.try_recv(), Err(TryRecvError::Empty));

        drop(first);
        assert_eq!(second.end.try_recv(), Err(TryRecvError::Empty), "the old farewell must not end the new stay");
        assert!(roster.has_room("aa", 2) && !roster.has_room("cc", 2));
        drop(second);
        assert!(roster.has_room("cc", 2));
    }

    #[test]
    fn closing_ends_every_stay_and_admits_none() {
        let roster = Arc::new(Roster::default());
        let mut place = roster.enter("aa").expect("open");
        roster.close();
        assert_eq!(place.end.try_recv(), Err(TryRecvError::Closed));
        assert!(roster.enter("aa").is_none());
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
