//! Many gateways as one, over NATS with JetStream.
//!
//! Devices connect to any gateway (*node*) of the cluster, and each node lists and calls all of them. Which node holds a
//! device is decided by `sinew-presence`; this crate brings it to a real store, shows the devices of other nodes as
//! devices of this one, and carries calls to the node that holds the device.
//!
//! - `nats`: the connection, the only module that knows the client library
//! - `records`, `messages`: what is kept in the store, and what nodes say to each other; every byte is checked
//! - `members`: the devices of this node and of others, and which of the two the gateway sees
//! - `core`: what all parts share; `drive`: the connection to the store, kept up
//! - `toolsets`: tools of devices, which travel once for each distinct content
//! - `sharing`: tokens, public names, ids and marks of devices, and keys, which all nodes share
//! - `remote`: a device of another node, and calls to it; `serve`: calls from other nodes
//! - `leases`: reserving a device at the node that has it
//! - `foreign`: the parsers, for the fuzz targets
//! - `guarded`: a device of this node that other nodes can reach too
//!
//! All nodes of a cluster trust each other, and everybody whom NATS lets publish to the cluster's subjects: accounts of
//! NATS are the boundary.

#![warn(unreachable_pub)]

mod core;
mod drive;
#[doc(hidden)]
pub mod foreign;
mod guarded;
mod leases;
mod members;
mod messages;
mod nats;
mod records;
mod remote;
mod serve;
mod settings;
mod sharing;
mod toolsets;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sinew_gateway::Gateway;
pub use sinew_presence::{NodeId, Timing};
use sinew_tool::Device;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
pub use crate::core::{ClusterStatus, NodeStatus};
pub use crate::settings::{ClusterName, ClusterSettings};
pub use crate::sharing::Sharing;

/// How long calls from other nodes may take to end when this node stops.
const DRAIN: Duration = Duration::from_secs(30);

/// One gateway's part in a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    core: Arc<Core>,
}

impl Cluster {
    /// Joins a gateway, which was opened with `sharing`, to a cluster: from now on, what its families announce goes through the cluster. Returns before NATS
    /// can be reached; an error is one that waiting does not cure. `let_go` ends the connection of a device that
    /// connected to another node.
    pub async fn open(
        settings: ClusterSettings,
        sharing: Sharing,
        gateway: Gateway,
        let_go: impl Fn(&Arc<dyn Device>) + Send + Sync + 'static,
    ) -> Result<Cluster, String> {
        Ok(Cluster { core: Core::open(settings, sharing, gateway, Box::new(let_go)).await? })
    }

    /// Keeps the connection up until shutdown. Outlasts [`Cluster::serve`], so that calls to other nodes are answered.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        drive::run(self.core, shutdown).await;
        Ok(())
    }

    /// Waits for shutdown, then leaves the cluster: the other nodes send no further calls, and those under way are
    /// answered.
    pub async fn serve(self, shutdown: CancellationToken) -> io::Result<()> {
        shutdown.cancelled().await;
        self.leave(DRAIN).await;
        Ok(())
    }

    /// Takes no further part: the devices of this node are gone for the others at once.
    pub async fn leave(&self, drain: Duration) {
        self.core.leave(drain).await;
    }

    pub fn status(&self) -> ClusterStatus {
        self.core.status()
    }
}
