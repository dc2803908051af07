//! `sinew events`: what devices said without being asked.

use std::collections::VecDeque;

use sinew_api as api;

use crate::args::EventsArgs;
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_exact, print_json};

/// The gateway's largest page.
const PAGE: usize = 1000;

/// 25 s: shorter than what proxies and firewalls let a silent request live.
const WAIT_MS: u32 = 25_000;

pub async fn run(args: EventsArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let mut reader = EventReader { device: args.device.clone(), cursor: None, dropped: 0 };
    // Pages run from the oldest on; the newest are kept.
    let mut past = VecDeque::new();
    loop {
        let events = reader.page(&mut client, 0).await?;
        let last = events.len() < PAGE;
        past.extend(events);
        past.drain(..past.len().saturating_sub(args.limit));
        if last {
            break;
        }
    }
    if printer.is_json() && !args.follow {
        let next = reader.cursor.unwrap_or_default();
        print_json(&api::Events { events: past.into(), next, dropped: reader.dropped });
        return Ok(());
    }
    if past.is_empty() && !args.follow {
        print("Nothing yet. `sinew events --follow` waits for what comes.\n");
    }
    past.iter().for_each(|event| show(event, printer));
    if !args.follow {
        return Ok(());
    }
    loop {
        for event in reader.page(&mut client, WAIT_MS).await? {
            show(&event, printer);
        }
    }
}

struct EventReader {
    device: Option<String>,
    cursor: Option<String>,
    /// Events that are gone.
    dropped: u64,
}

impl EventReader {
    async fn page(&mut self, client: &mut GatewayClient, wait_ms: u32) -> Result<Vec<api::EventRecord>, CliError> {
        let mut path = format!("/api/v1/events?limit={PAGE}&wait_ms={wait_ms}");
        if let Some(device) = &self.device {
            path.push_str(&format!("&device={}", encode(device)));
        }
        if let Some(cursor) = &self.cursor {
            path.push_str(&format!("&since={}", encode(cursor)));
        }
        let api::Events { events, next, dropped } = client.get(&path).await?;
        self.cursor = Some(next);
        self.dropped += dropped;
        if dropped > 0 {
            tracing::warn!("{dropped} events are gone: more came than are kept");
        }
        Ok(events)
    }
}

/// One event: a line of JSON for scripts, or time, device, topic and body for people.
fn show(event: &api::EventRecord, printer: Printer) {
    if printer.is_json() {
        return print_exact(&serde_json::to_string(event).map(|line| line + "\n").unwrap_or_default());
    }
    let at = jiff::Timestamp::from_millisecond(event.at).ok();
    let at = at.map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string());
    let body = if event.body.is_null() { String::new() } else { event.body.to_string() };
    print(&format!(
        "{}  {}  {}  {}\n",
        printer.paint(TextStyle::Dim, &at.unwrap_or_default()),
        printer.paint(TextStyle::Bold, &clean(&event.device)),
        printer.paint(TextStyle::Accent, &clean(&event.topic)),
        clean(&body),
    ));
}
