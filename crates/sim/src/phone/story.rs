//! The phone used as a person would: through the [`Phone`] trait alone.

use std::time::Duration;

use sinew_phones::{Image, Key, LogQuery, Phone, PhoneError, Stroke, Tree, UiNode};

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Drives a phone in virtual time and finds elements by their text.
struct PhoneDriver {
    phone: VirtualPhone,
}

impl PhoneDriver {
    fn new() -> PhoneDriver {
        PhoneDriver::with(PhoneSetup::default())
    }

    fn with(setup: PhoneSetup) -> PhoneDriver {
        PhoneDriver { phone: VirtualPhone::new(setup, PhoneClock::Virtual) }
    }

    async fn tree(&self) -> Tree {
        self.phone.tree().await.unwrap()
    }

    async fn find(&self, what: &str) -> Option<UiNode> {
        let fits = |text: &Option<String>| text.as_deref() == Some(what);
        let suffix = format!(":id/{what}");
        let named = |node: &UiNode| node.resource_id.as_deref().is_some_and(|id| id.ends_with(&suffix));
        let tree = self.tree().await;
        let found = tree.nodes().iter().find(|node| fits(&node.text) || fits(&node.description) || named(node));
        found.cloned()
    }

    async fn get(&self, what: &str) -> UiNode {
        match self.find(what).await {
            Some(node) => node,
            None => panic!("no {what:?} on the screen: {:#?}", self.texts().await),
        }
    }

    async fn texts(&self) -> Vec<String> {
        self.tree().await.nodes().iter().filter_map(|node| node.text.clone()).collect()
    }

    async fn text(&self, what: &str) -> String {
        self.get(what).await.text.unwrap_or_default()
    }

    async fn tap(&self, what: &str) {
        let (x, y) = self.get(what).await.bounds.center();
        self.touch(&[Stroke::hold(x as f32, y as f32, MS(0), MS(50))]).await;
    }

    async fn hold(&self, what: &str) {
        let (x, y) = self.get(what).await.bounds.center();
        self.touch(&[Stroke::hold(x as f32, y as f32, MS(0), MS(900))]).await;
    }

    async fn swipe(&self, from: (f32, f32), to: (f32, f32)) {
        self.touch(&[Stroke::line(from, to, MS(0), MS(300))]).await;
    }

    async fn touch(&self, strokes: &[Stroke]) {
        self.phone.touch(strokes).await.unwrap();
        self.phone.handset.advance(MS(400));
    }

    async fn open(&self, package: &str) {
        self.phone.open_app(package).await.unwrap();
    }
}

#[tokio::test]
async fn a_note_is_written_a_list_scrolled_a_picture_zoomed_and_all_of_it_read_back() {
    let hands = PhoneDriver::new();
    hands.tap("Notes").await;
    hands.tap("New note").await;
    hands.phone.type_text("Grüße 🎉").await.unwrap();
    hands.tap("note_body").await;
    let body = "Liebe Zoë,\nשלום עולם\nمرحبا بالعالم\n→ 100 % ½ 👩‍💻";
    hands.phone.type_text(body).await.unwrap();
    assert_eq!(hands.text("note_title").await, "Grüße 🎉");
    assert_eq!(hands.text("note_body").await, body);
    assert!(hands.text("note_status").await.ends_with("4 lines"));
    hands.phone.key(Key::Del).await.unwrap();
    assert!(hands.text("note_body").await.ends_with("½ "), "an emoji of three code points goes at once");

    hands.open("com.android.contacts").await;
    let mut swipes = 0;
    while hands.find("Mary Hopper").await.is_none() {
        hands.swipe((540.0, 1900.0), (540.0, 900.0)).await;
        swipes += 1;
        assert!(swipes < 40, "{:?}", hands.texts().await);
    }
    hands.tap("Mary Hopper").await;
    assert_eq!(hands.text("large_title").await, "Mary Hopper");

    hands.open("com.android.gallery3d").await;
    hands.tap("Map of the island").await;
    assert_eq!(hands.text("zoom_level").await, "Zoom 1.0×");
    let finger = |from: f32, to: f32| Stroke::line((from, 1200.0), (to, 1200.0), MS(0), MS(300));
    hands.touch(&[finger(440.0, 240.0), finger(640.0, 840.0)]).await;
    assert_eq!(hands.text("zoom_level").await, "Zoom 3.0×");
    let before = hands.text("position").await;
    hands.swipe((800.0, 1500.0), (400.0, 1200.0)).await;
    assert_ne!(hands.text("position").await, before, "one finger pans");

    hands.phone.key(Key::Home).await.unwrap();
    hands.tap("Notes").await;
    assert_eq!(hands.text("note_title").await, "Grüße 🎉", "the note was left open and is still there");
}

