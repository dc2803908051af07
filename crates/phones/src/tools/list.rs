//! The tools as models see them: the reference's 29 with what Sinew adds, and Sinew's own.
//!
//! Every byte here is paid for in each conversation, so a name that says it all has no description,
//! and what all acting tools share is told once, in [`INSTRUCTIONS`].

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use sinew_tool::{Hints, Tool, Toolset};

use super::reference::reference_tools;

/// How much of the phone's tools a client is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    #[default]
    Full,
    /// A dozen tools that do most of the work, for clients that pay dearly for each.
    Compact,
}

/// For the server's `instructions`.
pub const INSTRUCTIONS: &str = "Phone tools: look with get_screen; its lines are `ref kind \"label\" state @x,y`, and a ref (e7) stays while the thing is the same. \
Elements are named by `element_id` (a ref or a node id) or described by `by` and `value`. \
Tools that act take `return`: `diff` (what changed since you last looked) or `screen`, and `settle`: wait until the screen is at rest (implied by return). \
`max_bytes` limits any textual answer. Coordinates are pixels of the current rotation.";

static FULL: LazyLock<Arc<Toolset>> = LazyLock::new(|| {
    let reference = reference().into_iter().zip(reference_tools()).map(|(tool, plain)| tool.with_plain(plain));
    Arc::new(Toolset::new(reference.chain(own())))
});

static COMPACT: LazyLock<Arc<Toolset>> =
    LazyLock::new(|| Arc::new(Toolset::new(COMPACT_NAMES.iter().filter_map(|name| FULL.find(name)).cloned())));

const COMPACT_NAMES: [&str; 12] = [
    "get_screen",
    "click_element",
    "long_click_element",
    "input_text",
    "press_key",
    "scroll",
    "tap",
    "swipe",
    "wait_for_element",
    "list_apps",
    "open_app",
    "run_steps",
];

/// The tools of a profile; shared by all phones.
pub fn tools(profile: Profile) -> Arc<Toolset> {
    match profile {
        Profile::Full => FULL.clone(),
        Profile::Compact => COMPACT.clone(),
    }
}

/// Whether a tool changes something on the phone, and so takes turns with others that do.
pub fn is_acting(tool: &str) -> bool {
    !matches!(
        tool,
        "get_accessibility_tree"
            | "capture_screenshot"
            | "get_current_app"
            | "get_screen_info"
            | "get_device_logs"
            | "find_elements"
            | "get_clipboard"
            | "wait_for_element"
            | "wait_for_idle"
            | "get_screen"
            | "list_apps"
    )
}

