//! `sinew servers`: the MCP servers that the gateway calls.

use std::path::Path;

use sinew_api as api;

use crate::args::{AddServerArgs, ReachArgs, ServersArgs, ServersCommand};
use crate::client::{GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, clean, print, print_json};

pub async fn run(args: ServersArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        Some(ServersCommand::Add(added)) => add(added, printer).await,
        Some(ServersCommand::List { reach }) => list(&reach, printer).await,
        Some(ServersCommand::Remove { name, reach }) => remove(&name, &reach, printer).await,
        None => list(&args.reach, printer).await,
    }
}

async fn list(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: api::Servers = GatewayTarget::find(reach)?.connect().await?.get("/api/v1/servers").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.servers.is_empty() {
        print("The gateway calls no servers. Add one: sinew servers add http://HOST/mcp\n");
        return Ok(());
    }
    let mut table = Table::new(["NAME", "ADDRESS", "FROM", "LABELS"]).cut(&["ADDRESS"]);
    for server in answer.servers {
        let source = match server.source {
            api::ServerSource::Configuration => "configuration",
            api::ServerSource::Added => "added",
        };
        let cells = [server.name, server.address, source.to_owned(), server.labels.join(", ")];
        table.row(cells.map(|text| (None, text)));
    }
    print(&printer.table(&table));
    print("`sinew devices` shows which of them are connected.\n");
    Ok(())
}

async fn add(args: AddServerArgs, printer: Printer) -> Result<(), CliError> {
    let server = api::NewServer {
        url: args.server,
        name: args.name,
        token: args.bearer_file.as_deref().map(first_line).transpose()?,
        headers: args.header.iter().map(|header| read_header(header)).collect::<Result<_, _>>()?,
        poll_s: args.poll,
        labels: args.label,
    };
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let added: api::Server = client.post("/api/v1/servers", &server).await?;
    print_added(&added, printer);
    Ok(())
}

/// Says that a server is called from now on.
pub fn print_added(server: &api::Server, printer: Printer) {
    if printer.is_json() {
        print_json(server);
    } else {
        let (name, address) = (clean(&server.name), clean(&server.address));
        print(&format!("{name} is added ({address}). `sinew devices show {name}` says whether it is connected.\n"));
    }
}

fn read_header(text: &str) -> Result<(String, String), CliError> {
    let header = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
    header.ok_or_else(|| {
        let message = format!("`--header {}` is not NAME=VALUE", clean(text));
        CliError::new(CliErrorKind::Usage, message)
    })
}

fn first_line(path: &Path) -> Result<String, CliError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| CliError::new(CliErrorKind::Io, format!("{}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

async fn remove(name: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/servers/{}", encode(name));
    let removed: api::Server = GatewayTarget::find(reach)?.connect().await?.delete(&path).await?;
    if printer.is_json() {
        print_json(&removed);
    } else {
        print(&format!("{} is removed. `sinew devices forget` removes its device too.\n", clean(&removed.name)));
    }
    Ok(())
}
