//! The audit is a chain: whatever is changed in the store behind the gateway's back is found.

use std::path::Path;

use rusqlite::Connection;
use sinew_gateway::{
    AuditFault, AuditFilter, AuditReport, Follow, Gateway, Principal, Role, Screens, Settings, check_state,
    verify_audit,
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
        (
            "a record before the first",
            "INSERT INTO audit SELECT -5, at, principal, door, device, tool, name, args_digest, args, outcome, duration_us, bytes, kind, kept, hash, version, text_digest, caller, decided, run FROM audit WHERE id = 3",
            (AuditFault::Changed, -5),
        ),
        (
            "a record of no version before the first",
            "INSERT INTO audit (id, at, principal, door, name, args_digest, args, outcome, duration_us, bytes) VALUES (0, 1, '', '', '', x'', '', '', 0, 0)",
            (AuditFault::Changed, 0),
        ),
        ("another version", "UPDATE audit SET version = 1 WHERE id = 3", (AuditFault::Changed, 3)),
        ("another caller id", "UPDATE audit SET caller = 'x' WHERE id = 3", (AuditFault::Changed, 3)),
        ("another decision", "UPDATE audit SET decided = NULL WHERE id = 3", (AuditFault::Changed, 3)),
        ("another run", "UPDATE audit SET run = 'x' WHERE id = 3", (AuditFault::Changed, 3)),
        ("a number in place of a text", "UPDATE audit SET outcome = x'6f6b' WHERE id = 3", (AuditFault::Changed, 3)),
        ("a text in place of a hash", "UPDATE audit SET args_digest = 'x' WHERE id = 3", (AuditFault::Changed, 3)),
        ("a seal with a text for a hash", "UPDATE seals SET mac = 'x'", (AuditFault::Seal, 6)),
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

/// The hash that somebody can make who has no key: that of records of version 1.
fn unkeyed_hash(db: &Connection, id: i64, previous: &[u8]) -> Vec<u8> {
    use sha2::Digest as _;
    let mut hash = sha2::Sha256::new();
    hash.update(previous);
    hash.update([1]);
    let sql = "SELECT id, at, kept, duration_us, bytes, kind, principal, door, device, tool, name, outcome, args_digest
               FROM audit WHERE id = ?";
    let hashed = db.query_row(sql, [id], |row| {
        for index in 0..5 {
            hash.update(row.get::<_, i64>(index)?.to_le_bytes());
        }
        for index in 5..13 {
            let field = row.get_ref(index)?.as_bytes_or_null()?.map(<[u8]>::to_vec);
            hash.update(field.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
            hash.update(field.unwrap_or_default());
        }
        Ok(())
    });
    hashed.unwrap();
    hash.finalize().to_vec()
}

#[tokio::test]
async fn nobody_without_the_key_can_say_that_retention_removed_records() {
    for kept in [0, 1, 2] {
        let dir = recorded(1_100).await;
        let db = Connection::open(dir.path().join("gateway.db")).unwrap();
        let sealed: i64 = db.query_row("SELECT min(last) FROM seals", [], |row| row.get(0)).unwrap();
        let (newest, hash): (i64, Vec<u8>) = db
            .query_row("SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        db.execute("DELETE FROM audit WHERE id <= ?", [sealed]).unwrap();
        let insert = "INSERT INTO audit (id, at, principal, door, name, args_digest, args, outcome, duration_us, bytes, kind, kept)
                      VALUES (?, 1, '', '', 'remove_records', zeroblob(32), ?, 'ok', 0, 0, 'change', ?)";
        let args = json!({ "until": sealed }).to_string();
        db.execute(insert, rusqlite::params![newest + 1, args, kept]).unwrap();
        let hash = unkeyed_hash(&db, newest + 1, &hash);
        for version in [1, 2] {
            db.execute(
                "UPDATE audit SET hash = ?, version = ? WHERE id = ?",
                rusqlite::params![hash, version, newest + 1],
            )
            .unwrap();
            let found = faults(&verify_audit(dir.path()).unwrap());
            assert!(found.iter().any(|(fault, _)| *fault == AuditFault::Gap), "{kept} {version}: {found:?}");
        }
    }
}

/// Something is found, also after gateways used the store.
async fn assert_found(dir: &Path, what: &str) {
    assert!(!faults(&verify_audit(dir).unwrap()).is_empty(), "{what}");
    for _ in 0..2 {
        let gateway = gateway_in(dir);
        join(&gateway, Fake::new(1, [plain("x")]));
        call(&gateway, "x", json!({})).await.unwrap();
        gateway.close().await;
        assert!(!faults(&verify_audit(dir).unwrap()).is_empty(), "{what}, and the gateway went on");
    }
}

#[tokio::test]
async fn a_forged_chain_of_the_older_version_never_becomes_genuine() {
    for sealed in [None, Some(4), Some(6)] {
        let dir = match sealed {
            None => recorded(5).await,
            Some(sealed) => {
                let dir = recorded_in_format_8(sealed).await;
                gateway_in(dir.path()).close().await;
                dir
            }
        };
        tamper(
            dir.path(),
            "DELETE FROM seals; DELETE FROM audit WHERE id > 6; UPDATE audit SET principal = 'eve' WHERE id = 3",
        );
        std::fs::write(dir.path().join("audit.seals"), "").unwrap();
        let db = Connection::open(dir.path().join("gateway.db")).unwrap();
        db.execute_batch("UPDATE audit SET version = 1, text_digest = NULL").unwrap();
        let mut previous = vec![0; 32];
        for id in 1..=6_i64 {
            previous = unkeyed_hash(&db, id, &previous);
            db.execute("UPDATE audit SET hash = ? WHERE id = ?", rusqlite::params![previous, id]).unwrap();
        }
        drop(db);
        assert_found(dir.path(), &format!("sealed up to {sealed:?}")).await;
    }
}

#[tokio::test]
async fn records_cannot_be_passed_off_as_those_of_a_version_without_a_chain() {
    let unchain = "DELETE FROM seals; UPDATE audit SET hash = NULL, args_digest = x'', principal = 'eve'; ";
    let statements = [
        ("kept", ""),
        ("removed", "DELETE FROM chain_beginning"),
        ("changed", "UPDATE chain_beginning SET first = 7, unkeyed_until = 6"),
        ("of another type", "UPDATE chain_beginning SET mac = 'x'"),
    ];
    for (statement, sql) in statements {
        for is_file_gone in [true, false] {
            let dir = recorded(5).await;
            tamper(dir.path(), &format!("{unchain}{sql}"));
            let seals = dir.path().join("audit.seals");
            match is_file_gone {
                true => std::fs::remove_file(seals).unwrap(),
                false => std::fs::write(seals, "").unwrap(),
            }
            assert_found(dir.path(), &format!("the beginning {statement}, the file gone {is_file_gone}")).await;
        }
    }
}

#[tokio::test]
async fn a_gateway_makes_no_new_key_for_its_chain_and_another_proves_nothing_of_it() {
    let dir = recorded(5).await;
    let key = dir.path().join("audit-key");
    std::fs::remove_file(&key).unwrap();
    let open = || Gateway::open(Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() });
    let error = open().err().unwrap().to_string();
    assert!(error.contains("the key of the audit is missing") && !key.exists(), "{error}");
    assert_eq!(check_state(dir.path(), None).unwrap_err().to_string(), error);
    std::fs::write(&key, "a-long-secret-of-somebody\n").unwrap();
    let gateway = open().unwrap();
    let report = gateway.verify_audit().await.unwrap();
    assert!(report.problems[0].message.contains("the key was replaced"), "{report:?}");
}

#[tokio::test]
async fn nothing_that_is_put_into_the_store_moves_the_chain() {
    for far in [5_000, i64::MAX - 1, i64::MAX] {
        let seal =
            format!("INSERT INTO seals (last, first, hash, at, mac) VALUES ({far}, 7, zeroblob(32), 1, zeroblob(32))");
        let record = format!(
            "INSERT INTO audit (version, id, hash, kind, at, principal, door, name, args_digest, args, kept, outcome, duration_us, bytes)
             VALUES (2, {far}, zeroblob(32), 'call', 1, 'eve', '', 'x', zeroblob(32), '{{}}', 0, 'ok', 1, 1)"
        );
        for sql in [seal, record] {
            let dir = recorded(5).await;
            tamper(dir.path(), &sql);
            let gateway = gateway_in(dir.path());
            join(&gateway, Fake::new(1, [plain("x")]));
            call(&gateway, "x", json!({})).await.unwrap();
            let newest = gateway.audit(100).await.unwrap().into_iter().filter(|record| record.principal == "tester");
            assert!(newest.map(|record| record.id).max() < Some(100), "{sql}");
            assert!(!faults(&gateway.verify_audit().await.unwrap()).is_empty(), "{sql}");
            gateway.close().await;
            let seals = std::fs::read_to_string(dir.path().join("audit.seals")).unwrap();
            assert!(!seals.contains(&far.to_string()), "{seals}");
            assert!(!faults(&verify_audit(dir.path()).unwrap()).is_empty(), "{sql}");
        }
    }
}

#[tokio::test]
async fn a_record_that_the_store_swallows_is_not_taken_for_written() {
    let dir = recorded(2).await;
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [plain("x")]));
    call(&gateway, "x", json!({})).await.unwrap();
    tamper(dir.path(), "CREATE TRIGGER t BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END");
    let error = call(&gateway, "x", json!({})).await.unwrap_err();
    assert!(error.message.contains("the store cannot be written"), "{error}");
    tamper(dir.path(), "DROP TRIGGER t");
    call(&gateway, "x", json!({})).await.unwrap();
    assert!(faults(&gateway.verify_audit().await.unwrap()).is_empty(), "the chain goes on after the last record");
}

