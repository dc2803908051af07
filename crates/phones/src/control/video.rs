//! Videos of the screen with Android's `screenrecord`.

use std::time::Duration;

use tokio::io::AsyncWrite;

use super::{PhoneShell, reason};
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoRequest {
    pub seconds: u32,
    /// Width and height in pixels; the screen's own where `None`.
    pub size: Option<(u32, u32)>,
    pub bits_per_second: u32,
    /// The largest file that is taken.
    pub most_bytes: u64,
}

/// Records and streams the file (MP4) to `into`; nothing stays on the phone. Gives its size.
pub async fn record(
    on: &dyn PhoneShell,
    request: &VideoRequest,
    into: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64, PhoneError> {
    let path = format!("/data/local/tmp/sinew-video-{}.mp4", std::process::id());
    // A caller who gives up closes the connection, which ends the shell: the file goes with it.
    let cleanup = ShellCommand::new("trap").arg(format!("rm -f {path}")).literal("HUP TERM");
    let mut command = ShellCommand::new("screenrecord --time-limit").arg(request.seconds);
    command = command.literal("--bit-rate").arg(request.bits_per_second);
    if let Some((width, height)) = request.size {
        command = command.literal("--size").arg(format!("{width}x{height}"));
    }
    let time = Duration::from_secs(u64::from(request.seconds) + 20);
    let recorded = on.run_command(&command.arg(&path).after(cleanup), CommandLimits { time, bytes: 1 << 20 }).await;
    let pulled = match &recorded {
        Ok(output) if output.exit == 0 => on.pull(&path, into, request.most_bytes, Duration::from_secs(60)).await,
        Ok(output) => Err(PhoneError::Failed(format!("the screen was not recorded: {}", reason(&output.text())))),
        Err(error) => Err(error.clone()),
    };
    let removed = on.run_command(&ShellCommand::new("rm -f").arg(&path), CommandLimits::seconds(10)).await;
    let size = pulled?;
    removed?;
    Ok(size)
}
