//! Touch actions.

use serde_json::json;

use super::arguments::{DURATION, ELEMENT, LONG_DURATION, X, Y, number};
use super::{ACTS, DONE, ToolGroup, run};
use crate::tools::gesture;
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, duration, point, with};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "touch-actions.md",
    title: "Touch actions",
    introduction: "One finger on the screen. Coordinates are pixels of the current rotation.",
    rows: &[
        ToolRow {
            name: "tap",
            description: "Tap at a point. Prefer click_element for what get_screen lists.",
            arguments: &[X, Y],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Performs a single tap at the specified coordinates.",
                properties: point,
                required: &["x", "y"],
            }),
            run: run!(gesture::tap),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more tap.")),
                scene: Scene::Home,
                example: r#"{"x": 540, "y": 1200}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "long_press",
            description: "Hold a finger at a point: opens menus. Prefer long_click_element for what get_screen lists.",
            arguments: &[X, Y, LONG_DURATION],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Performs a long press at the specified coordinates.",
                properties: || with(point(), duration(1000, "Press")),
                required: &["x", "y"],
            }),
            run: run!(gesture::long_press),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more press.")),
                scene: Scene::Home,
                example: r#"{"x": 540, "y": 1200, "duration": 800}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "double_tap",
            description: "Tap twice quickly at a point: zooms into pictures and maps.",
            arguments: &[X, Y],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Performs a double tap at the specified coordinates.",
                properties: point,
                required: &["x", "y"],
            }),
            run: run!(gesture::double_tap),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more double tap.")),
                scene: Scene::Map,
                example: r#"{"x": 540, "y": 1200}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "swipe",
            description: "Drag a finger from x1,y1 to x2,y2: sliders, carousels, moving things. For lists use scroll.",
            arguments: &[
                ToolArgument::new("x1", number, "Where the finger goes down: pixels from the left.", "540").required(),
                ToolArgument::new("y1", number, "Where the finger goes down: pixels from the top.", "1800").required(),
                ToolArgument::new("x2", number, "Where the finger is lifted: pixels from the left.", "540").required(),
                ToolArgument::new("y2", number, "Where the finger is lifted: pixels from the top.", "600").required(),
                DURATION.not_compact(),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Performs a swipe from one point to another.",
                properties: || {
                    with(
                        json!({
                            "x1": {"type": "number", "description": "Start X coordinate (>= 0)"},
                            "y1": {"type": "number", "description": "Start Y coordinate (>= 0)"},
                            "x2": {"type": "number", "description": "End X coordinate (>= 0)"},
                            "y2": {"type": "number", "description": "End Y coordinate (>= 0)"},
                        }),
                        duration(300, "Swipe"),
                    )
                },
                required: &["x1", "y1", "x2", "y2"],
            }),
            run: run!(gesture::swipe),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call is one more swipe.")),
                scene: Scene::Contacts,
                example: r#"{"x1": 540, "y1": 1800, "x2": 540, "y2": 600, "duration": 300}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "scroll",
            description: "Show what lies in a direction: down shows what is below. Scrolls the screen, or the list element_id.",
            arguments: &[
                ToolArgument::new(
                    "direction",
                    || json!({"enum": ["up", "down", "left", "right"]}),
                    "The direction to look in: `up` shows what is above.",
                    "\"down\"",
                )
                .required(),
                ToolArgument::new(
                    "amount",
                    || json!({"enum": ["small", "medium", "large"], "default": "medium"}),
                    "How far, as a part of the screen: a quarter, a half, three quarters.",
                    "\"medium\"",
                ),
                ELEMENT.hint("").explained("What to scroll, as a ref or node id; the screen without it."),
            ],
            answer: None,
            impact: ToolImpact::Navigates,
            profile: Profile::Compact,
            reference: Some(Reference {
                description: "Scrolls the screen in the specified direction.",
                properties: || {
                    json!({
                        "direction": {
                            "type": "string",
                            "enum": ["up", "down", "left", "right"],
                            "description": "Scroll direction",
                        },
                        "amount": {
                            "type": "string",
                            "enum": ["small", "medium", "large"],
                            "description": "Scroll amount: small (25%), medium (50%), large (75%)",
                            "default": "medium",
                        },
                    })
                },
                required: &["direction"],
            }),
            run: run!(gesture::scroll),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call scrolls on, until there is nothing more that way.")),
                scene: Scene::Contacts,
                example: r#"{"direction": "down", "amount": "large"}"#,
                security: ACTS,
            },
        },
    ],
};
