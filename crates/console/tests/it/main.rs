//! The console over real sockets: who gets in, what pages of others can do, and what is shown of hostile devices.

#![allow(clippy::unwrap_used, clippy::panic)]

mod approvals;
mod browser;
mod consent;
mod proxy;
mod sessions;
mod streams;
