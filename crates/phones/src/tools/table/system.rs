//! System actions.

use serde_json::json;

use super::arguments::{MAX_BYTES, boolean, integer, string};
use super::{ACTS, DONE, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, nothing};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolFunction, ToolImpact, ToolRow};
use crate::tools::system;
use crate::touch::Key;

/// A button or panel of the system: no arguments, and nothing is lost by pressing it.
const fn button(
    name: &'static str,
    description: &'static str,
    reference: &'static str,
    run: ToolFunction,
    repeat: (&'static str, &'static str),
    (scene, example): (Scene, &'static str),
    security: &'static str,
) -> ToolRow {
    ToolRow {
        name,
        description,
        arguments: &[],
        answer: None,
        impact: ToolImpact::Navigates,
        profile: Profile::Full,
        reference: Some(Reference { description: reference, properties: nothing, required: &[] }),
        run,
        page: ToolDocPage { answer: DONE, repeat: Some(repeat), scene, example, security },
    }
}

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "system-actions.md",
    title: "System actions",
    introduction: "The buttons of the system, its shades, and its log.",
    rows: &[
        button(
            "press_back",
            "Press Back: closes the keyboard, a dialog or the current screen.",
            "Presses the back button (global accessibility action).",
            |on, _| Box::pin(system::press(on, Key::Back, "Back button press")),
            ("No", "each call goes one more step back."),
            (Scene::Notes, "{}"),
            ACTS,
        ),
        button(
            "press_home",
            "Go to the home screen; the app keeps running.",
            "Navigates to the home screen.",
            |on, _| Box::pin(system::press(on, Key::Home, "Home button press")),
            ("Yes", "the home screen stays where it is."),
            (Scene::Notes, r#"{"settle": true}"#),
            ACTS,
        ),
        button(
            "press_recents",
            "Open the overview of recently used apps.",
            "Opens the recent apps screen.",
            |on, _| Box::pin(system::press(on, Key::Recents, "Recents button press")),
            ("No", "a second press may close the overview or switch to the app before, as the phone likes."),
            (Scene::Home, "{}"),
            ACTS,
        ),
        button(
            "open_notifications",
            "Open the notification shade; read it with get_screen.",
            "Pulls down the notification shade.",
            |on, _| Box::pin(system::press(on, Key::Notifications, "Open notifications")),
            ("Yes", "a shade that is open stays open."),
            (Scene::Home, "{}"),
            "- **Data handling**: the shade shows messages of all apps to whoever reads the screen next.\n- **Permissions**: a client token for the gateway.",
        ),
        button(
            "open_quick_settings",
            "Open the panel of switches: Wi-Fi, Bluetooth, torch, sound.",
            "Opens the quick settings panel.",
            |on, _| Box::pin(system::press(on, Key::QuickSettings, "Open quick settings")),
            ("Yes", "a panel that is open stays open."),
            (Scene::Home, "{}"),
            ACTS,
        ),
        ToolRow {
            name: "get_device_logs",
            description: "The phone's latest log lines (logcat), by time, tag, level or app: shows why an app fails.",
            arguments: &[
                ToolArgument::new(
                    "last_lines",
                    || json!({"type": "integer", "default": 100, "minimum": 1, "maximum": 1000}),
                    "How many of the latest lines, 1 to 1000.",
                    "100",
                ),
                ToolArgument::new(
                    "since",
                    string,
                    "Leave out what was logged before this moment of the phone's clock, as ISO 8601.",
                    "\"2024-01-15T10:30:00\"",
                )
                .hint("ISO 8601"),
                ToolArgument::new(
                    "until",
                    string,
                    "Leave out what was logged after this moment.",
                    "\"2024-01-15T10:35:00\"",
                ),
                ToolArgument::new("tag", string, "Only lines with exactly this tag.", "\"ActivityManager\""),
                ToolArgument::new(
                    "level",
                    || json!({"enum": ["V", "D", "I", "W", "E", "F"], "default": "D"}),
                    "The least severe level to show.",
                    "\"W\"",
                ),
                ToolArgument::new("package_name", string, "Only lines of this app.", "\"dev.sinew.notes\""),
                MAX_BYTES,
            ],
            answer: Some(|| json!({"logs": string(), "line_count": integer(), "truncated": boolean()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Retrieves device logcat logs filtered by time range, tag, level, or package name.",
                properties: || {
                    json!({
                        "last_lines": {
                            "type": "integer",
                            "description": "Number of most recent log lines to return (1-1000)",
                            "default": 100,
                        },
                        "since": {
                            "type": "string",
                            "description": "ISO 8601 timestamp to filter logs from (e.g., 2024-01-15T10:30:00)",
                        },
                        "until": {
                            "type": "string",
                            "description": "ISO 8601 timestamp to filter logs until (used with since)",
                        },
                        "tag": {
                            "type": "string",
                            "description": "Filter by log tag (exact match, e.g., MCP:ServerService)",
                        },
                        "level": {
                            "type": "string",
                            "enum": ["V", "D", "I", "W", "E", "F"],
                            "description": "Minimum log level to include",
                            "default": "D",
                        },
                        "package_name": {"type": "string", "description": "Filter logs by package name"},
                    })
                },
                required: &[],
            }),
            run: run!(system::logs),
            page: ToolDocPage {
                answer: "The lines as one text, their number, and whether there were more.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"last_lines": 2}"#,
                security: "- **Data handling**: logs may hold addresses, names and other things that apps wrote carelessly; they go to the caller and are not kept.\n- **Permissions**: a client token for the gateway; the phone's own rights decide which lines can be read.",
            },
        },
    ],
};
