//! How a gateway finds the others.

use std::path::PathBuf;

use sinew_presence::{NodeId, Owner, Timing};

use crate::records::boot_text;

/// The settings of one node.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// `nats://HOST:PORT`, several with commas between them.
    pub nats: String,
    /// The name of the cluster; several clusters can share one NATS.
    pub name: ClusterName,
    /// The name of this gateway, unique in its cluster.
    pub node: NodeId,
    /// A credentials file of NATS.
    pub credentials: Option<PathBuf>,
    /// Refuse a connection without TLS.
    pub tls: bool,
    /// Certificates to trust, beside those of the system.
    pub tls_ca: Option<PathBuf>,
    pub timing: Timing,
}

impl ClusterSettings {
    pub fn new(nats: impl Into<String>, name: ClusterName, node: NodeId) -> ClusterSettings {
        let (nats, timing) = (nats.into(), Timing::default());
        ClusterSettings { nats, name, node, credentials: None, tls: false, tls_ca: None, timing }
    }
}

/// The name of a cluster: as that of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(NodeId);

impl ClusterName {
    pub fn parse(text: &str) -> Option<ClusterName> {
        NodeId::parse(text).map(ClusterName)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Where a run of a node hears from others. What was meant for an earlier run, or for another gateway of its name,
    /// does not come to it.
    pub(crate) fn subject(&self, run: &Owner) -> String {
        format!("sinew.{}.node.{}.{}", self.as_str(), run.node, boot_text(run.boot))
    }

    /// Where a node hears that nobody listens.
    pub(crate) fn nobody(&self, node: &NodeId, call: &str) -> String {
        format!("sinew.{}.nobody.{node}.{call}", self.as_str())
    }

    /// A bucket of the store.
    pub(crate) fn bucket(&self, what: &str) -> String {
        format!("sinew-{}-{what}", self.as_str())
    }
}
