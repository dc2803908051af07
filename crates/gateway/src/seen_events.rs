//! Events for a caller from whom some are hidden: neither the page nor its cursor tells that they are there.
//!
//! A cursor stands right after the last event that the caller saw, and it is sealed, because the number in it counts the
//! events of all devices.

use hmac::Mac;
use sinew_tool::{ErrorKind, ToolError};

use crate::gateway::Gateway;
use crate::store::{AuditKey, hex};
use crate::view::{EventPage, StoredEvent};

/// Events that are looked through at once.
const LOT: usize = 1_000;
/// Cursors are filled up to a multiple of this, so that their length tells nothing.
const CURSOR_LENGTH: usize = 24;
const CHECK_LENGTH: usize = 8;

/// The events after a cursor that the caller sees, oldest first.
pub(crate) async fn page(
    gateway: &Gateway,
    device: Option<&str>,
    since: Option<&str>,
    limit: usize,
    is_seen: impl Fn(&StoredEvent) -> bool,
) -> Result<EventPage, ToolError> {
    let key = &gateway.recorder().key;
    let read = |at: Option<String>, limit| async move { gateway.events(device, at.as_deref(), limit).await };
    let mut at = since.map(|text| open(key, text)).transpose()?;
    let mut next = at.clone();
    let (mut events, mut dropped) = (Vec::new(), 0);
    while events.len() < limit {
        let lot = read(at.clone(), LOT).await?;
        let count = lot.events.len();
        let mut last = None;
        for (place, event) in lot.events.into_iter().enumerate() {
            if events.len() < limit && is_seen(&event) {
                // Its number among those of its own device.
                events.push(StoredEvent { seq: event.nth, ..event });
                last = Some(place);
            }
        }
        // Of all devices together, it would count those of hidden ones.
        dropped += if device.is_some() { lot.dropped } else { 0 };
        next = match last {
            Some(last) if last + 1 < count => Some(read(at.clone(), last + 1).await?.next),
            Some(_) => Some(lot.next.clone()),
            None => next,
        };
        if count < LOT {
            break;
        }
        at = Some(lot.next);
    }
    let next = match next {
        Some(next) => next,
        None => read(None, 0).await?.next,
    };
    Ok(EventPage { events, next: seal(key, &next), dropped })
}

fn seal(key: &AuditKey, cursor: &str) -> String {
    let length = cursor.len().next_multiple_of(CURSOR_LENGTH);
    let plain = format!("{cursor:length$}").into_bytes();
    let check = digest(key, b"cursor", &plain)[..CHECK_LENGTH].to_vec();
    let hidden = mask(key, &check, &plain);
    format!("{}{}", hex(&check), hex(&hidden))
}

fn open(key: &AuditKey, text: &str) -> Result<String, ToolError> {
    let opened = || {
        let bytes = unhex(text)?;
        let (check, hidden) = bytes.split_at_checked(CHECK_LENGTH)?;
        let plain = mask(key, check, hidden);
        let is_own = digest(key, b"cursor", &plain)[..CHECK_LENGTH] == *check;
        String::from_utf8(plain).ok().filter(|_| is_own).map(|text| text.trim_end().to_owned())
    };
    opened().ok_or_else(|| {
        let message = "the cursor was not given out by this gateway to a caller with your rights; start without one, and \
                       continue with `next` of each answer";
        ToolError::new(ErrorKind::BadCursor, message)
    })
}

/// Hides bytes, or shows them again.
fn mask(key: &AuditKey, check: &[u8], bytes: &[u8]) -> Vec<u8> {
    let blocks = bytes.chunks(32).zip(0u8..).map(|(chunk, number)| {
        let pad = digest(key, &[b'm', number], check);
        chunk.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect::<Vec<u8>>()
    });
    blocks.flatten().collect()
}

fn digest(key: &AuditKey, what: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut mac = key.start();
    mac.update(b"sinew event cursor");
    mac.update(what);
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    // Longer than any that was given out.
    let is_hex = text.len() <= 512 && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pairs = (0..text.len()).step_by(2).filter(|_| is_hex);
    let bytes: Vec<u8> = pairs.filter_map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect();
    is_hex.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_tells_nothing() {
        let (key, other) = (AuditKey::new("key"), AuditKey::new("other"));
        for cursor in ["0", "17", "123456789012345678.123456789012345678"] {
            let sealed = seal(&key, cursor);
            assert_eq!(open(&key, &sealed).unwrap(), cursor);
            assert!(open(&other, &sealed).is_err());
            let changed = format!("{}{}", if sealed.starts_with('0') { '1' } else { '0' }, &sealed[1..]);
            assert!(open(&key, &changed).is_err());
        }
        assert_eq!(seal(&key, "1").len(), seal(&key, "4711").len());
        for nonsense in ["", "0", "17", "zz", "ää", &"a".repeat(10_000)] {
            assert!(open(&key, nonsense).is_err(), "{nonsense}");
        }
    }
}
