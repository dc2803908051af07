//! Writes a message once, into one buffer whose size is known before: boards have little memory.
//!
//! Every function gives `None` where the memory does not suffice, and never aborts.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The text of a value, in a buffer of exactly its size.
pub(super) fn exact(value: &impl Display) -> Option<String> {
    let mut text = String::new();
    text.try_reserve_exact(length(value)).ok()?;
    write!(text, "{value}").ok()?;
    Some(text)
}

/// How many bytes a value takes as text.
pub(super) fn length(value: &impl Display) -> usize {
    struct ByteCounter(usize);

    impl Write for ByteCounter {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 += part.len();
            Ok(())
        }
    }

    let mut counter = ByteCounter(0);
    // Neither our own `Display` nor that of `serde_json` fails; a counter takes everything.
    let _ = write!(counter, "{value}");
    counter.0
}

/// A text as the inside of a JSON string, or bytes in Base64.
pub(super) enum Body {
    Escaped(Vec<u8>),
    Base64(Vec<u8>),
}

impl Body {
    pub(super) fn length(&self) -> usize {
        match self {
            Body::Escaped(text) => text.iter().map(|byte| escape(*byte).length).sum(),
            Body::Base64(bytes) => bytes.len().div_ceil(3) * 4,
        }
    }

    /// The message `before`, body, `after`. The buffer of the body becomes that of the message: it grows, and is
    /// encoded in place from its end, so that a reply and its message never stand side by side.
    pub(super) fn between(self, before: &impl Display, after: &impl Display) -> Option<String> {
        let start = length(before);
        let end = start + self.length();
        let whole = end + length(after);
        let (mut buffer, encode): (_, fn(&mut [u8], usize, usize)) = match self {
            Body::Escaped(text) => (text, escape_in_place),
            Body::Base64(bytes) => (bytes, encode_in_place),
        };
        let given = buffer.len();
        buffer.try_reserve_exact(whole - given).ok()?;
        buffer.resize(whole, 0);
        encode(&mut buffer, given, end);
        write!(Slice(&mut buffer[..start]), "{before}").ok()?;
        write!(Slice(&mut buffer[end..]), "{after}").ok()?;
        String::from_utf8(buffer).ok()
    }
}

/// Moves the text in `..given` so that it ends at `end`, escaped. Every byte becomes at least one, so the place written
/// to is never before the place read from.
fn escape_in_place(buffer: &mut [u8], given: usize, mut end: usize) {
    for at in (0..given).rev() {
        let escape = escape(buffer[at]);
        end -= escape.length;
        buffer[end..end + escape.length].copy_from_slice(escape.bytes());
    }
}

/// The same for Base64: three bytes become four.
fn encode_in_place(buffer: &mut [u8], given: usize, mut end: usize) {
    let mut at = given;
    while at > 0 {
        let begin = (at - 1) / 3 * 3;
        let mut group = [0; 3];
        let group = &mut group[..at - begin];
        group.copy_from_slice(&buffer[begin..at]);
        end -= 4;
        // Four bytes are exactly what three or fewer become with padding.
        let _ = STANDARD.encode_slice(&*group, &mut buffer[end..end + 4]);
        at = begin;
    }
}

/// Writes into a slice that is as long as what comes.
struct Slice<'a>(&'a mut [u8]);

impl Write for Slice<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let (head, rest) = core::mem::take(&mut self.0).split_at_mut_checked(part.len()).ok_or(fmt::Error)?;
        head.copy_from_slice(part.as_bytes());
        self.0 = rest;
        Ok(())
    }
}

/// One byte of a text inside a JSON string: up to six.
struct EscapedByte {
    bytes: [u8; 6],
    length: usize,
}

impl EscapedByte {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn escape(byte: u8) -> EscapedByte {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = |letter| EscapedByte { bytes: [b'\\', letter, 0, 0, 0, 0], length: 2 };
    match byte {
        b'"' | b'\\' => short(byte),
        b'\n' => short(b'n'),
        b'\r' => short(b'r'),
        b'\t' => short(b't'),
        0..0x20 => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            EscapedByte { bytes: [b'\\', b'u', b'0', b'0', digits[0], digits[1]], length: 6 }
        }
        _ => EscapedByte { bytes: [byte, 0, 0, 0, 0, 0], length: 1 },
    }
}

/// A text as the inside of a JSON string.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.bytes().position(|byte| escape(byte).length > 1) {
            f.write_str(&rest[..at])?;
            let escape = escape(rest.as_bytes()[at]);
            f.write_str(core::str::from_utf8(escape.bytes()).unwrap_or_default())?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// A text as a JSON string.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", Escaped(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    proptest! {
        #[test]
        fn any_text_survives_its_encoding(text in ".*|[\u{0}-\u{7f}\"\\\\]{0,300}") {
            let message = Body::Escaped(text.clone().into_bytes()).between(&"{\"t\":\"", &"\"}").unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&message).unwrap(), json!({"t": &text}));
            let quoted = Quoted(&text).to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&quoted).unwrap(), json!(text));
            prop_assert_eq!(&message, &format!("{{\"t\":{quoted}}}"));
        }

        #[test]
        fn any_bytes_survive_their_encoding(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let message = Body::Base64(bytes.clone()).between(&"<<", &">").unwrap();
            let encoded = message.strip_prefix("<<").and_then(|rest| rest.strip_suffix('>')).unwrap();
            prop_assert_eq!(STANDARD.decode(encoded).unwrap(), bytes);
        }
    }

    #[test]
    fn a_buffer_is_as_large_as_its_text() {
        let text = exact(&json!({"a": [1, "two"]})).unwrap();
        assert_eq!((text.as_str(), text.capacity()), (r#"{"a":[1,"two"]}"#, text.len()));
        let message = Body::Escaped(b"a\"b".to_vec()).between(&'<', &'>').unwrap();
        assert_eq!((message.as_str(), message.capacity()), ("<a\\\"b>", message.len()));
    }
}