#[tokio::test]
async fn nobody_without_the_key_can_make_the_whole_chain_again() {
    let dir = recorded(20).await;
    let db = Connection::open(dir.path().join("gateway.db")).unwrap();
    db.execute_batch("DELETE FROM seals; UPDATE audit SET principal = 'eve', version = 1 WHERE id = 7").unwrap();
    let mut previous = vec![0; 32];
    for id in 1..=21 {
        previous = unkeyed_hash(&db, id, &previous);
        db.execute("UPDATE audit SET hash = ?, version = 1 WHERE id = ?", rusqlite::params![previous, id]).unwrap();
    }
    drop(db);
    std::fs::remove_file(dir.path().join("audit.seals")).unwrap();
    assert!(!faults(&verify_audit(dir.path()).unwrap()).is_empty());
    // Nor does the gateway vouch for it without a word.
    gateway_in(dir.path()).close().await;
    let found = verify_audit(dir.path()).unwrap();
    assert!(found.problems.iter().any(|problem| problem.message.contains("audit.seals was removed")), "{found:?}");
}

#[tokio::test]
async fn arguments_of_which_a_part_is_kept_cannot_be_changed_either() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let schema = json!({"type": "object", "properties": {"pin": {"writeOnly": true}, "door": {}, "note": {}}});
    join(&gateway, Fake::new(1, [Tool::new("unlock", "", schema)]));
    call(&gateway, "unlock", json!({"pin": "4711", "door": "front"})).await.unwrap();
    assert!(call(&gateway, "unlok", json!({"pin": "4711"})).await.is_err());
    join(&gateway, Fake::new(2, [plain("say")]));
    call(&gateway, "say", json!({"text": "x".repeat(2_000)})).await.unwrap();
    gateway.close().await;
    assert_eq!(faults(&verify_audit(dir.path()).unwrap()), []);
    let calls = "SELECT id FROM audit WHERE kind = 'call' ORDER BY id";
    let db = Connection::open(dir.path().join("gateway.db")).unwrap();
    let calls: Vec<i64> =
        db.prepare(calls).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(calls.len(), 3);
    for id in &calls {
        let args: String = db.query_row("SELECT args FROM audit WHERE id = ?", [id], |row| row.get(0)).unwrap();
        db.execute("UPDATE audit SET args = replace(args, '\"', ' ') WHERE id = ?", [id]).unwrap();
        assert_eq!(faults(&verify_audit(dir.path()).unwrap()), [(AuditFault::Changed, *id)], "{args}");
        // A text may be removed, which is reported as that.
        db.execute("UPDATE audit SET args = '' WHERE id = ?", [id]).unwrap();
        let report = verify_audit(dir.path()).unwrap();
        assert_eq!((faults(&report), report.emptied), (vec![], 1));
        db.execute("UPDATE audit SET args = ? WHERE id = ?", rusqlite::params![args, id]).unwrap();
    }
}

