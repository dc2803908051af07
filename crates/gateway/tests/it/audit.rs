//! The audit is a chain: whatever is changed in the store behind the gateway's back is found.

use std::path::Path;

use rusqlite::Connection;
use sinew_gateway::{
    AuditFault, AuditFilter, AuditReport, Follow, Gateway, Principal, Role, Screens, Settings, verify_audit,
};
use sinew_tool::{Tool, Value, json};
use tempfile::TempDir;

use crate::fake::{Fake, call, gateway_in, join, plain};

/// A state directory with a closed chain of `count` calls, and one record of the device.
async fn recorded(count: usize) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [plain("x")]));
    for _ in 0..count {
        call(&gateway, "x", json!({})).await.unwrap();
    }
    gateway.close().await;
    dir
}

fn tamper(dir: &Path, sql: &str) {
    let changed = Connection::open(dir.join("gateway.db")).unwrap().execute_batch(sql);
    changed.unwrap();
}

fn faults(report: &AuditReport) -> Vec<(AuditFault, i64)> {
    report.problems.iter().map(|problem| (problem.fault, problem.record)).collect()
}

#[tokio::test]
async fn an_untouched_audit_is_whole_while_the_gateway_runs_and_after() {
    let dir = recorded(5).await;
    let report = verify_audit(dir.path()).unwrap();
    assert_eq!((faults(&report), report.records, report.sealed_until), (vec![], 6, Some(6)));
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [plain("x")]));
    call(&gateway, "x", json!({})).await.unwrap();
    let report = gateway.verify_audit().await.unwrap();
    assert_eq!((faults(&report), report.records, report.checked_until, report.sealed_until), (vec![], 7, 7, Some(6)));
}

#[tokio::test]
async fn every_kind_of_tampering_is_found_and_named() {
    let cases: &[(&str, &str, (AuditFault, i64))] = &[
        ("a changed caller", "UPDATE audit SET principal = 'eve' WHERE id = 3", (AuditFault::Changed, 3)),
        ("a changed outcome", "UPDATE audit SET outcome = 'ok ' WHERE id = 3", (AuditFault::Changed, 3)),
        ("another device", "UPDATE audit SET device = NULL WHERE id = 3", (AuditFault::Changed, 3)),
        (
            "a text moved between fields",
            "UPDATE audit SET door = '', name = door || name WHERE id = 3",
            (AuditFault::Changed, 3),
        ),
        ("changed arguments", "UPDATE audit SET args = '{\"a\":1}' WHERE id = 3", (AuditFault::Changed, 3)),
        ("a record taken out of the chain", "UPDATE audit SET hash = NULL WHERE id = 3", (AuditFault::Changed, 3)),
        ("a gap", "DELETE FROM audit WHERE id = 3", (AuditFault::Gap, 3)),
        ("the first record removed", "DELETE FROM audit WHERE id = 1", (AuditFault::Gap, 1)),
        ("the newest removed", "DELETE FROM audit WHERE id >= 5", (AuditFault::CutTail, 5)),
        ("all removed", "DELETE FROM audit", (AuditFault::CutTail, 1)),
        (
            "the newest and their seal removed",
            "DELETE FROM audit WHERE id >= 5; DELETE FROM seals",
            (AuditFault::CutTail, 1),
        ),
        (
            "another order",
            "UPDATE audit SET id = 99 WHERE id = 3; UPDATE audit SET id = 3 WHERE id = 4; UPDATE audit SET id = 4 WHERE id = 99",
            (AuditFault::Changed, 3),
        ),
        ("a forged seal", "UPDATE seals SET hash = zeroblob(32)", (AuditFault::Seal, 6)),
        ("a shortened seal", "UPDATE seals SET last = 4", (AuditFault::Seal, 4)),
    ];
    for (what, sql, expected) in cases {
        let dir = recorded(5).await;
        tamper(dir.path(), sql);
        let found = faults(&verify_audit(dir.path()).unwrap());
        assert!(found.contains(expected), "{what}: {found:?}");
        // A gateway that goes on with such a store hides nothing.
        let gateway = gateway_in(dir.path());
        join(&gateway, Fake::new(1, [plain("x")]));
        call(&gateway, "x", json!({})).await.unwrap();
        let found = faults(&gateway.verify_audit().await.unwrap());
        assert!(!found.is_empty(), "{what}, and the gateway went on");
    }
}

