//! `sinew devices`: who is there, and by which name.

use serde_json::{Value, json};

use super::{ago, list, pins, text};
use crate::args::{Devices, DevicesVerb, Labels, OneDevice, Reach};
use crate::client::{Target, encode};
use crate::failure::Failure;
use crate::show::{Ink, Show, Table, clean, print, print_json};

/// Warnings shown of one device; a broken tool list has one for each tool.
const MOST_WARNINGS: usize = 3;

pub async fn run(args: Devices, show: Show) -> Result<(), Failure> {
    match args.verb {
        Some(DevicesVerb::Rename { device, name, reach }) => rename(&device, &name, &reach, show).await,
        Some(DevicesVerb::Forget(one)) => forget(&one, show).await,
        Some(DevicesVerb::Label(labels)) => label(&labels, "add", show).await,
        Some(DevicesVerb::Unlabel(labels)) => label(&labels, "remove", show).await,
        Some(DevicesVerb::Pin(one)) => pins::pin(&one, show).await,
        Some(DevicesVerb::Unpin(one)) => pins::unpin(&one, show).await,
        Some(DevicesVerb::Changes(one)) => pins::changes(&one, show).await,
        Some(DevicesVerb::Accept { device, tool }) => pins::accept(&device, tool.as_deref(), show).await,
        None => all(&args.reach, show).await,
    }
}

async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer = Target::find(reach)?.connect().await?.get("/api/v1/devices").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let devices = list(&answer, "devices");
    if devices.is_empty() {
        print("No device has come yet. Connect a virtual one with `sinew sim board`.\n");
        return Ok(());
    }
    let mut table =
        Table::new(["DEVICE", "NAME", "LABELS", "KIND", "VERSION", "STATE", "SINCE", "TOOLS", "ADMITTED BY"]);
    for device in devices {
        let cell = |key: &str| (None, text(device, key).to_owned());
        let state = text(device, "state");
        let since = device.get("since").and_then(Value::as_i64).map(ago).unwrap_or_default();
        let count = device.get("tools").map(Value::to_string).unwrap_or_default();
        let tools = if device["pinned"] == true { format!("{count}, pinned") } else { count };
        // The gateway's own token is for first trials; whoever looks at the table should see that.
        let admitted = text(device, "admitted_by");
        let trial = (admitted == "gateway token").then_some(Ink::Warn);
        table.row([
            (Some(Ink::Bold), text(device, "id").to_owned()),
            cell("name"),
            (None, labels(device)),
            cell("kind"),
            cell("version"),
            (Some(ink_of(state)), state.to_owned()),
            (None, since),
            (None, tools),
            (trial, admitted.to_owned()),
        ]);
    }
    print(&show.table(&table));
    for device in devices {
        let remedy = text(device, "remedy");
        if !remedy.is_empty() && text(device, "state") != "away" {
            print(&format!("{}: {}\n", clean(text(device, "id")), clean(remedy)));
        }
        let warnings = list(device, "warnings");
        for warning in warnings.iter().filter_map(Value::as_str).take(MOST_WARNINGS) {
            print(&format!("{}: {}\n", clean(text(device, "id")), clean(warning)));
        }
        if warnings.len() > MOST_WARNINGS {
            let more = warnings.len() - MOST_WARNINGS;
            print(&format!("{}: {more} more warnings; `--output json` shows them\n", clean(text(device, "id"))));
        }
        // What the gateway had to refuse or end.
        let trouble = device.get("attributes").map(|attributes| text(attributes, "trouble")).unwrap_or_default();
        if !trouble.is_empty() {
            print(&format!("{}: {}\n", clean(text(device, "id")), clean(trouble)));
        }
    }
    Ok(())
}

async fn rename(device: &str, name: &str, reach: &Reach, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/rename", encode(device));
    let answer = Target::find(reach)?.connect().await?.post(&path, &json!({"name": name})).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(text(&answer, "id"));
        // The gateway trims the name; an empty one takes it away.
        print(&match text(&answer, "name") {
            "" => format!("{id} has no name of its own any more; it is called by its id\n"),
            name => format!("{id} is now called {}\n", clean(name)),
        });
    }
    Ok(())
}

async fn forget(one: &OneDevice, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/forget", encode(&one.device));
    let answer = Target::find(&one.reach)?.connect().await?.post(&path, &json!({})).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(text(&answer, "id"));
        print(&format!("{id} is forgotten. A token that was made for it still works: see `sinew token list`.\n"));
    }
    Ok(())
}

async fn label(args: &Labels, change: &str, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/labels", encode(&args.device));
    let answer = Target::find(&args.reach)?.connect().await?.post(&path, &json!({ change: args.labels })).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(text(&answer, "id"));
        print(&match labels(&answer).as_str() {
            "" => format!("{id} has no labels\n"),
            labels => format!("{id} has the labels {}\n", clean(labels)),
        });
    }
    Ok(())
}

fn labels(device: &Value) -> String {
    list(device, "labels").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

pub fn ink_of(state: &str) -> Ink {
    match state {
        "ready" => Ink::Good,
        "away" => Ink::Dim,
        _ => Ink::Warn,
    }
}
