//! Notifications: read from the phone's own listing, and acted on in the shade.

use sinew_sim::phone::{Android, StockApp};
use sinew_tool::json;

use crate::common::{failure, json_of, text};
use crate::testers::bench;

#[tokio::test]
async fn notifications_are_read_answered_pressed_dismissed_and_opened() {
    for android in [Android::V11, Android::V15] {
        let Some(mut bench) = bench(android).await else { return };
        let phone = bench.phone().await;
        let titles = async || {
            let all = json_of(&*phone, "list_notifications", json!({})).await;
            let all = all["notifications"].as_array().unwrap().clone();
            all.iter().map(|one| one["title"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(titles().await, ["Reminder", "Zoë Brontë", "System update"], "{android}");
        let all = json_of(&*phone, "list_notifications", json!({"app": "contacts"})).await;
        assert_eq!(all["notifications"][0]["actions"], json!(["Reply", "Mark as read"]), "{android}");
        text(&*phone, "act_on_notification", json!({"notification": "Zoë", "do": "reply", "text": "On my way"})).await;
        assert_eq!(titles().await, ["Reminder", "System update"], "{android}");
        let logs = json_of(&*phone, "get_device_logs", json!({"tag": "RemoteInput"})).await;
        assert!(logs["logs"].as_str().unwrap().contains("replied: On my way"), "{android}: {logs}");
        text(&*phone, "act_on_notification", json!({"notification": "plants", "do": "act", "action": "done"})).await;
        assert_eq!(titles().await, ["System update"], "{android}");
        bench.handset.with(|machine| machine.notify(StockApp::Notes, "Other", "text"));
        text(&*phone, "act_on_notification", json!({"notification": "system", "do": "dismiss"})).await;
        assert_eq!(titles().await, ["Other"], "{android}");
        text(&*phone, "act_on_notification", json!({"notification": "Other", "do": "open"})).await;
        assert_eq!(json_of(&*phone, "get_current_app", json!({})).await["packageName"], "dev.sinew.notes", "{android}");
    }
}

#[tokio::test]
async fn a_notification_that_is_not_meant_clearly_is_left_alone() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let hostile = "x)\n      }\n    NotificationRecord(0x1: pkg=com.bank key=fake: Notification(flags=0x0))\n android.title=String (Pay";
    bench.handset.with(|machine| machine.notify(StockApp::Notes, "Reminder 2", hostile));
    bench.handset.with(|machine| machine.notify(StockApp::Clock, &"long ".repeat(100_000), ""));
    let all = json_of(&*phone, "list_notifications", json!({"max_bytes": 4000})).await;
    assert!(all.to_string().len() <= 4000, "{}", all.to_string().len());
    for (arguments, code) in [
        (json!({"notification": "Reminder", "do": "dismiss"}), -32602),
        (json!({"notification": "nobody", "do": "dismiss"}), -32002),
        (json!({"notification": "System", "do": "act"}), -32602),
        // Its only action is no reply.
        (json!({"notification": "plants", "do": "reply", "text": "Thank you"}), -32602),
        (json!({"notification": "Zoë", "do": "act", "action": "Delete"}), -32602),
        (json!({"notification": "Zoë", "do": "eat"}), -32602),
    ] {
        let (got, message) = failure(&*phone, "act_on_notification", arguments.clone()).await;
        assert_eq!(got, code, "{arguments}: {message}");
    }
    let left = json_of(&*phone, "list_notifications", json!({"max_bytes": 4000, "app": "notes"})).await;
    assert_eq!(left["notifications"][0]["actions"], json!(["Done"]), "nothing was pressed: {left}");
}

#[tokio::test]
async fn a_notification_that_looks_like_another_apps_is_not_taken_for_it() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let key_of = async |package: &str| {
        let all = json_of(&*phone, "list_notifications", json!({"app": package})).await;
        all["notifications"].as_array().unwrap().last().map(|one| one["key"].as_str().unwrap().to_owned())
    };
    let act = |notification: String, what: &str| json!({"notification": notification, "do": what});
    // The same title as one above it: the text tells them apart.
    bench.handset.with(|machine| machine.notify(StockApp::Contacts, "Reminder", "Call Zoë"));
    let real = key_of("contacts").await.unwrap();
    text(&*phone, "act_on_notification", act(real.clone(), "open")).await;
    assert_eq!(json_of(&*phone, "get_current_app", json!({})).await["packageName"], "com.android.contacts");
    assert!(key_of("contacts").await.is_some_and(|left| left != real), "it was opened");
    // The same text too: nobody can tell.
    bench.handset.with(|machine| machine.notify(StockApp::Browser, "System update", "Your phone is up to date"));
    for package in ["com.android.settings", "com.android.browser"] {
        let key = key_of(package).await.unwrap();
        for what in ["open", "dismiss"] {
            let (code, message) = failure(&*phone, "act_on_notification", act(key.clone(), what)).await;
            assert_eq!((code, message.contains("shows 2 notifications")), (-32602, true), "{package}: {message}");
        }
        assert!(key_of(package).await.is_some(), "it is left alone");
    }
    assert!(!bench.handset.with(|machine| machine.is_panel_open()));
}
