//! `sinew boards`: boards that wait for approval, and their approval.

use sinew_api as api;

use super::ago;
use crate::args::{BoardsArgs, BoardsCommand, ReachArgs};
use crate::client::GatewayTarget;
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
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let status: api::GatewayStatus = client.get("/api/v1/status").await?;
    let boards = &answer.boards;
    if boards.is_empty() {
        print("No board waits for approval. `sinew devices` shows those that were approved.\n");
        print(&presences(&status.brokers));
        return Ok(());
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
    print(&printer.table(&table));
    print("Approve one with: sinew boards approve CODE\n");
    print(&presences(&status.brokers));
    Ok(())
}

/// Boards that brokers announce and that have not joined, a line for each broker.
pub fn presences(brokers: &[api::BrokerPresences]) -> String {
    let line = |api::BrokerPresences { broker, waiting, silent }: &api::BrokerPresences| {
        format!("At {}: {waiting} boards are not asked yet, {silent} do not answer.\n", clean(broker))
    };
    brokers.iter().map(line).collect()
}

async fn approve(code: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let request = api::Approve { code: code.to_owned() };
    let answer: api::WaitingBoard =
        GatewayTarget::find(reach)?.connect().await?.post("/api/v1/boards/approve", &request).await?;
    if printer.is_json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.hardware_id);
        print(&format!("{id} is approved. It connects by itself within a few seconds.\n"));
    }
    Ok(())
}
