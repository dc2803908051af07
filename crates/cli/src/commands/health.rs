//! `sinew health`: whether the gateway can make calls, as an exit code.

use serde_json::json;

use crate::args::StatusArgs;
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json};

pub async fn run(args: StatusArgs, printer: Printer) -> Result<(), CliError> {
    let target = GatewayTarget::find(&args.reach)?;
    let readiness = target.connect().await?.readiness().await?;
    if !readiness.ready {
        let reasons: Vec<String> = readiness.reasons.iter().map(|reason| json!(reason).to_string()).collect();
        let message = format!("{} cannot make calls: {}", target.description, reasons.join(", "));
        return Err(CliError::new(CliErrorKind::ChecksFailed, message));
    }
    if printer.is_json() {
        print_json(&readiness);
    } else {
        print("ready\n");
    }
    Ok(())
}
