//! Looking at the phone: tree, screenshot, current app, screen size.

use serde_json::json;
use sinew_tool::{Args, Content, Outcome, ToolError};

use super::args::{boolean, integer, invalid};
use super::{Operator, budget};
use crate::image::{self, Jpeg, JpegOptions};
use crate::phone::{Image, PhoneError};
use crate::tree;

pub(super) async fn tree(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let budget = budget(args)?;
    let tree = on.tree().await?;
    if tree.is_empty() {
        return Err(PhoneError::Failed("Failed to obtain root accessibility node.".to_owned()).into());
    }
    Ok(Outcome::json(tree::json::to_json(&tree, budget)))
}

pub(super) async fn screenshot(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let finish = finish(args)?;
    let image = on.phone.screenshot().await?;
    Ok(Outcome { content: vec![to_jpeg(image, finish).await?], ..Outcome::default() })
}

/// What the arguments want done to a picture.
pub(super) fn finish(args: &Args) -> Result<JpegOptions, ToolError> {
    let quality = integer(args, "quality", 80, i64::MIN..=i64::MAX).map_err(|_| {
        let got = args.get("quality").cloned().unwrap_or_default();
        invalid("quality", format!("Quality must be an integer between 1 and 100, got {got}"))
    })?;
    let quality = u8::try_from(quality).ok().filter(|quality| (1..=100).contains(quality));
    let quality = quality.ok_or_else(|| {
        let got = args.get("quality").cloned().unwrap_or_default();
        invalid("quality", format!("Quality must be between 1 and 100, got {got}"))
    })?;
    // 100000: larger than any screen, which means "as it is".
    let max_side = integer(args, "max_side", 100_000, 16..=100_000)?;
    Ok(JpegOptions {
        quality,
        max_side: u32::try_from(max_side).ok(),
        grayscale: boolean(args, "grayscale")?.unwrap_or(false),
        marks: Vec::new(),
    })
}

/// Encoding takes tens of milliseconds of one core, so it has a thread of its own.
pub(super) async fn to_jpeg(picture: Image, finish: JpegOptions) -> Result<Content, ToolError> {
    let work = tokio::task::spawn_blocking(move || image::finish(picture, &finish));
    let jpeg = work.await.map_err(|error| PhoneError::Failed(format!("Screenshot capture failed: {error}")))?;
    let Jpeg { bytes, width, height } =
        jpeg.map_err(|error| PhoneError::Failed(format!("Screenshot capture failed: {error}")))?;
    Ok(Content::image(&bytes, "image/jpeg", Some((width, height))))
}

pub(super) async fn current_app(on: &Operator<'_>) -> Result<Outcome, ToolError> {
    let app = on.phone.foreground().await?;
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut answer = json!({"packageName": or_unknown(app.package), "activityName": or_unknown(app.activity)});
    if let Some(window) = app.window {
        answer["focusedWindow"] = json!(window);
    }
    Ok(Outcome::json(answer))
}

pub(super) async fn screen_info(on: &Operator<'_>) -> Result<Outcome, ToolError> {
    let screen = on.screen_now().await?;
    let orientation = if screen.width > screen.height { "landscape" } else { "portrait" };
    let mut answer = json!({
        "width": screen.width,
        "height": screen.height,
        "densityDpi": screen.density_dpi,
        "orientation": orientation,
    });
    if screen.locked {
        answer["locked"] = json!(true);
    }
    if !screen.awake {
        answer["awake"] = json!(false);
    }
    Ok(Outcome::json(answer))
}
