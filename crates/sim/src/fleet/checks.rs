//! What must hold, whatever happens.

use std::collections::HashMap;
use std::time::Duration;

use sinew_presence::{Fence, Forward};

use super::events::NodeIndex;

/// More than a person reads.
const KEPT: usize = 20;

#[derive(Default)]
pub(super) struct Checks {
    pub(super) violations: Vec<String>,
    /// Who held each device under each fence.
    holders: HashMap<(u32, Fence), NodeIndex>,
    /// The newest fence under which somebody acted on a device that several nodes can reach.
    acted: HashMap<u32, (Fence, NodeIndex)>,
    /// For each node the number after the last event that the stream took from it.
    stream: HashMap<NodeIndex, u64>,
    /// Events in the stream, by node.
    pub(super) stored: u64,
    pub(super) calls: HashMap<u64, CallState>,
}

pub(super) struct CallState {
    pub(super) device: u32,
    pub(super) entry: NodeIndex,
    pub(super) forward: Forward,
    pub(super) executed: u32,
}

impl Checks {
    pub(super) fn violate(&mut self, now: Duration, what: String) {
        if self.violations.len() < KEPT {
            self.violations.push(format!("{:.3} s: {what}", now.as_secs_f64()));
        }
    }

    pub(super) fn hold(&mut self, now: Duration, device: u32, fence: Fence, node: NodeIndex) {
        let first = *self.holders.entry((device, fence)).or_insert(node);
        if first != node {
            self.violate(now, format!("device {device} is held by nodes {first} and {node} under {fence:?}"));
        }
    }

    /// A device ran a call.
    pub(super) fn execute(&mut self, now: Duration, call: u64, node: NodeIndex, shared_fence: Option<Fence>) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        state.executed += 1;
        let (device, executed) = (state.device, state.executed);
        if executed > 1 {
            self.violate(now, format!("call {call} was run {executed} times"));
        }
        let Some(fence) = shared_fence else { return };
        let (newest, by) = *self.acted.entry(device).or_insert((fence, node));
        if fence < newest {
            let what =
                format!("node {node} acted on device {device} under {fence:?} after node {by} did under {newest:?}");
            self.violate(now, what);
        } else {
            self.acted.insert(device, (fence, node));
        }
    }

    /// A call ended. `ran` says whether its caller was told so; `None` where it was told that nobody knows.
    pub(super) fn end_call(&mut self, now: Duration, call: u64, ran: Option<bool>) {
        let Some(state) = self.calls.remove(&call) else { return };
        if ran.is_some_and(|ran| ran != (state.executed == 1)) {
            let told = if ran == Some(true) { "that it ran" } else { "that nothing was sent" };
            self.violate(
                now,
                format!("the caller of call {call} was told {told}, and it ran {} times", state.executed),
            );
        }
    }

    /// The stream takes an event, unless it has it. `first` is the oldest that the node still had.
    pub(super) fn store_event(&mut self, now: Duration, node: NodeIndex, number: u64, first_kept: u64) {
        let next = *self.stream.entry(node).or_default();
        if number < next {
            return;
        }
        if number > next.max(first_kept) {
            self.violate(now, format!("the stream took event {number} of node {node} before event {next}"));
        }
        self.stream.insert(node, number + 1);
        self.stored += 1;
    }
}