#[tokio::test]
async fn the_calculator_can_be_used_with_fingers_and_with_keys() {
    let hands = PhoneDriver::new();
    hands.tap("Calculator").await;
    for key in ["digit_1", "digit_2", "op_mul", "digit_3"] {
        hands.tap(key).await;
    }
    assert_eq!((hands.text("formula").await, hands.text("result").await), ("12×3".to_owned(), "36".to_owned()));
    hands.phone.key(Key::Enter).await.unwrap();
    assert_eq!(hands.text("formula").await, "36");
}

#[tokio::test]
async fn back_closes_the_front_most_thing_one_by_one() {
    let hands = PhoneDriver::new();
    hands.open("dev.sinew.notes").await;
    hands.tap("Shopping").await;
    hands.tap("note_body").await;
    assert!(hands.find("Space").await.is_some(), "the keyboard is up");
    hands.phone.key(Key::Back).await.unwrap();
    assert!(hands.find("Space").await.is_none());
    hands.tap("Delete note").await;
    assert_eq!(hands.text("alertTitle").await, "Delete note?");
    assert!(hands.find("note_body").await.is_none(), "what the dialog covers is not offered");
    hands.phone.key(Key::Back).await.unwrap();
    assert!(hands.find("alertTitle").await.is_none());
    hands.phone.key(Key::Back).await.unwrap();
    assert!(hands.find("New note").await.is_some());
    hands.phone.key(Key::Back).await.unwrap();
    assert_eq!(hands.phone.foreground().await.unwrap().package.as_deref(), Some("com.android.launcher3"));
}

#[tokio::test]
async fn a_long_press_asks_and_a_yes_deletes() {
    let hands = PhoneDriver::new();
    hands.open("dev.sinew.notes").await;
    hands.hold("Shopping").await;
    hands.tap("Delete").await;
    assert!(hands.find("Shopping").await.is_none());
    assert!(hands.find("Ideas").await.is_some());
}

#[tokio::test]
async fn panels_open_by_key_and_by_finger_and_their_switches_switch() {
    let hands = PhoneDriver::new();
    hands.phone.key(Key::Notifications).await.unwrap();
    assert!(hands.find("Reminder").await.is_some());
    let foreground = hands.phone.foreground().await.unwrap();
    assert_eq!(foreground.window.as_deref(), Some("NotificationShade"));
    hands.tap("Clear all").await;
    assert!(hands.find("No notifications").await.is_some());
    hands.phone.key(Key::Back).await.unwrap();

    hands.swipe((540.0, 10.0), (540.0, 900.0)).await;
    hands.swipe((540.0, 900.0), (540.0, 1800.0)).await;
    let tile = hands.get("Dark theme").await;
    assert!(tile.checkable && !tile.checked);
    hands.tap("Dark theme").await;
    assert!(hands.get("Dark theme").await.checked);
    hands.swipe((540.0, 1800.0), (540.0, 900.0)).await;
    assert!(hands.find("Swipe up for all apps").await.is_some());
}

#[tokio::test]
async fn a_setting_is_found_in_a_long_list_and_the_phone_turns() {
    let hands = PhoneDriver::new();
    hands.phone.handset.with(|machine| machine.turn(1));
    let screen = hands.phone.screen().await.unwrap();
    assert_eq!((screen.width, screen.height, screen.rotation), (2400, 1080, 1));
    hands.open("com.android.settings").await;
    while hands.find("Display").await.is_none() {
        hands.swipe((1200.0, 800.0), (1200.0, 500.0)).await;
    }
    hands.tap("Display").await;
    assert!(hands.tree().await.nodes().iter().any(|node| node.class == "android.widget.Switch" && node.checked));
    hands.tap("Auto-rotate screen").await;
    hands.phone.handset.with(|machine| machine.turn(0));
    assert_eq!(hands.phone.screen().await.unwrap().rotation, 1, "it keeps its rotation now");
}

