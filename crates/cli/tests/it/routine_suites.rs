//! Routines on several phones at once, and a run whose gateway is killed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gateway::{Process, TestGateway, run, sinew};
use crate::phones::Adb;

const PHONES: usize = 4;

/// A routine with a parameter `device`, whose default is `default`.
fn routine(name: &str, default: &str, steps: &str) -> String {
    let text = include_str!("follow.md").replace("follow", name);
    let start = text.find("```yaml\n").expect("steps") + "```yaml\n".len();
    let schema = json!({
        "type": "object",
        "properties": {"device": {"type": "string", "description": "The device.", "default": default, "examples": [default]}},
    });
    let input = text.find("### 3.").expect("parameters");
    let output = text.find("### 4.").expect("an answer");
    format!(
        "{}### 3. Input Schema (Parameters)\n\n| Parameter Name | Type | Required | Description | Example Value |\n\
         |---|---|---|---|---|\n| `device` | string | No | The device. | `{default}` |\n\n\
         **JSON Schema**:\n\n```json\n{schema}\n```\n\n{}{steps}```\n",
        &text[..input],
        &text[output..start]
    )
}

/// Polls until something is so.
fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let ends = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < ends, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_suite_runs_on_four_virtual_phones_and_says_what_it_cannot_bind() {
    let Some(adb) = Adb::start() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let count = PHONES.to_string();
    let phones = ["sim", "phone", "--adb", "127.0.0.1:0", "--count", &count, "--lock", "none", "--output", "json"];
    let mut phones = Process::start(adb.sinew(state.path()).args(phones));
    let page: serde_json::Value = serde_json::from_str(&phones.line()).expect("a page");
    let config = state.path().join("sinew.toml");
    std::fs::write(&config, "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = 'off'\n").expect("written");
    let mut gateway = Process::start(adb.sinew(state.path()).args(["serve", "--config"]).arg(&config));
    gateway.until("Ctrl-C");
    let ours = |arguments: &[&str]| run(adb.sinew(state.path()).args(arguments));
    for address in page["phones"].as_array().into_iter().flatten().filter_map(|address| address.as_str()) {
        ours(&["phones", "connect", address]).ok();
    }
    let ids = wait_until("the phones come by themselves", || {
        let page = ours(&["phones", "--output", "json"]).ok().json();
        let phones = page["phones"].as_array()?.clone();
        let ready = phones.iter().filter(|phone| phone["state"] == "ready");
        let ids: Vec<String> = ready.filter_map(|phone| phone["id"].as_str().map(str::to_owned)).collect();
        (ids.len() == PHONES).then_some(ids)
    });
    for id in &ids {
        ours(&["devices", "label", id, "ci"]).ok();
    }

    let folder = state.path().join("suite");
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.join(format!("{name}.md")), text).expect("written");
    let open = "- call: open_app\n  device: \"${device}\"\n  arguments: {app: Notes, settle: true}\n";
    let see = "- expect: {screen: {id: \"new_note\"}, device: \"${device}\"}\n  within: 5000\n";
    write("open_notes", routine("open_notes", &ids[0], &format!("{open}{see}- return: {{status: success}}\n")));
    write(
        "fixed",
        routine("fixed", &ids[0], "- return: {status: success}\n")
            .replace("`device`", "`room`")
            .replace("\"device\"", "\"room\""),
    );
    let suite = folder.display().to_string();
    let junit = state.path().join("out.xml").display().to_string();
    let html = state.path().join("out.html").display().to_string();
    // A report that cannot be written is refused before anything runs.
    let told = ours(&["routine", "test", &suite, "--on", "label:ci", "--junit", "/nowhere/out.xml", "--html", &html]);
    assert!(
        told.code != 0 && told.out.is_empty() && told.err.contains("/nowhere/out.xml cannot be written"),
        "{told:?}"
    );
    assert!(!std::path::Path::new(&html).exists());
    let told = ours(&["routine", "test", &suite, "--on", "label:ci", "--junit", &junit, "--html", &html]).ok();
    for id in &ids {
        assert!(told.out.contains(&format!("open_notes on {id}")), "{told:?}");
    }
    assert!(told.err.contains("fixed runs once"), "{told:?}");
    let report = std::fs::read_to_string(&junit).expect("a report");
    assert_eq!(report.matches("<testsuite name=").count(), PHONES + 1, "{report}");
    let report = std::fs::read_to_string(&html).expect("a report");
    assert!(report.contains(&format!("0 of {} runs failed", PHONES + 1)), "{report}");
    let pictures = report.matches("<img alt=\"The screen\" src=\"data:image/").count();
    assert_eq!(pictures, 2 * PHONES, "one after each step on a phone");

    // What is expected is not there: the step, the app and what is most like it.
    let wrong = see.replace("{id: \"new_note\"}", "{description: \"New notes\", exact: true}").replace("5000", "0");
    write("open_notes", routine("open_notes", &ids[0], &format!("{open}{wrong}- return: {{status: success}}\n")));
    let told = ours(&["routine", "test", &suite, "--on", &ids[0]]);
    assert!(told.code == 1 && told.out.contains("step 2 (expect)") && told.out.contains("\"New note\""), "{told:?}");
    // What is returned is not what the specification promises.
    write("open_notes", routine("open_notes", &ids[0], "- return: {status: 5}\n"));
    let told = ours(&["routine", "test", &suite]);
    assert!(told.code == 1 && told.out.contains("does not fit its output schema"), "{told:?}");
}

