//! The tools for people who test and automate, through the real adb server on the virtual phone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sinew_phones::adb::PhoneOptions;
use sinew_phones::{Key, PhoneDevice, Profile, Rect, Tree, UiNode};
use sinew_sim::phone::{Android, Denial, LockScreen, PhoneSetup, StockApp, shopping};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Content, ErrorKind, Value, json};

use crate::common::tracked::Tracked;
use crate::common::{Paper, call, failure, json_of, run_steps, text};

/// A phone of testers behind a real adb server.
pub async fn bench(android: Android) -> Option<Tracked> {
    let setup = PhoneSetup { android, lock: LockScreen::None, ..PhoneSetup::default() };
    Tracked::open(setup, PhoneOptions::shell(Profile::Tester)).await
}

#[tokio::test]
async fn files_are_listed_written_and_read_where_everybody_may() {
    for android in [Android::V9, Android::V15] {
        let Some(mut bench) = bench(android).await else { return };
        let phone = bench.phone().await;
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let nasty = "Download/it's $(reboot); `id` & \"x\" 🦀.txt";
        text(&*phone, "write_file", json!({"path": nasty, "text": "Grüße\n"})).await;
        let listed = json_of(&*phone, "list_files", json!({"path": "Download"})).await;
        assert_eq!(listed["path"], "/storage/emulated/0/Download", "{android}");
        let names: Vec<&str> =
            listed["entries"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["it's $(reboot); `id` & \"x\" 🦀.txt", "readme.txt"], "{android}");
        let adb = bench.server.transport(bench.address.clone(), true);
        let folder = adb.list("/storage/emulated/0/Download", Duration::from_secs(10)).await.unwrap();
        let written = folder.iter().find(|entry| entry.name.starts_with("it's")).unwrap();
        assert!(written.modified >= before.as_secs(), "{android}: {written:?}");
        let outcome = call(&*phone, "read_file", json!({"path": nasty})).await.unwrap();
        let [Content::Resource { uri, body, .. }] = &outcome.content[..] else { panic!("{outcome:?}") };
        assert_eq!(body, &ResourceBody::Text("Grüße\n".to_owned()), "{android}");
        assert!(uri.starts_with("file:///storage/emulated/0/Download/it%27s%20"), "{uri}");
        text(&*phone, "write_file", json!({"path": "/data/local/tmp/b", "base64": "/wD+"})).await;
        let outcome = call(&*phone, "read_file", json!({"path": "/data/local/tmp/b"})).await.unwrap();
        let [Content::Resource { body, .. }] = &outcome.content[..] else { panic!("{outcome:?}") };
        assert_eq!(body, &ResourceBody::Blob("/wD+".to_owned()), "{android}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_shared_storage_or_to_sinews_own_files() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let adb = bench.server.transport(bench.address.clone(), true);
    let shell = sinew_phones::adb::command::ShellCommand::new;
    let limits = sinew_phones::adb::shell::CommandLimits::seconds(10);
    let links = "ln -s /system /sdcard/out; ln -s /data/local/tmp/sinew-agent.jar /sdcard/agent; ln -s /sdcard/round /sdcard/round; echo jar > /data/local/tmp/sinew-agent.jar";
    assert_eq!(adb.run(&shell(links), limits).await.unwrap().exit, 0);
    for (path, code) in [
        ("../data/x", -32602),
        ("Download/../../x", -32602),
        ("a\nb", -32602),
        ("", -32602),
        ("/system/bin/sh", -32001),
        ("/data/data/dev.sinew.notes/x", -32001),
        ("out/bin/sh", -32001),
        ("agent", -32001),
        ("/data/local/tmp/sinew-agent.jar", -32001),
        ("/data/local/tmp/sinew-new", -32001),
    ] {
        for (tool, arguments) in
            [("read_file", json!({"path": path})), ("write_file", json!({"path": path, "text": "x"}))]
        {
            let (got, message) = failure(&*phone, tool, arguments).await;
            assert_eq!(got, code, "{tool} {path}: {message}");
        }
    }
    let kept = adb.run(&shell("cat /data/local/tmp/sinew-agent.jar"), limits).await.unwrap();
    assert_eq!(kept.stdout, b"jar\n");
    let listed = json_of(&*phone, "list_files", json!({"path": "/data/local/tmp"})).await;
    assert_eq!(listed["entries"], json!([]));
    assert_eq!(failure(&*phone, "read_file", json!({"path": "Download/none"})).await.0, -32602);
    assert_eq!(failure(&*phone, "list_files", json!({"path": "None"})).await.0, -32602);
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(failure(&*phone, "write_file", json!({"path": "large", "text": large})).await.0, -32602);
}

#[tokio::test]
async fn waits_end_when_it_is_so_and_say_what_is_there_instead() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "open_app", json!({"app": "dev.sinew.notes"})).await;
    let new_note = json!({"description": "New note"});
    let met = json_of(&*phone, "wait_until", json!({"app": "dev.sinew.notes", "selector": new_note})).await;
    assert_eq!(met["met"], true);
    let (code, message) =
        failure(&*phone, "wait_until", json!({"selector": new_note, "state": "gone", "timeout": 300})).await;
    assert_eq!((code, message.contains("is there")), (-32004, true), "{message}");
    let (code, message) = failure(&*phone, "wait_until", json!({"app": "com.android.settings", "timeout": 300})).await;
    assert_eq!((code, message.contains("dev.sinew.notes is in front")), (-32004, true), "{message}");
    text(&*phone, "open_app", json!({"app": "com.android.settings"})).await;
    json_of(&*phone, "wait_until", json!({"selector": new_note, "state": "gone"})).await;
    assert_eq!(failure(&*phone, "wait_until", json!({})).await.0, -32602);
    assert_eq!(failure(&*phone, "wait_until", json!({"selector": {"label": "x"}})).await.0, -32602);
}