#[tokio::test]
async fn whoever_has_no_key_cannot_rewrite_what_is_sealed() {
    let dir = recorded(5).await;
    // The whole chain made again without record 3, as somebody could who reads this code.
    tamper(dir.path(), "DELETE FROM audit WHERE id = 3; UPDATE audit SET id = id - 1, hash = NULL WHERE id > 3");
    assert!(!verify_audit(dir.path()).unwrap().problems.is_empty());
    let seals = dir.path().join("audit.seals");
    let text = std::fs::read_to_string(&seals).unwrap();
    std::fs::write(&seals, text.replace("\"last\":6", "\"last\":5")).unwrap();
    let found = verify_audit(dir.path()).unwrap();
    assert!(found.problems.iter().any(|problem| problem.fault == AuditFault::Seal), "{found:?}");
}

#[tokio::test]
async fn a_restored_older_copy_of_the_database_is_found() {
    let dir = recorded(3).await;
    let old = std::fs::read(dir.path().join("gateway.db")).unwrap();
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [plain("x")]));
    call(&gateway, "x", json!({})).await.unwrap();
    gateway.close().await;
    std::fs::write(dir.path().join("gateway.db"), old).unwrap();
    let report = verify_audit(dir.path()).unwrap();
    assert_eq!(faults(&report), [(AuditFault::CutTail, 5)]);
    assert!(report.problems[0].message.contains("older copy"), "{report:?}");
}

#[tokio::test]
async fn a_line_that_power_loss_tore_is_no_problem() {
    let dir = recorded(3).await;
    let seals = dir.path().join("audit.seals");
    let mut text = std::fs::read_to_string(&seals).unwrap();
    text.push_str("{\"first\":5,\"la");
    std::fs::write(&seals, text).unwrap();
    gateway_in(dir.path()).close().await;
    assert_eq!(faults(&verify_audit(dir.path()).unwrap()), []);
}

#[tokio::test]
async fn retention_removes_whole_seals_and_breaks_no_chain() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let settings = Settings { state_dir: Some(dir.path().to_owned()), max_audit: 1_500, ..Settings::default() };
        Gateway::open(settings).unwrap()
    };
    for _ in 0..2 {
        let gateway = open();
        for _ in 0..3_100 {
            assert!(call(&gateway, "nothing", json!({})).await.is_err());
        }
        let report = gateway.verify_audit().await.unwrap();
        assert_eq!(faults(&report), []);
        assert!(report.removed_until.is_some_and(|until| until >= 1_000), "{report:?}");
        gateway.close().await;
        assert_eq!(faults(&verify_audit(dir.path()).unwrap()), []);
    }
    // Removing more than whole seals is no retention.
    tamper(dir.path(), "DELETE FROM audit WHERE id <= (SELECT min(id) FROM audit) + 10");
    assert!(faults(&verify_audit(dir.path()).unwrap()).iter().any(|(fault, _)| *fault == AuditFault::Gap));
}

#[tokio::test]
async fn the_audit_of_the_first_version_is_kept_and_the_chain_begins_after_it() {
    let dir = crate::upgrade::old_state();
    let gateway = gateway_in(dir.path());
    let old = gateway.find_records(AuditFilter::default(), 100).await.unwrap();
    assert!(!old.is_empty() && old.iter().all(|record| record.args_digest.is_empty()), "{old:?}");
    assert!(call(&gateway, "nothing", json!({})).await.is_err());
    let report = gateway.verify_audit().await.unwrap();
    assert_eq!((faults(&report), report.unchained, report.records), (vec![], old.len() as u64, 1));
}

