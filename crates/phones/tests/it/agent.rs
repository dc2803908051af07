//! The agent on the virtual phone through the real adb server: the actual Java, on a JVM, over the phone's own
//! screen; and agents that are played, for what a good one never does.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::tracked::{Tracked, built};
use crate::common::{failure, json_of, text};
use sinew_phones::adb::{AdbPhone, PhoneOptions};
use sinew_phones::agent::{ActivityAnswer, ActivityCall, Companion, CompanionError};
use sinew_phones::{AgentSource, Phone, Profile, Standby};
use sinew_sim::phone::virtual_app::{AppComponent, IntentReaction, ReceivedIntent, VirtualComponentKind};
use sinew_sim::phone::{AgentStandIn, Android, Denial, PhoneSetup, ScriptedAgent, VirtualApp};
use sinew_tool::{Device, LiveRequest, json};

/// A phone that runs the agent itself.
async fn with_java(android: Android) -> Option<Tracked> {
    let host = built("agent-host.jar")?;
    let offer = PhoneOptions { agent: AgentSource::Embedded, ..PhoneOptions::shell(Profile::Full) };
    let bench = Tracked::open(PhoneSetup { android, ..PhoneSetup::default() }, offer).await?;
    bench.handset.set_agent(Some(AgentStandIn::Java(host)));
    Some(bench)
}