fn reference() -> Vec<Tool> {
    vec![
        json_reading(
            "get_accessibility_tree",
            "The whole UI tree; get_screen says the same in a few lines",
            budget(),
            &["nodes"],
            json!({"nodes": {"type": "array"}}),
        ),
        reading("capture_screenshot", "The screen as JPEG", picture(), &[]),
        json_reading(
            "get_current_app",
            "Package and activity in front",
            json!({}),
            &["packageName", "activityName"],
            json!({"packageName": string(), "activityName": string()}),
        ),
        json_reading(
            "get_screen_info",
            "Size in pixels, density, orientation",
            json!({}),
            &["width", "height", "densityDpi", "orientation"],
            json!({"width": integer(), "height": integer(), "densityDpi": integer(), "orientation": {"enum": ["portrait", "landscape"]}}),
        ),
        harmless("press_back", "Back button", json!({}), &[]),
        harmless("press_home", "Home button", json!({}), &[]),
        harmless("press_recents", "Recent apps", json!({}), &[]),
        harmless("open_notifications", "Notification shade", json!({}), &[]),
        harmless("open_quick_settings", "Quick settings", json!({}), &[]),
        json_reading(
            "get_device_logs",
            "The phone's log, latest lines",
            with(
                json!({
                    "last_lines": {"type": "integer", "default": 100, "minimum": 1, "maximum": 1000},
                    "since": {"type": "string", "description": "ISO 8601"},
                    "until": string(),
                    "tag": string(),
                    "level": {"enum": ["V", "D", "I", "W", "E", "F"], "default": "D"},
                    "package_name": string(),
                }),
                budget(),
            ),
            &["logs", "line_count", "truncated"],
            json!({"logs": string(), "line_count": integer(), "truncated": boolean()}),
        ),
        acting("tap", "Tap at a point", point(), &["x", "y"]),
        acting("long_press", "Press and hold", with(point(), duration(1000)), &["x", "y"]),
        acting("double_tap", "Tap twice", point(), &["x", "y"]),
        acting(
            "swipe",
            "Swipe between two points",
            with(json!({"x1": number(), "y1": number(), "x2": number(), "y2": number()}), duration(300)),
            &["x1", "y1", "x2", "y2"],
        ),
        harmless(
            "scroll",
            "Show what lies in a direction: up shows what is above. Scrolls the screen or an element",
            with(
                json!({"direction": {"enum": ["up", "down", "left", "right"]}, "amount": {"enum": ["small", "medium", "large"], "default": "medium"}}),
                json!({"element_id": string()}),
            ),
            &["direction"],
        ),
        acting(
            "pinch",
            "Two fingers: scale > 1 zooms in",
            with(json!({"center_x": number(), "center_y": number(), "scale": number()}), duration(300)),
            &["center_x", "center_y", "scale"],
        ),
        acting(
            "custom_gesture",
            "Fingers along paths; time in ms, increasing",
            json!({"paths": {"type": "array", "items": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {"x": number(), "y": number(), "time": number()}, "required": ["x", "y", "time"]}}}}),
            &["paths"],
        ),
        json_reading(
            "find_elements",
            "Elements by a property; part of it in any case unless exact_match",
            with(with(by(), json!({"exact_match": boolean()})), budget()),
            &["elements"],
            json!({"elements": {"type": "array"}}),
        ),
        acting("click_element", "Click", element(), &[]),
        acting("long_click_element", "Long click", element(), &[]),
        acting("set_text", "Replace a field's text", with(element(), json!({"text": string()})), &["text"]),
        harmless("scroll_to_element", "Scroll until it is visible; also searches lists", element(), &[]),
        acting(
            "input_text",
            "Replace the focused (or named) field's text, or append to it",
            with(element(), json!({"text": string(), "append": boolean()})),
            &["text"],
        ),
        acting("clear_text", "Empty the focused (or named) field", element(), &[]),
        acting(
            "press_key",
            "ENTER, BACK, DEL, HOME, TAB, SPACE, RECENTS, UP, DOWN, PASTE, VOLUME_UP, WAKEUP …",
            json!({"key": string()}),
            &["key"],
        ),
        json_reading(
            "get_clipboard",
            "Clipboard text",
            budget(),
            &["text"],
            json!({"text": {"type": ["string", "null"]}}),
        ),
        acting("set_clipboard", "Set the clipboard", json!({"text": string()}), &["text"]),
        json_reading(
            "wait_for_element",
            "Wait until one appears",
            with(by(), timeout(5000)),
            &["found", "elapsedMs", "attempts", "element"],
            json!({"found": boolean(), "elapsedMs": integer(), "attempts": integer(), "element": {"type": "object"}}),
        ),
        json_reading(
            "wait_for_idle",
            "Wait until the screen is at rest",
            timeout(3000),
            &["message", "elapsedMs"],
            json!({"message": string(), "elapsedMs": integer()}),
        ),
    ]
}

fn own() -> Vec<Tool> {
    vec![
        reading(
            "get_screen",
            "What is on the screen, a line each: ref (e7), kind, label, state, @centre. Act on refs; acting tools take return: diff|screen to show the result",
            with(
                with(
                    json!({"screenshot": {"enum": ["none", "plain", "annotated"], "description": "annotated: boxes numbered like refs"}}),
                    picture(),
                ),
                budget(),
            ),
            &[],
        ),
        acting(
            "run_steps",
            "Run up to 20 tool calls in order; stops at the first failure and shows the screen",
            json!({"steps": {"type": "array", "items": {"type": "object", "properties": {"tool": string(), "arguments": {"type": "object"}}, "required": ["tool"]}}}),
            &["steps"],
        ),
        json_reading(
            "list_apps",
            "Apps that can be opened",
            with(json!({"query": string()}), budget()),
            &["apps"],
            json!({"apps": {"type": "array"}}),
        ),
        harmless("open_app", "Open by package or name", json!({"app": string()}), &["app"]),
        acting("close_app", "Stop by package or name", json!({"app": string()}), &["app"]),
        acting("open_url", "Open a link", json!({"url": string()}), &["url"]),
    ]
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Tool::new(name, description, schema)
}

fn reading(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    tool(name, description, properties, required).with_hints(Hints::reading())
}

