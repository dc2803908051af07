//! Nodes, devices and calls, event by event.

use std::time::Duration;

use sinew_presence::{
    Boot, CallAnswer, DeviceHash, Fence, Forward, NextHop, NodeId, Output, PresenceEvent, ReadAnswer, Route,
    WriteAnswer,
};
use sinew_tool::Reach;

use super::checks::{CallState, Checks};
use super::events::{Agenda, Asked, Event, NodeEvent, NodeIndex};
use super::node::{Device, Node, Power, device_of, hash_of};
use super::store::Store;
use super::{FleetOptions, FleetReport};
use crate::chance::Chance;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// One device of this many can be reached by two nodes.
const SHARED_ONE_IN: u32 = 10;
/// How often a watch brings what it has, and events are published.
const WATCH_EVERY: Duration = Duration::from_millis(100);
const PUBLISH_EVERY: Duration = WATCH_EVERY;
const CALL_EVERY: Duration = Duration::from_millis(5);
/// How long anybody waits for an answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Devices join over this time, and the fleet is left alone for as long at its end.
const JOINING: Duration = Duration::from_secs(60);
const RECOVERY: Duration = Duration::from_secs(120);
/// A claim may be lost and repeated a few times, each after a timeout.
const CLAIM_BOUND: Duration = Duration::from_secs(30);

pub(super) struct World {
    pub(super) options: FleetOptions,
    pub(super) chance: Chance,
    pub(super) now: Duration,
    pub(super) agenda: Agenda,
    pub(super) store: Store,
    pub(super) nodes: Vec<Node>,
    pub(super) devices: Vec<Device>,
    pub(super) checks: Checks,
    pub(super) report: FleetReport,
    pub(super) next_boot: u64,
    next_call: u64,
}

impl World {
    pub(super) fn new(options: FleetOptions) -> World {
        let nodes = (0..usize::from(options.nodes))
            .filter_map(|index| Node::new(index, Boot(index as u64), options.timing.clone(), None))
            .collect();
        let mut chance = Chance(options.seed);
        let count = u64::from(options.nodes);
        let device = |number: u32| {
            let is_shared = number.is_multiple_of(SHARED_ONE_IN) && count > 1;
            let first = chance.below(count);
            let second = (first + 1 + chance.below(count - u64::from(is_shared))) % count;
            let reached_by = is_shared.then_some([first as usize, second as usize]);
            Device { reached_by, home: None, link: 0 }
        };
        let devices = (0..options.devices).map(device).collect();
        World {
            next_boot: count,
            chance,
            now: Duration::ZERO,
            agenda: Agenda::default(),
            store: Store::new(),
            nodes,
            devices,
            checks: Checks::default(),
            report: FleetReport::default(),
            next_call: 0,
            options,
        }
    }

    pub(super) fn run(mut self) -> FleetReport {
        (0..self.nodes.len()).for_each(|node| self.start(node));
        for device in 0..self.options.devices {
            let at = self.chance.between(SECOND, JOINING);
            self.agenda.add(at, Event::Connect(device));
        }
        let calm = JOINING + self.options.trouble;
        self.plan_trouble(JOINING, calm);
        self.agenda.add(JOINING / 2, Event::NewCall);
        self.run_until(calm);
        self.end_trouble();
        self.run_until(calm + RECOVERY);
        self.check_end();
        self.report.virtual_time = self.now;
        self.report.moves = self.nodes.iter().map(|node| node.presence.moves()).sum();
        self.report.events_dropped = self.nodes.iter().map(|node| node.outbox.dropped()).sum();
        self.report.violations = self.checks.violations;
        self.report
    }

