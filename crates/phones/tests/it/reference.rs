//! Every request and answer of the remote-control reference, and every error it names.

use crate::common::{Paper, call, failure, form, id_of, json_of, list, log, text};
use sinew_phones::{Foreground, LogcatLevel, PhoneError, Tree, reference_tools};
use sinew_tool::{Content, Value, json};

fn denied(what: &str) -> Option<PhoneError> {
    Some(PhoneError::Denied(format!("{what} is not allowed")))
}

/// The tools of the reference's document as it has them: the sentence below a tool's heading, and its schema where that
/// is JSON.
fn documented(page: &str) -> Vec<(String, String, Option<Value>)> {
    let sections = page.split("\n### `").skip(1);
    let tool = |section: &str| {
        let (name, rest) = section.split_once('`')?;
        let (description, rest) = rest.split_once("**Input Schema**:")?;
        let schema = rest.trim_start().strip_prefix("```json").and_then(|rest| rest.split_once("```"));
        let schema = schema.map(|(schema, _)| serde_json::from_str(schema).unwrap());
        Some((name.to_owned(), description.trim().to_owned(), schema))
    };
    sections.filter_map(tool).collect()
}

#[test]
fn descriptions_and_schemas_are_those_of_the_references_document() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/fixtures/android-remote-control-mcp/MCP_TOOLS.7836ade.md"
    );
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let documented = documented(&page);
    assert_eq!(documented.len(), 10);
    for (name, description, schema) in documented {
        let tool = reference_tools().into_iter().find(|tool| tool.name == name).unwrap();
        assert_eq!(tool.description, description);
        assert_eq!(Some(&*tool.input_schema), schema.as_ref(), "{name}");
    }
}

#[tokio::test]
async fn the_tree_is_told_with_every_member_at_every_node() {
    let phone = Paper::showing(vec![form()]);
    let answer = json_of(&phone, "get_accessibility_tree", json!({})).await;
    let root = &answer["nodes"][0];
    assert_eq!(root["className"], "android.widget.FrameLayout");
    assert_eq!(root["text"], Value::Null);
    assert_eq!(root["bounds"], json!({"left": 0, "top": 0, "right": 1080, "bottom": 2400}));
    let child = &root["children"][0];
    assert_eq!(child["text"], "Calculator");
    assert_eq!(child["bounds"], json!({"left": 100, "top": 50, "right": 500, "bottom": 120}));
    assert_eq!((&child["visible"], &child["enabled"], &child["children"]), (&json!(true), &json!(true), &json!([])));
}

#[tokio::test]
async fn a_tree_that_is_denied_or_empty_is_an_error() {
    let phone = Paper::showing(vec![Tree::default()]);
    let (code, message) = failure(&phone, "get_accessibility_tree", json!({})).await;
    assert_eq!((code, message.as_str()), (-32003, "Failed to obtain root accessibility node."));
    phone.phone().state.lock().unwrap().tree_error = denied("reading the screen");
    assert_eq!(failure(&phone, "get_accessibility_tree", json!({})).await.0, -32001);
    assert_eq!(failure(&phone, "find_elements", json!({"by": "text", "value": "x"})).await.0, -32001);
}

#[tokio::test]
async fn a_screenshot_is_a_jpeg_with_its_size() {
    let phone = Paper::showing(vec![form()]);
    let mut sizes = Vec::new();
    for arguments in [json!({}), json!({"quality": 50}), json!({"max_side": 240, "grayscale": true})] {
        let outcome = call(&phone, "capture_screenshot", arguments).await.unwrap();
        let [Content::Image { data, mime_type, size }] = outcome.content.as_slice() else { panic!("{outcome:?}") };
        assert_eq!(mime_type, "image/jpeg");
        assert!(data.starts_with("/9j/"), "JPEG in base64");
        sizes.push(*size);
    }
    assert_eq!(sizes, [Some((1080, 2400)), Some((1080, 2400)), Some((108, 240))]);
}

#[tokio::test]
async fn screenshots_fail_with_the_references_codes() {
    let phone = Paper::showing(vec![form()]);
    let quality = async |quality: Value| failure(&phone, "capture_screenshot", json!({"quality": quality})).await;
    assert_eq!(quality(json!(0)).await, (-32602, "Quality must be between 1 and 100, got 0".to_owned()));
    assert_eq!(quality(json!(101)).await, (-32602, "Quality must be between 1 and 100, got 101".to_owned()));
    assert_eq!(
        quality(json!("best")).await,
        (-32602, "Quality must be an integer between 1 and 100, got \"best\"".to_owned())
    );
    phone.phone().state.lock().unwrap().capture_error = denied("capture");
    assert_eq!(failure(&phone, "capture_screenshot", json!({})).await.0, -32001);
    let broken = Some(PhoneError::Failed("Screenshot capture failed".to_owned()));
    phone.phone().state.lock().unwrap().capture_error = broken;
    assert_eq!(failure(&phone, "capture_screenshot", json!({})).await.0, -32003);
}

