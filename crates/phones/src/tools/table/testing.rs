//! App management, for testers.

use serde_json::json;

use super::arguments::{boolean, objects, string};
use super::models::APP;
use super::{DONE, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::manage;
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

const PERMISSION: ToolArgument =
    ToolArgument::new("permission", string, "The permission, in full or without `android.permission.`.", "\"CAMERA\"")
        .required();

const MANAGES: &str = "- **Input validation**: packages and permissions are names joined by dots; each is handed to Android as one argument and never to a shell.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.";

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "app-management.md",
    title: "App management",
    introduction: "For people who test apps: listed only with `profile = \"tester\"` under `[phones]` in the configuration.",
    rows: &[
        ToolRow {
            name: "get_app_details",
            description: "Version, install times and permissions of an installed app, and which of them are granted.",
            arguments: &[APP],
            answer: Some(|| json!({"package": string(), "system": boolean(), "permissions": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::details),
            page: ToolDocPage {
                answer: "What the phone says about the app; `permissions` are those that a user grants or refuses.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"app": "Notes"}"#,
                security: MANAGES,
            },
        },
        ToolRow {
            name: "install_app",
            description: "Install an app from the gateway's folder of APKs, or a newer version over an older one.",
            arguments: &[ToolArgument::new(
                "file",
                string,
                "The name of an APK, or of a folder with the splits of one app, in the folder `phones.apks` of the configuration.",
                "\"shop-2.1.apk\"",
            )
            .required()],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::install),
            page: ToolDocPage {
                answer: "A sentence with the size of the app. A client that sends a progress token is told every five seconds how far it is, which gives the call more time: an old phone takes minutes for a large app.",
                repeat: Some(("Yes", "the same version is installed once more and keeps its data.")),
                scene: Scene::Home,
                example: r#"{"file": "shopping.apk"}"#,
                security: "- **Input validation**: a name in the configured folder and never a path of the host; links that lead out of it are refused.\n- **What can go wrong**: an app is a program; install what you trust.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.",
            },
        },
        ToolRow {
            name: "uninstall_app",
            description: "Remove an app and its data from the phone.",
            arguments: &[APP],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::uninstall),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "an app that is gone cannot be removed again.")),
                scene: Scene::Home,
                example: r#"{"app": "dev.sinew.shopping"}"#,
                security: MANAGES,
            },
        },
        ToolRow {
            name: "clear_app_data",
            description: "Delete all data of an app, so that it starts as after its installation.",
            arguments: &[APP],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::clear),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "an app without data stays so.")),
                scene: Scene::Notes,
                example: r#"{"app": "Notes"}"#,
                security: MANAGES,
            },
        },
        ToolRow {
            name: "grant_permission",
            description: "Grant an app a permission that it asks for, without the dialog.",
            arguments: &[APP, PERMISSION],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::grant),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "a permission that is granted stays granted.")),
                scene: Scene::Home,
                example: r#"{"app": "Notes", "permission": "POST_NOTIFICATIONS"}"#,
                security: MANAGES,
            },
        },
        ToolRow {
            name: "revoke_permission",
            description: "Take a permission back from an app; Android may end the app.",
            arguments: &[APP, PERMISSION],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::revoke),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "a permission that is not granted stays so.")),
                scene: Scene::Home,
                example: r#"{"app": "Notes", "permission": "POST_NOTIFICATIONS"}"#,
                security: MANAGES,
            },
        },
        ToolRow {
            name: "send_intent",
            description: "Send an intent to an activity, as a broadcast or to a service, with typed extras.",
            arguments: &[
                ToolArgument::new("action", string, "The action.", "\"android.intent.action.VIEW\""),
                ToolArgument::new("data", string, "A URI.", "\"https://example.com/\""),
                ToolArgument::new(
                    "component",
                    string,
                    "The component: package/class.",
                    "\"dev.sinew.notes/.NotesActivity\"",
                ),
                ToolArgument::new("package", string, "Only components of this package.", "\"dev.sinew.notes\""),
                ToolArgument::new(
                    "extras",
                    || json!({"type": "object"}),
                    "Extras by name: texts, whole numbers, numbers, true or false.",
                    r#"{"count": 5}"#,
                ),
                ToolArgument::new(
                    "receiver",
                    || json!({"enum": ["activity", "broadcast", "service"], "default": "activity"}),
                    "Who receives it.",
                    "\"activity\"",
                ),
            ],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(manage::send_intent),
            page: ToolDocPage {
                answer: "A sentence with the phone's own last line about the delivery.",
                repeat: Some(("No", "each call sends it once more.")),
                scene: Scene::Home,
                example: r#"{"component": "dev.sinew.notes/.NotesActivity"}"#,
                security: "- **What can go wrong**: an intent does what its receiver does with it, also send, buy or delete.\n- **Input validation**: every part is handed to Android as one argument and never to a shell; texts are bounded.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.",
            },
        },
    ],
};
