//! The endpoints for clients: MCP over stdio, Streamable HTTP and a dial-out connection to a broker, the REST
//! interface of the remote-control reference, and administration.
//!
//! Every request becomes a caller, a public tool name and arguments for [`sinew_gateway::Gateway`]; every result is
//! translated back into the protocol it came through. This is the only crate that knows rmcp. It makes no decisions
//! of its own.

#![warn(unreachable_pub)]

mod api;
mod backup;
mod batch;
mod body;
mod call;
mod caller;
mod cluster;
mod conformance;
mod connection_places;
mod console;
mod counted_body;
mod decisions;
pub mod dialout;
pub mod echo;
mod endpoint;
mod fast_call;
mod file_resources;
mod guard;
mod hosts;
pub mod http;
mod http_batch;
mod id_scanner;
mod image_size;
// Public only for the fuzz targets.
#[doc(hidden)]
pub mod inspect;
mod leases;
#[doc(hidden)]
pub mod line_transport;
mod listing;
mod live_call;
mod mcp;
#[doc(hidden)]
pub mod memory;
mod message_memory;
mod metrics;
mod notify;
mod outbox;
mod overview;
mod phones;
mod query;
mod refusals;
mod reply;
mod resources;
mod rest;
mod revision;
mod routines;
mod servers;
mod sessions;
mod sign_in;
mod stall;
mod state;
pub mod stdio;
mod subscribed_uris;
pub mod tls;
mod to_api;
mod trace;
mod tracked_body;
mod translate;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use sinew_gateway::Gateway;
use sinew_signin::SignIn;

pub use cluster::ClusterView;
pub use console::{ConsoleHost, ConsolePages, PeerAddress};
pub use hosts::{check_origins, is_host};
pub use listing::{ListForm, Schemas};
pub use query::pairs as query_pairs;
pub use routines::RoutineFiles;
pub use servers::ServerList;
pub use sign_in::connect_role;
pub use sinew_tool::lenient::repair;
pub use tls::TlsIdentity;
pub use to_api::audit_check;
pub use upgrade::PROTOCOL as STREAM_PROTOCOL;

/// A gateway and the settings of its client endpoints.
#[derive(Clone)]
pub struct Front {
    pub gateway: Gateway,
    pub settings: FrontSettings,
    /// The MCP servers that the gateway calls, where it does.
    pub servers: Option<Arc<dyn ServerList>>,
    /// The files of its routines, where it has some.
    pub routines: Option<Arc<dyn RoutineFiles>>,
    /// The console, where there is one.
    pub console: Option<Arc<dyn ConsolePages>>,
    /// How clients without a token sign in, where they may.
    pub sign_in: Option<Arc<SignIn>>,
    /// The cluster that the gateway is a part of.
    pub cluster: Option<Arc<dyn ClusterView>>,
}

impl Front {
    /// Endpoints of a gateway that calls no servers and has no routines and no console.
    pub fn new(gateway: Gateway, settings: FrontSettings) -> Front {
        Front { gateway, settings, servers: None, routines: None, console: None, sign_in: None, cluster: None }
    }
}

sinew_tool::settings! {
    /// How clients are served.
    pub struct FrontSettings {
        /// Further host names under which clients reach the gateway, besides loopback and the machine's own; with a
        /// port, that port alone. Requests with another `Host` header are refused.
        pub allowed_hosts: Vec<String> = Vec::new(), check hosts::check_hosts;
        /// Further web origins whose pages may call the gateway, besides those on loopback: `https://app.example`.
        pub allowed_origins: Vec<String> = Vec::new(), check hosts::check_origins;
        /// Address under which people and clients reach the gateway, for links: `https://sinew.example`. By default that of
        /// the listener, where others cannot use it.
        pub public_url: Option<String> = None, check hosts::check_public_url;
        /// Tools and resources on one page of a list.
        // Some clients read only the first page, so it should hold all tools of a home.
        pub page_size: usize = 200, within 1..=10_000;
        /// Seconds that open calls may still take when the gateway stops.
        pub drain: Duration = Duration::from_secs(5), within 0..=3_600;
        /// Limits for all clients together.
        pub limits: FrontLimits = FrontLimits::default();
    }
    internal {
        /// Nobody needs a token. Only for test suites that cannot send one, and only on loopback.
        pub open: bool = false;
        /// Adds the prompts, templates and resources that the conformance suite needs and devices do not have.
        pub conformance: bool = false;
    }
}

sinew_tool::settings! {
    /// What clients may use at once.
    pub struct FrontLimits {
        /// Bytes of one message.
        pub body: usize = 4 << 20, within 1024..=1_073_741_824;
        /// Connections that have sent a token. Beyond it, the token with the most loses the connection that was idle longest.
        pub connections: usize = 4096, within 1..=1_000_000;
        /// Connections of one token.
        pub connections_each: usize = 1024, within 1..=1_000_000;
        /// Connections that have not sent a token yet; they never take the places of those that have. Beyond it, the address
        /// with the most loses the connection that was idle longest.
        pub strangers: usize = 1024, within 1..=1_000_000;
        /// Such connections from one address, or from one /64 of IPv6.
        pub strangers_each: usize = 256, within 1..=1_000_000;
        /// Sessions of clients that speak a revision with `initialize`. Each costs about 50 KiB. When there are too many,
        /// the session that was idle longest and has no open stream is closed.
        pub sessions: usize = 512, within 1..=1_000_000;
        /// Sessions that one token may have open.
        pub sessions_each: usize = 64, within 1..=1_000_000;
        /// Bytes of memory for all requests that are being handled.
        pub bodies: usize = 96 << 20, within 1_048_576..=1_099_511_627_776;
        /// Such bytes of one token: a client that sends its requests slowly takes no room from the others. The largest
        /// request takes 36 MiB.
        pub bodies_each: usize = 48 << 20, within 1_048_576..=1_099_511_627_776;
        /// Bytes of answers that clients have not read yet, all together.
        pub answers: usize = 128 << 20, within 1_048_576..=1_099_511_627_776;
        /// Such bytes of one token: a client that does not read takes no room from the others. The largest answer has 22 MiB.
        pub answers_each: usize = 64 << 20, within 1_048_576..=1_099_511_627_776;
        /// Seconds without being able to write after which a connection is closed.
        pub stall: Duration = Duration::from_secs(60), within 1..=3_600;
    }
}
