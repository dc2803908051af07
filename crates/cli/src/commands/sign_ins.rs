//! `sinew sign-ins`: the clients that people let in by signing in.

use clap::{Args, Subcommand};
use sinew_api::{SignInEntry, SignIns};

use super::{ago, until};
use crate::args::ReachArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SignInsArgs {
    #[command(subcommand)]
    command: Option<SignInsCommand>,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
enum SignInsCommand {
    /// Sign a client out; it must ask again
    End {
        /// Id of the sign-in, as `sinew sign-ins` shows it
        id: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub async fn run(args: SignInsArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        None => list(&args.reach, printer).await,
        Some(SignInsCommand::End { id, reach }) => end(&id, &reach, printer).await,
    }
}

async fn list(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: SignIns = GatewayTarget::find(reach)?.connect().await?.get("/api/v1/sign-ins").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.sign_ins.is_empty() {
        print(match answer.enabled {
            true => "No client is signed in.\n",
            false => "Clients do not sign in at this gateway; docs/sign-in.md says how to allow it.\n",
        });
        return Ok(());
    }
    let mut table = Table::new(["ID", "CALLER", "CLIENT", "USED", "ENDS"]).cut(&["CLIENT"]);
    for one in &answer.sign_ins {
        table.row([
            (Some(TextStyle::Bold), one.id.clone()),
            (None, one.caller.clone()),
            (None, one.client.clone()),
            (None, ago(one.last_use)),
            (None, until(one.ends)),
        ]);
    }
    print(&printer.table(&table));
    Ok(())
}

async fn end(id: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/sign-ins/{}", encode(id));
    let ended: SignInEntry = GatewayTarget::find(reach)?.connect().await?.delete(&path).await?;
    if printer.is_json() {
        print_json(&ended);
    } else {
        print(&format!("{} is signed out.\n", clean(&ended.caller)));
    }
    Ok(())
}
