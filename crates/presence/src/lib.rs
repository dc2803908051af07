//! Which node of a cluster holds which device, decided without sockets and without a clock.
//!
//! Nodes are leased, devices are not: a node renews one record, and an entry of a device counts as long as the node that
//! wrote it is alive. All records are changed by compare-and-set. The revision that a claim got is the *fence* of the
//! device: every call carries the fence it was routed by, and a node that holds the device under another one refuses it.
//! A device that several nodes can reach is held no longer than the *term* of the lease in which it was claimed: a claim
//! that arrives after its node lost the lease holds nothing, neither there nor elsewhere.
//!
//! [`Presence`] is the state of one node. After each `handle_*`, call [`Presence::poll`] until it returns `None`, do what
//! it says, and call [`Presence::handle_time`] at [`Presence::next_time`]. Time is an argument: the duration since any
//! zero of the owner's choosing. The cluster over NATS and the simulation run the same code.
//!
//! - `records`: what is kept in the store, and how it is asked
//! - `lease`: our own lease; `peers`: the other nodes, and when one is declared dead
//! - `claims`: our own devices; `mirror`: the entries of all devices
//! - `forward`: what the answer of another node means for a call; `outbox`: events that wait for the store

#![warn(unreachable_pub)]

mod claims;
mod forward;
mod lease;
mod mirror;
mod outbox;
mod peers;
mod presence;
mod records;

pub use forward::{CallAnswer, Forward, NextHop};
pub use outbox::Outbox;
pub use presence::{Output, Presence, PresenceEvent, Refusal, Route, Timing};
pub use records::{
    Boot, Change, DeviceHash, Entry, Fence, Key, NodeId, Owner, ReadAnswer, Record, Revision, StoreId, Term, Ticket,
    WriteAnswer,
};
