//! A gateway with its listeners, in this process.

#![allow(clippy::panic)]

mod relay;
mod routines;
mod stopping;
