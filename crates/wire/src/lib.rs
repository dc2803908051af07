//! The board protocol, both ends, without sockets or clock.
//!
//! A board keeps a WebSocket or MQTT connection to the gateway. Both say hello; then JSON-RPC travels in
//! an envelope, `{"session_id": …, "type": "mcp", "payload": {…}}`, in which the gateway asks
//! (`initialize`, `tools/list`, `tools/call`) and the board answers, a subset of MCP 2024-11-05.
//!
//! - [`device`]: the board's end, an SDK for firmware and single-board computers. It needs only `alloc`.
//! - [`host`] (feature `host`, on by default): the gateway's end, which also copes with everything real
//!   firmware does differently.
//! - [`sound`] (feature `host`): the packets that carry the sound of boards on MQTT.
//! - [`Moment`], [`Transport`], [`Vision`]: words of both.
//!
//! # A board in a few lines
//!
//! Whatever carries the text, a socket or a serial line, hands it to [`device::Board::handle_text`] and
//! sends back what it gets; `sinew-runner` does so over a WebSocket:
//!
//! ```
//! use sinew_wire::device::{Board, Property, Reply, ToolSpec};
//!
//! let mut lit = false;
//! let mut board = Board::new("garden-lamp", "1.0.0").tool(
//!     ToolSpec::new("self.lamp.switch", "Switch the lamp on or off")
//!         .with(Property::boolean("on").describe("true for light")),
//!     move |arguments| {
//!         lit = arguments.boolean("on")?;
//!         Ok(Reply::from(lit))
//!     },
//! );
//!
//! let hello = board.hello();
//! assert!(hello.contains(r#""mcp":true"#));
//!
//! board.handle_text(r#"{"type":"hello","transport":"websocket","session_id":"s1"}"#);
//! let answer = board.handle_text(
//!     r#"{"type":"mcp","payload":{"jsonrpc":"2.0","method":"tools/call","id":3,
//!         "params":{"name":"self.lamp.switch","arguments":{"on":true}}}}"#,
//! );
//! assert!(answer.is_some_and(|text| text.contains(r#""text":"true""#)));
//! ```
//!
//! # Bare metal
//!
//! `sinew-wire = { version = "…", default-features = false }` leaves the device half, which builds for
//! targets such as `riscv32imc-unknown-none-elf` with a global allocator.
//!
//! # Not implemented
//!
//! - Opus: sound is passed on as it comes, and never decoded.
//! - The messages around speech (`listen`, `tts`, `stt`, `llm`, `abort`): the host passes them to the voice server of a
//!   relayed board, and otherwise on as notices; the device ignores them.
//! - MCP beyond tools: no resources, prompts, sampling or logging; boards have none.
//! - JSON-RPC batches.
//! - Tools that take their time inside the SDK: a handler answers before it returns.
//! - `notifications/cancelled`: firmware ignores notifications, so none is sent.
//!
//! # Anti-goals
//!
//! No macros, no derive, no generic cleverness: a board's author should be able to read all of it.

#![warn(unreachable_pub)]
#![cfg_attr(not(feature = "host"), no_std)]

extern crate alloc;

mod common;
pub mod device;
#[cfg(feature = "host")]
pub mod host;
mod moment;
#[cfg(feature = "host")]
mod raw;
#[cfg(feature = "host")]
pub mod sound;
#[cfg(feature = "host")]
mod workarounds;

pub use common::{PROTOCOL_VERSION, Transport, Vision};
pub use moment::Moment;
