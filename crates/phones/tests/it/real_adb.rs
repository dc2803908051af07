//! Through the real adb server to the virtual phone: the whole road but the cable. The server has a port
//! and a home of its own, so nobody's adb is disturbed. Without `adb` on the PATH there is nothing to test.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use crate::common::tracked::Tracked;
use crate::common::{call, failure, json_of, run_steps, text};
use sinew_phones::adb::{self, PhoneOptions};
use sinew_phones::{Profile, reference_tools};
use sinew_sim::phone::{Android, Denial, PhoneSetup};
use sinew_tool::{Content, ErrorKind, json};

async fn bench(setup: PhoneSetup) -> Option<Tracked> {
    Tracked::open(setup, PhoneOptions::shell(Profile::Full)).await
}

#[tokio::test]
async fn every_version_of_android_is_understood() {
    for android in Android::ALL {
        let Some(mut bench) = bench(PhoneSetup { android, ..PhoneSetup::default() }).await else { return };
        let phone = bench.phone().await;
        assert_eq!(phone.info().version, android.release());
        assert_eq!(phone.info().key.to_string(), format!("phone:{}", bench.serial_number()));
        let screen = json_of(&*phone, "get_screen_info", json!({})).await;
        assert_eq!(
            screen,
            json!({"width": 1080, "height": 2400, "densityDpi": 420, "orientation": "portrait"}),
            "{android}"
        );
        text(&*phone, "open_app", json!({"app": "com.android.settings"})).await;
        let app = json_of(&*phone, "get_current_app", json!({})).await;
        assert_eq!(app["packageName"], "com.android.settings", "{android}: {app}");
        text(&*phone, "open_notifications", json!({})).await;
        let app = json_of(&*phone, "get_current_app", json!({})).await;
        assert!(app["focusedWindow"].is_string(), "{android}: {app}");
        text(&*phone, "press_back", json!({})).await;
        let apps = json_of(&*phone, "list_apps", json!({"query": "calculator"})).await;
        assert_eq!(apps["apps"].as_array().unwrap().len(), 1, "{android}: {apps}");
        let logs = json_of(&*phone, "get_device_logs", json!({"level": "V", "last_lines": 5})).await;
        assert!(logs["line_count"].as_u64().unwrap() > 0, "{android}: {logs}");
        let outcome = call(&*phone, "capture_screenshot", json!({})).await.unwrap();
        assert!(matches!(outcome.content.as_slice(), [Content::Image { size: Some((1080, 2400)), .. }]), "{android}");
        let shown = text(&*phone, "get_screen", json!({})).await;
        assert!(shown.contains("app com.android.settings"), "{android}: {shown}");
    }
}

#[tokio::test]
async fn the_story_without_the_agent() {
    for android in [Android::V9, Android::V15] {
        let Some(mut bench) = bench(PhoneSetup { android, ..PhoneSetup::default() }).await else { return };
        let phone = bench.phone().await;
        let text_of = async |id: &str| {
            let found =
                json_of(&*phone, "find_elements", json!({"by": "resource_id", "value": format!(":id/{id}")})).await;
            found["elements"][0]["text"].clone()
        };
        text(&*phone, "open_app", json!({"app": "notes"})).await;
        text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
        let body = "100%sure it's \"fine\";\n$(reboot) & `id` | \\n > *";
        text(&*phone, "input_text", json!({"by": "resource_id", "value": "note_title", "text": "First"})).await;
        text(&*phone, "input_text", json!({"by": "resource_id", "value": "note_title", "text": "Second one"})).await;
        text(&*phone, "set_text", json!({"by": "resource_id", "value": "note_body", "text": body})).await;
        assert_eq!(text_of("note_title").await, "Second one", "{android}");
        assert_eq!(text_of("note_body").await, body, "{android}");

        text(&*phone, "open_app", json!({"app": "com.android.contacts"})).await;
        let found = text(&*phone, "scroll_to_element", json!({"by": "text", "value": "Ada Jansen"})).await;
        assert!(found.contains("visible") || found.contains("Scrolled"), "{found}");

        // What only the agent can do says so, and changes nothing.
        let attempts = [
            ("pinch", json!({"center_x": 540, "center_y": 1200, "scale": 3})),
            ("get_clipboard", json!({})),
            ("set_clipboard", json!({"text": "x"})),
            ("input_text", json!({"by": "resource_id", "value": "search", "text": "Grüße 🎉"})),
        ];
        for (tool, arguments) in attempts {
            let (code, message) = failure(&*phone, tool, arguments).await;
            assert_eq!(code, -32001, "{tool}: {message}");
            assert!(message.contains("agent"), "{tool}: {message}");
        }
    }
}