#[tokio::test]
async fn a_selector_means_one_thing_or_says_which_there_are() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "open_quick_settings", json!({})).await;
    let switch = |name: &str| json!({"selector": {"class": "Switch", "description": name}});
    let before = json_of(&*phone, "get_element", switch("Bluetooth")).await;
    text(&*phone, "click_element", switch("Bluetooth")).await;
    let after = json_of(&*phone, "get_element", switch("Bluetooth")).await;
    assert_ne!(before["states"], after["states"], "{after}");
    let (code, message) = failure(&*phone, "click_element", json!({"selector": {"class": "Switch"}})).await;
    assert_eq!((code, message.contains("8 elements have class_name 'Switch'")), (-32002, true), "{message}");
    assert!(message.contains("switch \"Internet\""), "{message}");
    let found = json_of(
        &*phone,
        "find_elements",
        json!({"selector": {"class": "Switch", "below": {"description": "Internet"}}}),
    )
    .await;
    assert!(!found["elements"].as_array().unwrap().is_empty());
    let (code, _) = failure(&*phone, "click_element", json!({"selector": {"text": "nowhere"}})).await;
    assert_eq!(code, -32002);
}

#[tokio::test]
async fn text_is_inserted_where_it_is_asked_for() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "open_app", json!({"app": "dev.sinew.notes"})).await;
    text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
    let title = json!({"id": "note_title"});
    text(&*phone, "input_text", json!({"selector": title, "text": "Shopping"})).await;
    text(&*phone, "insert_text", json!({"selector": title, "text": " list", "at": 8})).await;
    text(&*phone, "insert_text", json!({"selector": title, "text": "My ", "at": 0})).await;
    text(&*phone, "press_key", json!({"key": "MOVE_HOME"})).await;
    text(&*phone, "insert_text", json!({"text": "1: "})).await;
    let shown = json_of(&*phone, "get_element", json!({"selector": title})).await;
    assert_eq!(shown["text"], "1: My Shopping list");
    assert_eq!(failure(&*phone, "insert_text", json!({"selector": title, "text": "x", "at": 99})).await.0, -32602);
}

