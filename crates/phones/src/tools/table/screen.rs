//! Screen introspection.

use serde_json::json;

use super::arguments::{GRAYSCALE, MAX_BYTES, MAX_SIDE, QUALITY, integer, objects, string};
use super::{SEES, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::read;
use crate::tools::reference::{Reference, nothing};
use crate::tools::row::{Scene, ToolDocPage, ToolImpact, ToolRow};

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "screen-introspection.md",
    title: "Screen introspection",
    introduction: "What is on the phone's screen, and how large it is.",
    rows: &[
        ToolRow {
            name: "get_accessibility_tree",
            description: "The UI tree as JSON, for programs; get_screen says the same in a few lines.",
            arguments: &[MAX_BYTES],
            answer: Some(|| json!({"nodes": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Returns the full UI hierarchy of the current screen using accessibility services.",
                properties: nothing,
                required: &[],
            }),
            run: run!(read::tree),
            page: ToolDocPage {
                answer: "The elements, each with its children.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"max_bytes": 700}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "capture_screenshot",
            description: "A JPEG of the screen, for images, maps and games; for texts get_screen is exact and cheaper.",
            arguments: &[QUALITY, MAX_SIDE, GRAYSCALE.only_tester()],
            answer: None,
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Captures a screenshot of the current screen and returns it as base64-encoded JPEG.",
                properties: || json!({"quality": {"type": "integer", "description": "JPEG quality (1-100)", "default": 80}}),
                required: &[],
            }),
            run: run!(read::screenshot),
            page: ToolDocPage {
                answer: "The picture, as an image item of the answer.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"quality": 60, "max_side": 400}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "get_current_app",
            description: "Package and activity of the app in front.",
            arguments: &[],
            answer: Some(|| json!({"packageName": string(), "activityName": string()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Returns the package name and activity name of the currently focused app.",
                properties: nothing,
                required: &[],
            }),
            run: |on, _| Box::pin(read::current_app(on)),
            page: ToolDocPage {
                answer: "What is in front.",
                repeat: None,
                scene: Scene::Notes,
                example: "{}",
                security: "- **Data handling**: tells which app somebody uses at the moment, and nothing of what is in it.",
            },
        },
        ToolRow {
            name: "get_screen_info",
            description: "Screen size in pixels, density, orientation; says if it is off or locked.",
            arguments: &[],
            answer: Some(|| {
                json!({
                    "width": integer(),
                    "height": integer(),
                    "densityDpi": integer(),
                    "orientation": {"enum": ["portrait", "landscape"]},
                })
            }),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: Some(Reference {
                description: "Returns screen dimensions, orientation, and DPI.",
                properties: nothing,
                required: &[],
            }),
            run: |on, _| Box::pin(read::screen_info(on)),
            page: ToolDocPage {
                answer: "Size, density and orientation.",
                repeat: None,
                scene: Scene::Home,
                example: "{}",
                security: "- **Data handling**: tells the size of the screen, which says something about the model, and nothing about its owner.",
            },
        },
    ],
};
