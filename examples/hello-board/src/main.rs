//! A board in under 40 lines: a lamp that can be switched and asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sinew_runner::device::{Board, Property, ToolSpec};
use sinew_runner::{CancellationToken, Dialer, Identity, RunError, Trust};

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let url = std::env::args().nth(1).unwrap_or("ws://127.0.0.1:7301/xiaozhi/v1/".to_owned());
    // The gateway knows the board by its hardware id: a MAC address in lower case.
    let mut identity = Identity::new("02:00:00:5e:11:0a");
    identity.token = std::env::var("BOARD_TOKEN").ok();

    let lit = Arc::new(AtomicBool::new(false));
    let lamp = lit.clone();
    let board = Board::new("hello-board", "1.0.0")
        .tool(
            ToolSpec::new("self.lamp.switch", "Switch the lamp on or off.")
                .with(Property::boolean("on").describe("true for light")),
            move |arguments| {
                lamp.store(arguments.boolean("on")?, Ordering::Relaxed);
                Ok(true.into())
            },
        )
        .tool(ToolSpec::new("self.lamp.get", "Say whether the lamp is lit."), move |_| {
            Ok(lit.load(Ordering::Relaxed).into())
        });

    let dialer = Dialer::new(&url, &Trust::System)?.with_report(|news| println!("{news}"));
    dialer.run(board, identity, CancellationToken::new()).await
}