/// A phone whose agent is played, and the folder of what is pushed, which does not matter to it.
async fn with_played(
    hello: &str,
    react: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Option<(Tracked, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.jar"), "a jar").unwrap();
    let offer =
        PhoneOptions { agent: AgentSource::Folder(folder.path().to_owned()), ..PhoneOptions::shell(Profile::Full) };
    let bench = Tracked::open(PhoneSetup::default(), offer).await?;
    let played = ScriptedAgent { hello: hello.to_owned(), react: Arc::new(react) };
    bench.handset.set_agent(Some(AgentStandIn::ScriptedAgent(played)));
    Some((bench, folder))
}

const HELLO: &str = r#"{"hello":"sinew-agent","version":"9.9.9","protocol":1,"api":34,"release":"14","capabilities":["ping","tree","touch","key","set_text","clipboard_get","clipboard_set"]}"#;

fn agent_of(phone: &dyn Device) -> String {
    phone.info().attributes["agent"].as_str().unwrap().to_owned()
}

async fn text_of(phone: &dyn Device, id: &str) -> String {
    let found = json_of(phone, "find_elements", json!({"by": "resource_id", "value": format!(":id/{id}")})).await;
    found["elements"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_story_with_the_agent() {
    for android in [Android::V9, Android::V15] {
        let Some(mut bench) = with_java(android).await else { return };
        let phone = bench.phone().await;
        assert_eq!(agent_of(&*phone), "ready to start", "a phone that is only listed is left as it is");
        text(&*phone, "open_app", json!({"app": "notes"})).await;
        assert_eq!(agent_of(&*phone), "ready to start", "opening an app needs no agent");
        text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
        assert_eq!(agent_of(&*phone), "0.1.0", "{android}");
        assert_eq!(phone.info().attributes["backend"], json!(["agent", "shell"]));

        let body = "Grüße 🎉\nالعربية 日本語\n100% sure; it's $(reboot) \"fine\" \\n\ttab";
        text(&*phone, "set_text", json!({"by": "resource_id", "value": "note_body", "text": body})).await;
        assert_eq!(text_of(&*phone, "note_body").await, body, "{android}");
        text(&*phone, "input_text", json!({"text": " – ende", "append": true})).await;
        assert_eq!(text_of(&*phone, "note_body").await, format!("{body} – ende"), "{android}");
        text(&*phone, "input_text", json!({"text": " now", "append": true})).await;
        assert!(text_of(&*phone, "note_body").await.ends_with("ende now"), "the shell types what a keyboard has");

        text(&*phone, "set_clipboard", json!({"text": "ключ 🔑"})).await;
        assert_eq!(bench.handset.with(|machine| machine.clipboard().map(str::to_owned)).as_deref(), Some("ключ 🔑"));
        assert_eq!(json_of(&*phone, "get_clipboard", json!({})).await, json!({"text": "ключ 🔑"}));

        text(&*phone, "open_app", json!({"app": "com.android.contacts"})).await;
        let found = text(&*phone, "scroll_to_element", json!({"by": "text", "value": "Mary Hopper"})).await;
        assert!(found.contains("Scrolled"), "{found}");

        text(&*phone, "open_app", json!({"app": "com.android.gallery3d"})).await;
        text(&*phone, "click_element", json!({"by": "text", "value": "Map of the island"})).await;
        text(&*phone, "pinch", json!({"center_x": 540, "center_y": 1200, "scale": 3})).await;
        let shown = text(&*phone, "get_screen", json!({})).await;
        assert!(shown.contains("Zoom 3.0×"), "{android}: {shown}");

        // A screen that never rests is read all the same.
        text(&*phone, "open_app", json!({"app": "com.android.deskclock"})).await;
        let shown = text(&*phone, "get_screen", json!({})).await;
        assert!(shown.contains("app com.android.deskclock"), "{android}: {shown}");

        text(&*phone, "press_key", json!({"key": "HOME"})).await;
        text(&*phone, "open_notifications", json!({})).await;
        let app = json_of(&*phone, "get_current_app", json!({})).await;
        assert!(app["focusedWindow"].is_string(), "{app}");
    }
}

#[tokio::test]
async fn text_is_selected_pasted_over_and_inserted_at_the_caret_with_the_agent() {
    let Some(host) = built("agent-host.jar") else { return };
    let offer = PhoneOptions { agent: AgentSource::Embedded, ..PhoneOptions::shell(Profile::Tester) };
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer).await else { return };
    bench.handset.set_agent(Some(AgentStandIn::Java(host)));
    let phone = bench.phone().await;
    text(&*phone, "open_app", json!({"app": "dev.sinew.notes"})).await;
    text(&*phone, "click_element", json!({"by": "content_desc", "value": "New note"})).await;
    let body = json!({"id": "note_body"});
    let shown = async || json_of(&*phone, "get_element", json!({"selector": body})).await;
    text(&*phone, "input_text", json!({"selector": body, "text": "Grüße 😀 Welt\nund alle"})).await;
    text(&*phone, "select_text", json!({"selector": body, "start": 6, "end": 7})).await;
    assert_eq!(shown().await["selection"], json!({"start": 6, "end": 7}));
    text(&*phone, "paste_text", json!({"text": "🎉"})).await;
    assert_eq!(shown().await["text"], "Grüße 🎉 Welt\nund alle");
    assert_eq!(shown().await["selection"], json!({"start": 7, "end": 7}));
    text(&*phone, "insert_text", json!({"selector": body, "text": "→日本\n"})).await;
    assert_eq!(shown().await["text"], "Grüße 🎉→日本\n Welt\nund alle");
    text(&*phone, "insert_text", json!({"text": "é"})).await;
    assert_eq!(shown().await["text"], "Grüße 🎉→日本\né Welt\nund alle", "typed where the caret was left");

    let wanted = LiveRequest { max_side: 200, quality: 60, known: None, patience: Duration::from_secs(5) };
    let picture = phone.live_picture(&wanted).await.unwrap().unwrap();
    assert!(picture.bytes.starts_with(&[0xff, 0xd8, 0xff]));
    bench.handset.deny(Denial::Capture, true);
    let wanted = LiveRequest { max_side: 100, ..wanted };
    let error = phone.live_picture(&wanted).await.unwrap_err();
    assert_eq!(error.kind.row().code, -32001, "{error}");
}

#[tokio::test]
async fn a_slider_says_where_it_stands_in_its_range() {
    let Some(mut bench) = with_java(Android::V15).await else { return };
    let phone = bench.phone().await;
    let shown = text(&*phone, "open_quick_settings", json!({"return": "screen"})).await;
    let line = shown.lines().find(|line| line.contains("slider \"Display brightness\"=\"")).unwrap();
    assert!(line.contains(" of 0..255\" @") && line.contains(" drag x"), "{line}");
    let element = json!({"element_id": line.split(' ').next()});
    let range = json_of(&*phone, "get_element", element.clone()).await["range"].clone();
    assert_eq!((&range["low"], &range["high"]), (&json!(0.0), &json!(255.0)));
    // Without the agent there is the text of the slider.
    let Some((mut bench, _folder)) = with_played(HELLO, |_| None).await else { return };
    let phone = bench.phone().await;
    let shown = text(&*phone, "open_quick_settings", json!({"return": "screen"})).await;
    let value = format!("slider \"Display brightness\"=\"{:.1}\"", range["value"].as_f64().unwrap());
    assert!(shown.contains(&value), "{shown}");
}

#[tokio::test]
async fn refusals_of_the_phone_and_a_dark_screen_are_told_through_the_agent() {
    let Some(mut bench) = with_java(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "get_screen", json!({})).await;
    bench.handset.deny(Denial::Input, true);
    let (code, message) = failure(&*phone, "tap", json!({"x": 5, "y": 5})).await;
    assert!(code == -32001 && message.contains("developer options"), "{message}");
    bench.handset.deny(Denial::Input, false);
    bench.handset.deny(Denial::Tree, true);
    assert_eq!(failure(&*phone, "get_screen", json!({})).await.0, -32001);
    bench.handset.deny(Denial::Tree, false);
    text(&*phone, "press_key", json!({"key": "SLEEP"})).await;
    let (code, message) = failure(&*phone, "pinch", json!({"center_x": 540, "center_y": 1200, "scale": 3})).await;
    assert!(code == -32001 && message.contains("WAKEUP"), "{message}");
    text(&*phone, "press_key", json!({"key": "WAKEUP"})).await;
    assert_eq!(agent_of(&*phone), "0.1.0", "it ran all the time");
}

#[tokio::test]
async fn an_agent_that_is_killed_is_replaced_and_the_shell_serves_meanwhile() {
    let Some(mut bench) = with_java(Android::V15).await else { return };
    let phone = bench.phone().await;
    text(&*phone, "get_screen", json!({})).await;
    assert_eq!(agent_of(&*phone), "0.1.0");
    // In the middle of a call: the phone takes its time, and the agent is gone before it answers.
    bench.handset.set_latency(Duration::from_millis(200));
    let killed = async {
        bench.handset.next_command().await;
        bench.handset.kill_agent();
        bench.handset.set_latency(Duration::ZERO);
    };
    let (shown, ()) = tokio::join!(text(&*phone, "get_screen", json!({})), killed);
    assert!(shown.starts_with("app "), "the shell read it: {shown}");
    assert!(agent_of(&*phone).starts_with("absent: "), "{}", agent_of(&*phone));
    text(&*phone, "get_screen", json!({})).await;
    assert_eq!(agent_of(&*phone), "0.1.0", "the next call started another");
}

#[tokio::test]
async fn providers_are_called_with_real_bundles() {
    let Some(mut bench) = with_java(Android::V15).await else { return };
    bench.phone().await;
    let provider: sinew_sim::phone::virtual_app::ProviderHandler = Arc::new(|method, extras| match method {
        "echo" => Ok(extras.clone()),
        "null" => Ok(json!(null)),
        _ => Err(("crashed".to_owned(), "the app died".to_owned())),
    });
    let providers = [("com.guest.tools".to_owned(), provider)].into();
    bench.handset.install(VirtualApp { package: "com.guest".to_owned(), providers, ..VirtualApp::default() });
    let shell = AdbPhone::open(&bench.server, &bench.address).await.unwrap();
    let standby = Standby::new(shell.transport().clone(), AgentSource::Embedded);
    let agent = standby.agent().await.unwrap();
    let limit = Duration::from_secs(20);
    let extras =
        json!({"tool_name": "wetter", "tool_arguments": {"map": {"ort": "Zürich"}}, "n": {"long": 5_000_000_000i64}});
    let answer = agent.provider_call("com.guest.tools", "echo", None, &extras, None, limit).await.unwrap();
    assert_eq!(answer, extras);
    let answer = agent.provider_call("com.guest.tools", "null", Some("x"), &json!(null), None, limit).await.unwrap();
    assert_eq!(answer, json!(null));
    let crashed = agent.provider_call("com.guest.tools", "die", None, &json!({}), None, limit).await.unwrap_err();
    assert!(matches!(
        crashed,
        sinew_phones::AgentError::Refused { kind: sinew_phones::agent::AgentRefusal::Crashed, .. }
    ));
    let missing = agent.provider_call("no.such", "echo", None, &json!({}), None, limit).await.unwrap_err();
    assert!(missing.to_string().contains("no.such"), "{missing}");
    let parts = agent.package_meta("com.guest", None).await.unwrap();
    assert_eq!(parts[0]["authority"], "com.guest.tools");
}

#[tokio::test]
async fn without_an_agent_the_shell_does_what_it_can_and_the_reason_is_told() {
    // The files are there, but the phone runs no Java.
    let Some((mut bench, _folder)) = with_played(HELLO, |_| None).await else { return };
    bench.handset.set_agent(None);
    let phone = bench.phone().await;
    assert!(text(&*phone, "get_screen", json!({})).await.starts_with("app "));
    assert!(
        agent_of(&*phone).starts_with("absent: ") && agent_of(&*phone).contains("no Java"),
        "{}",
        agent_of(&*phone)
    );
    let (code, message) = failure(&*phone, "get_clipboard", json!({})).await;
    assert!(code == -32001 && message.contains("no Java"), "{message}");

    // No file is there at first, and it is noticed when it comes.
    let folder = tempfile::tempdir().unwrap();
    let offer =
        PhoneOptions { agent: AgentSource::Folder(folder.path().to_owned()), ..PhoneOptions::shell(Profile::Full) };
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer).await else { return };
    let phone = bench.phone().await;
    assert!(text(&*phone, "get_screen", json!({})).await.starts_with("app "));
    let (_, message) = failure(&*phone, "set_clipboard", json!({"text": "x"})).await;
    assert!(message.contains("android/build"), "{message}");
}

#[tokio::test]
async fn an_agent_of_another_protocol_is_not_used() {
    let hello = HELLO.replace("\"protocol\":1", "\"protocol\":2");
    let Some((mut bench, _folder)) = with_played(&hello, |_| Some("{}".to_owned())).await else { return };
    let phone = bench.phone().await;
    assert!(text(&*phone, "get_screen", json!({})).await.starts_with("app "));
    let why = agent_of(&*phone);
    assert!(why.contains("protocol 2") && why.contains("android/build"), "{why}");
}

#[tokio::test]
async fn an_agent_that_talks_nonsense_or_dies_is_done_without_and_tried_less_and_less_often() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let react = move |_: &str| {
        // Noise without end: no answer, no JSON.
        counted.fetch_add(1, Ordering::SeqCst);
        Some("\u{1}noise\n".repeat(40))
    };
    let Some((mut bench, _folder)) = with_played(HELLO, react).await else { return };
    let phone = bench.phone().await;
    for _ in 0..6 {
        assert!(text(&*phone, "get_screen", json!({})).await.starts_with("app "));
    }
    assert!(agent_of(&*phone).contains("not answers"), "{}", agent_of(&*phone));
    // The first two tries come at once; then it is left alone for a growing while.
    let tries = starts.load(Ordering::SeqCst);
    assert!((2..6).contains(&tries), "{tries}");

    // One that dies under a touch: the touch is not done twice.
    let react = |line: &str| {
        let id = line.split(['{', ',', ':']).nth(2).unwrap_or("0").to_owned();
        match line.contains("\"touch\"") {
            true => None,
            false => Some(format!(
                r#"{{"id":{id},"result":{{"nodes":[{{"depth":0,"class":"V","bounds":[0,0,9,9],"flags":2064}}]}}}}"#
            )),
        }
    };
    let Some((mut bench, _folder)) = with_played(HELLO, react).await else { return };
    let phone = bench.phone().await;
    assert!(text(&*phone, "get_accessibility_tree", json!({})).await.contains("\"V\""));
    let (code, message) = failure(&*phone, "tap", json!({"x": 5, "y": 5})).await;
    assert!(code == -32003 && message.contains("look at the screen"), "{code} {message}");
}

