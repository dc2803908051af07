//! Element actions.

use serde_json::json;

use super::arguments::{BY, ELEMENT, MAX_BYTES, SELECTOR, TEXT, VALUE, boolean, objects};
use super::{ACTS, DONE, SEES, TYPES, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, by, element as element_id, with};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};
use crate::tools::{element, scroll_to, text};

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "element-actions.md",
    title: "Element actions",
    introduction: "Things on the screen by what they are, not by where they are.",
    rows: &[
        ToolRow {
            name: "find_elements",
            description: "Find elements by part of a property, also off the screen. Answers ids and states.",
            arguments: &[
                SELECTOR,
                BY,
                VALUE,
                ToolArgument::new(
                    "exact_match",
                    boolean,
                    "Whether the whole property must be exactly the value.",
                    "true",
                ),
                MAX_BYTES,
            ],
            answer: Some(|| json!({"elements": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Finds UI elements matching the specified criteria.",
                properties: || {
                    with(
                        by(),
                        json!({
                            "exact_match": {
                                "type": "boolean",
                                "default": false,
                                "description": "If true, match exactly. If false, match contains (case-insensitive)",
                            },
                        }),
                    )
                },
                required: &["by", "value"],
            }),
            run: run!(element::find),
            page: ToolDocPage {
                answer: "The elements that fit, possibly none.",
                repeat: None,
                scene: Scene::Notes,
                example: r#"{"by": "content_desc", "value": "New note", "exact_match": true}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "click_element",
            description: "Click an element: a button, row, switch or link.",
            arguments: &[ELEMENT, SELECTOR, BY, VALUE],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Clicks the specified element.",
                properties: element_id,
                required: &["element_id"],
            }),
            run: run!(element::click),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more click.")),
                scene: Scene::Notes,
                example: r#"{"by": "content_desc", "value": "New note"}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "long_click_element",
            description: "Hold an element: opens its menu or starts a selection.",
            arguments: &[ELEMENT, SELECTOR, BY, VALUE],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Long-clicks the specified element.",
                properties: element_id,
                required: &["element_id"],
            }),
            run: run!(element::long_click),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more long click.")),
                scene: Scene::NewNote,
                example: r#"{"by": "resource_id", "value": "note_title"}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "set_text",
            description: "Replace the text of a named field, focused or not; input_text can also append.",
            arguments: &[ELEMENT, SELECTOR, BY, VALUE, TEXT],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Sets the text of an editable element.",
                properties: || {
                    with(
                        element_id(),
                        json!({"text": {"type": "string", "description": "Text to set (empty string to clear)"}}),
                    )
                },
                required: &["element_id", "text"],
            }),
            run: run!(text::set),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "the field holds the same text afterwards.")),
                scene: Scene::NewNote,
                example: r#"{"by": "resource_id", "value": "note_title", "text": "Grüße 🎉"}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "scroll_to_element",
            description: "Scroll until an element is visible; searches the list to both ends.",
            arguments: &[ELEMENT, SELECTOR, BY, VALUE],
            answer: None,
            impact: ToolImpact::Navigates,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Scrolls until the specified element is visible.",
                properties: element_id,
                required: &["element_id"],
            }),
            run: run!(scroll_to::scroll_to),
            page: ToolDocPage {
                answer: "A sentence that names the element by its id.",
                repeat: Some(("Yes", "an element that is visible stays where it is.")),
                scene: Scene::Contacts,
                example: r#"{"by": "text", "value": "Mary Hopper"}"#,
                security: SEES,
            },
        },
    ],
};
