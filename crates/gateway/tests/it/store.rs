//! The database file: older formats are changed with a copy kept, and what cannot be used is refused unchanged.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sinew_gateway::{AuditFilter, Gateway, OpenError, Settings};
use tempfile::TempDir;

use crate::fake::*;
use crate::upgrade::old_state;

fn try_open(dir: &Path) -> Result<Gateway, OpenError> {
    Gateway::open(Settings { state_dir: Some(dir.to_owned()), ..Settings::default() })
}

fn db(dir: &TempDir) -> PathBuf {
    dir.path().join("gateway.db")
}

fn format(file: &Path) -> i64 {
    Connection::open(file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Everything that a refused start must leave alone.
fn bytes(dir: &TempDir) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| !file.ends_with("gateway.lock")).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

fn refused(dir: &TempDir) -> OpenError {
    let before = bytes(dir);
    let error = try_open(dir.path()).err().expect("it must be refused");
    let kept = bytes(dir);
    for (file, content) in &before {
        // SQLite may move the log of an earlier process into the file; the tests here leave no log behind.
        assert!(kept.contains(&(file.clone(), content.clone())), "{} was changed", file.display());
    }
    assert!(error.to_string().contains("gateway.db"), "{error}");
    error
}

#[tokio::test]
async fn a_copy_of_the_old_format_is_kept_beside_the_new_one() {
    let dir = old_state();
    assert_eq!(format(&db(&dir)), 1);
    try_open(dir.path()).unwrap().close().await;
    assert!(format(&db(&dir)) > 1);
    let copy = dir.path().join("gateway.db.format-1");
    assert_eq!(format(&copy), 1);
    let count = |file: &Path| -> i64 {
        Connection::open(file).unwrap().query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&copy), 13);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_newer_format_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    try_open(dir.path()).unwrap().close().await;
    let known = format(&db(&dir));
    Connection::open(db(&dir)).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = refused(&dir);
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("99") && text.contains(&known.to_string()), "{text}");
}

#[tokio::test]
async fn an_empty_file_is_refused_and_not_begun_anew() {
    let dir = old_state();
    std::fs::write(db(&dir), "").unwrap();
    let error = refused(&dir);
    assert!(matches!(error, OpenError::Damaged { .. }) && error.to_string().contains("empty"), "{error}");
}

#[tokio::test]
async fn a_log_without_its_file_is_refused() {
    let dir = old_state();
    std::fs::rename(db(&dir), dir.path().join("gateway.db-wal")).unwrap();
    assert!(matches!(refused(&dir), OpenError::Damaged { .. }));
}

#[tokio::test]
async fn a_database_without_a_format_or_of_another_program_is_refused() {
    for sql in ["CREATE TABLE notes (text TEXT)", "PRAGMA journal_mode = WAL; CREATE TABLE x (y); DROP TABLE x;"] {
        let dir = tempfile::tempdir().unwrap();
        Connection::open(db(&dir)).unwrap().execute_batch(sql).unwrap();
        assert!(matches!(refused(&dir), OpenError::Damaged { .. }));
    }
}

#[tokio::test]
async fn a_truncated_old_store_is_refused_before_it_is_changed() {
    let dir = old_state();
    let whole = std::fs::read(db(&dir)).unwrap();
    for keep in [100, 4_096, whole.len() / 2, whole.len() - 4_096] {
        std::fs::write(db(&dir), &whole[..keep]).unwrap();
        let error = refused(&dir);
        assert!(matches!(error, OpenError::Damaged { .. }), "{keep} bytes: {error}");
        let _ = std::fs::remove_file(dir.path().join("gateway.db-wal"));
    }
    std::fs::write(db(&dir), &whole).unwrap();
    assert_eq!(try_open(dir.path()).unwrap().devices().len(), 8);
}

#[tokio::test]
async fn a_half_migrated_store_is_refused_and_its_copy_is_whole() {
    let dir = old_state();
    // The index of the first step is there, and the format number is still the old one.
    let half = Connection::open(db(&dir)).unwrap();
    half.execute_batch("CREATE INDEX audit_of_device ON audit (device, id)").unwrap();
    drop(half);
    let error = refused(&dir);
    assert!(matches!(error, OpenError::Migration { found: 1, .. }), "{error}");
    assert_eq!(format(&db(&dir)), 1);
    Connection::open(db(&dir)).unwrap().execute_batch("DROP INDEX audit_of_device").unwrap();
    assert_eq!(try_open(dir.path()).unwrap().devices().len(), 8);
}

