//! Calls that need a person's approval: asked on the terminal, or said to wait.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use sinew_api::{Explain, Explained};

use crate::args::CallArgs;
use crate::client::GatewayClient;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, ask, clean, interject};

/// More lines of arguments would push the question off a small screen.
const MOST_LINES: usize = 16;

/// Asks on the terminal where the policy wants a person to agree and the caller may; otherwise the gateway asks somebody
/// else.
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
    if explained.verdict != "ask" || !explained.may_confirm {
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

/// The approvals that were announced.
#[derive(Default)]
pub struct Announced(Mutex<BTreeSet<String>>);

impl Announced {
    /// Says once how to approve a call that waits: the caller's own, or one that it makes.
    pub fn announce(&self, pending: &Value) {
        let text = |key: &str| clean(pending[key].as_str().unwrap_or_default());
        let (tool, device, reason, id) = (text("tool"), text("device"), text("reason"), text("id"));
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone()) {
            interject(&format!(
                "{tool} on {device} waits for approval ({reason}). In another terminal, `sinew approvals approve {id}` \
                 approves it (with `--as NAME` if your own token made the call, or only people decide) and `sinew approvals deny {id}` denies it."
            ));
        }
    }
}