#[tokio::test]
async fn a_seal_file_that_was_removed_or_shortened_is_found_and_not_repaired_in_silence() {
    let shorten = |dir: &Path, keep: &dyn Fn(usize) -> bool| {
        let path = dir.join("audit.seals");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().enumerate().filter(|(index, _)| keep(*index)).map(|(_, line)| format!("{line}\n"));
        std::fs::write(path, lines.collect::<String>()).unwrap();
    };
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damages: [Damage<'_>; 5] = [
        ("emptied", &|dir| shorten(dir, &|_| false)),
        ("shortened by four", &|dir| shorten(dir, &|index| index < 8)),
        ("removed", &|dir| std::fs::remove_file(dir.join("audit.seals")).unwrap()),
        ("shortened", &|dir| shorten(dir, &|index| index == 0)),
        ("a line taken out", &|dir| shorten(dir, &|index| index != 5)),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..12 {
            let gateway = gateway_in(dir.path());
            assert!(call(&gateway, "nothing", json!({})).await.is_err());
            gateway.close().await;
        }
        assert_eq!(faults(&verify_audit(dir.path()).unwrap()), []);
        damage(dir.path());
        let found = faults(&verify_audit(dir.path()).unwrap());
        assert!(found.iter().any(|(fault, _)| *fault == AuditFault::Seal), "{what}: {found:?}");
        gateway_in(dir.path()).close().await;
        let found = faults(&verify_audit(dir.path()).unwrap());
        assert!(
            found.iter().any(|(fault, _)| *fault == AuditFault::Seal),
            "{what}, and the gateway went on: {found:?}"
        );
    }
}