    fn run_until(&mut self, end: Duration) {
        while let Some((at, event)) = self.agenda.next(end) {
            self.now = at;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ForNode(node, boot, event) => self.handle_for_node(node, boot, event),
            Event::StoreWrite(asked, key, record, expected) => {
                let is_there = self.is_heard(asked);
                let answer = match is_there {
                    true => self.store.write(self.now, key, record, expected),
                    false => WriteAnswer::Lost,
                };
                self.report.writes += u64::from(matches!(answer, WriteAnswer::Done(_)));
                // Now and then it is written, and the answer does not come back.
                let answer = if self.chance.one_in(500) { WriteAnswer::Lost } else { answer };
                let after = self.after(answer == WriteAnswer::Lost);
                self.tell(asked, after, NodeEvent::Written(asked.ticket, answer));
            }
            Event::StoreRead(asked, key) => {
                let age = if self.chance.one_in(5) { 3 * SECOND } else { Duration::ZERO };
                self.report.stale_reads += u64::from(age > Duration::ZERO);
                let answer = match self.is_heard(asked) {
                    true => self.store.read(self.now, &key, age),
                    false => ReadAnswer::Lost,
                };
                let after = self.after(answer == ReadAnswer::Lost);
                self.tell(asked, after, NodeEvent::WasRead(asked.ticket, answer));
            }
            Event::Connect(device) => self.connect(device),
            Event::NewCall => self.new_call(),
            Event::CallArrives { call, to, boot, fence } => self.deliver_call(call, to, boot, fence),
            Event::Churn => self.churn(),
            Event::Trouble(trouble) => self.begin(trouble),
            Event::Recover(node, recovery) => self.recover(node, recovery),
            Event::CheckNotice { dead, since, store } => self.check_notice(dead, since, store),
        }
    }

    /// Whether the store gets what a node sent: it is lost with the network, and with the connection to a lost store.
    fn is_heard(&self, asked: Asked) -> bool {
        !self.nodes[asked.node].is_cut && asked.store == self.store.id
    }

    fn tell(&mut self, asked: Asked, after: Duration, event: NodeEvent) {
        self.agenda.add(self.now + after, Event::ForNode(asked.node, asked.boot, event));
    }

    /// How long a message takes; now and then long.
    fn latency(&mut self) -> Duration {
        match self.chance.below(1000) {
            0 => self.chance.between(MS, 3 * SECOND),
            _ => self.chance.between(MS / 10, 2 * MS),
        }
    }

    fn after(&mut self, is_lost: bool) -> Duration {
        if is_lost { STORE_TIMEOUT } else { self.latency() }
    }

    /// A process begins.
    pub(super) fn start(&mut self, node: NodeIndex) {
        let boot = self.nodes[node].boot;
        for (every, event) in [(WATCH_EVERY, NodeEvent::Watch), (PUBLISH_EVERY, NodeEvent::Publish)] {
            let at = self.now + self.chance.between(Duration::ZERO, every);
            self.agenda.add(at, Event::ForNode(node, boot, event));
        }
        let shared = |device: &Device| device.reached_by.is_some_and(|nodes| nodes.contains(&node));
        let shared: Vec<u32> = (0..self.options.devices).filter(|id| shared(&self.devices[*id as usize])).collect();
        if self.now > Duration::ZERO {
            shared.into_iter().for_each(|device| self.link(node, device, 0));
        }
    }

    fn handle_for_node(&mut self, index: NodeIndex, boot: Boot, event: NodeEvent) {
        let node = &mut self.nodes[index];
        if node.boot != boot || node.power == Power::Down {
            return;
        }
        if node.power == Power::Paused {
            node.backlog.push(event);
            return;
        }
        let now = self.now;
        match event {
            NodeEvent::Timer => {
                node.timer = None;
                node.presence.handle_time(now);
            }
            NodeEvent::Watch => {
                self.watch(index);
                self.agenda.add(now + WATCH_EVERY, Event::ForNode(index, boot, NodeEvent::Watch));
            }
            NodeEvent::Publish => {
                self.publish(index);
                self.agenda.add(now + PUBLISH_EVERY, Event::ForNode(index, boot, NodeEvent::Publish));
            }
            NodeEvent::Written(ticket, answer) => node.presence.handle_write(now, ticket, answer),
            NodeEvent::WasRead(ticket, answer) => node.presence.handle_read(now, ticket, answer),
            NodeEvent::Closed { device, link } => self.unlink(index, device, link),
            NodeEvent::Evict(device, fence, by) => node.presence.handle_evict(now, device, fence, by),
            NodeEvent::Call { call, fence } => self.run_call(index, call, fence),
            NodeEvent::CallAnswer { call, answer } => self.handle_answer(call, answer),
        }
        self.drain(index);
    }