#[tokio::test]
async fn line_breaks_in_fields_survive_without_an_agent() {
    for android in [Android::V9, Android::V15] {
        let Some(mut bench) = bench(android).await else { return };
        let phone = bench.phone().await;
        text(&*phone, "open_app", json!({"app": "dev.sinew.notes"})).await;
        text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
        let body = json!({"id": "note_body"});
        text(&*phone, "input_text", json!({"selector": body, "text": "one\ntwo\n\nthree"})).await;
        let shown = json_of(&*phone, "get_element", json!({"selector": body})).await;
        assert_eq!(shown["text"], "one\ntwo\n\nthree", "{android}");
        text(&*phone, "input_text", json!({"selector": body, "text": "\nfour", "append": true})).await;
        text(&*phone, "insert_text", json!({"selector": body, "text": "zero\n", "at": 0})).await;
        let shown = json_of(&*phone, "get_element", json!({"selector": body})).await;
        assert_eq!(shown["text"], "zero\none\ntwo\n\nthree\nfour", "{android}");
        let found = json_of(&*phone, "find_elements", json!({"selector": body})).await;
        assert_eq!(found["elements"][0]["text"], "zero\none\ntwo\n\nthree\nfour", "{android}");
    }
}

#[tokio::test]
async fn selecting_needs_the_agent_and_pasting_only_for_a_new_text() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "open_app", json!({"app": "dev.sinew.notes"})).await;
    text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
    let title = json!({"id": "note_title"});
    text(&*phone, "input_text", json!({"selector": title, "text": "Milk"})).await;
    for (tool, arguments) in [
        ("select_text", json!({"selector": title, "start": 0, "end": 2})),
        ("paste_text", json!({"selector": title, "text": "Bread"})),
    ] {
        let (code, message) = failure(&*phone, tool, arguments).await;
        assert_eq!((code, message.contains("agent")), (-32001, true), "{tool}: {message}");
    }
    bench.handset.with(|machine| machine.set_clipboard(" and bread"));
    text(&*phone, "paste_text", json!({"selector": title})).await;
    assert_eq!(json_of(&*phone, "get_element", json!({"selector": title})).await["text"], "Milk and bread");
    for wrong in [json!({"start": 3, "end": 2}), json!({"start": -1}), json!({"end": 999}), json!({"start": "x"})] {
        let mut arguments = wrong.clone();
        arguments["selector"] = title.clone();
        assert_eq!(failure(&*phone, "select_text", arguments).await.0, -32602, "{wrong}");
    }
}

/// Two fields, of which one has the focus.
fn two_fields(focused: usize) -> Tree {
    let mut tree = Tree::builder(0);
    for (nth, name) in ["title", "body"].into_iter().enumerate() {
        let top = 200 * nth as i32;
        tree.leaf(UiNode {
            editable: true,
            focused: nth == focused,
            resource_id: Some(format!("org.sinew.paper:id/{name}")),
            ..UiNode::new("android.widget.EditText", Rect::new(0, top, 1080, top + 100))
        });
    }
    tree.finish()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pasted_before_the_field_has_the_focus() {
    let paste = json!({"selector": {"id": "body"}, "text": "Bread"});
    let slow = Paper::for_testers(vec![two_fields(0)]);
    let keys = |phone: &PhoneDevice<Paper>| phone.phone().state.lock().unwrap().keys.clone();
    let pasting = call(&slow, "paste_text", paste.clone());
    let field = async {
        while slow.phone().state.lock().unwrap().touches.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(keys(&slow), [], "the title still has the focus");
        slow.phone().state.lock().unwrap().screens = vec![two_fields(1)];
    };
    let (pasted, ()) = tokio::join!(pasting, field);
    assert!(pasted.unwrap().joined_text().starts_with("Pasted into"));
    assert_eq!(keys(&slow), [Key::Paste]);

    let deaf = Paper::for_testers(vec![two_fields(0)]);
    let (code, message) = failure(&deaf, "paste_text", paste).await;
    assert_eq!((code, message.contains("nothing was pasted")), (-32003, true), "{message}");
    assert_eq!(keys(&deaf), []);
}

#[tokio::test]
async fn a_file_that_is_too_large_for_an_answer_is_not_read_whole() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let adb = bench.server.transport(bench.address.clone(), true);
    let large = vec![7; (4 << 20) + 1];
    adb.push(&large, "/sdcard/large", 0o644, Duration::from_secs(30)).await.unwrap();
    // At its first piece a transfer would stand still.
    let standing = bench.handset.halt_after(20);
    let (code, message) = failure(&*phone, "read_file", json!({"path": "large"})).await;
    assert_eq!((code, message.contains("sinew phones pull")), (-32003, true), "{message}");
    assert!(message.contains("has 4194305 bytes; at most 4194304 are read"), "{message}");
    drop(standing);
    bench.handset.go_on();
    text(&*phone, "write_file", json!({"path": "Download/file", "text": "x"})).await;
    let (code, message) = failure(&*phone, "write_file", json!({"path": "Download", "text": "x"})).await;
    assert_eq!((code, message.contains("folder")), (-32003, true), "{message}");
}

