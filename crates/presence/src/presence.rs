//! The state of one node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use sinew_tool::Reach;

use crate::claims::{Local, TakeOvers};
use crate::lease::{LeaseState, OwnLease};
use crate::mirror::{Mirror, Mirrored, OwnerIndex, Owners};
use crate::peers::{Peer, lease_of};
use crate::records::{
    Change, DeviceHash, Fence, Key, NodeId, Owner, ReadAnswer, Record, Revision, StoreId, Ticket, WriteAnswer,
};

/// Which node holds what, as one node knows it. `B` is what nodes tell each other of a device.
#[derive(Debug)]
pub struct Presence<B> {
    pub(crate) me: Owner,
    pub(crate) timing: Timing,
    pub(crate) store: Option<StoreId>,
    /// Whether the watch brought all that there was.
    is_synced: bool,
    /// From when devices without any entry are claimed that other nodes can reach too: a node that knew the store before
    /// it was lost may still act on them.
    pub(crate) shared_from: Duration,
    /// When entries of a lost store are dropped that nobody wrote again.
    sweep: Option<Duration>,
    pub(crate) lease: OwnLease,
    pub(crate) peers: BTreeMap<NodeId, Peer>,
    /// Not later than the first of them is due.
    pub(crate) peers_due: Duration,
    pub(crate) owners: Owners,
    pub(crate) mirror: Mirror<B>,
    /// Devices that left, and when. Their entries stay for a while, so that an old copy is known as old.
    left: VecDeque<(Duration, DeviceHash)>,
    pub(crate) local: BTreeMap<DeviceHash, Local<B>>,
    /// Devices to look at now, and those to look at again at a time.
    pub(crate) ready: VecDeque<DeviceHash>,
    pub(crate) later: BTreeSet<(Duration, DeviceHash)>,
    pub(crate) claims_asked: usize,
    pub(crate) taken: TakeOvers,
    /// Devices that we took from other nodes.
    pub(crate) moves: u64,
    pending: BTreeMap<Ticket, (Pending, Record<B>)>,
    next_ticket: u64,
    pub(crate) output: VecDeque<Output<B>>,
}

#[derive(Clone, Debug)]
pub struct Timing {
    /// How often a node renews its lease: a lost renewal or two do not end it.
    pub renew_every: Duration,
    /// How long after its last renewal a node acts on devices that others can reach too. Shorter than `dead_after`, so
    /// that it stopped before another begins.
    pub act_for: Duration,
    /// How long a node may be silent before it is declared dead.
    pub dead_after: Duration,
    /// How long after an answer that did not come, or was old, to ask again.
    pub retry_after: Duration,
    /// Longer than any copy of a record is old.
    pub forget_after: Duration,
    /// So many moves between nodes within so long are two devices with one identity.
    pub twice_after: usize,
    pub twice_within: Duration,
    /// Claims under way at once.
    pub window: usize,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            renew_every: Duration::from_secs(5),
            act_for: Duration::from_secs(12),
            dead_after: Duration::from_secs(15),
            retry_after: Duration::from_secs(1),
            forget_after: Duration::from_secs(60),
            twice_after: 3,
            twice_within: Duration::from_secs(60),
            window: 256,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Output<B> {
    /// Write a record if its revision is still the expected one; 0 where there must be none.
    Write {
        ticket: Ticket,
        key: Key,
        record: Record<B>,
        expected: Revision,
    },
    Read {
        ticket: Ticket,
        key: Key,
    },
    /// Tell a node that a device of its moved to us.
    Evict {
        run: Owner,
        device: DeviceHash,
        fence: Fence,
    },
    Event(PresenceEvent<B>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum PresenceEvent<B> {
    /// This node has its first lease.
    Joined,
    /// Another node runs under our name. This one takes no further part.
    Deposed,
    NodeUp(NodeId),
    NodeDown(NodeId),
    /// Another node holds a device, or says something new of it.
    Appeared {
        device: DeviceHash,
        node: NodeId,
        fence: Fence,
        body: B,
    },
    /// No other node holds it any more.
    Gone {
        device: DeviceHash,
    },
    /// This node holds one of its devices.
    Held {
        device: DeviceHash,
        fence: Fence,
    },
    /// Another node holds a device that this node can reach too.
    Standby {
        device: DeviceHash,
    },
    /// A device of this node connected to another one: end the connection here.
    Evicted {
        device: DeviceHash,
        by: NodeId,
    },
    /// A device moves back and forth: two devices with one identity. The one here waits.
    IdentityTwice {
        device: DeviceHash,
        other: NodeId,
    },
}

/// Where a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Here,
    /// At this run of another node.
    At(Owner, Fence),
    Nowhere,
}

/// Why a node does not run a call. Nothing was sent to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It holds the device under another fence, or not at all.
    Moved,
    /// It lost its lease, and another node could act on the device.
    NoLease,
}

/// What an answer is for.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Renew { sent: Duration },
    ReadLease,
    Retire,
    Condemn { node: NodeId },
    ReadPeer { node: NodeId },
    Claim { device: DeviceHash, from: Option<Owner> },
    ReadDevice { device: DeviceHash },
}

