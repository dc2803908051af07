//! A gateway that is killed has forgotten no call that it answered.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use sinew_tool::json;

use crate::fake::*;

/// Set for the child: where its state is.
const STATE: &str = "SINEW_TEST_KILLED_STATE";

#[test]
fn an_answered_call_survives_kill_9() {
    if let Ok(state) = std::env::var(STATE) {
        return answer_for_ever(state.as_ref());
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::an_answered_call_survives_kill_9", "--nocapture"])
        .env(STATE, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answered = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while answered.len() < 300 {
        let line = lines.next().unwrap().unwrap();
        answered.extend(line.strip_prefix("answered ").map(|number| number.parse::<u64>().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        answered.extend(line.strip_prefix("answered ").and_then(|number| number.parse::<u64>().ok()));
    }

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = gateway_in(dir.path());
        let records = gateway.audit(1_000_000).await.unwrap();
        let remembered: std::collections::HashSet<String> = records.iter().map(|record| record.args.clone()).collect();
        assert_eq!(remembered.len(), records.len(), "a call was written twice");
        for number in &answered {
            assert!(
                remembered.contains(&json!({ "number": number }).to_string()),
                "call {number} was answered and is lost"
            );
        }
        let report = gateway.verify_audit().await.unwrap();
        assert!(report.problems.is_empty() && report.records >= records.len() as u64, "{report:?}");
        assert_eq!(gateway.find_device("Lamp").unwrap().state, "away");
        assert_eq!(device_tools(&gateway), ["x"]);
    });
}

fn answer_for_ever(state: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = gateway_in(state);
        join(&gateway, Fake::new(1, [plain("x")]));
        gateway.rename("board-0001", "Lamp").unwrap();
        let callers = (0..8u64).map(|caller| {
            let gateway = gateway.clone();
            tokio::spawn(async move {
                for round in 0..u64::MAX / 8 {
                    let number = round * 8 + caller;
                    call(&gateway, "x", json!({ "number": number })).await.unwrap();
                    let mut out = std::io::stdout().lock();
                    // The reader is gone when the parent has seen enough.
                    if writeln!(out, "answered {number}").and_then(|()| out.flush()).is_err() {
                        return;
                    }
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
    });
}