#[tokio::test]
async fn an_emptied_seal_file_is_found_beside_two_seals() {
    let dir = recorded(3).await;
    let gateway = gateway_in(dir.path());
    assert!(call(&gateway, "nothing", json!({})).await.is_err());
    gateway.close().await;
    std::fs::write(dir.path().join("audit.seals"), "").unwrap();
    assert_found(dir.path(), "emptied").await;
}

#[tokio::test]
async fn more_records_without_a_seal_than_the_gateway_leaves_are_found() {
    let dir = recorded(2_100).await;
    tamper(dir.path(), "DELETE FROM seals WHERE last > (SELECT min(last) FROM seals)");
    let path = dir.path().join("audit.seals");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.split_inclusive('\n').next().unwrap()).unwrap();
    let found = faults(&verify_audit(dir.path()).unwrap());
    assert_eq!(found, [(AuditFault::Seal, 1_001)]);
}

#[tokio::test]
async fn without_the_key_nothing_is_checked_and_none_is_made() {
    let dir = recorded(3).await;
    let key = dir.path().join("audit-key");
    std::fs::remove_file(&key).unwrap();
    let error = verify_audit(dir.path()).unwrap_err().to_string();
    assert!(error.contains("the key of the audit is missing"), "{error}");
    assert!(!key.exists());
}

