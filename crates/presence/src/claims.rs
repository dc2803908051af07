//! Our own devices: claimed, taken over, given up.
//!
//! For each there is what we want and what the store says; [`Presence::step`] does the next thing that brings them
//! together, one at a time for each device.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use sinew_tool::Reach;

use crate::peers::TermState;
use crate::presence::{Output, Pending, Presence, PresenceEvent};
use crate::records::{DeviceHash, Entry, Fence, Key, NodeId, Owner, ReadAnswer, Record, Revision, Term, WriteAnswer};

#[derive(Debug)]
pub(crate) struct Local<B> {
    /// `None` once the device left.
    pub(crate) wanted: Option<Wanted<B>>,
    /// The revision of our own entry; `None` where we have none.
    pub(crate) entry: Option<Revision>,
    /// We asked to remove that entry: from then on others may take the device, whether or not we hear of it.
    pub(crate) is_given_up: bool,
    is_asked: bool,
    is_queued: bool,
    is_standby: bool,
}

/// Which devices were taken over from other nodes lately, and when.
#[derive(Debug, Default)]
pub(crate) struct TakeOvers {
    order: VecDeque<(Duration, DeviceHash)>,
    times: BTreeSet<(DeviceHash, Duration)>,
}

impl TakeOvers {
    fn add(&mut self, now: Duration, device: DeviceHash) {
        if self.times.insert((device, now)) {
            self.order.push_back((now, device));
        }
    }

    fn forget_before(&mut self, then: Duration) {
        while let Some((at, device)) = self.order.pop_front_if(|(at, _)| *at < then) {
            self.times.remove(&(device, at));
        }
    }

    fn of(&self, device: DeviceHash) -> impl Iterator<Item = Duration> {
        self.times.range((device, Duration::ZERO)..=(device, Duration::MAX)).map(|(_, at)| *at)
    }
}

#[derive(Debug)]
pub(crate) struct Wanted<B> {
    pub(crate) reach: Reach,
    pub(crate) body: B,
}

impl<B> Local<B> {
    fn new() -> Local<B> {
        Local { wanted: None, entry: None, is_given_up: false, is_asked: false, is_queued: false, is_standby: false }
    }

    /// Under what we hold the device.
    pub(crate) fn fence(&self) -> Option<Revision> {
        self.entry.filter(|_| self.wanted.is_some() && !self.is_given_up)
    }

    /// We have no entry any more.
    fn end_entry(&mut self) -> Option<Revision> {
        self.is_given_up = false;
        self.entry.take()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.reach == Reach::SeveralGateways)
    }
}

impl<B: Clone + PartialEq> Presence<B> {
    /// A device connected to this node, or what it says of itself changed.
    pub fn join(&mut self, now: Duration, device: DeviceHash, reach: Reach, body: B) {
        self.local.entry(device).or_insert_with(Local::new).wanted = Some(Wanted { reach, body });
        self.queue(device);
        self.settle(now);
    }

    /// A device disconnected from this node.
    pub fn leave(&mut self, now: Duration, device: DeviceHash) {
        if let Some(local) = self.local.get_mut(&device) {
            local.wanted = None;
            local.is_standby = false;
            self.queue(device);
            self.settle(now);
        }
    }

    /// Another node says that it took a device from us. The change itself follows, maybe late.
    pub fn handle_evict(&mut self, now: Duration, device: DeviceHash, fence: Fence, by: NodeId) {
        let is_newer = |own: Revision| own < fence.revision && Some(fence.store) == self.store;
        if self.local.get(&device).and_then(|local| local.entry).is_some_and(is_newer) {
            self.evict(device, by);
            self.settle(now);
        }
    }

    /// Ends a fence of ours that another node replaced.
    pub(crate) fn evict(&mut self, device: DeviceHash, by: NodeId) {
        let Some(local) = self.local.get_mut(&device) else { return };
        if local.end_entry().is_none() {
            return;
        }
        if local.wanted.is_some() && !local.is_shared() {
            // The newest connection counts.
            local.wanted = None;
            self.output.push_back(Output::Event(PresenceEvent::Evicted { device, by }));
        }
        self.queue(device);
    }

    pub(crate) fn void_fence(&mut self, device: DeviceHash) {
        if let Some(local) = self.local.get_mut(&device) {
            local.end_entry();
            self.queue(device);
        }
    }

    /// The store has an entry of ours: it is ours, also when the answer to its claim was lost. What several nodes can reach
    /// is not if it was claimed in an older term: others may have taken it since, and our watch be behind.
    pub(crate) fn adopt(&mut self, device: DeviceHash, revision: Revision, term: Term) {
        let local = self.local.entry(device).or_insert_with(Local::new);
        if local.is_shared() && Some(term) != self.lease.term {
            return self.void_fence(device);
        }
        if local.entry != Some(revision) {
            local.end_entry();
            local.entry = Some(revision);
            if local.wanted.is_some() {
                self.tell_held(device, revision);
            }
            self.queue(device);
        }
    }

    /// Another node holds a device that this one can reach too.
    fn stand_by(&mut self, device: DeviceHash) {
        if let Some(local) = self.local.get_mut(&device)
            && !std::mem::replace(&mut local.is_standby, true)
        {
            self.output.push_back(Output::Event(PresenceEvent::Standby { device }));
        }
    }

