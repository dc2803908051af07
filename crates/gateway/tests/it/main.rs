//! The gateway with devices that exist only here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod access;
mod approvals;
mod audit;
mod calls;
mod coming_and_going;
mod costly;
mod decisions;
mod events;
mod fake;
mod folding;
mod forgetting;
mod full_disk;
mod killed;
mod labels;
mod leases;
mod memory;
mod new_family;
mod pages;
mod parts;
mod pins;
mod shared;
mod sources;
mod specifications;
mod store;
mod tokens;
mod traces;
mod upgrade;
mod watching;
