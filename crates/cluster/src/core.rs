//! What all parts of a node share: its members, the queue of what the gateway must apply, and the open calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sinew_gateway::{Gateway, aside};
use sinew_presence::{Boot, DeviceHash, NodeId, Output, Owner, Presence, PresenceEvent, Refusal, Route};
use sinew_tool::{Device, DeviceEvent, DeviceKey, Digest, LeaveReason, Notice, Reach, Status, Toolset, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::drive::Buckets;
use crate::guarded::GuardedDevice;
use crate::leases::NodeLeases;
use crate::members::{LocalDevice, Members};
use crate::messages::{MessageBody, NodeMessage, packets};
use crate::nats::Nats;
use crate::records::{Card, DeviceCard, hash_of};
use crate::remote::{OpenCalls, RETURN_TIME, RemoteDevice};
use crate::serve::ServedCalls;
use crate::settings::ClusterSettings;
use crate::sharing::{NodeFacts, Parts, Sharing};
use crate::toolsets::Toolsets;

/// How long the last record of a node that stops may take.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) struct Core {
    pub(crate) settings: ClusterSettings,
    pub(crate) me: Owner,
    pub(crate) gateway: Gateway,
    pub(crate) nats: Nats,
    pub(crate) toolsets: Toolsets,
    pub(crate) shared: Arc<Parts>,
    pub(crate) open: OpenCalls,
    pub(crate) served: ServedCalls,
    /// Counts changes of where devices are.
    pub(crate) routes: watch::Sender<u64>,
    /// Something may be due earlier than before.
    pub(crate) due: Notify,
    buckets: Mutex<Option<Arc<Buckets>>>,
    start: Instant,
    members: Mutex<Members>,
    queues: Queues,
    next_message: AtomicU64,
    is_over: AtomicBool,
    let_go: LetGo,
}

/// Ends the connection of a device.
pub(crate) type LetGo = Box<dyn Fn(&Arc<dyn Device>) + Send + Sync>;

/// Work for the tasks of a node. The receivers wait in `taken` until the node runs.
struct Queues {
    steps: mpsc::UnboundedSender<Step>,
    asked: mpsc::UnboundedSender<Output<Card>>,
    taken: Mutex<Option<Receivers>>,
}

pub(crate) struct Receivers {
    pub(crate) steps: mpsc::UnboundedReceiver<Step>,
    pub(crate) asked: mpsc::UnboundedReceiver<Output<Card>>,
}

/// What is done in the order in which it was decided.
pub(crate) enum Step {
    Apply(DeviceEvent),
    /// Tell the others of a device as it is now.
    Offer(DeviceHash),
    /// Get tools that other nodes' devices have.
    Fetch(Digest),
    LetGo(Arc<dyn Device>),
    /// End a device of another node, unless it is somewhere by then.
    EndLater(DeviceHash, Weak<RemoteDevice>),
    /// Give a device the marks and the pin that another node says it has.
    Mark(DeviceHash),
}

/// A node as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStatus {
    pub cluster: String,
    pub node: NodeId,
    pub is_connected: bool,
    /// The version of the NATS server; empty before the first connection.
    pub server: String,
    /// Whether the other nodes count on this one.
    pub has_lease: bool,
    /// Whether devices that connect to it are known to the others at once.
    pub is_ready: bool,
    /// This node and those that are alive.
    pub nodes: Vec<NodeStatus>,
    /// Devices that this node took from others since it started.
    pub moves: u64,
    /// Devices of this node that the others do not know yet.
    pub waiting: usize,
    /// Changes at this node, of tokens for example, that the others do not know yet.
    pub unshared: usize,
    /// Ids of devices that mean another device at other nodes: given while NATS was away, or before this node joined.
    pub ids_twice: Vec<String>,
    /// Calls to other nodes, and from them, under way.
    pub calls_out: usize,
    pub calls_in: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    pub name: NodeId,
    pub devices: usize,
    /// The version of its policy; `None` until it said so.
    pub policy: Option<String>,
    /// The version of its program.
    pub program: Option<String>,
}

