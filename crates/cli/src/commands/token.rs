//! `sinew token`: make, list and revoke tokens.

use std::time::Duration;

use sinew_api::{self as api, IfTaken, NewToken, TokenRole};

use super::ago;
use crate::args::{ReachArgs, TokenArgs, TokenCommand, TokenRoleArgs};
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_exact, print_json, say};

pub async fn run(args: TokenArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        TokenCommand::New { role, expires, replace, reach } => {
            let if_taken = if replace { IfTaken::Replace } else { IfTaken::Refuse };
            new(role, expires, if_taken, &reach, printer).await
        }
        TokenCommand::List { reach } => all(&reach, printer).await,
        TokenCommand::Revoke { id, reach } => revoke(&id, &reach, printer).await,
    }
}

async fn new(
    role: TokenRoleArgs,
    expires: Option<Duration>,
    if_taken: IfTaken,
    reach: &ReachArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let (role, label, device) = match (role.device, role.client, role.admin) {
        (Some(device), _, _) => (TokenRole::Device, device.clone(), Some(device)),
        (_, Some(client), _) => (TokenRole::Client, client, None),
        (_, _, admin) => (TokenRole::Admin, admin.unwrap_or_default(), None),
    };
    let request = NewToken { role, label, device, expires_in_s: expires.map(|time| time.as_secs()), if_taken };
    let answer: api::CreatedToken =
        GatewayTarget::find(reach)?.connect().await?.post("/api/v1/tokens", &request).await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if let Some(key) = answer.about.device.as_deref() {
        let whom = match key.split_once(':') {
            Some(("board", id)) => format!("the board with the hardware id {id}"),
            Some(("provider", name)) => format!("the tool provider {name}"),
            _ => key.to_owned(),
        };
        say(&format!("The token is bound to {}; no other device can use it.", clean(&whom)));
    }
    let label = answer.about.label.clone();
    // The token alone on standard output, so that TOKEN=$(sinew token new …) works.
    say(&format!("Token {} for the {} {}; it is shown only now:", answer.about.id, answer.about.role, clean(&label)));
    print_exact(&format!("{}\n", answer.token));
    Ok(())
}

async fn all(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: api::TokenList = GatewayTarget::find(reach)?.connect().await?.get_all("/api/v1/tokens").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let mut table = Table::new(["TOKEN", "ROLE", "FOR", "MADE", "LAST USE", "EXPIRES", "DEVICE"]).spare(&["MADE"]);
    for token in &answer.tokens {
        let made = if token.created > 0 { ago(token.created) } else { String::new() };
        table.row([
            (Some(TextStyle::Bold), token.id.clone()),
            (None, token.role.clone()),
            (None, token.label.clone()),
            (None, made),
            (None, token.last_use.map(ago).unwrap_or_default()),
            token.expires.map(expiry).unwrap_or_default(),
            (None, token.device.clone().unwrap_or_default()),
        ]);
    }
    print(&printer.table(&table));
    Ok(())
}

fn expiry(at: i64) -> (Option<TextStyle>, String) {
    match at <= jiff::Timestamp::now().as_millisecond() {
        true => (Some(TextStyle::Bad), format!("{}, expired", day(at))),
        false => (None, day(at)),
    }
}

/// `2026-11-30 14:05`, from milliseconds of Unix time.
fn day(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

async fn revoke(id: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: api::Token =
        GatewayTarget::find(reach)?.connect().await?.delete(&format!("/api/v1/tokens/{}", encode(id))).await?;
    if printer.is_json() {
        print_json(&answer);
    } else {
        print(&format!("Token {} is revoked.\n", clean(id)));
    }
    Ok(())
}
