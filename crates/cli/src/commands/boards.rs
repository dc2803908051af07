//! `sinew boards`: boards that wait for approval, servers that were found, and their approval.

use sinew_api as api;

use super::{ago, servers};
use crate::args::{BoardsArgs, BoardsCommand, ReachArgs};
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

pub async fn run(args: BoardsArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        Some(BoardsCommand::Approve { code, reach }) => approve(&code, &reach, printer).await,
        None => all(&args.reach, printer).await,
    }
}

async fn all(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let answer: api::WaitingBoards = client.get("/api/v1/boards").await?;
    let searching = client.get("/api/v1/found-servers");
    let servers: api::FoundServers = printer.waiting("looking for servers on the network", searching).await?;
    if printer.is_json() {
        print_json(&serde_json::json!({"boards": answer.boards, "found": servers.found, "problem": servers.problem}));
        return Ok(());
    }
    let status: api::GatewayStatus = client.get("/api/v1/status").await?;
    print(&waiting(&answer.boards, printer));
    print(&found(&servers, printer));
    print(&presences(&status.brokers));
    Ok(())
}

fn waiting(boards: &[api::WaitingBoard], printer: Printer) -> String {
    if boards.is_empty() {
        return "No board waits for approval. `sinew devices` shows those that were approved.\n".to_owned();
    }
    let mut table = Table::new(["CODE", "HARDWARE ID", "KIND", "VERSION", "ADDRESS", "SINCE"]);
    for board in boards {
        table.row([
            (Some(TextStyle::Bold), board.code.clone()),
            (None, board.hardware_id.clone()),
            (None, board.kind.clone()),
            (None, board.version.clone()),
            (None, board.address.clone()),
            (None, ago(board.since)),
        ]);
    }
    format!("{}Approve one with: sinew boards approve CODE\n", printer.table(&table))
}

/// MCP servers that announce themselves on the network.
fn found(servers: &api::FoundServers, printer: Printer) -> String {
    let problem = servers.problem.iter().map(|why| format!("{}\n", clean(why)));
    if servers.found.is_empty() {
        return problem.collect();
    }
    let mut table = Table::new(["FOUND", "CALLS ITSELF", "ADDRESS"]).cut(&["CALLS ITSELF"]);
    for server in &servers.found {
        let style = [Some(TextStyle::Bold), None, None];
        let cells = [server.name.clone(), server.announced.clone(), server.url.clone()];
        table.row(std::array::from_fn::<_, 3, _>(|index| (style[index], cells[index].clone())));
    }
    let hint = "Nobody checked who announces these. Add one with: sinew boards approve NAME\n";
    format!("{}{hint}", printer.table(&table))
}

/// Boards that brokers announce and that have not joined, a line for each broker.
pub fn presences(brokers: &[api::BrokerPresences]) -> String {
    let line = |api::BrokerPresences { broker, waiting, silent }: &api::BrokerPresences| {
        format!("At {}: {waiting} boards are not asked yet, {silent} do not answer.\n", clean(broker))
    };
    brokers.iter().map(line).collect()
}

async fn approve(code: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let is_code = code.trim().len() == 6 && code.trim().bytes().all(|byte| byte.is_ascii_digit());
    if !is_code {
        let path = format!("/api/v1/found-servers/{}", encode(code.trim()));
        let added: api::Server = client.post(&path, &()).await?;
        servers::print_added(&added, printer);
        return Ok(());
    }
    let request = api::Approve { code: code.to_owned() };
    let answer: api::WaitingBoard = client.post("/api/v1/boards/approve", &request).await?;
    if printer.is_json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.hardware_id);
        print(&format!("{id} is approved. It connects by itself within a few seconds.\n"));
    }
    Ok(())
}
