//! A gateway with its listeners, in this process.

#![allow(clippy::panic)]

mod console;
mod relay;
mod routine_rights;
mod routines;
mod stopping;
