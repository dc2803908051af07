//! Boards that the runner runs, over real sockets and a real broker.

#![allow(clippy::unwrap_used, clippy::panic)]

mod mqtt;
mod websocket;

use sinew_runner::device::{Board, Property, ToolSpec};

fn lamp() -> Board {
    let spec = ToolSpec::new("self.lamp.switch", "Switch the lamp").with(Property::boolean("on"));
    Board::new("lamp", "1.0.0").tool(spec, |arguments| Ok(arguments.boolean("on")?.into()))
}
