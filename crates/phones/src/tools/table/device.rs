//! The phone itself: its state and its display.

use serde_json::json;

use super::arguments::{MAX_SIDE, boolean, objects, string};
use super::{DONE, SEES, ToolGroup, run};
use crate::tools::device;
use crate::tools::list::Profile;
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

const SETS: &str = "- **What can go wrong**: the setting stays after the test; set it back.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.";
const TELLS: &str = "- **Data handling**: what the phone says goes to the caller and is not kept.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.";

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "device-state.md",
    title: "Device state",
    introduction: "For people who test apps: listed only with `profile = \"tester\"` under `[phones]` in the configuration.",
    rows: &[
        ToolRow {
            name: "get_device_status",
            description: "Battery, network and volume of the phone, as it reports them; null where it does not.",
            arguments: &[],
            answer: Some(
                || json!({"battery": {"type": "object"}, "network": {"type": "object"}, "volume": {"type": "object"}}),
            ),
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: |on, _| Box::pin(device::status(on)),
            page: ToolDocPage {
                answer: "Battery in percent and degrees Celsius; the radios and addresses; the volume of each stream.",
                repeat: None,
                scene: Scene::Home,
                example: "{}",
                security: TELLS,
            },
        },
        ToolRow {
            name: "get_crashes",
            description: "Apps that crashed or stopped responding, with the reason; since a time, or of one package.",
            arguments: &[
                ToolArgument::new(
                    "since",
                    string,
                    "ISO 8601; without a zone, by the phone's clock.",
                    "\"2024-01-15T10:30:00\"",
                )
                .hint("ISO 8601"),
                ToolArgument::new("package", string, "Only this app.", "\"dev.sinew.notes\""),
                ToolArgument::new(
                    "limit",
                    || json!({"type": "integer", "default": 20}),
                    "The most to answer with, 1 to 200; the latest count.",
                    "5",
                ),
            ],
            answer: Some(|| json!({"crashes": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: run!(device::crashes),
            page: ToolDocPage {
                answer: "The crashes, oldest first, from the phone's event log, which holds some hours.",
                repeat: None,
                scene: Scene::Crashed,
                example: r#"{"package": "com.android.deskclock"}"#,
                security: TELLS,
            },
        },
        ToolRow {
            name: "rotate_screen",
            description: "Turn the screen and keep it so, or let it follow the phone again (auto).",
            arguments: &[ToolArgument::new(
                "orientation",
                || json!({"enum": ["portrait", "landscape", "reverse_portrait", "reverse_landscape", "auto"]}),
                "How the screen stands.",
                "\"landscape\"",
            )
            .required()],
            answer: None,
            impact: ToolImpact::Navigates,
            profile: Profile::Tester,
            reference: None,
            run: run!(device::rotate),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "a screen that stands so stays so.")),
                scene: Scene::Notes,
                example: r#"{"orientation": "landscape"}"#,
                security: SETS,
            },
        },
        ToolRow {
            name: "keep_awake",
            description: "Keep the display on while the phone is charging, or stop that.",
            arguments: &[ToolArgument::new("on", boolean, "Whether the display stays on.", "true").required()],
            answer: None,
            impact: ToolImpact::Navigates,
            profile: Profile::Tester,
            reference: None,
            run: run!(device::keep_awake),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "the setting is the same afterwards.")),
                scene: Scene::Home,
                example: r#"{"on": true}"#,
                security: SETS,
            },
        },
        ToolRow {
            name: "lock_screen",
            description: "Turn the display off, which locks the phone where it has a lock.",
            arguments: &[],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: |on, _| Box::pin(device::lock(on)),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "a display that is off stays off.")),
                scene: Scene::Home,
                example: "{}",
                security: "- **What can go wrong**: a phone with a PIN must be unlocked by a person afterwards.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.",
            },
        },
        ToolRow {
            name: "record_screen",
            description: "A video of the screen for some seconds, as an MP4 resource; act on the phone from another client meanwhile.",
            arguments: &[
                ToolArgument::new(
                    "seconds",
                    || json!({"type": "integer", "default": 5}),
                    "How long, 1 to 20 seconds.",
                    "3",
                ),
                MAX_SIDE.explained("The longest side of the video in pixels, 160 to 4096; 960 where left out."),
            ],
            answer: None,
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: run!(device::record),
            page: ToolDocPage {
                answer: "A sentence, and the video as an embedded resource of at most 8 MB. `sinew phones record` writes longer ones to a file.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"seconds": 1, "max_side": 320}"#,
                security: SEES,
            },
        },
    ],
};
