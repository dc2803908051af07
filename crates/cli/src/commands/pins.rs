//! `sinew devices pin, unpin, changes, accept`: what was agreed about a device's tools.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sinew_api::{self as api, Accept, Changes, DeviceSummary, Pin, ToolChange};

use super::{EmptyRequest, ago};
use crate::args::DeviceArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

pub async fn pin(one: &DeviceArgs, follow: Option<String>, printer: Printer) -> Result<(), CliError> {
    let answer = post(one, "pin", &Pin { follow: follow.clone() }).await?;
    let id = clean(&answer.id);
    let held = match follow {
        None => "Every difference is held back until you accept it.".to_owned(),
        Some(level) => format!("What its version announces is taken up to a {level} change; the rest is held back."),
    };
    report(&answer, printer, format!("The {} tools of {id} are agreed on. {held}\n", answer.tools))
}

pub async fn unpin(one: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let answer = post(one, "unpin", &EmptyRequest {}).await?;
    let says = format!("{} may change its tools as it likes.\n", clean(&answer.id));
    report(&answer, printer, says)
}

pub async fn accept(one: &DeviceArgs, accept: Accept, printer: Printer) -> Result<(), CliError> {
    let answer = post(one, "accept", &accept).await?;
    let id = clean(&answer.id);
    let says = match &accept.tool {
        Some(tool) => format!("`{}` of {id} is agreed on as it was shown.\n", clean(tool)),
        None => format!("The tools of {id} are agreed on as they were shown.\n"),
    };
    report(&answer, printer, says)
}

pub async fn changes(one: &DeviceArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&one.reach)?.connect().await?;
    let device = encode(&one.device);
    let mut answer: Changes = client.get(&format!("/api/v1/devices/{device}/changes")).await?;
    let events: api::Events = client.get(&format!("/api/v1/events?device={device}&limit=1000")).await?;
    let last = events.events.into_iter().rfind(|event| event.topic == "sinew/tools_changed");
    let says = people(&answer, last.as_ref(), printer);
    answer.more.insert("last_change".to_owned(), json!(last));
    report(&answer, printer, says)
}

async fn post(one: &DeviceArgs, command: &str, body: &impl Serialize) -> Result<DeviceSummary, CliError> {
    let path = format!("/api/v1/devices/{}/{command}", encode(&one.device));
    GatewayTarget::find(&one.reach)?.connect().await?.post(&path, body).await
}

fn report(answer: &impl Serialize, printer: Printer, says: String) -> Result<(), CliError> {
    if printer.is_json() {
        print_json(answer);
    } else {
        print(&says);
    }
    Ok(())
}

/// The body of an event about changed tools.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolsChanged {
    changes: Vec<ToolChange>,
    released: Vec<String>,
}

fn people(answer: &Changes, last: Option<&api::EventRecord>, printer: Printer) -> String {
    let id = clean(&answer.id);
    let mut page = match (answer.pinned, answer.follow.as_deref()) {
        (true, None | Some("nothing")) => format!("{id} is pinned: every difference is held back.\n"),
        (true, Some(follow)) => {
            format!("{id} is pinned and followed up to {} changes; the rest is held back.\n", clean(follow))
        }
        (false, _) => format!("{id} is not pinned: its tools may change, and changes are reported as events.\n"),
    };
    for one in &answer.quarantined {
        let _ = writeln!(
            page,
            "\n{} {}: {}",
            printer.paint(TextStyle::Bold, &clean(&one.tool)),
            printer.paint(TextStyle::Bad, "is held back"),
            clean(&one.why)
        );
        page.push_str(&lines(&one.changes, false, printer));
    }
    if !answer.text.is_empty() {
        let _ =
            writeln!(page, "\nWhat the device writes about itself {}:", printer.paint(TextStyle::Bad, "is held back"));
        page.push_str(&lines(&answer.text, false, printer));
    }
    for name in &answer.gone {
        let _ = writeln!(
            page,
            "\n{} {}: it was agreed on, and the device does not have it any more",
            printer.paint(TextStyle::Bold, &clean(name)),
            printer.paint(TextStyle::Bad, "is gone")
        );
    }
    let is_whole = answer.digest.is_none();
    if let Some(digest) = &answer.digest {
        let _ = writeln!(page, "\nAccept exactly this with: sinew devices accept {id} {}", clean(digest));
    }
    if let Some(last) = last {
        let event = ToolsChanged::deserialize(&last.body).unwrap_or_default();
        let _ = writeln!(page, "\nThe last change was reported {}:", ago(last.at));
        page.push_str(&lines(&event.changes, true, printer));
        if !event.released.is_empty() {
            let _ = writeln!(page, "  No longer held back: {}", clean(&event.released.join(", ")));
        }
    } else if is_whole {
        page.push_str("No change has been reported.\n");
    }
    page
}

fn lines(changes: &[ToolChange], with_tool: bool, printer: Printer) -> String {
    let mut page = String::new();
    for change in changes {
        let ink = match change.impact.as_str() {
            "breaking" => TextStyle::Bad,
            "additive" => TextStyle::Good,
            _ => TextStyle::Dim,
        };
        let tool = if with_tool { change.tool.as_str() } else { "" };
        let place = clean(&[tool, &change.path].concat());
        // Events have no text of the device.
        let says = clean(if change.message.is_empty() { &change.kind } else { &change.message });
        let _ = writeln!(page, "  {}  {place}: {says}", printer.paint(ink, &format!("{:<8}", change.impact)));
    }
    page
}
