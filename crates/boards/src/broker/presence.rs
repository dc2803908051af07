//! Which boards of a broker are present, as their presence messages say, and which of them is asked next.
//!
//! A presence costs nobody anything, so there may be many of boards that are not there: left over in the broker, or made
//! up. They must not delay others. Known boards are asked first, then new ones, the latest first. A board that does not
//! answer its first question joins the silent ones, which are asked separately.
//!
//! No IO and no clock: the owner of the connection reports what it received, and how often it has connected.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sinew_tool::Presences;

use crate::device::BoardDevice;

#[derive(Default)]
pub(crate) struct PresenceList {
    boards: HashMap<Box<str>, PresentBoard>,
    /// Boards that joined before and are to be asked, the first first.
    known: VecDeque<Box<str>>,
    /// Boards that never joined, the last first.
    new: Vec<Box<str>>,
    /// Boards that did not answer, the first first.
    silent: VecDeque<Box<str>>,
    /// Counts the connections to the broker.
    round: u32,
}

struct PresentBoard {
    /// The connection on which the board's presence was last received.
    round: u32,
    /// `None` until it is asked.
    device: Option<Arc<BoardDevice>>,
    /// It announced itself again while connected, so its tools are to be listed again.
    needs_refresh: bool,
    /// It did not answer its first question.
    is_silent: bool,
}

/// Who is asked next.
pub(crate) enum NextBoard {
    /// A board that has not joined.
    Join(Box<str>),
    /// One that may have other tools now.
    Refresh(Arc<BoardDevice>),
}

impl PresenceList {
    /// A new connection: all boards stay, but their presence must be received again.
    pub(crate) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The board is present. `is_new`: it announced itself now, and not before we subscribed. `is_known`: it joined
    /// before. A board whose connection ended for another reason gets a new one.
    pub(crate) fn mark_present(&mut self, id: &str, is_new: bool, is_known: bool) {
        let round = self.round;
        let is_asked = match self.boards.get_mut(id) {
            Some(board) => {
                board.round = round;
                // Who announces itself again is not silent any more.
                let is_back = is_new && std::mem::take(&mut board.is_silent);
                match &board.device {
                    Some(device) if device.commands.is_closed() => {
                        board.device = None;
                        true
                    }
                    Some(_) => is_new && !std::mem::replace(&mut board.needs_refresh, is_new),
                    None => is_back,
                }
            }
            None => {
                let board = PresentBoard { round, device: None, needs_refresh: false, is_silent: false };
                self.boards.insert(id.into(), board);
                true
            }
        };
        let has_device = self.find(id).is_some();
        if is_asked && (is_known || has_device) {
            self.known.push_back(id.into());
        } else if is_asked {
            self.new.push(id.into());
        }
    }

    /// The board is gone; returns its current connection.
    pub(crate) fn mark_absent(&mut self, id: &str) -> Option<Arc<BoardDevice>> {
        self.boards.remove(id)?.device
    }

    /// The board did not answer.
    pub(crate) fn mark_silent(&mut self, id: &str) {
        if let Some(board) = self.boards.get_mut(id)
            && board.device.as_ref().is_none_or(|device| device.commands.is_closed())
        {
            (board.device, board.is_silent) = (None, true);
            self.silent.push_back(id.into());
        }
    }

    pub(crate) fn is_silent(&self, id: &str) -> bool {
        self.boards.get(id).is_some_and(|board| board.is_silent)
    }

    /// Takes a silent board out of the queue, to be asked later; false if it is not in it.
    pub(crate) fn postpone_silent(&mut self, id: &str) -> bool {
        let is_last = self.silent.back().is_some_and(|last| **last == *id);
        is_last && self.silent.pop_back().is_some()
    }

    /// Every board whose presence was not received on this connection is gone.
    pub(crate) fn end_round(&mut self) -> Vec<Arc<BoardDevice>> {
        let round = self.round;
        let mut gone = Vec::new();
        self.boards.retain(|_, board| {
            let stays = board.round == round;
            if !stays {
                gone.extend(board.device.take());
            }
            stays
        });
        gone
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.known.is_empty() || !self.new.is_empty()
    }

    pub(crate) fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// How many boards wait, to be shown.
    pub(crate) fn count_waiting(&self) -> Presences {
        let silent = self.boards.values().filter(|board| board.is_silent && board.device.is_none()).count();
        Presences { waiting: self.known.len() + self.new.len(), silent }
    }

    /// The next board to be asked. One that has left meanwhile, or is listed twice, is passed over.
    pub(crate) fn next_waiting(&mut self) -> Option<NextBoard> {
        while let Some(id) = self.known.pop_front().or_else(|| self.new.pop()) {
            let Some(board) = self.boards.get_mut(&id) else { continue };
            match &board.device {
                None if !board.is_silent => return Some(NextBoard::Join(id)),
                Some(device) if std::mem::take(&mut board.needs_refresh) => {
                    return Some(NextBoard::Refresh(device.clone()));
                }
                _ => {}
            }
        }
        // An empty list keeps no memory of ten thousand boards.
        (self.known, self.new) = (VecDeque::new(), Vec::new());
        None
    }