#[tokio::test]
async fn the_state_of_the_phone_is_told_and_its_display_is_turned_and_locked() {
    for android in [Android::V9, Android::V15] {
        let Some(mut bench) = bench(android).await else { return };
        let phone = bench.phone().await;
        let status = json_of(&*phone, "get_device_status", json!({})).await;
        assert_eq!(status["battery"], json!({"percent": 87, "charging": true, "celsius": 26.5}), "{android}");
        assert_eq!(
            (&status["network"]["wifi"], &status["network"]["addresses"]),
            (&json!(true), &json!(["10.0.2.16"]))
        );
        assert_eq!(status["volume"]["media"], json!({"level": 6, "highest": 15}), "{android}");

        for (orientation, shape) in
            [("landscape", "landscape"), ("portrait", "portrait"), ("reverse_landscape", "landscape")]
        {
            text(&*phone, "rotate_screen", json!({"orientation": orientation})).await;
            let screen = json_of(&*phone, "get_screen_info", json!({})).await;
            assert_eq!(screen["orientation"], shape, "{android}");
        }
        text(&*phone, "rotate_screen", json!({"orientation": "auto"})).await;
        assert_eq!(failure(&*phone, "rotate_screen", json!({"orientation": "sideways"})).await.0, -32602);
        let stays_on = || bench.handset.with(|machine| machine.stays_on());
        assert!(!stays_on(), "{android}");
        text(&*phone, "keep_awake", json!({"on": true})).await;
        assert!(stays_on(), "{android}");
        text(&*phone, "keep_awake", json!({"on": false})).await;
        assert!(!stays_on(), "{android}");
        text(&*phone, "lock_screen", json!({})).await;
        assert!(!bench.handset.with(|machine| machine.is_awake()), "{android}");
        assert_eq!(failure(&*phone, "tap", json!({"x": 5, "y": 5})).await.0, -32001, "{android}");
    }
}

#[tokio::test]
async fn crashes_are_told_since_a_time_and_of_one_app() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let crashes = async |arguments: Value| {
        json_of(&*phone, "get_crashes", arguments).await["crashes"].as_array().unwrap().clone()
    };
    assert_eq!(crashes(json!({})).await, Vec::<Value>::new());
    let crash = |app, message: &str| bench.handset.with(|machine| machine.crash(app, "java.lang.Oops", message));
    crash(StockApp::Notes, "first, really");
    bench.handset.advance(Duration::from_secs(60));
    crash(StockApp::Clock, "second");
    let all = crashes(json!({})).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["reason"], "java.lang.Oops: first, really (Notes.kt:42)");
    assert_eq!(crashes(json!({"package": "com.android.deskclock"})).await.len(), 1);
    let since = all[1]["time"].as_str().unwrap();
    assert_eq!(crashes(json!({"since": since})).await, all[1..]);
    assert_eq!(crashes(json!({"limit": 1})).await, all[1..]);
    text(&*phone, "send_intent", json!({"component": "com.android.deskclock/.HangActivity"})).await;
    let hung = &crashes(json!({"limit": 1})).await[0];
    assert_eq!((&hung["kind"], &hung["process"]), (&json!("not responding"), &json!("com.android.deskclock")));
    assert!(hung["reason"].as_str().unwrap().starts_with("Input dispatching timed out"), "{hung}");
    assert_eq!(failure(&*phone, "get_crashes", json!({"since": "yesterday"})).await.0, -32602);
}

