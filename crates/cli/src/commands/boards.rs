//! `sinew boards`: who asks to be let in, and letting them in.

use sinew_api as api;

use super::ago;
use crate::args::{Boards, BoardsVerb, Reach};
use crate::client::Target;
use crate::failure::Failure;
use crate::show::{Ink, Show, Table, clean, print, print_json};

pub async fn run(args: Boards, show: Show) -> Result<(), Failure> {
    match args.verb {
        Some(BoardsVerb::Approve { code, reach }) => approve(&code, &reach, show).await,
        None => all(&args.reach, show).await,
    }
}

async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer: api::WaitingBoards = Target::find(reach)?.connect().await?.get("/api/v1/boards").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let boards = &answer.boards;
    if boards.is_empty() {
        print("No board waits for approval. `sinew devices` shows those that were let in.\n");
        return Ok(());
    }
    let mut table = Table::new(["CODE", "HARDWARE ID", "KIND", "VERSION", "ADDRESS", "SINCE"]);
    for board in boards {
        table.row([
            (Some(Ink::Bold), board.code.clone()),
            (None, board.hardware_id.clone()),
            (None, board.kind.clone()),
            (None, board.version.clone()),
            (None, board.address.clone()),
            (None, ago(board.since)),
        ]);
    }
    print(&show.table(&table));
    print("Let one in with: sinew boards approve CODE\n");
    Ok(())
}

async fn approve(code: &str, reach: &Reach, show: Show) -> Result<(), Failure> {
    let request = api::Approve { code: code.to_owned() };
    let answer: api::WaitingBoard =
        Target::find(reach)?.connect().await?.post("/api/v1/boards/approve", &request).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.hardware_id);
        print(&format!("{id} is let in. It connects by itself within a few seconds.\n"));
    }
    Ok(())
}
