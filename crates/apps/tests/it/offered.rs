//! Apps on a virtual phone that offer tools through every protocol, found and called through the real adb server, and
//! their failures. The APKs are built here, by the packager that app authors use.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use crate::calls::{args, call, json_of, text};
use crate::tracked::{Tracked, built};
use crate::virtual_apps::{self, advertiser, provider, virtual_app};
use sinew_phones::adb::PhoneOptions;
use sinew_phones::{AgentSource, Profile};
use sinew_sim::phone::virtual_app::{IntentReaction, VirtualApp, VirtualComponentKind};
use sinew_sim::phone::{AgentStandIn, Android, PhoneSetup};
use sinew_tool::{Call, Device, ErrorKind, Status, Value, json};

fn offer() -> PhoneOptions {
    let settings =
        sinew_apps::WatchSettings { interval: Duration::from_millis(50), ..sinew_apps::WatchSettings::default() };
    PhoneOptions { extension: Some(Arc::new(settings)), agent: AgentSource::Off, ..PhoneOptions::shell(Profile::Full) }
}

fn names(device: &dyn Device) -> Vec<String> {
    device.tools().iter().map(|tool| tool.name.clone()).collect()
}

fn limited(device: &dyn Device) -> (String, String) {
    match device.info().status.clone() {
        Status::Limited { state, remedy } => (state, remedy),
        Status::Ready => panic!("{:?} is ready", device.info()),
    }
}

async fn kind_of(device: &dyn Device, tool: &str, arguments: Value) -> (ErrorKind, String) {
    let error = call(device, tool, arguments).await.unwrap_err();
    (error.kind, error.message)
}

#[tokio::test]
async fn the_pdf_tool_is_found_and_called_through_the_companion() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    bench.handset.install(virtual_apps::pdf("com.example.pdf", 7));
    let app = bench.app("com.example.pdf").await;
    let info = app.info();
    assert_eq!(
        (info.family.name.as_str(), info.suggested_id.as_str(), info.version.as_str()),
        ("app", "example-pdf", "7.0")
    );
    assert_eq!(info.instructions.as_deref(), Some("This app provides PDF processing capabilities"));
    assert_eq!(info.attributes["phone"], json!(bench.serial_number()));
    assert_eq!(info.attributes["components"], json!(["com.example.pdf.ToolAdvertiserActivity"]));
    assert_eq!(names(&*app), ["pdf_tool"]);
    assert_eq!(app.tools().iter().next().unwrap().required(), ["path", "operation"]);

    let ask = |path: &str| json!({"path": path, "operation": "extract_text"});
    let (kind, message) = kind_of(&*app, "pdf_tool", ask("/a.pdf")).await;
    assert_eq!(kind, ErrorKind::PermissionDenied);
    assert!(message.contains("sinew phones install-companion"), "{message}");

    bench.handset.install(virtual_apps::companion());
    let answer = text(&*app, "pdf_tool", ask("/it's \"a\" $(b).pdf")).await;
    assert_eq!(answer, "text of /it's \"a\" $(b).pdf:\n\"it's\" $HOME");
    let nothing = call(&*app, "pdf_tool", ask("/empty.pdf")).await.unwrap();
    assert!(nothing.content.is_empty() && nothing.meta.contains_key("sinew/note"), "{nothing:?}");
    let (kind, message) = kind_of(&*app, "pdf_tool", ask("/missing.pdf")).await;
    assert_eq!((kind, message.as_str()), (ErrorKind::ActionFailed, "pdf_tool of com.example.pdf: Error: no such file"));
    let (kind, message) = kind_of(&*app, "pdf_tool", ask("/crash.pdf")).await;
    assert!(kind == ErrorKind::ActionFailed && message.contains("may have crashed"), "{message}");
    let (kind, message) = kind_of(&*app, "pdf_tool", ask("/secret.pdf")).await;
    assert!(kind == ErrorKind::PermissionDenied && message.contains("must export"), "{message}");
    let slow = Call { budget: Duration::from_millis(800), ..Call::new("pdf_tool", args(ask("/hang.pdf"))) };
    assert_eq!(app.call(slow).await.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(text(&*app, "pdf_tool", ask("/b.pdf")).await.lines().next(), Some("text of /b.pdf:"));
}

