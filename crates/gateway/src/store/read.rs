//! Queries.

use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use sinew_tool::DeviceId;

use super::chain::hex;
use crate::view::{AuditFilter, AuditRecord, EventPage, FAILED, StoredEvent};

/// The position of a reader of events. Opaque to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The last event seen.
    pub seq: u64,
    /// That event's number among those of its device, where one device is read.
    pub nth: Option<u64>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nth {
            Some(nth) => write!(f, "{}.{nth}", self.seq),
            None => write!(f, "{}", self.seq),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Cursor, ()> {
        // SQLite counts in 63 bits.
        let number = |text: &str| match text.parse::<u64>() {
            Ok(number) if text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => Err(()),
        };
        match text.split_once('.') {
            Some((seq, nth)) => Ok(Cursor { seq: number(seq)?, nth: Some(number(nth)?) }),
            None => Ok(Cursor { seq: number(text)?, nth: None }),
        }
    }
}

/// The newest records that fit, newest first.
pub(super) fn newest_records(
    db: &Connection,
    filter: &AuditFilter,
    limit: usize,
) -> rusqlite::Result<Vec<AuditRecord>> {
    let mut select = db.prepare_cached(&records_sql(filter))?;
    let AuditFilter { device, principal, outcome, kind, run, since, before, after } = filter;
    let (before, after) = (before.unwrap_or(i64::MAX), after.unwrap_or(i64::MIN));
    let values = params![as_limit(limit), before, device, principal, after, since, outcome, kind, run];
    select.query_map(values, record)?.collect()
}

/// Only what is asked for stands in the question: `?3 IS NULL OR device = ?3` would read the whole table.
fn records_sql(filter: &AuditFilter) -> String {
    let device = if filter.device.is_some() { "AND device = ?3" } else { "AND ?3 IS NULL" };
    let principal = if filter.principal.is_some() { "AND principal = ?4" } else { "AND ?4 IS NULL" };
    let since = if filter.since.is_some() { "AND at >= ?6" } else { "AND ?6 IS NULL" };
    let outcome = match filter.outcome.as_deref() {
        Some(FAILED) => "AND outcome <> 'ok' AND ?7 = ?7",
        Some(_) => "AND outcome = ?7",
        None => "AND ?7 IS NULL",
    };
    let kind = if filter.kind.is_some() { "AND kind = ?8" } else { "AND ?8 IS NULL" };
    let run = if filter.run.is_some() { "AND run = ?9" } else { "AND ?9 IS NULL" };
    format!(
        "SELECT id, at, principal, door, device, tool, name, args_digest, args, outcome, duration_us, bytes, kind, caller, decided, run
         FROM audit WHERE id < ?2 AND id > ?5 {device} {principal} {since} {outcome} {kind} {run} ORDER BY id DESC LIMIT ?1"
    )
}

fn record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    Ok(AuditRecord {
        id: row.get(0)?,
        at: row.get(1)?,
        principal: row.get(2)?,
        door: row.get(3)?,
        device: row.get(4)?,
        tool: row.get(5)?,
        name: row.get(6)?,
        args_digest: hex(row.get_ref(7)?.as_blob()?),
        args: row.get(8)?,
        outcome: row.get(9)?,
        duration_us: row.get(10)?,
        bytes: row.get(11)?,
        kind: row.get(12)?,
        caller: row.get(13)?,
        decided: row.get(14)?,
        run: row.get(15)?,
    })
}

