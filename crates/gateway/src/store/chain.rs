//! The chain of audit records: the hash of each covers the one before it, and seals cover the hashes.
//!
//! The text of the arguments is outside the hash, and only keyed digests of it inside: so texts can be removed without
//! breaking the chain, and a short secret cannot be guessed from its digest.
//!
//! The hash is keyed too, so that nobody without the key can append or change a record. Records of version 1 have a hash
//! without a key: only a seal proves them.

use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sinew_tool::DeviceId;

use super::writer::SEAL_RECORDS;
use crate::shared::{AuditRow, KeptArgs, RecordKind};

pub(crate) type Hash = [u8; 32];

/// Counts up when the fields of a record, their order or their hash change.
pub(super) const VERSION: i64 = 3;

/// No gateway leaves half as many records without a seal.
const MAX_UNSEALED: i64 = 2 * SEAL_RECORDS;

/// More records than any gateway writes.
const MAX_ID: i64 = 1 << 53;

/// What the first record follows.
const GENESIS: Hash = [0; 32];

/// The key of this installation, for digests of arguments and for seals.
#[derive(Clone)]
pub(crate) struct AuditKey(Hmac<Sha256>);

impl AuditKey {
    pub(crate) fn new(secret: &str) -> AuditKey {
        // A key for HMAC may have any length.
        AuditKey(Hmac::new_from_slice(secret.as_bytes()).unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// Hashes what is written to it.
    pub(crate) fn start(&self) -> Hmac<Sha256> {
        self.0.clone()
    }

    /// Of the arguments of a call. JSON text, so that no caller can choose one that is also a record or a seal.
    pub(crate) fn digest(&self, text: &[u8]) -> Hash {
        let mut mac = self.start();
        mac.update(text);
        mac.finalize().into_bytes().into()
    }

    /// Of a statement about the chain; `what` keeps the kinds of them apart.
    pub(super) fn hash_of<const N: usize>(&self, what: &[u8], numbers: [i64; N], hash: &Hash) -> Hash {
        let mut mac = self.start();
        mac.update(what);
        numbers.iter().for_each(|number| mac.update(&number.to_le_bytes()));
        mac.update(hash);
        mac.finalize().into_bytes().into()
    }

    /// Of the text that is kept of the arguments, where that is not all of them.
    pub(super) fn text_digest(&self, kept: KeptArgs, text: &str) -> Option<Hash> {
        (kept != KeptArgs::Whole).then(|| {
            let mut mac = self.start();
            mac.update(b"sinew text");
            mac.update(text.as_bytes());
            mac.finalize().into_bytes().into()
        })
    }
}

/// The newest record of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainHead {
    pub(crate) id: i64,
    pub(crate) hash: Hash,
}

impl ChainHead {
    /// A chain that begins after the record `id`.
    pub(super) fn begin(id: i64) -> ChainHead {
        ChainHead { id, hash: GENESIS }
    }

    /// Where the chain of this store goes on, and the newest records that a seal covers and that are gone.
    pub(super) fn load(db: &Connection, key: &AuditKey) -> rusqlite::Result<(ChainHead, Option<(i64, i64)>)> {
        let sealed = last_seal(db, key)?;
        // Somebody may have put a record far away, where the chain would never come.
        let farthest = sealed.as_ref().map_or(MAX_ID, |seal| seal.last + MAX_UNSEALED);
        let newest = "SELECT id, hash FROM audit WHERE id <= ? ORDER BY id DESC LIMIT 1";
        let newest: Option<(i64, Option<Hash>)> =
            db.query_row(newest, [farthest], |row| Ok((row.get(0)?, row.get(1).unwrap_or(None)))).optional()?;
        let (id, hash) = newest.unwrap_or((0, None));
        Ok(match (sealed, hash) {
            // Everything that was sealed was on the disk, so the records after `id` were removed.
            (Some(seal), _) if seal.last > id => {
                (ChainHead { id: seal.last, hash: seal.hash() }, Some((id + 1, seal.last)))
            }
            (_, Some(hash)) => (ChainHead { id, hash }, None),
            (_, None) => (ChainHead::begin(id), None),
        })
    }

