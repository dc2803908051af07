//! The doors: MCP over stdio, Streamable HTTP and a broker dialled into, the remote-control REST door,
//! administration.
//!
//! Everything that comes in becomes a caller, a public name and arguments for
//! [`sinew_gateway::Gateway`]; everything that goes back is put into the words of the door it came
//! through. This is the only crate that knows rmcp, and no door decides anything itself.

mod answer;
mod api;
mod ask;
mod body;
#[doc(hidden)]
pub mod budget;
mod call;
mod conformance;
pub mod dialout;
pub mod echo;
mod endpoint;
mod express;
mod extras;
mod follow;
mod guard;
mod hall;
mod hosts;
pub mod http;
// Public for the fuzz targets alone.
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod lines;
mod listing;
mod mcp;
mod outbox;
mod patience;
mod picture;
mod query;
mod refusals;
mod reply;
mod resources;
mod rest;
mod sessions;
pub mod stdio;
pub mod tls;
mod translate;
mod upgrade;
mod weight;
mod words;

use std::time::Duration;

use sinew_gateway::Gateway;

pub use hosts::is_host;
pub use tls::TlsIdentity;
pub use upgrade::PROTOCOL as STREAM_PROTOCOL;

/// A gateway and how its doors are set up.
#[derive(Clone)]
pub struct Front {
    pub gateway: Gateway,
    pub settings: Settings,
}

sinew_tool::settings! {
    /// How clients are served.
    pub struct Settings {
        /// Further host names under which clients reach the gateway, besides loopback and the machine's own; with a
        /// port, that port alone. Requests with another `Host` header are refused.
        pub allowed_hosts: Vec<String> = Vec::new(), check hosts::check_hosts;
        /// Further web origins whose pages may call the gateway, besides those on loopback: `https://app.example`.
        pub allowed_origins: Vec<String> = Vec::new(), check hosts::check_origins;
        /// Tools and resources on one page of a list.
        // Some clients read the first page only, so it should hold what a household has.
        pub page_size: usize = 200, within 1..=10_000;
        /// Seconds that open calls may still take after the gateway was told to stop.
        pub drain: Duration = Duration::from_secs(5), within 0..=3_600;
        /// What one gateway bears.
        pub limits: Limits = Limits::default();
    }
    internal {
        /// Nobody needs a token. Only for test suites that cannot send one, and only on loopback.
        pub open: bool = false;
        /// Adds the prompts, templates and resources that the conformance suite wants and devices cannot have.
        pub conformance: bool = false;
    }
}

sinew_tool::settings! {
    /// What clients may use at once.
    pub struct Limits {
        /// Bytes of one message.
        pub body: usize = 4 << 20, within 1024..=1_073_741_824;
        /// Connections open at once; further ones wait in the system's queue.
        pub connections: usize = 4096, within 1..=1_000_000;
        /// Sessions of clients that speak a revision with `initialize`. Each costs about 50 KiB. The one that was quiet
        /// longest and has no stream open makes room for a new one.
        pub sessions: usize = 512, within 1..=1_000_000;
        /// How many of these one token may have open.
        pub sessions_each: usize = 64, within 1..=1_000_000;
        /// Bytes that all requests being handled may take in memory together.
        pub bodies: usize = 96 << 20, within 1_048_576..=1_099_511_627_776;
        /// Bytes of answers that may wait together for clients to read them.
        pub answers: usize = 128 << 20, within 1_048_576..=1_099_511_627_776;
        /// Seconds after which a connection is closed on which nothing could be written.
        pub stall: Duration = Duration::from_secs(60), within 1..=3_600;
    }
}
