//! The board's end of the protocol: an SDK for firmware and single-board computers.
//!
//! A [`Board`] has a name, a version and tools. A tool is a [`ToolSpec`] (name, description,
//! [`Property`]s) and a handler, which gets checked [`Arguments`] and gives a [`Reply`]. There is no
//! socket and no clock: text goes in, text comes out.
//!
//! - `board`: hello, envelope, and which request gets which answer
//! - `spec`: what a tool takes
//! - `arguments`: what a call brings, checked
//! - `reply`: what a tool gives back
//! - `pages`: the tool list in pages that fit an MQTT message
//! - `write`: messages written once, into a buffer of their size

mod arguments;
mod board;
mod pages;
mod reply;
mod spec;
mod write;

pub use arguments::{Argument, Arguments};
pub use board::{Board, BoardDialect};
pub use pages::PAGE_BYTES;
pub use reply::Reply;
pub use spec::{Property, ToolSpec};