    /// Looks again at what other nodes hold that this one can reach too.
    pub(crate) fn queue_standby(&mut self) {
        let waiting: Vec<_> = self.local.iter().filter(|(_, local)| local.is_standby).map(|(hash, _)| *hash).collect();
        waiting.into_iter().for_each(|device| self.queue(device));
    }

    fn tell_held(&mut self, device: DeviceHash, revision: Revision) {
        if let Some(store) = self.store {
            let fence = Fence { store, revision };
            self.output.push_back(Output::Event(PresenceEvent::Held { device, fence }));
        }
    }

    pub(crate) fn queue(&mut self, device: DeviceHash) {
        if let Some(local) = self.local.get_mut(&device)
            && !local.is_queued
        {
            local.is_queued = true;
            self.ready.push_back(device);
        }
    }

    /// Does the next thing for a device.
    pub(crate) fn step(&mut self, now: Duration, device: DeviceHash) {
        let Some(local) = self.local.get_mut(&device) else { return };
        local.is_queued = false;
        if local.is_asked {
            return;
        }
        let fence = local.fence();
        let mirrored = self.mirror.get(&device);
        let revision = mirrored.map(|mirrored| mirrored.revision).unwrap_or_default();
        let holder = mirrored.and_then(|mirrored| mirrored.held.as_ref());
        let other = holder.map(|(place, _)| *place).filter(|place| self.owners.is_alive(*place));
        let other = other.map(|place| self.owners.owner(place).clone()).filter(|run| run.node != self.me.node);
        let Some(wanted) = &local.wanted else {
            match local.entry.filter(|entry| *entry == revision) {
                Some(_) => {
                    local.is_asked = true;
                    local.is_given_up = true;
                    self.claims_asked += 1;
                    self.write(Key::Device(device), Record::Left, revision, Pending::Claim { device, from: None });
                }
                None => drop(self.local.remove(&device)),
            }
            return;
        };
        let is_same = holder.is_some_and(|(_, body)| *body == wanted.body);
        if is_same && fence == Some(revision) {
            return;
        }
        if local.is_shared() {
            let is_of_this_store = revision != Revision::default();
            let place = holder.map(|(place, _)| *place).filter(|place| self.owners.owner(*place).node != self.me.node);
            let state = match place {
                Some(place) if is_of_this_store => self.term_state(place),
                // Of a lost store, which its node may not know to be lost.
                _ if other.is_some() => TermState::Current,
                _ => TermState::Over,
            };
            match (state, place) {
                (TermState::Over, _) | (_, None) => {}
                (TermState::Current, _) => return self.stand_by(device),
                (TermState::Unknown, Some(place)) => {
                    let node = self.owners.owner(place).node.clone();
                    self.doubt(now, node);
                    self.later.insert((now + self.timing.retry_after, device));
                    return;
                }
            }
        }
        let Some(local) = self.local.get_mut(&device) else { return };
        let Some(wanted) = &local.wanted else { return };
        if revision == Revision::default() && local.is_shared() && now < self.shared_from {
            self.later.insert((self.shared_from, device));
            return;
        }
        if let Some(run) = &other {
            self.taken.forget_before(now.saturating_sub(self.timing.twice_within));
            if self.taken.of(device).count() >= self.timing.twice_after {
                let until = self.taken.of(device).next().unwrap_or(now) + self.timing.twice_within;
                if self.later.insert((until, device)) {
                    let event = PresenceEvent::IdentityTwice { device, other: run.node.clone() };
                    self.output.push_back(Output::Event(event));
                }
                return;
            }
        }
        let term = self.lease.term.unwrap_or_default();
        let entry = Entry { owner: self.me.clone(), term, body: wanted.body.clone() };
        local.is_asked = true;
        local.is_standby = false;
        self.claims_asked += 1;
        self.write(Key::Device(device), Record::Held(entry), revision, Pending::Claim { device, from: other });
    }

    pub(crate) fn handle_claimed(
        &mut self,
        now: Duration,
        device: DeviceHash,
        from: Option<Owner>,
        written: Record<B>,
        answer: WriteAnswer,
    ) {
        match answer {
            WriteAnswer::Done(revision) => {
                self.end_claim(device);
                self.handle_device_change(now, device, revision, written);
                if let (Some(run), Some(store)) = (from, self.store) {
                    self.taken.add(now, device);
                    self.moves += 1;
                    self.output.push_back(Output::Evict { run, device, fence: Fence { store, revision } });
                }
                self.queue(device);
            }
            WriteAnswer::Conflict => self.read(Key::Device(device), Pending::ReadDevice { device }),
            WriteAnswer::Lost => {
                self.end_claim(device);
                self.later.insert((now + self.timing.retry_after, device));
            }
        }
    }

    pub(crate) fn handle_device_read(&mut self, now: Duration, device: DeviceHash, answer: ReadAnswer<B>) {
        self.end_claim(device);
        let known = self.mirror.get(&device).map(|mirrored| mirrored.revision).unwrap_or_default();
        match answer {
            ReadAnswer::Found(revision, record) if revision > known => {
                self.handle_device_change(now, device, revision, record);
                self.queue(device);
            }
            // An old copy, or none at all: the watch brings the new one.
            _ => drop(self.later.insert((now + self.timing.retry_after, device))),
        }
    }

    fn end_claim(&mut self, device: DeviceHash) {
        self.claims_asked -= 1;
        if let Some(local) = self.local.get_mut(&device) {
            local.is_asked = false;
        }
    }
}