#[tokio::test]
async fn a_call_falls_back_to_the_action_if_the_advertising_activity_is_missing() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    let react = |_: &sinew_sim::phone::virtual_app::ReceivedIntent| IntentReaction::ok("by the action");
    let other = virtual_apps::part(VirtualComponentKind::Activity, ".Caller", &[virtual_apps::CALL], react);
    bench.handset.install(virtual_apps::companion());
    bench.handset.install(VirtualApp { parts: vec![other], ..virtual_apps::pdf("com.example.pdf", 1) });
    let app = bench.app("com.example.pdf").await;
    assert_eq!(text(&*app, "pdf_tool", json!({"path": "x", "operation": "extract_text"})).await, "by the action");
}

#[tokio::test]
async fn installed_updated_and_removed_apps_are_noticed() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    bench.phone().await;
    bench.handset.install(virtual_app("com.example.plain", 1, "<activity android:name=\".Main\" />"));
    bench.handset.install(virtual_apps::pdf("com.example.pdf", 1));
    let app = bench.app("com.example.pdf").await;
    let next = advertiser(r#"{"tools": [{"name": "new_tool", "description": "x", "parameters": {"type": "object"}}]}"#);
    bench.handset.install(virtual_app("com.example.pdf", 2, &next));
    while names(&*app) != ["new_tool"] {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(app.info().version, "2.0");
    // Whoever writes an app builds the same version again and again.
    let rebuilt = next.replace("new_tool", "better_tool");
    bench.handset.install(virtual_app("com.example.pdf", 2, &rebuilt));
    while names(&*app) != ["better_tool"] {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.handset.uninstall("com.example.pdf");
    bench.without_app("com.example.pdf").await;
    assert_eq!((names(&*app).len(), limited(&*app).0.as_str()), (0, "removed"));
    // A package that offered nothing may do so after an update.
    bench.handset.install(virtual_apps::pdf("com.example.plain", 2));
    bench.app("com.example.plain").await;
    bench.handset.unplug();
    bench.without_app("com.example.plain").await;
}

#[tokio::test]
async fn receivers_are_queried_and_their_data_is_returned_exactly() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    bench.handset.install(virtual_apps::lamp("com.example.lamp"));
    let app = bench.app("com.example.lamp").await;
    assert_eq!(names(&*app), ["switch_lamp"]);
    let tool = app.tools().iter().next().unwrap().clone();
    assert_eq!((tool.description.as_str(), tool.required()), ("Switches the lamp, now", vec!["state"]));
    assert_eq!(app.info().instructions.as_deref(), Some("Lamps of the house"));
    let findings = app.info().attributes["findings"].to_string();
    assert!(findings.contains("`broken`"), "{findings}");
    let answer = text(&*app, "switch_lamp", json!({"state": "on 'x' \"y\"\n$z"})).await;
    assert_eq!(answer, "{\"tool\": \"switch_lamp\", \"now\": \"on 'x' \"y\"\n$z\"}\n\"");
    let quiet = call(&*app, "switch_lamp", json!({"state": "quiet"})).await.unwrap();
    assert!(quiet.content.is_empty(), "{quiet:?}");
    let (kind, message) = kind_of(&*app, "switch_lamp", json!({"state": "crash"})).await;
    assert!(kind == ErrorKind::ActionFailed && message.contains("crashed"), "{message}");
    assert_eq!(kind_of(&*app, "switch_lamp", json!({"state": "hidden"})).await.0, ErrorKind::PermissionDenied);
    let slow = Call { budget: Duration::from_millis(800), ..Call::new("switch_lamp", args(json!({"state": "hang"}))) };
    assert_eq!(app.call(slow).await.unwrap_err().kind, ErrorKind::Timeout);
    let (kind, _) = kind_of(&*app, "switch_lamp", json!({"state": "x".repeat(70_000)})).await;
    assert_eq!(kind, ErrorKind::InvalidArguments, "longer than adb carries");
}

#[tokio::test]
async fn providers_are_listed_without_the_agent_and_called_with_it_only() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    bench.handset.install(virtual_apps::weather("com.example.weather"));
    bench.handset.install(virtual_apps::many("com.example.calendar"));
    let app = bench.app("com.example.weather").await;
    assert_eq!(names(&*app), ["get_weather_forecast"]);
    let tool = app.tools().iter().next().unwrap().clone();
    assert_eq!(tool.required(), ["location"]);
    assert_eq!(tool.input_schema["properties"]["days"]["type"], "number");
    let (kind, message) = kind_of(&*app, "get_weather_forecast", json!({"location": "Bern"})).await;
    assert!(kind == ErrorKind::PermissionDenied && message.contains("agent"), "{message}");
    assert_eq!(names(&*bench.app("com.example.calendar").await), ["add_event", "list_events"]);
}