#[tokio::test]
async fn secrets_in_arguments_are_not_kept() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string", "writeOnly": true}, "door": {}}});
    join(&gateway, Fake::new(1, [Tool::new("unlock", "", schema)]));
    call(&gateway, "unlock", json!({"pin": "4711", "door": "front"})).await.unwrap();
    // A tool that does not exist: nobody knows what its arguments are.
    assert!(call(&gateway, "unlok", json!({"pin": "4711"})).await.is_err());
    let records = gateway.audit(10).await.unwrap();
    let args: Vec<&str> = records.iter().map(|record| record.args.as_str()).collect();
    assert_eq!(args, [r#"{"pin":"[redacted]"}"#, r#"{"pin":"[redacted]","door":"front"}"#]);
    // The digest tells equal arguments from others, and needs the key.
    assert_ne!(records[1].args_digest, sha256_of(&json!({"pin": "4711", "door": "front"})));
}

fn sha256_of(value: &Value) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn what_administrators_change_is_recorded_too() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    join(&gateway, Fake::new(1, [plain("x")]));
    let who = Principal::new("ada", Role::Admin);
    let device = gateway.find_device("board-0001").map(|device| device.id);
    gateway.record_change(&who, "rename_device", device, json!({"name": "Lamp"}), None);
    let records = gateway.find_records(AuditFilter::default(), 10).await.unwrap();
    let told =
        |index: usize| (records[index].kind.as_str(), records[index].name.as_str(), records[index].principal.as_str());
    assert_eq!((told(0), told(1)), (("change", "rename_device", "ada"), ("device", "new_device", "")));
    assert_eq!(records[0].device.as_deref(), Some("board-0001"));
}

#[tokio::test]
async fn the_journal_keeps_answers_without_secrets_and_only_while_it_is_on() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}});
    let mut secretive = Tool::new("tell", "", json!({"type": "object"}));
    secretive.output_schema =
        Some(std::sync::Arc::new(json!({"type": "object", "properties": {"key": {"writeOnly": true}}})));
    join(&gateway, Fake::new(1, [Tool::new("unlock", "", schema), secretive]));
    call(&gateway, "unlock", json!({"pin": "1"})).await.unwrap();
    assert!(!gateway.has_journal() && gateway.find_journal(0, None, 10).unwrap().is_empty());

    let recording = gateway.record_journal();
    call(&gateway, "unlock", json!({"pin": "4711"})).await.unwrap();
    call(&gateway, "tell", json!({})).await.unwrap();
    assert!(call(&gateway, "unlock", json!({"pin": 4711})).await.is_err());
    drop(recording);
    call(&gateway, "unlock", json!({"pin": "2"})).await.unwrap();

    let kept = gateway.find_journal(0, Some("board-0001"), 10).unwrap();
    let tools: Vec<&str> = kept.iter().map(|entry| entry.tool.as_str()).collect();
    assert_eq!(tools, ["unlock", "tell", "unlock"]);
    assert!(kept.iter().all(|entry| !format!("{:?}", entry.args).contains("4711")), "{kept:?}");
    assert!(kept[0].result.is_ok() && kept[2].result.is_err());
    assert!(format!("{:?}", kept[1].result).contains("redacted"), "{:?}", kept[1].result);
    assert_eq!(gateway.find_journal(kept[1].id, None, 10).unwrap().len(), 1);
    // What was typed may stand on the screen.
    assert!(kept.iter().all(|entry| entry.screens == Screens::default()), "{kept:?}");
}

#[tokio::test]
async fn the_journal_keeps_what_a_device_showed_before_and_after_it_acted() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    let mut look = Tool::new("look", "", json!({"type": "object"}));
    look.hints.read_only = Some(true);
    join(&gateway, Fake::new(1, [Tool::new("press", "", json!({"type": "object"})), look]));
    let _recording = gateway.record_journal();
    gateway.pin("board-0001", Follow::Nothing).unwrap();
    call(&gateway, "press", json!({})).await.unwrap();
    call(&gateway, "look", json!({})).await.unwrap();
    let kept = gateway.find_journal(0, None, 10).unwrap();
    let screens = |text: &str| Some(text.to_owned());
    assert_eq!(kept[0].screens, Screens { before: screens("0 calls so far"), after: screens("1 calls so far") });
    assert_eq!(kept[1].screens, Screens::default());
}
