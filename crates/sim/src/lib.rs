//! Virtual boards and phones, and bad luck: a product, not a test helper.
//!
//! [`board`] holds little machines that dial a gateway as real boards do, [`firmware`] boards with the tools
//! of somebody else's, [`luck`] what can go wrong on the way; [`crowd`] is many boards behind a broker, [`server`] an MCP
//! server there; [`phone`] is a virtual Android phone; [`conformance`] the fixture of the official suite.

pub mod board;
mod companion;
pub mod conformance;
mod conformance_ask;
pub mod crowd;
mod errand;
pub mod firmware;
mod life;
mod link;
pub mod luck;
mod ota;
pub mod phone;
pub mod picture;
mod relay;
pub mod server;
mod web;
