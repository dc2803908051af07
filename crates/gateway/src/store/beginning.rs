//! Where the chain of audit records begins, stated with the key when a store is made or its format changes.
//!
//! Without it, somebody could pass records off as those of a format without a chain, or of the one whose hashes had no
//! key. Nothing states it a second time: a store that lacks it stays suspicious.

use rusqlite::{Connection, OptionalExtension, params};

use super::chain::{self, AuditKey, AuditSeal, ChainHead, Hash};
use super::writer::SEAL_RECORDS;
use crate::registry::now;

/// The format whose records have hashes without a key.
const UNKEYED_FORMAT: i64 = 8;

#[derive(Clone, Copy)]
pub(super) struct ChainBeginning {
    /// The first record of the chain; those before it are of formats without one.
    pub(super) first: i64,
    /// The last record whose hash has no key, or the one before the first.
    pub(super) unkeyed: ChainHead,
}

impl ChainBeginning {
    /// What the store states; `None` where that is missing or not genuine.
    pub(super) fn load(db: &Connection, key: &AuditKey) -> rusqlite::Result<Option<ChainBeginning>> {
        let sql = "SELECT first, unkeyed_until, unkeyed_hash, mac FROM chain_beginning LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let unkeyed = ChainHead { id: row.get(1)?, hash: row.get(2)? };
            Ok((ChainBeginning { first: row.get(0)?, unkeyed }, row.get::<_, Hash>(3)?))
        };
        // A field of a wrong type is no statement either.
        let stated = db.prepare(sql)?.query_map([], read)?.next().and_then(Result::ok);
        Ok(stated.filter(|(beginning, mac)| beginning.mac(key) == *mac).map(|(beginning, _)| beginning))
    }

    /// States it for a store that came from this format.
    pub(super) fn state(db: &Connection, key: &AuditKey, format: i64) -> rusqlite::Result<()> {
        if format == UNKEYED_FORMAT {
            take_over_unsealed(db, key)?;
        }
        let first = match chain::seals_after(db, key, 0, 1)?.first() {
            Some(seal) => seal.first,
            None => chain::first_record(db)?.unwrap_or(ChainHead::load(db, key)?.0.id.saturating_add(1)),
        };
        let unkeyed = last_unkeyed(db, key)?.unwrap_or(ChainHead::begin(first.saturating_sub(1)));
        let beginning = ChainBeginning { first, unkeyed };
        let insert = "INSERT INTO chain_beginning (first, unkeyed_until, unkeyed_hash, mac) VALUES (?, ?, ?, ?)";
        db.execute(insert, params![first, unkeyed.id, unkeyed.hash, beginning.mac(key)]).map(drop)
    }

    fn mac(&self, key: &AuditKey) -> Hash {
        key.hash_of(b"sinew beginning", [self.first, self.unkeyed.id], &self.unkeyed.hash)
    }
}

/// Seals the records that a gateway of the format before left without a seal, and says so in the chain: nothing proves
/// that they are as it wrote them.
fn take_over_unsealed(db: &Connection, key: &AuditKey) -> rusqlite::Result<()> {
    let (head, _) = ChainHead::load(db, key)?;
    let first = chain::first_unsealed(db, key, head)?;
    match head.id - first + 1 {
        ..=0 => Ok(()),
        1..=SEAL_RECORDS => {
            AuditSeal::new(key, first, head, now()).insert(db)?;
            chain::append(db, key, head, &chain::takeover(key, first, head.id, now())).map(drop)
        }
        _ => {
            let last = head.id;
            tracing::error!(
                "nothing proves the records {first} to {last} of the audit: no gateway leaves so many without a seal"
            );
            Ok(())
        }
    }
}

/// The last record without a keyed hash that a genuine seal covers.
fn last_unkeyed(db: &Connection, key: &AuditKey) -> rusqlite::Result<Option<ChainHead>> {
    let Some(seal) = chain::last_seal(db, key)? else { return Ok(None) };
    let sql = "SELECT id, hash FROM audit WHERE version = 1 AND length(hash) = 32 AND id BETWEEN 1 AND ?
               ORDER BY id DESC LIMIT 1";
    db.query_row(sql, [seal.last], |row| Ok(ChainHead { id: row.get(0)?, hash: row.get(1)? })).optional()
}
