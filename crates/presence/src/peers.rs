//! The other nodes, and when one is declared dead.
//!
//! A watcher hears nothing when a record expires, and a read may be old. So a node that was silent for too long by our own
//! clock is declared dead by a compare-and-set over the last lease that we saw: it fails if the node renewed since.

use std::time::Duration;

use crate::mirror::OwnerIndex;
use crate::presence::{Output, Pending, Presence, PresenceEvent};
use crate::records::{Boot, Key, NodeId, Owner, ReadAnswer, Record, Revision, Term, WriteAnswer};

#[derive(Debug)]
pub(crate) struct Peer {
    /// The newest that we saw.
    pub(crate) revision: Revision,
    /// Over which we declare it dead: the newest, or none after a read found no record.
    pub(crate) expected: Revision,
    pub(crate) alive: Option<Boot>,
    /// Of its lease, where it is alive.
    pub(crate) term: Term,
    /// An entry was written in a term of which we heard nothing yet.
    pub(crate) is_doubted: bool,
    /// When to declare it dead, unless it renews.
    pub(crate) due: Duration,
    pub(crate) is_asked: bool,
}

/// Whether the lease in which an entry was written goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermState {
    Current,
    Over,
    /// It is newer than all that we know of its node.
    Unknown,
}

impl Peer {
    fn unknown(due: Duration) -> Peer {
        let none = Revision::default();
        Peer { revision: none, expected: none, alive: None, term: none, is_doubted: false, due, is_asked: false }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.alive.is_some() || self.is_doubted
    }
}

impl<B: Clone + PartialEq> Presence<B> {
    /// The other nodes that are alive.
    pub fn peers(&self) -> impl Iterator<Item = &NodeId> {
        self.peers.iter().filter(|(_, peer)| peer.alive.is_some()).map(|(node, _)| node)
    }

    /// Their current runs.
    pub fn runs(&self) -> impl Iterator<Item = Owner> {
        self.peers.iter().filter_map(|(node, peer)| peer.alive.map(|boot| Owner { node: node.clone(), boot }))
    }

    pub(crate) fn handle_node_change(
        &mut self,
        now: Duration,
        node: NodeId,
        revision: Revision,
        lease: Option<(Boot, Term)>,
    ) {
        if node == self.me.node {
            if revision > self.lease.revision && lease.map(|(boot, _)| boot) != Some(self.me.boot) {
                // Renewing fails, and then we look.
                self.lease.due = now;
                self.renew(now);
            }
            return;
        }
        let due = now + self.timing.dead_after;
        let peer = self.peers.entry(node.clone()).or_insert(Peer::unknown(due));
        if revision <= peer.revision {
            return;
        }
        peer.revision = revision;
        peer.expected = revision;
        peer.due = due;
        peer.is_doubted = false;
        let term = lease.map(|(_, term)| term).unwrap_or_default();
        let is_new_term = std::mem::replace(&mut peer.term, term) != term;
        self.peers_due = self.peers_due.min(due);
        self.set_boot(node, lease.map(|(boot, _)| boot));
        if is_new_term {
            // What it held in an older term it may hold no more.
            self.queue_standby();
        }
    }

    /// Whether the writer of an entry may still act under it, as far as we can know.
    pub(crate) fn term_state(&self, place: OwnerIndex) -> TermState {
        let (owner, term) = (self.owners.owner(place), self.owners.term(place));
        let Some(peer) = self.peers.get(&owner.node) else { return TermState::Unknown };
        match peer.alive {
            Some(_) if term < peer.term => TermState::Over,
            Some(boot) if boot == owner.boot => TermState::Current,
            // Its record ended after the term began.
            None if term <= peer.revision => TermState::Over,
            _ => TermState::Unknown,
        }
    }

    /// An entry was written in a term of which we heard nothing, by a node that seems to be gone: our watch is behind, or
    /// the record expired. A compare-and-set over what we know of the node says which, and cannot end a newer lease.
    pub(crate) fn doubt(&mut self, now: Duration, node: NodeId) {
        let due = now + self.timing.retry_after;
        let peer = self.peers.entry(node).or_insert(Peer::unknown(due));
        if !peer.is_watched() {
            peer.is_doubted = true;
            peer.due = due;
            self.peers_due = self.peers_due.min(due);
        }
    }

    /// Which run of a node is alive now.
    fn set_boot(&mut self, node: NodeId, boot: Option<Boot>) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let old = std::mem::replace(&mut peer.alive, boot);
        if old == boot {
            return;
        }
        for (boot, is_alive) in [(old, false), (boot, true)] {
            let Some(boot) = boot else { continue };
            let changed = self.owners.set_alive(&Owner { node: node.clone(), boot }, is_alive);
            if !changed.is_empty() {
                self.show_owner(&changed, is_alive);
            }
        }
        let event = match boot {
            Some(_) => PresenceEvent::NodeUp(node),
            None => PresenceEvent::NodeDown(node),
        };
        self.output.push_back(Output::Event(event));
    }

    pub(crate) fn check_peers(&mut self, now: Duration) {
        if now < self.peers_due {
            return;
        }
        let silent = |(_, peer): &(&NodeId, &Peer)| peer.is_watched() && !peer.is_asked && now >= peer.due;
        let silent: Vec<(NodeId, Revision)> =
            self.peers.iter().filter(silent).map(|(node, peer)| (node.clone(), peer.expected)).collect();
        for (node, revision) in silent {
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.is_asked = true;
            }
            let pending = Pending::Condemn { node: node.clone() };
            self.write(Key::Node(node), Record::Ended, revision, pending);
        }
        let next = self.peers.values().map(|peer| peer.due).filter(|due| *due > now).min();
        self.peers_due = next.unwrap_or(now + self.timing.retry_after);
    }

    pub(crate) fn handle_condemned(&mut self, now: Duration, node: NodeId, answer: WriteAnswer) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        match answer {
            WriteAnswer::Done(revision) => {
                peer.is_asked = false;
                peer.is_doubted = false;
                if revision > peer.revision {
                    peer.revision = revision;
                    self.set_boot(node, None);
                }
            }
            WriteAnswer::Conflict => {
                let pending = Pending::ReadPeer { node: node.clone() };
                self.read(Key::Node(node), pending);
            }
            WriteAnswer::Lost => {
                peer.is_asked = false;
                // It may have renewed since we asked, and then has its whole time again.
                peer.due = peer.due.max(now + self.timing.retry_after);
                self.peers_due = self.peers_due.min(peer.due);
            }
        }
    }

    pub(crate) fn handle_peer_read(&mut self, now: Duration, node: NodeId, answer: ReadAnswer<B>) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.is_asked = false;
        match answer {
            ReadAnswer::Found(revision, record) if revision > peer.revision => {
                self.handle_node_change(now, node, revision, lease_of(revision, &record));
            }
            answer => {
                // The store drops a record that nobody renewed for long. Whether it did, the next write decides.
                if answer == ReadAnswer::Missing {
                    peer.expected = Revision::default();
                }
                peer.due = peer.due.max(now + self.timing.retry_after);
                self.peers_due = self.peers_due.min(peer.due);
            }
        }
    }
}

/// The run of a node that a record says is alive, and its term.
pub(crate) fn lease_of<B>(revision: Revision, record: &Record<B>) -> Option<(Boot, Term)> {
    match record {
        Record::Lease { boot, term } if *term == Term::default() => Some((*boot, revision)),
        Record::Lease { boot, term } => Some((*boot, *term)),
        _ => None,
    }
}