#[tokio::test]
async fn an_agent_that_is_switched_off_says_how_to_switch_it_on() {
    let Some(mut bench) = with_java(Android::V15).await else { return };
    bench.phone().await;
    let shell = AdbPhone::open(&bench.server, &bench.address).await.unwrap();
    let standby = Standby::new(shell.transport().clone(), AgentSource::Off);
    assert_eq!(standby.capabilities().agent.as_deref(), Some("off"));
    let error = standby.clipboard().await.unwrap_err();
    assert!(error.to_string().contains("agent = true"), "{error}");
}

#[tokio::test]
async fn the_companion_is_installed_and_carries_the_answers_of_activities() {
    let Some(apk) = built("companion.apk") else { return };
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), PhoneOptions::shell(Profile::Full)).await else {
        return;
    };
    bench.phone().await;
    let companion = Companion::new(bench.server.transport(bench.address.clone(), true));
    let react = |request: &ReceivedIntent| match request.extras["tool_name"].as_str() {
        "echo" => IntentReaction::ok(request.extras["parameters"].clone()),
        "cancel" => IntentReaction::Answer { code: 0, text: None, extras: None },
        "forbidden" => IntentReaction::Refuse,
        _ => IntentReaction::Hang,
    };
    let class = ".ToolActivity".to_owned();
    let part = AppComponent {
        kind: VirtualComponentKind::Activity,
        class,
        actions: vec!["a.CALL".to_owned()],
        react: Arc::new(react),
    };
    bench.handset.install(VirtualApp { package: "com.guest".to_owned(), parts: vec![part], ..VirtualApp::default() });
    let call = async |tool_name: &str, component: &str, parameters: &str, limit: u64| {
        let call = ActivityCall { component: Some(component), package: None, action: "a.CALL", tool_name, parameters };
        companion.call(&call, Duration::from_millis(limit)).await
    };
    let virtual_app = "com.guest/.ToolActivity";
    let absent = companion.about().await.unwrap_err();
    assert!(absent.to_string().contains("install-companion"), "{absent}");
    assert!(matches!(call("echo", virtual_app, "{}", 9000).await, Err(CompanionError::Absent(_))));

    assert!(companion.install(b"no apk").await.unwrap_err().to_string().contains("INSTALL_PARSE_FAILED"));
    assert_eq!(companion.install(&std::fs::read(apk).unwrap()).await.as_deref(), Ok("0.1.0"));
    let parameters = "{\"path\": \"/sdcard/it's $HOME 日本.pdf\",\n \"n\": 1}";
    let answer = call("echo", virtual_app, parameters, 9000).await.unwrap();
    assert_eq!(answer, ActivityAnswer { code: -1, result: Some(parameters.to_owned()) });
    assert_eq!(call("cancel", virtual_app, "{}", 9000).await, Ok(ActivityAnswer { code: 0, result: None }));
    let kind = |answer: Result<ActivityAnswer, CompanionError>| match answer {
        Err(CompanionError::Refused { kind, .. }) => kind,
        other => format!("{other:?}"),
    };
    assert_eq!(kind(call("forbidden", virtual_app, "{}", 9000).await), "denied");
    assert_eq!(kind(call("echo", "com.guest/.Other", "{}", 9000).await), "not_found");
    assert!(matches!(call("sleep", virtual_app, "{}", 500).await, Err(CompanionError::Timeout(_))));
    let long = "x".repeat(70_000);
    assert!(matches!(call("echo", virtual_app, &long, 9000).await, Err(CompanionError::TooLong(70_000))));
}
