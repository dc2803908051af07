//! What anybody who reaches the server can write, read as a node reads it. Public only for the fuzz targets.

use sinew_presence::Key;

use crate::messages::{Assembly, packets};
use crate::records::{parse_key, parse_record, text_of, text_of_key};
use crate::sharing::{SharedKey, SharedRecord};

/// Reads packets, one after the other. What they say can be said again in the same words.
pub fn read_packets<'a>(received: impl Iterator<Item = &'a [u8]>) {
    let mut assembly = Assembly::default();
    for packet in received {
        if let Ok(Some((from, message))) = assembly.add(packet) {
            let again = packets(&from, "again", &message).unwrap_or_default();
            let mut heard = again.iter().filter_map(|packet| assembly.add(packet).ok().flatten());
            assert_eq!(heard.next(), Some((from, message)));
        }
    }
}

/// Reads a record of any bucket.
pub fn read_record(key: &str, text: &[u8]) {
    for is_device in [true, false] {
        let Some(parsed) = parse_key(key, is_device) else { continue };
        assert!(matches!(&parsed, Key::Device(_)) == is_device && text_of_key(&parsed) == key);
        if let Some(record) = parse_record(&parsed, text)
            && let Some(again) = text_of(&record)
        {
            assert_eq!(parse_record(&parsed, again.as_bytes()), Some(record));
        }
    }
    if let Some(record) = SharedRecord::parse(key, text)
        && let Some(again) = record.text()
    {
        assert!(SharedKey::parse(key).is_some());
        assert_eq!(SharedRecord::parse(key, again.as_bytes()), Some(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_read_is_read_again() {
        let refused = br#"{"v":1,"from":"a","boot":"7","id":"1","part":0,"parts":1}
{"call":"1","body":"refused"}"#;
        read_packets([&refused[..], b"", b"{}\n"].into_iter());
        for (key, text) in [
            ("attic", r#"{"v":1,"boot":"00000000000000ff","term":"7"}"#),
            ("ab000000000000000000000000000000", r#"{"v":1,"held":null}"#),
            ("id.lamp", r#"{"v":1,"device":"ab000000000000000000000000000000"}"#),
            ("node.attic", r#"{"v":1,"policy":"p","program":"0.3.0"}"#),
            ("", ""),
        ] {
            read_record(key, text.as_bytes());
        }
    }
}
