//! `sinew token`: who may come in through which door.

use std::time::Duration;

use sinew_api::{self as api, NewToken, TokenRole};

use super::ago;
use crate::args::{NewRole, Reach, Token, TokenVerb};
use crate::client::{Target, encode};
use crate::failure::Failure;
use crate::show::{Ink, Show, Table, clean, print, print_json};

pub async fn run(args: Token, show: Show) -> Result<(), Failure> {
    match args.verb {
        TokenVerb::New { role, expires, reach } => new(role, expires, &reach, show).await,
        TokenVerb::List { reach } => all(&reach, show).await,
        TokenVerb::Revoke { id, reach } => revoke(&id, &reach, show).await,
    }
}

async fn new(role: NewRole, expires: Option<Duration>, reach: &Reach, show: Show) -> Result<(), Failure> {
    let (role, label, device) = match (role.device, role.client, role.admin) {
        (Some(device), _, _) => (TokenRole::Device, device.clone(), Some(device)),
        (_, Some(client), _) => (TokenRole::Client, client, None),
        (_, _, admin) => (TokenRole::Admin, admin.unwrap_or_default(), None),
    };
    let request = NewToken { role, label, device, expires_in_s: expires.map(|time| time.as_secs()) };
    let answer: api::CreatedToken = Target::find(reach)?.connect().await?.post("/api/v1/tokens", &request).await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    if let Some(key) = answer.about.device.as_deref() {
        let whom = match key.split_once(':') {
            Some(("board", id)) => format!("the board with the hardware id {id}"),
            Some(("provider", name)) => format!("the tool provider {name}"),
            _ => key.to_owned(),
        };
        eprintln!("The token is bound to {}; no other device can use it.", clean(&whom));
    }
    // The token alone on standard output, so that TOKEN=$(sinew token new …) works.
    eprintln!(
        "Token {} for the {} {}; it is shown only now:",
        answer.about.id,
        answer.about.role,
        clean(&request.label)
    );
    print(&format!("{}\n", answer.token));
    Ok(())
}

async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer: api::TokenList = Target::find(reach)?.connect().await?.get("/api/v1/tokens").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let mut table = Table::new(["TOKEN", "ROLE", "FOR", "DEVICE", "MADE", "LAST USE", "EXPIRES"]);
    for token in &answer.tokens {
        let made = if token.created > 0 { ago(token.created) } else { String::new() };
        table.row([
            (Some(Ink::Bold), token.id.clone()),
            (None, token.role.clone()),
            (None, token.label.clone()),
            (None, token.device.clone().unwrap_or_default()),
            (None, made),
            (None, token.last_use.map(ago).unwrap_or_default()),
            (None, token.expires.map(day).unwrap_or_default()),
        ]);
    }
    print(&show.table(&table));
    Ok(())
}

/// `2026-11-30 14:05`, from milliseconds of Unix time.
fn day(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

async fn revoke(id: &str, reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer: api::Token =
        Target::find(reach)?.connect().await?.delete(&format!("/api/v1/tokens/{}", encode(id))).await?;
    if show.json() {
        print_json(&answer);
    } else {
        print(&format!("Token {} is revoked.\n", clean(id)));
    }
    Ok(())
}
