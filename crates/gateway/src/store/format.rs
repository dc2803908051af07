//! The tables, and the steps by which the format of an older version becomes this one.
//!
//! To change the format, append a [`Migration`] to [`MIGRATIONS`]: SQL that changes the tables of the format before it. Never edit
//! [`FIRST`] or a step that was released. Nothing else is needed: a new store is made of [`FIRST`] and all steps, an old
//! one is copied and gets the steps it lacks in one transaction (`file.rs`), and `tests/it/upgrade.rs` runs them on a
//! state directory of 0.1.0. A column of an existing table must be nullable or have a default.

use rusqlite::Connection;

use super::beginning::ChainBeginning;
use super::chain::AuditKey;

/// The tables of 0.1.0, which are format 1.
pub(super) const FIRST: &str = "
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

/// SQL that leads from one format to the next.
type Migration = &'static str;

/// The first leads from format 1 to format 2, and so on.
const MIGRATIONS: &[Migration] = &[
    // 2: the audit is read by device. One by caller would cost each commit as much again, and callers are few.
    "CREATE INDEX audit_of_device ON audit (device, id);",
    // 3: what a family is trusted with and how a device was admitted, as JSON. 0.1.0 had four families, knew their word
    // alone, and kept the admission as an attribute for people.
    r#"ALTER TABLE devices ADD COLUMN words TEXT NOT NULL DEFAULT '"attributed"';
       ALTER TABLE devices ADD COLUMN reach TEXT NOT NULL DEFAULT '"several_gateways"';
       ALTER TABLE devices ADD COLUMN admission TEXT NOT NULL DEFAULT '"local"';
       UPDATE devices SET words = '"quoted"' WHERE family = 'app';
       UPDATE devices SET reach = '"one_link"'
           WHERE family = 'board' AND json_valid(attributes) AND json_extract(attributes, '$.transport') IS NOT 'broker';
       UPDATE devices SET attributes = json_remove(attributes, '$.admitted_by'),
           admission = CASE json_extract(attributes, '$.admitted_by')
               WHEN 'gateway token' THEN '"own_token"'
               WHEN 'device token' THEN json_object('device_token', coalesce((
                   SELECT id FROM tokens WHERE device IN (devices.key, json_extract(devices.attributes, '$.hardware_id'))
                   ORDER BY created_at DESC LIMIT 1), 'unknown'))
               WHEN 'broker' THEN json_object('broker', coalesce(json_extract(attributes, '$.broker'), ''))
               ELSE '"local"' END
           WHERE json_valid(attributes);"#,
    // 4: whose a name is and since when it rests, ids that rest, when a device left, and how long the gateway ran.
    "ALTER TABLE names ADD COLUMN owner TEXT;
     ALTER TABLE names ADD COLUMN resting INTEGER;
     ALTER TABLE devices ADD COLUMN left_at INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE resting_ids (id TEXT PRIMARY KEY, key TEXT NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
     CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;",
    // 5: until when a token is valid, and when it was last used.
    "ALTER TABLE tokens ADD COLUMN expires_at INTEGER;
     ALTER TABLE tokens ADD COLUMN last_use INTEGER;",
    // 6: labels, a JSON list.
    "ALTER TABLE devices ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';",
    // 7: the description that a public name stands for.
    "ALTER TABLE names ADD COLUMN face TEXT;",
    // 8: the audit is a chain of records with seals. Digests of arguments without a key would give short secrets away, so
    // those of earlier formats go.
    "ALTER TABLE audit ADD COLUMN kind TEXT NOT NULL DEFAULT 'call';
     ALTER TABLE audit ADD COLUMN kept INTEGER NOT NULL DEFAULT 1;
     ALTER TABLE audit ADD COLUMN hash BLOB;
     UPDATE audit SET args_digest = x'';
     CREATE TABLE seals (
         last INTEGER PRIMARY KEY, first INTEGER NOT NULL, hash BLOB NOT NULL, at INTEGER NOT NULL, mac BLOB NOT NULL
     );",
    // 9: how the hash of a record was made, a digest of the text that is kept where that is not the whole one, the id of
    // the caller, and what decided about the call.
    "ALTER TABLE audit ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
     ALTER TABLE audit ADD COLUMN text_digest BLOB;
     ALTER TABLE audit ADD COLUMN caller TEXT;
     ALTER TABLE audit ADD COLUMN decided TEXT;",
    // 10: where the chain begins, and the last record whose hash has no key (`beginning.rs`).
    "CREATE TABLE chain_beginning (
         first INTEGER NOT NULL, unkeyed_until INTEGER NOT NULL, unkeyed_hash BLOB NOT NULL, mac BLOB NOT NULL
     );",
    // 11: the run that a call began or belongs to. Few calls have one.
    "ALTER TABLE audit ADD COLUMN run TEXT;
     CREATE INDEX audit_of_run ON audit (run, id) WHERE run IS NOT NULL;",
];