/// A page of events and what was lost before its end. Losses are gaps in the numbers: those of the
/// device where one is read, those of all events otherwise. Without a cursor the reader takes what
/// is there, and only gaps within the page count.
pub(super) fn events(
    db: &Connection,
    device: Option<&DeviceId>,
    since: Option<Cursor>,
    limit: usize,
) -> rusqlite::Result<EventPage> {
    let from = since.map_or(0, |cursor| cursor.seq);
    let mut select = db.prepare_cached(match device {
        Some(_) => {
            "SELECT seq, at, device, topic, body, nth FROM events WHERE seq > ?1 AND device = ?3 ORDER BY seq LIMIT ?2"
        }
        None => "SELECT seq, at, device, topic, body, nth FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    })?;
    let rows: Vec<StoredEvent> = match device {
        Some(device) => {
            select.query_map(params![from, as_limit(limit), device.as_str()], event)?.collect::<Result<_, _>>()?
        }
        None => select.query_map(params![from, as_limit(limit)], event)?.collect::<Result<_, _>>()?,
    };
    let number = |event: &StoredEvent| if device.is_some() { event.nth } else { event.seq };
    let (Some(first), Some(newest)) = (rows.first(), rows.last()) else {
        let next = since.unwrap_or(Cursor { seq: 0, nth: device.map(|_| 0) }).to_string();
        return Ok(EventPage { events: Vec::new(), next, dropped: 0 });
    };
    let (first, last) = (number(first), number(newest));
    let before = match (since, device) {
        (None, _) => first - 1,
        (Some(cursor), None) => cursor.seq,
        (Some(Cursor { nth: Some(nth), .. }), Some(_)) => nth,
        (Some(cursor), Some(device)) => nth_at(db, device, cursor.seq)?.unwrap_or(first - 1),
    };
    let next = Cursor { seq: newest.seq, nth: device.map(|_| last) }.to_string();
    let dropped = last.saturating_sub(before).saturating_sub(rows.len() as u64);
    Ok(EventPage { events: rows, next, dropped })
}

/// The number of the device's last kept event up to `seq`.
fn nth_at(db: &Connection, device: &DeviceId, seq: u64) -> rusqlite::Result<Option<u64>> {
    let mut select =
        db.prepare_cached("SELECT nth FROM events WHERE device = ? AND seq <= ? ORDER BY seq DESC LIMIT 1")?;
    select.query_row(params![device.as_str(), seq], |row| row.get(0)).optional()
}

fn event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let body: String = row.get(4)?;
    Ok(StoredEvent {
        seq: row.get(0)?,
        at: row.get(1)?,
        device: row.get(2)?,
        topic: row.get(3)?,
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
        nth: row.get(5)?,
    })
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_device_or_a_run_are_found_by_an_index_and_others_from_the_newest_on() {
        let db = Connection::open_in_memory().unwrap();
        super::super::format::create(&db, &super::super::AuditKey::new("key")).unwrap();
        let plan = |filter: AuditFilter| -> String {
            let sql = format!("EXPLAIN QUERY PLAN {}", records_sql(&filter));
            let values = params![
                10,
                i64::MAX,
                filter.device,
                filter.principal,
                i64::MIN,
                filter.since,
                filter.outcome,
                filter.kind,
                filter.run
            ];
            db.query_row(&sql, values, |row| row.get(3)).unwrap()
        };
        let one = || Some("x".to_owned());
        let of_device = plan(AuditFilter { device: one(), ..AuditFilter::default() });
        assert!(of_device.contains("audit_of_device"), "{of_device}");
        let of_run = plan(AuditFilter { run: one(), ..AuditFilter::default() });
        assert!(of_run.contains("audit_of_run"), "{of_run}");
        for filter in [AuditFilter { principal: one(), ..AuditFilter::default() }, AuditFilter::default()] {
            let from_the_newest = plan(filter);
            assert!(from_the_newest.contains("PRIMARY KEY"), "{from_the_newest}");
        }
    }

    #[test]
    fn cursors_are_read_back_and_other_text_is_refused() {
        for cursor in [Cursor { seq: 0, nth: None }, Cursor { seq: 7, nth: Some(3) }] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for nonsense in ["", ".", "7.", "-1", "+1", "x", "9999999999999999999", "1.2.3", " 1"] {
            assert_eq!(nonsense.parse::<Cursor>(), Err(()), "{nonsense:?}");
        }
    }
}
