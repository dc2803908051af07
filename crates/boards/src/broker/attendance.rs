//! Which boards of a broker are there, as their presence messages tell, and whose turn it is to be asked.
//!
//! No IO and no clock: the neighbour that owns the connection says what it heard, and how often it has connected.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::handle::BoardDevice;

#[derive(Default)]
pub(crate) struct Attendance {
    seats: HashMap<Box<str>, Seat>,
    /// Boards that are there and not yet asked, in the order in which they came.
    waiting: VecDeque<Box<str>>,
    /// Counts the connections to the broker.
    round: u32,
}

struct Seat {
    /// The connection on which the board was last said to be there.
    round: u32,
    /// `None` until it is its turn.
    device: Option<Arc<BoardDevice>>,
    /// It came anew while it was here, and is to be asked again.
    stale: bool,
}

/// Whose turn it is.
pub(crate) enum Turn {
    /// A board that is not known yet.
    Join(Box<str>),
    /// One that may have other tools now.
    Refresh(Arc<BoardDevice>),
}

impl Attendance {
    /// A new connection: everybody stays, and has to be heard of again.
    pub(crate) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The board is there: it `is_news`, or was so before we asked. One whose stay has ended for another reason gets a
    /// new one.
    pub(crate) fn come(&mut self, id: &str, is_news: bool) {
        let round = self.round;
        match self.seats.get_mut(id) {
            Some(seat) => {
                seat.round = round;
                match &seat.device {
                    Some(device) if device.commands.is_closed() => {
                        seat.device = None;
                        self.waiting.push_back(id.into());
                    }
                    Some(_) if is_news && !seat.stale => {
                        seat.stale = true;
                        self.waiting.push_back(id.into());
                    }
                    Some(_) | None => {}
                }
            }
            None => {
                self.seats.insert(id.into(), Seat { round, device: None, stale: false });
                self.waiting.push_back(id.into());
            }
        }
    }

    /// The board is gone; gives its present stay.
    pub(crate) fn go(&mut self, id: &str) -> Option<Arc<BoardDevice>> {
        self.seats.remove(id)?.device
    }

    /// Everybody who was not heard of on this connection is gone.
    pub(crate) fn end_round(&mut self) -> Vec<Arc<BoardDevice>> {
        let round = self.round;
        let mut gone = Vec::new();
        self.seats.retain(|_, seat| {
            let stays = seat.round == round;
            if !stays {
                gone.extend(seat.device.take());
            }
            stays
        });
        gone
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next board to be asked. One that has left meanwhile, or came twice, is passed over.
    pub(crate) fn next_waiting(&mut self) -> Option<Turn> {
        while let Some(id) = self.waiting.pop_front() {
            if self.waiting.is_empty() {
                self.waiting = VecDeque::new();
            }
            let Some(seat) = self.seats.get_mut(&id) else { continue };
            match &seat.device {
                None => return Some(Turn::Join(id)),
                Some(device) if std::mem::take(&mut seat.stale) => return Some(Turn::Refresh(device.clone())),
                Some(_) => {}
            }
        }
        None
    }

    /// The board is put off.
    pub(crate) fn wait_again(&mut self, id: Box<str>) {
        if self.seats.contains_key(&id) {
            self.waiting.push_back(id);
        }
    }

    pub(crate) fn seat(&mut self, id: &str, device: Arc<BoardDevice>) {
        if let Some(seat) = self.seats.get_mut(id) {
            (seat.device, seat.stale) = (Some(device), false);
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<BoardDevice>> {
        self.seats.get(id)?.device.as_ref()
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &Arc<BoardDevice>> {
        self.seats.values().filter_map(|seat| seat.device.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(id: &str) -> Arc<BoardDevice> {
        Arc::new(BoardDevice::new(super::super::info(id, "mqtt://b:1883"), 4, Arc::default()))
    }

    fn waiting(attendance: &mut Attendance) -> Vec<String> {
        let turns = std::iter::from_fn(|| attendance.next_waiting());
        let name = |turn| match turn {
            Turn::Join(id) => format!("join {id}"),
            Turn::Refresh(device) => format!("refresh {}", device.key()),
        };
        turns.map(name).collect()
    }

    #[test]
    fn boards_are_asked_in_the_order_in_which_they_came_and_once() {
        let mut attendance = Attendance::default();
        for id in ["a", "b", "a", "c"] {
            attendance.come(id, true);
        }
        assert!(attendance.go("b").is_none());
        assert!(attendance.has_waiting());
        assert_eq!(attendance.next_waiting().map(|turn| matches!(turn, Turn::Join(id) if *id == *"a")), Some(true));
        attendance.seat("a", device("a"));
        assert_eq!(waiting(&mut attendance), ["join c"]);
    }

    #[test]
    fn a_board_that_comes_anew_is_asked_again_and_one_that_was_there_all_the_time_is_not() {
        let mut attendance = Attendance::default();
        attendance.come("a", false);
        attendance.seat("a", device("a"));
        attendance.come("a", false);
        assert!(waiting(&mut attendance).is_empty());
        attendance.come("a", true);
        attendance.come("a", true);
        assert_eq!(waiting(&mut attendance), ["refresh board:a"]);
    }

    #[test]
    fn over_a_lost_connection_everybody_stays_until_the_round_ends() {
        let mut attendance = Attendance::default();
        for id in ["a", "b"] {
            attendance.come(id, true);
            attendance.seat(id, device(id));
        }
        attendance.begin_round();
        assert_eq!(attendance.devices().count(), 2);
        attendance.come("b", false);
        let gone: Vec<String> = attendance.end_round().iter().map(|device| device.key().0).collect();
        assert_eq!(gone, ["board:a"]);
        assert!(attendance.find("b").is_some());
    }

    #[test]
    fn a_board_whose_stay_ended_otherwise_gets_a_new_one_when_it_is_heard_of() {
        let mut attendance = Attendance::default();
        attendance.come("a", true);
        let first = device("a");
        attendance.seat("a", first.clone());
        assert!(waiting(&mut attendance).is_empty());
        first.commands.close();
        attendance.come("a", false);
        assert_eq!(waiting(&mut attendance), ["join a"]);
    }
}
