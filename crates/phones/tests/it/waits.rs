//! Waits and searches: what ends them, and what they say when their time is over.

use std::time::Duration;

use crate::common::{Paper, failure, form, id_of, json_of, list, node, text};
use sinew_phones::{PhoneError, Tree, UiNode};
use sinew_tool::{Call, json};

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_thing_appears_or_the_time_is_over() {
    let phone = Paper::showing(vec![form()]);
    let found = json_of(&phone, "wait_for_element", json!({"by": "text", "value": "wi-fi"})).await;
    assert_eq!((&found["found"], &found["attempts"]), (&json!(true), &json!(1)));
    assert_eq!(found["element"].as_object().unwrap().len(), 8);
    let missing = failure(&phone, "wait_for_element", json!({"by": "text", "value": "x", "timeout": "1000"})).await;
    assert_eq!(missing, (-32004, "Element not found within 1000ms (by=text, value='x', attempts=2)".to_owned()));
    let range = failure(&phone, "wait_for_element", json!({"by": "text", "value": "x", "timeout": 0})).await;
    assert_eq!(range, (-32602, "Timeout must be between 1 and 30000 ms, got: 0".to_owned()));
    phone.phone().state.lock().unwrap().tree_error =
        Some(PhoneError::Denied("reading the screen is not allowed".to_owned()));
    assert_eq!(failure(&phone, "wait_for_element", json!({"by": "text", "value": "x"})).await.0, -32001);
}

#[tokio::test(start_paused = true)]
async fn waiting_bears_a_screen_between_two_windows() {
    let phone = Paper::showing(vec![Tree::default(), form()]);
    let wait = json_of(&phone, "wait_for_element", json!({"by": "text", "value": "Submit"}));
    let appear = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        phone.phone().state.lock().unwrap().screens.remove(0);
    };
    let (found, ()) = tokio::join!(wait, appear);
    assert_eq!((&found["attempts"], &found["elapsedMs"]), (&json!(3), &json!(1000)));
    phone.phone().state.lock().unwrap().screens = vec![Tree::default()];
    assert_eq!(failure(&phone, "wait_for_idle", json!({"timeout": 700})).await.0, -32004);
}