#[tokio::test]
async fn refusals_and_farewells_of_the_phone_are_told() {
    let Some(mut bench) = bench(PhoneSetup::default()).await else { return };
    let phone = bench.phone().await;
    bench.handset.deny(Denial::Input, true);
    let (code, message) = failure(&*phone, "tap", json!({"x": 5, "y": 5})).await;
    assert_eq!(code, -32001, "{message}");
    bench.handset.deny(Denial::Input, false);
    bench.handset.deny(Denial::Capture, true);
    let (code, message) = failure(&*phone, "capture_screenshot", json!({})).await;
    assert_eq!(code, -32001, "{message}");
    bench.handset.deny(Denial::Capture, false);

    bench.handset.set_latency(Duration::from_millis(200));
    let unplug = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        bench.handset.unplug();
    };
    let (lost, ()) = tokio::join!(call(&*phone, "press_home", json!({})), unplug);
    let error = lost.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceLost, "{error}");
    let key = phone.info().key.clone();
    bench.until(|here| (!here.contains_key(&key)).then_some(())).await;
}

#[tokio::test]
async fn a_screen_that_never_rests_is_pictured_not_read() {
    let Some(mut bench) = bench(PhoneSetup::default()).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "open_app", json!({"app": "com.android.deskclock"})).await;
    let (code, message) = failure(&*phone, "get_screen", json!({})).await;
    assert_eq!(code, -32001, "{message}");
    assert!(message.contains("keeps moving") && message.contains("screenshot"), "{message}");
    assert_eq!(failure(&*phone, "wait_for_idle", json!({"timeout": 600})).await.0, -32004);
    assert!(call(&*phone, "capture_screenshot", json!({"max_side": 200})).await.is_ok());
    let done = text(&*phone, "press_home", json!({"return": "screen"})).await;
    assert!(done.starts_with("Home button press executed successfully\napp "), "{done}");
}

#[tokio::test]
async fn a_sleeping_phone_takes_no_input_and_a_locked_one_says_so() {
    for android in Android::ALL {
        let Some(mut bench) = bench(PhoneSetup { android, ..PhoneSetup::default() }).await else { return };
        let phone = bench.phone().await;
        text(&*phone, "press_key", json!({"key": "SLEEP"})).await;
        let (code, message) = failure(&*phone, "tap", json!({"x": 5, "y": 5})).await;
        assert_eq!((code, message.contains("WAKEUP")), (-32001, true), "{android}: {message}");
        assert_eq!(failure(&*phone, "get_screen", json!({})).await.0, -32001, "{android}");
        text(&*phone, "press_key", json!({"key": "WAKEUP"})).await;
        let screen = json_of(&*phone, "get_screen_info", json!({})).await;
        assert_eq!(screen["locked"], true, "{android}: {screen}");
        text(&*phone, "swipe", json!({"x1": 540, "y1": 2000, "x2": 540, "y2": 500})).await;
        let screen = json_of(&*phone, "get_screen_info", json!({})).await;
        assert_eq!(screen.get("locked"), None, "{android}: {screen}");
    }
}

#[tokio::test]
async fn files_go_there_and_back() {
    let Some(mut bench) = bench(PhoneSetup::default()).await else { return };
    bench.phone().await;
    let transport = bench.server.transport(bench.address.clone(), true);
    let bytes: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
    let limit = Duration::from_secs(20);
    transport.push(&bytes, "/data/local/tmp/sinew-test", 0o644, limit).await.unwrap();
    assert_eq!(transport.pull("/data/local/tmp/sinew-test", 1 << 20, limit).await.unwrap(), bytes);
    assert!(transport.pull("/data/local/tmp/sinew-test", 1000, limit).await.is_err());
    assert!(transport.pull("/data/local/tmp/no-such-file", 1000, limit).await.is_err());
}

