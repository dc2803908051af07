//! Sends the seals of the audit to a command, so that they are also kept where this machine cannot change them.

use std::process::Stdio;
use std::time::Duration;

use sinew_gateway::{AuditSeal, Gateway};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// A command that takes longer is stopped.
const LONGEST: Duration = Duration::from_secs(30);

/// Runs `command` for each seal, with the seal as one line of JSON on its standard input.
pub(crate) async fn send(command: Vec<String>, gateway: Gateway, stop: CancellationToken) {
    let mut seals = gateway.seals();
    // The last seal is made when a gateway has closed everything else, so it is sent by the next one.
    if let Ok(Some(seal)) = gateway.last_seal().await {
        send_one(&command, &seal).await;
    }
    loop {
        let seal = tokio::select! {
            seal = seals.recv() => seal,
            () = stop.cancelled() => return,
        };
        match seal {
            Ok(seal) => send_one(&command, &seal).await,
            Err(RecvError::Lagged(count)) => {
                tracing::error!(count, "seals of the audit were not sent: too many at once")
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn send_one(command: &[String], seal: &AuditSeal) {
    let sent = tokio::time::timeout(LONGEST, run(command, seal)).await;
    let sent = sent.unwrap_or_else(|_| Err(format!("it ran longer than {} s", LONGEST.as_secs())));
    if let Err(why) = sent {
        tracing::error!(last = seal.last, command = command.join(" "), why, "a seal of the audit was not sent");
    }
}

async fn run(command: &[String], seal: &AuditSeal) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("the command is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let line = serde_json::to_string(seal).map_err(|error| error.to_string())? + "\n";
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(line.as_bytes()).await.map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}
