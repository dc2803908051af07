//! `sinew devices`: who is there, and by which name.

use sinew_api::{self as api, Accept};

use super::{EmptyRequest, ago, device_page, leases, pins};
use crate::args::{DeviceArgs, DevicesArgs, DevicesCommand, LabelsArgs, ReachArgs};
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

/// Warnings shown of one device; a broken tool list has one for each tool.
const MOST_WARNINGS: usize = 3;

pub async fn run(args: DevicesArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        Some(DevicesCommand::Rename { device, name, reach }) => rename(&device, &name, &reach, printer).await,
        Some(DevicesCommand::Show(one)) => device_page::show(&one, printer).await,
        Some(DevicesCommand::Forget(one)) => forget(&one, printer).await,
        Some(DevicesCommand::Label(labels)) => {
            label(&labels, api::Labels { add: labels.labels.clone(), remove: Vec::new() }, printer).await
        }
        Some(DevicesCommand::Unlabel(labels)) => {
            label(&labels, api::Labels { add: Vec::new(), remove: labels.labels.clone() }, printer).await
        }
        Some(DevicesCommand::Reserve { device, time, wait, purpose }) => {
            let wait = wait.map(|wait| wait.as_secs().max(1));
            let request = api::Reserve { seconds: time.as_secs().max(1), wait, purpose };
            leases::reserve(&device, &request, printer).await
        }
        Some(DevicesCommand::Release { device, breaks: false }) => leases::release(&device, printer).await,
        Some(DevicesCommand::Release { device, breaks: true }) => leases::break_lease(&device, printer).await,
        Some(DevicesCommand::Pin { device, follow }) => pins::pin(&device, follow, printer).await,
        Some(DevicesCommand::Unpin(one)) => pins::unpin(&one, printer).await,
        Some(DevicesCommand::Changes(one)) => pins::changes(&one, printer).await,
        Some(DevicesCommand::Accept { device, digest, tool }) => {
            pins::accept(&device, Accept { digest, tool }, printer).await
        }
        None => all(&args.reach, printer).await,
    }
}

async fn all(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let target = GatewayTarget::find(reach)?;
    let answer: api::Devices = target.connect().await?.get_all("/api/v1/devices").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    let devices = &answer.devices;
    if devices.is_empty() {
        let message = format!(
            "{} knows no device yet. Connect a virtual one with `sinew sim board`.",
            sentence(&target.description)
        );
        print(&format!("{}\n", printer.wrap(&message, 0)));
        return Ok(());
    }
    let mut table =
        Table::new(["DEVICE", "NAME", "PHONE", "KIND", "STATE", "SINCE", "TOOLS", "LABELS", "VERSION", "ADMITTED BY"])
            .spare(&["VERSION", "ADMITTED BY", "KIND"]);
    // With one phone it is clear whose apps these are.
    let has_phones = devices.iter().filter(|device| device.family == "phone").count() > 1;
    for device in devices {
        let count = device.tools;
        let tools = if device.pinned { format!("{count}, pinned") } else { count.to_string() };
        // The gateway's own token is for first trials; whoever looks at the table should see that.
        let admitted = device.admitted_by.as_deref().unwrap_or_default();
        let trial = (admitted == "gateway token").then_some(TextStyle::Warn);
        table.row([
            (Some(TextStyle::Bold), device.id.clone()),
            (None, device.name.clone().unwrap_or_default()),
            (None, if has_phones { phone_of(device, devices) } else { String::new() }),
            (None, device.kind.clone()),
            (Some(style_of(&device.state)), device.state.clone()),
            (None, ago(device.since)),
            (None, tools),
            (None, device.labels.join(", ")),
            (None, device.version.clone()),
            (trial, admitted.to_owned()),
        ]);
    }
    print(&printer.table(&table));
    print_shared(devices, printer, |device| device.remedy.clone());
    for device in devices {
        let id = clean(&device.id);
        let trouble = Some(device.attribute("trouble")).filter(|trouble| !trouble.is_empty());
        let more = device.warnings.len().saturating_sub(MOST_WARNINGS);
        let more = (more > 0).then(|| format!("{more} more warnings; `sinew devices show {id}` shows them"));
        let warnings = device.warnings.iter().map(String::as_str).take(MOST_WARNINGS).chain(more.as_deref());
        let lease = device.lease.as_ref().map(leases::describe);
        for line in warnings.chain(trouble).chain(lease.as_deref()) {
            print(&format!("{}\n", printer.wrap(&format!("{id}: {}", clean(line)), 2)));
        }
    }
    print_shared(devices, printer, |device| {
        let state = Some(device.attribute("relay")).filter(|state| !state.is_empty());
        state.map(|state| format!("voice relay: {state}"))
    });
    let footer = printer.wrap(&format!("{} of {}.", count(devices.len()), target.description), 0);
    print(&format!("{}\n", printer.paint(TextStyle::Dim, &footer)));
    Ok(())
}

