//! `sinew cluster`: the gateways of the cluster.

use sinew_api as api;

use crate::args::ClusterArgs;
use crate::client::GatewayTarget;
use crate::error::CliError;
use crate::terminal::{Printer, Table, clean, print, print_json};

pub async fn run(args: ClusterArgs, printer: Printer) -> Result<(), CliError> {
    let state: api::ClusterState = GatewayTarget::find(&args.reach)?.connect().await?.get("/api/v1/cluster").await?;
    if printer.is_json() {
        print_json(&state);
        return Ok(());
    }
    let connection = match (state.connected, state.lease) {
        (true, true) => format!("connected to NATS {}", clean(&state.server)),
        (true, false) => "connected to NATS, and not yet a part of the cluster".to_owned(),
        (false, _) => "NATS cannot be reached: this node serves its own devices, and tries again".to_owned(),
    };
    let (name, node) = (clean(&state.name), clean(&state.node));
    print(&format!("{}\n\n", printer.wrap(&format!("Cluster {name}, node {node}: {connection}."), 0)));
    let own = state.nodes.iter().find(|other| other.name == state.node).and_then(|own| own.policy.clone());
    let mut table = Table::new(["NODE", "DEVICES", "VERSION", "POLICY"]);
    for node in &state.nodes {
        let policy = match &node.policy {
            None => "unknown",
            policy if *policy == own => "same",
            _ => "different",
        };
        let version = node.program.as_deref().map_or_else(|| "unknown".to_owned(), clean);
        let row = [clean(&node.name), node.devices.to_string(), version, policy.to_owned()];
        table.row(row.map(|text| (None, text)));
    }
    print(&printer.table(&table));
    if state.nodes.iter().any(|node| node.policy.is_some() && node.policy != own) {
        let text = "Nodes with different policies decide differently about the same call. Give all nodes the same \
                    [policy] table.";
        print(&format!("\n{}\n", printer.wrap(text, 0)));
    }
    if !state.ids_twice.is_empty() {
        let ids = state.ids_twice.iter().map(|id| clean(id)).collect::<Vec<_>>().join(", ");
        let text = format!(
            "These ids mean another device at other nodes: {ids}. Forget one of both with `sinew devices forget`; it comes back \
             with another id."
        );
        print(&format!("\n{}\n", printer.wrap(&text, 0)));
    }
    let api::ClusterState { moves, waiting, unshared, calls_out, calls_in, .. } = state;
    let text = format!(
        "Of this node: {moves} devices taken over, {waiting} not announced yet, {unshared} changes not shared yet, {calls_out} calls to other nodes and \
         {calls_in} from them under way."
    );
    print(&format!("\n{}\n", printer.wrap(&text, 0)));
    Ok(())
}
