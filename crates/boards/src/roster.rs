//! Who is connected, and which toolsets are known.
//!
//! A board that reconnects while an older connection is open replaces it, and the older connection is closed. Equal
//! toolsets are kept once, however many boards have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sinew_tool::{Admission, Digest, Toolset};
use sinew_wire::Moment;
use tokio::sync::oneshot;

use crate::BoardLimits;
use crate::device::BoardDevice;
use crate::token_bucket::TokenBucket;

#[derive(Default)]
pub(crate) struct Roster {
    entries: Mutex<RosterState>,
    toolsets: Mutex<HashMap<Digest, Weak<Toolset>>>,
}

#[derive(Default)]
struct RosterState {
    boards: HashMap<Arc<str>, RegisteredBoard>,
    /// Boards that disconnected or were replaced soon after they connected, and how often they may still connect.
    flapping: HashMap<Arc<str>, FlappingBoard>,
    last_number: u64,
    closed: bool,
}

struct RegisteredBoard {
    number: u64,
    registered_at: Moment,
    admission: Admission,
    device: Weak<BoardDevice>,
    end: oneshot::Sender<RegistrationEnd>,
}

struct FlappingBoard {
    bucket: TokenBucket,
    last: Moment,
    /// The refusal was reported.
    is_reported: bool,
}

/// Why an admitted board is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegistrationError {
    Full,
    TooOften,
    /// Its token was revoked while it connected.
    Revoked,
    Closing,
}

impl RegistrationError {
    /// The reason, as the board is told it.
    pub(crate) fn reason(self, limits: &BoardLimits) -> String {
        match self {
            RegistrationError::Full => {
                format!("{} devices are connected, which is the limit; try again later", limits.boards)
            }
            RegistrationError::TooOften => format!(
                "the device connects too often: more than {} times at once or {} times a second; is something else using its id?",
                limits.connect_burst, limits.connects_per_second
            ),
            RegistrationError::Revoked => "the token of the board was revoked; approve the board again".to_owned(),
            RegistrationError::Closing => "the gateway is shutting down".to_owned(),
        }
    }
}

/// A connection that lasted longer is not counted.
const SHORT_CONNECTION: Duration = Duration::from_secs(10);
/// Flapping boards that are remembered; beyond it, those are forgotten that have been quiet.
const MAX_FLAPPING: usize = 4096;

/// A registered board; dropping it removes the board.
pub(crate) struct Registration {
    roster: Arc<Roster>,
    /// The key of the device, which names its family too.
    pub(crate) key: Arc<str>,
    registered_at: Moment,
    pub(crate) number: u64,
    /// Resolves when the registration ends; with `Err` when the gateway shuts down.
    pub(crate) end: oneshot::Receiver<RegistrationEnd>,
}

/// Why a registration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegistrationEnd {
    /// The same board reconnected.
    Replaced,
    /// Its token was revoked.
    Revoked,
}

impl Roster {
    /// Registers a board; an older connection of it is replaced.
    pub(crate) fn register(
        self: &Arc<Roster>,
        key: &str,
        admission: &Admission,
        now: Moment,
        limits: &BoardLimits,
    ) -> Result<Registration, RegistrationError> {
        let (sender, end) = oneshot::channel();
        let key: Arc<str> = key.into();
        let mut entries = self.entries();
        if entries.closed {
            return Err(RegistrationError::Closing);
        }
        if entries.boards.len() >= limits.boards && !entries.boards.contains_key(&key) {
            return Err(RegistrationError::Full);
        }
        if let Some(entry) = entries.boards.get(&key)
            && now.since(entry.registered_at) < SHORT_CONNECTION
        {
            entries.remember(&key, now, limits);
        }
        if let Some(flapping) = entries.flapping.get_mut(&key) {
            flapping.last = now;
            if !flapping.bucket.take(now) {
                return Err(RegistrationError::TooOften);
            }
        }
        entries.last_number += 1;
        let number = entries.last_number;
        let entry = RegisteredBoard {
            number,
            registered_at: now,
            admission: admission.clone(),
            device: Weak::new(),
            end: sender,
        };
        let before = entries.boards.insert(key.clone(), entry);
        drop(entries);
        if let Some(before) = before {
            // An error means that the older connection is ending by itself.
            let _ = before.end.send(RegistrationEnd::Replaced);
        }
        Ok(Registration { roster: self.clone(), key, registered_at: now, number, end })
    }

