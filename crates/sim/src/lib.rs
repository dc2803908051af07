//! Virtual boards and phones, and bad luck.

pub mod board;
mod companion;
mod life;
mod link;
pub mod luck;
pub mod phone;
pub mod picture;
mod relay;
pub mod conformance;
mod conformance_ask;
