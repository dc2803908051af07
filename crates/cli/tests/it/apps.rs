//! Tools of apps, from an MCP client through the whole gateway and the real adb to apps on a virtual phone.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_sim::phone::{AgentStandIn, Handset, PhoneClock, PhoneSetup, ScriptedAgent, adbd};
use tokio_util::sync::CancellationToken;

use crate::gateway::{Process, TestGateway, path_with_sinew, run};
use crate::phones::Adb;
use crate::stdio::Client;

#[path = "../../../apps/tests/it/recipes.rs"]
mod recipes;
#[path = "../../../apps/tests/it/virtual_apps.rs"]
mod virtual_apps;

/// An agent that knows nothing but provider calls, and answers them as the installed apps do.
fn agent(handset: &Handset) -> AgentStandIn {
    let handset = handset.clone();
    let react = move |line: &str| {
        let request: Value = serde_json::from_str(line).ok()?;
        let word = |name: &str| request["params"][name].as_str().unwrap_or_default();
        let virtual_apps = handset.virtual_apps();
        let provider = virtual_apps.iter().find_map(|virtual_app| virtual_app.providers.get(word("authority")))?;
        let mut answer = json!({"id": request["id"]});
        match provider(word("method"), &request["params"]["extras"]) {
            Ok(bundle) => answer["result"] = json!({"bundle": bundle}),
            Err((kind, message)) => answer["error"] = json!({"type": kind, "message": message}),
        }
        Some(answer.to_string())
    };
    let hello = json!({"hello": "sinew-agent", "version": "0.1.0", "protocol": 1, "api": 35, "release": "15", "capabilities": ["ping", "provider_call"]});
    AgentStandIn::ScriptedAgent(ScriptedAgent { hello: hello.to_string(), react: Arc::new(react) })
}

#[test]
fn tools_of_apps_are_called_from_an_mcp_client() {
    let Some(adb) = Adb::start() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let handset = Handset::new(PhoneSetup::default(), PhoneClock::Real);
    for virtual_app in [
        virtual_apps::pdf("com.example.pdf", 7),
        virtual_apps::pdf("com.other.reader", 1),
        virtual_apps::weather("com.example.weather"),
        virtual_apps::companion(),
    ] {
        handset.install(virtual_app);
    }
    handset.set_agent(Some(agent(&handset)));
    let shutdown = CancellationToken::new();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    runtime.spawn(adbd::run(listener, handset, shutdown.clone()));

    let state = tempfile::tempdir().expect("a folder");
    let files = state.path().join("built");
    std::fs::create_dir_all(&files).expect("made");
    std::fs::write(files.join("agent.jar"), "played, not run").expect("written");
    let config = state.path().join("sinew.toml");
    let doors = "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = '127.0.0.1:0'";
    std::fs::write(
        &config,
        format!("{doors}\n[phones]\nagent = 'built'\n[phones.apps]\ninterval = 1\n[policy]\nunmarked = 'allow'"),
    )
    .expect("written");
    let mut gateway = Process::start(adb.sinew(state.path()).args(["serve", "--config"]).arg(&config));
    gateway.until("Ctrl-C");
    let ours = |arguments: &[&str]| run(adb.sinew(state.path()).args(arguments));
    ours(&["phones", "connect", &address]).ok();
    let mut apps = Value::Null;
    for _ in 0..400 {
        apps = ours(&["phones", "apps", "--output", "json"]).ok().json();
        if apps["apps"].as_array().is_some_and(|apps| apps.len() == 3) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let app = |id: &str| {
        let found = apps["apps"].as_array().expect("apps").iter().find(|app| app["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("{id} is missing in {apps:#}"))
    };
    let pdf = app("example-pdf");
    assert_eq!((&pdf["state"], &pdf["tools"], &pdf["version"]), (&json!("ready"), &json!(1), &json!("7.0")));
    assert_eq!(pdf["attributes"]["package"], "com.example.pdf");
    assert_eq!((&app("other-reader")["state"], &app("example-weather")["state"]), (&json!("ready"), &json!("ready")));
    let shown = ours(&["phones", "apps"]).ok().out;
    assert!(shown.contains("com.example.weather") && shown.contains("activity"), "{shown}");

    let mut client = Client::start(adb.sinew(state.path()).arg("stdio"));
    let told = client.hello["instructions"].as_str().expect("instructions").to_owned();
    let (_, of_apps) = told.split_once("These are quotations").unwrap_or_else(|| panic!("no apps in {told}"));
    assert!(of_apps.contains("- example-pdf: \"This app provides PDF processing capabilities\""), "{of_apps}");
    let mut call = |tool: &str, arguments: Value| {
        let result = client.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (result["isError"] == true, text)
    };
    // Two apps with one tool of one schema are one tool that wants a device.
    let ask = |device: Option<&str>, path: &str| {
        let mut arguments = json!({"path": path, "operation": "extract_text"});
        if let Some(device) = device {
            arguments["device"] = json!(device);
        }
        arguments
    };
    let (failed, text) = call("pdf_tool", ask(None, "/a.pdf"));
    assert!(failed && text.contains("example-pdf") && text.contains("other-reader"), "{text}");
    assert_eq!(
        call("pdf_tool", ask(Some("example-pdf"), "/a b.pdf")),
        (false, "text of /a b.pdf:\n\"it's\" $HOME".to_owned())
    );
    assert!(!call("pdf_tool", ask(Some("other-reader"), "/b.pdf")).0);
    let (failed, text) = call("pdf_tool", ask(Some("example-pdf"), "/missing.pdf"));
    assert!(failed && text.contains("no such file"), "{text}");
    let (failed, text) = call("pdf_tool", json!({"device": "example-pdf", "path": "/a.pdf", "operation": "shred"}));
    assert!(failed && text.contains("operation"), "refused by the schema: {text}");

    let (failed, text) = call("get_weather_forecast", json!({"location": "Zürich \"1\"", "days": 3.0}));
    assert_eq!((failed, text.as_str()), (false, "\"get_weather_forecast\" Zürich \"1\" \"3\""));
    let (failed, text) = call("get_weather_forecast", json!({"location": "large"}));
    assert!(failed && text.contains("too_large on purpose"), "{text}");
    let (failed, text) = call("get_weather_forecast", json!({"location": "other"}));
    assert!(failed && text.contains("set_alarm"), "{text}");
    let (failed, text) = call("get_weather_forecast", json!({"days": 1}));
    assert!(failed && text.contains("location"), "refused by the schema: {text}");
    shutdown.cancel();
}

/// The form of `sinew spec new`, filled in as an author would.
fn filled(form: &str) -> String {
    let mut text = String::new();
    let mut rest = form;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (placeholder, behind) = behind.split_once("}}").expect("a placeholder ends");
        text.push_str(before);
        text.push_str(match placeholder {
            "Module name" => "Alarm clock",
            "parameter" => "time",
            "example" => "07:30",
            "field" => "alarm",
            "Yes, No or Partially" => "Yes",
            _ => "Sets the alarm of the phone to a time of the day, as hours and minutes.",
        });
        rest = behind;
    }
    text + rest
}

/// The commands of "From a specification to the first call" in docs/app-authors.md, without their comments, and its answer.
fn ten_steps() -> (Vec<String>, String) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/app-authors.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let (_, section) = page.split_once("## From a specification to the first call\n").expect("a section");
    let code = block(section, "sh");
    let steps: Vec<String> =
        code.lines().map(|line| line.split(" # ").next().unwrap_or(line).trim().to_owned()).collect();
    (steps, block(section, "json").trim().to_owned())
}

fn block<'a>(section: &'a str, language: &str) -> &'a str {
    let (_, code) = section.split_once(&format!("```{language}\n")).expect("a block");
    code.split("```").next().expect("its end")
}