    /// True for the first refusal since the board started to connect too often.
    pub(crate) fn is_first_refusal(&self, key: &str) -> bool {
        let mut entries = self.entries();
        entries.flapping.get_mut(key).is_some_and(|flapping| !std::mem::replace(&mut flapping.is_reported, true))
    }

    /// The current connection of a board, and its number.
    pub(crate) fn find(&self, key: &str) -> Option<(u64, Arc<BoardDevice>)> {
        let entries = self.entries();
        let entry = entries.boards.get(key)?;
        Some((entry.number, entry.device.upgrade()?))
    }

    /// Closes every connection whose admission is over.
    pub(crate) fn revoke(&self, is_over: impl Fn(&Admission) -> bool) {
        let mut entries = self.entries();
        for (_, entry) in entries.boards.extract_if(|_, entry| is_over(&entry.admission)) {
            let _ = entry.end.send(RegistrationEnd::Revoked);
        }
    }

    /// Closes one connection of a board, which connected elsewhere; a newer one stays.
    pub(crate) fn end_moved(&self, key: &str, device: *const BoardDevice) {
        let mut entries = self.entries();
        if entries.boards.get(key).is_some_and(|entry| std::ptr::eq(entry.device.as_ptr(), device))
            && let Some(entry) = entries.boards.remove(key)
        {
            let _ = entry.end.send(RegistrationEnd::Replaced);
        }
    }

    /// Closes every connection, and registers no more boards.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.closed = true;
        entries.boards.clear();
    }

    /// The one copy of a toolset.
    pub(crate) fn share_toolset(&self, tools: Toolset) -> Arc<Toolset> {
        let mut toolsets = self.toolsets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = toolsets.get(&tools.digest()).and_then(Weak::upgrade) {
            return known;
        }
        toolsets.retain(|_, tools| tools.strong_count() > 0);
        let tools = Arc::new(tools);
        toolsets.insert(tools.digest(), Arc::downgrade(&tools));
        tools
    }

    fn entries(&self) -> MutexGuard<'_, RosterState> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RosterState {
    /// Starts counting the connections of a board that does not stay connected.
    fn remember(&mut self, key: &Arc<str>, now: Moment, limits: &BoardLimits) {
        if self.flapping.len() >= MAX_FLAPPING {
            self.flapping.retain(|_, flapping| now.since(flapping.last) < SHORT_CONNECTION);
        }
        if self.flapping.len() < MAX_FLAPPING {
            self.flapping.entry(key.clone()).or_insert_with(|| FlappingBoard {
                bucket: TokenBucket::new(limits.connects_per_second, limits.connect_burst, now),
                last: now,
                is_reported: false,
            });
        }
    }

    fn remove(&mut self, registration: &Registration) {
        if self.boards.get(&registration.key).is_some_and(|entry| entry.number == registration.number) {
            self.boards.remove(&registration.key);
        }
    }
}

impl Registration {
    /// Lets others find the device.
    pub(crate) fn show(&self, device: &Arc<BoardDevice>) {
        let mut entries = self.roster.entries();
        if let Some(entry) = entries.boards.get_mut(&self.key).filter(|entry| entry.number == self.number) {
            entry.device = Arc::downgrade(device);
        }
    }

    /// Removes the board, and remembers a short connection.
    pub(crate) fn release(&self, now: Moment, limits: &BoardLimits) {
        let mut entries = self.roster.entries();
        if now.since(self.registered_at) < SHORT_CONNECTION {
            entries.remember(&self.key, now, limits);
        }
        entries.remove(self);
    }
}

impl Drop for Registration {
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

