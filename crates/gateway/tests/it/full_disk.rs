//! A disk that is full: no call is made that could not be recorded, and it heals by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sinew_tool::json;

use crate::fake::*;

/// Set for the child: where its state is.
const STATE: &str = "SINEW_TEST_FULL_DISK_STATE";

/// What the child printed of one call: how it ended, and how many calls the device had executed by then.
struct Line {
    outcome: String,
    executed: u64,
}

#[test]
fn on_a_full_disk_no_call_is_made_unrecorded_and_it_heals_by_itself() {
    if let Ok(state) = std::env::var(STATE) {
        return call_until_told(state.as_ref());
    }
    let dir = tempfile::tempdir().unwrap();
    // A file size limit is a full disk without a disk; the signal that comes with it is ignored.
    let mut child = Command::new("sh")
        .args(["-c", "trap '' 25; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::on_a_full_disk_no_call_is_made_unrecorded_and_it_heals_by_itself", "--nocapture"])
        .env(STATE, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen: Vec<Line> = Vec::new();
    let mut until = |seen: &mut Vec<Line>, outcome: &str, count: usize| {
        let start = seen.len();
        while seen[start..].iter().filter(|line| line.outcome == outcome).count() < count {
            assert!(seen.len() - start < 20_000, "no call ended with {outcome}");
            let line = lines.next().expect("the child ended").unwrap();
            // The test harness prints to the same pipe.
            if let Some((outcome, executed)) = line.strip_prefix("call ").and_then(|line| line.split_once(' ')) {
                seen.push(Line { outcome: outcome.to_owned(), executed: executed.parse().unwrap() });
            }
        }
    };
    until(&mut seen, "ok", 50);
    limit_file_size(&child, "1:");
    until(&mut seen, "NotRecorded", 20);
    let before = seen.iter().find(|line| line.outcome == "NotRecorded").unwrap().executed;
    assert_eq!(seen.last().unwrap().executed, before, "calls were made although they could not be recorded");
    limit_file_size(&child, "unlimited:");
    until(&mut seen, "ok", 50);
    drop(child.stdin.take());
    let mut rest = String::new();
    for line in lines.map_while(Result::ok) {
        rest.push_str(&line);
        rest.push('\n');
    }
    assert!(child.wait().unwrap().success(), "{rest}");
    let total = |name: &str| -> usize {
        let line = rest.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    assert!(total("problems") > 0, "the gateway did not say that it cannot record calls");
    check(dir.path(), total("calls"), total("executed"));
}

/// Every call has one record, and what the device executed is recorded as done.
fn check(state: &Path, calls: usize, executed: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = gateway_in(state);
        let records = gateway.audit(10_000).await.unwrap();
        let numbers: std::collections::HashSet<_> = records.iter().map(|record| &record.args_digest).collect();
        assert_eq!((records.len(), numbers.len()), (calls, calls));
        assert_eq!(records.iter().filter(|record| record.outcome == "ok").count(), executed);
        let events = gateway.events(None, None, 100).await.unwrap().events;
        let of_gateway = events.iter().filter(|event| event.device == "gateway");
        let topics: Vec<_> = of_gateway.map(|event| format!("{} {}", event.device, event.topic)).collect();
        assert_eq!(topics, ["gateway sinew/store_failed", "gateway sinew/store_recovered"]);
    });
}

fn limit_file_size(child: &Child, limit: &str) {
    let set = Command::new("prlimit").args([&format!("--pid={}", child.id()), &format!("--fsize={limit}")]).status();
    assert!(set.expect("prlimit of util-linux is needed").success());
}

fn call_until_told(state: &Path) {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        told.store(true, Ordering::SeqCst);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let gateway = gateway_in(state);
        let device = join(&gateway, Fake::new(1, [plain("x")]));
        let (mut calls, mut problems) = (0, 0);
        while !stop.load(Ordering::SeqCst) {
            let outcome = match call(&gateway, "x", json!({ "number": calls })).await {
                Ok(_) => "ok",
                Err(error) => error.kind.row().error_type,
            };
            calls += 1;
            println!("call {outcome} {}", device.count());
            problems += usize::from(gateway.store_problem().is_some());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(gateway.store_problem(), None);
        println!("calls {calls}");
        println!("problems {problems}");
        println!("executed {}", device.count());
        std::io::stdout().flush().unwrap();
        gateway.close().await;
    });
}
