//! Both ends of the protocol against each other, and against recorded traffic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends a test")]

mod page;
mod pair;
mod transcript;