#[tokio::test]
async fn a_video_is_a_file_that_players_open_and_leaves_nothing_on_the_phone() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let outcome = call(&*phone, "record_screen", json!({"seconds": 1, "max_side": 320})).await.unwrap();
    let [Content::Text(_), Content::Resource { mime_type, body: ResourceBody::Blob(data), .. }] = &outcome.content[..]
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(mime_type.as_deref(), Some("video/mp4"));
    let bytes = Content::Audio { data: data.clone(), mime_type: String::new() }.bytes().unwrap();
    assert_eq!(&bytes[4..8], b"ftyp");
    // Every picture begins with JPEG's mark: two a second.
    assert_eq!(bytes.windows(4).filter(|part| part == b"\xff\xd8\xff\xe0").count(), 2);
    let adb = bench.server.transport(bench.address.clone(), true);
    let left = adb.list("/data/local/tmp", Duration::from_secs(10)).await.unwrap();
    assert_eq!(left, []);
    assert_eq!(failure(&*phone, "record_screen", json!({"seconds": 100_000})).await.0, -32602);
    bench.handset.deny(Denial::Capture, true);
    let (code, message) = failure(&*phone, "record_screen", json!({"seconds": 1})).await;
    assert_eq!((code, message.contains("not recorded")), (-32003, true), "{message}");
}

#[tokio::test]
async fn apps_are_installed_from_the_folder_alone_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let apk = shopping().apk;
    std::fs::write(folder.path().join("shop 1.apk"), &apk).unwrap();
    std::fs::write(folder.path().join("not.apk"), b"hello").unwrap();
    std::fs::write(folder.path().join("broken.apk"), b"PK\x03\x04 and nothing else").unwrap();
    for (set, second) in [("split", apk.clone()), ("bad", b"PK\x03\x04".to_vec())] {
        let set = folder.path().join(set);
        std::fs::create_dir(&set).unwrap();
        std::fs::write(set.join("base.apk"), &apk).unwrap();
        std::fs::write(set.join("config.de.apk"), second).unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.apk"), &apk).unwrap();
    std::os::unix::fs::symlink(outside.path().join("x.apk"), folder.path().join("link.apk")).unwrap();
    let options = PhoneOptions { apks: Some(folder.path().to_owned()), ..PhoneOptions::shell(Profile::Tester) };
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), options).await else { return };
    let phone = bench.phone().await;
    for name in ["shop 1.apk", "split"] {
        text(&*phone, "install_app", json!({"file": name})).await;
        assert_eq!(bench.handset.virtual_apps().len(), 1, "{name}");
        let details = json_of(&*phone, "get_app_details", json!({"app": "dev.sinew.shopping"})).await;
        assert_eq!((&details["versionCode"], &details["system"]), (&json!(1), &json!(false)), "{name}: {details}");
        text(&*phone, "clear_app_data", json!({"app": "dev.sinew.shopping"})).await;
        text(&*phone, "uninstall_app", json!({"app": "dev.sinew.shopping"})).await;
    }
    let path = outside.path().join("x.apk");
    let absolute = path.to_str().unwrap();
    for (name, code) in [
        (absolute, -32602),
        ("../x.apk", -32602),
        ("link.apk", -32602),
        ("none.apk", -32602),
        (".", -32602),
        ("not.apk", -32602),
        ("broken.apk", -32003),
        ("bad", -32003),
    ] {
        let (got, message) = failure(&*phone, "install_app", json!({"file": name})).await;
        assert_eq!(got, code, "{name}: {message}");
    }
    assert!(bench.handset.virtual_apps().is_empty());
    assert_eq!(bench.handset.open_sessions(), 0);
    let adb = bench.server.transport(bench.address.clone(), true);
    assert_eq!(adb.list("/data/local/tmp", Duration::from_secs(10)).await.unwrap(), []);
}

