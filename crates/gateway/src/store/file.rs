//! Opening the database file: it is created whole, refused when it is not ours to use, and copied before its format
//! changes. `format.rs` has the tables.

use std::fs::OpenOptions;
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::chain::AuditKey;
use super::format;
use crate::private_files::{private_options, protect};
use crate::settings::OpenError;

/// Where a store lives: a file, or memory that all connections of this process to it share.
#[derive(Clone, Debug)]
pub(super) enum StoreLocation {
    File(PathBuf),
    Memory(String),
}

impl StoreLocation {
    pub(super) fn new(file: Option<&Path>) -> StoreLocation {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        match file {
            Some(file) => StoreLocation::File(file.to_owned()),
            None => StoreLocation::Memory(format!("file:/sinew-{}?vfs=memdb", NEXT.fetch_add(1, Ordering::Relaxed))),
        }
    }

    fn path(&self) -> &Path {
        match self {
            StoreLocation::File(file) => file,
            StoreLocation::Memory(_) => Path::new(":memory:"),
        }
    }

    /// The error for a file that SQLite refuses.
    pub(super) fn refused(&self, error: &rusqlite::Error) -> OpenError {
        let path = self.path().to_owned();
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

    fn damaged(&self, detail: impl Into<String>) -> OpenError {
        OpenError::Damaged { path: self.path().to_owned(), detail: detail.into() }
    }
}

/// Opens the store for writing; creates it where there is none.
pub(super) fn open(location: &StoreLocation, key: &AuditKey) -> Result<Connection, OpenError> {
    let refused = |error: rusqlite::Error| location.refused(&error);
    let db = match location {
        StoreLocation::Memory(uri) => {
            let db = Connection::open(uri).map_err(refused)?;
            format::create(&db, key).map_err(refused)?;
            db
        }
        StoreLocation::File(file) => open_file(location, file, key)?,
    };
    prepare(&db).map_err(refused)?;
    Ok(db)
}

/// Opens the store a second time, for reading only: a long question then delays no commit.
pub(super) fn open_reader(location: &StoreLocation) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = match location {
        StoreLocation::File(file) => Connection::open_with_flags(file, flags),
        StoreLocation::Memory(uri) => Connection::open_with_flags(uri, flags),
    };
    let refused = |error: rusqlite::Error| location.refused(&error);
    let db = db.map_err(refused)?;
    db.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY;")
        .map_err(refused)?;
    db.busy_timeout(BUSY).map_err(refused)?;
    Ok(db)
}

/// Opens a database that is there, for copying and checking.
pub(super) fn open_existing(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY)?;
    Ok(db)
}

/// Longer than any commit or checkpoint takes; the lock file keeps other gateways out.
const BUSY: Duration = Duration::from_secs(5);

fn open_file(location: &StoreLocation, file: &Path, key: &AuditKey) -> Result<Connection, OpenError> {
    let failed = |what, source| OpenError::Io { what, path: file.to_owned(), source };
    let length = match std::fs::metadata(file) {
        Ok(about) if about.len() == 0 => return Err(location.damaged("it is empty")),
        Ok(about) => about.len(),
        Err(error) if error.kind() == IoErrorKind::NotFound => {
            create(location, file, key)?;
            0
        }
        Err(error) => return Err(failed("open the store", error)),
    };
    make_private(file).map_err(|source| failed("protect the store", source))?;
    let refused = |error: rusqlite::Error| location.refused(&error);
    let db = Connection::open(file).map_err(refused)?;
    let found = check_format(location, file, &db, length)?;
    if found < format::CURRENT {
        migrate(location, file, &db, key, found)?;
    }
    match format::missing(&db).map_err(refused)? {
        None => Ok(db),
        Some(column) => Err(location.damaged(format!("{column} is missing"))),
    }
}

/// Whether the store can be used, for somebody who wants to know before a gateway does. Nothing is changed.
pub(super) fn check(file: &Path) -> Result<(), OpenError> {
    let location = StoreLocation::File(file.to_owned());
    let length = match std::fs::metadata(file) {
        Ok(about) if about.len() == 0 => return Err(location.damaged("it is empty")),
        Ok(about) => about.len(),
        Err(error) if error.kind() == IoErrorKind::NotFound => return check_log_alone(&location, file),
        Err(source) => return Err(OpenError::Io { what: "open the store", path: file.to_owned(), source }),
    };
    check_format(&location, file, &open_reader(&location)?, length).map(drop)
}

/// The format of the store, if this version can use it and nothing in it is damaged.
fn check_format(location: &StoreLocation, file: &Path, db: &Connection, length: u64) -> Result<i64, OpenError> {
    let found: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error: rusqlite::Error| location.refused(&error))?;
    match found {
        ..1 => Err(location.damaged("it has no format number, so it was not written by Sinew")),
        found if found > format::CURRENT => {
            Err(OpenError::Newer { path: file.to_owned(), found, known: format::CURRENT })
        }
        found => check_pages(location, db, length).map(|()| found),
    }
}

/// A larger store is mostly audit, and reading all of it would delay the start: some 20 s for a million calls on a slow
/// machine.
const CHECKED_WHOLE: u64 = 32 << 20;