#[tokio::test]
async fn a_provider_is_called_through_the_real_agent() {
    for android in [Android::V9, Android::V15] {
        let Some(host) = built("agent-host.jar") else { return };
        let offer = PhoneOptions { agent: AgentSource::Embedded, ..offer() };
        let Some(mut bench) = Tracked::open(PhoneSetup { android, ..PhoneSetup::default() }, offer).await else {
            return;
        };
        bench.handset.set_agent(Some(AgentStandIn::Java(host)));
        bench.handset.install(virtual_apps::weather("com.example.weather"));
        bench.handset.install(virtual_apps::many("com.example.calendar"));
        let app = bench.app("com.example.weather").await;
        // Android 9 does not print which arguments are required; the agent is used instead.
        assert_eq!(app.tools().iter().next().unwrap().required(), ["location"], "{android}");
        let ask = |place: &str| json!({"location": place, "days": 2.0});
        let answer = text(&*app, "get_weather_forecast", ask("Zürich \"1\"\n")).await;
        assert_eq!(answer, "\"get_weather_forecast\" Zürich \"1\"\n \"2\"", "{android}");
        for (place, kind, why) in [
            ("nowhere", ErrorKind::BadAnswer, "null"),
            ("odd", ErrorKind::BadAnswer, "success"),
            ("other", ErrorKind::BadAnswer, "set_alarm"),
            ("large", ErrorKind::TooLarge, "too_large on purpose"),
            ("crash", ErrorKind::ActionFailed, "crashed on purpose"),
            ("denied", ErrorKind::PermissionDenied, "denied on purpose"),
            ("slow", ErrorKind::Timeout, "timeout on purpose"),
            ("", ErrorKind::ActionFailed, "Location required"),
        ] {
            let (told, message) = kind_of(&*app, "get_weather_forecast", ask(place)).await;
            assert!(told == kind && message.contains(why), "{android} {place}: {told:?} {message}");
        }
        let hang = Call { budget: Duration::from_secs(2), ..Call::new("get_weather_forecast", args(ask("hang"))) };
        assert_eq!(app.call(hang).await.unwrap_err().kind, ErrorKind::Timeout, "{android}");
        let silent = call(&*app, "get_weather_forecast", ask("silent")).await.unwrap();
        assert!(silent.content.is_empty() && silent.meta.contains_key("sinew/note"), "{silent:?}");
        let calendar = bench.app("com.example.calendar").await;
        assert_eq!(text(&*calendar, "add_event", json!({"title": "x"})).await, "done: \"add_event\"");
    }
}

#[tokio::test]
async fn app_functions_are_listed_by_the_phone_and_called() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    bench.handset.install(virtual_apps::notes("com.example.notes"));
    let app = bench.app("com.example.notes").await;
    assert_eq!(names(&*app), ["createNote"]);
    let made = json_of(&*app, "createNote", json!({"title": "it's \"one\""})).await;
    assert_eq!(made, json!({"id": "it's \"one\"", "tags": ["one"]}));
    let (kind, message) = kind_of(&*app, "createNote", json!({"title": "refused"})).await;
    assert!(kind == ErrorKind::PermissionDenied && message.contains("AGENT_DISABLED"), "{message}");
}