    pub(super) fn next(&self, key: &AuditKey, row: &AuditRow, text_digest: Option<&Hash>) -> ChainHead {
        let id = self.id + 1;
        let fields = RecordFields {
            version: VERSION,
            id,
            at: row.at,
            kind: row.kind.word(),
            principal: &row.principal,
            door: row.door,
            device: row.device.as_ref().map(DeviceId::as_str),
            tool: row.tool.as_deref(),
            name: &row.name,
            args_digest: &row.args_digest,
            text_digest: text_digest.map(Hash::as_slice),
            caller: row.caller.as_deref(),
            decided: row.decided.as_deref(),
            run: row.run.as_deref(),
            kept: row.kept.number(),
            outcome: row.outcome,
            duration_us: row.duration_us,
            bytes: row.bytes,
        };
        ChainHead { id, hash: fields.hash(key, &self.hash) }
    }
}

/// Writes a record after `head`, and returns it as the new one.
pub(super) fn append(db: &Connection, key: &AuditKey, head: ChainHead, row: &AuditRow) -> rusqlite::Result<ChainHead> {
    let text_digest = key.text_digest(row.kept, &row.args);
    let next = head.next(key, row, text_digest.as_ref());
    let mut insert = db.prepare_cached(
        "INSERT INTO audit (version, id, hash, kind, at, principal, door, device, tool, name, caller, decided, run, args_digest, text_digest, args, kept, outcome, duration_us, bytes)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let rows = insert.execute(params![
        VERSION,
        next.id,
        next.hash,
        row.kind.word(),
        row.at,
        row.principal,
        row.door,
        row.device.as_ref().map(DeviceId::as_str),
        row.tool,
        row.name,
        row.caller,
        row.decided,
        row.run.as_deref(),
        row.args_digest,
        text_digest,
        row.args,
        row.kept.number(),
        row.outcome,
        row.duration_us,
        row.bytes
    ])?;
    // A trigger that somebody put into the file can swallow a record without an error.
    if rows == 1 { Ok(next) } else { Err(rusqlite::Error::StatementChangedRows(rows)) }
}

/// For the benchmark: how long it takes to digest the arguments of so many calls, and to chain and seal their records,
/// without writing them.
pub fn time_of_chaining(records: u32) -> Duration {
    let key = AuditKey::new("the key of a benchmark");
    let mut row = removal(&key, 0, 0);
    row.args = r#"{"device":"board-00000a"}"#.to_owned();
    let mut head = ChainHead::begin(0);
    let began = Instant::now();
    for number in 1..=records {
        row.args_digest = key.digest(row.args.as_bytes());
        head = head.next(&key, &row, None);
        if number.is_multiple_of(1_000) {
            std::hint::black_box(AuditSeal::new(&key, head.id - 999, head, 0));
        }
    }
    std::hint::black_box(head);
    began.elapsed()
}

/// What the hash of a record covers.
pub(super) struct RecordFields<'a> {
    pub(super) version: i64,
    pub(super) id: i64,
    pub(super) at: i64,
    pub(super) kind: &'a str,
    pub(super) principal: &'a str,
    pub(super) door: &'a str,
    pub(super) device: Option<&'a str>,
    pub(super) tool: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) args_digest: &'a [u8],
    pub(super) text_digest: Option<&'a [u8]>,
    pub(super) caller: Option<&'a str>,
    pub(super) decided: Option<&'a str>,
    pub(super) run: Option<&'a str>,
    pub(super) kept: i64,
    pub(super) outcome: &'a str,
    pub(super) duration_us: i64,
    pub(super) bytes: i64,
}

