//! Calls that need a person's approval: asked on the terminal, or said to wait.

use std::io::IsTerminal;
use std::time::Duration;

use serde_json::{Map, Value};
use sinew_api::{Approvals, CallRequest, Explain, Explained, WaitingCall};

use crate::args::CallArgs;
use crate::client::{GatewayClient, GatewayTarget};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, ask, clean, interject};

/// More lines of arguments would push the question off a small screen.
const MOST_LINES: usize = 16;
/// How long a call is silent before a caller who cannot see approvals is told of them.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether the call waits for approval.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Asks on the terminal where the policy wants a person to agree. Only administrators can agree to their own calls; for
/// others the gateway asks somebody else.
pub async fn confirm(
    client: &mut GatewayClient,
    args: &CallArgs,
    arguments: &Map<String, Value>,
    printer: Printer,
) -> Result<bool, CliError> {
    if args.device.trim().starts_with("label:") || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let request =
        Explain { token: None, device: args.device.clone(), tool: args.tool.clone(), arguments: arguments.clone() };
    // What is wrong with the call is better said by the call itself.
    let Ok(explained) = client.post::<Explained>("/api/v1/policy/explain", &request).await else {
        return Ok(false);
    };
    if explained.verdict != "ask" {
        return Ok(false);
    }
    let (tool, device, reason) = (clean(&args.tool), clean(&args.device), clean(&explained.reason));
    let mut lines = printer.json_lines(&Value::Object(arguments.clone()), 2);
    let hidden = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if hidden > 0 {
        lines.push(format!("  … and {hidden} more lines"));
    }
    let lines = lines.join("\n");
    ask(&format!("{tool} on {device} needs your approval ({reason}):\n{lines}\nMake the call? [y/N] "));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot read the answer: {error}")))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        _ => Err(CliError::new(CliErrorKind::Usage, "the call was not made")),
    }
}

/// The calls of others that wait for approval before this one is made. Nobody but administrators sees any.
pub async fn waiting_before(client: &mut GatewayClient, request: &CallRequest) -> Vec<String> {
    let own = Value::Object(request.arguments.clone()).to_string();
    // A call that is made again may wait already.
    let is_own = |call: &WaitingCall| call.tool == request.tool && call.args == own;
    let waiting = client.get::<Approvals>("/api/v1/approvals").await.map(|waiting| waiting.approvals);
    waiting.into_iter().flatten().filter(|call| !is_own(call)).map(|call| call.id).collect()
}

/// Says of each call that waits for approval from now on how to approve it. It may be the caller's, or one that the
/// caller's call makes. Never returns.
pub async fn announce_waiting<Never>(target: &GatewayTarget, before: Vec<String>) -> Never {
    let mut announced = before;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let looked = async { target.connect().await?.get::<Approvals>("/api/v1/approvals").await };
        let Ok(waiting) = looked.await else {
            // Only administrators see what waits.
            tokio::time::sleep(PATIENCE).await;
            interject("No answer yet. If the call needs approval, an administrator finds it with `sinew approvals`.");
            return std::future::pending().await;
        };
        for call in waiting.approvals {
            if !announced.contains(&call.id) {
                interject(&line(&call));
                announced.push(call.id);
            }
        }
    }
}

fn line(call: &WaitingCall) -> String {
    let (tool, device, reason, id) = (clean(&call.tool), clean(&call.device), clean(&call.reason), clean(&call.id));
    format!(
        "{tool} on {device} waits for approval ({reason}). In another terminal, `sinew approvals approve {id}` approves it \
         and `sinew approvals deny {id}` denies it."
    )
}
