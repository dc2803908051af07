//! The rows of the store: how they are written, and read back at the start.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use sinew_tool::{Admission, DeviceId, DeviceKey, Digest, Family, FamilyName, Reach, TextTrust, Tool, Toolset};

use crate::held::TOOLS_CHANGED;
use crate::labels::Label;
use crate::shared::{NameChange, NameClaim, TokenKind, TokenRow};

/// Something a device sent. `seq` counts all events, `nth` those of the device, also the ones that
/// were not kept: a gap is a loss.
#[derive(Debug)]
pub(crate) struct EventRow {
    pub seq: u64,
    pub nth: u64,
    pub at: i64,
    pub device: DeviceId,
    pub topic: String,
    pub body: String,
    /// HeldTools until the event is written.
    pub _pending: PendingEvent,
}

/// One waiting event of a device; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingEvent(Arc<AtomicU32>);

impl PendingEvent {
    /// `None` when the device already has `max` of them.
    pub(crate) fn enter(count: &Arc<AtomicU32>, max: u32) -> Option<PendingEvent> {
        // Counted first and refused afterwards: the guard takes it back either way.
        let before = count.fetch_add(1, Ordering::Relaxed);
        let pending = PendingEvent(count.clone());
        (before < max).then_some(pending)
    }
}

impl Drop for PendingEvent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceRow {
    pub key: DeviceKey,
    pub id: DeviceId,
    pub name: Option<String>,
    pub labels: Vec<Label>,
    pub family: Family,
    pub admission: Admission,
    pub kind: String,
    pub version: String,
    pub instructions: Option<String>,
    pub attributes: BTreeMap<String, Value>,
    /// The digest of its toolset, in hex.
    pub toolset: String,
    /// Since when it is here or away, in milliseconds of Unix time.
    pub since: i64,
    pub away: bool,
    /// When it left, in milliseconds of the gateway's running time.
    pub left_at: i64,
}

/// The id of a forgotten device: for a time only the same device gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestingId {
    pub id: DeviceId,
    pub key: DeviceKey,
    /// Milliseconds of the gateway's running time.
    pub since: i64,
}

/// A change of what is remembered besides calls and events.
#[derive(Debug)]
pub(crate) enum Write {
    Device(DeviceRow),
    /// The device is forgotten; its id rests.
    Forget(RestingId),
    /// The id is in use again, by the same device.
    Return(DeviceId),
    /// The id is free.
    Release(DeviceId),
    /// The events of a device are gone.
    ForgetEvents(DeviceId),
    Toolset {
        digest: String,
        tools: String,
    },
    Name(NameChange),
    /// How long the gateway ran, in milliseconds.
    Running(i64),
    Token(TokenRow),
    TokenUsed {
        id: String,
        at: i64,
    },
    Revoke(String),
}