    fn limits(boards: usize) -> BoardLimits {
        BoardLimits { boards, connects_per_second: 1, connect_burst: 3, ..BoardLimits::default() }
    }

    fn register(roster: &Arc<Roster>, hardware_id: &str, seconds: u64) -> Result<Registration, RegistrationError> {
        let token = TokenId::parse(hardware_id).expect("a plain id");
        roster.register(hardware_id, &Admission::DeviceToken(token), Moment(seconds * 1_000_000), &limits(2))
    }

    #[test]
    fn a_board_that_reconnects_replaces_its_older_connection() {
        let roster = Arc::new(Roster::default());
        let mut first = register(&roster, "aa", 0).expect("open");
        let mut other = register(&roster, "bb", 0).expect("open");
        let mut second = register(&roster, "aa", 60).expect("open");
        assert_eq!(first.end.try_recv(), Ok(RegistrationEnd::Replaced));
        assert_eq!(other.end.try_recv(), Err(TryRecvError::Empty));

        drop(first);
        assert_eq!(
            second.end.try_recv(),
            Err(TryRecvError::Empty),
            "the end of the old connection must not end the new one"
        );
        assert_eq!(register(&roster, "cc", 60).err(), Some(RegistrationError::Full));
        drop(second);
        assert!(register(&roster, "cc", 60).is_ok());
    }

    #[test]
    fn closing_ends_every_connection_and_registers_none() {
        let roster = Arc::new(Roster::default());
        let mut registration = register(&roster, "aa", 0).expect("open");
        roster.close();
        assert_eq!(registration.end.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(register(&roster, "aa", 0).err(), Some(RegistrationError::Closing));
    }

    #[test]
    fn a_revoked_admission_ends_its_connection_and_no_other() {
        let roster = Arc::new(Roster::default());
        let mut meant = register(&roster, "aa", 0).expect("open");
        let mut other = register(&roster, "bb", 0).expect("open");
        let token = Admission::DeviceToken(TokenId::parse("aa").expect("a plain id"));
        roster.revoke(|admission| *admission == token);
        assert_eq!(meant.end.try_recv(), Ok(RegistrationEnd::Revoked));
        assert_eq!(other.end.try_recv(), Err(TryRecvError::Empty));
        let mut again = register(&roster, "aa", 60).expect("it may connect again, if it is admitted");
        drop(meant);
        assert_eq!(again.end.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn a_board_that_reconnects_too_often_is_refused_until_it_pauses() {
        let roster = Arc::new(Roster::default());
        for _ in 0..4 {
            let registration = register(&roster, "aa", 0).expect("at first");
            registration.release(Moment(0), &limits(2));
        }
        assert_eq!(register(&roster, "aa", 0).err(), Some(RegistrationError::TooOften));
        assert!(roster.is_first_refusal("aa") && !roster.is_first_refusal("aa"), "told once");
        assert!(register(&roster, "bb", 0).is_ok(), "others are not affected");
        assert!(register(&roster, "aa", 5).is_ok());
    }

    #[test]
    fn a_board_that_replaces_itself_too_often_keeps_its_last_connection() {
        let roster = Arc::new(Roster::default());
        let mut registrations: Vec<Registration> =
            (0..4).map(|_| register(&roster, "aa", 0).expect("at first")).collect();
        assert_eq!(register(&roster, "aa", 0).err(), Some(RegistrationError::TooOften));
        assert_eq!(registrations[3].end.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn equal_toolsets_are_kept_once_and_not_for_ever() {
        let roster = Roster::default();
        let set = |name: &str| Toolset::new([Tool::new(name, "", json!({"type": "object"}))]);
        let first = roster.share_toolset(set("a"));
        assert!(Arc::ptr_eq(&first, &roster.share_toolset(set("a"))));
        let other = roster.share_toolset(set("b"));
        assert!(!Arc::ptr_eq(&first, &other));
        drop(first);
        let _third = roster.share_toolset(set("c"));
        assert_eq!(roster.toolsets.lock().expect("whole").len(), 2);
    }
}