#[test]
fn the_ten_steps_for_app_authors_end_in_an_answer_of_the_app() {
    let Some(adb) = Adb::start() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    // Other programs may listen where everybody's do.
    std::fs::write(at("sinew.toml"), "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = 'off'").expect("written");
    let shell = |step: &str| {
        let environment = adb.sinew(state.path());
        let mut command = Command::new("sh");
        command.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env_remove("ADB_SERVER_SOCKET").env("SINEW_CONFIG", at("sinew.toml")).env("PATH", path_with_sinew());
        command.env("EDITOR", format!("cp {}", at("filled.md"))).current_dir(folder.path()).stdin(Stdio::null());
        command.args(["-c", step]);
        command
    };
    let (steps, answer) = ten_steps();
    let [new, edit, lint_form, scaffold, lint_app, package, phone, install, serve, call] = &steps[..] else {
        panic!("{steps:#?}")
    };
    run(&mut shell(new)).ok();
    let blank = run(&mut shell(scaffold));
    assert!(blank.code == 2 && blank.err.contains("fill in the form first"), "{}", blank.err);
    let form = std::fs::read_to_string(at("SPEC.md")).expect("the form");
    std::fs::write(at("filled.md"), filled(&form)).expect("written");
    for step in [edit, lint_form, scaffold, lint_app, package] {
        run(&mut shell(step)).ok();
    }
    let mut phone = Process::start(&mut shell(&format!("exec {phone} --adb 127.0.0.1:0")));
    let address = phone.until("adb connect").split_whitespace().next_back().expect("an address").to_owned();
    assert!(install.contains("127.0.0.1:7355"), "{install}");
    assert!(run(&mut shell(&install.replace("127.0.0.1:7355", &address))).ok().out.contains("Success"));
    let mut gateway = Process::start(&mut shell(&format!("exec {serve}")));
    gateway.until("Ctrl-C");
    let listed = |arguments: &[&str]| run(adb.sinew(state.path()).args(arguments)).out;
    while !listed(&["phones", "apps"]).contains("example-alarm") {
        std::thread::sleep(Duration::from_millis(50));
    }
    // In a terminal, where somebody answers.
    let mut terminal = shell(&format!("exec script --quiet --return --command '{call}' /dev/null"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a terminal");
    terminal.stdin.take().expect("piped").write_all(b"y\n").expect("answered");
    let output = terminal.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("needs your approval"), "{said}");
    assert!(said.contains(&answer), "{said}");
}

#[test]
fn the_demo_has_an_app_whose_tools_can_be_tried() {
    let gateway = TestGateway::demo();
    let added = gateway.run(&["call", "sinew-shopping", "add_to_shopping_list", "item=two lemons"]).ok().out;
    assert!(added.contains("two lemons is on the list"), "{added}");
    let list = gateway.run(&["call", "sinew-shopping", "read_shopping_list"]).ok().out;
    assert_eq!(list.trim(), "two lemons");
}
