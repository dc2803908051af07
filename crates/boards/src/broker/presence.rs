//! Which boards of a broker are there, as their presence messages tell, and whose turn it is to be asked.
//!
//! No IO and no clock: the neighbour that owns the connection says what it heard, and how often it has connected.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::device::BoardDevice;

#[derive(Default)]
pub(crate) struct PresenceList {
    boards: HashMap<Box<str>, PresentBoard>,
    /// Boards that are there and not yet asked, in the order in which they came.
    waiting: VecDeque<Box<str>>,
    /// Counts the connections to the broker.
    round: u32,
}

struct PresentBoard {
    /// The connection on which the board was last said to be there.
    round: u32,
    /// `None` until it is its turn.
    device: Option<Arc<BoardDevice>>,
    /// It came anew while it was here, and is to be asked again.
    needs_refresh: bool,
}

/// Whose turn it is.
pub(crate) enum NextBoard {
    /// A board that is not known yet.
    Join(Box<str>),
    /// One that may have other tools now.
    Refresh(Arc<BoardDevice>),
}

impl PresenceList {
    /// A new connection: everybody stays, and has to be heard of again.
    pub(crate) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The board is there: it `is_new`, or was so before we asked. One whose stay has ended for another reason gets a
    /// new one.
    pub(crate) fn mark_present(&mut self, id: &str, is_new: bool) {
        let round = self.round;
        match self.boards.get_mut(id) {
            Some(board) => {
                board.round = round;
                match &board.device {
                    Some(device) if device.commands.is_closed() => {
                        board.device = None;
                        self.waiting.push_back(id.into());
                    }
                    Some(_) if is_new && !board.needs_refresh => {
                        board.needs_refresh = true;
                        self.waiting.push_back(id.into());
                    }
                    Some(_) | None => {}
                }
            }
            None => {
                self.boards.insert(id.into(), PresentBoard { round, device: None, needs_refresh: false });
                self.waiting.push_back(id.into());
            }
        }
    }

    /// The board is gone; gives its present stay.
    pub(crate) fn mark_absent(&mut self, id: &str) -> Option<Arc<BoardDevice>> {
        self.boards.remove(id)?.device
    }

    /// Everybody who was not heard of on this connection is gone.
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
        !self.waiting.is_empty()
    }

    /// The next board to be asked. One that has left meanwhile, or came twice, is passed over.
    pub(crate) fn next_waiting(&mut self) -> Option<NextBoard> {
        while let Some(id) = self.waiting.pop_front() {
            if self.waiting.is_empty() {
                self.waiting = VecDeque::new();
            }
            let Some(board) = self.boards.get_mut(&id) else { continue };
            match &board.device {
                None => return Some(NextBoard::Join(id)),
                Some(device) if std::mem::take(&mut board.needs_refresh) => {
                    return Some(NextBoard::Refresh(device.clone()));
                }
                Some(_) => {}
            }
        }
        None
    }

    /// The board is put off.
    pub(crate) fn wait_again(&mut self, id: Box<str>) {
        if self.boards.contains_key(&id) {
            self.waiting.push_back(id);
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
        let turns = std::iter::from_fn(|| list.next_waiting());
        let name = |turn| match turn {
            NextBoard::Join(id) => format!("join {id}"),
            NextBoard::Refresh(device) => format!("refresh {}", device.key()),
        };
        turns.map(name).collect()
    }

    #[test]
    fn boards_are_asked_in_the_order_in_which_they_came_and_once() {
        let mut list = PresenceList::default();
        for id in ["a", "b", "a", "c"] {
            list.mark_present(id, true);
        }
        assert!(list.mark_absent("b").is_none());
        assert!(list.has_waiting());
        assert_eq!(list.next_waiting().map(|turn| matches!(turn, NextBoard::Join(id) if *id == *"a")), Some(true));
        list.set_device("a", device("a"));
        assert_eq!(waiting(&mut list), ["join c"]);
    }

    #[test]
    fn a_board_that_comes_anew_is_asked_again_and_one_that_was_there_all_the_time_is_not() {
        let mut list = PresenceList::default();
        list.mark_present("a", false);
        list.set_device("a", device("a"));
        list.mark_present("a", false);
        assert!(waiting(&mut list).is_empty());
        list.mark_present("a", true);
        list.mark_present("a", true);
        assert_eq!(waiting(&mut list), ["refresh board:a"]);
    }

    #[test]
    fn over_a_lost_connection_everybody_stays_until_the_round_ends() {
        let mut list = PresenceList::default();
        for id in ["a", "b"] {
            list.mark_present(id, true);
            list.set_device(id, device(id));
        }
        list.begin_round();
        assert_eq!(list.devices().count(), 2);
        list.mark_present("b", false);
        let gone: Vec<String> = list.end_round().iter().map(|device| device.key().0).collect();
        assert_eq!(gone, ["board:a"]);
        assert!(list.find("b").is_some());
    }

    #[test]
    fn a_board_whose_stay_ended_otherwise_gets_a_new_one_when_it_is_heard_of() {
        let mut list = PresenceList::default();
        list.mark_present("a", true);
        let first = device("a");
        list.set_device("a", first.clone());
        assert!(waiting(&mut list).is_empty());
        first.commands.close();
        list.mark_present("a", false);
        assert_eq!(waiting(&mut list), ["join a"]);
    }
}
