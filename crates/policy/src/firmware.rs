//! Tools that the usual board firmware has, and what they do. Firmware says nothing about this itself.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use sinew_tool::{Digest, Effect};

/// A tool of the firmware, with the digest of its input schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirmwareTool {
    pub(crate) effect: Effect,
    pub(crate) schema: Digest,
}

pub(crate) fn find(name: &str) -> Option<FirmwareTool> {
    static TABLE: LazyLock<HashMap<&str, FirmwareTool>> = LazyLock::new(|| {
        let row = |(name, effect, properties, required): (&'static str, Effect, Value, &[&str])| {
            let mut schema = json!({"type": "object", "properties": properties});
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            (name, FirmwareTool { effect, schema: Digest::of(&schema) })
        };
        rows().into_iter().map(row).collect()
    });
    TABLE.get(name).copied()
}

fn rows() -> Vec<(&'static str, Effect, Value, &'static [&'static str])> {
    let percent = |name: &str| json!({name: {"type": "integer", "minimum": 0, "maximum": 100}});
    let text = |name: &str| json!({name: {"type": "string"}});
    vec![
        ("self.get_device_status", Effect::Read, json!({}), &[]),
        ("self.audio_speaker.set_volume", Effect::Change, percent("volume"), &["volume"]),
        ("self.screen.set_brightness", Effect::Change, percent("brightness"), &["brightness"]),
        ("self.screen.set_theme", Effect::Change, text("theme"), &["theme"]),
        ("self.camera.take_photo", Effect::Read, text("question"), &["question"]),
        ("self.get_system_info", Effect::Read, json!({}), &[]),
        ("self.screen.get_info", Effect::Read, json!({}), &[]),
        ("self.screen.preview_image", Effect::Change, text("url"), &["url"]),
        // These send the screen to an address, change what the board downloads, or make it unusable for a while.
        (
            "self.screen.snapshot",
            Effect::Danger,
            json!({
                "url": {"type": "string"},
                "quality": {"type": "integer", "default": 80, "minimum": 1, "maximum": 100},
            }),
            &["url"],
        ),
        ("self.assets.set_download_url", Effect::Danger, text("url"), &["url"]),
        ("self.reboot", Effect::Danger, json!({}), &[]),
        ("self.upgrade_firmware", Effect::Danger, text("url"), &["url"]),
    ]
}
