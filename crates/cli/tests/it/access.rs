//! Who may do what, as administrators and clients see it: policy, approvals and the audit, through the real program.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::gateway::{CommandOutput, Process, TestGateway, run, sinew};

const BOARD: &str = "board-000001";
const DEMO_BOARD: &str = "board-ddee01";
const SET_VOLUME: &str = "self.audio_speaker.set_volume";

/// A gateway with a configuration file and one virtual board.
struct RuledGateway {
    gateway: TestGateway,
    file: PathBuf,
    _board: Process,
}

impl RuledGateway {
    fn serve(policy: &str) -> RuledGateway {
        let state = tempfile::tempdir().expect("a folder");
        let file = state.path().join("sinew.toml");
        std::fs::write(&file, format!("state = '{}'\n{policy}", state.path().display())).expect("written");
        let gateway = TestGateway::open("serve", state, &["--config", &file.display().to_string()]);
        let command = ["sim", "board", "--connect", gateway.devices_url(), "--token", &gateway.own_token()];
        let board = Process::start(sinew(gateway.state.path()).args(command));
        gateway.wait_for(BOARD, "ready");
        RuledGateway { gateway, file, _board: board }
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.gateway.run(arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.gateway.json(arguments)
    }

    fn check(&self) -> CommandOutput {
        run(sinew(self.gateway.state.path()).args(["config", "check"]).arg(&self.file))
    }
}

#[test]
fn people_show_their_passphrase_and_what_they_allow_always_is_listed_and_revoked() {
    let rules = "[policy]\napprovals = 'passphrase'\n[[policy.rules]]\nid = 'loud'\ntools = ['*volume*']\ndo = 'ask'\nask = { wait = 0 }\n";
    let gateway = RuledGateway::serve(rules);
    let state = gateway.gateway.state.path();
    let passphrase = gateway.json(&["people", "add", "ada", "--role", "approver"])["passphrase"].clone();
    let passphrase = passphrase.as_str().expect("a passphrase");
    let call = ["call", BOARD, SET_VOLUME, "volume=30"];
    assert_eq!(gateway.run(&call).code, 77);
    assert_eq!(gateway.run(&["call", BOARD, SET_VOLUME, "volume=30", "--yes"]).code, 77, "no token confirms anything");
    let id = gateway.json(&["approvals"])["approvals"][0]["id"].as_str().expect("an id").to_owned();
    let refused = gateway.run(&["approvals", "approve", &id]);
    assert!(refused.code == 77 && refused.err.contains("--as NAME"), "{refused:?}");
    let decide = |typed: &str| {
        let mut command = sinew(state);
        let file = state.join("typed");
        std::fs::write(&file, format!("{typed}\n")).expect("written");
        command.stdin(std::fs::File::open(&file).expect("a file"));
        run(command.args(["approvals", "approve", &id, "--always", "--as", "ada"]))
    };
    assert_eq!(decide("a wrong passphrase").code, 77);
    let approved = decide(passphrase).ok();
    assert!(approved.out.starts_with("Always approved"), "{approved:?}");
    gateway.run(&call).ok();
    gateway.run(&call).ok();
    let grants = gateway.json(&["approvals", "grants"])["grants"].clone();
    assert_eq!((&grants[0]["id"], &grants[0]["by"]), (&json!(id), &json!("ada")), "{grants}");
    gateway.run(&["approvals", "revoke", &id]).ok();
    assert_eq!(gateway.run(&call).code, 77);
}

#[test]
fn a_call_that_asks_waits_for_a_person_and_goes_through_once_it_is_approved() {
    let gateway =
        RuledGateway::serve("[[policy.rules]]\nid = 'loud'\ntools = ['*volume*']\ndo = 'ask'\nask = { wait = 1 }\n");
    let token = gateway.json(&["token", "new", "--client", "tablet"])["token"].as_str().expect("a token").to_owned();
    let as_client = |arguments: &[&str]| {
        run(sinew(gateway.gateway.state.path()).args(arguments).args([
            "--url",
            gateway.gateway.url(),
            "--token",
            &token,
        ]))
    };
    let call = ["call", BOARD, SET_VOLUME, "volume=30"];
    let refused = as_client(&call);
    assert_eq!(refused.code, 77, "{refused:?}");
    assert!(refused.err.contains("sinew approvals approve"), "{refused:?}");

    let waiting = gateway.json(&["approvals"])["approvals"].clone();
    let id = waiting[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!((&waiting[0]["principal"], &waiting[0]["tool"]), (&json!("tablet"), &json!(SET_VOLUME)));
    // Client tokens never approve.
    assert_eq!(as_client(&["approvals", "approve", &id]).code, 77);
    gateway.run(&["approvals", "approve", &id]).ok();
    as_client(&call).ok();
    assert_eq!(as_client(&call).code, 77, "an approval is good for one call");
    assert_eq!(as_client(&["call", BOARD, SET_VOLUME, "volume=31"]).code, 77, "and for the same arguments");

    let records = gateway.json(&["audit", "--kind", "decision"])["records"].clone();
    assert_eq!((&records[0]["name"], &records[0]["outcome"]), (&json!("approve"), &json!("ok")));
    assert!(records[0]["args"].as_str().is_some_and(|details| details.contains("tablet")), "{records}");
}

#[test]
fn the_audit_is_shown_for_people_scripts_and_spreadsheets_and_verified() {
    let gateway = TestGateway::demo();
    gateway.run(&["call", DEMO_BOARD, SET_VOLUME, "volume=30"]).ok();
    gateway.run(&["devices", "rename", DEMO_BOARD, "Kitchen"]).ok();
    assert_ne!(gateway.run(&["call", DEMO_BOARD, "self.nothing"]).code, 0);

    let table = gateway.run(&["audit", "--device", DEMO_BOARD]).ok().out;
    assert!(table.contains(SET_VOLUME) && table.contains("rename_device"), "{table}");
    let failed = gateway.json(&["audit", "--outcome", "ToolNotFound", "--since", "1h"])["records"].clone();
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    let csv = gateway.run(&["audit", "--kind", "call", "--output", "csv"]).ok().out;
    assert!(csv.starts_with("id,time,kind,") && csv.contains("\"{\"\"volume\"\":30"), "{csv}");
    assert_eq!(gateway.run(&["devices", "--output", "csv"]).code, 2);
    assert_eq!(gateway.run(&["audit", "--since", "yesterday"]).code, 2);

    let check = gateway.json(&["audit", "verify"]);
    assert_eq!((&check["ok"], &check["problems"]), (&json!(true), &json!([])), "{check}");
    let TestGateway { state, mut process, .. } = gateway;
    process.kill();
    let state = state.path();
    assert!(run(sinew(state).args(["audit", "verify"])).ok().out.contains("The audit is whole"));
    edit(state, "UPDATE audit SET principal = 'nobody' WHERE id = 2");
    let broken = run(sinew(state).args(["audit", "verify"]));
    assert!(broken.code == 1 && broken.out.contains("record 2"), "{broken:?}");
}

/// Changes the store behind the gateway's back.
fn edit(state: &Path, sql: &str) {
    let file = [state.join("gateway.db"), state.join("demo/gateway.db")].into_iter().find(|file| file.exists());
    rusqlite::Connection::open(file.expect("a store")).and_then(|db| db.execute_batch(sql)).expect("changed");
}

#[test]
fn a_changed_file_is_taken_while_the_gateway_runs_and_a_wrong_one_is_not() {
    let gateway = RuledGateway::serve("");
    let file = gateway.file.clone();
    let base = std::fs::read_to_string(&file).expect("the file");
    let verdict = || gateway.json(&["policy", "explain", BOARD, SET_VOLUME])["verdict"].as_str().map(str::to_owned);
    let becomes = |expected: &str| {
        let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while verdict().as_deref() != Some(expected) {
            assert!(std::time::Instant::now() < ends, "the policy never said {expected}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    };
    assert_eq!(verdict().as_deref(), Some("allow"));
    let quiet = "[[policy.rules]]\nid = 'quiet'\ntools = ['*volume*']\ndo = 'deny'\n";
    std::fs::write(&file, format!("{base}{quiet}")).expect("written");
    becomes("deny");
    // A mistake keeps what is in force, and the next good file is taken again.
    std::fs::write(&file, format!("{base}[[policy.rules]]\nid = 'x'\ndo = 'deny'\nrate = 30\n")).expect("written");
    let checked = gateway.check();
    assert!(checked.code == 2 && checked.err.contains("sinew.toml:5: `policy.rules.rate`: "), "{checked:?}");
    assert!(checked.err.contains("expected a string") && checked.err.contains("for example `30/min`"), "{checked:?}");
    let problem = || gateway.json(&["status"])["config_problem"].as_str().map(str::to_owned);
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !problem().is_some_and(|problem| problem.contains("`policy.rules.rate`")) {
        assert!(std::time::Instant::now() < ends, "the status never shows the mistake");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let page = gateway.run(&["status"]).ok().out;
    assert!(page.contains("Configuration") && page.contains("sinew.toml:5"), "{page}");
    assert_eq!(verdict().as_deref(), Some("deny"));
    std::fs::write(&file, format!("{base}{}", quiet.replace("deny", "ask"))).expect("written");
    becomes("ask");
    assert_eq!(problem(), None);
}

#[test]
fn a_check_warns_of_rules_that_do_nothing() {
    let gateway = RuledGateway::serve(
        "[[policy.rules]]\nid = 'all'\ndo = 'deny'\ntools = ['*lock*']\n\
         [[policy.rules]]\nid = 'never'\ndo = 'allow'\ntools = ['*lock*']\n\
         [[policy.rules]]\nid = 'typo'\ndo = 'ask'\non = ['label:kichen']\n",
    );
    let check = gateway.check().ok().out;
    assert!(check.contains("`never` can never decide"), "{check}");
    assert!(check.contains("`label:kichen` matches no device"), "{check}");
    assert!(check.contains("is valid"), "{check}");
}

#[test]
fn a_check_tells_for_whom_there_is_a_rule_and_no_token() {
    let rules = "[[policy.rules]]\nid = 'a'\ndo = 'ask'\nwho = ['token:tablet', 'token:talbet', 'role:admin']\n\
                 [[policy.rules]]\nid = 'b'\ndo = 'ask'\nwho = ['oauth:ada', 'relay:board-1']\n";
    let RuledGateway { mut gateway, file, .. } = RuledGateway::serve(rules);
    gateway.run(&["token", "new", "--client", "tablet"]).ok();
    let text = std::fs::read_to_string(&file).expect("the file");
    // The state comes from the option alone, with and without a gateway that runs there.
    let apart = tempfile::tempdir().expect("a folder");
    let file = apart.path().join("sinew.toml");
    std::fs::write(&file, text.split_once('\n').expect("lines").1).expect("written");
    let state = gateway.state.path().display().to_string();
    let check = || run(sinew(apart.path()).args(["config", "check", "--state", &state]).arg(&file)).ok().out;
    for is_running in [true, false] {
        if !is_running {
            gateway.process.kill();
        }
        let checked = check();
        assert!(checked.contains("`token:talbet` is no caller") && checked.contains("`oauth:ada`"), "{checked}");
        assert!(!checked.contains("`token:tablet`") && !checked.contains("`relay:board-1`"), "{checked}");
    }
}

#[test]
fn steps_on_a_phone_are_decided_and_recorded_one_by_one() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    let policy = "[[policy.rules]]\nid = 'no'\ntools = ['press_home']\ndo = 'deny'\n\
                  [[policy.rules]]\nid = 'soon'\ntools = ['close_app']\ndo = 'ask'\nask = { wait = 0 }\n\
                  [[redact]]\ntools = ['input_text']\nargs = ['/text']\n";
    std::fs::write(&file, policy).expect("written");
    let gateway = TestGateway::open("demo", state, &["--config", &file.display().to_string()]);
    let steps = |steps: Value, more: &[&str]| {
        let args = json!({"steps": steps}).to_string();
        gateway.run(&[&["call", "virtual-phone", "run_steps", "--args", &args], more].concat())
    };
    let write = json!([
        {"tool": "open_app", "arguments": {"app": "Notes"}},
        {"tool": "click_element", "arguments": {"selector": {"description": "New note"}}},
        {"tool": "input_text", "arguments": {"selector": {"id": "note_title"}, "text": "hunter2"}},
        {"expect": {"screen": {"id": "note_title"}}, "within": 2000},
    ]);
    let done = steps(write, &[]).ok().out;
    assert!(done.contains("3. input_text: ") && done.contains("4. expect: as expected"), "{done}");
    let stopped = steps(json!([{"tool": "open_app", "arguments": {"app": "Clock"}}, {"tool": "press_home"}]), &[]);
    assert!(stopped.code != 0 && stopped.err.contains("'press_home' cannot be a step"), "{stopped:?}");
    let unknown = steps(json!([{"tool": "open_app", "arguments": {"app": "Clock"}}, {"tool": "press_what"}]), &[]);
    assert_eq!(stopped.err.replace("press_home", "press_what"), unknown.err, "hidden is like not there");
    let close = json!([{"tool": "close_app", "arguments": {"app": "Clock"}}]);
    let asked = steps(close.clone(), &[]);
    assert!(asked.code != 0 && asked.err.contains("wait for a person's approval"), "{asked:?}");
    steps(close, &["--yes"]).ok();
    let audit = gateway.json(&["audit"]);
    let kept = audit.to_string();
    assert!(!kept.contains("hunter2") && kept.contains("[redacted]"), "{kept}");
    let rows = audit["records"].as_array().expect("records").clone();
    let mut tools: Vec<&str> = rows.iter().filter_map(|row| row["tool"].as_str()).collect();
    tools.retain(|tool| ["open_app", "click_element", "input_text", "close_app", "run_steps"].contains(tool));
    assert_eq!(
        tools,
        [
            "open_app",
            "click_element",
            "input_text",
            "run_steps",
            "run_steps",
            "run_steps",
            "run_steps",
            "close_app",
            "run_steps"
        ]
    );
}

#[test]
fn whoever_may_not_look_at_a_screen_reads_it_nowhere() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    let looks =
        "'get_screen', 'find_elements', 'get_accessibility_tree', 'capture_screenshot', 'get_element', 'wait_*'";
    let policy = format!("[[policy.rules]]\nid = 'blind'\nwho = ['role:client']\ntools = [{looks}]\ndo = 'deny'\n");
    std::fs::write(&file, policy).expect("written");
    let gateway = TestGateway::open("demo", state, &["--config", &file.display().to_string()]);
    gateway.run(&["call", "virtual-phone", "open_app", "app=Notes"]).ok();
    let seen = gateway.run(&["call", "virtual-phone", "click_element", "selector={\"text\":\"New\",\"exact\":true}"]);
    assert!(seen.code != 0 && seen.err.contains("New note"), "an administrator is told what is like it: {seen:?}");
    let token = gateway.json(&["token", "new", "--client", "blind"])["token"].as_str().expect("a token").to_owned();
    let call = |tool: &str, arguments: Value| {
        let given = arguments.to_string();
        gateway.run(&["call", "virtual-phone", tool, "--args", &given, "--token", &token])
    };
    for (tool, arguments) in [
        ("click_element", json!({"selector": {"text": "New", "exact": true}})),
        ("click_element", json!({"selector": {"class": "View"}})),
        ("click_element", json!({"element_id": "e1", "return": "screen"})),
        ("press_home", json!({"return": "diff"})),
        ("open_app", json!({"app": "Notes", "return": "screen"})),
        (
            "run_steps",
            json!({"steps": [{"tool": "click_element", "arguments": {"selector": {"text": "New", "exact": true}}}]}),
        ),
    ] {
        let answer = call(tool, arguments);
        let told = format!("{}{}", answer.out, answer.err);
        assert!(!told.contains("New note") && !told.contains("app dev.sinew") && !told.contains('@'), "{tool}: {told}");
    }
}

#[test]
fn a_review_writes_what_is_chosen_into_the_file() {
    let gateway = RuledGateway::serve("");
    let unmarked = |gateway: &RuledGateway| gateway.json(&["policy", "review"])["tools"].as_array().map_or(0, Vec::len);
    let before = unmarked(&gateway);
    assert!(before > 0);
    let file = gateway.file.display().to_string();
    let written = gateway.run(&["policy", "review", "--write", &file, "--yes"]).ok().out;
    assert!(written.contains(&format!("effects of {before} tools")), "{written}");
    let text = std::fs::read_to_string(&gateway.file).expect("the file");
    assert!(text.contains("[[effects]]") && text.contains("device:"), "{text}");
    gateway.check().ok();
    let asked = gateway.run(&["policy", "review", "--write", &file]);
    assert!(asked.code == 2 && asked.err.contains("--yes"), "{asked:?}");
    let _: Value = gateway.json(&["policy", "review", "--all"]);
}

#[test]
fn the_journal_shows_the_screen_before_and_after_a_tap() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    std::fs::write(&file, "[journal]\non = true\n").expect("written");
    let gateway = TestGateway::open("demo", state, &["--config", &file.display().to_string()]);
    gateway.run(&["call", "virtual-phone", "press_home"]).ok();
    gateway.run(&["call", "virtual-phone", "open_app", "app=Notes"]).ok();
    let page = gateway.run(&["journal"]).ok().out;
    let (before, after) = (page.rfind("screen before:"), page.rfind("screen after:"));
    assert!(before.is_some() && before < after, "{page}");
    assert!(page[after.unwrap_or_default()..].contains("app dev.sinew.notes"), "{page}");
}
