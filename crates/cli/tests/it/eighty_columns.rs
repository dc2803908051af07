//! Everything that the program prints for people fits a terminal of 80 columns. Each command of `docs/cli.md` is run,
//! or is named here with the reason why it is not.

use std::path::Path;
use std::process::Stdio;

use crate::gateway::{PORTS, Process, run};
use crate::terminal::{COLUMNS, in_terminal};

/// A word longer than this cannot be broken in a column of its own: a path, an address, a token.
const LONG_WORD: usize = 40;

/// Command lines, run from top to bottom in a folder with the files of [`prepare`].
const RUNS: &[&str] = &[
    "status",
    "connect",
    "connect --client cursor",
    "backup all.tar",
    "backup all.tar",
    "restore all.tar",
    "connect --list",
    "connect cursor --print",
    "devices",
    "devices show board-ddee01",
    "devices show virtual-phone",
    "devices show sinew-shopping",
    "devices show nobody",
    "devices rename board-ddee02 kitchen",
    "devices label board-ddee01 living-room",
    "devices reserve board-ddee01 --purpose repair",
    "devices release board-ddee01",
    "devices unlabel board-ddee01 living-room",
    "devices pin board-ddee01",
    "devices pin board-ddee02 --follow minor",
    "devices changes board-ddee01",
    "devices changes board-ddee03",
    "devices accept board-ddee01 0123456789abcdef",
    "devices unpin board-ddee01",
    "devices forget board-ddee04",
    "boards",
    "boards approve 123456",
    "servers add http://192.0.2.7/a/rather/long/path/to/the/endpoint/of/this/server/mcp --name oven --label kitchen",
    "servers add http://127.0.0.1/mcp",
    "servers",
    "servers list",
    "servers remove oven",
    "servers remove oven",
    "cluster",
    "serial",
    "phones",
    "phones apps",
    "health",
    "manual pages",
    "tools",
    "tools virtual-phone",
    "tools show self_audio_speaker_set_volume",
    "tools show run_steps",
    "tools show get_screen",
    "tools show nothing",
    "call board-ddee01 self.audio_speaker.set_volume volume=40",
    "call board-ddee01 self.audio_speaker.set_volume volume=400",
    "call virtual-phone run_steps steps=[{\"tool\":\"open_app\",\"arguments\":{\"app\":\"No_such_app_on_this_phone\"}}] --yes",
    "call virtual-phone find_elements by=text value=nothing --timeout 1ms",
    "events",
    "token new --client a-client-with-a-rather-long-name --expires 30d",
    "token list",
    "token revoke nothing",
    "console --print",
    "people",
    "people add a-person-with-a-rather-long-name --role approver",
    "people",
    "people remove a-person-with-a-rather-long-name",
    "people remove nobody",
    "sign-ins",
    "sign-ins end nothing",
    "approvals",
    "approvals show WAITING",
    "approvals deny WAITING",
    "approvals approve nothing",
    "approvals grants",
    "approvals revoke nothing",
    "audit",
    "audit --outcome Timeout",
    "audit verify",
    "journal",
    "routine lint good_night.md bad.md",
    "routine explain good_night.md",
    "routine show good_night.md",
    "routine run good_night.md",
    "routine explain missing.md",
    "routine run nothing",
    "routine new wake_up",
    "policy explain virtual-phone run_steps",
    "policy test expectations.toml --config sinew.toml",
    "policy review",
    "policy review --all",
    "spec new set_alarm -o blank.md",
    "spec lint blank.md",
    "spec lint old.md --strict",
    "spec rules",
    "spec explain unfilled",
    "spec explain nothing",
    "spec diff old.md new.md",
    "spec lock old.md",
    "app scaffold blank.md --form activity",
    "app scaffold old.md --form activity --package com.example.alarm -o alarm",
    "app lint alarm",
    "app inspect alarm",
    "app rules",
    "app explain caller-check",
    "app explain nothing",
    "config check sinew.toml",
    "config check bad.toml",
    "doctor",
    "doctor --url localhost:1",
    "demo --story",
    "call board-ddee01",
    "devises",
    "serve --listen nowhere",
    "--version",
];

/// Commands whose output is a document, code or data, which is printed as it is.
const DOCUMENTS: &[&str] = &["completions", "config schema", "spec render", "spec from", "spec add"];

/// Commands that run until they are stopped, measure, or need a phone on adb or another server.
const NOT_RUN: &[&str] = &[
    "demo",
    "serve",
    "stdio",
    "endpoint",
    "bench",
    "phones connect",
    "phones disconnect",
    "phones pair",
    "phones install",
    "phones install-companion",
    "phones pull",
    "phones push",
    "phones record",
    "sim board",
    "sim fleet",
    "sim http-board",
    "sim phone",
    "sim voice",
    "routine record",
    "routine test",
    "sim say",
];