#[tokio::test]
async fn text_is_selected_copied_and_pasted_and_the_keyboard_types() {
    let hands = PhoneDriver::new();
    hands.open("com.android.contacts").await;
    hands.tap("search_view").await;
    for key in ["z", "o"] {
        hands.tap(key).await;
    }
    assert_eq!(hands.text("search_view").await, "zo");
    assert_eq!(hands.text("contact_count").await, "10 contacts");
    hands.phone.set_clipboard("ë").await.unwrap();
    hands.phone.key(Key::Paste).await.unwrap();
    assert_eq!(hands.text("search_view").await, "zoë");
    let field = hands.get("search_view").await;
    hands.phone.set_text(&field, "łukasz h").await.unwrap();
    assert_eq!(hands.text("contact_count").await, "1 contact");
    assert_eq!(hands.phone.clipboard().await.unwrap().as_deref(), Some("ë"));
}

#[tokio::test]
async fn typing_without_a_field_says_what_to_do() {
    let hands = PhoneDriver::new();
    let error = hands.phone.type_text("x").await.unwrap_err();
    assert!(matches!(error, PhoneError::NoElement(_)) && error.to_string().contains("tap one"), "{error}");
    hands.open("dev.sinew.notes").await;
    hands.tap("Ideas").await;
    let field = hands.get("note_body").await;
    hands.phone.key(Key::Home).await.unwrap();
    assert!(matches!(hands.phone.set_text(&field, "x").await, Err(PhoneError::NoElement(_))));
}

#[tokio::test]
async fn a_lock_keeps_people_out_until_it_is_answered() {
    let hands = PhoneDriver::with(PhoneSetup { lock: LockScreen::Pin("2580".to_owned()), ..PhoneSetup::default() });
    hands.phone.key(Key::Sleep).await.unwrap();
    assert!(matches!(hands.phone.tree().await, Err(PhoneError::Denied(text)) if text.contains("WAKEUP")));
    hands.phone.key(Key::WakeUp).await.unwrap();
    assert!(hands.phone.screen().await.unwrap().locked);
    hands.swipe((540.0, 2000.0), (540.0, 500.0)).await;
    hands.phone.key(Key::Home).await.unwrap();
    assert!(hands.find("Calculator").await.is_none());
    for digit in ["2", "5", "8", "0"] {
        hands.tap(digit).await;
    }
    assert!(hands.find("Calculator").await.is_some());

    let hands = PhoneDriver::new();
    hands.phone.key(Key::Sleep).await.unwrap();
    hands.phone.key(Key::WakeUp).await.unwrap();
    hands.swipe((540.0, 2000.0), (540.0, 500.0)).await;
    assert!(!hands.phone.screen().await.unwrap().locked);
}

#[tokio::test]
async fn a_secure_screen_is_not_photographed() {
    let hands = PhoneDriver::new();
    hands.open("dev.sinew.vault").await;
    assert!(matches!(hands.phone.screenshot().await, Err(PhoneError::Denied(text)) if text.contains("FLAG_SECURE")));
    hands.tap("passphrase").await;
    hands.phone.type_text("sesame\n").await.unwrap();
    let field = hands.get("passphrase").await;
    assert!(field.password && field.text.as_deref() == Some("••••••"));
    assert!(hands.find("secret_balance").await.is_none(), "hidden from services");
    hands.phone.key(Key::Home).await.unwrap();
    assert!(matches!(hands.phone.screenshot().await, Ok(Image::Rgba { width: 1080, height: 2400, .. })));
}