/// The format this code reads and writes, in SQLite's `user_version`.
pub(crate) const CURRENT: i64 = 1 + MIGRATIONS.len() as i64;

/// From this format on a store states where its chain begins.
const WITH_BEGINNING: i64 = 10;

/// Makes the tables in an empty database.
pub(super) fn create(db: &Connection, key: &AuditKey) -> rusqlite::Result<()> {
    in_transaction(db, || {
        db.execute_batch(FIRST)?;
        run_steps(db, key, 1)
    })
}

/// Takes a store of an older format to the current one: wholly, or not at all.
pub(super) fn migrate(db: &Connection, key: &AuditKey, from: i64) -> rusqlite::Result<()> {
    in_transaction(db, || run_steps(db, key, from))
}

fn run_steps(db: &Connection, key: &AuditKey, from: i64) -> rusqlite::Result<()> {
    let missing = MIGRATIONS.iter().skip(usize::try_from(from - 1).unwrap_or(0));
    missing.into_iter().try_for_each(|step| db.execute_batch(step))?;
    if from < WITH_BEGINNING {
        ChainBeginning::state(db, key, from)?;
    }
    db.pragma_update(None, "user_version", CURRENT)
}

fn in_transaction(db: &Connection, change: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let changed = change().and_then(|()| db.execute_batch("COMMIT"));
    if changed.is_err() {
        let _ = db.execute_batch("ROLLBACK");
    }
    changed
}

/// The first table or column that a store of the current format must have and this one lacks.
pub(super) fn missing(db: &Connection) -> rusqlite::Result<Option<String>> {
    let model = Connection::open_in_memory()?;
    create(&model, &AuditKey::new(""))?;
    let found = columns(db)?;
    Ok(columns(&model)?.into_iter().find(|column| !found.contains(column)))
}

/// `table.column`, sorted.
fn columns(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT t.name || '.' || c.name FROM sqlite_master t, pragma_table_info(t.name) c
               WHERE t.type = 'table' ORDER BY 1";
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new store and one that came from 0.1.0 are the same, so that both are tested by each test.
    #[test]
    fn a_new_store_has_the_tables_of_a_migrated_one() {
        let (new, old) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        let key = AuditKey::new("key");
        create(&new, &key).unwrap();
        old.execute_batch(FIRST).unwrap();
        migrate(&old, &key, 1).unwrap();
        assert_eq!(columns(&new).unwrap(), columns(&old).unwrap());
        assert_eq!(missing(&old), Ok(None));
    }

    #[test]
    fn a_step_that_fails_leaves_the_format_as_it_was() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(FIRST).unwrap();
        // As an interrupted migration without a transaction would have left it.
        db.execute_batch("PRAGMA user_version = 1; CREATE INDEX audit_of_device ON audit (device, id);").unwrap();
        let before = columns(&db).unwrap();
        assert!(migrate(&db, &AuditKey::new("key"), 1).is_err());
        assert_eq!(columns(&db).unwrap(), before);
        let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 1);
    }
}