#[tokio::test]
async fn the_current_app_is_named_or_unknown() {
    let phone = Paper::showing(vec![form()]);
    let unknown = json!({"packageName": "unknown", "activityName": "unknown"});
    assert_eq!(json_of(&phone, "get_current_app", json!({})).await, unknown);
    phone.phone().state.lock().unwrap().foreground = Foreground {
        package: Some("com.android.calculator2".to_owned()),
        activity: Some(".Calculator".to_owned()),
        window: None,
    };
    let calculator = text(&phone, "get_current_app", json!({})).await;
    assert_eq!(calculator, r#"{"packageName":"com.android.calculator2","activityName":".Calculator"}"#);
    phone.phone().state.lock().unwrap().foreground.window = Some("NotificationShade".to_owned());
    assert_eq!(json_of(&phone, "get_current_app", json!({})).await["focusedWindow"], "NotificationShade");
    phone.phone().state.lock().unwrap().info_error = denied("asking");
    assert_eq!(failure(&phone, "get_current_app", json!({})).await.0, -32001);
}

#[tokio::test]
async fn the_screen_is_described() {
    let phone = Paper::showing(vec![form()]);
    let answer = text(&phone, "get_screen_info", json!({})).await;
    assert_eq!(answer, r#"{"width":1080,"height":2400,"densityDpi":420,"orientation":"portrait"}"#);
    phone.phone().state.lock().unwrap().info_error = denied("asking");
    assert_eq!(failure(&phone, "get_screen_info", json!({})).await.0, -32001);
}

#[tokio::test]
async fn system_actions_answer_in_the_references_words() {
    let phone = Paper::showing(vec![form()]);
    let words = [
        ("press_back", "Back button press executed successfully"),
        ("press_home", "Home button press executed successfully"),
        ("press_recents", "Recents button press executed successfully"),
        ("open_notifications", "Open notifications executed successfully"),
        ("open_quick_settings", "Open quick settings executed successfully"),
    ];
    for (tool, answer) in words {
        assert_eq!(text(&phone, tool, json!({})).await, answer);
    }
    let broken = Some(PhoneError::Failed("Global action 'pressBack' failed".to_owned()));
    phone.phone().state.lock().unwrap().input_error = broken;
    let expected = (-32003, "Back button press failed: Global action 'pressBack' failed".to_owned());
    assert_eq!(failure(&phone, "press_back", json!({})).await, expected);
    for (tool, _) in words {
        assert_eq!(failure(&phone, tool, json!({})).await.0, -32003, "{tool}");
    }
    phone.phone().state.lock().unwrap().input_error = denied("input");
    for (tool, _) in words {
        assert_eq!(failure(&phone, tool, json!({})).await.0, -32001, "{tool}");
    }
}

#[tokio::test]
async fn logs_are_filtered_and_counted() {
    let phone = Paper::showing(vec![form()]);
    phone.phone().state.lock().unwrap().logs = vec![
        log(0, LogcatLevel::Debug, "MCP:ServerService", "Server started on port 8080"),
        log(1, LogcatLevel::Info, "MCP:ServerService", "Client connected"),
        log(2, LogcatLevel::Warning, "MCP:ServerService", "Slow"),
        log(3, LogcatLevel::Verbose, "Noise", "never seen by default"),
    ];
    let answer = json_of(&phone, "get_device_logs", json!({})).await;
    assert_eq!(
        answer["logs"],
        "02-11 16:30:00.123 D/MCP:ServerService: Server started on port 8080\n\
         02-11 16:30:01.123 I/MCP:ServerService: Client connected\n02-11 16:30:02.123 W/MCP:ServerService: Slow"
    );
    assert_eq!((&answer["line_count"], &answer["truncated"]), (&json!(3), &json!(false)));
    let filtered = json!({"last_lines": 50, "tag": "MCP:ServerService", "level": "W"});
    assert_eq!(json_of(&phone, "get_device_logs", filtered).await["line_count"], 1);
    let last = json_of(&phone, "get_device_logs", json!({"last_lines": 1, "level": "i"})).await;
    assert_eq!(
        (&last["logs"], &last["truncated"]),
        (&json!("02-11 16:30:02.123 W/MCP:ServerService: Slow"), &json!(true))
    );
    let since = json!({"since": "2024-02-11T16:30:01", "until": "2024-02-11T16:30:02"});
    assert_eq!(json_of(&phone, "get_device_logs", since).await["line_count"], 1);
}

#[tokio::test]
async fn logs_fail_with_the_references_codes() {
    let phone = Paper::showing(vec![form()]);
    let cases = [
        (json!({"last_lines": 0}), "last_lines must be between 1 and 1000, got 0"),
        (json!({"last_lines": 1001}), "last_lines must be between 1 and 1000, got 1001"),
        (json!({"last_lines": "many"}), "last_lines must be an integer, got \"many\""),
        (json!({"level": "X"}), "level must be one of: V, D, I, W, E, F. Got: 'X'"),
        (json!({"since": "yesterday"}), "since must be an ISO 8601 time such as 2024-01-15T10:30:00, got 'yesterday'"),
    ];
    for (arguments, message) in cases {
        assert_eq!(failure(&phone, "get_device_logs", arguments).await, (-32602, message.to_owned()));
    }
    phone.phone().state.lock().unwrap().log_error =
        Some(PhoneError::Failed("logcat command failed (exit 1): x".to_owned()));
    assert_eq!(failure(&phone, "get_device_logs", json!({})).await.0, -32003);
}

#[tokio::test]
async fn touches_answer_in_the_references_words() {
    let phone = Paper::showing(vec![form()]);
    let cases = [
        ("tap", json!({"x": 500, "y": 1000.7}), "Tap executed at (500, 1000)"),
        ("long_press", json!({"x": 500, "y": 1000, "duration": 2000}), "Long press executed at (500, 1000) for 2000ms"),
        ("double_tap", json!({"x": 500, "y": 1000}), "Double tap executed at (500, 1000)"),
        (
            "swipe",
            json!({"x1": 500, "y1": 1500, "x2": 500, "y2": 500, "duration": 300}),
            "Swipe executed from (500, 1500) to (500, 500) over 300ms",
        ),
        ("scroll", json!({"direction": "down", "amount": "large"}), "Scroll down (large) executed"),
        ("scroll", json!({"direction": "UP"}), "Scroll up (medium) executed"),
        (
            "pinch",
            json!({"center_x": 540, "center_y": 1200, "scale": 2.0}),
            "Pinch (zoom in) executed at (540, 1200) with scale 2.0 over 300ms",
        ),
        (
            "pinch",
            json!({"center_x": 540, "center_y": 1200, "scale": 1}),
            "Pinch (zoom out) executed at (540, 1200) with scale 1.0 over 300ms",
        ),
        (
            "custom_gesture",
            json!({"paths": [
                [{"x": 400, "y": 600, "time": 0}, {"x": 300, "y": 600, "time": 300}],
                [{"x": 600, "y": 600, "time": 0}, {"x": 700, "y": 600, "time": 300}],
            ]}),
            "Custom gesture executed with 2 path(s), total 4 point(s)",
        ),
    ];
    for (tool, arguments, answer) in cases {
        assert_eq!(text(&phone, tool, arguments).await, answer);
    }
    let state = phone.phone().state.lock().unwrap();
    assert_eq!(state.touches.len(), 9);
    let ends = |touch: usize, finger: usize| {
        let points = &state.touches[touch][finger].points;
        (points[0].x, points[0].y, points[points.len() - 1].x, points[points.len() - 1].y)
    };
    assert_eq!(ends(4, 0), (540.0, 1872.0, 540.0, 72.0), "down: the finger goes up by three quarters");
    assert_eq!(ends(5, 0), (540.0, 600.0, 540.0, 1800.0), "up: the finger goes down by half");
    assert_eq!((ends(6, 0), ends(6, 1)), ((440.0, 1200.0, 340.0, 1200.0), (640.0, 1200.0, 740.0, 1200.0)));
}

#[tokio::test]
async fn touches_are_refused_in_the_references_words() {
    let phone = Paper::showing(vec![form()]);
    let path = |points: Value| json!({"paths": [points]});
    let cases = [
        ("tap", json!({"y": 5}), "Missing required parameter: 'x'"),
        ("tap", json!({"x": "5", "y": 5}), "Parameter 'x' must be a number, got string: '5'"),
        ("tap", json!({"x": -1, "y": 5}), "Parameter 'x' must be >= 0, got: -1.0"),
        ("tap", json!({"x": 1080, "y": 5}), "Parameter 'x' must be on the screen (0 to 1079), got: 1080.0"),
        (
            "swipe",
            json!({"x1": 1, "y1": 1, "x2": 1, "y2": 9999}),
            "Parameter 'y2' must be on the screen (0 to 2399), got: 9999.0",
        ),
        (
            "long_press",
            json!({"x": 1, "y": 1, "duration": 0}),
            "Parameter 'duration' must be between 1 and 60000, got: 0",
        ),
        ("long_press", json!({"x": 1, "y": 1, "duration": 1.5}), "Parameter 'duration' must be an integer, got: '1.5'"),
        ("scroll", json!({}), "Missing required parameter: 'direction'"),
        ("scroll", json!({"direction": "x"}), "Parameter 'direction' must be one of: up, down, left, right. Got: 'x'"),
        (
            "scroll",
            json!({"direction": "up", "amount": "x"}),
            "Parameter 'amount' must be one of: small, medium, large. Got: 'x'",
        ),
        ("pinch", json!({"center_x": 1, "center_y": 1, "scale": 0}), "Parameter 'scale' must be > 0, got: 0.0"),
        ("custom_gesture", json!({"paths": []}), "Parameter 'paths' must not be empty"),
        (
            "custom_gesture",
            path(json!([{"x": 1, "y": 1, "time": 0}])),
            "Path at index 0 must have at least 2 points, has 1",
        ),
        (
            "custom_gesture",
            path(json!([{"x": 1, "y": 1, "time": 0}, {"x": 1, "y": 1}])),
            "Missing 'time' in point at path[0][1]",
        ),
        (
            "custom_gesture",
            path(json!([{"x": 1, "y": 1, "time": 0}, {"x": 2, "y": 1, "time": 0}])),
            "Times must be monotonically increasing within each path. path[0][1].time (0) <= previous time (0)",
        ),
    ];
    for (tool, arguments, message) in cases {
        assert_eq!(failure(&phone, tool, arguments).await, (-32602, message.to_owned()));
    }
    assert!(phone.phone().state.lock().unwrap().touches.is_empty(), "nothing was done");
    phone.phone().state.lock().unwrap().input_error = denied("input");
    assert_eq!(failure(&phone, "tap", json!({"x": 1, "y": 1})).await.0, -32001);
    phone.phone().state.lock().unwrap().input_error = Some(PhoneError::Failed("Gesture cancelled".to_owned()));
    assert_eq!(failure(&phone, "tap", json!({"x": 1, "y": 1})).await.0, -32003);
}

#[tokio::test]
async fn elements_are_found_with_all_their_members() {
    let phone = Paper::showing(vec![form()]);
    let found = json_of(&phone, "find_elements", json!({"by": "text", "value": "SUBMIT"})).await;
    let element = &found["elements"][0];
    let members = [
        "id",
        "text",
        "contentDescription",
        "resourceId",
        "className",
        "bounds",
        "clickable",
        "longClickable",
        "scrollable",
        "editable",
        "enabled",
    ];
    assert_eq!(element.as_object().unwrap().keys().collect::<Vec<_>>(), members);
    assert_eq!(element["bounds"], json!({"left": 0, "top": 400, "right": 1080, "bottom": 500}));
    let none = json!({"by": "text", "value": "submit", "exact_match": true});
    assert_eq!(json_of(&phone, "find_elements", none).await, json!({"elements": []}));
    let wrong = "Invalid 'by' value: 'x'. Must be one of: text, content_desc, resource_id, class_name";
    assert_eq!(failure(&phone, "find_elements", json!({"by": "x", "value": "a"})).await, (-32602, wrong.to_owned()));
    let empty = failure(&phone, "find_elements", json!({"by": "text", "value": ""})).await;
    assert_eq!(empty, (-32602, "Parameter 'value' must be non-empty".to_owned()));
    assert_eq!(
        failure(&phone, "find_elements", json!({"value": "x"})).await,
        (-32602, "Missing required parameter 'by'".to_owned())
    );
}

#[tokio::test]
async fn elements_are_clicked_where_they_are() {
    let phone = Paper::showing(vec![form()]);
    let submit = id_of(&phone, "Submit").await;
    let answer = text(&phone, "click_element", json!({"element_id": submit})).await;
    assert_eq!(answer, format!("Click performed on element '{submit}'"));
    let answer = text(&phone, "long_click_element", json!({"element_id": submit})).await;
    assert_eq!(answer, format!("Long-click performed on element '{submit}'"));
    let wifi = id_of(&phone, "Wi-Fi").await;
    text(&phone, "click_element", json!({"element_id": wifi})).await;
    let touches = phone.phone().state.lock().unwrap().touches.clone();
    let points: Vec<(f32, f32)> = touches.iter().map(|touch| (touch[0].points[0].x, touch[0].points[0].y)).collect();
    assert_eq!(points, [(540.0, 450.0), (540.0, 450.0), (250.0, 650.0)], "a label in a row clicks the row");
}

#[tokio::test]
async fn what_cannot_be_clicked_says_why() {
    let phone = Paper::showing(vec![form()]);
    let (title, later) = (id_of(&phone, "Calculator").await, id_of(&phone, "Later").await);
    let click = async |id: &str| failure(&phone, "click_element", json!({"element_id": id})).await;
    assert_eq!(click(&title).await, (-32003, format!("Node '{title}' is not clickable")));
    assert_eq!(click(&later).await, (-32003, format!("Node '{later}' is disabled")));
    let (code, message) = click("node_abc123").await;
    assert_eq!(code, -32002);
    assert!(message.starts_with("Element 'node_abc123' not found in accessibility tree"), "{message}");
    assert_eq!(click("").await, (-32602, "Parameter 'element_id' must be non-empty".to_owned()));
    let missing = failure(&phone, "click_element", json!({})).await;
    assert_eq!(missing, (-32602, "Missing required parameter 'element_id'".to_owned()));
    let long = failure(&phone, "long_click_element", json!({"element_id": title})).await;
    assert_eq!(long, (-32003, format!("Node '{title}' is not long-clickable")));
    phone.phone().state.lock().unwrap().screens = vec![Tree::default()];
    let (code, message) = click(&title).await;
    assert_eq!((code, message.as_str()), (-32001, "No active window available. Ensure an app is in the foreground."));
}

#[tokio::test]
async fn text_is_set_typed_and_cleared() {
    let phone = Paper::showing(vec![form()]);
    let field = id_of(&phone, "Ada").await;
    let answer = text(&phone, "set_text", json!({"element_id": field, "text": "Hello 🦀"})).await;
    assert_eq!(answer, format!("Text set on element '{field}'"));
    assert_eq!(text(&phone, "input_text", json!({"text": "🦀x"})).await, "Text input completed (3 characters)");
    assert_eq!(
        text(&phone, "input_text", json!({"text": " L", "append": true})).await,
        "Text input completed (2 characters)"
    );
    assert_eq!(text(&phone, "clear_text", json!({})).await, "Text cleared successfully");
    let name = Some("org.sinew.paper:id/name".to_owned());
    let texts = phone.phone().state.lock().unwrap().texts.clone();
    let expected =
        [(name.clone(), "Hello 🦀".into()), (name.clone(), "🦀x".into()), (None, " L".into()), (name, String::new())];
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn text_without_a_field_is_an_error() {
    let phone = Paper::showing(vec![form()]);
    let button = id_of(&phone, "Submit").await;
    let set = failure(&phone, "set_text", json!({"element_id": button, "text": "x"})).await;
    assert_eq!(set, (-32003, format!("Node '{button}' is not editable")));
    assert_eq!(
        failure(&phone, "set_text", json!({"element_id": button})).await,
        (-32602, "Missing required parameter 'text'".to_owned())
    );
    phone.phone().state.lock().unwrap().screens = vec![list(0)];
    let message = "No focused editable element found. Focus an input field first or provide element_id.";
    assert_eq!(failure(&phone, "input_text", json!({"text": "x"})).await, (-32002, message.to_owned()));
    assert_eq!(failure(&phone, "clear_text", json!({})).await, (-32002, message.to_owned()));
}

#[tokio::test]
async fn keys_and_clipboard_answer_in_the_references_words() {
    let phone = Paper::showing(vec![form()]);
    for key in ["ENTER", "back", "DEL", "HOME", "TAB", "SPACE"] {
        let answer = text(&phone, "press_key", json!({"key": key})).await;
        assert_eq!(answer, format!("Key '{}' pressed successfully", key.to_uppercase()));
    }
    let (code, message) = failure(&phone, "press_key", json!({"key": "x"})).await;
    assert_eq!(code, -32602);
    assert!(message.starts_with("Invalid key: 'x'. Allowed values: ENTER, BACK, DEL, HOME, TAB, SPACE"), "{message}");
    assert_eq!(text(&phone, "get_clipboard", json!({})).await, r#"{"text":null}"#);
    assert_eq!(
        text(&phone, "set_clipboard", json!({"text": "héllo"})).await,
        "Clipboard set successfully (5 characters)"
    );
    assert_eq!(text(&phone, "get_clipboard", json!({})).await, r#"{"text":"héllo"}"#);
}

#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let phone = Paper::showing(vec![form()]);
    assert_eq!(failure(&phone, "fly", json!({})).await.0, -32601);
}
