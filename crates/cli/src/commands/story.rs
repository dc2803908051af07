//! `sinew demo --story`: a virtual phone used as a model would use it, through a gateway of its own that has
//! no listeners and leaves nothing behind.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_gateway::{Gateway, Principal, Request, Role};
use sinew_phones::{PhoneDevice, Profile};
use sinew_tool::{Device, DeviceEvent, Outcome};

use super::demo;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

/// What is written, and read back at the end.
const NOTE: &str = "Liebe Zoë,\nשלום עולם\nمرحبا بالعالم\n买牛奶 → 100 % ½ 👩‍💻";

/// One call, and what its answer must hold.
struct StoryStep {
    says: &'static str,
    tool: &'static str,
    args: Value,
    brings: &'static str,
}

fn steps() -> Vec<StoryStep> {
    let step = |says, tool, args, brings| StoryStep { says, tool, args, brings };
    let text = |value: &str| json!({"by": "text", "value": value});
    let id = |value: &str| json!({"by": "resource_id", "value": format!(":id/{value}")});
    let with = |mut base: Value, key: &str, value: &str| {
        base[key] = json!(value);
        base
    };
    vec![
        step("Open Notes", "open_app", json!({"app": "Notes", "return": "screen"}), "New note"),
        step("Begin a note", "click_element", json!({"by": "content_desc", "value": "New note"}), "Click performed"),
        step("Give it a title", "input_text", with(id("note_title"), "text", "Grüße 🎉"), "Text input completed"),
        step("Write several lines in several scripts", "set_text", with(id("note_body"), "text", NOTE), ""),
        step("Open Contacts", "open_app", json!({"app": "Contacts", "settle": true}), "Opened"),
        step("Scroll the long list to somebody", "scroll_to_element", text("Mary Hopper"), "Scrolled to element"),
        step("Open her page", "click_element", with(text("Mary Hopper"), "return", "screen"), "Mary Hopper"),
        step("Open the pictures", "open_app", json!({"app": "Gallery", "settle": true}), "Opened"),
        step("Open the map", "click_element", with(text("Map of the island"), "return", "screen"), "Zoom 1.0×"),
        step(
            "Pinch it",
            "pinch",
            json!({"center_x": 540, "center_y": 1200, "scale": 3, "return": "diff"}),
            "Zoom 3.0×",
        ),
        step("Return to the note", "open_app", json!({"app": "Notes", "settle": true}), "Opened"),
        step("Read it back", "find_elements", id("note_body"), NOTE),
    ]
}

pub async fn run(printer: Printer) -> Result<(), CliError> {
    let gateway = Gateway::open(sinew_gateway::Settings::default())
        .map_err(|error| CliError::new(CliErrorKind::Io, format!("no gateway for the story: {error}")))?;
    let phone = Arc::new(PhoneDevice::new(demo::phone().await?, Profile::Full));
    let id = phone.info().suggested_id.clone();
    gateway.apply(DeviceEvent::Joined(phone));
    if !printer.is_json() {
        print(&format!("\n{}\n\n", printer.paint(TextStyle::Bold, "A note, a list and a map, on a virtual phone.")));
    }
    let steps = tell(&gateway, &id, printer).await;
    gateway.close().await;
    let steps = steps?;
    if printer.is_json() {
        print_json(&json!({"steps": steps}));
    } else {
        print("\nThe note came back as it was written.\n");
    }
    Ok(())
}

async fn tell(gateway: &Gateway, phone: &str, printer: Printer) -> Result<Vec<Value>, CliError> {
    let who = Principal::new("story", Role::Client);
    let mut played = Vec::new();
    for (index, step) in steps().into_iter().enumerate() {
        let args = step.args.as_object().cloned().unwrap_or_default();
        let call = gateway.call_on(phone, Request::new(who.clone(), step.tool, args, "story"));
        let answer = said(&call.await?);
        if !printer.is_json() {
            let line = format!("{:>2}. {}", index + 1, step.says);
            print(&format!("{}\n", printer.paint(TextStyle::Bold, &line)));
            print(&format!("    {}\n", printer.paint(TextStyle::Dim, &format!("{} {}", step.tool, step.args))));
            print(&short(&answer));
        }
        if !answer.contains(step.brings) {
            let message = format!("\"{}\" should have brought {:?}, and brought: {answer}", step.says, step.brings);
            return Err(CliError::new(CliErrorKind::ChecksFailed, message));
        }
        played.push(json!({"says": step.says, "tool": step.tool, "arguments": step.args, "answer": answer}));
    }
    Ok(played)
}

/// The text of an answer; of a found element what it says.
fn said(outcome: &Outcome) -> String {
    let found = outcome.structured.as_ref().and_then(|found| found.pointer("/elements/0/text")).and_then(Value::as_str);
    found.map_or_else(|| outcome.joined_text(), str::to_owned)
}

/// The first lines of an answer, indented.
fn short(answer: &str) -> String {
    const LINES: usize = 5;
    let answer = clean(answer);
    let lines: Vec<&str> = answer.lines().collect();
    let mut text: String = lines.iter().take(LINES).map(|line| format!("    → {line}\n")).collect();
    if lines.len() > LINES {
        text.push_str(&format!("    … and {} more lines\n", lines.len() - LINES));
    }
    text
}
