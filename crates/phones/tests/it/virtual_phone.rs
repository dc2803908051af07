//! The tools on the virtual phone, driven directly: every primitive is there.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{call, failure, json_of, run_steps, text};
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::phone::{Denial, PhoneClock, PhoneSetup, VirtualPhone};
use sinew_tool::{Call, Content, Device, Value, json};

fn phone() -> PhoneDevice<VirtualPhone> {
    PhoneDevice::new(VirtualPhone::new(PhoneSetup::default(), PhoneClock::Virtual), Profile::Full)
}

async fn text_of(phone: &PhoneDevice<VirtualPhone>, id: &str) -> Value {
    let found = json_of(phone, "find_elements", json!({"by": "resource_id", "value": format!(":id/{id}")})).await;
    found["elements"][0]["text"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_note_is_written_a_list_scrolled_a_picture_pinched_and_all_of_it_read_back() {
    let phone = Arc::new(phone());
    let screen = text(&*phone, "open_app", json!({"app": "Notes", "return": "screen"})).await;
    assert!(screen.contains("btn \"New note\""), "{screen}");
    // The screen shows a name, and not whether it is a text or a description.
    for (tool, selector) in [
        ("click_element", json!({"selector": {"text": "New note"}})),
        ("wait_for_element", json!({"by": "text", "value": "New note", "timeout": 1})),
    ] {
        let error = call(&*phone, tool, selector).await.unwrap_err();
        assert!(error.message.contains("use `description` in the selector, or `by: content_desc`"), "{error}");
    }
    let diff =
        text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note", "return": "diff"})).await;
    assert!(diff.contains("field"), "{diff}");
    let body = "Liebe Zoë,\nשלום עולם\n→ 100 % ½ 👩‍💻";
    let steps = json!({"steps": [
        {"tool": "input_text", "arguments": {"by": "resource_id", "value": "note_title", "text": "Grüße 🎉"}},
        {"tool": "set_text", "arguments": {"by": "resource_id", "value": "note_body", "text": body}},
    ]});
    run_steps(phone.clone(), steps).await.unwrap();
    assert_eq!(text_of(&phone, "note_title").await, "Grüße 🎉");
    assert_eq!(text_of(&phone, "note_body").await, body);
    text(&*phone, "set_clipboard", json!({"text": "kopiert ✂"})).await;
    assert_eq!(json_of(&*phone, "get_clipboard", json!({})).await, json!({"text": "kopiert ✂"}));

    text(&*phone, "open_app", json!({"app": "com.android.contacts"})).await;
    let found = text(&*phone, "scroll_to_element", json!({"by": "text", "value": "Mary Hopper"})).await;
    assert!(found.starts_with("Scrolled to element 'node_"), "{found}");
    text(&*phone, "click_element", json!({"by": "text", "value": "Mary Hopper"})).await;
    assert_eq!(text_of(&phone, "large_title").await, "Mary Hopper");

    text(&*phone, "open_app", json!({"app": "com.android.gallery3d"})).await;
    text(&*phone, "click_element", json!({"by": "text", "value": "Map of the island"})).await;
    assert_eq!(text_of(&phone, "zoom_level").await, "Zoom 1.0×");
    text(&*phone, "pinch", json!({"center_x": 540, "center_y": 1200, "scale": 3})).await;
    assert_eq!(text_of(&phone, "zoom_level").await, "Zoom 3.0×");
    let outcome = call(&*phone, "get_screen", json!({"screenshot": "annotated"})).await.expect("a screen");
    assert!(matches!(outcome.content.as_slice(), [Content::Text(_), Content::Image { size: Some((_, 768)), .. }]));
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_is_denied_in_the_references_code() {
    let phone = phone();
    let deny = |what| phone.phone().handset.deny(what, true);
    deny(Denial::Tree);
    for tool in ["get_accessibility_tree", "get_screen", "wait_for_idle", "clear_text"] {
        assert_eq!(failure(&phone, tool, json!({})).await.0, -32001, "{tool}");
    }
    deny(Denial::Capture);
    assert_eq!(failure(&phone, "capture_screenshot", json!({})).await.0, -32001);
    deny(Denial::Input);
    for (tool, arguments) in [
        ("press_back", json!({})),
        ("tap", json!({"x": 1, "y": 1})),
        ("scroll", json!({"direction": "up"})),
        ("pinch", json!({"center_x": 540, "center_y": 1200, "scale": 3})),
    ] {
        assert_eq!(failure(&phone, tool, arguments).await.0, -32001, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_phone_shows_and_takes_nothing_but_the_key_that_wakes_it() {
    let phone = phone();
    text(&phone, "press_key", json!({"key": "SLEEP"})).await;
    for (tool, arguments) in [
        ("get_screen", json!({})),
        ("tap", json!({"x": 1, "y": 1})),
        ("press_home", json!({})),
        ("input_text", json!({"text": "x", "append": true})),
        ("open_app", json!({"app": "Notes"})),
    ] {
        let (code, message) = failure(&phone, tool, arguments).await;
        assert_eq!((code, message.contains("WAKEUP")), (-32001, true), "{tool}: {message}");
    }
    text(&phone, "press_key", json!({"key": "WAKEUP"})).await;
    let (code, message) = failure(&phone, "open_app", json!({"app": "Notes"})).await;
    assert_eq!((code, message.contains("is locked")), (-32001, true), "{message}");
    text(&phone, "swipe", json!({"x1": 540, "y1": 2000, "x2": 540, "y2": 300, "settle": true})).await;
    text(&phone, "open_app", json!({"app": "Notes"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_phone_unplugged_in_the_middle_is_lost() {
    let phone = phone();
    phone.phone().handset.set_latency(Duration::from_millis(50));
    let call = call(&phone, "tap", json!({"x": 1, "y": 1}));
    phone.phone().handset.unplug();
    let error = call.await.expect_err("there is no phone");
    assert_eq!(error.kind, sinew_tool::ErrorKind::DeviceLost, "{error}");
}

#[tokio::test(start_paused = true)]
async fn scrolling_shows_what_lies_in_that_direction() {
    let phone = phone();
    text(&phone, "open_app", json!({"app": "com.android.contacts"})).await;
    let top = text(&phone, "get_screen", json!({})).await;
    let down = text(&phone, "scroll", json!({"direction": "down", "return": "screen"})).await;
    assert!(top.contains("Ada Anders") && !down.contains("Ada Anders"), "{down}");
    for _ in 0..5 {
        text(&phone, "scroll", json!({"direction": "up", "amount": "large", "settle": true})).await;
    }
    assert_eq!(text(&phone, "get_screen", json!({})).await, top, "the beginning, under the same refs");
}

/// The time that a call took on the phone and in waiting, where only the two move the clock.
async fn timed<T>(phone: &PhoneDevice<VirtualPhone>, call: impl Future<Output = T>) -> (Duration, T) {
    let now = || phone.phone().handset.with(|machine| machine.now());
    let (before, waited) = (now(), tokio::time::Instant::now());
    let outcome = call.await;
    (Duration::from_millis(now() - before) + waited.elapsed(), outcome)
}

/// The number before `scroll(s)`.
fn scrolls(told: &str) -> usize {
    let before = told.split(" scroll(s)").next().unwrap_or_default();
    before.rsplit(['(', ' ']).next().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{told}"))
}

#[tokio::test(start_paused = true)]
async fn a_list_of_two_hundred_is_searched_within_half_a_calls_time() {
    let phone = phone();
    text(&phone, "open_app", json!({"app": "com.android.contacts"})).await;
    let half = Duration::from_secs(15);

    let (time, found) = timed(&phone, text(&phone, "scroll_to_element", by_text("Zoë Anders"))).await;
    assert!(scrolls(&found) <= 18 && time <= half, "{found} {time:?}");

    // Above where the list stands now, after its end was reached.
    let (time, found) = timed(&phone, text(&phone, "scroll_to_element", by_text("Ada Anders"))).await;
    assert!(found.starts_with("Scrolled") && time <= half, "{found} {time:?}");

    let (time, (code, missing)) = timed(&phone, failure(&phone, "scroll_to_element", by_text("Nobody"))).await;
    assert_eq!(code, -32003, "{missing}");
    assert!(missing.contains("both ends") && missing.contains("back where it was"), "{missing}");
    assert!(scrolls(&missing) <= 50 && time <= half, "{missing} {time:?}");
    assert!(text(&phone, "get_screen", json!({})).await.contains("Ada Anders"));

    // From the middle, too, and the list stays there.
    text(&phone, "scroll_to_element", by_text("Mary Hopper")).await;
    let (code, missing) = failure(&phone, "scroll_to_element", by_text("Nobody")).await;
    assert_eq!(code, -32003, "{missing}");
    assert!(text(&phone, "get_screen", json!({})).await.contains("Mary"));
}

fn by_text(value: &str) -> Value {
    json!({"by": "text", "value": value})
}

#[tokio::test(start_paused = true)]
async fn a_search_ends_with_the_time_of_its_call_and_says_where_the_list_is() {
    let phone = phone();
    text(&phone, "open_app", json!({"app": "com.android.contacts"})).await;
    let args = by_text("Nobody").as_object().cloned().unwrap_or_default();
    let call = Call { budget: Duration::from_millis(600), ..Call::new("scroll_to_element", args) };
    let error = phone.call(call).await.expect_err("there is not enough time");
    assert_eq!(error.kind.row().code, -32003);
    assert!(error.message.contains("call again to go on from there"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn one_element_is_told_in_full() {
    let phone = phone();
    text(&phone, "open_app", json!({"app": "Notes"})).await;
    text(&phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
    let long = "All work and no play.\n".repeat(40);
    text(&phone, "set_text", json!({"by": "resource_id", "value": "note_body", "text": long})).await;
    let shown = text(&phone, "get_screen", json!({})).await;
    let line = shown.lines().find(|line| line.contains("All work")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("\"+8"), "a cut label says how much is missing: {line}");
    let name = line.split(' ').next().unwrap_or_default();
    let element = json_of(&phone, "get_element", json!({"element_id": name})).await;
    assert_eq!((&element["text"], &element["ref"]), (&json!(long), &json!(name)));
    assert_eq!(element["actions"], json!(["click_element", "long_click_element", "input_text"]));
    assert!(element["states"].as_array().is_some_and(|states| states.contains(&json!("enabled"))), "{element}");
    let cut = json_of(&phone, "get_element", json!({"element_id": name, "max_bytes": 1300})).await;
    assert!(cut["omitted"].as_u64().is_some_and(|omitted| omitted > 500), "{cut}");
    assert_eq!(failure(&phone, "get_element", json!({"element_id": "e9999"})).await.0, -32002);
}

#[tokio::test(start_paused = true)]
async fn quick_settings_are_named_as_on_stock_android() {
    let phone = phone();
    let shown = text(&phone, "open_quick_settings", json!({"return": "screen"})).await;
    assert!(shown.contains("switch \"Dark theme\" off"), "{shown}");
    assert!(shown.contains("slider \"Display brightness\"=\""), "{shown}");
    assert!(!shown.contains("\"On\"") && !shown.contains("\"Off\""), "{shown}");
}
