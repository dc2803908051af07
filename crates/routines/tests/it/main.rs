//! Routines from their files to their answers, without a gateway.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod files;
mod following;
mod reading;
mod recording;
mod running;