impl Write {
    pub(super) fn apply(&self, db: &Connection) -> rusqlite::Result<()> {
        match self {
            Write::Device(row) => {
                let attributes = serde_json::to_string(&row.attributes).unwrap_or_else(|_| "{}".to_owned());
                let mut insert = db.prepare_cached(
                    "INSERT OR REPLACE INTO devices (key, id, name, family, kind, version, instructions, attributes, toolset, since, away, words, reach, admission, left_at, labels)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?;
                insert.execute(params![
                    row.key.0,
                    row.id.as_str(),
                    row.name,
                    row.family.name.as_str(),
                    row.kind,
                    row.version,
                    row.instructions,
                    attributes,
                    row.toolset,
                    row.since,
                    row.away,
                    json!(row.family.text_trust).to_string(),
                    json!(row.family.reach).to_string(),
                    json!(row.admission).to_string(),
                    row.left_at,
                    json!(row.labels).to_string()
                ])?;
            }
            Write::Forget(RestingId { id, key, since }) => {
                db.prepare_cached("DELETE FROM devices WHERE key = ?")?.execute([&key.0])?;
                let mut insert =
                    db.prepare_cached("INSERT OR REPLACE INTO resting_ids (id, key, since) VALUES (?, ?, ?)")?;
                insert.execute(params![id.as_str(), key.0, since])?;
            }
            Write::Return(id) | Write::Release(id) => {
                db.prepare_cached("DELETE FROM resting_ids WHERE id = ?")?.execute([id.as_str()])?;
            }
            Write::ForgetEvents(id) => {
                db.prepare_cached("DELETE FROM events WHERE device = ?")?.execute([id.as_str()])?;
            }
            Write::Toolset { digest, tools } => {
                // A device that keeps changing must not fill the disk with what it once had.
                let mut prune = db.prepare_cached(
                    "DELETE FROM toolsets WHERE digest NOT IN (SELECT toolset FROM devices)
                     AND (SELECT count(*) FROM toolsets) > 64 + (SELECT count(DISTINCT toolset) FROM devices)",
                )?;
                prune.execute([])?;
                let mut insert = db.prepare_cached("INSERT OR IGNORE INTO toolsets (digest, tools) VALUES (?, ?)")?;
                insert.execute([digest, tools])?;
            }
            Write::Name(NameChange::Keep(NameClaim { tool, digest, name, owner, resting, face })) => {
                let mut insert = db.prepare_cached(
                    "INSERT OR REPLACE INTO names (tool, digest, name, owner, resting, face) VALUES (?, ?, ?, ?, ?, ?)",
                )?;
                let owner = owner.as_ref().map(|owner| &owner.0);
                insert.execute(params![tool, digest, name, owner, resting, face.map(|face| face.hex())])?;
            }
            Write::Name(NameChange::Release { tool, digest }) => {
                db.prepare_cached("DELETE FROM names WHERE tool = ? AND digest = ?")?.execute([tool, digest])?;
            }
            Write::Running(millis) => {
                let mut insert =
                    db.prepare_cached("INSERT OR REPLACE INTO counters (name, value) VALUES ('running_ms', ?)")?;
                insert.execute([millis])?;
            }
            Write::Token(row) => {
                let mut insert = db.prepare_cached(
                    "INSERT INTO tokens (id, role, device, label, hash, created_at, expires_at)
                     VALUES (?, ?, ?, ?, ?, ?, ?)",
                )?;
                let TokenRow { id, kind, device, label, hash, created_at, expires_at, .. } = row;
                insert.execute(params![id, kind.word(), device, label, hash, created_at, expires_at])?;
            }
            Write::TokenUsed { id, at } => {
                db.prepare_cached("UPDATE tokens SET last_use = ? WHERE id = ?")?.execute(params![at, id])?;
            }
            Write::Revoke(id) => {
                db.prepare_cached("DELETE FROM tokens WHERE id = ?")?.execute([id])?;
            }
        }
        Ok(())
    }
}

/// Everything the gateway needs to go on where it stopped.
#[derive(Default)]
pub(crate) struct StoredState {
    pub devices: Vec<DeviceRow>,
    /// By digest in hex, as the devices name them.
    pub toolsets: HashMap<String, Arc<Toolset>>,
    pub names: Vec<NameClaim>,
    pub resting_ids: Vec<RestingId>,
    /// How long gateways ran on this store, in milliseconds.
    pub running: i64,
    pub tokens: Vec<TokenRow>,
    /// The number of the last event.
    pub seq: u64,
    /// The number of each device's last event.
    pub nths: HashMap<String, u64>,
    /// Of pinned devices, what the last event about their tools called held back.
    pub held: HashMap<DeviceId, Vec<String>>,
}

pub(super) fn load(db: &mut Connection, is_pinned: &dyn Fn(&DeviceKey) -> bool) -> rusqlite::Result<StoredState> {
    db.execute("DELETE FROM toolsets WHERE digest NOT IN (SELECT toolset FROM devices)", [])?;
    let db = &*db;
    let devices = collect(
        db,
        "SELECT key, id, name, family, kind, version, instructions, attributes, toolset, since, away, words, reach, admission, left_at, labels FROM devices",
        |row| {
            let attributes: String = row.get(7)?;
            Ok(DeviceId::parse(&row.get::<_, String>(1)?).map(|id| {
                let attributes: BTreeMap<String, Value> = serde_json::from_str(&attributes).unwrap_or_default();
                let text = |column: usize| row.get::<_, String>(column);
                Ok(DeviceRow {
                    key: DeviceKey(row.get(0)?),
                    id,
                    name: row.get(2)?,
                    family: family(&text(3)?, &text(11)?, &text(12)?),
                    admission: serde_json::from_str(&text(13)?).unwrap_or(Admission::Local),
                    labels: serde_json::from_str(&text(15)?).unwrap_or_default(),
                    kind: row.get(4)?,
                    version: row.get(5)?,
                    instructions: row.get(6)?,
                    attributes,
                    toolset: row.get(8)?,
                    since: row.get(9)?,
                    away: row.get(10)?,
                    left_at: row.get(14)?,
                })
            }))
        },
    )?;
    let devices: Vec<DeviceRow> = devices.into_iter().flatten().collect::<rusqlite::Result<_>>()?;
    let mut held = HashMap::new();
    for row in devices.iter().filter(|row| is_pinned(&row.key)) {
        held.insert(row.id.clone(), last_held(db, &row.id)?);
    }
    let toolsets = collect(db, "SELECT digest, tools FROM toolsets", |row| {
        let tools: String = row.get(1)?;
        let entries: Vec<Value> = serde_json::from_str(&tools).unwrap_or_default();
        let tools = entries.iter().filter_map(|entry| Tool::from_record(entry).ok());
        Ok((row.get::<_, String>(0)?, Arc::new(Toolset::new(tools))))
    })?;
    let names = collect(db, "SELECT tool, digest, name, owner, resting, face FROM names", |row| {
        Ok(NameClaim {
            tool: row.get(0)?,
            digest: row.get(1)?,
            name: row.get::<_, String>(2)?.into(),
            owner: row.get::<_, Option<String>>(3)?.map(DeviceKey),
            resting: row.get(4)?,
            face: row.get::<_, Option<String>>(5)?.and_then(|hex| Digest::parse(&hex)),
        })
    })?;
    let resting_ids = collect(db, "SELECT id, key, since FROM resting_ids", |row| {
        let id = DeviceId::parse(&row.get::<_, String>(0)?);
        let (key, since) = (DeviceKey(row.get(1)?), row.get(2)?);
        Ok(id.map(|id| RestingId { id, key, since }))
    })?;
    let running =
        db.query_row("SELECT coalesce(max(value), 0) FROM counters WHERE name = 'running_ms'", [], |row| row.get(0))?;
    let tokens = collect(
        db,
        "SELECT id, role, device, label, hash, created_at, expires_at, last_use FROM tokens ORDER BY created_at, id",
        |row| {
            Ok(TokenRow {
                id: row.get(0)?,
                kind: TokenKind::parse(&row.get::<_, String>(1)?),
                device: row.get(2)?,
                label: row.get(3)?,
                hash: row.get(4)?,
                created_at: row.get(5)?,
                expires_at: row.get(6)?,
                last_use: Arc::new(AtomicI64::new(row.get::<_, Option<i64>>(7)?.unwrap_or(0))),
            })
        },
    )?;
    let nths =
        collect(db, "SELECT device, max(nth) FROM events GROUP BY device", |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(StoredState {
        devices,
        toolsets: toolsets.into_iter().collect(),
        names,
        resting_ids: resting_ids.into_iter().flatten().collect(),
        running,
        tokens,
        seq: db.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?,
        nths: nths.into_iter().collect(),
        held,
    })
}

fn last_held(db: &Connection, device: &DeviceId) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT body FROM events WHERE device = ?1 AND topic = ?2 ORDER BY seq DESC LIMIT 1";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([device.as_str(), TOOLS_CHANGED])?;
    let body: Option<String> = rows.next()?.map(|row| row.get(0)).transpose()?;
    let body: Value = body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default();
    let names = body.get("quarantined").and_then(Value::as_array);
    Ok(names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// What cannot be read gets the lowest trust.
fn family(name: &str, words: &str, reach: &str) -> Family {
    Family {
        name: FamilyName::parse(name).unwrap_or(FamilyName::of("device")),
        text_trust: serde_json::from_str(words).unwrap_or(TextTrust::Quoted),
        reach: serde_json::from_str(reach).unwrap_or(Reach::SeveralGateways),
        // The family says it again when the device connects; until then the device is away.
        prefers_ready: false,
        shows_others: false,
        passes_text_on: false,
        passes_on: false,
        stays_with_user: false,
    }
}

fn collect<T>(
    db: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.collect()
}