#[tokio::test]
async fn a_store_with_the_new_number_and_the_old_tables_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    try_open(dir.path()).unwrap().close().await;
    let db = Connection::open(db(&dir)).unwrap();
    db.execute_batch("PRAGMA journal_mode = DELETE; ALTER TABLE audit DROP COLUMN bytes;").unwrap();
    drop(db);
    let error = refused(&dir);
    assert!(error.to_string().contains("audit.bytes"), "{error}");
}

#[tokio::test]
async fn a_start_that_was_interrupted_leaves_nothing_that_hinders_the_next() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("gateway.db.new"), "half of a store").unwrap();
    let gateway = try_open(dir.path()).unwrap();
    join(&gateway, Fake::board(1));
    gateway.close().await;
    assert_eq!(try_open(dir.path()).unwrap().devices().len(), 1);
}

#[tokio::test]
async fn a_store_with_a_damaged_page_is_refused_wherever_it_is() {
    let dir = old_state();
    try_open(dir.path()).unwrap().close().await;
    let whole = std::fs::read(db(&dir)).unwrap();
    for page in 1..whole.len() / 4_096 {
        let mut bytes = whole.clone();
        bytes[page * 4_096..(page + 1) * 4_096].fill(0xa5);
        std::fs::write(db(&dir), &bytes).unwrap();
        assert!(matches!(refused(&dir), OpenError::Damaged { .. }), "page {page}");
    }
    std::fs::write(db(&dir), &whole).unwrap();
    assert_eq!(try_open(dir.path()).unwrap().devices().len(), 8);
}

#[cfg(unix)]
#[tokio::test]
async fn a_state_directory_that_others_can_read_is_closed_or_refused() {
    use std::os::unix::fs::PermissionsExt;
    let open_to_all = |dir: &Path, mode| std::fs::set_permissions(dir, PermissionsExt::from_mode(mode)).unwrap();
    let mode = |dir: &Path| std::fs::metadata(dir).unwrap().permissions().mode() & 0o7777;
    let empty = tempfile::tempdir().unwrap();
    for dir in [&empty, &old_state()] {
        open_to_all(dir.path(), 0o755);
        try_open(dir.path()).unwrap().close().await;
        assert_eq!(mode(dir.path()), 0o700);
    }
    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("diary.txt"), "").unwrap();
    open_to_all(foreign.path(), 0o755);
    let shared = old_state();
    open_to_all(shared.path(), 0o1777);
    for (dir, before) in [(&foreign, 0o755), (&shared, 0o1777)] {
        let error = try_open(dir.path()).err().unwrap();
        assert!(matches!(error, OpenError::Shared { .. }) && error.to_string().contains("--state"), "{error}");
        assert_eq!(mode(dir.path()), before);
    }
}

#[tokio::test]
async fn calls_that_end_alone_make_room_for_themselves_too() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { state_dir: Some(dir.path().to_owned()), max_audit: 100, ..Settings::default() };
    let gateway = Gateway::open(settings).unwrap();
    for _ in 0..2_500 {
        assert!(call(&gateway, "nothing", sinew_tool::json!({})).await.is_err());
        // Far enough apart that no two of them share a commit.
        std::thread::sleep(std::time::Duration::from_micros(150));
    }
    let kept = gateway.audit(10_000).await.unwrap().len();
    // Records go with the seal that covers them, and the newest have none yet.
    assert!((100..=2_100).contains(&kept), "{kept}");
}

#[tokio::test]
async fn calls_are_found_by_device_and_caller_page_by_page() {
    let dir = old_state();
    let gateway = try_open(dir.path()).unwrap();
    let find = async |device: Option<&str>, principal: Option<&str>, before, limit| {
        let (device, principal) = (device.map(str::to_owned), principal.map(str::to_owned));
        let records = gateway
            .find_records(AuditFilter { device, principal, before, ..AuditFilter::default() }, limit)
            .await
            .unwrap();
        records.iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(find(Some("board-ddee01"), None, None, 10).await, [11, 6, 3, 2]);
    assert_eq!(find(Some("board-ddee01"), Some("Claude Desktop"), None, 10).await, [11, 3]);
    assert_eq!(find(None, Some("Ada"), None, 10).await, [4]);
    assert_eq!(find(None, None, Some(5), 3).await, [4, 3, 2]);
    assert!(find(Some("nobody"), None, None, 10).await.is_empty());
}