    /// The next silent board to be asked again.
    pub(crate) fn next_silent(&mut self) -> Option<Box<str>> {
        while let Some(id) = self.silent.pop_front() {
            if self.boards.get(&id).is_some_and(|board| board.is_silent && board.device.is_none()) {
                return Some(id);
            }
        }
        self.silent = VecDeque::new();
        None
    }

    /// The board is asked later.
    pub(crate) fn wait_again(&mut self, id: Box<str>) {
        match self.boards.get(&id) {
            Some(board) if board.is_silent => self.silent.push_back(id),
            Some(_) => self.known.push_back(id),
            None => {}
        }
    }

    pub(crate) fn set_device(&mut self, id: &str, device: Arc<BoardDevice>) {
        if let Some(board) = self.boards.get_mut(id) {
            (board.device, board.needs_refresh) = (Some(device), false);
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<BoardDevice>> {
        self.boards.get(id)?.device.as_ref()
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &Arc<BoardDevice>> {
        self.boards.values().filter_map(|board| board.device.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(id: &str) -> Arc<BoardDevice> {
        Arc::new(BoardDevice::new(super::super::info(id, "mqtt://b:1883"), 4, Arc::default()))
    }

    fn waiting(list: &mut PresenceList) -> Vec<String> {
        let next = std::iter::from_fn(|| list.next_waiting());
        let name = |next| match next {
            NextBoard::Join(id) => format!("join {id}"),
            NextBoard::Refresh(device) => format!("refresh {}", device.key()),
        };
        next.map(name).collect()
    }

    #[test]
    fn known_boards_are_asked_first_then_the_latest_and_each_once() {
        let mut list = PresenceList::default();
        for (id, is_known) in [("a", false), ("b", false), ("k", true), ("a", false), ("c", false), ("l", true)] {
            list.mark_present(id, true, is_known);
        }
        assert!(list.mark_absent("b").is_none());
        assert!(list.has_waiting());
        assert_eq!(waiting(&mut list), ["join k", "join l", "join c", "join a"]);
    }

    #[test]
    fn ten_thousand_presences_delay_no_honest_board() {
        let mut list = PresenceList::default();
        for number in 0..10_000 {
            list.mark_present(&format!("phantom-{number}"), number % 2 == 0, false);
        }
        for _ in 0..64 {
            let Some(NextBoard::Join(id)) = list.next_waiting() else { panic!("all of them wait") };
            list.mark_silent(&id);
        }
        list.mark_present("honest", true, false);
        list.mark_present("known", false, true);
        assert_eq!(waiting(&mut list)[..2], ["join known", "join honest"]);
        assert_eq!(list.count_waiting(), Presences { waiting: 0, silent: 64 });
    }

    #[test]
    fn a_silent_board_is_asked_apart_and_like_others_once_it_announces_itself_again() {
        let mut list = PresenceList::default();
        list.mark_present("a", true, false);
        assert_eq!(waiting(&mut list), ["join a"]);
        list.mark_silent("a");
        list.mark_present("a", false, false);
        assert!(waiting(&mut list).is_empty() && list.has_silent());
        assert_eq!(list.next_silent().as_deref(), Some("a"));
        assert!(list.next_silent().is_none() && !list.has_silent());
        list.wait_again("a".into());
        assert!(list.has_silent() && !list.has_waiting());
        list.mark_present("a", true, false);
        assert_eq!(waiting(&mut list), ["join a"]);
        assert!(list.next_silent().is_none(), "it is not asked twice");
    }

    #[test]
    fn a_board_that_announces_itself_again_is_asked_again_and_one_that_stayed_is_not() {
        let mut list = PresenceList::default();
        list.mark_present("a", false, false);
        list.set_device("a", device("a"));
        list.mark_present("a", false, false);
        assert!(waiting(&mut list).is_empty());
        list.mark_present("a", true, false);
        list.mark_present("a", true, false);
        assert_eq!(waiting(&mut list), ["refresh board:a"]);
    }

    #[test]
    fn over_a_lost_connection_all_boards_stay_until_the_round_ends() {
        let mut list = PresenceList::default();
        for id in ["a", "b"] {
            list.mark_present(id, true, false);
            list.set_device(id, device(id));
        }
        list.begin_round();
        assert_eq!(list.devices().count(), 2);
        list.mark_present("b", false, false);
        let gone: Vec<String> = list.end_round().iter().map(|device| device.key().0).collect();
        assert_eq!(gone, ["board:a"]);
        assert!(list.find("b").is_some());
    }

    #[test]
    fn a_board_whose_connection_ended_otherwise_gets_a_new_one_when_its_presence_is_received() {
        let mut list = PresenceList::default();
        list.mark_present("a", true, false);
        let first = device("a");
        list.set_device("a", first.clone());
        assert!(waiting(&mut list).is_empty());
        first.commands.close();
        list.mark_present("a", false, false);
        assert_eq!(waiting(&mut list), ["join a"]);
    }
}
