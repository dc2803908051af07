//! `sinew token`: who may come in through which door.

use sinew_api::{self as api, NewToken, TokenRole};

use super::ago;
use crate::args::{NewRole, Reach, Token, TokenVerb};
use crate::client::{Target, encode};
use crate::failure::Failure;
use crate::show::{Ink, Show, Table, clean, print, print_json};

pub async fn run(args: Token, show: Show) -> Result<(), Failure> {
    match args.verb {
        TokenVerb::New { role, reach } => new(role, &reach, show).await,
        TokenVerb::List { reach } => all(&reach, show).await,
        TokenVerb::Revoke { id, reach } => revoke(&id, &reach, show).await,
    }
}

async fn new(role: NewRole, reach: &Reach, show: Show) -> Result<(), Failure> {
    let request = match (role.device, role.client, role.admin) {
        (Some(device), _, _) => NewToken { role: TokenRole::Device, label: device.clone(), device: Some(device) },
        (_, Some(client), _) => NewToken { role: TokenRole::Client, label: client, device: None },
        (_, _, admin) => NewToken { role: TokenRole::Admin, label: admin.unwrap_or_default(), device: None },
    };
    let answer: api::MadeToken = Target::find(reach)?.connect().await?.post("/api/v1/tokens", &request).await?;
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
    let answer: api::Tokens = Target::find(reach)?.connect().await?.get("/api/v1/tokens").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let mut table = Table::new(["TOKEN", "ROLE", "FOR", "DEVICE", "MADE"]);
    for token in &answer.tokens {
        let made = if token.created > 0 { ago(token.created) } else { String::new() };
        table.row([
            (Some(Ink::Bold), token.id.clone()),
            (None, token.role.clone()),
            (None, token.label.clone()),
            (None, token.device.clone().unwrap_or_default()),
            (None, made),
        ]);
    }
    print(&show.table(&table));
    Ok(())
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