    /// Does what a node wants done.
    pub(super) fn drain(&mut self, index: NodeIndex) {
        while let Some(output) = self.nodes[index].presence.poll() {
            let (boot, store) = (self.nodes[index].boot, self.store.id);
            match output {
                Output::Write { ticket, key, record, expected } => {
                    let store = self.nodes[index].store.unwrap_or(store);
                    let at = self.now + self.latency();
                    let asked = Asked { node: index, boot, store, ticket };
                    self.agenda.add(at, Event::StoreWrite(asked, key, record, expected));
                }
                Output::Read { ticket, key } => {
                    let store = self.nodes[index].store.unwrap_or(store);
                    let at = self.now + self.latency();
                    self.agenda.add(at, Event::StoreRead(Asked { node: index, boot, store, ticket }, key));
                }
                Output::Evict { run, device, fence } => self.send_evict(index, &run.node, device, fence),
                Output::Event(event) => self.handle_news(index, event),
            }
        }
        let node = &mut self.nodes[index];
        let Some(next) = node.presence.next_time().map(|next| next.max(self.now)) else { return };
        if node.timer.is_none_or(|timer| next < timer) {
            node.timer = Some(next);
            let event = Event::ForNode(index, node.boot, NodeEvent::Timer);
            self.agenda.add(next, event);
        }
    }

    fn send_evict(&mut self, from: NodeIndex, to: &NodeId, device: DeviceHash, fence: Fence) {
        let by = self.nodes[from].id.clone();
        let target = self.nodes.iter().position(|node| node.id == *to);
        // A message that is lost does no harm: the watch brings the same, later.
        let Some(target) = target.filter(|target| !self.nodes[from].is_cut && !self.nodes[*target].is_cut) else {
            return;
        };
        let (at, boot) = (self.now + self.latency(), self.nodes[target].boot);
        self.agenda.add(at, Event::ForNode(target, boot, NodeEvent::Evict(device, fence, by)));
    }

    fn handle_news(&mut self, index: NodeIndex, event: PresenceEvent<()>) {
        match event {
            PresenceEvent::Held { device, fence } => {
                let device = device_of(device);
                self.report.claims += 1;
                self.checks.hold(self.now, device, fence, index);
                // A store that lost everything is told again of devices that were claimed long ago.
                let since = self.nodes[index].links.get_mut(&device).and_then(|(_, since)| since.take());
                let Some(since) = since else { return };
                if self.devices[device as usize].reached_by.is_none() && self.nodes[index].was_well_since(since) {
                    let took = self.now - since;
                    self.report.slowest_claim = self.report.slowest_claim.max(took);
                    if took > CLAIM_BOUND {
                        self.checks.violate(self.now, format!("node {index} held device {device} only after {took:?}"));
                    }
                }
            }
            PresenceEvent::Evicted { device, .. } => {
                let device = device_of(device);
                let link = self.nodes[index].links.remove(&device).map(|(link, _)| link);
                let real = &mut self.devices[device as usize];
                if real.home == Some(index) && link == Some(real.link) {
                    // The node ended a connection that was in use: the device dials again.
                    real.home = None;
                    let at = self.now + self.chance.between(SECOND, 5 * SECOND);
                    self.agenda.add(at, Event::Connect(device));
                }
            }
            PresenceEvent::NodeDown(node) => {
                let died = self.nodes.iter().find(|other| other.id == node).and_then(|other| other.died);
                if let Some(died) = died.filter(|died| self.nodes[index].was_well_since(*died)) {
                    self.report.slowest_notice = self.report.slowest_notice.max(self.now - died);
                }
            }
            _ => {}
        }
    }

