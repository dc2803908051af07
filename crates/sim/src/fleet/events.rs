//! What can happen in a fleet, ordered by time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use sinew_presence::{Boot, CallAnswer, DeviceHash, Fence, Key, ReadAnswer, Record, Revision, Ticket, WriteAnswer};
use sinew_presence::{NodeId, StoreId};

/// A place in the list of nodes.
pub(super) type NodeIndex = usize;

#[derive(Debug)]
pub(super) enum Event {
    /// For a node as it was when somebody wrote to it: after a restart it is another one.
    ForNode(NodeIndex, Boot, NodeEvent),
    StoreWrite(Asked, Key, Record<()>, Revision),
    StoreRead(Asked, Key),
    /// A device dials some node.
    Connect(u32),
    NewCall,
    CallArrives {
        call: u64,
        to: NodeIndex,
        boot: Boot,
        fence: Fence,
    },
    Churn,
    Trouble(Trouble),
    Recover(NodeIndex, Recovery),
    /// The nodes that were well must know by now that a node is dead.
    CheckNotice {
        dead: NodeIndex,
        since: Duration,
        store: StoreId,
    },
}

#[derive(Debug)]
pub(super) enum NodeEvent {
    Timer,
    Watch,
    Publish,
    Written(Ticket, WriteAnswer),
    WasRead(Ticket, ReadAnswer<()>),
    /// A connection is over.
    Closed {
        device: u32,
        link: u32,
    },
    Evict(DeviceHash, Fence, NodeId),
    Call {
        call: u64,
        fence: Fence,
    },
    CallAnswer {
        call: u64,
        answer: CallAnswer,
    },
}

/// Who asked the store, and which store it knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) node: NodeIndex,
    pub(super) boot: Boot,
    pub(super) store: StoreId,
    pub(super) ticket: Ticket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Kill,
    Pause,
    Cut,
    Lag,
    LoseStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    Restart,
    Resume,
    Rejoin,
    CatchUp,
}

/// Events in the order of their time, and of their making where that is the same.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Planned>>,
    made: u64,
}

struct Planned {
    at: Duration,
    order: u64,
    event: Event,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Duration, event: Event) {
        self.made += 1;
        self.heap.push(Reverse(Planned { at, order: self.made, event }));
    }

    /// The next event before `end`.
    pub(super) fn next(&mut self, end: Duration) -> Option<(Duration, Event)> {
        if self.heap.peek()?.0.at >= end {
            return None;
        }
        self.heap.pop().map(|Reverse(planned)| (planned.at, planned.event))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
