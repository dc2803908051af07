//! Requests that wait to be sent or for an answer. One request is in flight at a time, because real firmware runs
//! everything on one task and would only queue it there.

use std::collections::VecDeque;
use std::time::Duration;

use super::Ticket;
use crate::moment::Moment;

/// The request the board is busy with.
pub(super) struct InFlight {
    pub(crate) id: i32,
    /// How long the board may be silent.
    pub(crate) time: Duration,
    pub(crate) deadline: Moment,
    pub(crate) what: RequestKind,
}

/// `again` is true for the second try. A call has none.
pub(super) enum RequestKind {
    Initialize { again: bool },
    Page { again: bool },
    Call { ticket: Ticket, tool: Box<str> },
}

impl RequestKind {
    /// Whether it may be sent once more.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            RequestKind::Initialize { again } | RequestKind::Page { again } => !again,
            RequestKind::Call { .. } => false,
        }
    }
}

/// A call that waits for its turn.
pub(super) struct QueuedCall {
    pub(crate) ticket: Ticket,
    pub(crate) tool: Box<str>,
    /// The request up to its id, which it gets when it is sent.
    pub(crate) text: String,
    pub(crate) asked: Moment,
    pub(crate) budget: Duration,
    pub(crate) is_urgent: bool,
}

/// Which request an answer belongs to.
pub(super) enum AnswerOwner {
    InFlight(InFlight),
    /// A request that was cancelled or timed out.
    Late,
    /// A request that has been answered already.
    Duplicate,
    /// Not a request of ours.
    Stray,
}

/// The one request in flight and the calls behind it.
pub(super) struct Requests {
    pub(crate) current: Option<InFlight>,
    queue: VecDeque<QueuedCall>,
    /// Requests given up not long ago, to tell a late answer from a doubled one.
    abandoned: VecDeque<i32>,
    next_id: i32,
    /// Requests of this session.
    launched: u32,
    next_ticket: u64,
}

/// How far ids jump after one that the board has seen before: more than such engines remember.
const ID_JUMP: i32 = 1000;

/// Enough to recognise late answers of a slow board; it costs nothing while no call is cancelled.
const ABANDONED: usize = 16;