fn commands() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let names = page.lines().filter_map(|line| line.strip_prefix("## sinew ")).map(str::to_owned);
    names.filter(|name| !name.split(' ').any(|word| word == "help")).collect()
}

/// The commands that have no commands below them, and those that do something by themselves.
fn leaves(commands: &[String]) -> impl Iterator<Item = &String> {
    let is_group = |name: &str| commands.iter().any(|other| other.starts_with(&format!("{name} ")));
    let acts_alone = ["devices", "boards", "servers", "phones", "tools", "approvals", "audit"];
    commands.iter().filter(move |name| !is_group(name) || acts_alone.contains(&name.as_str()))
}

fn prepare(folder: &Path) {
    let page =
        |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools").join(name));
    let gestures = page("gestures.md").expect("a page");
    let routine = "# Good night\n\n### `good_night`\n\nSwitches everything off that should not be on at night.\n\n**Steps**\n\n```yaml\n- call: self.set_relay\n  device: board-ddee03\n  arguments: {channel: 1, on: false}\n- call: self.no_such_tool\n  device: board-ddee03\n```\n";
    for (name, text) in [
        ("old.md", gestures.as_str()),
        ("new.md", &gestures.replace("pinch", "squeeze")),
        ("good_night.md", routine),
        ("bad.md", "# Nothing\n"),
        ("sinew.toml", "[policy]\ndanger = 'deny'\n"),
        ("bad.toml", "lisen = '127.0.0.1:0'\n"),
        (
            "expectations.toml",
            "[[expect]]\nwho = 'role:client'\ntool = 'self.unlock_the_front_door'\neffect = 'danger'\nverdict = 'allow'\n",
        ),
    ] {
        std::fs::write(folder.join(name), text).expect("written");
    }
}

fn too_wide(screen: &str) -> Option<&str> {
    let fits = |line: &&str| {
        let last = line.split(' ').next_back().unwrap_or_default();
        line.chars().count() <= COLUMNS || last.chars().count() > LONG_WORD
    };
    screen.lines().find(|line| !fits(line))
}

#[test]
fn every_command_is_tried() {
    let commands = commands();
    let is_run = |name: &str| RUNS.iter().any(|line| format!("{line} ").starts_with(&format!("{name} ")));
    let known = |name: &str| DOCUMENTS.contains(&name) || NOT_RUN.contains(&name) || is_run(name);
    let missing: Vec<&String> = leaves(&commands).filter(|name| !known(name)).collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
    let gone: Vec<&&str> =
        DOCUMENTS.iter().chain(NOT_RUN).filter(|name| !commands.iter().any(|one| one == **name)).collect();
    assert!(gone.is_empty(), "no such commands: {gone:?}");
}

#[test]
fn help_fits_the_terminal() {
    let home = tempfile::tempdir().expect("a folder");
    let mut problems = Vec::new();
    for name in commands() {
        let words: Vec<&str> = name.split(' ').chain(["--help"]).collect();
        let shown = run(&mut in_terminal(home.path(), &words)).ok().out;
        problems.extend(too_wide(&shown).map(|line| format!("{name} --help: {line}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_commands_print_fits_the_terminal() {
    let home = tempfile::tempdir().expect("a folder");
    prepare(home.path());
    let mut demo = Process::start(&mut in_terminal(home.path(), &[&["demo"], &PORTS[..]].concat()));
    demo.until("Ctrl-C");
    // A call that waits for somebody.
    let close = ["call", "virtual-phone", "close_app", "app=Notes"];
    let mut waiting = in_terminal(home.path(), &close).stderr(Stdio::piped()).spawn().expect("a call");
    let mut said = std::io::BufReader::new(waiting.stderr.take().expect("piped"));
    let mut announced = String::new();
    while !announced.contains("denies it") {
        assert_ne!(std::io::BufRead::read_line(&mut said, &mut announced).expect("a line"), 0, "{announced}");
    }
    let id =
        announced.split("approvals deny ").nth(1).and_then(|rest| rest.split('`').next()).expect("an id").to_owned();
    let mut problems: Vec<String> =
        too_wide(&announced).map(|line| format!("a call that waits: {line}")).into_iter().collect();
    for line in RUNS {
        let line = line.replace("WAITING", &id);
        let words: Vec<&str> = line.split(' ').collect();
        let output = run(in_terminal(home.path(), &words).current_dir(home.path()));
        let screen = format!("{}{}", output.out, output.err);
        assert!(!screen.trim().is_empty() || line.starts_with("spec new"), "{line} prints nothing");
        // What a tool answers is printed as it is.
        let people = if line.starts_with("call ") && output.code == 0 { &output.err } else { &screen };
        problems.extend(too_wide(people).map(|wide| format!("{line}: {wide}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(!waiting.wait().expect("it ends").success(), "the call was denied");
}
