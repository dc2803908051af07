//! The file and its tables.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use crate::settings::OpenError;

/// The format this code writes, in SQLite's `user_version`.
const FORMAT: i64 = 1;

const TABLES: &str = "
    CREATE TABLE devices (
        key TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT, family TEXT NOT NULL, kind TEXT NOT NULL,
        version TEXT NOT NULL, instructions TEXT, attributes TEXT NOT NULL, toolset TEXT NOT NULL,
        since INTEGER NOT NULL, away INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE toolsets (digest TEXT PRIMARY KEY, tools TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE names (tool TEXT NOT NULL, digest TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (tool, digest)) WITHOUT ROWID;
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY, role TEXT NOT NULL, device TEXT, label TEXT NOT NULL, hash BLOB NOT NULL,
        created_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, device TEXT NOT NULL, nth INTEGER NOT NULL,
        topic TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX events_of_device ON events (device, seq);
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, principal TEXT NOT NULL, door TEXT NOT NULL, device TEXT,
        tool TEXT, name TEXT NOT NULL, args_digest BLOB NOT NULL, args TEXT NOT NULL, outcome TEXT NOT NULL,
        duration_us INTEGER NOT NULL, bytes INTEGER NOT NULL
    );
";

/// Opens or creates the store; in memory without a file.
pub(super) fn open(file: Option<&Path>) -> Result<Connection, OpenError> {
    let connection = match file {
        Some(file) => {
            protect(file).map_err(|source| OpenError::Io {
                what: "protect the store",
                path: file.to_owned(),
                source,
            })?;
            Connection::open(file)
        }
        None => Connection::open_in_memory(),
    };
    let db = connection.map_err(|error| damaged(file, &error))?;
    prepare(&db).map_err(|error| damaged(file, &error))?;
    let found: i64 =
        db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|error| damaged(file, &error))?;
    match found {
        0 => {
            let tables = format!("BEGIN; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;");
            db.execute_batch(&tables).map_err(|error| damaged(file, &error))?;
        }
        FORMAT => {}
        found => {
            let path = file.unwrap_or(Path::new(":memory:")).to_owned();
            return Err(OpenError::Newer { path, found, known: FORMAT });
        }
    }
    Ok(db)
}

/// The arguments of calls are for the owner of the gateway alone. SQLite gives the files it keeps beside
/// the store the store's own mode; files of an earlier gateway are mended.
fn protect(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).open(file)?;
        for beside in ["", "-wal", "-shm"] {
            let mut path = file.as_os_str().to_owned();
            path.push(beside);
            match std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.set_prepared_statement_cache_capacity(32);
    // The lock file already keeps other processes out, so SQLite need not ask for its own lock in
    // every transaction. With `synchronous = NORMAL` a commit survives the end of this process, and
    // the last ones may be lost only when the whole machine loses power. The cache is small because
    // the work is appending; checkpoints come in quiet moments (writer.rs), 16 MiB of log at the
    // latest.
    db.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -512;
         PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 16777216;",
    )
}

/// What is told when SQLite refuses the file.
pub(super) fn damaged(file: Option<&Path>, error: &rusqlite::Error) -> OpenError {
    let path = file.unwrap_or(Path::new(":memory:")).to_owned();
    match error.sqlite_error_code() {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure,
        ) => OpenError::Io { what: "use the store", path, source: std::io::Error::other(error.to_string()) },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::InUse { dir: path.parent().unwrap_or(Path::new(".")).to_owned(), pid: None, url: None }
        }
        _ => OpenError::Damaged { path, detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_database_is_named_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gateway.db");
        std::fs::write(&file, "this is not a database, and long enough to be recognised as none".repeat(20)).unwrap();
        let error = open(Some(&file)).err().unwrap().to_string();
        assert!(error.contains("gateway.db") && error.contains("damaged") && error.contains("move it away"), "{error}");
    }

    #[test]
    fn a_store_of_a_newer_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gateway.db");
        open(Some(&file)).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
        let error = open(Some(&file)).err().unwrap().to_string();
        assert!(error.contains("newer") && error.contains('9'), "{error}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = open(Some(Path::new("/nowhere/at/all/gateway.db"))).err().unwrap().to_string();
        assert!(error.contains("/nowhere/at/all/gateway.db"), "{error}");
    }
}
