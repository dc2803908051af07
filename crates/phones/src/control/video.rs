//! Videos of the screen with Android's `screenrecord`.

use std::time::Duration;

use tokio::io::AsyncWrite;

use super::{PhoneShell, files, own_name, reason, with_cleanup};
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
    /// How long the recorder may take, which starts and stops slowly on some phones.
    pub limit: Duration,
}

/// A video of three minutes over a slow network.
const TRANSFER: Duration = Duration::from_secs(60);

/// Records and streams the file (MP4) to `into`; nothing stays on the phone. Gives its size.
pub async fn record(
    on: &dyn PhoneShell,
    request: &VideoRequest,
    into: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<u64, PhoneError> {
    let name = own_name("video");
    let path = format!("/data/local/tmp/{name}.mp4");
    let remove = ShellCommand::new("rm -f").arg(&path);
    // The recorder goes on when its connection ends. The shells around it name the file too, but do not begin so.
    let cleanup = ShellCommand::new("pkill -INT -f").arg(format!("^screenrecord .*{name}")).then(remove.clone());
    let mut command = ShellCommand::new("screenrecord --time-limit").arg(request.seconds);
    command = command.literal("--bit-rate").arg(request.bits_per_second);
    if let Some((width, height)) = request.size {
        command = command.literal("--size").arg(format!("{width}x{height}"));
    }
    // Where it cannot be interrupted, its shell removes the file at its end.
    let trap = ShellCommand::new("trap").arg(remove.line()).literal("HUP TERM");
    let command = command.arg(&path).after(trap);
    let limits = CommandLimits { time: request.limit, bytes: 1 << 20 };
    with_cleanup(on, &ShellCommand::new(":"), &cleanup, |_| async {
        let output = on.run_command(&command, limits).await?;
        if output.exit != 0 {
            return Err(PhoneError::Failed(format!("the screen was not recorded: {}", reason(&output.text()))));
        }
        files::pull(on, &path, into, request.most_bytes, TRANSFER).await.map_err(|error| match error {
            PhoneError::TooLarge(why) => PhoneError::TooLarge(format!(
                "the video is too large: {why}; record fewer seconds or a smaller picture"
            )),
            error => error,
        })
    })
    .await
}
