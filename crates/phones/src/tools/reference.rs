//! The 29 tools exactly as the remote-control reference lists them, for the REST door. What Sinew
//! adds is accepted there, but not listed.

use serde_json::{Value, json};
use sinew_tool::Tool;

/// Name, description and input schema of the reference, in its order.
pub fn reference_tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Tool::new(name, description, schema)
    };
    let point = || {
        json!({
            "x": {"type": "number", "description": "X coordinate (>= 0)"},
            "y": {"type": "number", "description": "Y coordinate (>= 0)"},
        })
    };
    let element = || json!({"element_id": {"type": "string", "description": "Node ID from find_elements"}});
    let with = |mut base: Value, more: Value| {
        if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
            base.extend(more);
        }
        base
    };
    let duration = |default: u32, what: &str| json!({"duration": {"type": "number", "description": format!("{what} duration in ms (1-60000)"), "default": default}});
    let by = || {
        json!({
            "by": {
                "type": "string",
                "enum": ["text", "content_desc", "resource_id", "class_name"],
                "description": "Search criteria type",
            },
            "value": {"type": "string", "description": "Search value"},
        })
    };
    let timeout = |default: u32| json!({"timeout": {"type": "integer", "description": "Timeout in milliseconds (1-30000)", "default": default}});
    vec![
        tool("get_accessibility_tree", "Returns the full UI hierarchy of the current screen.", json!({}), &[]),
        tool(
            "capture_screenshot",
            "Captures the current screen as a JPEG.",
            json!({"quality": {"type": "integer", "description": "JPEG quality (1-100)", "default": 80}}),
            &[],
        ),
        tool("get_current_app", "Returns package and activity of the focused app.", json!({}), &[]),
        tool("get_screen_info", "Returns screen dimensions, orientation, and DPI.", json!({}), &[]),
        tool("press_back", "Presses the back button.", json!({}), &[]),
        tool("press_home", "Navigates to the home screen.", json!({}), &[]),
        tool("press_recents", "Opens the recent apps screen.", json!({}), &[]),
        tool("open_notifications", "Pulls down the notification shade.", json!({}), &[]),
        tool("open_quick_settings", "Opens the quick settings panel.", json!({}), &[]),
        tool(
            "get_device_logs",
            "Retrieves device logs, filtered by time range, tag, level, or package name.",
            json!({
                "last_lines": {
                    "type": "integer",
                    "description": "Number of most recent log lines to return (1-1000)",
                    "default": 100,
                },
                "since": {
                    "type": "string",
                    "description": "ISO 8601 timestamp to filter logs from (e.g., 2024-01-15T10:30:00)",
                },
                "until": {
                    "type": "string",
                    "description": "ISO 8601 timestamp to filter logs until (used with since)",
                },
                "tag": {
                    "type": "string",
                    "description": "Filter by log tag (exact match, e.g., MCP:ServerService)",
                },
                "level": {
                    "type": "string",
                    "enum": ["V", "D", "I", "W", "E", "F"],
                    "description": "Minimum log level to include",
                    "default": "D",
                },
                "package_name": {"type": "string", "description": "Filter logs by package name"},
            }),
            &[],
        ),
        tool("tap", "Performs a single tap at the specified coordinates.", point(), &["x", "y"]),
        tool(
            "long_press",
            "Performs a long press at the specified coordinates.",
            with(point(), duration(1000, "Press")),
            &["x", "y"],
        ),
        tool("double_tap", "Performs a double tap at the specified coordinates.", point(), &["x", "y"]),
        tool(
            "swipe",
            "Performs a swipe from one point to another.",
            with(
                json!({
                    "x1": {"type": "number", "description": "Start X coordinate (>= 0)"},
                    "y1": {"type": "number", "description": "Start Y coordinate (>= 0)"},
                    "x2": {"type": "number", "description": "End X coordinate (>= 0)"},
                    "y2": {"type": "number", "description": "End Y coordinate (>= 0)"},
                }),
                duration(300, "Swipe"),
            ),
            &["x1", "y1", "x2", "y2"],
        ),
        tool(
            "scroll",
            "Scrolls the screen in the specified direction.",
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
            }),
            &["direction"],
        ),
        tool(
            "pinch",
            "Performs a pinch-to-zoom gesture.",
            with(
                json!({
                    "center_x": {"type": "number", "description": "Center X coordinate (>= 0)"},
                    "center_y": {"type": "number", "description": "Center Y coordinate (>= 0)"},
                    "scale": {"type": "number", "description": "Scale factor (> 1 = zoom in, < 1 = zoom out)"},
                }),
                duration(300, "Gesture"),
            ),
            &["center_x", "center_y", "scale"],
        ),
        tool(
            "custom_gesture",
            "Executes a multi-touch gesture defined by path points; each path is one finger.",
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
            }),
            &["paths"],
        ),
        tool(
            "find_elements",
            "Finds UI elements matching the specified criteria.",
            with(
                by(),
                json!({
                    "exact_match": {
                        "type": "boolean",
                        "default": false,
                        "description": "If true, match exactly. If false, match contains (case-insensitive)",
                    },
                }),
            ),
            &["by", "value"],
        ),
        tool("click_element", "Clicks the specified element.", element(), &["element_id"]),
        tool("long_click_element", "Long-clicks the specified element.", element(), &["element_id"]),
        tool(
            "set_text",
            "Sets the text of an editable element.",
            with(element(), json!({"text": {"type": "string", "description": "Text to set (empty string to clear)"}})),
            &["element_id", "text"],
        ),
        tool("scroll_to_element", "Scrolls until the specified element is visible.", element(), &["element_id"]),
        tool(
            "input_text",
            "Types text into the focused field or the specified element.",
            json!({
                "text": {"type": "string", "description": "Text to type"},
                "element_id": {"type": "string", "description": "Optional target element ID"},
            }),
            &["text"],
        ),
        tool(
            "clear_text",
            "Clears the text of the focused field or the specified element.",
            json!({"element_id": {"type": "string", "description": "Optional target element ID"}}),
            &[],
        ),
        tool(
            "press_key",
            "Presses a key.",
            json!({
                "key": {
                    "type": "string",
                    "enum": ["ENTER", "BACK", "DEL", "HOME", "TAB", "SPACE"],
                    "description": "Key to press",
                },
            }),
            &["key"],
        ),
        tool("get_clipboard", "Returns the clipboard's text.", json!({}), &[]),
        tool(
            "set_clipboard",
            "Sets the clipboard's text.",
            json!({"text": {"type": "string", "description": "Text to set in clipboard"}}),
            &["text"],
        ),
        tool(
            "wait_for_element",
            "Waits until an element matching the criteria appears.",
            with(by(), timeout(5000)),
            &["by", "value"],
        ),
        tool("wait_for_idle", "Waits until the UI becomes idle.", timeout(3000), &[]),
    ]
}
