//! The other nodes, and when one is declared dead.
//!
//! A watcher hears nothing when a record expires, and a read may be old. So a node that was silent for too long by our own
//! clock is declared dead by a compare-and-set over the last lease that we saw: it fails if the node renewed since.

use std::time::Duration;

use crate::presence::{Output, Pending, Presence, PresenceEvent};
use crate::records::{Boot, Key, NodeId, Owner, ReadAnswer, Record, Revision, WriteAnswer};

#[derive(Debug)]
pub(crate) struct Peer {
    /// The newest that we saw.
    pub(crate) revision: Revision,
    /// Over which we declare it dead: the newest, or none after a read found no record.
    pub(crate) expected: Revision,
    pub(crate) alive: Option<Boot>,
    /// When to declare it dead, unless it renews.
    pub(crate) due: Duration,
    pub(crate) is_asked: bool,
}

impl<B: Clone + PartialEq> Presence<B> {
    /// The other nodes that are alive.
    pub fn peers(&self) -> impl Iterator<Item = &NodeId> {
        self.peers.iter().filter(|(_, peer)| peer.alive.is_some()).map(|(node, _)| node)
    }

    pub(crate) fn handle_node_change(&mut self, now: Duration, node: NodeId, revision: Revision, record: Option<Boot>) {
        if node == self.me.node {
            if revision > self.lease.revision && record != Some(self.me.boot) {
                // Renewing fails, and then we look.
                self.lease.due = now;
                self.renew(now);
            }
            return;
        }
        let due = now + self.timing.dead_after;
        let none = Revision::default();
        let unknown = Peer { revision: none, expected: none, alive: None, due, is_asked: false };
        let peer = self.peers.entry(node.clone()).or_insert(unknown);
        if revision <= peer.revision {
            return;
        }
        peer.revision = revision;
        peer.expected = revision;
        peer.due = due;
        self.peers_due = self.peers_due.min(due);
        self.set_boot(node, record);
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
            let place = self.owners.place(&Owner { node: node.clone(), boot });
            if self.owners.set_alive(place, is_alive) {
                self.show_owner(place, is_alive);
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
        let silent = |(_, peer): &(&NodeId, &Peer)| peer.alive.is_some() && !peer.is_asked && now >= peer.due;
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
                peer.due = now + self.timing.retry_after;
                self.peers_due = self.peers_due.min(peer.due);
            }
        }
    }

    pub(crate) fn handle_peer_read(&mut self, now: Duration, node: NodeId, answer: ReadAnswer<B>) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.is_asked = false;
        match answer {
            ReadAnswer::Found(revision, record) if revision > peer.revision => {
                self.handle_node_change(now, node, revision, boot_of(&record));
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

pub(crate) fn boot_of<B>(record: &Record<B>) -> Option<Boot> {
    match record {
        Record::Lease(boot) => Some(*boot),
        _ => None,
    }
}