/// A state directory of format 8 with six records: hashes without a key, and one seal up to the record `sealed`.
async fn recorded_in_format_8(sealed: i64) -> TempDir {
    let dir = recorded(5).await;
    let db = Connection::open(dir.path().join("gateway.db")).unwrap();
    db.execute_batch("DELETE FROM seals").unwrap();
    let mut previous = vec![0; 32];
    let mut seals = String::new();
    for id in 1..=6_i64 {
        previous = unkeyed_hash(&db, id, &previous);
        db.execute("UPDATE audit SET hash = ? WHERE id = ?", rusqlite::params![previous, id]).unwrap();
        if id == sealed {
            let mac = seal_mac(dir.path(), id, &previous);
            let seal = rusqlite::params![id, previous, mac];
            db.execute("INSERT INTO seals (last, first, hash, at, mac) VALUES (?, 1, ?, 7, ?)", seal).unwrap();
            let (hash, mac) = (hex(&previous), hex(&mac));
            seals = format!("{}\n", json!({ "first": 1, "last": id, "hash": hash, "at": 7, "mac": mac }));
        }
    }
    std::fs::write(dir.path().join("audit.seals"), seals).unwrap();
    db.execute_batch(
        "ALTER TABLE audit DROP COLUMN version; ALTER TABLE audit DROP COLUMN text_digest;
         ALTER TABLE audit DROP COLUMN caller; ALTER TABLE audit DROP COLUMN decided;
         DROP INDEX audit_of_run; ALTER TABLE audit DROP COLUMN run;
         DROP TABLE chain_beginning; PRAGMA user_version = 8;",
    )
    .unwrap();
    dir
}

/// Of the seal that covers the records from 1 to `last` and was made at 7.
fn seal_mac(dir: &Path, last: i64, hash: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit as _, Mac as _};
    let key = std::fs::read_to_string(dir.join("audit-key")).unwrap();
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key.trim().as_bytes()).unwrap();
    mac.update(b"sinew seal");
    [1, last, 7].iter().for_each(|number: &i64| mac.update(&number.to_le_bytes()));
    mac.update(hash);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn records_of_the_format_before_are_sealed_before_the_chain_goes_on() {
    // Killed before the first seal, killed between two seals, and stopped, which seals everything.
    for sealed in [0, 4, 6] {
        let dir = recorded_in_format_8(sealed).await;
        // The upgrade says in the chain which records it sealed.
        let taken_over = u64::from(sealed < 6);
        for records in [7, 8] {
            let gateway = gateway_in(dir.path());
            join(&gateway, Fake::new(1, [plain("x")]));
            call(&gateway, "x", json!({})).await.unwrap();
            let report = gateway.verify_audit().await.unwrap();
            assert_eq!((faults(&report), report.records), (vec![], records + taken_over), "sealed up to {sealed}");
            gateway.close().await;
            assert_eq!(faults(&verify_audit(dir.path()).unwrap()), [], "sealed up to {sealed}");
        }
    }
}

#[tokio::test]
async fn a_store_that_does_not_state_its_beginning_yet_is_whole_after_the_upgrade() {
    let dir = recorded(5).await;
    tamper(
        dir.path(),
        "DROP TABLE chain_beginning; DROP INDEX audit_of_run; ALTER TABLE audit DROP COLUMN run; PRAGMA user_version = 9",
    );
    assert_eq!(faults(&verify_audit(dir.path()).unwrap()), []);
    tamper(dir.path(), "UPDATE audit SET hash = NULL; DELETE FROM seals");
    std::fs::write(dir.path().join("audit.seals"), "").unwrap();
    assert_found(dir.path(), "the hashes removed").await;
}