impl Core {
    pub(crate) async fn open(
        settings: ClusterSettings,
        sharing: Sharing,
        gateway: Gateway,
        let_go: LetGo,
    ) -> Result<Arc<Core>, String> {
        let mut boot = [0; 8];
        getrandom::fill(&mut boot).map_err(|error| error.to_string())?;
        let me = Owner { node: settings.node.clone(), boot: Boot(u64::from_be_bytes(boot)) };
        let nats = Nats::connect(&settings).await?;
        let (steps, step_receiver) = mpsc::unbounded_channel();
        let (asked, asked_receiver) = mpsc::unbounded_channel();
        let taken = Mutex::new(Some(Receivers { steps: step_receiver, asked: asked_receiver }));
        let core = Arc::new(Core {
            members: Mutex::new(Members::new(Presence::new(me.clone(), settings.timing.clone()))),
            me,
            nats,
            toolsets: Toolsets::default(),
            shared: sharing.parts,
            open: OpenCalls::default(),
            served: ServedCalls::default(),
            routes: watch::Sender::new(0),
            due: Notify::new(),
            buckets: Mutex::new(None),
            start: Instant::now(),
            queues: Queues { steps, asked, taken },
            next_message: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            let_go,
            gateway,
            settings,
        });
        // The gateway keeps this for as long as it lives, and must not keep the node.
        let (weak, gateway) = (Arc::downgrade(&core), core.gateway.clone());
        core.gateway.announce_through(Arc::new(move |event| match weak.upgrade() {
            Some(core) => core.announce(event),
            None => gateway.apply(event),
        }));
        core.gateway.reserve_through(Arc::new(NodeLeases { core: Arc::downgrade(&core) }));
        Ok(core)
    }

    pub(crate) fn take_receivers(&self) -> Option<Receivers> {
        lock(&self.queues.taken).take()
    }

    pub(crate) fn buckets(&self) -> Option<Arc<Buckets>> {
        lock(&self.buckets).clone()
    }

