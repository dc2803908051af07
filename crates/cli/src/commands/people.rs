//! `sinew people`: who signs in to the console with a passphrase.

use std::io::Read as _;

use clap::{Args, Subcommand, ValueEnum};
use sinew_api::{CreatedPerson, NewPerson, People, Person, PersonRole};

use super::ago;
use crate::args::ReachArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_exact, print_json, say};

/// 4 KiB: more than any passphrase that the gateway takes.
const MAX_INPUT: u64 = 4 << 10;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PeopleArgs {
    #[command(subcommand)]
    command: Option<PeopleCommand>,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
enum PeopleCommand {
    /// Add a person, or give one a new passphrase and role
    Add {
        /// Name to sign in with
        name: String,
        /// What the person may do
        #[arg(long, value_enum, default_value_t = RoleArg::Viewer)]
        role: RoleArg,
        /// Read the passphrase from standard input [default: one is made and printed]
        #[arg(long)]
        passphrase_stdin: bool,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Remove a person, and end their sessions
    Remove {
        /// Name of the person
        name: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleArg {
    /// Looks at everything and changes nothing
    Viewer,
    /// Also decides about calls that wait
    Approver,
    /// Also calls tools and manages devices, tokens and people
    Admin,
}

impl From<RoleArg> for PersonRole {
    fn from(role: RoleArg) -> PersonRole {
        match role {
            RoleArg::Viewer => PersonRole::Viewer,
            RoleArg::Approver => PersonRole::Approver,
            RoleArg::Admin => PersonRole::Admin,
        }
    }
}

pub async fn run(args: PeopleArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        None => list(&args.reach, printer).await,
        Some(PeopleCommand::Add { name, role, passphrase_stdin, reach }) => {
            let passphrase = passphrase_stdin.then(read_passphrase).transpose()?;
            add(NewPerson { name, role: role.into(), passphrase }, &reach, printer).await
        }
        Some(PeopleCommand::Remove { name, reach }) => remove(&name, &reach, printer).await,
    }
}

async fn list(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: People = GatewayTarget::find(reach)?.connect().await?.get("/api/v1/people").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.people.is_empty() {
        print("Nobody has a passphrase. Add somebody with `sinew people add NAME`.\n");
        return Ok(());
    }
    let mut table = Table::new(["NAME", "ROLE", "ADDED"]);
    for person in &answer.people {
        table.row([
            (Some(TextStyle::Bold), person.name.clone()),
            (None, person.role.word().to_owned()),
            (None, ago(person.created)),
        ]);
    }
    print(&printer.table(&table));
    Ok(())
}

async fn add(person: NewPerson, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: CreatedPerson = GatewayTarget::find(reach)?.connect().await?.post("/api/v1/people", &person).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let (name, role) = (clean(&answer.about.name), answer.about.role.word());
    match answer.passphrase {
        Some(passphrase) => {
            say(&format!("{name} signs in to the console as {role} with this passphrase; it is shown only now:"));
            print_exact(&format!("{passphrase}\n"));
        }
        None => print(&format!("{name} signs in to the console as {role} with that passphrase.\n")),
    }
    Ok(())
}

async fn remove(name: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/people/{}", encode(name));
    let answer: Person = GatewayTarget::find(reach)?.connect().await?.delete(&path).await?;
    if printer.is_json() {
        print_json(&answer);
    } else {
        print(&format!("{} is removed and signed out.\n", clean(&answer.name)));
    }
    Ok(())
}

fn read_passphrase() -> Result<String, CliError> {
    let mut text = String::new();
    std::io::stdin().take(MAX_INPUT).read_to_string(&mut text).map_err(|error| {
        CliError::new(CliErrorKind::Usage, format!("cannot read the passphrase from standard input: {error}"))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
