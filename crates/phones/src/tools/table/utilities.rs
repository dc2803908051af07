//! Utilities.

use serde_json::json;

use super::arguments::{BY, MAX_BYTES, SELECTOR, TEXT, VALUE, boolean, integer, string};
use super::{DONE, SEES, TYPES, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, by, nothing, timeout, with};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};
use crate::tools::{text, wait};

const TIMEOUT: &str = "How long to wait, in milliseconds, 1 to 30000.";

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "utilities.md",
    title: "Utilities",
    introduction: "The clipboard, and waiting for the screen.",
    rows: &[
        ToolRow {
            name: "get_clipboard",
            description: "The text copied last on the phone, or null.",
            arguments: &[MAX_BYTES.only_tester()],
            answer: Some(|| json!({"text": {"type": ["string", "null"]}})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Returns the clipboard's text.",
                properties: nothing,
                required: &[],
            }),
            run: run!(text::clipboard),
            page: ToolDocPage {
                answer: "The text, or null.",
                repeat: None,
                scene: Scene::Copied,
                example: "{}",
                security: "- **Data handling**: people copy passwords. The text goes to the caller and is not kept by the gateway.\n- **Permissions**: a client token for the gateway; Android lets only some ways to a phone read the clipboard.",
            },
        },
        ToolRow {
            name: "set_clipboard",
            description: "Put a text into the clipboard; press_key PASTE inserts it.",
            arguments: &[TEXT.explained("The text to put there.")],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Sets the clipboard's text.",
                properties: || json!({"text": {"type": "string", "description": "Text to set in clipboard"}}),
                required: &["text"],
            }),
            run: run!(text::set_clipboard),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some((
                    "Yes",
                    "the clipboard holds the same text afterwards; what it held before is gone either way.",
                )),
                scene: Scene::Home,
                example: r#"{"text": "kopiert ✂"}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "wait_for_element",
            description: "Wait until an element appears, within the timeout.",
            arguments: &[
                SELECTOR,
                BY,
                VALUE,
                ToolArgument::new("timeout", || json!({"type": "integer", "default": 5000}), TIMEOUT, "3000")
                    .hint("ms"),
            ],
            answer: Some(
                || json!({"found": boolean(), "elapsedMs": integer(), "attempts": integer(), "element": {"type": "object"}}),
            ),
            impact: ToolImpact::Reads,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Waits until an element matching the criteria appears.",
                properties: || with(by(), timeout(5000)),
                required: &["by", "value"],
            }),
            run: run!(wait::element),
            page: ToolDocPage {
                answer: "Whether it came, after how long, and the element.",
                repeat: None,
                scene: Scene::Notes,
                example: r#"{"by": "content_desc", "value": "New note", "timeout": 2000}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "wait_for_idle",
            description: "Wait until the screen stops changing; fails when the time is up.",
            arguments: &[ToolArgument::new("timeout", || json!({"type": "integer", "default": 3000}), TIMEOUT, "3000")
                .hint("ms")],
            answer: Some(|| json!({"message": string(), "elapsedMs": integer()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Waits until the UI becomes idle.",
                properties: || timeout(3000),
                required: &[],
            }),
            run: run!(wait::idle),
            page: ToolDocPage {
                answer: "A sentence, and how long it took.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"timeout": 2000}"#,
                security: "- **Data handling**: the screen is looked at and nothing of it is told but whether it moves.",
            },
        },
    ],
};