impl<B: Clone + PartialEq> Presence<B> {
    pub fn new(me: Owner, timing: Timing) -> Presence<B> {
        let mut owners = Owners::default();
        owners.set_alive(&me, true);
        Presence {
            me,
            timing,
            store: None,
            is_synced: false,
            shared_from: Duration::ZERO,
            sweep: None,
            lease: OwnLease::default(),
            peers: BTreeMap::new(),
            peers_due: Duration::ZERO,
            owners,
            mirror: Mirror::new(),
            left: VecDeque::new(),
            local: BTreeMap::new(),
            ready: VecDeque::new(),
            later: BTreeSet::new(),
            claims_asked: 0,
            taken: TakeOvers::default(),
            moves: 0,
            pending: BTreeMap::new(),
            next_ticket: 0,
            output: VecDeque::new(),
        }
    }

    /// The store can be reached. With another id than before, nothing that was kept there is left.
    pub fn handle_store(&mut self, now: Duration, store: StoreId) {
        let is_lost = self.store.is_some_and(|old| old != store);
        if self.store != Some(store) {
            self.shared_from = now + self.timing.dead_after;
        }
        self.store = Some(store);
        if is_lost {
            for (pending, record) in std::mem::take(&mut self.pending).into_values() {
                match pending {
                    Pending::ReadLease | Pending::ReadPeer { .. } | Pending::ReadDevice { .. } => {
                        self.end_read(now, pending, ReadAnswer::Lost);
                    }
                    _ => self.end_write(now, pending, record, WriteAnswer::Lost),
                }
            }
            self.is_synced = false;
            self.lease.revision = Revision::default();
            self.lease.term = None;
            self.lease.due = now;
            for peer in self.peers.values_mut() {
                peer.revision = Revision::default();
                peer.expected = Revision::default();
                peer.term = Revision::default();
                peer.is_doubted = false;
                peer.due = now + self.timing.dead_after;
            }
            self.mirror.values_mut().for_each(|entry| entry.revision = Revision::default());
            self.sweep = Some(now + self.timing.dead_after);
            let all: Vec<DeviceHash> = self.local.keys().copied().collect();
            all.into_iter().for_each(|device| self.void_fence(device));
        }
        self.settle(now);
    }

    /// All records that the store had when the watch began were handled.
    pub fn handle_synced(&mut self, now: Duration) {
        self.is_synced = true;
        self.settle(now);
    }

    pub fn handle_change(&mut self, now: Duration, change: Change<B>) {
        match change.key {
            Key::Node(node) => {
                let lease = lease_of(change.revision, &change.record);
                self.handle_node_change(now, node, change.revision, lease);
            }
            Key::Device(device) => self.handle_device_change(now, device, change.revision, change.record),
        }
        self.settle(now);
    }

    pub fn handle_time(&mut self, now: Duration) {
        if self.sweep.is_some_and(|at| now >= at) {
            self.sweep = None;
            let is_old = |entry: &Mirrored<B>| entry.revision == Revision::default();
            let old: Vec<DeviceHash> =
                self.mirror.iter().filter(|(_, entry)| is_old(entry)).map(|(device, _)| *device).collect();
            for device in old {
                self.mirror.remove(&device);
                self.output.push_back(Output::Event(PresenceEvent::Gone { device }));
                self.queue(device);
            }
        }
        self.settle(now);
    }

    pub fn handle_write(&mut self, now: Duration, ticket: Ticket, answer: WriteAnswer) {
        if let Some((pending, record)) = self.pending.remove(&ticket) {
            self.end_write(now, pending, record, answer);
            self.settle(now);
        }
    }

    pub fn handle_read(&mut self, now: Duration, ticket: Ticket, answer: ReadAnswer<B>) {
        if let Some((pending, _)) = self.pending.remove(&ticket) {
            self.end_read(now, pending, answer);
            self.settle(now);
        }
    }

