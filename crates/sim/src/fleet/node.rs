//! One node of the fleet, and the devices that are connected to it.

use std::collections::HashMap;
use std::time::Duration;

use sinew_presence::{Boot, DeviceHash, NodeId, Outbox, Owner, Presence, StoreId, Timing};

use super::events::NodeEvent;
use crate::chance::mix;

/// How many events a node keeps while the store is away.
const EVENTS_KEPT: usize = 10_000;

pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) boot: Boot,
    pub(super) presence: Presence<()>,
    pub(super) power: Power,
    /// When the process ended, until it starts again.
    pub(super) died: Option<Duration>,
    /// Without the network.
    pub(super) is_cut: bool,
    /// How far its watch is behind.
    pub(super) lag: Duration,
    /// Since when nothing was wrong with it.
    pub(super) well_since: Option<Duration>,
    /// How much of the log it has seen, of which store, and until where it was when it began.
    pub(super) position: usize,
    pub(super) store: Option<StoreId>,
    pub(super) sync_until: Option<usize>,
    pub(super) timer: Option<Duration>,
    /// The connection of each device, and when it began if it was not claimed yet.
    pub(super) links: HashMap<u32, (u32, Option<Duration>)>,
    /// On disk: it outlives the process.
    pub(super) outbox: Outbox<u64>,
    /// What came while it was paused.
    pub(super) backlog: Vec<NodeEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Up,
    Paused,
    Down,
}

impl Node {
    /// `None` beyond as many nodes as names have room for.
    pub(super) fn new(index: usize, boot: Boot, timing: Timing, outbox: Option<Outbox<u64>>) -> Option<Node> {
        let id = NodeId::parse(&format!("node-{index}"))?;
        Some(Node {
            presence: Presence::new(Owner { node: id.clone(), boot }, timing),
            id,
            boot,
            power: Power::Up,
            died: None,
            is_cut: false,
            lag: Duration::ZERO,
            well_since: Some(Duration::ZERO),
            position: 0,
            store: None,
            sync_until: None,
            timer: None,
            links: HashMap::new(),
            outbox: outbox.unwrap_or_else(|| Outbox::new(EVENTS_KEPT)),
            backlog: Vec::new(),
        })
    }

    pub(super) fn is_up(&self) -> bool {
        self.power == Power::Up
    }

    /// Whether nothing was wrong with it since then.
    pub(super) fn was_well_since(&self, then: Duration) -> bool {
        self.is_up() && self.well_since.is_some_and(|since| since <= then)
    }
}

/// A device somewhere in the world.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// For a device that several nodes can reach, those two.
    pub(super) reached_by: Option<[usize; 2]>,
    /// Where a device with one link is connected.
    pub(super) home: Option<usize>,
    pub(super) link: u32,
}

/// Hashes are spread evenly, as those of real keys are.
pub(super) fn hash_of(device: u32) -> DeviceHash {
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&mix(u64::from(device) + 1).to_be_bytes());
    hash[12..].copy_from_slice(&device.to_be_bytes());
    DeviceHash(hash)
}

pub(super) fn device_of(hash: DeviceHash) -> u32 {
    let [.., a, b, c, d] = hash.0;
    u32::from_be_bytes([a, b, c, d])
}