#[tokio::test]
async fn without_a_folder_nothing_is_installed() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let (code, message) = failure(&*bench.phone().await, "install_app", json!({"file": "x.apk"})).await;
    assert_eq!((code, message.contains("apks")), (-32001, true), "{message}");
}

/// A tree as a hostile app would make it.
fn hostile(kind: usize) -> Tree {
    let mut tree = Tree::builder(0);
    let edge = [i32::MIN, -1, 0, 1, i32::MAX];
    let bounds = |nth: usize| Rect::new(edge[nth % 5], edge[nth / 5 % 5], edge[nth / 25 % 5], edge[nth / 125 % 5]);
    let node = |nth: usize, text: &str| UiNode {
        text: Some(text.to_owned()),
        clickable: nth.is_multiple_of(2),
        scrollable: nth.is_multiple_of(7),
        editable: nth.is_multiple_of(5),
        ..UiNode::new("x", bounds(nth))
    };
    match kind {
        // Deep, wide, long, and strange.
        0 => (0..5_000).for_each(|nth| tree.open(node(nth, "deep"))),
        1 => (0..20_000).for_each(|nth| tree.leaf(node(nth, "wide"))),
        2 => tree.leaf(node(0, &"long\u{0}\n".repeat(200_000))),
        _ => (0..625).for_each(|nth| tree.leaf(node(nth, "\u{202e}\u{1b}[31m\u{feff}e7 btn \"x\" @1,1"))),
    }
    tree.finish()
}

#[tokio::test]
async fn a_password_that_a_phone_reports_is_answered_by_no_tool() {
    let mut tree = Tree::builder(0);
    tree.leaf(UiNode {
        text: Some("hünter2".to_owned()),
        editable: true,
        focused: true,
        password: true,
        ..UiNode::new("android.widget.EditText", Rect::new(0, 0, 100, 100))
    });
    let phone = Paper::for_testers(vec![tree.finish()]);
    let field = json!({"by": "class_name", "value": "EditText"});
    for (tool, arguments) in [
        ("get_screen", json!({})),
        ("get_accessibility_tree", json!({})),
        ("get_element", field.clone()),
        ("find_elements", field.clone()),
        ("wait_for_element", field.clone()),
        ("click_element", json!({"by": "class_name", "value": "EditText", "return": "screen"})),
        ("wait_until", json!({"selector": {"class": "EditText"}, "text": "no", "timeout": 1})),
        // Nor by guessing.
        ("find_elements", json!({"by": "text", "value": "hünter"})),
        ("wait_until", json!({"selector": {"class": "EditText"}, "text": "hünter2", "timeout": 1})),
    ] {
        let (answer, is_met) = match call(&phone, tool, arguments.clone()).await {
            Ok(outcome) => (outcome.joined_text(), tool == "wait_until"),
            Err(error) => (error.message, false),
        };
        assert!(!answer.contains("ünter2") && !is_met, "{tool} {arguments}: {answer}");
    }
    assert_eq!(json_of(&phone, "find_elements", json!({"by": "text", "value": "hünter"})).await["elements"], json!([]));
    // What is read of it is dots, and these must not become its content.
    for (tool, arguments) in [
        ("input_text", json!({"by": "class_name", "value": "EditText", "text": "x", "append": true})),
        ("insert_text", json!({"selector": {"class": "EditText"}, "text": "x", "at": 1})),
    ] {
        let (code, message) = failure(&phone, tool, arguments).await;
        assert_eq!((code, message.contains("set the whole text")), (-32003, true), "{tool}: {message}");
    }
    assert!(phone.phone().state.lock().unwrap().texts.is_empty());
}