    /// Brings a node what its watch has for it.
    fn watch(&mut self, index: NodeIndex) {
        let (now, node) = (self.now, &mut self.nodes[index]);
        if node.is_cut {
            return;
        }
        if node.store != Some(self.store.id) {
            node.store = Some(self.store.id);
            node.position = 0;
            node.sync_until = Some(self.store.log.len());
            node.presence.handle_store(now, self.store.id);
        }
        let behind = node.lag;
        while let Some(change) = self.store.log.get(node.position).filter(|change| change.at + behind <= now) {
            node.presence.handle_change(now, change.change.clone());
            node.position += 1;
            self.report.changes_seen += 1;
        }
        if node.sync_until.is_some_and(|until| node.position >= until) {
            node.sync_until = None;
            node.presence.handle_synced(now);
        }
    }

    fn publish(&mut self, index: NodeIndex) {
        let node = &mut self.nodes[index];
        let first = node.outbox.first().unwrap_or_default();
        while let Some((number, _)) = node.outbox.send(64) {
            if node.is_cut {
                node.outbox.handle_lost();
                return;
            }
            self.checks.store_event(self.now, index, number, first);
            // Stored, and nobody says so: it is sent again.
            if self.chance.one_in(50) {
                node.outbox.handle_lost();
                return;
            }
            node.outbox.handle_stored(number);
        }
    }

    /// A device dials a node: any that is up.
    fn connect(&mut self, device: u32) {
        if let Some(nodes) = self.devices[device as usize].reached_by {
            let up: Vec<NodeIndex> = nodes.into_iter().filter(|node| self.nodes[*node].is_up()).collect();
            up.into_iter().for_each(|node| self.link(node, device, 0));
            return;
        }
        let up: Vec<NodeIndex> = (0..self.nodes.len()).filter(|node| self.nodes[*node].is_up()).collect();
        let Some(node) = self.chance.pick(&up).copied() else {
            self.agenda.add(self.now + SECOND, Event::Connect(device));
            return;
        };
        let real = &mut self.devices[device as usize];
        real.link += 1;
        let (link, old) = (real.link, real.home.replace(node));
        if let Some(old) = old.filter(|old| *old != node) {
            // The old node may notice only when it sends something.
            let at = self.now + self.chance.between(MS, 60 * SECOND);
            let event = NodeEvent::Closed { device, link: link - 1 };
            self.agenda.add(at, Event::ForNode(old, self.nodes[old].boot, event));
        }
        self.link(node, device, link);
    }

    fn link(&mut self, index: NodeIndex, device: u32, link: u32) {
        let reach = match self.devices[device as usize].reached_by {
            Some(_) => Reach::SeveralGateways,
            None => Reach::OneLink,
        };
        let node = &mut self.nodes[index];
        node.presence.join(self.now, hash_of(device), reach, ());
        // One that was here a moment ago may be held still.
        let waits_since = node.presence.fence(hash_of(device)).is_none().then_some(self.now);
        node.links.insert(device, (link, waits_since));
        self.drain(index);
    }

    fn unlink(&mut self, index: NodeIndex, device: u32, link: u32) {
        let node = &mut self.nodes[index];
        if node.links.get(&device).is_some_and(|(current, _)| *current == link) {
            node.links.remove(&device);
            node.presence.leave(self.now, hash_of(device));
        }
    }

