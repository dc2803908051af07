//! Bad days of the machine: a full disk, a state directory that cannot be written, a clock that jumps, a damaged store.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::gateway::{CommandOutput, PORTS, Process, TestGateway, run, sinew};

/// Runs the program from a shell script, which has its arguments as `"$0" "$@"`.
fn in_shell(state: &Path, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_sinew"), "serve", "--output", "json"]).args(PORTS);
    shell.stdin(std::process::Stdio::null());
    for (name, value) in sinew(state).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn open(mut command: Command, state: tempfile::TempDir) -> TestGateway {
    let mut process = Process::start(&mut command);
    let page = serde_json::from_str(&process.line()).expect("a page");
    TestGateway { state, page, process }
}

/// The status of a call, and the type of its error.
fn call(gateway: &TestGateway, token: &str) -> (u16, Value) {
    let (status, body) = gateway.http("POST", "/api/v1/call", Some(token), r#"{"tool":"list_devices"}"#);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    (status, body["error"]["error_type"].clone())
}

/// What a check of the doctor says.
fn finding<'a>(doctor: &'a Value, name: &str) -> &'a Value {
    let checks = doctor["checks"].as_array().or_else(|| doctor["error_details"]["checks"].as_array());
    checks
        .unwrap_or_else(|| panic!("no checks: {doctor:#}"))
        .iter()
        .find(|check| check["name"] == name)
        .expect("a check")
}

fn doctor(state: &Path) -> (CommandOutput, Value) {
    let output = run(sinew(state).args(["doctor", "--output", "json"]));
    let text = if output.out.is_empty() { &output.err } else { &output.out };
    let checks = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, checks)
}

fn limit_file_size(gateway: &TestGateway, limit: &str) {
    let pid = format!("--pid={}", gateway.process.child.id());
    let set = Command::new("prlimit").args([&pid, &format!("--fsize={limit}")]).status();
    assert!(set.expect("prlimit of util-linux is needed").success());
}

