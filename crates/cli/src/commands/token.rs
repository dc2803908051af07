//! `sinew token`: who may come in through which door.

use serde_json::{Value, json};

use super::{ago, list, text};
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
        (Some(device), _, _) => json!({"role": "device", "device": device, "label": device}),
        (_, Some(client), _) => json!({"role": "client", "label": client}),
        (_, _, admin) => json!({"role": "admin", "label": admin}),
    };
    let answer = Target::find(reach)?.connect().await?.post("/api/v1/tokens", &request).await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    if request["role"] == "device" {
        let key = text(&answer, "device");
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
        text(&answer, "id"),
        text(&request, "role"),
        clean(text(&request, "label"))
    );
    print(&format!("{}\n", text(&answer, "token")));
    Ok(())
}

async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer = Target::find(reach)?.connect().await?.get("/api/v1/tokens").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let tokens = list(&answer, "tokens");
    let mut table = Table::new(["TOKEN", "ROLE", "FOR", "DEVICE", "MADE"]);
    for token in tokens {
        let made = token.get("created").and_then(Value::as_i64).filter(|made| *made > 0).map(ago).unwrap_or_default();
        table.row([
            (Some(Ink::Bold), text(token, "id").to_owned()),
            (None, text(token, "role").to_owned()),
            (None, text(token, "label").to_owned()),
            (None, text(token, "device").to_owned()),
            (None, made),
        ]);
    }
    print(&show.table(&table));
    Ok(())
}

async fn revoke(id: &str, reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer = Target::find(reach)?.connect().await?.delete(&format!("/api/v1/tokens/{}", encode(id))).await?;
    if show.json() {
        print_json(&answer);
    } else {
        print(&format!("Token {} is revoked.\n", clean(id)));
    }
    Ok(())
}
