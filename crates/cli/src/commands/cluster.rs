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
    let mut table = Table::new(["NODE", "DEVICES"]);
    for node in &state.nodes {
        table.row([node.name.clone(), node.devices.to_string()].map(|text| (None, text)));
    }
    print(&printer.table(&table));
    let api::ClusterState { moves, waiting, calls_out, calls_in, .. } = state;
    let text = format!(
        "Of this node: {moves} devices taken over, {waiting} not announced yet, {calls_out} calls to other nodes and \
         {calls_in} from them under way."
    );
    print(&format!("\n{}\n", printer.wrap(&text, 0)));
    Ok(())
}