/// Looks for damaged pages: such a store would fail later, in the middle of a call or of a name. In a large store the
/// pages of old calls are left out; they are found when they are read.
fn check_pages(location: &StoreLocation, db: &Connection, length: u64) -> Result<(), OpenError> {
    let tables = match length <= CHECKED_WHOLE {
        true => Ok(vec!["1".to_owned()]),
        false => tables_to_check(db),
    };
    for table in tables.map_err(|error| location.refused(&error))? {
        let check = db.query_row(&format!("PRAGMA quick_check({table})"), [], |row| row.get::<_, String>(0));
        let check = check.map_err(|error| location.refused(&error))?;
        if check != "ok" {
            return Err(location.damaged(check.replace('\n', " ")));
        }
    }
    Ok(())
}

fn tables_to_check(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'audit'";
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// SQLite would discard the log of a store whose file is gone.
fn check_log_alone(location: &StoreLocation, file: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(beside(file, "-wal")).is_ok_and(|log| log.len() > 0) {
        true => Err(location.damaged("its log gateway.db-wal is there, but the file itself is gone")),
        false => Ok(()),
    }
}

/// A new store gets its name when it is complete: whatever interrupts this, no half of a store is left behind.
fn create(location: &StoreLocation, file: &Path, key: &AuditKey) -> Result<(), OpenError> {
    let failed = |what| move |source| OpenError::Io { what, path: file.to_owned(), source };
    check_log_alone(location, file)?;
    let new = beside(file, ".new");
    for stale in [new.clone(), beside(&new, "-journal"), beside(&new, "-wal")] {
        remove(&stale).map_err(failed("create the store"))?;
    }
    create_private(&new).map_err(failed("create the store"))?;
    let made = Connection::open(&new).and_then(|db| {
        format::create(&db, key)?;
        db.close().map_err(|(_, error)| error)
    });
    made.map_err(|error| location.refused(&error))?;
    std::fs::rename(&new, file).map_err(failed("create the store"))
}

/// Changes the format, after a copy of the store as it was is on disk beside it.
fn migrate(
    location: &StoreLocation,
    file: &Path,
    db: &Connection,
    key: &AuditKey,
    found: i64,
) -> Result<(), OpenError> {
    let copy = beside(file, &format!(".format-{found}"));
    keep_copy(db, &copy).map_err(|error| location.refused(&error))?;
    format::migrate(db, key, found).map_err(|error| OpenError::Migration {
        path: file.to_owned(),
        found,
        known: format::CURRENT,
        detail: error.to_string(),
    })?;
    tracing::info!(from = found, to = format::CURRENT, copy = %copy.display(), "the format of the store was changed");
    Ok(())
}

fn keep_copy(db: &Connection, copy: &Path) -> rusqlite::Result<()> {
    let io = |error: std::io::Error| {
        rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR),
            Some(format!("{}: {error}", copy.display())),
        )
    };
    let new = beside(copy, ".new");
    remove(&new).map_err(io)?;
    create_private(&new).map_err(io)?;
    db.execute("VACUUM INTO ?", [new.to_string_lossy()])?;
    OpenOptions::new().write(true).open(&new).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&new, copy).map_err(io)
}

pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.set_prepared_statement_cache_capacity(32);
    db.busy_timeout(BUSY)?;
    // With `synchronous = NORMAL` a commit survives the end of this process, and the last ones may be lost only when
    // the whole machine loses power. The cache is small because the work is appending; checkpoints come in quiet
    // moments (writer.rs), 16 MiB of log at the latest.
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA cache_size = -512;
         PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 16777216;",
    )
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn remove(file: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != IoErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn create_private(file: &Path) -> std::io::Result<()> {
    private_options().write(true).create_new(true).open(file).map(drop)
}

/// The arguments of calls are for the owner of the gateway alone. SQLite gives the files it keeps beside the store the
/// store's own mode; those of an earlier gateway are corrected.
fn make_private(file: &Path) -> std::io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        match protect(&beside(file, suffix)) {
            Err(error) if error.kind() != IoErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_large_store_every_table_but_the_audit_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let location = StoreLocation::new(Some(&dir.path().join("gateway.db")));
        let StoreLocation::File(file) = &location else { panic!("a file was asked for") };
        create(&location, file, &AuditKey::new("key")).unwrap();
        let whole = std::fs::read(file).unwrap();
        let roots = "SELECT name, rootpage FROM sqlite_master WHERE type = 'table'";
        let roots: Vec<(String, usize)> = {
            let db = Connection::open(file).unwrap();
            let mut select = db.prepare(roots).unwrap();
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
        };
        assert!(roots.len() > 6);
        for (table, page) in roots {
            let mut bytes = whole.clone();
            bytes[(page - 1) * 4_096..page * 4_096].fill(0xa5);
            std::fs::write(file, bytes).unwrap();
            let checked = check_pages(&location, &Connection::open(file).unwrap(), CHECKED_WHOLE + 1);
            assert_eq!(checked.is_err(), table != "audit", "{table}");
        }
    }
}
