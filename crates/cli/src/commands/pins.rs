//! `sinew devices pin, unpin, changes, accept`: what was agreed about a device's tools.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{ago, list, text};
use crate::args::OneDevice;
use crate::client::{Target, encode};
use crate::failure::Failure;
use crate::show::{Ink, Show, clean, print, print_json};

pub async fn pin(one: &OneDevice, show: Show) -> Result<(), Failure> {
    let answer = post(one, "pin", json!({})).await?;
    let says = |id: &str, tools: &Value| {
        format!(
            "The {tools} tools of {id} are agreed on. A breaking change without a major version, or words that change \
             in silence, will be held back.\n"
        )
    };
    tell(&answer, show, says(&clean(text(&answer, "id")), &answer["tools"]))
}

pub async fn unpin(one: &OneDevice, show: Show) -> Result<(), Failure> {
    let answer = post(one, "unpin", json!({})).await?;
    tell(&answer, show, format!("{} may change its tools as it likes.\n", clean(text(&answer, "id"))))
}

pub async fn accept(one: &OneDevice, tool: Option<&str>, show: Show) -> Result<(), Failure> {
    let answer = post(one, "accept", json!({ "tool": tool })).await?;
    let id = clean(text(&answer, "id"));
    let says = match tool {
        Some(tool) => format!("`{}` of {id} is agreed on as it is now.\n", clean(tool)),
        None => format!("The tools of {id} are agreed on as they are now.\n"),
    };
    tell(&answer, show, says)
}

pub async fn changes(one: &OneDevice, show: Show) -> Result<(), Failure> {
    let mut client = Target::find(&one.reach)?.connect().await?;
    let device = encode(&one.device);
    let mut answer = client.get(&format!("/api/v1/devices/{device}/changes")).await?;
    let events = client.get(&format!("/api/v1/events?device={device}&limit=1000")).await?;
    let last = list(&events, "events").iter().rfind(|event| text(event, "topic") == "sinew/tools_changed");
    answer["last_change"] = last.cloned().unwrap_or_default();
    tell(&answer, show, people(&answer, show))
}

async fn post(one: &OneDevice, verb: &str, body: Value) -> Result<Value, Failure> {
    let path = format!("/api/v1/devices/{}/{verb}", encode(&one.device));
    Target::find(&one.reach)?.connect().await?.post(&path, &body).await
}

fn tell(answer: &Value, show: Show, says: String) -> Result<(), Failure> {
    if show.json() {
        print_json(answer);
    } else {
        print(&says);
    }
    Ok(())
}

fn people(answer: &Value, show: Show) -> String {
    let id = clean(text(answer, "id"));
    let pinned = answer["pinned"] == true;
    let mut page = match pinned {
        true => format!("{id} is pinned: its tools change in the open, or are held back.\n"),
        false => format!("{id} is not pinned: its tools may change, and changes are told as events.\n"),
    };
    let held = list(answer, "quarantined");
    for one in held {
        let _ = writeln!(
            page,
            "\n{} {}: {}",
            show.paint(Ink::Bold, &clean(text(one, "tool"))),
            show.paint(Ink::Bad, "is held back"),
            clean(text(one, "why"))
        );
        page.push_str(&lines(list(one, "changes"), false, show));
    }
    let gone = list(answer, "gone");
    for one in gone {
        let name = clean(one.as_str().unwrap_or_default());
        let _ = writeln!(
            page,
            "\n{} {}: it was agreed on, and the device does not have it any more",
            show.paint(Ink::Bold, &name),
            show.paint(Ink::Bad, "is gone")
        );
    }
    if !held.is_empty() || !gone.is_empty() {
        let _ = writeln!(page, "\nTake it as it is now with: sinew devices accept {id}");
    }
    let last = &answer["last_change"];
    let released = list(&last["body"], "released").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    if let Some(at) = last.get("at").and_then(Value::as_i64) {
        let _ = writeln!(page, "\nThe last change was told {}:", ago(at));
        page.push_str(&lines(list(&last["body"], "changes"), true, show));
        if !released.is_empty() {
            let _ = writeln!(page, "  No longer held back: {}", clean(&released));
        }
    } else if held.is_empty() && gone.is_empty() {
        page.push_str("No change has been told.\n");
    }
    page
}

fn lines(changes: &[Value], with_tool: bool, show: Show) -> String {
    let mut page = String::new();
    for change in changes {
        let impact = text(change, "impact");
        let ink = match impact {
            "breaking" => Ink::Bad,
            "additive" => Ink::Good,
            _ => Ink::Dim,
        };
        let tool = if with_tool { text(change, "tool") } else { "" };
        // What is held back is told without its words.
        let words = [tool, text(change, "path"), text(change, "message"), text(change, "kind")];
        let (place, says) = (clean(&words[..2].concat()), clean(if words[2].is_empty() { words[3] } else { words[2] }));
        let _ = writeln!(page, "  {}  {place}: {says}", show.paint(ink, &format!("{impact:<8}")));
    }
    page
}
