//! Tools made for models.

use serde_json::json;

use super::arguments::{
    BY, ELEMENT, GRAYSCALE, MAX_BYTES, MAX_SIDE, QUALITY, SELECTOR, TEXT, VALUE, integer, members, objects, string,
    strings,
};
use super::{DONE, SEES, TYPES, ToolGroup, run};
use crate::tools::list::Profile;
use crate::tools::row::{Scene, ToolArgument, ToolDocPage, ToolImpact, ToolRow};
use crate::tools::{apps, get_element, get_screen, steps, text, wait};

pub(super) const APP: ToolArgument =
    ToolArgument::new("app", string, "The app by its name or package.", "\"Notes\"").required();

pub(super) const GROUP: ToolGroup = ToolGroup {
    file: "made-for-models.md",
    title: "Made for models",
    introduction: "Sinew's own phone tools: a screen in a few lines, several steps in one call, apps by name.",
    rows: &[
        ToolRow {
            name: "get_screen",
            description: "What is on the screen, a line each: ref (e7), kind, label, state, @centre. Call it first, then act on refs.",
            arguments: &[
                ToolArgument::new(
                    "screenshot",
                    || json!({"enum": ["none", "plain", "annotated"]}),
                    "Whether to add a picture: plain, or annotated with boxes numbered like the refs.",
                    "\"annotated\"",
                )
                .hint("annotated: boxes numbered like refs"),
                QUALITY.only_tester(),
                MAX_SIDE.hint(""),
                GRAYSCALE.only_tester(),
                MAX_BYTES.not_compact(),
            ],
            answer: None,
            impact: ToolImpact::Reads,
            profile: Profile::Compact,
            reference: None,
            run: run!(get_screen::get_screen),
            page: ToolDocPage {
                answer: "The lines as one text, and a picture where one was asked for. What the lines mean is in [phones.md](../phones.md).",
                repeat: None,
                scene: Scene::Notes,
                example: "{}",
                security: SEES,
            },
        },
        ToolRow {
            name: "get_element",
            description: "One element in full: its text and those inside it, bounds, states, ids and actions. For labels that get_screen cut (+N).",
            arguments: &[ELEMENT, SELECTOR.not_compact(), BY, VALUE, MAX_BYTES.not_compact()],
            answer: Some(|| {
                json!({
                    "id": string(),
                    "className": string(),
                    "texts": strings(),
                    "bounds": {"type": "object"},
                    "states": strings(),
                    "actions": strings(),
                })
            }),
            impact: ToolImpact::Reads,
            profile: Profile::Compact,
            reference: None,
            run: run!(get_element::get_element),
            page: ToolDocPage {
                answer: "The element. `texts` are those inside it, in reading order; `selection` is the caret or the selected characters of a field, and `range` what a slider can be set to, where the phone reports it (with the agent); `omitted` counts the bytes of text that did not fit.",
                repeat: None,
                scene: Scene::Notes,
                example: r#"{"by": "content_desc", "value": "New note"}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "wait_until",
            description: "Wait until an element is gone, says a text or has a state, or an app is in front; fails when the time is up.",
            arguments: &[
                ELEMENT,
                SELECTOR,
                BY,
                VALUE,
                ToolArgument::new(
                    "state",
                    || json!({"enum": ["visible", "gone", "on", "off", "enabled", "disabled", "focused", "selected"]}),
                    "What the element should be; `visible` where left out.",
                    "\"gone\"",
                ),
                ToolArgument::new(
                    "text",
                    string,
                    "What the element should say; a part is enough, in any case.",
                    "\"Saved\"",
                ),
                ToolArgument::new("app", string, "The app that should be in front, by name or package.", "\"Notes\""),
                ToolArgument::new(
                    "timeout",
                    || json!({"type": "integer", "default": 5000}),
                    "How long to wait at most, in milliseconds, 1 to 30000.",
                    "3000",
                )
                .hint("ms"),
            ],
            answer: Some(|| json!({"met": {"type": "boolean"}, "elapsedMs": {"type": "integer"}})),
            impact: ToolImpact::Reads,
            profile: Profile::Full,
            reference: None,
            run: run!(wait::until),
            page: ToolDocPage {
                answer: "That it is so, and after how long.",
                repeat: None,
                scene: Scene::Notes,
                example: r#"{"app": "Notes", "selector": {"description": "New note"}, "timeout": 2000}"#,
                security: SEES,
            },
        },
        ToolRow {
            name: "run_steps",
            description: "Run up to 20 steps: {tool, arguments, as}, {expect: {screen: selector}, within}, if/then/else, each/do, wait, return. Ends at a failure and shows the screen.",
            arguments: &[
                ToolArgument::new(
                    "steps",
                    || {
                        let expected = members(json!({"screen": members(json!({"text": string(), "id": string()}))}));
                        let call = json!({"tool": string(), "arguments": {"type": "object"}, "as": string()});
                        let mut step = members(call);
                        step["properties"]["expect"] = expected;
                        step["properties"]["within"] = integer();
                        step["properties"]["wait"] = integer();
                        json!({"type": "array", "items": step})
                    },
                    "The steps, see [steps.md](../steps.md): calls with `tool` and `arguments`, expectations, conditions, loops over lists, waits, a result.",
                    r#"[{"tool": "press_home"}]"#,
                )
                .compact(|| {
                    let call = members(json!({"tool": string(), "arguments": {"type": "object"}}));
                    json!({"type": "array", "items": call})
                })
                .required(),
                ToolArgument::new(
                    "report",
                    || json!({"enum": ["json", "html"]}),
                    "A report with the screen after each step, as a resource.",
                    "\"html\"",
                )
                .not_compact(),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Compact,
            reference: None,
            run: run!(steps::run),
            page: ToolDocPage {
                answer: "What each step answered, and the screen where one failed; the object of a `return` step as structured content.",
                repeat: Some(("Partially", "as often as all of its steps may be repeated.")),
                scene: Scene::Home,
                example: r#"{"steps": [{"tool": "open_app", "arguments": {"app": "Notes"}}, {"tool": "click_element", "arguments": {"selector": {"description": "New note"}}}, {"expect": {"screen": {"id": "note_title"}}, "within": 2000}]}"#,
                security: "- **What can go wrong**: steps after a wrong assumption still run if nothing fails. Keep sequences short where something could be lost.\n- **Permissions**: those of its steps: each is a call of its own, decided and recorded like any other.",
            },
        },
        ToolRow {
            name: "insert_text",
            description: "Insert text into a field before a character number, or at the cursor, keeping the rest.",
            arguments: &[
                ELEMENT,
                SELECTOR,
                BY,
                VALUE,
                TEXT.explained("The text to insert."),
                ToolArgument::new(
                    "at",
                    || json!({"type": "integer"}),
                    "The number of characters before it; the cursor of the focused field where left out.",
                    "0",
                ),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: run!(text::insert),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call inserts once more.")),
                scene: Scene::NewNote,
                example: r#"{"selector": {"id": "note_title"}, "text": "Shopping", "at": 0}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "select_text",
            description: "Select characters of the focused field, or of the one named; with equal start and end it moves the cursor. Needs the agent.",
            arguments: &[
                ELEMENT,
                SELECTOR,
                BY,
                VALUE,
                ToolArgument::new("start", integer, "The number of characters before the selection; 0 where left out.", "0"),
                ToolArgument::new("end", integer, "The number of characters up to its end; the whole text where left out.", "5"),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: run!(text::select),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "the same characters are selected again.")),
                scene: Scene::NewNote,
                example: r#"{"selector": {"id": "note_title"}, "start": 0, "end": 0}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "paste_text",
            description: "Paste the clipboard, or a text through it, at the cursor of the focused field or of the one named, over what is selected.",
            arguments: &[
                ELEMENT,
                SELECTOR,
                BY,
                VALUE,
                ToolArgument::new("text", string, "The text; what is in the clipboard already where left out.", "\"Milk\""),
            ],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Tester,
            reference: None,
            run: run!(text::paste),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call pastes once more.")),
                scene: Scene::NewNote,
                example: r#"{"selector": {"id": "note_title"}, "text": "Milk"}"#,
                security: TYPES,
            },
        },
        ToolRow {
            name: "list_apps",
            description: "Installed apps that can be opened, with their packages.",
            arguments: &[
                ToolArgument::new("query", string, "Only apps whose name or package contains this.", "\"note\""),
                MAX_BYTES.only_tester(),
            ],
            answer: Some(|| json!({"apps": objects()})),
            impact: ToolImpact::Reads,
            profile: Profile::Compact,
            reference: None,
            run: run!(apps::list),
            page: ToolDocPage {
                answer: "The apps.",
                repeat: None,
                scene: Scene::Home,
                example: r#"{"query": "no"}"#,
                security: "- **Data handling**: which apps are installed says something about their owner; the list goes to the caller and is not kept.",
            },
        },
        ToolRow {
            name: "open_app",
            description: "Open an app by name or package, or bring it to the front.",
            arguments: &[APP],
            answer: None,
            impact: ToolImpact::Navigates,
            profile: Profile::Compact,
            reference: None,
            run: run!(apps::open),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "an app that is in front stays there.")),
                scene: Scene::Home,
                example: r#"{"app": "Notes"}"#,
                security: "- **Input validation**: only installed apps are opened, by name or package; nothing is passed to a shell.\n- **Permissions**: a client token for the gateway.",
            },
        },
        ToolRow {
            name: "close_app",
            description: "Stop an app by name or package; what it has not saved is lost.",
            arguments: &[APP],
            answer: None,
            impact: ToolImpact::Destroys,
            profile: Profile::Full,
            reference: None,
            run: run!(apps::close),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("Yes", "an app that does not run stays as it is.")),
                scene: Scene::Notes,
                example: r#"{"app": "Notes"}"#,
                security: "- **What can go wrong**: what the app has not saved is lost.\n- **Input validation**: only installed apps are stopped; nothing is passed to a shell.",
            },
        },
        ToolRow {
            name: "open_url",
            description: "Open a link (https:, tel:, geo:, an app's own) in the app the phone has for it.",
            arguments: &[ToolArgument::new(
                "url",
                string,
                "The link; what opens it is the phone's choice.",
                "\"https://example.com/\"",
            )
            .required()],
            answer: None,
            impact: ToolImpact::Acts,
            profile: Profile::Full,
            reference: None,
            run: run!(apps::open_url),
            page: ToolDocPage {
                answer: DONE,
                repeat: Some(("No", "each call opens the link again, and a site may count it.")),
                scene: Scene::Home,
                example: r#"{"url": "https://example.com/"}"#,
                security: "- **Input validation**: the link must have a scheme; it is handed to Android as one argument and never to a shell.\n- **What can go wrong**: links reach the network and other apps, and may start calls or payments there for the person to confirm.",
            },
        },
    ],
};
