//! `sinew call`: one call, its answer shown or saved.

pub mod arguments;
mod consent;
mod content;

use sinew_api::{self as api, CallLine, CallResult};
use sinew_tool::ErrorKind;

use crate::args::CallArgs;
use crate::client::{GatewayTarget, Report};
use crate::error::CliError;
use crate::terminal::{Printer, TextStyle, clean, print, print_exact, print_json};
use content::{ContentLine, plain};

pub async fn run(args: CallArgs, printer: Printer) -> Result<(), CliError> {
    run_reporting(args, printer, None).await
}

/// Makes a call and shows its answer. With `report`, what comes before the answer goes there.
pub async fn run_reporting(args: CallArgs, printer: Printer, report: Option<Report<'_>>) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let arguments = arguments::of(&args, &mut client).await?;
    let confirmed = args.yes || consent::confirm(&mut client, &args, &arguments, printer).await?;
    let request = api::CallRequest {
        device: Some(args.device.clone()),
        tool: args.tool.clone(),
        arguments,
        timeout_ms: args.timeout.map(|timeout| timeout.as_millis() as u64),
        confirmed,
    };
    let announced = consent::Announced::default();
    let report = |line: CallLine| match (line, report) {
        (CallLine::Waiting(pending), _) => announced.announce(&pending),
        (line, Some(report)) => report(line),
        (_, None) => {}
    };
    let answered = client.call(&request, &report);
    let answered = printer.waiting(&format!("waiting for {}", args.device), answered).await;
    let stem = format!("{}-{}", plain(&args.device), plain(&args.tool));
    let unknown_tool = ErrorKind::UnknownTool.row().error_type;
    let mut answer: CallResult = match answered {
        // Here is said what the device has instead.
        Err(failure) if failure.error_type == unknown_tool && !args.device.trim().starts_with("label:") => {
            return Err(arguments::schema(&mut client, &args.device, &args.tool).await.err().unwrap_or(failure));
        }
        Err(mut failure) => {
            if let Some(save) = &args.save {
                content::save_report(&mut failure, save, &stem)?;
            }
            return Err(failure);
        }
        Ok(answer) => answer,
    };
    let shown = content::items(&mut answer, args.save.as_deref(), &stem)?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    for item in shown {
        match item {
            ContentLine::Text(text) => print_exact(&format!("{}\n", printer.answer(&text))),
            ContentLine::Other(what) => print(&format!("{}\n", printer.paint(TextStyle::Dim, &clean(&what)))),
        }
    }
    Ok(())
}
