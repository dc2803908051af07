//! Notifications.

use serde_json::json;

use super::arguments::{MAX_BYTES, objects, string};
use super::{ACTS, DONE, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::notifications;
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "notifications.md",
    title: "Notifications",
    introduction: "What apps tell the phone's owner. They are read without opening the shade; acting on one opens it, as a person does.",
    rows: &[
        ToolRow {
            name: "list_notifications",
            description: "The notifications with their texts and actions, without opening the shade.",
            arguments: &[
                ToolArgument::new("app", string, "Only of apps whose package contains this.", "\"contacts\"")
                    .hint("part of the package"),
                MAX_BYTES,
            ],
            answer: Some(|| json!({"notifications": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: None,
            run: run!(notifications::list),
            page: ToolDocPage {
                answer: "The notifications; `actions` are the labels of their buttons, `ongoing` marks those that cannot be dismissed.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"app": "contacts"}"#,
                security: "- **Data handling**: notifications hold messages and codes, and anybody may have written them. They go to the caller and are not kept.",
            },
        },
        ToolRow {
            name: "act_on_notification",
            description: "Open, dismiss or answer a notification, or press one of its actions.",
            arguments: &[
                ToolArgument::new(
                    "notification",
                    string,
                    "Its key, or a part of its title or text that fits one only.",
                    "\"Reminder\"",
                )
                .required(),
                ToolArgument::new(
                    "do",
                    || json!({"enum": ["open", "dismiss", "act", "reply"]}),
                    "What to do.",
                    "\"open\"",
                )
                .required(),
                ToolArgument::new("action", string, "The label of the action.", "\"Mark as read\""),
                ToolArgument::new("text", string, "The reply.", "\"On my way\""),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: run!(notifications::act),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "a notification that was opened or dismissed is gone.")),
                scene: Scene::Home,
                example: r#"{"notification": "Zoë", "do": "reply", "text": "On my way"}"#,
                security: ACTS,
            },
        },
    ],
};
