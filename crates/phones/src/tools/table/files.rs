//! Files, for testers.

use serde_json::json;

use super::arguments::{MAX_BYTES, objects, string};
use super::{DONE, ToolGroup, run};
use crate::tools::files;
use crate::tools::list::Profile;
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};

const PATH: ToolArgument = ToolArgument::new(
    "path",
    string,
    "A path in the shared storage such as `Download/a.txt`, or an absolute one there or in `/data/local/tmp`.",
    "\"Download/readme.txt\"",
)
.required();

const FILES: &str = "- **Input validation**: the path is resolved on the phone; `..`, links that lead out of the shared storage and `/data/local/tmp`, and Sinew's own files there are refused. Each argument is handed to Android as one word and never to a shell.\n- **Permissions**: a client token for the gateway; listed only with `profile = \"tester\"`.";

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "files.md",
    title: "Files",
    introduction: "The shared storage of a phone. Listed only with `profile = \"tester\"` under `[phones]` in the configuration; larger files are moved with `sinew phones pull` and `sinew phones push`.",
    rows: &[
        ToolRow {
            name: "list_files",
            description: "Names, kinds, sizes and times of what is in a folder of the phone's shared storage.",
            arguments: &[
                ToolArgument::new("path", string, "The folder; the shared storage where left out.", "\"Download\""),
                MAX_BYTES,
            ],
            answer: Some(|| json!({"path": string(), "entries": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: run!(files::list),
            page: ToolDocPage {
                answer: "The folder as the phone resolves it, and what is in it; `omitted` counts what did not fit.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"path": "Download"}"#,
                security: FILES,
            },
        },
        ToolRow {
            name: "read_file",
            description: "A file of the phone's shared storage as a resource, of at most 4 MB.",
            arguments: &[PATH],
            answer: None,
            impact: ToolImpact::Reads,
            profile: Profile::Tester,
            reference: None,
            run: run!(files::read),
            page: ToolDocPage {
                answer: "The file as an embedded resource: text where it is UTF-8, base64 otherwise.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"path": "Download/readme.txt"}"#,
                security: FILES,
            },
        },
        ToolRow {
            name: "write_file",
            description: "Write a file of at most 1 MB to the phone's shared storage; one of that name is replaced.",
            arguments: &[
                PATH,
                ToolArgument::new("text", string, "What to write.", "\"hello\""),
                ToolArgument::new("base64", string, "What to write where it is not text.", "\"aGVsbG8=\""),
            ],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Tester,
            reference: None,
            run: run!(files::write),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "the same file is written again.")),
                scene: Scene::Home,
                example: r#"{"path": "Download/hello.txt", "text": "hello"}"#,
                security: FILES,
            },
        },
    ],
};