#[tokio::test(start_paused = true)]
async fn an_idle_screen_is_seen_and_a_moving_one_times_out() {
    let phone = Paper::showing(vec![form()]);
    let idle = json_of(&phone, "wait_for_idle", json!({})).await;
    assert_eq!((&idle["message"], &idle["elapsedMs"]), (&json!("UI is idle"), &json!(1000)));
    let moving = Some(PhoneError::unsupported("reading a screen that keeps moving", "wait"));
    phone.phone().state.lock().unwrap().tree_error = moving;
    let late = failure(&phone, "wait_for_idle", json!({"timeout": 700})).await;
    assert_eq!(late, (-32004, "UI did not become idle within 700ms".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_scrolled_to_an_element_seen_or_described() {
    let phone = Paper::showing(vec![list(0), list(4), list(8), list(12)]);
    let row = id_of(&phone, "Row 2").await;
    let seen = text(&phone, "scroll_to_element", json!({"element_id": row})).await;
    assert_eq!(seen, format!("Element '{row}' is already visible"));
    let found = text(&phone, "scroll_to_element", json!({"by": "text", "value": "Row 10", "exact_match": true})).await;
    assert!(found.ends_with("(2 scroll(s))"), "{found}");
    let (code, message) = failure(&phone, "scroll_to_element", json!({"by": "text", "value": "Row 99"})).await;
    assert_eq!(code, -32003, "{message}");
    assert_eq!(failure(&phone, "scroll_to_element", json!({"element_id": "node_1"})).await.0, -32002);
    phone.phone().state.lock().unwrap().screens = vec![form()];
    let nowhere = failure(&phone, "scroll_to_element", json!({"by": "text", "value": "Row 99"})).await;
    assert_eq!(nowhere.0, -32003);
}

/// A row with a switch that cannot be clicked itself, and a button that says what was saved.
fn row(is_on: bool, saved: &str) -> Tree {
    let mut tree = Tree::builder(0);
    tree.open(node("android.widget.FrameLayout", "", [0, 0, 1080, 2400]));
    tree.open(UiNode { clickable: true, ..node("android.widget.LinearLayout", "", [0, 600, 1080, 700]) });
    tree.leaf(node("android.widget.TextView", "Wi-Fi", [0, 600, 500, 700]));
    let switch = node("android.widget.Switch", "", [800, 600, 1080, 700]);
    tree.leaf(UiNode { checkable: true, checked: is_on, ..switch });
    tree.close();
    tree.open(UiNode { clickable: true, focused: is_on, ..node("android.widget.Button", "", [0, 800, 1080, 900]) });
    tree.leaf(node("android.widget.TextView", saved, [0, 800, 1080, 900]));
    tree.finish()
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_an_element_says_a_text_or_has_a_state() {
    let phone = Paper::showing(vec![row(false, "Saving…")]);
    let shown = text(&phone, "get_screen", json!({})).await;
    assert!(shown.contains("e1 switch \"Wi-Fi\" off") && shown.contains("e2 btn \"Saving…\""), "{shown}");
    let change = async {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        phone.phone().state.lock().unwrap().screens = vec![row(true, "Saved")];
    };
    let said = json_of(&phone, "wait_until", json!({"element_id": "e2", "text": "SAVED"}));
    let (said, ()) = tokio::join!(said, change);
    assert_eq!(said, json!({"met": true, "elapsedMs": 1500}));
    // The row is what its switch is, as get_screen shows it.
    for wait in [
        json!({"element_id": "e1", "state": "on"}),
        json!({"element_id": "e2", "state": "focused"}),
        json!({"element_id": "e2", "state": "enabled", "text": "save"}),
        json!({"selector": {"text": "Nowhere"}, "state": "gone"}),
    ] {
        assert_eq!(json_of(&phone, "wait_until", wait).await, json!({"met": true, "elapsedMs": 0}));
    }
    assert_eq!(json_of(&phone, "get_element", json!({"element_id": "e1"})).await["states"], json!(["enabled", "on"]));
    for (wait, instead) in [
        (json!({"element_id": "e1", "state": "off"}), "not in that state"),
        (json!({"element_id": "e2", "text": "failed"}), "the element says 'Saved'"),
        (json!({"element_id": "e2", "state": "selected"}), "not in that state"),
        (json!({"element_id": "e2", "state": "gone"}), "not in that state"),
    ] {
        let (code, message) = failure(&phone, "wait_until", wait).await;
        assert_eq!((code, message.contains(instead)), (-32004, true), "{message}");
    }
    // What was never shown is not gone: the ref is wrong.
    assert_eq!(failure(&phone, "wait_until", json!({"element_id": "e99", "state": "gone"})).await.0, -32002);
}

#[tokio::test(start_paused = true)]
async fn however_short_a_wait_is_it_looks_once() {
    let phone = Paper::showing(vec![form()]);
    phone.phone().state.lock().unwrap().slow_tree = Some(Duration::from_secs(2));
    for (tool, arguments) in [
        ("wait_until", json!({"selector": {"text": "Submit"}, "timeout": 1})),
        ("wait_for_element", json!({"by": "text", "value": "Submit", "timeout": 1})),
    ] {
        assert_eq!(json_of(&phone, tool, arguments).await["elapsedMs"], 2000, "{tool}");
    }
    let (code, message) =
        failure(&phone, "wait_until", json!({"selector": {"text": "Submit"}, "state": "gone", "timeout": 1})).await;
    assert_eq!((code, message.contains("is there")), (-32004, true), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_searched_for_a_part_of_the_calls_time_and_its_place_is_told() {
    let phone = Paper::showing(vec![list(0)]);
    phone.phone().state.lock().unwrap().endless = Some(|touches| list(touches * 4));
    let started = tokio::time::Instant::now();
    let search = json!({"by": "text", "value": "No such row"});
    let (code, message) = failure(&phone, "scroll_to_element", search).await;
    assert_eq!(code, -32003, "{message}");
    assert!(started.elapsed() < Call::new("", Default::default()).budget, "{:?}", started.elapsed());
    let scrolls = phone.phone().state.lock().unwrap().touches.len();
    assert!(message.contains(&format!("was scrolled {scrolls} time(s) and stays where it is now")), "{message}");
    let place = format!("from \"Row {}\" to \"Row {}\"; call again", scrolls * 4, scrolls * 4 + 4);
    assert!(message.contains(&place), "{message}");
    // Another call goes on from there.
    let further = json!({"by": "text", "value": format!("Row {}", scrolls * 4 + 40), "exact_match": true});
    let found = text(&phone, "scroll_to_element", further).await;
    assert!(found.ends_with("(9 scroll(s))"), "{found}");
}