    pub fn poll(&mut self) -> Option<Output<B>> {
        self.output.pop_front()
    }

    /// When [`handle_time`](Self::handle_time) is due.
    pub fn next_time(&self) -> Option<Duration> {
        self.store?;
        let lease = (!self.lease.is_asked && self.lease.state != LeaseState::Over).then_some(self.lease.due);
        let peers = self.peers.values().filter(|peer| peer.is_watched() && !peer.is_asked).map(|peer| peer.due).min();
        let later = self.later.first().map(|(at, _)| *at).filter(|_| self.is_ready());
        lease.into_iter().chain(peers).chain(later).chain(self.sweep).min()
    }

    /// Where calls for a device go.
    pub fn route(&self, device: DeviceHash) -> Route {
        if self.local.get(&device).is_some_and(|local| local.fence().is_some()) {
            return Route::Here;
        }
        let (Some(entry), Some(store)) = (self.mirror.get(&device), self.store) else { return Route::Nowhere };
        match &entry.held {
            Some((place, _)) if self.is_shown(*place) => {
                Route::At(self.owners.owner(*place).clone(), Fence { store, revision: entry.revision })
            }
            _ => Route::Nowhere,
        }
    }

    /// Whether a call that was routed by a fence may be run here.
    pub fn accept(&self, now: Duration, device: DeviceHash, fence: Fence) -> Result<(), Refusal> {
        let local = self.local.get(&device).filter(|local| local.wanted.is_some()).ok_or(Refusal::Moved)?;
        if local.fence() != Some(fence.revision) || self.store != Some(fence.store) {
            return Err(Refusal::Moved);
        }
        self.may_act(now, device)
    }

    /// Whether a call may be run on a device that is connected to this node.
    pub fn may_act(&self, now: Duration, device: DeviceHash) -> Result<(), Refusal> {
        let local = self.local.get(&device).ok_or(Refusal::Moved)?;
        match &local.wanted {
            None => Err(Refusal::Moved),
            // It has one link, and that is here: nobody else can act on it.
            Some(wanted) if wanted.reach == Reach::OneLink => Ok(()),
            Some(_) if !self.has_lease(now) => Err(Refusal::NoLease),
            Some(_) => local.fence().map(|_| ()).ok_or(Refusal::Moved),
        }
    }

    /// Under what this node holds a device.
    pub fn fence(&self, device: DeviceHash) -> Option<Fence> {
        Some(Fence { store: self.store?, revision: self.local.get(&device)?.fence()? })
    }

    /// Devices that this node holds.
    pub fn held(&self) -> usize {
        self.local.values().filter(|local| local.fence().is_some()).count()
    }

    /// Devices that this node took from others since it started.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Entries of all nodes, also of those that are gone.
    pub fn mirrored(&self) -> usize {
        self.mirror.len()
    }

    /// How many devices each of the other nodes holds.
    pub fn devices_per_node(&self) -> BTreeMap<NodeId, usize> {
        let mut counts = BTreeMap::new();
        let places = self.mirror.values().filter_map(|entry| entry.held.as_ref()).map(|(place, _)| *place);
        for place in places.filter(|place| self.is_shown(*place)) {
            *counts.entry(self.owners.owner(place).node.clone()).or_default() += 1;
        }
        counts
    }

    /// Claims that the store has not answered yet.
    pub fn waiting(&self) -> usize {
        self.ready.len() + self.later.len() + self.claims_asked
    }

    fn end_write(&mut self, now: Duration, pending: Pending, record: Record<B>, answer: WriteAnswer) {
        match pending {
            Pending::Renew { sent } => self.handle_renewed(now, sent, answer),
            Pending::Condemn { node } => self.handle_condemned(now, node, answer),
            Pending::Claim { device, from } => self.handle_claimed(now, device, from, record, answer),
            Pending::Retire | Pending::ReadLease | Pending::ReadPeer { .. } | Pending::ReadDevice { .. } => {}
        }
    }

    fn end_read(&mut self, now: Duration, pending: Pending, answer: ReadAnswer<B>) {
        match pending {
            Pending::ReadLease => self.handle_lease_read(now, answer),
            Pending::ReadPeer { node } => self.handle_peer_read(now, node, answer),
            Pending::ReadDevice { device } => self.handle_device_read(now, device, answer),
            Pending::Renew { .. } | Pending::Condemn { .. } | Pending::Retire | Pending::Claim { .. } => {}
        }
    }