#[tokio::test]
async fn all_the_references_tools_are_there() {
    let Some(mut bench) = bench(PhoneSetup::default()).await else { return };
    let tools = bench.phone().await.tools();
    assert!(reference_tools().iter().all(|tool| tools.find(&tool.name).is_some()));
}

/// Knows the phones of a gateway; what is pinned can change.
#[derive(Debug, Default)]
struct Records {
    known: Vec<String>,
    pinned: std::sync::Mutex<Vec<String>>,
}

impl adb::DeviceRecords for Records {
    fn is_known(&self, key: &sinew_tool::DeviceKey) -> bool {
        self.known.contains(&key.0)
    }

    fn is_pinned(&self, key: &sinew_tool::DeviceKey) -> bool {
        self.pinned.lock().unwrap().contains(&key.0)
    }
}

#[tokio::test]
async fn a_phone_is_the_same_at_another_address_and_two_with_one_number_stay_two() {
    let options = PhoneOptions::shell(Profile::Full);
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), options).await else { return };
    let key = format!("phone:{}", bench.serial_number());
    let phone = bench.device(&key).await;
    assert_eq!(phone.info().attributes["serial"], json!(bench.address));
    let second = bench.connect_again().await;
    let twin = format!("{key}@{second}");
    assert_eq!(bench.device(&twin).await.info().attributes["serial_number"], json!(bench.serial_number()));
    bench.server.disconnect_phone(&bench.address.clone()).await.unwrap();
    bench.without_device(&key).await;
    bench.server.disconnect_phone(&second).await.unwrap();
    bench.without_device(&twin).await;
    let third = bench.connect_again().await;
    assert_eq!(bench.device(&key).await.info().attributes["serial"], json!(third));
}

#[tokio::test]
async fn a_phone_that_was_known_by_its_address_keeps_its_key_at_the_next() {
    let state = tempfile::tempdir().unwrap();
    let handset = sinew_sim::phone::Handset::new(PhoneSetup::default(), sinew_sim::phone::PhoneClock::Virtual);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let old = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut known = adb::known_phones::KnownPhones::in_state(state.path());
    let records = Records { known: vec![format!("phone:{old}")], ..Records::default() };
    let number = handset.with(|machine| machine.setup.serial.clone());
    let recognition = known.recognise(&number, &old, false, Some(&records));
    assert_eq!(recognition, adb::known_phones::Recognition::As(old.clone()));
    known.remember(&number, &old, &old);
    let options = PhoneOptions {
        state: Some(state.path().to_owned()),
        records: Some(std::sync::Arc::new(records)),
        ..PhoneOptions::shell(Profile::Full)
    };
    let Some(mut bench) = Tracked::with(handset, options).await else { return };
    let phone = bench.device(&format!("phone:{old}")).await;
    assert_eq!(phone.info().attributes["serial"], json!(bench.address), "the old name at a new address");
}

#[tokio::test]
async fn a_new_address_of_a_pinned_phone_is_used_once_a_person_has_connected_it() {
    let state = tempfile::tempdir().unwrap();
    let remembered = adb::NetworkPhones::in_state(state.path());
    let key = format!("phone:{}", PhoneSetup::default().serial);
    let records = Records { known: vec![key.clone()], pinned: vec![key.clone()].into() };
    let options = PhoneOptions {
        state: Some(state.path().to_owned()),
        remembered: Some(remembered.clone()),
        records: Some(std::sync::Arc::new(records)),
        ..PhoneOptions::shell(Profile::Full)
    };
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), options).await else { return };
    let waiting = bench.device(&format!("phone:{}", bench.address)).await;
    let sinew_tool::Status::Limited { state, remedy } = waiting.info().status.clone() else {
        panic!("it is not limited")
    };
    assert_eq!(state, "unconfirmed");
    assert!(remedy.contains(&format!("sinew phones connect {}", bench.address)), "{remedy}");
    let (code, _) = failure(&*waiting, "tap", json!({"x": 5, "y": 5})).await;
    assert_eq!(code, -32001);
    remembered.add(&bench.address).unwrap();
    assert_eq!(bench.device(&key).await.info().attributes["serial"], json!(bench.address));
    let at_address = sinew_tool::DeviceKey(format!("phone:{}", bench.address));
    assert_eq!(bench.left.get(&at_address), Some(&sinew_tool::LeaveReason::NeverConnected), "nothing stays of it");
}