impl RecordFields<'_> {
    pub(super) fn hash(&self, key: &AuditKey, previous: &Hash) -> Hash {
        match self.version {
            1 => {
                let mut hash = Sha256::new();
                self.write_to(previous, |bytes| hash.update(bytes));
                hash.finalize().into()
            }
            _ => {
                let mut mac = key.start();
                mac.update(b"sinew record");
                self.write_to(previous, |bytes| mac.update(bytes));
                mac.finalize().into_bytes().into()
            }
        }
    }

    fn write_to(&self, previous: &Hash, mut write: impl FnMut(&[u8])) {
        write(previous);
        write(&[u8::try_from(self.version).unwrap_or(0)]);
        for number in [self.id, self.at, self.kept, self.duration_us, self.bytes] {
            write(&number.to_le_bytes());
        }
        let texts = [Some(self.kind), Some(self.principal), Some(self.door), self.device, self.tool];
        let texts = texts.into_iter().chain([Some(self.name), Some(self.outcome)]);
        let fields = texts.map(|text| text.map(str::as_bytes)).chain([Some(self.args_digest)]);
        // The length in front keeps fields apart; none has the length that stands for an absent one.
        let since_version_2 = [self.text_digest, self.caller.map(str::as_bytes), self.decided.map(str::as_bytes)];
        let since_version_2 = since_version_2.into_iter().filter(|_| self.version > 1);
        // A run that an older record has was put there later.
        let since_version_3 = (self.version > 2 || self.run.is_some()).then_some(self.run.map(str::as_bytes));
        for field in fields.chain(since_version_2).chain(since_version_3) {
            let length = field.map_or(u64::MAX, |bytes| bytes.len() as u64);
            write(&length.to_le_bytes());
            write(field.unwrap_or_default());
        }
    }
}

/// The name of the record that retention leaves behind.
const REMOVAL: &str = "remove_records";

/// The name of the record about seals that were not in their file.
const RESTORATION: &str = "restore_seals";

/// The name of the record about records of an older format that had no seal.
const TAKEOVER: &str = "take_over_records";

/// Says in the chain itself that an upgrade sealed these records, which nothing proved until then.
pub(super) fn takeover(key: &AuditKey, first: i64, last: i64, at: i64) -> AuditRow {
    gateway_record(key, TAKEOVER, &json!({ "first": first, "last": last }), at)
}

/// Says in the chain itself that retention removed the records up to `until`: without it, they were removed by somebody.
pub(super) fn removal(key: &AuditKey, until: i64, at: i64) -> AuditRow {
    gateway_record(key, REMOVAL, &json!({ "until": until }), at)
}

/// Says in the chain itself that the file had lost so many seals when the gateway started.
pub(super) fn restoration(key: &AuditKey, lost: usize, at: i64) -> AuditRow {
    gateway_record(key, RESTORATION, &json!({ "lost": lost }), at)
}

fn gateway_record(key: &AuditKey, name: &str, details: &Value, at: i64) -> AuditRow {
    let args = details.to_string();
    AuditRow {
        kind: RecordKind::Change,
        at,
        principal: String::new(),
        door: "",
        device: None,
        tool: None,
        name: name.to_owned(),
        caller: None,
        decided: None,
        run: None,
        args_digest: key.digest(args.as_bytes()),
        args,
        kept: KeptArgs::Whole,
        outcome: "ok",
        duration_us: 0,
        bytes: 0,
        is_sent: false,
    }
}

/// What a record of the gateway itself says about the chain.
pub(super) enum ChainEvent {
    /// Retention removed the records up to this one.
    Removed { until: i64 },
    /// The file had lost so many seals.
    SealsLost { seals: i64 },
}

/// Only of a record that was checked.
pub(super) fn chain_event(record: &RecordFields<'_>, args: &str) -> Option<ChainEvent> {
    let is_own = record.kind == RecordKind::Change.word()
        && record.principal.is_empty()
        && record.kept == KeptArgs::Whole.number();
    let details = |key: &str| serde_json::from_str::<Value>(args).ok()?[key].as_i64();
    match record.name {
        REMOVAL if is_own => Some(ChainEvent::Removed { until: details("until")? }),
        RESTORATION if is_own => Some(ChainEvent::SealsLost { seals: details("lost")? }),
        _ => None,
    }
}

