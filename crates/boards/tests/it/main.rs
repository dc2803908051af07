//! The door for boards on real loopback sockets: against virtual boards, and against clients that
//! misbehave in every way we could think of.

// What cannot be is a failed test.
#![allow(clippy::panic)]

mod calls;
mod door;
mod luck;
mod support;
mod trouble;
