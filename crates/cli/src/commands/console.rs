//! `sinew console`: opens the console, signed in.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::{Value, json};
use sinew_api::LoginLink;

use crate::args::ReachArgs;
use crate::client::GatewayTarget;
use crate::error::CliError;
use crate::terminal::{Printer, print_exact, print_json, say};

#[derive(Debug, Args)]
pub struct ConsoleArgs {
    /// Print the link and open no browser
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

pub async fn run(args: ConsoleArgs, printer: Printer) -> Result<(), CliError> {
    let target = GatewayTarget::find(&args.reach)?;
    let LoginLink { path, seconds } =
        target.connect().await?.post("/api/v1/login-links", &Value::Object(Default::default())).await?;
    let url = format!("{}{path}", target.url.to_string().trim_end_matches('/'));
    if printer.is_json() {
        print_json(&json!({"url": url, "seconds": seconds}));
        return Ok(());
    }
    let is_opened = !args.print && open(&url);
    let what = if is_opened { "The console opens in your browser. If it does not, open" } else { "Open" };
    say(&format!("{what} this link within {seconds} s; it works once:"));
    print_exact(&format!("{url}\n"));
    Ok(())
}

/// Whether a program was started that shows the page.
fn open(url: &str) -> bool {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        // Without a desktop there is nothing to open it with.
        _ if ["DISPLAY", "WAYLAND_DISPLAY"].iter().all(|name| std::env::var_os(name).is_none()) => return false,
        _ => ("xdg-open", &[]),
    };
    let command = Command::new(program).args(before).arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    command.is_ok()
}