#[tokio::test]
async fn a_store_of_the_format_before_whose_newest_records_were_removed_opens_and_says_so() {
    let dir = recorded_in_format_8(6).await;
    tamper(dir.path(), "DELETE FROM audit WHERE id >= 5");
    let gateway = gateway_in(dir.path());
    join(&gateway, Fake::new(1, [plain("x")]));
    call(&gateway, "x", json!({})).await.unwrap();
    let found = faults(&gateway.verify_audit().await.unwrap());
    assert!(found.contains(&(AuditFault::Gap, 5)), "{found:?}");
}

#[tokio::test]
async fn records_say_who_called_what_decided_and_under_which_policy() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    join(&gateway, Fake::new(1, [plain("x")]));
    let (token, _) = gateway.tokens().create(Role::Client, "tablet").unwrap();
    let who = Principal { id: token.id.clone(), ..Principal::new("tablet", Role::Client) };
    let request = sinew_gateway::Request::new(who, "x", crate::fake::args(json!({})), "test");
    gateway.call(request).await.unwrap();
    gateway.set_access(crate::access::access("default = 'ask'\n")).unwrap();
    let records = gateway.find_records(AuditFilter::default(), 10).await.unwrap();
    let [change, called, ..] = &records[..] else { panic!("{records:?}") };
    assert_eq!((called.principal.as_str(), called.caller.as_deref()), ("tablet", Some(token.id.as_str())));
    let decided = called.decided.as_deref().unwrap();
    assert!(decided.starts_with("allow by the default for unmarked tools"), "{decided}");
    let versions: Value = serde_json::from_str(&change.args).unwrap();
    assert_eq!((change.kind.as_str(), change.name.as_str()), ("change", "load_policy"));
    assert!(decided.ends_with(versions["before"].as_str().unwrap()), "{decided} {versions}");
    assert_ne!(versions["before"], versions["after"]);
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
    // The caller may read what it sent itself; the journal is for others.
    let error = call(&gateway, "unlock", json!({"pin": 4711})).await.unwrap_err();
    assert!(error.message.contains("4711"), "{error}");
    drop(recording);
    call(&gateway, "unlock", json!({"pin": "2"})).await.unwrap();

    let kept = gateway.find_journal(0, Some("board-0001"), 10).unwrap();
    let tools: Vec<&str> = kept.iter().map(|entry| entry.tool.as_str()).collect();
    assert_eq!(tools, ["unlock", "tell", "unlock"]);
    assert!(kept.iter().all(|entry| !format!("{entry:?}").contains("4711")), "{kept:?}");
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
    let expected = Screens {
        before: screens("0 calls so far"),
        after: screens("1 calls so far"),
        landmark: Some(json!({"text": "1 calls"})),
        lasting_args: Some(sinew_tool::Args::from_iter([("lasting".to_owned(), json!(true))])),
    };
    assert_eq!(kept[0].screens, expected);
    assert_eq!(kept[1].screens, Screens::default());
}

#[tokio::test]
async fn a_mark_behind_any_kind_of_reference_keeps_a_secret_out_of_the_audit_and_the_journal() {
    let secret = json!({"type": "string", "writeOnly": true});
    let anchored = json!({"$anchor": "pin", "type": "string", "writeOnly": true});
    let with_id = json!({"$id": "https://example.com/pin", "type": "string", "writeOnly": true});
    let cases = [
        ("#pin", json!({"p": anchored})),
        ("#/%24defs/p", json!({"p": secret})),
        ("https://example.com/pin", json!({"p": with_id})),
    ];
    for (reference, definitions) in cases {
        let gateway = Gateway::open(Settings::default()).unwrap();
        let schema = json!({"type": "object", "properties": {"code": {"$ref": reference}}, "$defs": definitions});
        join(&gateway, Fake::new(1, [Tool::new("enter", "", schema)]));
        let _recording = gateway.record_journal();
        let _ = call(&gateway, "enter", json!({"code": "XSECRET"})).await;
        let told = format!("{:?} {:?}", gateway.audit(10).await.unwrap(), gateway.find_journal(0, None, 10).unwrap());
        assert!(told.contains("enter") && !told.contains("XSECRET"), "{reference}: {told}");
    }
}
