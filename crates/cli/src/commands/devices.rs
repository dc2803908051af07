//! `sinew devices`: who is there, and by which name.

use sinew_api as api;

use super::{Empty, ago, pins};
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
        Some(DevicesVerb::Label(labels)) => {
            label(&labels, api::Labels { add: labels.labels.clone(), remove: Vec::new() }, show).await
        }
        Some(DevicesVerb::Unlabel(labels)) => {
            label(&labels, api::Labels { add: Vec::new(), remove: labels.labels.clone() }, show).await
        }
        Some(DevicesVerb::Pin(one)) => pins::pin(&one, show).await,
        Some(DevicesVerb::Unpin(one)) => pins::unpin(&one, show).await,
        Some(DevicesVerb::Changes(one)) => pins::changes(&one, show).await,
        Some(DevicesVerb::Accept { device, tool }) => pins::accept(&device, tool.as_deref(), show).await,
        None => all(&args.reach, show).await,
    }
}

async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer: api::Devices = Target::find(reach)?.connect().await?.get("/api/v1/devices").await?;
    if show.json() {
        print_json(&answer);
        return Ok(());
    }
    let devices = &answer.devices;
    if devices.is_empty() {
        print("No device has come yet. Connect a virtual one with `sinew sim board`.\n");
        return Ok(());
    }
    let mut table =
        Table::new(["DEVICE", "NAME", "LABELS", "KIND", "VERSION", "STATE", "SINCE", "TOOLS", "ADMITTED BY"]);
    for device in devices {
        let count = device.tools;
        let tools = if device.pinned { format!("{count}, pinned") } else { count.to_string() };
        // The gateway's own token is for first trials; whoever looks at the table should see that.
        let admitted = device.admitted_by.as_deref().unwrap_or_default();
        let trial = (admitted == "gateway token").then_some(Ink::Warn);
        table.row([
            (Some(Ink::Bold), device.id.clone()),
            (None, device.name.clone().unwrap_or_default()),
            (None, device.labels.join(", ")),
            (None, device.kind.clone()),
            (None, device.version.clone()),
            (Some(ink_of(&device.state)), device.state.clone()),
            (None, ago(device.since)),
            (None, tools),
            (trial, admitted.to_owned()),
        ]);
    }
    print(&show.table(&table));
    for device in devices {
        let id = clean(&device.id);
        if let Some(remedy) = device.remedy.as_deref().filter(|_| device.state != "away") {
            print(&format!("{id}: {}\n", clean(remedy)));
        }
        for warning in device.warnings.iter().take(MOST_WARNINGS) {
            print(&format!("{id}: {}\n", clean(warning)));
        }
        if device.warnings.len() > MOST_WARNINGS {
            let more = device.warnings.len() - MOST_WARNINGS;
            print(&format!("{id}: {more} more warnings; `--output json` shows them\n"));
        }
        // What the gateway had to refuse or end.
        let trouble = device.attribute("trouble");
        if !trouble.is_empty() {
            print(&format!("{id}: {}\n", clean(trouble)));
        }
    }
    Ok(())
}

async fn rename(device: &str, name: &str, reach: &Reach, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/rename", encode(device));
    let request = api::Rename { name: name.to_owned() };
    let answer: api::DeviceSummary = Target::find(reach)?.connect().await?.post(&path, &request).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.id);
        // The gateway trims the name; an empty one takes it away.
        print(&match answer.name.as_deref().unwrap_or_default() {
            "" => format!("{id} has no name of its own any more; it is called by its id\n"),
            name => format!("{id} is now called {}\n", clean(name)),
        });
    }
    Ok(())
}

async fn forget(one: &OneDevice, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/forget", encode(&one.device));
    let answer: api::DeviceSummary = Target::find(&one.reach)?.connect().await?.post(&path, &Empty {}).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.id);
        print(&format!("{id} is forgotten. A token that was made for it still works: see `sinew token list`.\n"));
    }
    Ok(())
}

async fn label(args: &Labels, change: api::Labels, show: Show) -> Result<(), Failure> {
    let path = format!("/api/v1/devices/{}/labels", encode(&args.device));
    let answer: api::DeviceSummary = Target::find(&args.reach)?.connect().await?.post(&path, &change).await?;
    if show.json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.id);
        print(&match answer.labels.join(", ").as_str() {
            "" => format!("{id} has no labels\n"),
            labels => format!("{id} has the labels {}\n", clean(labels)),
        });
    }
    Ok(())
}

pub fn ink_of(state: &str) -> Ink {
    match state {
        "ready" => Ink::Good,
        "away" => Ink::Dim,
        _ => Ink::Warn,
    }
}