    /// A device moves, or leaves for a while.
    fn churn(&mut self) {
        let device = self.chance.below(u64::from(self.options.devices)) as u32;
        let real = &mut self.devices[device as usize];
        if let (None, Some(home)) = (real.reached_by, real.home) {
            if self.chance.one_in(2) {
                self.agenda.add(self.now, Event::Connect(device));
            } else {
                real.home = None;
                let (link, at) = (real.link, self.now + self.chance.between(MS, 20 * SECOND));
                let event = Event::ForNode(home, self.nodes[home].boot, NodeEvent::Closed { device, link });
                self.agenda.add(at, event);
                let back = self.now + self.chance.between(SECOND, 60 * SECOND);
                self.agenda.add(back, Event::Connect(device));
            }
        }
    }

    fn new_call(&mut self) {
        self.agenda.add(self.now + CALL_EVERY, Event::NewCall);
        let up: Vec<NodeIndex> = (0..self.nodes.len()).filter(|node| self.nodes[*node].is_up()).collect();
        let Some(entry) = self.chance.pick(&up).copied() else { return };
        let device = self.chance.below(u64::from(self.options.devices)) as u32;
        let call = self.next_call;
        self.next_call += 1;
        self.report.calls += 1;
        self.checks.calls.insert(call, CallState { device, entry, forward: Forward::default(), executed: 0 });
        self.route_call(call);
    }

    /// Sends a call to where its entry node believes the device to be.
    fn route_call(&mut self, call: u64) {
        let Some(state) = self.checks.calls.get(&call) else { return };
        let (entry, hash) = (state.entry, hash_of(state.device));
        let presence = &self.nodes[entry].presence;
        match presence.route(hash) {
            Route::Here => {
                let may = presence.may_act(self.now, hash).is_ok();
                let fence = presence.fence(hash).filter(|_| may);
                let ran = fence.is_some_and(|fence| self.execute(call, entry, fence));
                let answer = if ran { CallAnswer::Ended } else { CallAnswer::Refused };
                self.end_here(call, answer);
            }
            Route::At(run, fence) if !self.nodes[entry].is_cut => {
                let Some(to) = self.nodes.iter().position(|other| other.id == run.node) else { return };
                let (boot, at) = (run.boot, self.now + self.latency());
                self.agenda.add(at, Event::CallArrives { call, to, boot, fence });
            }
            Route::At(..) | Route::Nowhere => self.refuse(call),
        }
    }

    fn end_here(&mut self, call: u64, answer: CallAnswer) {
        if answer == CallAnswer::Ended {
            self.report.calls_done += 1;
            self.checks.end_call(self.now, call, Some(true));
        } else {
            self.refuse(call);
        }
    }

    fn refuse(&mut self, call: u64) {
        self.report.calls_refused += 1;
        self.checks.end_call(self.now, call, Some(false));
    }

    /// A call reaches a node, or nobody, or is lost on the way.
    fn deliver_call(&mut self, call: u64, to: NodeIndex, boot: Boot, fence: Fence) {
        let node = &self.nodes[to];
        if node.power == Power::Down || node.boot != boot {
            self.answer(call, CallAnswer::NoResponder, Duration::ZERO);
        } else if node.is_cut || self.chance.one_in(1000) {
            self.answer(call, CallAnswer::Lost, CALL_TIMEOUT);
        } else {
            self.handle_for_node(to, boot, NodeEvent::Call { call, fence });
        }
    }

    /// A node runs a call, or refuses it.
    fn run_call(&mut self, index: NodeIndex, call: u64, fence: Fence) {
        let Some(state) = self.checks.calls.get(&call) else { return };
        let answer = match self.nodes[index].presence.accept(self.now, hash_of(state.device), fence) {
            Err(_) => CallAnswer::Refused,
            Ok(()) if self.execute(call, index, fence) => CallAnswer::Ended,
            // The connection is broken, which the node does not know.
            Ok(()) => CallAnswer::Lost,
        };
        let is_lost = self.nodes[index].is_cut || self.chance.one_in(200);
        self.answer(call, if is_lost { CallAnswer::Lost } else { answer }, Duration::ZERO);
    }

