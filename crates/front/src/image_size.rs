//! Reads the size of an image from its first bytes.
//!
//! The remote-control reference gives width and height with every image; boards send neither.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Enough for the EXIF data that precedes the size in a JPEG.
const PREFIX: usize = 96 * 1024;

/// Width and height of a PNG, JPEG or GIF given in base64.
pub(crate) fn of(data: &str) -> Option<(u32, u32)> {
    let length = data.len().min(PREFIX) / 4 * 4;
    let bytes = STANDARD.decode(data.as_bytes().get(..length)?).ok()?;
    png(&bytes).or_else(|| gif(&bytes)).or_else(|| jpeg(&bytes))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?.get(4..)?.strip_prefix(b"IHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    Some((number(0)?, number(4)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"))?;
    let number = |at: usize| Some(u32::from(u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?)));
    Some((number(0)?, number(2)?))
}

/// Walks the segments up to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let marker = *rest.strip_prefix(b"\xff")?.first()?;
        if marker == 0xff {
            rest = &rest[1..];
            continue;
        }
        let body = rest.get(2..)?;
        let number = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
        // The frame markers are C0 to CF, but C4, C8 and CC are tables.
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((number(5)?.into(), number(3)?.into()));
        }
        rest = body.get(usize::from(number(0)?).max(2)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_usual_formats_is_read() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x04\x38\0\0\x09\x60\x08\x02";
        let gif = b"GIF89a\x40\x01\xf0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04AB\xff\xff\xc0\0\x11\x08\x00\xf0\x01\x40\x03";
        for (bytes, wanted) in [(&png[..], (1080, 2400)), (&gif[..], (320, 240)), (&jpeg[..], (320, 240))] {
            assert_eq!(of(&STANDARD.encode(bytes)), Some(wanted));
        }
    }

    #[test]
    fn other_data_has_no_size() {
        for data in ["", "AAAA", "not base64!", "/9j/", "/9j//+AAAA==", "iVBORw0KGgo=", "R0lGODlh", "ééé"] {
            assert_eq!(of(data), None, "{data}");
        }
    }
}
