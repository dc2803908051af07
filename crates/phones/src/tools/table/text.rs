//! Text input.

use serde_json::json;

use super::arguments::{BY, ELEMENT, SELECTOR, TEXT, VALUE, boolean, string};
use super::{ACTS, DONE, TYPES, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, optional_element, with};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};
use crate::tools::text;

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "text-input.md",
    title: "Text input",
    introduction: "Words and keys. Any text can be entered, in every script.",
    rows: &[
        ToolRow {
            name: "input_text",
            description: "Replace the text of the focused field or the one named, or append. Any script; \\n starts a line. press_key ENTER submits.",
            arguments: &[
                ELEMENT,
                SELECTOR,
                BY,
                VALUE,
                TEXT,
                ToolArgument::new(
                    "append",
                    boolean,
                    "Whether to keep what the field holds and write behind it.",
                    "true",
                ),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Types text into the focused field or the specified element.",
                properties: || {
                    with(json!({"text": {"type": "string", "description": "Text to type"}}), optional_element())
                },
                required: &["text"],
            }),
            run: run!(text::input),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some((
                    "Partially",
                    "replacing gives the same text again; with `append` each call adds the text once more.",
                )),
                scene: Scene::NewNote,
                example: r#"{"by": "resource_id", "value": "note_body", "text": "שלום עולם"}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "clear_text",
            description: "Empty the focused field, or the one named.",
            arguments: &[ELEMENT, SELECTOR, BY, VALUE],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Clears the text of the focused field or the specified element.",
                properties: optional_element,
                required: &[],
            }),
            run: run!(text::clear),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "an empty field stays empty.")),
                scene: Scene::NewNote,
                example: r#"{"by": "resource_id", "value": "note_title"}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "press_key",
            description: "Press a key: ENTER (submits), DEL, TAB, BACK, HOME, UP, DOWN, PASTE, WAKEUP; an unknown one lists all.",
            arguments: &[ToolArgument::new("key", string, "The key by its name, in any case.", "\"ENTER\"").required()],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Presses a key.",
                properties: || {
                    json!({
                        "key": {
                            "type": "string",
                            "enum": ["ENTER", "BACK", "DEL", "HOME", "TAB", "SPACE"],
                            "description": "Key to press",
                        },
                    })
                },
                required: &["key"],
            }),
            run: run!(text::press),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more key press.")),
                scene: Scene::Notes,
                example: r#"{"key": "HOME"}"#,
                security: ACTS,
            },
        },
    ],
};