#[tokio::test]
async fn the_hint_of_an_empty_field_does_not_become_its_content() {
    let mut tree = Tree::builder(0);
    tree.leaf(UiNode {
        text: Some("Search".to_owned()),
        hint: Some("Search".to_owned()),
        editable: true,
        focused: true,
        ..UiNode::new("android.widget.EditText", Rect::new(0, 0, 100, 100))
    });
    let phone = Paper::showing(vec![tree.finish()]);
    text(&phone, "input_text", json!({"selector": {"class": "EditText"}, "text": "milk", "append": true})).await;
    assert_eq!(phone.phone().state.lock().unwrap().texts.last().unwrap().1, "milk");
}

#[tokio::test]
async fn hostile_trees_are_answered_within_bounds() {
    for kind in 0..4 {
        let phone = Paper::showing(vec![hostile(kind)]);
        for (tool, arguments) in [
            ("get_screen", json!({"max_bytes": 5000})),
            ("get_element", json!({"by": "class_name", "value": "x", "max_bytes": 5000})),
            ("get_element", json!({"selector": {"near": {"class": "x"}}, "max_bytes": 5000})),
            ("find_elements", json!({"by": "class_name", "value": "x", "max_bytes": 5000})),
            (
                "find_elements",
                json!({"selector": {"class": "x", "below": {"class": "x", "inside": {"class": "x"}}}, "max_bytes": 5000}),
            ),
            ("click_element", json!({"selector": {"class": "x"}})),
            ("wait_until", json!({"selector": {"class": "x"}, "text": "no", "timeout": 1})),
        ] {
            let length = match call(&phone, tool, arguments.clone()).await {
                Ok(outcome) => outcome.joined_text().len(),
                Err(error) => error.message.len(),
            };
            assert!(length <= 5000, "{kind} {tool} {arguments}: {length}");
        }
    }
}

#[tokio::test]
async fn steps_expect_decide_repeat_and_return() {
    let Some(mut bench) = bench(Android::V15).await else { return };
    let phone = bench.phone().await;
    let steps = json!({"steps": [
        {"tool": "open_app", "arguments": {"app": "dev.sinew.notes"}},
        {"tool": "click_element", "arguments": {"selector": {"description": "New note"}}},
        {"expect": {"screen": {"id": "note_title"}}, "within": 3000},
        {"each": ["Milk ${x}", "Bread"], "as": "thing", "do": [
            {"tool": "input_text", "arguments": {"selector": {"id": "note_title"}, "text": "${thing}"}},
        ]},
        {"if": {"screen": {"text": "Bread"}}, "then": [{"call": "get_current_app", "as": "app"}, {"return": {"app": "${app.packageName}"}}]},
        {"tool": "press_home"},
    ]});
    let wrong = run_steps(phone.clone(), steps.clone()).await.unwrap_err();
    assert!(wrong.kind == ErrorKind::InvalidArguments && wrong.message.contains("nothing is known yet"), "{wrong}");
    let steps: Value = serde_json::from_str(&steps.to_string().replace("Milk ${x}", "Milk $${x}")).unwrap();
    let outcome = run_steps(phone.clone(), steps).await.unwrap();
    assert_eq!(outcome.structured, Some(json!({"app": "dev.sinew.notes"})));
    assert!(outcome.joined_text().contains("4[2].1. input_text"), "{}", outcome.joined_text());
    let steps = json!({"report": "html", "steps": [
        {"tool": "press_home"},
        {"expect": {"screen": {"text": "nowhere to be seen"}}, "within": 200},
        {"tool": "press_back"},
    ]});
    let error = run_steps(phone.clone(), steps).await.unwrap_err();
    assert!(error.message.starts_with("step 2 (expect) failed: not as expected"), "{error}");
    assert!(error.message.contains("done before:\n1. press_home"), "{error}");
    let page = Content::Audio { data: error.details["report"].as_str().unwrap().to_owned(), mime_type: String::new() };
    let page = String::from_utf8(page.bytes().unwrap()).unwrap();
    assert!(page.contains("2 steps, failed") && page.contains("data:image/jpeg;base64,"), "{page}");
    assert!(page.contains("<pre>app com.android.launcher3"), "{page}");
}