    pub(crate) fn set_buckets(&self, buckets: Arc<Buckets>) {
        *lock(&self.buckets) = Some(buckets);
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Does something with the members, and then what follows from it.
    pub(crate) fn with<T>(self: &Arc<Core>, work: impl FnOnce(&mut Members, Duration) -> T) -> T {
        let mut members = lock(&self.members);
        let result = work(&mut members, self.now());
        while let Some(output) = members.presence.poll() {
            match output {
                Output::Event(event) => self.handle_event(&mut members, event),
                asked => self.ask(asked),
            }
        }
        drop(members);
        self.due.notify_one();
        result
    }

    pub(crate) fn next_time(&self) -> Option<Instant> {
        let next = lock(&self.members).presence.next_time();
        next.map(|next| self.start + next)
    }

    /// Where a device is, and the device itself where it is here.
    pub(crate) fn route(&self, hash: DeviceHash) -> (Route, Option<Arc<dyn Device>>) {
        let members = lock(&self.members);
        let route = members.presence.route(hash);
        (route, members.locals.get(&hash).map(|local| local.guarded.clone()))
    }

    /// The other node that has a device.
    pub(crate) fn node_of(&self, hash: DeviceHash) -> Option<NodeId> {
        match self.route(hash).0 {
            Route::At(run, _) => Some(run.node),
            Route::Here | Route::Nowhere => None,
        }
    }

    pub(crate) fn may_act(&self, hash: DeviceHash) -> Result<(), Refusal> {
        lock(&self.members).presence.may_act(self.now(), hash)
    }

    fn ask(&self, asked: Output<Card>) {
        let _ = self.queues.asked.send(asked);
    }

    fn step(&self, step: Step) {
        // After the node stopped nobody takes steps any more, and the gateway closes.
        if let Err(mpsc::error::SendError(Step::Apply(event))) = self.queues.steps.send(step) {
            self.gateway.apply(event);
        }
    }

    /// What a family of this node announces.
    fn announce(self: &Arc<Core>, event: DeviceEvent) {
        let (DeviceEvent::Joined(device)
        | DeviceEvent::Changed(device)
        | DeviceEvent::Left(device, _)
        | DeviceEvent::Said(device, _)
        | DeviceEvent::Dropped(device, _)) = &event;
        let info = device.info();
        // Each gateway has its own devices that only pass calls on.
        if info.family.passes_on {
            return self.gateway.apply(event);
        }
        let hash = hash_of(&info.key);
        match event {
            DeviceEvent::Joined(device) => {
                let reach = info.family.reach;
                let guarded: Arc<dyn Device> = match reach {
                    Reach::OneLink => device.clone(),
                    Reach::SeveralGateways => {
                        Arc::new(GuardedDevice { core: Arc::downgrade(self), hash, device: device.clone() })
                    }
                };
                self.with(|members, _| {
                    members.locals.insert(hash, LocalDevice { device, guarded, reach });
                    self.settle(members, hash, LeaveReason::Replaced);
                    self.step(Step::Offer(hash));
                });
            }
            DeviceEvent::Changed(device) => self.with(|members, _| {
                let Some(guarded) = members.current(hash, &device).map(|local| local.guarded.clone()) else { return };
                let was_shown = members.is_shown(hash, &guarded);
                self.settle(members, hash, LeaveReason::Replaced);
                if was_shown && members.is_shown(hash, &guarded) {
                    self.step(Step::Apply(DeviceEvent::Changed(guarded)));
                }
                self.step(Step::Offer(hash));
            }),
            DeviceEvent::Left(device, reason) => self.with(|members, now| {
                if members.current(hash, &device).is_some() {
                    members.locals.remove(&hash);
                    members.presence.leave(now, hash);
                    self.settle(members, hash, reason);
                }
            }),
            // In the order of everything else: what a device says first comes after its arrival.
            said @ (DeviceEvent::Said(..) | DeviceEvent::Dropped(..)) => self.step(Step::Apply(said)),
        }
    }

    fn settle(&self, members: &mut Members, hash: DeviceHash, reason: LeaveReason) {
        if let Some(event) = members.settle(hash, reason) {
            self.step(Step::Apply(event));
        }
    }

    fn handle_event(self: &Arc<Core>, members: &mut Members, event: PresenceEvent<Card>) {
        match event {
            PresenceEvent::Appeared { device, body, .. } => {
                let digest = body.toolset();
                members.cards.insert(device, body);
                let Some(digest) = digest else { return };
                match self.toolsets.find(digest) {
                    Some(tools) => self.show(members, device, &tools),
                    None => {
                        let awaited = members.awaited.entry(digest).or_default();
                        awaited.push(device);
                        if awaited.len() == 1 {
                            self.step(Step::Fetch(digest));
                        }
                    }
                }
            }
            PresenceEvent::Gone { device } => {
                // It may connect to another node in a moment: calls wait for that, and nobody hears of it.
                members.cards.remove(&device);
                if let Some(remote) = members.remotes.get(&device).map(Arc::downgrade) {
                    self.step(Step::EndLater(device, remote));
                }
            }
            PresenceEvent::Held { device, .. } | PresenceEvent::Standby { device } => {
                self.settle(members, device, LeaveReason::Replaced);
            }
            PresenceEvent::Evicted { device, by } => {
                if let Some(local) = members.locals.remove(&device) {
                    tracing::info!(device = %local.device.info().key, node = %by, "device connected to another node");
                    self.step(Step::LetGo(local.device));
                }
                self.settle(members, device, LeaveReason::Dismissed(format!("it connected to the node {by}")));
            }
            PresenceEvent::IdentityTwice { device, other } => {
                let Some(local) = members.locals.get(&device) else { return };
                tracing::warn!(
                    device = %local.device.info().key, node = %other,
                    "two devices have one identity: one is connected here, one at another node; this one waits"
                );
                let body = json!({ "node": other.as_str() });
                let notice = Notice { topic: "identity_twice".to_owned(), body };
                self.step(Step::Apply(DeviceEvent::Said(local.device.clone(), notice)));
            }
            PresenceEvent::Joined => tracing::info!(
                cluster = self.settings.name.as_str(), node = %self.me.node, "joined the cluster"
            ),
            PresenceEvent::Deposed => tracing::error!(
                cluster = self.settings.name.as_str(), node = %self.me.node,
                "another gateway runs under the name of this node; give each its own `node` in `[cluster]` and restart. \
                 This one serves its own devices only"
            ),
            PresenceEvent::NodeUp(node) => tracing::info!(%node, "node joined"),
            PresenceEvent::NodeDown(node) => tracing::warn!(%node, "node is gone"),
        }
        self.routes.send_modify(|count| *count += 1);
    }

    /// Shows a device of another node, whose tools are here.
    fn show(self: &Arc<Core>, members: &mut Members, device: DeviceHash, tools: &Arc<Toolset>) {
        let Some(card) = members.cards.get(&device).filter(|card| card.toolset() == Some(tools.digest())) else {
            return;
        };
        let Route::At(run, _) = members.presence.route(device) else { return };
        let info = shown_info(card, &run.node);
        match members.remotes.get(&device).cloned() {
            Some(remote) => {
                remote.set(info, tools.clone());
                let remote = remote as Arc<dyn Device>;
                if members.is_shown(device, &remote) {
                    self.step(Step::Apply(DeviceEvent::Changed(remote)));
                }
            }
            None => {
                let remote = RemoteDevice::new(Arc::downgrade(self), device, info, tools.clone());
                members.remotes.insert(device, Arc::new(remote));
            }
        }
        self.settle(members, device, LeaveReason::Replaced);
    }

    /// Tools came that devices of other nodes have.
    pub(crate) fn handle_tools(self: &Arc<Core>, digest: Digest, tools: &Arc<Toolset>) {
        self.with(|members, _| {
            for device in members.awaited.remove(&digest).unwrap_or_default() {
                self.show(members, device, tools);
            }
        });
    }

    /// Whether a device still has these tools; the wait for them is over otherwise.
    pub(crate) fn needs(self: &Arc<Core>, digest: Digest) -> bool {
        self.with(|members, _| {
            let Members { awaited, cards, .. } = members;
            let waits = |device: &DeviceHash| cards.get(device).is_some_and(|card| card.toolset() == Some(digest));
            let is_needed = awaited.get(&digest).is_some_and(|devices| devices.iter().any(waits));
            if !is_needed {
                awaited.remove(&digest);
            }
            is_needed
        })
    }

    /// Takes a step that a queue brought.
    pub(crate) async fn take(self: &Arc<Core>, step: Step) {
        match step {
            Step::Apply(DeviceEvent::Joined(device)) => {
                let hash = hash_of(&device.info().key);
                // Before anybody can call it.
                self.pin(hash);
                self.gateway.apply(DeviceEvent::Joined(device));
                self.mark(hash);
            }
            Step::Apply(event) => self.gateway.apply(event),
            Step::Mark(hash) => {
                self.pin(hash);
                self.mark(hash);
            }
            Step::LetGo(device) => (self.let_go)(&device),
            Step::EndLater(device, remote) => {
                drop(tokio::spawn(end_if_gone(Arc::downgrade(self), device, remote)));
            }
            Step::Offer(hash) => self.offer(hash).await,
            Step::Fetch(digest) => drop(tokio::spawn(crate::drive::fetch(Arc::downgrade(self), digest))),
        }
    }

    /// Brings what is agreed on about a device up to date with what other nodes say.
    fn pin(&self, hash: DeviceHash) {
        if let Some(pin) = self.shared.pin_of(hash)
            && let Err(error) = aside(|| self.gateway.set_pin(&pin.key(), pin.agreed.as_deref()))
        {
            tracing::warn!(device = %pin.key(), "what another node agreed on could not be kept here: {error}");
        }
    }

    /// Brings the name and the labels of a device up to date with what other nodes say.
    fn mark(&self, hash: DeviceHash) {
        let key = {
            let members = lock(&self.members);
            let local = members.locals.get(&hash).map(|local| local.device.info().key.clone());
            local.or_else(|| members.cards.get(&hash).map(|card| card.info.key.clone()))
        };
        if let Some((key, marks)) = key.zip(self.shared.marks_of(hash))
            && let Err(error) = aside(|| self.gateway.set_marks(&key, marks))
        {
            tracing::warn!(device = %key, "what another node says of a device could not be kept here: {error}");
        }
    }

    /// What a record of the bucket `shared` says.
    pub(crate) fn handle_shared(&self, key: &str, text: &[u8]) {
        if let Some(device) = self.shared.handle_change(key, text) {
            self.step(Step::Mark(device));
        }
    }

    /// What the other nodes should know of this one.
    pub(crate) fn facts(&self) -> NodeFacts {
        NodeFacts::new(self.gateway.policy_version().to_string())
    }

    /// Tells the others of a device as it is now.
    async fn offer(self: &Arc<Core>, hash: DeviceHash) {
        let Some(device) = lock(&self.members).locals.get(&hash).map(|local| local.device.clone()) else { return };
        let (info, tools) = (device.info(), device.tools());
        let mut card = DeviceCard { info: (*info).clone(), tools: tools.digest().hex() };
        // The others try the id that it has here first.
        if let Some(id) = self.gateway.device_id(&info.key) {
            card.info.suggested_id = id.to_string();
        }
        if let Some(buckets) = self.buckets()
            && self.nats.connected().borrow().is_now
            && let Err(error) = self.toolsets.publish(&buckets.sets, &tools).await
        {
            tracing::debug!("tools are not in the cluster's store yet: {error}");
        }
        self.with(|members, now| {
            if members.current(hash, &device).is_some() {
                match info.status {
                    Status::Ready => members.presence.join(now, hash, info.family.reach, Arc::new(card)),
                    // Another node may be able to use it.
                    Status::Limited { .. } => members.presence.leave(now, hash),
                }
            }
        });
    }

    /// The distinct tools of the devices of this node.
    pub(crate) fn local_toolsets(&self) -> Vec<Arc<Toolset>> {
        let members = lock(&self.members);
        let all: BTreeMap<Digest, Arc<Toolset>> =
            members.locals.values().map(|local| local.device.tools()).map(|tools| (tools.digest(), tools)).collect();
        all.into_values().collect()
    }

    /// The key of a device of this node.
    pub(crate) fn local_key(&self, hash: DeviceHash) -> Option<DeviceKey> {
        lock(&self.members).locals.get(&hash).map(|local| local.device.info().key.clone())
    }

    /// Sends a message to a run of a node; with `nobody`, the answer that nobody listens comes to that subject. An error is a
    /// message that was not sent.
    pub(crate) async fn send(&self, to: &Owner, message: &NodeMessage, nobody: Option<&str>) -> Result<(), String> {
        let id = format!("{:x}.{:x}", self.me.boot.0, self.next_message.fetch_add(1, Ordering::Relaxed));
        let packets = packets(&self.me, &id, message).ok_or("it is too long to be sent between nodes")?;
        for packet in packets {
            self.nats.publish(self.settings.name.subject(to), packet, nobody.map(str::to_owned)).await?;
        }
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) async fn leave(self: &Arc<Core>, drain: Duration) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.with(|members, _| members.presence.retire());
        if self.nats.connected().borrow().is_now {
            let _ = tokio::time::timeout(FAREWELL, self.served.farewell.notified()).await;
        }
        if tokio::time::timeout(drain, self.served.ended()).await.is_err() {
            tracing::warn!(calls = self.served.len(), "calls of other nodes did not end in time");
        }
        self.nats.flush().await;
    }