#[tokio::test]
async fn the_clock_never_rests_and_everything_else_does() {
    let hands = PhoneDriver::new();
    hands.open("com.android.deskclock").await;
    let before = hands.text("digital_clock").await;
    assert!(!hands.get("Reset").await.enabled, "there is nothing to reset yet");
    hands.tap("Start").await;
    hands.phone.handset.advance(MS(2500));
    assert_ne!(hands.text("digital_clock").await, before);
    assert!(hands.text("stopwatch_time").await.starts_with("00:02."));
    assert!(hands.phone.handset.with(|machine| machine.is_animated()));
    hands.phone.key(Key::Recents).await.unwrap();
    hands.tap("Close Clock").await;
    assert!(hands.find("No recent items").await.is_some() || hands.find("Calculator").await.is_some());
}

#[tokio::test]
async fn a_phone_refuses_what_it_is_told_to_refuse() {
    let hands = PhoneDriver::new();
    let handset = &hands.phone.handset;
    for what in [Denial::Tree, Denial::Capture, Denial::Input] {
        handset.deny(what, true);
    }
    assert!(matches!(hands.phone.tree().await, Err(PhoneError::Denied(_))));
    assert!(matches!(hands.phone.screenshot().await, Err(PhoneError::Denied(_))));
    assert!(matches!(hands.phone.key(Key::Home).await, Err(PhoneError::Denied(_))));
    assert!(matches!(hands.phone.touch(&[]).await, Err(PhoneError::Denied(_))));
    assert!(hands.phone.screen().await.is_ok());
    handset.deny(Denial::Tree, false);
    assert!(hands.phone.tree().await.is_ok());
}

#[tokio::test]
async fn a_phone_unplugged_in_the_middle_of_a_call_is_gone() {
    let hands = PhoneDriver::new();
    hands.phone.handset.set_latency(Duration::from_secs(600));
    let phone = hands.phone.clone();
    let begun = hands.phone.handset.next_command();
    let call = tokio::spawn(async move { phone.tree().await });
    begun.await;
    hands.phone.handset.unplug();
    assert!(matches!(call.await.unwrap(), Err(PhoneError::Gone(_))));
    hands.phone.handset.plug_in();
    hands.phone.handset.set_latency(Duration::ZERO);
    assert!(hands.phone.tree().await.is_ok());
}

#[tokio::test]
async fn strokes_that_make_no_sense_are_refused() {
    let hands = PhoneDriver::new();
    let nan = Stroke::hold(f32::NAN, 5.0, MS(0), MS(5));
    let mut backwards = Stroke::hold(5.0, 5.0, MS(10), MS(5));
    backwards.points.reverse();
    let endless = Stroke::hold(5.0, 5.0, MS(0), Duration::from_secs(4000));
    for stroke in [nan, backwards, endless, Stroke { points: Vec::new() }] {
        assert!(matches!(hands.phone.touch(&[stroke]).await, Err(PhoneError::Invalid(_))));
    }
    hands.touch(&[Stroke::line((-50.0, -50.0), (9e9, 9e9), MS(0), MS(40))]).await;
}

#[tokio::test]
async fn the_log_tells_what_happened() {
    let hands = PhoneDriver::new();
    hands.open("dev.sinew.notes").await;
    let query = LogQuery { package: Some("dev.sinew.notes".to_owned()), ..LogQuery::default() };
    let logs = hands.phone.logs(&query).await.unwrap();
    assert_eq!(logs.lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["onCreate"]);
    let query = LogQuery { tag: Some("ActivityTaskManager".to_owned()), lines: 1, ..LogQuery::default() };
    let logs = hands.phone.logs(&query).await.unwrap();
    assert!(logs.truncated && logs.lines[0].message.starts_with("Displayed dev.sinew.notes/.NotesActivity"));
    assert!(logs.lines[0].to_string().starts_with("02-11 16:30:00.000 I/ActivityTaskManager: "));
}

#[tokio::test]
async fn links_open_in_the_browser_and_strange_ones_do_not() {
    let hands = PhoneDriver::new();
    hands.phone.open_url("https://example.org/a?b=c").await.unwrap();
    assert_eq!(hands.text("url_bar").await, "https://example.org/a?b=c");
    assert!(matches!(hands.phone.open_url("tel:5").await, Err(PhoneError::Failed(_))));
    assert!(matches!(hands.phone.open_app("no.such.app").await, Err(PhoneError::Failed(_))));
}