impl Requests {
    pub(crate) fn new(first_id: i32) -> Requests {
        let next_id = first_id.max(1);
        let (queue, abandoned) = (VecDeque::new(), VecDeque::new());
        Requests { current: None, queue, abandoned, next_id, launched: 0, next_ticket: 1 }
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket - 1)
    }

    /// Starts a flight and gives its id: a number of 32 bits, the only kind real firmware reads.
    pub(crate) fn launch(&mut self, what: RequestKind, now: Moment, time: Duration) -> i32 {
        let id = self.next_id;
        self.next_id = id.checked_add(1).unwrap_or(1);
        self.launched = self.launched.saturating_add(1);
        self.current = Some(InFlight { id, time, deadline: now + time, what });
        id
    }

    /// Whether a call is open or waits.
    pub(crate) fn has_calls(&self) -> bool {
        let is_call = |flight: &InFlight| matches!(flight.what, RequestKind::Call { .. });
        !self.queue.is_empty() || self.current.as_ref().is_some_and(is_call)
    }

    /// The board saw the last id before, on another connection.
    pub(crate) fn jump(&mut self) {
        self.next_id = self.next_id.checked_add(ID_JUMP).unwrap_or(ID_JUMP);
        self.launched = self.launched.saturating_add(ID_JUMP.unsigned_abs());
    }

    pub(crate) fn claim(&mut self, id: i64) -> AnswerOwner {
        if self.current.as_ref().is_some_and(|flight| i64::from(flight.id) == id)
            && let Some(flight) = self.current.take()
        {
            return AnswerOwner::InFlight(flight);
        }
        if let Some(index) = self.abandoned.iter().position(|given_up| i64::from(*given_up) == id) {
            self.abandoned.remove(index);
            return AnswerOwner::Late;
        }
        if self.is_past(id) { AnswerOwner::Duplicate } else { AnswerOwner::Stray }
    }

    /// Whether this session has used the id; ids wrap around.
    fn is_past(&self, id: i64) -> bool {
        let age = (i64::from(self.next_id) - id).rem_euclid(i64::from(i32::MAX));
        (1..=i64::from(i32::MAX)).contains(&id) && (1..=i64::from(self.launched)).contains(&age)
    }

    /// The flight is given up; an answer to it will be late.
    pub(crate) fn abandon(&mut self) -> Option<InFlight> {
        let flight = self.current.take()?;
        if self.abandoned.len() == ABANDONED {
            self.abandoned.pop_front();
        }
        self.abandoned.push_back(flight.id);
        Some(flight)
    }

    /// Urgent calls come first, in their order.
    pub(crate) fn enqueue(&mut self, waiting: QueuedCall) {
        let place = match waiting.is_urgent {
            true => self.queue.iter().take_while(|earlier| earlier.is_urgent).count(),
            false => self.queue.len(),
        };
        self.queue.insert(place, waiting);
    }

    pub(crate) fn dequeue(&mut self) -> Option<QueuedCall> {
        let waiting = self.queue.pop_front();
        if self.queue.is_empty() {
            // An idle board keeps no buffer.
            self.queue = VecDeque::new();
        }
        waiting
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        let before = self.queue.len();
        self.queue.retain(|waiting| waiting.ticket != ticket);
        self.queue.len() < before
    }

    /// A queued call that has waited as long as its work may take.
    pub(crate) fn expired(&mut self, now: Moment) -> Option<QueuedCall> {
        let index = self.queue.iter().position(|waiting| waiting.asked + waiting.budget <= now)?;
        self.queue.remove(index)
    }

    pub(crate) fn deadline(&self) -> Option<Moment> {
        let queued = self.queue.iter().map(|waiting| waiting.asked + waiting.budget);
        queued.chain(self.current.as_ref().map(|flight| flight.deadline)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sixteen_requests_that_were_given_up_are_remembered() {
        let mut requests = Requests::new(1);
        let mut give_up = || {
            let id = requests.launch(RequestKind::Page { again: false }, Moment(0), Duration::from_micros(1));
            requests.abandon();
            i64::from(id)
        };
        let ids: Vec<i64> = (0..17).map(|_| give_up()).collect();
        let late: Vec<bool> = ids.into_iter().map(|id| matches!(requests.claim(id), AnswerOwner::Late)).collect();
        assert_eq!((late[0], &late[1..]), (false, &[true; 16][..]));
    }

    #[test]
    fn ids_stay_positive_and_turn_round_at_the_end() {
        let mut requests = Requests::new(i32::MAX);
        let mut launch = || requests.launch(RequestKind::Page { again: false }, Moment(0), Duration::from_micros(1));
        assert_eq!([launch(), launch(), launch()], [i32::MAX, 1, 2]);
        assert!(matches!(requests.claim(i64::from(i32::MAX)), AnswerOwner::Duplicate));
        assert!(matches!(requests.claim(3), AnswerOwner::Stray));
    }

    #[test]
    fn a_first_id_that_is_not_positive_is_one() {
        for first in [0, -5] {
            assert_eq!(
                Requests::new(first).launch(RequestKind::Page { again: false }, Moment(0), Duration::from_micros(1)),
                1
            );
        }
    }

    #[test]
    fn an_answer_is_mine_then_double_and_after_giving_up_late_then_double() {
        let mut requests = Requests::new(i32::MAX - 1);
        let id =
            i64::from(requests.launch(RequestKind::Initialize { again: false }, Moment(0), Duration::from_micros(1)));
        assert!(matches!(requests.claim(id), AnswerOwner::InFlight(_)));
        assert!(matches!(requests.claim(id), AnswerOwner::Duplicate));
        let id =
            i64::from(requests.launch(RequestKind::Initialize { again: false }, Moment(0), Duration::from_micros(1)));
        assert!(requests.abandon().is_some());
        assert!(matches!(requests.claim(id), AnswerOwner::Late));
        assert!(matches!(requests.claim(id), AnswerOwner::Duplicate));
        for never_asked in [0, -1, 2, 77, i64::from(i32::MAX) - 2, i64::MAX] {
            assert!(matches!(requests.claim(never_asked), AnswerOwner::Stray));
        }
    }
}