    /// Answers what still runs and tells the other nodes that this one, which reads no further messages, answered every
    /// call that it took.
    pub(crate) async fn say_stopped(&self) {
        self.served.cut_off();
        let _ = tokio::time::timeout(FAREWELL, self.served.ended()).await;
        let connected = *self.nats.connected().borrow();
        if !connected.is_now || self.served.len() > 0 {
            return;
        }
        let connected_ms = u64::try_from(connected.whole_for().as_millis()).unwrap_or(u64::MAX);
        let stopped = NodeMessage { call: String::new(), body: MessageBody::Stopped { connected_ms } };
        let runs: Vec<Owner> = lock(&self.members).presence.runs().collect();
        for run in runs {
            let _ = self.send(&run, &stopped, None).await;
        }
        self.nats.flush().await;
    }

    pub(crate) fn status(&self) -> ClusterStatus {
        let members = lock(&self.members);
        let presence = &members.presence;
        let mut devices = presence.devices_per_node();
        let mut names: Vec<NodeId> = presence.peers().cloned().chain([self.me.node.clone()]).collect();
        names.sort();
        devices.insert(self.me.node.clone(), presence.held());
        let mut facts = self.shared.nodes();
        facts.insert(self.me.node.clone(), self.facts());
        let node = |name: NodeId| NodeStatus {
            devices: devices.get(&name).copied().unwrap_or_default(),
            policy: facts.get(&name).map(|facts| facts.policy.clone()),
            program: facts.get(&name).map(|facts| facts.program.clone()),
            name,
        };
        ClusterStatus {
            cluster: self.settings.name.as_str().to_owned(),
            node: self.me.node.clone(),
            is_connected: self.nats.connected().borrow().is_now,
            server: self.nats.server_version(),
            has_lease: presence.has_lease(self.now()),
            is_ready: presence.has_lease(self.now()) && presence.is_ready(),
            nodes: names.into_iter().map(node).collect(),
            moves: presence.moves(),
            waiting: presence.waiting(),
            unshared: self.shared.waiting(),
            ids_twice: self.shared.ids_twice(),
            calls_out: self.open.len(),
            calls_in: self.served.len(),
        }
    }
}

/// Ends a device of another node that no node held for a while.
async fn end_if_gone(core: Weak<Core>, device: DeviceHash, remote: Weak<RemoteDevice>) {
    tokio::time::sleep(RETURN_TIME).await;
    let (Some(core), Some(remote)) = (core.upgrade(), remote.upgrade()) else { return };
    core.with(|members, _| {
        let is_it = members.remotes.get(&device).is_some_and(|other| Arc::ptr_eq(other, &remote));
        if is_it && !members.cards.contains_key(&device) {
            members.remotes.remove(&device);
            let gone = "it left the gateway of the cluster that had it, or that gateway is gone";
            core.settle(members, device, LeaveReason::Broken(gone.to_owned()));
        }
    });
}

/// What the gateway shows of a device of another node.
fn shown_info(card: &DeviceCard, node: &NodeId) -> sinew_tool::DeviceInfo {
    let mut info = card.info.clone();
    info.attributes.insert("node", json!(node.as_str()));
    info
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
