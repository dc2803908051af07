//! `sinew journal`: recent calls with their answers.

use clap::Args;
use serde_json::Value;
use sinew_api::{Journal, JournalCall};

use super::ago;
use crate::args::ReachArgs;
use crate::client::{GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_json};

#[derive(Debug, Args)]
pub struct JournalArgs {
    /// Only calls of a device, by id or name
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Show at most this many, the newest
    #[arg(long, default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    reach: ReachArgs,
}

pub async fn run(args: JournalArgs, printer: Printer) -> Result<(), CliError> {
    let device = args.device.as_ref().map(|device| format!("&device={}", encode(device))).unwrap_or_default();
    let path = format!("/api/v1/journal?limit={}{device}", args.limit);
    let journal: Journal = GatewayTarget::find(&args.reach)?.connect().await?.get(&path).await?;
    if printer.is_json() {
        print_json(&journal);
        return Ok(());
    }
    journal.calls.iter().for_each(|call| print(&page(call, printer)));
    if !journal.on {
        print(
            "The journal is off. To keep recent calls with their answers, put `[journal]` with `on = true` into sinew.toml.\n",
        );
    } else if journal.calls.is_empty() {
        print("No call yet.\n");
    }
    Ok(())
}

fn page(call: &JournalCall, printer: Printer) -> String {
    let head = format!("{} on {}", clean(&call.tool), clean(&call.device));
    let when = format!("{}, by {}, {:.1} ms", ago(call.at), clean(&call.principal), call.duration_us as f64 / 1000.0);
    let mut text = format!("{}  {}\n", printer.paint(TextStyle::Bold, &head), printer.paint(TextStyle::Dim, &when));
    text.push_str(&format!("  {}\n", clean(&Value::Object(call.arguments.clone()).to_string())));
    text.push_str(&screen_text("before", call.screen_before.as_deref(), printer));
    let items = call.result.iter().flat_map(|result| &result.content);
    text.extend(items.map(|item| format!("  {}\n", clean(&item_text(item)))));
    if let Some(error) = &call.error {
        let message = error["error_message"].as_str().unwrap_or_default();
        text.push_str(&format!("  {}\n", printer.paint(TextStyle::Bad, &clean(message))));
    }
    text.push_str(&screen_text("after", call.screen_after.as_deref(), printer));
    text + "\n"
}

fn screen_text(when: &str, screen: Option<&str>, printer: Printer) -> String {
    let Some(screen) = screen else { return String::new() };
    let lines = screen.lines().map(|line| format!("    {}\n", clean(line)));
    format!("  {}\n{}", printer.paint(TextStyle::Dim, &format!("screen {when}:")), lines.collect::<String>())
}

/// A text as it is, anything else by its type.
fn item_text(item: &Value) -> String {
    match item["text"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            format!("({} {})", item["type"].as_str().unwrap_or("item"), item["mimeType"].as_str().unwrap_or_default())
        }
    }
}
