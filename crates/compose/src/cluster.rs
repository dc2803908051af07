//! `[cluster]`: several gateways as one.

use std::path::PathBuf;
use std::sync::Arc;

use sinew_boards::Boards;
use sinew_front::ClusterView;
use sinew_gateway::Gateway;

use crate::config::ConfigProblem;
use crate::error::Error;
use crate::tasks::TaskGroup;

sinew_tool::settings! {
    /// Several gateways as one, joined by NATS with JetStream.
    pub struct ClusterConfig {
        /// Where NATS is: `nats://HOST:PORT`, or `tls://HOST:PORT`; several servers with commas between them. Required.
        pub nats: String = String::new();
        /// Name of the cluster. Clusters of different names can share one NATS.
        pub name: String = "main".to_owned(), check |name| check_name(name);
        /// Name of this gateway, unique in its cluster. By default the name of the machine.
        pub node: Option<String> = None, check |node| node.as_ref().map_or(Ok(()), |node| check_name(node));
        /// File with the credentials for NATS. Relative to this file.
        pub credentials: Option<PathBuf> = None;
        /// Refuse a connection to NATS without TLS.
        pub tls: bool = false;
        /// Certificates to trust beside those of the system, PEM. Relative to this file.
        pub tls_ca: Option<PathBuf> = None;
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=32).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err("must have 1 to 32 of a-z, 0-9 and -".to_owned()),
    }
}

#[cfg(not(feature = "cluster"))]
impl ClusterConfig {
    pub(crate) fn plan(&self) -> Result<ClusterPlan, ConfigProblem> {
        let message = "this build of Sinew has no clusters; build it with the cargo feature `cluster`, which is on by \
                       default, or remove the table";
        Err(ConfigProblem::at("cluster", message))
    }
}

/// Nothing, in a build without clusters.
#[cfg(not(feature = "cluster"))]
#[derive(Clone, Debug)]
pub enum ClusterPlan {}

#[cfg(feature = "cluster")]
pub use sinew_cluster::ClusterSettings as ClusterPlan;

#[cfg(feature = "cluster")]
impl ClusterConfig {
    pub(crate) fn plan(&self) -> Result<ClusterPlan, ConfigProblem> {
        use sinew_cluster::{ClusterName, NodeId};
        let at = |key: &str, message: String| ConfigProblem::at(format!("cluster.{key}"), message);
        let schemes = ["nats://", "tls://"];
        let servers: Vec<&str> = self.nats.split(',').map(str::trim).collect();
        if let Some(wrong) = servers.iter().find(|server| !schemes.iter().any(|scheme| server.starts_with(scheme))) {
            let what = if wrong.is_empty() { "is missing".to_owned() } else { format!("has `{wrong}`") };
            let message = format!("`nats` of `[cluster]` {what}; expected for example `nats://127.0.0.1:4222`");
            return Err(at("nats", message));
        }
        let name = ClusterName::parse(&self.name).ok_or_else(|| at("name", "`name` is not valid".to_owned()))?;
        let machine = || gethostname::gethostname().to_string_lossy().split('.').next().map(str::to_lowercase);
        let node = self.node.clone().or_else(machine).unwrap_or_default();
        let node = NodeId::parse(&node).ok_or_else(|| {
            let message = format!(
                "the name of the machine (`{node}`) cannot name a node; choose one of a-z, 0-9 and - with `node` in `[cluster]`"
            );
            at("node", message)
        })?;
        for (key, file) in [("credentials", &self.credentials), ("tls-ca", &self.tls_ca)] {
            if let Some(file) = file
                && let Err(error) = std::fs::File::open(file)
            {
                return Err(at(key, format!("cannot read `{key}` {}: {error}", file.display())));
            }
        }
        Ok(ClusterPlan {
            credentials: self.credentials.clone(),
            tls: self.tls || servers.iter().any(|server| server.starts_with("tls://")),
            tls_ca: self.tls_ca.clone(),
            ..ClusterPlan::new(self.nats.clone(), name, node)
        })
    }
}

/// What the gateway shares with its cluster.
#[cfg(feature = "cluster")]
pub(crate) use sinew_cluster::Sharing;

/// Nothing, in a build without clusters.
#[cfg(not(feature = "cluster"))]
pub(crate) enum Sharing {}

#[cfg(feature = "cluster")]
pub(crate) fn sharing(plan: &ClusterPlan, state: &std::path::Path) -> Result<Sharing, Error> {
    let state = Some(state);
    Sharing::open(plan.node.clone(), state).map_err(|why| Error::new(crate::error::ComposeErrorKind::Config, why))
}

#[cfg(not(feature = "cluster"))]
pub(crate) fn sharing(plan: &ClusterPlan, _: &std::path::Path) -> Result<Sharing, Error> {
    match *plan {}
}

#[cfg(not(feature = "cluster"))]
impl Sharing {
    pub(crate) fn share(&self, _: sinew_gateway::shared::Shared) -> sinew_gateway::shared::Shared {
        match *self {}
    }
}

/// Joins the gateway to its cluster.
#[cfg(feature = "cluster")]
pub(crate) async fn join(
    plan: ClusterPlan,
    sharing: Sharing,
    gateway: &Gateway,
    boards: &Boards,
    clients: &mut TaskGroup,
    devices: &mut TaskGroup,
) -> Result<Arc<dyn ClusterView>, Error> {
    let boards = boards.clone();
    let cluster = sinew_cluster::Cluster::open(plan, sharing, gateway.clone(), move |device| boards.end_moved(device));
    let cluster = cluster.await.map_err(|why| {
        let message = format!("cannot use the cluster's NATS: {why}; look at `nats` and `credentials` in `[cluster]`");
        Error::new(crate::error::ComposeErrorKind::Config, message)
    })?;
    // Calls from other nodes end with those of clients, before the devices go.
    clients.spawn(|shutdown| cluster.clone().serve(shutdown));
    devices.spawn(|shutdown| cluster.clone().run(shutdown));
    Ok(Arc::new(SeenCluster(cluster)))
}

#[cfg(feature = "cluster")]
struct SeenCluster(sinew_cluster::Cluster);

#[cfg(feature = "cluster")]
impl ClusterView for SeenCluster {
    fn state(&self) -> sinew_api::ClusterState {
        let status = self.0.status();
        let node = |node: sinew_cluster::NodeStatus| sinew_api::ClusterNode {
            name: node.name.to_string(),
            devices: node.devices,
            policy: node.policy,
            program: node.program,
        };
        sinew_api::ClusterState {
            name: status.cluster,
            node: status.node.to_string(),
            connected: status.is_connected,
            lease: status.is_ready,
            server: status.server,
            nodes: status.nodes.into_iter().map(node).collect(),
            moves: status.moves,
            waiting: status.waiting,
            unshared: status.unshared,
            ids_twice: status.ids_twice,
            calls_out: status.calls_out,
            calls_in: status.calls_in,
            more: sinew_api::UnknownFields::new(),
        }
    }
}

#[cfg(not(feature = "cluster"))]
pub(crate) async fn join(
    plan: ClusterPlan,
    _: Sharing,
    _: &Gateway,
    _: &Boards,
    _: &mut TaskGroup,
    _: &mut TaskGroup,
) -> Result<Arc<dyn ClusterView>, Error> {
    match plan {}
}