#[test]
fn a_gateway_that_cannot_record_says_so_everywhere_until_it_can() {
    let state = tempfile::tempdir().expect("a folder");
    // A file size limit is a full disk without a disk; the signal that comes with it is ignored.
    let gateway = open(in_shell(state.path(), r#"trap "" 25; exec "$0" "$@""#), state);
    let token = gateway.own_token();
    assert_eq!((call(&gateway, &token).0, gateway.http("GET", "/ready", None, "").0), (200, 200));
    limit_file_size(&gateway, "1:");
    while call(&gateway, &token) != (503, json!("NotRecorded")) {}
    let (status, body) = gateway.http("GET", "/ready", None, "");
    assert_eq!((status, body.as_str()), (503, r#"{"ready":false,"reasons":["not_recording"]}"#));
    let shown = gateway.run(&["status"]).ok().out;
    assert!(shown.contains("not_recording") && shown.contains("calls are refused until it can be written"), "{shown}");
    assert!(gateway.json(&["status"])["store_problem"].is_string());
    let (output, checks) = doctor(gateway.state.path());
    let found = finding(&checks, "gateway");
    assert_eq!((output.code, &found["verdict"]), (1, &json!("fault")), "{checks:#}");
    assert!(found["message"].as_str().is_some_and(|text| text.contains("calls cannot be recorded: ")), "{found}");
    limit_file_size(&gateway, "unlimited:");
    while gateway.http("GET", "/ready", None, "").0 != 200 {}
    assert_eq!(call(&gateway, &token).0, 200);
    assert_eq!(finding(&doctor(gateway.state.path()).1, "gateway")["verdict"], "ok");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_refused_and_left_as_it_is() {
    let state = tempfile::tempdir().expect("a folder");
    let names = |state: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(state).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let mut gateway = open(in_shell(state.path(), r#"exec "$0" "$@""#), state);
    gateway.process.kill();
    let before = names(gateway.state.path());
    let folder = gateway.state.path().display();
    let read_only = format!("mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'");
    let enter = |script: &str| {
        let inside = format!("{read_only} && {script}");
        let script = r#"exec unshare --user --map-root-user --mount sh -c "$INSIDE" "$0" "$@""#;
        run(in_shell(gateway.state.path(), script).env("INSIDE", inside))
    };
    let refused = enter(r#"exec "$0" "$@""#);
    assert_eq!(refused.code, 74, "{refused:?}");
    let why = refused.json()["error_message"].to_string();
    assert!(why.contains(&folder.to_string()) && why.contains("mount it writable"), "{why}");
    let checked = enter(r#"exec "$0" doctor"#);
    assert!(checked.code == 1 && checked.out.contains("cannot be written"), "{checked:?}");
    assert_eq!(names(gateway.state.path()), before);
}

/// Shifts the time of day by the seconds in a file.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = syscall(SYS_clock_gettime, clock, now);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("TEST_CLOCK"), "r") : NULL;
    long shift = 0;
    if (file) {
        if (fscanf(file, "%ld", &shift) == 1) now->tv_sec += shift;
        fclose(file);
    }
    return answer;
}
"#;

const YEAR: i64 = 365 * 86_400;

#[test]
fn a_clock_that_jumps_loses_no_record_no_device_and_only_ends_tokens() {
    let state = tempfile::tempdir().expect("a folder");
    let tools = tempfile::tempdir().expect("a folder");
    let (source, library) = (tools.path().join("clock.c"), tools.path().join("clock.so"));
    std::fs::write(&source, SHIFTED_CLOCK).expect("written");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.expect("a C compiler is needed").success());
    let clock = tools.path().join("shift");
    let shift = |seconds: i64| {
        // In one step: a clock that is read meanwhile must not see an empty file.
        std::fs::write(tools.path().join("next"), seconds.to_string()).expect("written");
        std::fs::rename(tools.path().join("next"), &clock).expect("renamed");
    };
    let start = |state: tempfile::TempDir| {
        let mut command = in_shell(state.path(), r#"exec "$0" "$@""#);
        command.env("LD_PRELOAD", &library).env("TEST_CLOCK", &clock);
        open(command, state)
    };
    shift(0);
    let mut gateway = start(state);
    let mut board = Process::start(sinew(gateway.state.path()).args(["sim", "board"]));
    let key = "02:51:00:00:00:01";
    gateway.wait_for(key, "ready");
    board.kill();
    gateway.wait_for(key, "away");
    let own = gateway.own_token();
    let visitor = gateway.run(&["token", "new", "--client", "visitor", "--expires", "1d"]).ok().out.trim().to_owned();
    for (years, of_visitor) in [(0, 200), (10, 401), (-20, 200), (3, 401)] {
        shift(years * YEAR);
        assert_eq!((call(&gateway, &own).0, call(&gateway, &visitor).0), (200, of_visitor), "{years} years");
        gateway.wait_for(key, "away");
    }
    gateway.process.kill();
    shift(-YEAR);
    let gateway = start(gateway.state);
    gateway.wait_for(key, "away");
    assert_eq!(call(&gateway, &own).0, 200);
    let (_, audit) = gateway.http("GET", "/api/v1/audit?limit=100&kind=call", Some(&own), "");
    let audit: Value = serde_json::from_str(&audit).expect("JSON");
    let calls: Vec<&Value> = audit["records"].as_array().expect("records").iter().collect();
    // Four times two calls, of which two were refused before they were calls, and one after the new start.
    assert_eq!(calls.len(), 7, "{audit:#}");
    let ids: Vec<i64> = calls.iter().filter_map(|call| call["id"].as_i64()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "in the order in which they came: {ids:?}");
    gateway.run(&["audit", "verify"]).ok();
}

#[test]
fn a_damaged_page_is_named_by_the_start_and_the_doctor_and_nothing_is_changed() {
    let mut gateway = TestGateway::serve();
    let token = gateway.own_token();
    for _ in 0..50 {
        assert_eq!(call(&gateway, &token).0, 200);
    }
    let stopped = Command::new("kill").args(["-TERM", &gateway.process.child.id().to_string()]).status();
    assert!(stopped.expect("kill").success());
    gateway.process.child.wait().expect("it stops");
    let file = gateway.state.path().join("gateway.db");
    let mut bytes = std::fs::read(&file).expect("a store");
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    let mut noise = 1_u32;
    for byte in &mut bytes[middle..middle + 4_096] {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (noise >> 24) as u8;
    }
    std::fs::write(&file, &bytes).expect("written");
    let refused = run(sinew(gateway.state.path()).arg("serve").args(PORTS));
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("damaged") && refused.err.contains("restore it from a copy"), "{refused:?}");
    let (_, checks) = doctor(gateway.state.path());
    assert_eq!(finding(&checks, "store")["verdict"], "fault", "{checks:#}");
    assert!(std::fs::read(&file).expect("a store") == bytes, "the damaged store was changed");
}
