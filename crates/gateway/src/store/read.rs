//! What is asked of the store.

use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use sinew_tool::DeviceId;

use crate::view::{AuditRecord, Event, EventPage};

/// Where a reader of events stands. Opaque to callers.
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

pub(super) fn newest_calls(db: &Connection, limit: usize) -> rusqlite::Result<Vec<AuditRecord>> {
    let mut select = db.prepare_cached(
        "SELECT id, at, principal, door, device, tool, name, args_digest, args, outcome, duration_us, bytes
         FROM audit ORDER BY id DESC LIMIT ?",
    )?;
    select.query_map([as_limit(limit)], call)?.collect()
}

fn call(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    let digest: [u8; 32] = row.get(7)?;
    Ok(AuditRecord {
        id: row.get(0)?,
        at: row.get(1)?,
        principal: row.get(2)?,
        door: row.get(3)?,
        device: row.get(4)?,
        tool: row.get(5)?,
        name: row.get(6)?,
        args_digest: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        args: row.get(8)?,
        outcome: row.get(9)?,
        duration_us: row.get(10)?,
        bytes: row.get(11)?,
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
        None => "SELECT seq, at, device, topic, body, seq FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    })?;
    let rows: Vec<(Event, u64)> = match device {
        Some(device) => {
            select.query_map(params![from, as_limit(limit), device.as_str()], event)?.collect::<Result<_, _>>()?
        }
        None => select.query_map(params![from, as_limit(limit)], event)?.collect::<Result<_, _>>()?,
    };
    let (Some((_, first)), Some((newest, last))) = (rows.first(), rows.last()) else {
        let next = since.unwrap_or(Cursor { seq: 0, nth: device.map(|_| 0) }).to_string();
        return Ok(EventPage { events: Vec::new(), next, dropped: 0 });
    };
    let before = match (since, device) {
        (None, _) => first - 1,
        (Some(cursor), None) => cursor.seq,
        (Some(Cursor { nth: Some(nth), .. }), Some(_)) => nth,
        (Some(cursor), Some(device)) => nth_at(db, device, cursor.seq)?.unwrap_or(first - 1),
    };
    let next = Cursor { seq: newest.seq, nth: device.map(|_| *last) }.to_string();
    let dropped = last.saturating_sub(before).saturating_sub(rows.len() as u64);
    Ok(EventPage { events: rows.into_iter().map(|(event, _)| event).collect(), next, dropped })
}

/// The number of the device's last kept event up to `seq`.
fn nth_at(db: &Connection, device: &DeviceId, seq: u64) -> rusqlite::Result<Option<u64>> {
    let mut select =
        db.prepare_cached("SELECT nth FROM events WHERE device = ? AND seq <= ? ORDER BY seq DESC LIMIT 1")?;
    select.query_row(params![device.as_str(), seq], |row| row.get(0)).optional()
}

fn event(row: &Row<'_>) -> rusqlite::Result<(Event, u64)> {
    let body: String = row.get(4)?;
    let event = Event {
        seq: row.get(0)?,
        at: row.get(1)?,
        device: row.get(2)?,
        topic: row.get(3)?,
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
    };
    Ok((event, row.get(5)?))
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_and_nonsense_is_not() {
        for cursor in [Cursor { seq: 0, nth: None }, Cursor { seq: 7, nth: Some(3) }] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for nonsense in ["", ".", "7.", "-1", "+1", "x", "9999999999999999999", "1.2.3", " 1"] {
            assert_eq!(nonsense.parse::<Cursor>(), Err(()), "{nonsense:?}");
        }
    }
}
