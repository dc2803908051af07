//! Gestures.

use serde_json::json;

use super::arguments::{DURATION, number};
use super::{ACTS, DONE, ToolGroup, run};
use crate::tools::gesture;
use crate::tools::list::Profile;
use crate::tools::reference::{Reference, duration, with};
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "gestures.md",
    title: "Gestures",
    introduction: "Several fingers, or one along a path of its own.",
    rows: &[
        ToolRow {
            name: "pinch",
            description: "Zoom with two fingers around a point: scale 2 zooms in, 0.5 zooms out.",
            arguments: &[
                ToolArgument::new("center_x", number, "The middle between the fingers: pixels from the left.", "540")
                    .required(),
                ToolArgument::new("center_y", number, "The middle between the fingers: pixels from the top.", "1200")
                    .required(),
                ToolArgument::new(
                    "scale",
                    number,
                    "How far the fingers move apart: above 1 zooms in, below 1 zooms out.",
                    "2",
                )
                .required(),
                DURATION,
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Performs a pinch-to-zoom gesture.",
                properties: || {
                    with(
                        json!({
                            "center_x": {"type": "number", "description": "Center X coordinate (>= 0)"},
                            "center_y": {"type": "number", "description": "Center Y coordinate (>= 0)"},
                            "scale": {"type": "number", "description": "Scale factor (> 1 = zoom in, < 1 = zoom out)"},
                        }),
                        duration(300, "Gesture"),
                    )
                },
                required: &["center_x", "center_y", "scale"],
            }),
            run: run!(gesture::pinch),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call zooms on.")),
                scene: Scene::Map,
                example: r#"{"center_x": 540, "center_y": 1200, "scale": 2}"#,
                security: ACTS,
            },
        },
        ToolRow {
            name: "custom_gesture",
            description: "Move fingers along paths, a list of points each; time in ms from the start. For drawing, patterns and games.",
            arguments: &[ToolArgument::new(
                "paths",
                || {
                    json!({"type": "array", "items": {"type": "array", "minItems": 2, "items": {
                        "type": "object",
                        "properties": {"x": number(), "y": number(), "time": number()},
                        "required": ["x", "y", "time"],
                    }}})
                },
                "A list for each finger of points with `x`, `y` and `time`, in milliseconds from the start and increasing.",
                r#"[[{"x": 300, "y": 1200, "time": 0}, {"x": 700, "y": 1200, "time": 400}]]"#,
            )
            .required()],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Executes a multi-touch gesture defined by path points; each path is one finger.",
                properties: || {
                    json!({
                        "paths": {
                            "type": "array",
                            "description": "Array of paths, each an array of {x, y, time} points",
                            "items": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "x": {"type": "number"},
                                        "y": {"type": "number"},
                                        "time": {"type": "number", "description": "Time offset in ms from gesture start"},
                                    },
                                    "required": ["x", "y", "time"],
                                },
                            },
                        },
                    })
                },
                required: &["paths"],
            }),
            run: run!(gesture::custom),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call draws the gesture once more.")),
                scene: Scene::Map,
                example: r#"{"paths": [[{"x": 300, "y": 1200, "time": 0}, {"x": 700, "y": 1200, "time": 400}]]}"#,
                security: ACTS,
            },
        },
    ],
};