#[tokio::test]
async fn apps_are_inspected_changed_and_removed() {
    for android in Android::ALL {
        let setup = PhoneSetup { android, lock: sinew_sim::phone::LockScreen::None, ..PhoneSetup::default() };
        let Some(mut bench) = Tracked::open(setup, PhoneOptions::shell(Profile::Tester)).await else { return };
        bench.handset.install(sinew_sim::phone::shopping());
        let phone = bench.phone().await;
        let notes = json!({"app": "dev.sinew.notes"});
        let granted = |details: &sinew_tool::Value| {
            let all = details["permissions"].as_array().unwrap().iter();
            all.filter(|one| one["granted"] == true).map(|one| one["name"].clone()).collect::<Vec<_>>()
        };
        let details = json_of(&*phone, "get_app_details", notes.clone()).await;
        assert_eq!((&details["versionName"], &details["versionCode"]), (&json!("1.0"), &json!(1)), "{android}");
        assert_eq!(granted(&details), Vec::<sinew_tool::Value>::new(), "{android}");
        let permission = json!({"app": "dev.sinew.notes", "permission": "RECORD_AUDIO"});
        text(&*phone, "grant_permission", permission.clone()).await;
        let details = json_of(&*phone, "get_app_details", notes.clone()).await;
        assert_eq!(granted(&details), [json!("android.permission.RECORD_AUDIO")], "{android}");
        text(&*phone, "revoke_permission", permission).await;
        assert!(granted(&json_of(&*phone, "get_app_details", notes.clone()).await).is_empty(), "{android}");
        let (code, message) =
            failure(&*phone, "grant_permission", json!({"app": "dev.sinew.notes", "permission": "CAMERA"})).await;
        assert_eq!((code, message.contains("has not requested")), (-32003, true), "{android}: {message}");

        text(&*phone, "send_intent", json!({"component": "dev.sinew.notes/.NotesActivity"})).await;
        assert_eq!(json_of(&*phone, "get_current_app", json!({})).await["packageName"], "dev.sinew.notes", "{android}");
        text(&*phone, "clear_app_data", notes).await;
        assert_ne!(json_of(&*phone, "get_current_app", json!({})).await["packageName"], "dev.sinew.notes", "{android}");
        let (code, message) = failure(&*phone, "send_intent", json!({"component": "no.such/.App"})).await;
        assert_eq!((code, message.contains("not delivered")), (-32003, true), "{android}: {message}");

        text(&*phone, "uninstall_app", json!({"app": "dev.sinew.shopping"})).await;
        assert!(bench.handset.virtual_apps().is_empty(), "{android}");
        let (code, _) = failure(&*phone, "uninstall_app", json!({"app": "dev.sinew.shopping"})).await;
        assert_eq!(code, -32003, "{android}");
    }
}

#[tokio::test]
async fn what_testers_have_cannot_be_reached_by_others_nor_broken_out_of() {
    let Some(mut bench) = bench(PhoneSetup::default()).await else { return };
    let phone = bench.phone().await;
    let steps = json!({"steps": [{"tool": "clear_app_data", "arguments": {"app": "dev.sinew.notes"}}]});
    let error = run_steps(phone, steps).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");

    let Some(mut bench) = Tracked::open(PhoneSetup::default(), PhoneOptions::shell(Profile::Tester)).await else {
        return;
    };
    let phone = bench.phone().await;
    for (tool, arguments) in [
        ("grant_permission", json!({"app": "dev.sinew.notes", "permission": "CAMERA; reboot"})),
        ("grant_permission", json!({"app": "dev.sinew.notes", "permission": "$(id)"})),
        ("clear_app_data", json!({"app": "a.b; pm clear dev.sinew.notes"})),
        ("uninstall_app", json!({"app": ""})),
        ("send_intent", json!({})),
        ("send_intent", json!({"component": "no-slash"})),
        ("send_intent", json!({"action": "a.GO", "extras": [1]})),
        ("send_intent", json!({"action": "a.GO", "extras": {"deep": {"er": 1}}})),
        ("send_intent", json!({"action": "a".repeat(100_000)})),
    ] {
        assert_eq!(failure(&*phone, tool, arguments.clone()).await.0, -32602, "{tool} {arguments}");
    }
}
