//! Virtual boards and phones, and faults: part of the product, not only for tests.
//!
//! [`board`] holds little machines that dial a gateway as real boards do, [`firmware`] boards with the tools
//! of somebody else's, [`faults`] what can go wrong on the way; [`crowd`] is many boards behind a broker, [`server`] an MCP
//! server there; [`http_board`] a board that is an MCP server over HTTP; [`voice`] is a voice server, and [`speech`] what is
//! said to a board; [`phone`] is a virtual Android phone; [`conformance`] the fixture of the official suite; [`fleet`] a cluster of
//! gateways in virtual time.

#![warn(unreachable_pub)]

pub mod board;
mod chance;
pub mod conformance;
mod conformance_ask;
pub mod crowd;
pub mod desk;
pub mod faults;
pub mod firmware;
pub mod fleet;
pub mod http_board;
mod link;
pub mod mdns;
mod news;
mod ota;
pub mod phone;
pub mod picture;
mod relay;
mod run;
pub mod server;
pub mod speech;
mod straight_calls;
mod talking_board;
mod upload;
pub mod voice;
mod web;

pub use straight_calls::StraightCalls;