/// The id of the phone that an app is on; empty for what is no app.
pub fn phone_of(app: &api::DeviceSummary, devices: &[api::DeviceSummary]) -> String {
    let known_as = if app.family == "app" { app.attribute("phone") } else { "" };
    let is_meant = |device: &&api::DeviceSummary| device.key.strip_prefix("phone:") == Some(known_as);
    devices.iter().find(is_meant).map_or(known_as, |phone| phone.id.as_str()).to_owned()
}

/// Prints each line once, behind all devices that it is about: fifty boards that are away need one line.
fn print_shared(
    devices: &[api::DeviceSummary],
    printer: Printer,
    line_of: impl Fn(&api::DeviceSummary) -> Option<String>,
) {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for device in devices {
        let Some(line) = line_of(device) else { continue };
        let id = clean(&device.id);
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, ids)) => ids.push(id),
            None => lines.push((line, vec![id])),
        }
    }
    for (line, ids) in lines {
        print(&format!("{}\n", printer.wrap(&format!("{}: {}", ids.join(", "), clean(&line)), 2)));
    }
}

fn count(devices: usize) -> String {
    if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") }
}

/// A text with a capital letter, to begin a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

async fn rename(device: &str, name: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/devices/{}/rename", encode(device));
    let request = api::Rename { name: name.to_owned() };
    let answer: api::DeviceSummary = GatewayTarget::find(reach)?.connect().await?.post(&path, &request).await?;
    if printer.is_json() {
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

async fn forget(one: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/devices/{}/forget", encode(&one.device));
    let answer: api::DeviceSummary =
        GatewayTarget::find(&one.reach)?.connect().await?.post(&path, &EmptyRequest {}).await?;
    if printer.is_json() {
        print_json(&answer);
    } else {
        let id = clean(&answer.id);
        print(&format!("{id} is forgotten. A token that was made for it still works: see `sinew token list`.\n"));
    }
    Ok(())
}

async fn label(args: &LabelsArgs, change: api::Labels, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/devices/{}/labels", encode(&args.device));
    let answer: api::DeviceSummary = GatewayTarget::find(&args.reach)?.connect().await?.post(&path, &change).await?;
    if printer.is_json() {
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

pub fn style_of(state: &str) -> TextStyle {
    match state {
        "ready" => TextStyle::Good,
        "away" => TextStyle::Dim,
        _ => TextStyle::Warn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_shown_with_the_id_of_its_phone_and_else_with_what_it_says() {
        let device = |id: &str, key: &str, family: &str, phone: &str| api::DeviceSummary {
            id: id.to_owned(),
            key: key.to_owned(),
            family: family.to_owned(),
            attributes: [("phone".to_owned(), phone.into())].into_iter().collect(),
            ..api::DeviceSummary::default()
        };
        let devices = [
            device("pixel", "phone:A1", "phone", ""),
            device("galaxy", "phone:B2", "phone", ""),
            device("notes", "app:B2/notes", "app", "B2"),
            device("maps", "app:C3/maps", "app", "C3"),
        ];
        let shown: Vec<String> = devices.iter().map(|device| phone_of(device, &devices)).collect();
        assert_eq!(shown, ["", "", "galaxy", "C3"]);
    }
}