const SEAL: &[u8] = b"sinew seal";

/// Vouches for the records from `first` to `last`: whoever has no key cannot make one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSeal {
    pub first: i64,
    pub last: i64,
    /// The hash of the last record, in hex.
    pub hash: String,
    /// Milliseconds of Unix time.
    pub at: i64,
    /// HMAC-SHA-256 over the other fields, in hex.
    pub mac: String,
}

impl AuditSeal {
    pub(super) fn new(key: &AuditKey, first: i64, head: ChainHead, at: i64) -> AuditSeal {
        let mac = key.hash_of(SEAL, [first, head.id, at], &head.hash);
        AuditSeal { first, last: head.id, hash: hex(&head.hash), at, mac: hex(&mac) }
    }

    pub(super) fn is_genuine(&self, key: &AuditKey) -> bool {
        hex(&key.hash_of(SEAL, [self.first, self.last, self.at], &self.hash())) == self.mac
    }

    pub(super) fn hash(&self) -> Hash {
        unhex(&self.hash).unwrap_or_default()
    }

    pub(super) fn insert(&self, db: &Connection) -> rusqlite::Result<()> {
        let mut insert =
            db.prepare_cached("INSERT OR REPLACE INTO seals (last, first, hash, at, mac) VALUES (?, ?, ?, ?, ?)")?;
        insert.execute(params![self.last, self.first, self.hash(), self.at, unhex(&self.mac)]).map(drop)
    }

    /// A seal whose fields have wrong types is read as one that is not genuine.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<AuditSeal> {
        let blob = |index| hex(&row.get::<_, Vec<u8>>(index).unwrap_or_default());
        let number = |index| row.get(index).unwrap_or(0);
        Ok(AuditSeal { last: row.get(0)?, first: number(1), hash: blob(2), at: number(3), mac: blob(4) })
    }
}

/// The last seal that was made with the key; anybody who writes to the file can add others.
pub(super) fn last_seal(db: &Connection, key: &AuditKey) -> rusqlite::Result<Option<AuditSeal>> {
    let mut select = db.prepare("SELECT last, first, hash, at, mac FROM seals ORDER BY last DESC")?;
    for seal in select.query_map([], AuditSeal::read)? {
        let seal = seal?;
        if seal.is_genuine(key) {
            return Ok(Some(seal));
        }
    }
    Ok(None)
}

/// The first record of the chain.
pub(super) fn first_record(db: &Connection) -> rusqlite::Result<Option<i64>> {
    db.query_row("SELECT min(id) FROM audit WHERE hash IS NOT NULL AND id > 0", [], |row| row.get(0))
}

/// The first record that no seal covers yet.
pub(super) fn first_unsealed(db: &Connection, key: &AuditKey, head: ChainHead) -> rusqlite::Result<i64> {
    Ok(match last_seal(db, key)? {
        Some(seal) => seal.last + 1,
        None => first_record(db)?.unwrap_or(head.id + 1),
    })
}

/// The genuine seals after the one of the record `last`, oldest first.
pub(super) fn seals_after(
    db: &Connection,
    key: &AuditKey,
    last: i64,
    limit: usize,
) -> rusqlite::Result<Vec<AuditSeal>> {
    let mut select = db.prepare_cached("SELECT last, first, hash, at, mac FROM seals WHERE last > ? ORDER BY last")?;
    let seals = select.query_map([last], AuditSeal::read)?;
    seals.filter(|seal| seal.as_ref().map_or(true, |seal| seal.is_genuine(key))).take(limit).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(text: &str) -> Option<Hash> {
    let bytes = text.as_bytes();
    let digits = bytes.chunks_exact(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    digits.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
