//! Nodes that die, stop or lose the network, slow watchers, and a store that loses everything.

use std::time::Duration;

use sinew_presence::{Boot, StoreId};

use super::events::{Event, NodeIndex, Recovery, Trouble};
use super::node::{Node, Power};
use super::world::World;

const SECOND: Duration = Duration::from_secs(1);

/// What every node that is well must have noticed: the death of another. 15 s of silence, one tick, one round trip, and
/// a write that was lost once.
const NOTICE_BOUND: Duration = Duration::from_secs(22);

impl World {
    pub(super) fn plan_trouble(&mut self, from: Duration, until: Duration) {
        let mut at = from;
        while at < until {
            let kinds = [Trouble::Kill, Trouble::Pause, Trouble::Cut, Trouble::Cut, Trouble::Lag];
            let kind = *self.chance.pick(&kinds).unwrap_or(&Trouble::Cut);
            self.agenda.add(at, Event::Trouble(kind));
            at += self.chance.between(5 * SECOND, 15 * SECOND);
        }
        self.agenda.add(from + (until - from) / 2, Event::Trouble(Trouble::LoseStore));
        // One device of a thousand moves or leaves each second.
        let moves = u64::from(self.options.devices).div_ceil(1000) * (until - from).as_secs();
        for _ in 0..moves {
            let at = self.chance.between(from, until);
            self.agenda.add(at, Event::Churn);
        }
    }

    pub(super) fn begin(&mut self, trouble: Trouble) {
        if trouble == Trouble::LoseStore {
            self.report.stores_lost += 1;
            self.store.lose();
            return;
        }
        let well: Vec<NodeIndex> = (0..self.nodes.len()).filter(|node| self.is_well(*node)).collect();
        // Half of the nodes are always left alone.
        if well.len() * 2 <= self.nodes.len() {
            return;
        }
        let Some(index) = self.chance.pick(&well).copied() else { return };
        let (low, high, recovery) = match trouble {
            Trouble::Kill => (25, 60, Recovery::Restart),
            Trouble::Pause => (20, 60, Recovery::Resume),
            Trouble::Cut => (3, 40, Recovery::Rejoin),
            Trouble::Lag | Trouble::LoseStore => (20, 40, Recovery::CatchUp),
        };
        let node = &mut self.nodes[index];
        node.well_since = None;
        match trouble {
            Trouble::Kill => self.kill(index),
            Trouble::Pause => {
                node.power = Power::Paused;
                self.report.nodes_paused += 1;
            }
            Trouble::Cut => {
                node.is_cut = true;
                self.report.partitions += 1;
            }
            Trouble::Lag | Trouble::LoseStore => {
                node.lag = self.chance.between(5 * SECOND, 30 * SECOND);
                self.report.slow_watchers += 1;
            }
        }
        let at = self.now + self.chance.between(low * SECOND, high * SECOND);
        self.agenda.add(at, Event::Recover(index, recovery));
    }

    fn is_well(&self, index: NodeIndex) -> bool {
        self.nodes[index].is_up() && self.nodes[index].well_since.is_some()
    }

    /// The process is gone, and with it every connection.
    fn kill(&mut self, index: NodeIndex) {
        self.report.nodes_killed += 1;
        self.nodes[index].power = Power::Down;
        self.nodes[index].died = Some(self.now);
        self.nodes[index].links.clear();
        for device in 0..self.options.devices {
            let real = &mut self.devices[device as usize];
            if real.reached_by.is_none() && real.home == Some(index) {
                real.home = None;
                let at = self.now + self.chance.between(SECOND / 2, 10 * SECOND);
                self.agenda.add(at, Event::Connect(device));
            }
        }
        let check = Event::CheckNotice { dead: index, since: self.now, store: self.store.id };
        self.agenda.add(self.now + NOTICE_BOUND, check);
    }

    pub(super) fn recover(&mut self, index: NodeIndex, recovery: Recovery) {
        match recovery {
            Recovery::Restart => {
                if self.nodes[index].power == Power::Down {
                    self.restart(index);
                }
            }
            Recovery::Resume => {
                let node = &mut self.nodes[index];
                if node.power == Power::Paused {
                    node.power = Power::Up;
                    let (boot, now) = (node.boot, self.now);
                    for event in std::mem::take(&mut node.backlog) {
                        self.agenda.add(now, Event::ForNode(index, boot, event));
                    }
                }
            }
            Recovery::Rejoin => self.nodes[index].is_cut = false,
            Recovery::CatchUp => self.nodes[index].lag = Duration::ZERO,
        }
        self.nodes[index].well_since = Some(self.now);
    }

    fn restart(&mut self, index: NodeIndex) {
        let boot = Boot(self.next_boot);
        self.next_boot += 1;
        let Some(fresh) = Node::new(index, boot, self.options.timing.clone(), None) else { return };
        let old = std::mem::replace(&mut self.nodes[index], fresh);
        self.report.moves += old.presence.moves();
        self.nodes[index].outbox = old.outbox;
        self.nodes[index].outbox.handle_lost();
        self.start(index);
    }

    pub(super) fn end_trouble(&mut self) {
        for index in 0..self.nodes.len() {
            for recovery in [Recovery::Restart, Recovery::Resume, Recovery::Rejoin, Recovery::CatchUp] {
                self.recover(index, recovery);
            }
        }
    }

    pub(super) fn check_notice(&mut self, dead: NodeIndex, since: Duration, store: StoreId) {
        if store != self.store.id || self.nodes[dead].is_up() {
            return;
        }
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.was_well_since(since) && node.presence.peers().any(|peer| *peer == self.nodes[dead].id) {
                let bound = NOTICE_BOUND.as_secs();
                self.checks
                    .violate(self.now, format!("node {index} did not notice in {bound} s that node {dead} is dead"));
            }
        }
    }
}