#[tokio::test]
async fn mistakes_of_one_app_are_reported_and_the_others_work() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    let handset = &bench.handset;
    let version = r#"{"protocolVersion": "2.0", "tools": []}"#;
    handset.install(virtual_app("com.bad.version", 1, &advertiser(version)));
    handset.install(virtual_app("com.bad.json", 1, &advertiser(r#"{"tools": [{"name": }]}"#)));
    let liar = VirtualApp { package: "com.bad.liar".to_owned(), ..virtual_apps::pdf("com.android.bank", 1) };
    handset.install(liar);
    let mut damaged = virtual_apps::pdf("com.bad.damaged", 1);
    let end = damaged.apk.len() - 30;
    damaged.apk[end] ^= 0xff;
    damaged.apk.truncate(end);
    handset.install(damaged);
    let throws = |_: &str, _: &Value| Err(("failed".to_owned(), "thrown on purpose".to_owned()));
    handset.install(provider("com.bad.throws", virtual_apps::BY_TYPE, Arc::new(throws)));
    let lacks = |_: &str, _: &Value| {
        let mut info = virtual_apps::weather_info();
        info.as_object_mut().unwrap().remove("tool_description");
        Ok(info)
    };
    handset.install(provider("com.bad.lacks", virtual_apps::BY_TYPE, Arc::new(lacks)));
    handset.install(provider("com.bad.null", virtual_apps::BY_TYPE, Arc::new(|_, _| Ok(Value::Null))));
    let secret = "<activity android:name=\".A\" android:exported=\"false\"><intent-filter><action android:name=\"com.example.mMCP.ACTION_TOOL_ADVERTISE\" /></intent-filter></activity>";
    handset.install(virtual_app("com.bad.secret", 1, secret));
    handset.install(virtual_apps::pdf("com.good.pdf", 1));

    assert_eq!(names(&*bench.app("com.good.pdf").await), ["pdf_tool"]);
    for (package, state, why) in [
        ("com.bad.version", "incompatible", "2.0"),
        ("com.bad.json", "unusable", "JSON"),
        ("com.bad.liar", "refused", "com.android.bank"),
        ("com.bad.damaged", "unusable", "cannot read what the app offers"),
        ("com.bad.throws", "failing", "thrown on purpose"),
        ("com.bad.lacks", "failing", "tool_description"),
        ("com.bad.null", "failing", "null"),
        ("com.bad.secret", "unusable", "not exported"),
    ] {
        let app = bench.app(package).await;
        let (found, remedy) = limited(&*app);
        assert!(found == state && remedy.contains(why), "{package}: {found}: {remedy}");
        assert!(names(&*app).is_empty() && app.info().instructions.is_none(), "{package}");
    }
}

#[tokio::test]
async fn services_are_shown_but_not_offered() {
    let Some(mut bench) = Tracked::open(PhoneSetup::default(), offer()).await else { return };
    let service = r#"<service android:name=".Service" android:exported="true">
    <intent-filter><action android:name="mobile.mcp.SERVICE" /></intent-filter>
    <meta-data android:name="mobile.mcp.tool.name" android:value="Clock" />
    <meta-data android:name="mobile.mcp.tool.description" android:value="Alarms" />
    <meta-data android:name="mobile.mcp.tool.capabilities" android:resource="@xml/capabilities" />
</service>"#;
    let file = r#"<mobile-mcp-capabilities version="1.0"><capability id="set_alarm" description="Sets it" version="1.0">
    <input><param name="time" type="string" required="true" description="When"/></input></capability></mobile-mcp-capabilities>"#;
    let apk = virtual_apps::recipe("com.example.clock", 1, service).resource("xml/capabilities.xml", file).build();
    let clock = VirtualApp { package: "com.example.clock".to_owned(), version_code: 1, apk, ..VirtualApp::default() };
    bench.handset.install(clock);
    let app = bench.app("com.example.clock").await;
    let (_, remedy) = limited(&*app);
    assert!(remedy.contains("PendingIntent"), "{remedy}");
    assert_eq!(app.info().instructions.as_deref(), Some("Alarms"));
}
