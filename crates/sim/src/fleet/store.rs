//! A model of the store: compare-and-set that is exact, reads that may be old, records that expire in silence, and a log
//! that watchers follow late.

use std::collections::HashMap;
use std::time::Duration;

use sinew_presence::{Key, ReadAnswer, Record, Revision, StoreId, WriteAnswer};

/// How long a lease stays that nobody renews. No watcher hears of its end.
const LEASE_AGE: Duration = Duration::from_secs(60);

pub(super) struct Store {
    pub(super) id: StoreId,
    /// All changes, in order.
    pub(super) log: Vec<Change>,
    now: HashMap<Key, Kept>,
    next: u64,
}

#[derive(Clone)]
pub(super) struct Change {
    pub(super) at: Duration,
    pub(super) change: sinew_presence::Change<()>,
}

struct Kept {
    at: Duration,
    revision: Revision,
    record: Record<()>,
    before: Option<(Revision, Record<()>)>,
}

impl Store {
    pub(super) fn new() -> Store {
        Store { id: StoreId(1), log: Vec::new(), now: HashMap::new(), next: 1 }
    }

    /// Loses everything, as a server does whose disk is gone.
    pub(super) fn lose(&mut self) {
        *self = Store { id: StoreId(self.id.0 + 1), ..Store::new() };
    }

    pub(super) fn write(&mut self, now: Duration, key: Key, record: Record<()>, expected: Revision) -> WriteAnswer {
        self.expire(now, &key);
        let before = self.now.remove(&key);
        let current = before.as_ref().map(|kept| kept.revision).unwrap_or_default();
        if current != expected {
            if let Some(before) = before {
                self.now.insert(key, before);
            }
            return WriteAnswer::Conflict;
        }
        let revision = Revision(self.next);
        self.next += 1;
        let before = before.map(|kept| (kept.revision, kept.record));
        self.now.insert(key.clone(), Kept { at: now, revision, record: record.clone(), before });
        self.log.push(Change { at: now, change: sinew_presence::Change { key, revision, record } });
        WriteAnswer::Done(revision)
    }

    /// Reads a record as it was `age` ago, as far as one change back.
    pub(super) fn read(&mut self, now: Duration, key: &Key, age: Duration) -> ReadAnswer<()> {
        self.expire(now, key);
        let Some(kept) = self.now.get(key) else { return ReadAnswer::Missing };
        if kept.at + age <= now {
            return ReadAnswer::Found(kept.revision, kept.record.clone());
        }
        match &kept.before {
            Some((revision, record)) => ReadAnswer::Found(*revision, record.clone()),
            None => ReadAnswer::Missing,
        }
    }

    fn expire(&mut self, now: Duration, key: &Key) {
        if matches!(key, Key::Node(_)) && self.now.get(key).is_some_and(|kept| kept.at + LEASE_AGE <= now) {
            self.now.remove(key);
        }
    }
}