#[test]
fn a_run_ends_with_its_gateway_and_the_audit_has_what_was_done() {
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().join("routines");
    std::fs::create_dir_all(&folder).expect("a folder");
    let steps = "- call: self.get_relays\n  device: \"${device}\"\n- wait: 60000\n\
                 - call: self.read_sensors\n  device: \"${device}\"\n- return: {status: success}\n";
    std::fs::write(folder.join("slow.md"), routine("slow", "board-000001", steps)).expect("written");
    let config = state.path().join("sinew.toml");
    std::fs::write(&config, "# Only defaults.\n").expect("written");
    let config = config.display().to_string();
    let mut gateway = TestGateway::open("serve", state, &["--config", &config]);
    let (url, token) = (gateway.devices_url().to_owned(), gateway.own_token());
    let board = ["sim", "board", "--kind", "relay", "--connect", &url, "--token", &token, "--first", "1"];
    let _board = Process::start(sinew(gateway.state.path()).args(board));
    gateway.wait_for("02:51:00:00:00:01", "ready");
    let mut running = sinew(gateway.state.path());
    let mut running =
        Process::start(running.args(["routine", "run", "slow"]).stdin(Stdio::null()).stderr(Stdio::null()));
    // The first step is shown while the second waits.
    running.until("ok     1. self.get_relays");
    let step = wait_until("the step is recorded", || {
        let audit = gateway.json(&["audit", "--limit", "20"]);
        audit["records"].as_array()?.iter().find(|record| record["tool"] == "self.get_relays").cloned()
    });
    let id = step["run"].as_str().expect("a run").to_owned();
    gateway.process.kill();
    assert!(!running.child.wait().expect("it ends").success());

    let TestGateway { state, .. } = gateway;
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    gateway.run(&["audit", "verify"]).ok();
    let done = gateway.json(&["audit", "--run", &id]);
    let tools: Vec<_> = done["records"].as_array().into_iter().flatten().map(|record| record["tool"].clone()).collect();
    assert_eq!(tools, [json!("self.get_relays")], "{done}");
    let run = format!("run={id}");
    let asked = wait_until("the routines are there again", || {
        let asked = gateway.run(&["call", "routines", "get_run", &run]);
        asked.err.contains("run").then_some(asked)
    });
    assert!(asked.code != 0 && asked.err.contains("the audit has the steps"), "{asked:?}");
}
