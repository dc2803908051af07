//! The state of the phone, and its display.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Args, Content, Outcome, ToolError};
use tokio::time::Instant;

use super::Operator;
use super::args::{boolean, integer, invalid, text, word};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::control::video::VideoRequest;
use crate::control::{status, video};
use crate::logs::LogTime;
use crate::phone::PhoneError;
use crate::touch::Key;

pub(super) async fn status(on: &Operator<'_>) -> Result<Outcome, ToolError> {
    let status = status::read(on.shell()?).await?;
    let volumes =
        status.volumes.iter().map(|one| (one.stream.to_owned(), json!({"level": one.level, "highest": one.highest})));
    Ok(Outcome::json(json!({
        "battery": {
            "percent": status.battery_percent,
            "charging": status.charging,
            "celsius": status.battery_temperature.map(|tenths| f64::from(tenths) / 10.0),
        },
        "network": {
            "airplaneMode": status.airplane_mode,
            "wifi": status.wifi,
            "bluetooth": status.bluetooth,
            "mobileData": status.mobile_data,
            "addresses": status.addresses,
        },
        "volume": Value::Object(volumes.collect()),
    })))
}

pub(super) async fn crashes(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let since = match text(args, "since")? {
        None => None,
        Some(text) => Some(LogTime::parse(&text).ok_or_else(|| {
            invalid("since", format!("since must be an ISO 8601 time such as 2024-01-15T10:30:00, got '{text}'"))
        })?),
    };
    let package = text(args, "package")?.filter(|package| !package.is_empty());
    let most = integer(args, "limit", 20, 1..=200)?.unsigned_abs() as usize;
    let found = status::crashes(on.shell()?, since, package.as_deref(), most).await?;
    let found: Vec<Value> = found
        .iter()
        .map(|one| {
            let time = one.time.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string();
            json!({"time": time, "kind": one.kind.word(), "process": one.process, "reason": one.reason})
        })
        .collect();
    Ok(Outcome::json(json!({"crashes": found})))
}

/// Quarter turns from the natural orientation of a phone.
const ORIENTATIONS: [(&str, u8); 4] =
    [("portrait", 0), ("landscape", 1), ("reverse_portrait", 2), ("reverse_landscape", 3)];

pub(super) async fn rotate(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let words: Vec<&str> = ORIENTATIONS.iter().map(|(name, _)| *name).chain(["auto"]).collect();
    let orientation = word(args, "orientation", &words)?.ok_or_else(|| {
        invalid("orientation", format!("Missing required parameter 'orientation': {}", words.join(", ")))
    })?;
    let turns = ORIENTATIONS.iter().find(|(name, _)| *name == orientation).map(|(_, turns)| *turns);
    let follow = ShellCommand::new("settings put system accelerometer_rotation").arg(u8::from(turns.is_none()));
    let command = match turns {
        Some(turns) => follow.and(ShellCommand::new("settings put system user_rotation").arg(turns)),
        None => follow,
    };
    run(on, &command).await?;
    if let Some(turns) = turns {
        wait_for_rotation(on, turns).await?;
    }
    Ok(Outcome::text(format!("The screen is now {orientation}")))
}

/// The display turns a moment after the setting; an app may also insist on its own orientation.
async fn wait_for_rotation(on: &Operator<'_>, turns: u8) -> Result<(), ToolError> {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let screen = on.screen_now().await?;
        if screen.rotation == turns {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let message =
                "the rotation is set, but the screen did not turn: the app in front keeps its own orientation";
            return Err(PhoneError::Failed(message.to_owned()).into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub(super) async fn keep_awake(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let is_on = boolean(args, "on")?.ok_or_else(|| invalid("on", "Missing required parameter 'on'"))?;
    run(on, &ShellCommand::new("svc power stayon").arg(is_on)).await?;
    Ok(Outcome::text(match is_on {
        true => "The display stays on while the phone is charging",
        false => "The display turns off as the phone's settings say",
    }))
}

pub(super) async fn lock(on: &Operator<'_>) -> Result<Outcome, ToolError> {
    on.phone.key(Key::Sleep).await?;
    Ok(Outcome::text("The display is off; the phone locks as its settings say"))
}

async fn run(on: &Operator<'_>, command: &ShellCommand) -> Result<(), ToolError> {
    let output = on.shell()?.run_command(command, CommandLimits::seconds(15)).await?;
    let text = output.text();
    match output.exit == 0 && !text.contains("Exception") {
        true => Ok(()),
        false => {
            let line: String =
                text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason").chars().take(300).collect();
            Err(PhoneError::Failed(format!("`{}` failed: {line}", command.name())).into())
        }
    }
}

/// 8 MB: what clients take in one answer; at the rate below that is more than the longest video.
const MAX_VIDEO: u64 = 8 << 20;

/// Less than a call takes, so that a recorder that does not stop ends with its own error.
const RECORDING: Duration = Duration::from_secs(28);

pub(super) async fn record(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    // 20 s: the call has half a minute for everything.
    let seconds = integer(args, "seconds", 5, 1..=20)?;
    let side = integer(args, "max_side", 960, 160..=4096)?;
    let screen = on.screen_now().await?;
    let scale = (side as f64 / f64::from(screen.width.max(screen.height).max(1))).min(1.0);
    // Encoders want even sizes.
    let even = |size: u32| ((f64::from(size) * scale / 2.0).round() as u32 * 2).max(2);
    let request = VideoRequest {
        seconds: seconds.unsigned_abs() as u32,
        size: Some((even(screen.width), even(screen.height))),
        bits_per_second: 2_000_000,
        most_bytes: MAX_VIDEO,
        limit: RECORDING,
    };
    let mut bytes = Vec::new();
    video::record(on.shell()?, &request, &mut bytes).await?;
    let body = ResourceBody::Blob(STANDARD.encode(&bytes));
    let content =
        Content::Resource { uri: "sinew:video/screen.mp4".to_owned(), mime_type: Some("video/mp4".to_owned()), body };
    Ok(Outcome::text(format!("A video of {seconds} s, {} bytes", bytes.len())).with(content))
}
