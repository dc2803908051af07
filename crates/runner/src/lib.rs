//! Runs a board written with the SDK ([`device`]) over a socket: it dials the gateway as firmware does,
//! says hello, serves, and dials again when the connection ends.
//!
//! ```no_run
//! use sinew_runner::device::{Board, ToolSpec};
//! use sinew_runner::{CancellationToken, Dialer, Identity, RunError, Trust};
//!
//! # async fn example() -> Result<(), RunError> {
//! let board = Board::new("clock", "1.0.0")
//!     .tool(ToolSpec::new("self.tick", "Say tick"), |_| Ok("tick".into()));
//! let identity = Identity::new("02:00:00:5e:11:0a").with_token("the device's token");
//! let dialer = Dialer::new("ws://192.168.1.5:7301/xiaozhi/v1/", &Trust::System)?;
//! dialer.run(board, identity, CancellationToken::new()).await
//! # }
//! ```
//!
//! A board that also speaks unasked implements [`Firmware`] itself. The guide is `docs/sdk.md`.
//!
//! - `firmware`: what a runner runs
//! - `identity`: what a board says of itself when it connects
//! - `trust`: whose certificate a board believes
//! - `pause`: how long to wait before dialling again
//! - `address`: where a gateway is, and its bytes
//! - `dialer`: the way to it, whichever it is
//! - `report`: what happens to the connection
//! - `websocket` (feature `websocket`, on by default): the socket and the life on it
//! - `mqtt` (feature `mqtt`): the same at a gateway's MQTT door, and through a broker

#![warn(unreachable_pub)]

#[cfg(any(feature = "mqtt", feature = "websocket"))]
mod address;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
mod backoff;
mod dial_queue;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
mod dialer;
mod error;
mod firmware;
mod identity;
#[cfg(feature = "mqtt")]
mod mqtt;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
mod report;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
mod trust;
#[cfg(feature = "websocket")]
mod websocket;

#[cfg(any(feature = "mqtt", feature = "websocket"))]
pub use address::{ByteStream, GatewayAddress};
#[cfg(any(feature = "mqtt", feature = "websocket"))]
pub use dialer::Dialer;
pub use error::RunError;
pub use firmware::{Firmware, HangUp};
pub use identity::Identity;
#[cfg(feature = "mqtt")]
pub use mqtt::Account;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
pub use report::ConnectionNews;
pub use sinew_wire::device;
pub use tokio_util::sync::CancellationToken;
#[cfg(any(feature = "mqtt", feature = "websocket"))]
pub use trust::Trust;

/// The guide's snippets are compiled and run with the tests.
#[cfg(all(doctest, feature = "mqtt", feature = "websocket"))]
#[doc = include_str!("../../../docs/sdk.md")]
struct Guide;
