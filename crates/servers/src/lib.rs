//! MCP servers that Sinew calls: boards and programs that wait for requests, where others dial in.
//!
//! [`settings`] is what the configuration says of them. [`run`] follows one of them (`follow`) and speaks MCP
//! (`session`) over HTTP (`http_link`) or with a process (`process_link`). What the gateway sees is a device (`device`).
//!
//! [`find`] looks for servers on the network. Foreign bytes are read in [`mdns`], [`sse`] and [`message`], and in `sinew_wire`, whose reading of tool lists and results
//! knows the mistakes of boards.

#![warn(unreachable_pub)]

mod device;
mod find;
mod follow;
mod headers;
mod http_exchange;
mod http_link;
mod link;
pub mod mdns;
pub mod message;
mod process_link;
mod questions;
mod session;
mod settings;
pub mod sse;

use std::io;
use std::sync::Arc;

use sinew_tool::{Admit, Announce};
use tokio_util::sync::CancellationToken;

pub use find::{FoundServer, find};
pub use settings::{FindSettings, ServerConfig, ServerPlace, ServerPlan, plan};

/// Follows one server until `shutdown`, also while it is away. `known` says which devices were connected before.
pub async fn run(
    plan: ServerPlan,
    known: Arc<dyn Admit>,
    announce: Announce,
    shutdown: CancellationToken,
) -> io::Result<()> {
    follow::ServerTask { plan, known, announce, end: shutdown }.run().await;
    Ok(())
}
