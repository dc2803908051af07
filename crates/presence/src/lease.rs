//! Our own lease: renewed by compare-and-set, counted by our own clock.

use std::time::Duration;

use crate::peers::lease_of;
use crate::presence::{Output, Pending, Presence, PresenceEvent};
use crate::records::{Key, ReadAnswer, Record, Revision, Term, WriteAnswer};

#[derive(Debug, Default)]
pub(crate) struct OwnLease {
    /// Of our record, as we know it.
    pub(crate) revision: Revision,
    /// `None` before the first renewal, and from when we learn that the lease was lost to the next one.
    pub(crate) term: Option<Term>,
    /// When the last renewal that succeeded was sent.
    pub(crate) renewed: Option<Duration>,
    pub(crate) due: Duration,
    pub(crate) is_asked: bool,
    pub(crate) state: LeaseState,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// Never had one: whatever is there is of an earlier run.
    #[default]
    Starting,
    Running,
    /// Another node took our name, or we stopped.
    Over,
}

impl<B: Clone + PartialEq> Presence<B> {
    /// Whether every other node still counts on us, by our own clock.
    pub fn has_lease(&self, now: Duration) -> bool {
        let is_fresh = |renewed| now < renewed + self.timing.act_for;
        self.lease.state == LeaseState::Running && self.lease.renewed.is_some_and(is_fresh)
    }

    /// Ends our lease: all others drop our devices at once, with this one write.
    pub fn retire(&mut self) {
        if self.lease.state != LeaseState::Over {
            self.lease.state = LeaseState::Over;
            self.write(Key::Node(self.me.node.clone()), Record::Ended, self.lease.revision, Pending::Retire);
        }
    }

    pub(crate) fn renew(&mut self, now: Duration) {
        if self.lease.is_asked || self.lease.state == LeaseState::Over || now < self.lease.due {
            return;
        }
        self.lease.is_asked = true;
        self.lease.due = now + self.timing.renew_every;
        let key = Key::Node(self.me.node.clone());
        let lease = Record::Lease { boot: self.me.boot, term: self.lease.term.unwrap_or_default() };
        self.write(key, lease, self.lease.revision, Pending::Renew { sent: now });
    }

    pub(crate) fn handle_renewed(&mut self, now: Duration, sent: Duration, answer: WriteAnswer) {
        self.lease.is_asked = false;
        match answer {
            WriteAnswer::Done(revision) => {
                let is_new = self.lease.state == LeaseState::Starting;
                self.lease.revision = revision;
                self.lease.term.get_or_insert(revision);
                self.lease.renewed = Some(sent);
                if is_new {
                    self.lease.state = LeaseState::Running;
                    self.output.push_back(Output::Event(PresenceEvent::Joined));
                }
            }
            // Somebody wrote our record, or the store dropped it: what others decided meanwhile is not known here.
            WriteAnswer::Conflict => {
                self.lease.is_asked = true;
                self.read(Key::Node(self.me.node.clone()), Pending::ReadLease);
            }
            WriteAnswer::Lost => self.lease.due = now + self.timing.retry_after,
        }
    }

    pub(crate) fn handle_lease_read(&mut self, now: Duration, answer: ReadAnswer<B>) {
        self.lease.is_asked = false;
        self.lease.due = now;
        match answer {
            ReadAnswer::Lost => self.lease.due = now + self.timing.retry_after,
            ReadAnswer::Missing => {
                self.lease.revision = Revision::default();
                self.lease.due = now + self.timing.retry_after;
                self.end_term();
            }
            ReadAnswer::Found(revision, record) if revision > self.lease.revision => {
                let lease = lease_of(revision, &record);
                let is_other = lease.is_some_and(|(boot, _)| boot != self.me.boot);
                if is_other && self.lease.state == LeaseState::Running {
                    self.lease.state = LeaseState::Over;
                    self.end_term();
                    self.output.push_back(Output::Event(PresenceEvent::Deposed));
                    return;
                }
                self.lease.revision = revision;
                match lease.filter(|(boot, _)| *boot == self.me.boot) {
                    // Ours, of which the answer was lost.
                    Some((_, term)) => self.lease.term = Some(term),
                    None => self.end_term(),
                }
            }
            // An old copy; or the store numbers from the start again, which its new id says.
            ReadAnswer::Found(..) => self.lease.due = now + self.timing.retry_after,
        }
    }

    /// Others may have taken what several nodes can reach while we had no lease: it is ours only after a new claim.
    pub(crate) fn end_term(&mut self) {
        self.lease.term = None;
        let shared: Vec<_> = self.local.iter().filter(|(_, local)| local.is_shared()).map(|(hash, _)| *hash).collect();
        for hash in shared {
            self.void_fence(hash);
        }
    }
}