/// Reads, and answers a JSON object whose members are always there.
fn json_reading(name: &str, description: &str, properties: Value, answered: &[&str], answer: Value) -> Tool {
    let required: &[&str] = if properties.get("by").is_some() { &["by", "value"] } else { &[] };
    reading(name, description, properties, required)
        .with_output_schema(json!({"type": "object", "properties": answer, "required": answered}))
}

fn acting(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    let shared =
        json!({"settle": boolean(), "return": {"enum": ["none", "diff", "screen"], "description": "then show"}});
    tool(name, description, with(properties, shared), required)
}

/// Acts, but loses nothing.
fn harmless(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    acting(name, description, properties, required).with_hints(Hints { destructive: Some(false), ..Hints::default() })
}

fn with(base: Value, more: Value) -> Value {
    let object = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let mut members = object(base);
    members.extend(object(more));
    Value::Object(members)
}

fn string() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "number"})
}

fn integer() -> Value {
    json!({"type": "integer"})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn point() -> Value {
    json!({"x": number(), "y": number()})
}

fn duration(default: u32) -> Value {
    json!({"duration": {"type": "number", "default": default, "description": "ms"}})
}

fn timeout(default: u32) -> Value {
    json!({"timeout": {"type": "integer", "default": default, "description": "ms"}})
}

fn budget() -> Value {
    json!({"max_bytes": integer()})
}

fn by() -> Value {
    json!({"by": {"enum": ["text", "content_desc", "resource_id", "class_name"]}, "value": string()})
}

fn element() -> Value {
    with(json!({"element_id": {"type": "string", "description": "ref or id; or use by and value"}}), by())
}

fn picture() -> Value {
    json!({
        "quality": {"type": "integer", "default": 80, "minimum": 1, "maximum": 100},
        "max_side": {"type": "integer", "description": "scale down to"},
        "grayscale": boolean(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a>(tools: impl Iterator<Item = &'a Tool>) -> usize {
        json!({"tools": tools.map(Tool::to_json).collect::<Vec<_>>()}).to_string().len()
    }

    #[test]
    fn the_lists_keep_their_budgets() {
        let all = tools(Profile::Full);
        let reference: Vec<String> = reference_tools().into_iter().map(|tool| tool.name).collect();
        let of_reference = size(all.iter().filter(|tool| reference.contains(&tool.name)));
        let compact = size(tools(Profile::Compact).iter());
        let sizes = (of_reference, size(all.iter()), compact);
        assert!(sizes.0 <= 12 * 1024 && sizes.1 <= 16 * 1024 && sizes.2 <= 5 * 1024, "{sizes:?}");
        assert_eq!((reference.len(), all.len(), tools(Profile::Compact).len()), (29, 35, 12));
    }

    #[test]
    fn the_references_tools_come_first_and_in_its_order() {
        let names: Vec<String> = tools(Profile::Full).iter().map(|tool| tool.name.clone()).collect();
        let reference: Vec<String> = reference_tools().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names[..29], reference);
        for tool in tools(Profile::Full).iter() {
            let plain = tool.plain.as_ref().map(|plain| plain.name.as_str());
            assert_eq!(plain, reference.contains(&tool.name).then_some(tool.name.as_str()));
        }
    }

    #[test]
    fn what_the_reference_accepts_is_accepted_here_with_the_same_defaults() {
        for plain in reference_tools() {
            let all = tools(Profile::Full);
            let ours = all.find(&plain.name).unwrap();
            let properties = ours.properties().unwrap();
            for (name, theirs) in plain.properties().unwrap() {
                let own = properties.get(name).unwrap_or_else(|| panic!("{}.{name} is missing", plain.name));
                assert!(own.get("type").is_none() || own["type"] == theirs["type"], "{}.{name}", plain.name);
                let default = theirs.get("default").filter(|default| **default != json!(false));
                assert_eq!(own.get("default"), default, "{}.{name}", plain.name);
            }
            let needed = plain.required();
            assert!(ours.required().iter().all(|name| needed.contains(name)), "{}", plain.name);
        }
    }

    #[test]
    fn reading_tools_say_so_and_acting_tools_take_settle_and_return() {
        for tool in &*tools(Profile::Full) {
            let takes = tool.properties().unwrap().contains_key("return");
            assert_eq!(is_acting(&tool.name), takes, "{}", tool.name);
            assert_eq!(tool.hints.read_only, (!takes).then_some(true), "{}", tool.name);
        }
    }
}