    fn answer(&mut self, call: u64, answer: CallAnswer, after: Duration) {
        let Some(state) = self.checks.calls.get(&call) else { return };
        let entry = state.entry;
        let at = self.now + after + self.latency();
        let boot = self.nodes[entry].boot;
        let answer = if self.nodes[entry].is_cut { CallAnswer::Lost } else { answer };
        self.agenda.add(at, Event::ForNode(entry, boot, NodeEvent::CallAnswer { call, answer }));
    }

    fn handle_answer(&mut self, call: u64, answer: CallAnswer) {
        let Some(state) = self.checks.calls.get_mut(&call) else { return };
        match state.forward.handle_answer(answer) {
            NextHop::Done => {
                self.report.calls_done += 1;
                self.checks.end_call(self.now, call, Some(true));
            }
            NextHop::RouteAgain => {
                self.report.calls_rerouted += 1;
                self.route_call(call);
            }
            NextHop::GiveUp => self.refuse(call),
            NextHop::MayHaveHappened => {
                self.report.calls_unknown += 1;
                self.checks.end_call(self.now, call, None);
            }
        }
    }

    /// Runs a call on a device, if it is really connected to the node.
    fn execute(&mut self, call: u64, index: NodeIndex, fence: Fence) -> bool {
        let Some(state) = self.checks.calls.get(&call) else { return false };
        let device = &self.devices[state.device as usize];
        let link = self.nodes[index].links.get(&state.device).map(|(link, _)| *link);
        let is_shared = device.reached_by.is_some();
        if !(is_shared || device.home == Some(index) && link == Some(device.link)) {
            return false;
        }
        self.checks.execute(self.now, call, index, is_shared.then_some(fence));
        self.nodes[index].outbox.add(call);
        self.report.events += 1;
        true
    }

    /// After the time to recover, every node knows where every device is.
    fn check_end(&mut self) {
        let all = self.nodes.len();
        // All nodes where that is quick, else three of them.
        let few = if all * self.devices.len() > 5_000_000 { 3 } else { all };
        for device in 0..self.devices.len() {
            let hash = hash_of(device as u32);
            let holders: Vec<NodeIndex> =
                (0..all).filter(|node| self.nodes[*node].presence.fence(hash).is_some()).collect();
            let real = &self.devices[device];
            let expected: Vec<NodeIndex> = match real.reached_by {
                Some(nodes) => nodes.to_vec(),
                None => real.home.into_iter().collect(),
            };
            let is_right = match holders[..] {
                [holder] => expected.contains(&holder),
                _ => holders.is_empty() && expected.is_empty(),
            };
            if !is_right {
                self.checks.violate(self.now, format!("device {device} is at {expected:?} and held by {holders:?}"));
                continue;
            }
            let fence = holders.first().and_then(|holder| self.nodes[*holder].presence.fence(hash));
            for node in 0..few {
                let route = self.nodes[node].presence.route(hash);
                let is_right = match (&route, holders.first()) {
                    (Route::Here, Some(holder)) => *holder == node,
                    (Route::At(at, by), Some(holder)) => self.nodes[*holder].id == at.node && Some(*by) == fence,
                    (Route::Nowhere, None) => true,
                    _ => false,
                };
                if !is_right {
                    let what = format!("node {node} routes device {device} to {route:?}; it is held by {holders:?}");
                    self.checks.violate(self.now, what);
                }
            }
        }
        let waiting: usize = self.nodes.iter().map(|node| node.outbox.len()).sum();
        let dropped: u64 = self.nodes.iter().map(|node| node.outbox.dropped()).sum();
        let missing = self.report.events.saturating_sub(self.checks.stored + dropped + waiting as u64);
        if missing > 0 {
            self.checks.violate(self.now, format!("{missing} events were lost"));
        }
        if waiting > 64 * all {
            self.checks.violate(self.now, format!("{waiting} events still wait"));
        }
    }
}
