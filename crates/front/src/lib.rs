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
#[cfg(feature = "conformance")]
mod conformance;
pub mod dialout;
pub mod echo;
mod endpoint;
mod express;
mod extras;
mod follow;
mod guard;
mod hall;
pub mod http;
// Public for the fuzz targets alone.
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod lines;
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

pub use tls::TlsIdentity;
pub use upgrade::PROTOCOL as STREAM_PROTOCOL;

/// A gateway and how its doors are set up.
#[derive(Clone)]
pub struct Front {
    pub gateway: Gateway,
    pub settings: Settings,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Names that `Host` may carry besides the loopback ones; with a port, that port alone.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call besides those on loopback: `https://console.example`.
    pub allowed_origins: Vec<String>,
    /// Nobody needs a token. Only for test suites that cannot send one, and only on loopback.
    pub open: bool,
    /// Tools and resources on one page of a list.
    pub page_size: usize,
    pub limits: Limits,
    /// How long open calls may still run after the gateway was told to stop.
    pub drain: Duration,
    /// Adds the prompts, templates and resources that the conformance suite wants and devices
    /// cannot have.
    #[cfg(feature = "conformance")]
    pub conformance: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            open: false,
            // Some clients read the first page only, so it should hold what a household has.
            page_size: 200,
            limits: Limits::default(),
            drain: Duration::from_secs(5),
            #[cfg(feature = "conformance")]
            conformance: false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one message.
    pub body: usize,
    /// Connections open at once; further ones wait in the system's queue.
    pub connections: usize,
    /// Sessions of clients that speak a revision with `initialize`. Each costs about 50 KiB. The one that was quiet
    /// longest and has no stream open makes room for a new one.
    pub sessions: usize,
    /// How many of these one token may have open.
    pub sessions_each: usize,
    /// Bytes that all requests being handled may take in memory together.
    pub bodies: usize,
    /// Bytes of answers that may wait together for clients to read them.
    pub answers: usize,
    /// A connection on which nothing could be written for this long is closed.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 4 << 20,
            connections: 4096,
            sessions: 512,
            sessions_each: 64,
            bodies: 96 << 20,
            answers: 128 << 20,
            stall: Duration::from_secs(60),
        }
    }
}