    /// Whether devices can be claimed: this node has its first lease and knows what all others hold.
    pub fn is_ready(&self) -> bool {
        self.is_synced && self.lease.state == LeaseState::Running && self.lease.term.is_some()
    }

    fn is_shown(&self, place: OwnerIndex) -> bool {
        self.owners.is_alive(place) && self.owners.owner(place).node != self.me.node
    }

    /// Does whatever is due. Called after every change.
    pub(crate) fn settle(&mut self, now: Duration) {
        if self.store.is_none() {
            return;
        }
        self.renew(now);
        self.check_peers(now);
        while let Some((_, device)) = self.left.pop_front_if(|(at, _)| *at + self.timing.forget_after <= now) {
            if self.mirror.get(&device).is_some_and(|entry| entry.held.is_none()) {
                self.mirror.remove(&device);
            }
        }
        if !self.is_ready() {
            return;
        }
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, device)) = self.later.pop_first() {
                self.queue(device);
            }
        }
        while self.claims_asked < self.timing.window
            && let Some(device) = self.ready.pop_front()
        {
            self.step(now, device);
        }
    }

    pub(crate) fn handle_device_change(
        &mut self,
        now: Duration,
        device: DeviceHash,
        revision: Revision,
        record: Record<B>,
    ) {
        if self.mirror.get(&device).is_some_and(|known| revision <= known.revision) {
            return;
        }
        let was_shown = self.mirror.get(&device).and_then(|known| known.held.as_ref());
        let was_shown = was_shown.is_some_and(|(place, _)| self.is_shown(*place));
        let held = match record {
            Record::Held(entry) => Some((self.owners.place(&entry.owner, entry.term), entry)),
            _ => None,
        };
        let my_term = held.as_ref().filter(|(_, entry)| entry.owner == self.me).map(|(_, entry)| entry.term);
        let by = held.as_ref().map(|(_, entry)| entry.owner.node.clone());
        let held = held.map(|(place, entry)| (place, entry.body));
        if held.is_none() {
            self.left.push_back((now, device));
        }
        self.mirror.insert(device, Mirrored { revision, held });
        let is_shown = self.show(device);
        if was_shown && !is_shown {
            self.output.push_back(Output::Event(PresenceEvent::Gone { device }));
        }
        match (my_term, by) {
            (Some(term), _) => self.adopt(device, revision, term),
            (None, Some(by)) => {
                self.evict(device, by);
                self.queue(device);
            }
            // It may have connected again meanwhile, here or where it could be reached before.
            (None, None) => self.void_fence(device),
        }
    }

    /// Tells of an entry of another node; `false` where there is none.
    fn show(&mut self, device: DeviceHash) -> bool {
        let (Some(entry), Some(store)) = (self.mirror.get(&device), self.store) else { return false };
        let Some((place, body)) = entry.held.as_ref().filter(|(place, _)| self.is_shown(*place)) else { return false };
        let node = self.owners.owner(*place).node.clone();
        let fence = Fence { store, revision: entry.revision };
        let event = PresenceEvent::Appeared { device, node, fence, body: body.clone() };
        self.output.push_back(Output::Event(event));
        true
    }

    /// A node came or went, and with it all its entries.
    pub(crate) fn show_owner(&mut self, places: &[OwnerIndex], is_alive: bool) {
        let its = |entry: &Mirrored<B>| entry.held.as_ref().is_some_and(|(owner, _)| places.contains(owner));
        let devices: Vec<DeviceHash> =
            self.mirror.iter().filter(|(_, entry)| its(entry)).map(|(device, _)| *device).collect();
        for device in devices {
            if is_alive {
                self.show(device);
            } else {
                self.output.push_back(Output::Event(PresenceEvent::Gone { device }));
                self.queue(device);
            }
        }
    }

    pub(crate) fn write(&mut self, key: Key, record: Record<B>, expected: Revision, pending: Pending) {
        let ticket = self.ticket(pending, record.clone());
        self.output.push_back(Output::Write { ticket, key, record, expected });
    }

    pub(crate) fn read(&mut self, key: Key, pending: Pending) {
        let ticket = self.ticket(pending, Record::Left);
        self.output.push_back(Output::Read { ticket, key });
    }

    fn ticket(&mut self, pending: Pending, record: Record<B>) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.pending.insert(ticket, (pending, record));
        ticket
    }
}
