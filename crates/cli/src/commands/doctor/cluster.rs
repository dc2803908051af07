//! Whether the gateway is a part of its cluster.

use std::time::Duration;

use sinew_api::ClusterState;
use sinew_compose::cluster::ClusterConfig;
use sinew_compose::state::LocalGateway;
use tokio::net::TcpStream;

use super::DoctorCheck;
use crate::args::ReachArgs;
use crate::client::GatewayTarget;
use crate::terminal::clean;

const NAME: &str = "cluster";
/// Longer than any connection takes that comes to something.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn check(
    config: &ClusterConfig,
    running: Option<&LocalGateway>,
    reach: &ReachArgs,
) -> Vec<DoctorCheck> {
    match running {
        Some(running) => state_of(running, reach).await.map(|state| assess(&config.nats, &state)).unwrap_or_default(),
        None => reachable(&config.nats).await,
    }
}

async fn state_of(running: &LocalGateway, reach: &ReachArgs) -> Option<ClusterState> {
    let mut client = GatewayTarget::of_running(running, reach).ok()?.connect().await.ok()?;
    client.get("/api/v1/cluster").await.ok()
}

/// Whether anybody listens at one of the addresses.
async fn reachable(nats: &str) -> Vec<DoctorCheck> {
    let mut failure = String::new();
    for server in nats.split(',').map(str::trim) {
        let address = server.split_once("://").map_or(server, |(_, address)| address);
        let address = address.rsplit_once('@').map_or(address, |(_, address)| address);
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { address.to_owned() } else { format!("{address}:4222") };
        match tokio::time::timeout(PATIENCE, TcpStream::connect(&address)).await {
            Ok(Ok(_)) => return vec![DoctorCheck::ok(NAME, format!("NATS answers at {address}"))],
            Ok(Err(error)) => failure = format!("{address}: {error}"),
            Err(_) => failure = format!("{address} does not answer"),
        }
    }
    let message = format!("NATS cannot be reached: {failure}");
    vec![DoctorCheck::problem(NAME, message, "start NATS with JetStream, or change `nats` in [cluster]")]
}

fn assess(nats: &str, state: &ClusterState) -> Vec<DoctorCheck> {
    let (node, cluster) = (clean(&state.node), clean(&state.name));
    if !state.connected {
        let message = format!("the gateway cannot reach NATS at {}; it serves its own devices only", clean(nats));
        return vec![DoctorCheck::problem(NAME, message, "start NATS with JetStream, or change `nats` in [cluster]")];
    }
    if !state.lease {
        let message = format!("the gateway reaches NATS and is not a part of the cluster {cluster} as {node}");
        let remedy =
            "give each gateway a `node` of its own in [cluster]; its log says whether another one has this name";
        return vec![DoctorCheck::problem(NAME, message, remedy)];
    }
    let own = state.nodes.iter().find(|other| other.name == state.node).and_then(|own| own.policy.as_ref());
    let differs = |other: &&sinew_api::ClusterNode| other.policy.is_some() && other.policy.as_ref() != own;
    let different: Vec<String> = state.nodes.iter().filter(differs).map(|other| clean(&other.name)).collect();
    let (count, server) = (state.nodes.len(), clean(&state.server));
    let mut checks = vec![DoctorCheck::ok(NAME, format!("node {node} of {count} in {cluster}, NATS {server}"))];
    if !different.is_empty() {
        let message = format!("the policy is another one at {}", different.join(", "));
        checks.push(DoctorCheck::problem(NAME, message, "give all nodes the same [policy] table"));
    }
    if !state.ids_twice.is_empty() {
        let ids = state.ids_twice.iter().map(|id| clean(id)).collect::<Vec<_>>().join(", ");
        let message = format!("these ids mean another device at other nodes: {ids}");
        checks.push(DoctorCheck::problem(NAME, message, "forget one of both (`sinew devices forget ID`)"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use sinew_api::{ClusterNode, UnknownFields};

    use super::super::CheckState;
    use super::*;

    fn state(policies: &[&str]) -> ClusterState {
        let node = |(number, policy): (usize, &&str)| ClusterNode {
            name: format!("n{number}"),
            devices: 0,
            policy: Some((*policy).to_owned()),
            program: None,
        };
        ClusterState {
            name: "main".to_owned(),
            node: "n0".to_owned(),
            connected: true,
            lease: true,
            server: "2.9.10".to_owned(),
            nodes: policies.iter().enumerate().map(node).collect(),
            moves: 0,
            waiting: 0,
            unshared: 0,
            ids_twice: Vec::new(),
            calls_out: 0,
            calls_in: 0,
            more: UnknownFields::new(),
        }
    }

    fn results(state: &ClusterState) -> Vec<CheckState> {
        assess("nats://h:1", state).iter().map(|check| check.result).collect()
    }

    #[test]
    fn a_node_outside_of_its_cluster_and_another_policy_are_problems() {
        assert_eq!(results(&state(&["a", "a"])), [CheckState::Ok]);
        assert_eq!(results(&state(&["a", "a", "b"])), [CheckState::Ok, CheckState::Problem]);
        let twice = ClusterState { ids_twice: vec!["lamp".to_owned()], ..state(&["a"]) };
        assert_eq!(results(&twice), [CheckState::Ok, CheckState::Problem]);
        assert_eq!(results(&ClusterState { lease: false, ..state(&["a"]) }), [CheckState::Problem]);
        assert_eq!(results(&ClusterState { connected: false, ..state(&["a"]) }), [CheckState::Problem]);
    }

    #[tokio::test]
    async fn nats_is_looked_for_at_every_address() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let result = |nats: String| async move { reachable(&nats).await[0].result };
        assert_eq!(result(format!("nats://127.0.0.1:1, tls://user:word@127.0.0.1:{port}")).await, CheckState::Ok);
        assert_eq!(result("nats://127.0.0.1:1".to_owned()).await, CheckState::Problem);
    }
}
